"""What a command took: all that its processes took, whoever waited for them."""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path

import pytest

from tests.benchmarks.measure import family, run

_SCRIPT = """
import multiprocessing, time

def work():
    held = bytearray(50_000_000)
    end = time.process_time() + 0.6
    while time.process_time() < end:
        held[::4096] = bytes(len(held[::4096]))

if __name__ == "__main__":
    process = multiprocessing.get_context("forkserver").Process(target=work)
    process.start()
    process.join()
"""


@pytest.mark.slow
def test_workers_of_a_fork_server_count_though_nobody_waits_for_it(tmp_path: Path) -> None:
    # getrusage(2), RUSAGE_CHILDREN: only children that were waited for
    (tmp_path / "script.py").write_text(_SCRIPT)
    cost = run([sys.executable, tmp_path / "script.py"], cwd=tmp_path, env=dict(os.environ))
    assert cost.cpu_seconds >= 0.6
    assert cost.tree_bytes > 50_000_000 > cost.private_bytes
    time.sleep(0.05)
    assert family(os.getpid()) == [os.getpid()] or all(
        "script.py" not in Path(f"/proc/{pid}/cmdline").read_text()
        for pid in family(os.getpid())[1:]
    )
