"""Where the golden files lie: `shared/golden` beside the project, made by real Nutch and Hadoop."""

from __future__ import annotations

from pathlib import Path

import pytest

PROJECT = Path(__file__).parents[2]
SHARED = PROJECT.parent / "shared"
GOLDEN = SHARED / "golden"

needs_golden = pytest.mark.skipif(not GOLDEN.is_dir(), reason="golden files are not beside this checkout (../shared)")
