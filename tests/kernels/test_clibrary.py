"""What glibc is told about memory."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

PROGRAM = """
import re, sys
from pathlib import Path
import numpy as np
from minutch.kernels.clibrary import give_back_large

def held():
    return int(re.search(r"RssAnon:\\s*(\\d+)", Path("/proc/self/status").read_text())[1]) >> 10

if sys.argv[1:]:
    give_back_large()
before = held()
for size in (30, 25):
    np.ones(size << 20, np.uint8)
print(held() - before)
"""


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="memory as Linux tells it")
def test_large_blocks_are_given_back() -> None:
    if not Path("/proc/self/status").read_text().count("RssAnon"):
        pytest.skip("no RssAnon")
    kept, given_back = (
        int(subprocess.check_output([sys.executable, "-c", PROGRAM, *words]))
        for words in ([], ["give back"])
    )
    assert given_back <= 2
    if kept < 20:
        pytest.skip("this C library keeps nothing")
