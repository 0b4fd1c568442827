"""What kernels need: that they are being compiled is told once, and not when they come from the cache."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from tests.support.golden import PROJECT

KERNELS = """
from minutch.kernels.native import kernel

@kernel
def twice(number):
    return 2 * number

@kernel
def thrice(number):
    return 3 * number
"""
USE = """
import logging
logging.basicConfig(level=logging.INFO)
import made_kernels
print(made_kernels.twice(2), made_kernels.thrice(2))
"""


def test_compiling_is_told_of_once(tmp_path: Path) -> None:
    (tmp_path / "made_kernels.py").write_text(KERNELS)
    environment = {
        **os.environ,
        "NUMBA_CACHE_DIR": str(tmp_path / "cache"),
        "PYTHONPATH": os.pathsep.join([str(PROJECT), str(tmp_path)]),
    }
    told = []
    for _ in range(2):
        done = subprocess.run(
            [sys.executable, "-c", USE], env=environment, cwd=tmp_path, capture_output=True, text=True, check=True
        )
        assert done.stdout == "4 6\n"
        told.append(done.stderr.count("compiling kernels"))
    assert told == [1, 0]
