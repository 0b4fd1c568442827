"""How many examples a property has: all of them with `--all`, a quarter without."""

from __future__ import annotations

from hypothesis import settings


def examples(full: int) -> int:
    """Returns the share of `full` that this run takes; conftest.py loads the profile that says so
    before it imports any test.
    """
    return max(1, full * settings().max_examples // 100)
