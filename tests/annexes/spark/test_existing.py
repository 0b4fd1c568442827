"""Tests of jobs, written for the engine of one machine, with Spark for their engine: what Nutch has
written, and more.

They run in a process of their own, with one Spark. `pytest --on-spark -n 0 FILE …` runs any others
so.
"""

from __future__ import annotations

import re
import subprocess
import sys

import pytest

from tests.support.golden import PROJECT
from tests.support.onspark import STAGES
from tests.support.sparkcluster import missing

pytestmark = [
    pytest.mark.servers,
    pytest.mark.spark,
    pytest.mark.skipif(bool(missing()), reason=missing()),
]

TESTS = (
    "tests/golden/test_crawldb_jobs.py",
    "tests/golden/test_crawldb_readdb.py",
    "tests/golden/test_generate_golden.py",
    "tests/cycle/fetch/test_fetch_job.py::test_a_stop_waits_for_no_host_that_rests",
    "tests/golden/test_linkdb_golden.py",
    "tests/golden/test_parse_golden.py",
    "tests/cycle/sitemap/test_sitemap.py::test_an_entry_that_is_known_stays_unless_told_otherwise",
    "tests/cycle/sitemap/test_sitemap.py::test_filters_and_normalizers_see_every_url",
    "tests/cycle/index/test_golden.py",
    "tests/cycle/segment/test_mergesegs.py",
    "tests/cycle/webgraph/test_scoreupdater.py",
)
OTHERWISE = ("tests/golden/test_generate_golden.py::test_job_table[numfetchers]",)
"""Nutch in local mode makes one list whatever it is asked for; on Spark it is as many."""


def test_jobs_on_spark_pass_their_tests() -> None:
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-n0",
        "-p",
        "no:cacheprovider",
        "--on-spark",
        *TESTS,
    ]
    command += [f"--deselect={test}" for test in OTHERWISE]
    done = subprocess.run(command, cwd=PROJECT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-8000:]
    stages = re.search(f"{STAGES}([0-9]+)", done.stdout)
    assert stages is not None
    assert int(stages[1]) > len(TESTS)
