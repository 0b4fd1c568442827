"""Tests of minutch/fetch."""
