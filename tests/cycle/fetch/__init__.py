"""Tests of minutch/cycle/fetch."""
