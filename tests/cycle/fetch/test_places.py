"""How many requests are in flight where nobody says: what memory and open files allow."""

from __future__ import annotations

import os
import resource
import subprocess
import sys
from pathlib import Path

import pytest

from minutch.cycle.fetch import settings
from tests.support.golden import PROJECT
from tests.support.segments import LOOPBACK, fetched, make_segment
from tests.support.timedserver import NOT_FOUND, TimedServer, page

LIMITED = (
    "import resource, runpy, sys; resource.setrlimit(resource.RLIMIT_NOFILE, (300, 300));"
    "sys.argv[0] = 'minutch'; runpy.run_module('minutch', run_name='__main__')"
)


def test_places_by_memory() -> None:
    assert settings.places_in(1 << 30) == 8192
    assert settings.places_in(0) == 16


@pytest.mark.parametrize(
    ("soft", "hard", "expected"),
    [(1024, 4096, 3840), (1024, 1024, 768), (100, 100, 16), (64, resource.RLIM_INFINITY, 16)],
)
def test_places_by_open_files(
    monkeypatch: pytest.MonkeyPatch, soft: int, hard: int, expected: int
) -> None:
    """The limit is lifted first, where the system says how far."""
    lifted: list[tuple[int, int]] = []
    monkeypatch.setattr(settings.resource, "getrlimit", lambda _: (soft, hard))
    monkeypatch.setattr(settings.resource, "setrlimit", lambda _, limits: lifted.append(limits))
    assert settings.places_here(100_000) == expected
    assert settings.places_here(7) == 7
    assert lifted == ([(hard, hard)] * 2 if soft < hard != resource.RLIM_INFINITY else [])


@pytest.mark.slow  # a process with 900 hosts
def test_few_open_files_fail_no_page(tmp_path: Path) -> None:
    """Many more hosts than connections may be open, idle ones included."""
    with TimedServer(
        lambda host, path: NOT_FOUND if path == "/robots.txt" else page(), slow=0.05
    ) as server:
        hosts = [f"127.0.{group}.{number}" for group in range(1, 4) for number in range(2, 150)]
        segment = make_segment(
            tmp_path, [server.url(host, f"/{n}") for host in hosts for n in "ab"]
        )
        options = [f"-D{name}={value}" for name, value in LOOPBACK.items()]
        found = subprocess.run(
            [sys.executable, "-c", LIMITED, "fetch", *options, str(segment.path)],
            check=False, cwd=PROJECT, env={**os.environ, "NUTCH_LOG_DIR": ""},
            capture_output=True, text=True,
        )  # fmt: skip
    assert found.returncode == 0, found.stderr
    statuses = {datum.status_name for data in fetched(segment).values() for datum in data}
    assert statuses == {"fetch_success"}
