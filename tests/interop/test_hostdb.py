"""Nutch reads a HostDb of minutch's, and goes on with it."""

from __future__ import annotations

import io
import shutil
from pathlib import Path

import pytest

from minutch.clock import FakeClock
from minutch.commands.flow import commands
from minutch.conf import Configuration
from minutch.cycle.hostdb.store import HostDb
from minutch.job import JobContext
from tests.interop.harness import Harness
from tests.support.golden import GOLDEN, needs_golden

pytestmark = [pytest.mark.jvm, pytest.mark.slow, needs_golden("tables/jobs/generate/in/crawldb")]

CRAWLDB = GOLDEN / "tables/jobs/generate/in/crawldb"
NOW = 1_795_250_000_000
PROPERTIES = {
    "plugin.includes": "nutch-extensionpoints",
    "mapreduce.job.reduces": "2",
    "hostdb.numeric.fields": "depth",
    "hostdb.string.fields": "userKey",
    "hostdb.percentiles": "50",
}


def _minutch(command: str, *args: str | Path) -> None:
    context = JobContext(
        Configuration.load([], overrides=PROPERTIES), FakeClock(NOW), out=io.StringIO()
    )
    assert commands()[command].run([str(arg) for arg in args], context) == 0


def _lines(out: Path) -> dict[str, tuple[list[str], list[str]]]:
    """Host -> its columns, its metadata in alphabetical order."""
    found = {}
    for part in sorted(out.glob("part-*")):
        for line in part.read_text(encoding="utf-8").splitlines()[1:]:
            host, *columns, metadata = line.split("\t")
            found[host] = (columns, sorted(metadata.split("|||")))
    return found


def test_nutch_reads_it_and_goes_on(nutch: tuple[str, Harness], tmp_path: Path) -> None:
    _, harness = nutch
    ours, theirs = tmp_path / "ours", tmp_path / "theirs"
    _minutch("updatehostdb", "-hostdb", ours, "-crawldb", CRAWLDB)
    _minutch("readhostdb", ours, tmp_path / "by-minutch")
    shutil.copytree(ours, theirs)
    properties = harness.properties(PROPERTIES)
    read, update = (commands()[name].nutch_class for name in ("readhostdb", "updatehostdb"))
    answers = harness.run(
        [
            ("tool", tmp_path / "log1", read, properties, ours, tmp_path / "by-nutch"),
            ("tool", tmp_path / "log2", update, properties, "-hostdb", theirs, "-crawldb", CRAWLDB),
            (
                "tool",
                tmp_path / "log3",
                update,
                properties,
                "-hostdb",
                tmp_path / "new",
                "-crawldb",
                CRAWLDB,
            ),
        ]
    )
    assert answers == ["exit 0"] * 3
    assert _lines(tmp_path / "by-nutch") == _lines(tmp_path / "by-minutch") != {}
    before, after, new = (dict(HostDb(path).items()) for path in (ours, theirs, tmp_path / "new"))
    assert list(after) == list(before) == list(new)
    for host, datum in before.items():
        for other in (after[host], new[host]):
            other.homepage_url = datum.homepage_url  # Nutch never stores one
            assert other.connection_failures in (
                datum.connection_failures,
                2 * datum.connection_failures,
            )
            other.connection_failures = datum.connection_failures  # it may add them up
            assert (host, other.to_bytes()) == (host, datum.to_bytes())
    _minutch("updatehostdb", "-hostdb", theirs, "-crawldb", CRAWLDB)
    assert dict(HostDb(theirs).items()) == before
