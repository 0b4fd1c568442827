"""For all tests: Hypothesis gives the same examples at every run, and a slow machine is no failure."""

from __future__ import annotations

from hypothesis import HealthCheck, settings

settings.register_profile("minutch", derandomize=True, deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("minutch")
