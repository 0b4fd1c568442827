"""Finds the golden files, which real Nutch and Hadoop made.

All of them are in `../shared/golden`; a subset of 2 MB is in `tests/golden/data`, for a checkout
that has nothing beside it. Tests read from `GOLDEN` and need not know which of the two it is.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from minutch.urls import parts

PROJECT = Path(__file__).parents[2]
SHARED = PROJECT.parent / "shared"
ALL = SHARED / "golden"
SUBSET = PROJECT / "tests" / "golden" / "data"
HAS_ALL = ALL.is_dir()
GOLDEN = ALL if HAS_ALL else SUBSET

needs_golden = pytest.mark.golden
"""Marks a test that reads golden files. `needs_golden(path, ...)` names those, below `GOLDEN`, that
it needs beyond the subset; the test's parameters may stand in braces. conftest.py skips it where
the subset is all there is."""


def in_set(path: Path) -> bool:
    """Returns whether a golden file or folder should be there: all of them in the full set, its own
    in the subset.
    """
    return HAS_ALL or path.exists()


def lacks_host(url: str | None) -> bool:
    """Tells whether a URL of Nutch's files lacks the host that its scheme needs: minutch keeps none
    such.
    """
    return url is not None and parts.lacks_host(url)
