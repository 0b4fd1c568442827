"""Shared by the tests: golden files, servers on loopback, fakes."""
