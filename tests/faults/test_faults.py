"""Every job, disturbed: killed, without power, without room on the disk, interrupted, with damaged
files.

And several at once. A few seeded points of each kind here; `bin/test --faults` makes all of them on
a small crawl, and a thousand of each kind for each job on a larger one; `python -m tests.faults`
any.
"""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from tests.faults.campaign import KINDS
from tests.faults.jobs import JOBS
from tests.faults.syscalls import available
from tests.support.golden import PROJECT

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not available(), reason="needs Linux's seccomp with a listener"),
]

SEED = int(os.environ.get("FAULTS_SEED", "1"))
LARGE = {
    "crawl",
    "fetch-parse",
    "fetch-two",
    "freegen",
    "readseg",
    "updatedb-spill",
    "mergesegs-spill",
    "readlinkdb",
}
LARGE |= {"mergelinkdb", "domainstats", "updatehostdb-spill", "readhostdb"}
LARGE |= {"webgraph-first", "scoreupdater", "nodedumper", "linkdumper"}
LARGE |= {
    "export-cdxj",
    "export-wet",
    "export-legacy",
    "export-commoncrawl",
    "export-parquet",
    "export-edges",
}
LARGE |= {
    "export-graphml",
    "sql",
    "report",
    "protocolstats",
    "crawlcomplete",
    "arc2segment",
    "import-legacy",
    "init",
}
LARGE |= {"index-local-again", "clean"}
"""Not in the short run; index-local-again, since tantivy removes what is merged by chance, at any
time.
"""
SMALL = [name for name in JOBS if name not in LARGE]
SHARE = 4
"""Of so many groups of small jobs the short run takes two; which, the seed says."""


def disturb(*words: str) -> None:
    """Run campaigns in a process of their own: it forks, which this one with its threads must
    not.
    """
    command = [sys.executable, "-m", "tests.faults", *words, "--seed", str(SEED)]
    ran = subprocess.run(command, cwd=PROJECT, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stdout + ran.stderr[-3000:]
    print(ran.stdout)


@pytest.mark.parametrize("half", [0, 1])
def test_a_point_of_each_kind(half: int) -> None:
    disturb(*SMALL[(SEED + half) % SHARE :: SHARE], "--points", "1")


def test_several_at_once() -> None:
    disturb("together", "--points", "4")


@pytest.mark.faults
@pytest.mark.parametrize("job", JOBS)
def test_every_point(job: str) -> None:
    """Clocks, and points of the crawl, have no end."""
    if job != "crawl":
        disturb(job, *(f"--kind={kind}" for kind in KINDS if kind != "clock"))
    disturb(
        job,
        "--points",
        "100",
        *(f"--kind={kind}" for kind in (KINDS if job == "crawl" else ["clock"])),
    )


@pytest.mark.faults
@pytest.mark.parametrize("kind", ["kill", "power", "error"])
@pytest.mark.parametrize("job", JOBS)
def test_a_thousand_points_of_a_larger_crawl(job: str, kind: str) -> None:
    disturb(job, "--large", "--kind", kind, "--points", "1000")


@pytest.mark.faults
def test_very_often_several_at_once() -> None:
    disturb("together", "--points", "1000")
