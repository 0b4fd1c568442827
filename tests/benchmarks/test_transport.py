"""The benchmark of the transport measures both ways in each case."""

from __future__ import annotations

import asyncio
import shutil
from pathlib import Path

import pytest

from tests.benchmarks.transport import bare, ours, serving

pytestmark = pytest.mark.skipif(
    shutil.which("nginx", path="/usr/sbin:/usr/bin:/usr/local/sbin:/usr/local/bin") is None,
    reason="nginx is not installed",
)


def test_all_pages_come_in_each_case(tmp_path: Path) -> None:
    with serving(tmp_path) as cases:
        for case in cases:
            work = case, 3, 2, tmp_path / "ca.pem"
            assert bare(*work) > 0
            assert asyncio.run(ours(*work)) > 0
    assert len(cases) == 5
