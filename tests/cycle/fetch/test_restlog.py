"""What rests is remembered from fetch to fetch: in the file, and as a server sees it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import pairwise
from pathlib import Path

import pytest

from minutch.clock import FakeClock
from minutch.cycle.fetch.frontier import hostmemory
from minutch.cycle.fetch.frontier.hostmemory import RestLog, read_rests
from minutch.records.crawldatum import STATUS_LINKED
from tests.support.examples import few
from tests.support.segments import LOOPBACK, conf_for, fetch_segment, fetched, make_segment

DELAY = 1.0
"""Seconds between two requests."""


def test_the_last_time_of_a_queue_counts(tmp_path: Path) -> None:
    log = RestLog(tmp_path, "0", FakeClock(1000).now)
    log.add([("a", 5000), ("b", 2000)])
    log.add([("a", 6000), ("bücher.example", 7000)])
    log.close()
    assert read_rests(tmp_path, 1000) == {"a": 6000, "b": 2000, "bücher.example": 7000}
    assert read_rests(tmp_path, 6000) == {"bücher.example": 7000}


def test_files_of_several_processes_are_read(tmp_path: Path) -> None:
    for index in range(3):
        log = RestLog(tmp_path, str(index), FakeClock(0).now)
        log.add([("same", 1000 * (index + 1)), (f"h{index}", 500)])
        log.close()
    assert read_rests(tmp_path, 0) == {"same": 3000, "h0": 500, "h1": 500, "h2": 500}


def test_a_file_goes_on_and_drops_what_is_over(tmp_path: Path) -> None:
    clock = FakeClock(0)
    log = RestLog(tmp_path, "0", clock.now)
    log.add([("a", 1000), ("b", 9000)])
    log.close()
    clock.advance(5)
    RestLog(tmp_path, "0", clock.now).close()
    assert (tmp_path / "rests-0").read_bytes() == b"2328 b\n"


def test_a_file_that_grows_is_written_anew(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hostmemory, "GROWN", 1000)
    clock = FakeClock(0)
    log = RestLog(tmp_path, "0", clock.now)
    for number in range(1000):
        log.add([(f"h{number}", number + 3)])
        clock.advance(0.001)
    log.close()
    assert (tmp_path / "rests-0").stat().st_size < 1100
    assert read_rests(tmp_path, 999) == {"h997": 1000, "h998": 1001, "h999": 1002}


@pytest.mark.parametrize(
    "lines", [b"", b"torn", b"3e8 a\n7d0 b", b"x a\n3e8 a\n", b"3e8 a\n\n \n\xff\xfe\n"]
)
def test_damage_costs_its_line_only(tmp_path: Path, lines: bytes) -> None:
    (tmp_path / "rests-0").write_bytes(lines)
    assert read_rests(tmp_path, 0) == ({"a": 1000} if b"3e8 a\n" in lines else {})


def test_a_clock_that_was_wrong_stops_nobody(tmp_path: Path) -> None:
    log = RestLog(tmp_path, "0", FakeClock(10**12).now)
    log.add([("a", 10**12 + 5000)])
    log.close()
    assert read_rests(tmp_path, 10**11) == {}


def test_where_nothing_can_be_written_nothing_is_remembered(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "file").write_bytes(b"")
    log = RestLog(tmp_path / "file", "0", FakeClock(0).now)
    log.add([("a", 1000)])
    log.close()
    assert "rests are forgotten" in caplog.text


# -- the server's side -----------------------------------------------------------------------------


class Timed(ThreadingHTTPServer):
    """Notes when each page is asked for."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.times: list[float] = []
        self.robots = 0
        """Requests for robots.txt."""
        self.robots_code = 404
        self.retry_after: str | None = None
        threading.Thread(target=self.serve_forever, daemon=True).start()

    def urls(self, *names: str) -> list[str]:
        return [f"http://127.0.0.1:{self.server_port}/{name}" for name in names]

    def smallest_gap(self) -> float:
        """Seconds."""
        return min(later - sooner for sooner, later in pairwise(self.times))


class _Handler(BaseHTTPRequestHandler):
    server: Timed

    def do_GET(self) -> None:
        if self.path == "/robots.txt":
            self.server.robots += 1
            self.send_response(self.server.robots_code)
            if self.server.retry_after is not None:
                self.send_header("Retry-After", self.server.retry_after)
            self.send_header("Content-Length", "0")
            self.end_headers()
            return
        self.server.times.append(time.monotonic())
        self.send_response(200)
        self.send_header("Content-Length", "2")
        self.end_headers()
        self.wfile.write(b"ok")

    def log_message(self, format: str, *args: object) -> None:
        """Says nothing."""


@pytest.fixture
def server() -> Iterator[Timed]:
    with Timed() as running:
        yield running
        running.shutdown()


def test_the_next_fetch_keeps_the_delay(server: Timed, tmp_path: Path) -> None:
    conf = conf_for(fetcher__server__delay=str(DELAY))
    for number in range(3):
        segment = make_segment(tmp_path, server.urls(f"{number}"))
        fetch_segment(segment, conf)
        segment.path.rename(segment.path.with_name(f"2026010200000{number}"))
    assert len(server.times) == 3
    assert server.smallest_gap() >= DELAY * 0.98


@pytest.mark.slow  # processes
@pytest.mark.parametrize("end", few([signal.SIGKILL, signal.SIGTERM]))
@pytest.mark.parametrize("processes", few([2, 1]))
def test_a_fetch_that_was_ended_goes_on_as_politely(
    server: Timed, tmp_path: Path, end: signal.Signals, processes: int
) -> None:
    segment = make_segment(tmp_path, server.urls("1", "2", "3"))
    properties = {
        **LOOPBACK,
        "fetcher.server.delay": str(DELAY),
        "minutch.fetch.processes": str(processes),
    }
    command = [sys.executable, "-m", "minutch", "fetch", str(segment.path)]
    command[4:4] = [f"-D{name}={value}" for name, value in properties.items()]
    with subprocess.Popen(command, stderr=subprocess.DEVNULL, start_new_session=True) as first:
        while not server.times:
            time.sleep(0.01)
        if end is signal.SIGKILL:
            os.killpg(first.pid, end)
        else:
            first.send_signal(end)
        first.wait(20)
    subprocess.run(command, stderr=subprocess.DEVNULL, check=True)
    assert len(server.times) == 3 or (end is signal.SIGKILL and len(server.times) == 4)
    assert len(fetched(segment)) == 3
    assert server.smallest_gap() >= DELAY * 0.98


@pytest.mark.parametrize(("code", "retry_after"), [(429, None), (503, "4")])
def test_robots_txt_that_fails_rests_its_host_beyond_the_fetch(
    server: Timed, tmp_path: Path, code: int, retry_after: str | None
) -> None:
    server.robots_code, server.retry_after = code, retry_after
    began = time.monotonic()
    conf = conf_for(
        http__robots__503__defer__visits__wait="0",
        http__robots__503__defer__visits__delay=("600000" if retry_after else "4000"),
        http__retry__after__max__seconds="60",
    )
    for number in range(2):
        segment = make_segment(tmp_path, server.urls("1", "2"))
        fetch_segment(segment, conf)
        assert {datum.status for (datum,) in fetched(segment).values()} == {STATUS_LINKED}
        segment.path.rename(segment.path.with_name(f"2026010200000{number}"))
    assert server.robots == 1
    time.sleep(max(0, began + 4.1 - time.monotonic()))
    server.robots_code = 404
    segment = make_segment(tmp_path, server.urls("1", "2"))
    fetch_segment(segment, conf)
    assert (server.robots, len(server.times)) == (2, 2)
