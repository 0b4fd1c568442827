"""bin/crawl killed and interrupted in the middle of a fetch: the next run finishes the round, and
nothing is lost.
"""

from __future__ import annotations

import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cycle.test_demo_crawl import END_STATES, Crawled
from tests.support.demo import definitions, write_seeds
from tests.support.golden import PROJECT
from tests.support.siteserver import SiteServer

pytestmark = pytest.mark.slow

LONG = 180.0
"""Seconds after which something must have gone wrong."""


class Gate:
    """Holds the first page of the second round (whichever it is) until it is opened."""

    def __init__(self) -> None:
        self.path = ""
        self.reached = threading.Event()
        self.opened = threading.Event()

    def __call__(self, path: str) -> None:
        if path not in ("/", "/robots.txt") and not self.reached.is_set():
            self.path = path
            self.reached.set()
            self.opened.wait(LONG)


@pytest.fixture
def server() -> Iterator[SiteServer]:
    with SiteServer() as running:
        yield running


def start(folder: Path, server: SiteServer, rounds: int = 3) -> subprocess.Popen[str]:
    """bin/crawl in a process of its own."""
    seeds = write_seeds(folder, server.site)
    words = [
        *definitions(),
        "-D",
        "fetcher.server.delay=0.0",
        str(seeds),
        str(folder / "crawl"),
        str(rounds),
    ]
    return subprocess.Popen(
        [sys.executable, "-m", "minutch", "crawl", *words],
        cwd=PROJECT,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def finish(process: subprocess.Popen[str]) -> tuple[int, str, str]:
    out, err = process.communicate(timeout=LONG)
    return process.returncode, out, err


def states(folder: Path, server: SiteServer) -> dict[str, str]:
    return {url: datum.status_name for url, datum in Crawled(folder, server, "").crawldb.items()}


def test_killed(tmp_path: Path, server: SiteServer) -> None:
    server.before = gate = Gate()
    process = start(tmp_path, server)
    assert gate.reached.wait(LONG)
    process.send_signal(signal.SIGKILL)
    assert finish(process)[0] == -signal.SIGKILL
    gate.opened.set()
    fetched_before = {path for _, path in server.requests}
    del server.requests[:]

    code, out, err = finish(start(tmp_path, server, 2))
    assert code == 0, err
    assert "goes on with segment" in out
    assert states(tmp_path, server) == END_STATES
    again = [
        path for _, path in server.requests if path in fetched_before and path != "/robots.txt"
    ]
    assert set(again) <= {
        gate.path,
        "/",
    }  # at most what was in flight: this, and the other host's first page
    assert len(Crawled(tmp_path, server, "").segments) == 3


def test_interrupted(tmp_path: Path, server: SiteServer) -> None:
    server.before = gate = Gate()
    process = start(tmp_path, server)
    assert gate.reached.wait(LONG)
    process.send_signal(signal.SIGINT)
    assert process.stderr is not None
    assert any("interrupted: finishing what is in flight" in line for line in process.stderr)
    gate.opened.set()
    code, _, _ = finish(process)
    assert code == 130
    first, second = Crawled(tmp_path, server, "").segments
    assert first.is_complete
    assert not second.has("crawl_fetch")

    code, out, err = finish(start(tmp_path, server, 4))
    assert code == 0, err
    left = "fetch, parse, updatedb, invertlinks, dedup"
    assert f"goes on with segment {second.name}: {left}" in " ".join(out.split())
    assert states(tmp_path, server) == {**END_STATES, "one/books/tides-2.html": "db_fetched"}
