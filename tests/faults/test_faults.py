"""Every job, disturbed: killed, without power, without room on the disk, interrupted, with damaged files.

A few seeded points of each kind here; `bin/test --faults` makes all of them, `python -m tests.faults` any.
"""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from tests.faults.jobs import JOBS
from tests.faults.syscalls import available
from tests.support.golden import PROJECT

pytestmark = pytest.mark.skipif(not available(), reason="needs Linux's seccomp with a listener")

SEED = int(os.environ.get("FAULTS_SEED", "1"))
LARGE = {"crawl", "updatedb-spill", "mergesegs-spill", "readlinkdb", "mergelinkdb", "domainstats"}
LARGE |= {"updatehostdb-spill", "readhostdb", "webgraph-first", "scoreupdater", "nodedumper", "linkdumper"}
"""Not in the short run."""
SMALL = [name for name in JOBS if name not in LARGE]


def disturb(*words: str) -> None:
    """Run campaigns in a process of their own: it forks, which this one with its threads must not."""
    command = [sys.executable, "-m", "tests.faults", *words, "--seed", str(SEED)]
    ran = subprocess.run(command, cwd=PROJECT, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stdout + ran.stderr[-3000:]
    print(ran.stdout)


@pytest.mark.parametrize("half", [0, 1])
def test_a_point_of_each_kind(half: int) -> None:
    disturb(*SMALL[half::2], "--points", "1")


@pytest.mark.faults
@pytest.mark.parametrize("job", JOBS)
def test_every_point(job: str) -> None:
    disturb(job, *(() if job != "crawl" else ("--points", "200")))
