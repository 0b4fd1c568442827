"""What a fetch shows: live line, status lines, tables; and what it remembers from round to
round.
"""

from __future__ import annotations

import io
import logging
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest

from minutch.clock import SteadyClock
from minutch.cycle.fetch import stats as snapshot_module
from minutch.cycle.fetch.frontier import hostmemory as state_module
from minutch.cycle.fetch.frontier.hostmemory import BusyHosts, HostMemory, read_rests, state_folder
from minutch.cycle.fetch.frontier.queueitems import RESTS, FetchItem
from minutch.cycle.fetch.frontier.queues import FetchQueues
from minutch.cycle.fetch.ledger import Ledger, Outcome
from minutch.cycle.fetch.settings import QueueSettings
from minutch.cycle.fetch.stats import MAX_HOSTS, FetchStats, LongestWaits, Snapshot
from minutch.cycle.fetch.watch import (
    Display,
    host_table,
    live_line,
    result_table,
    status_lines,
    time_left,
)
from minutch.records.crawldatum import CrawlDatum
from tests.test_clock import Jumping

NOW = Snapshot(
    active=7,
    threads=50,
    waiting=1234,
    queues=87,
    blocked=2,
    pages=12_345,
    errors=12,
    bytes=300 << 20,
    pages_last_second=140,
    bytes_last_second=3 << 20,
    seconds=83.4,
    longest_rest=4.8,
    done=12_500,
    total=25_000,
    events=Counter(robots_denied_total=3, success=12_345),
    oldest_wait=7.2,
)


def test_live_line() -> None:
    line = live_line(NOW, "round 12 of 20, fetch")
    assert (
        line
        == "round 12 of 20, fetch: 12,500 of 25,000 pages, 1:23 left, 150/s, 3,683 KB/s, 87 hosts,"
        " 12 errors"
    )
    assert live_line(replace(NOW, paused=True)).startswith("fetch: 12,500 of 25,000 pages, paused")
    small = replace(
        NOW, done=37, total=50, seconds=12, bytes=9000, queues=1, errors=1, longest_queue=40.0
    )
    assert live_line(small) == "fetch: 37 of 50 pages, 0:40 left, 3.1/s, 1 KB/s, 1 host, 1 error"
    assert len(live_line(small, "round 1 of 3, fetch")) < 80


def test_rates_are_those_of_the_last_seconds() -> None:
    """A fetch that was fast and waits for its last host."""
    terminal, state = Terminal(), replace(NOW, total=None, done=6000, bytes=60 << 20, seconds=60)
    display = Display(terminal)
    for second in range(40):
        display.tick(replace(state, seconds=60 + second, done=6000 + second))
    assert "pages, 1.0/s, 0 KB/s" in terminal.getvalue().rpartition("fetch:")[2]


def test_nutchs_status_lines() -> None:
    assert status_lines(NOW) == (
        (
            "-activeThreads=50, spinWaiting=43, fetchQueues.totalSize=1234,"
            " fetchQueues.getQueueCount=87"
        ),
        (
            "50 threads (43 waiting), 87 queues, 2 queues.max.except., 1234 URLs queued, 12345"
            " pages, 12 errors, 148.02 pages/s (140 last sec), 29467 kbits/s (24576 last sec)"
        ),
    )
    assert "max.except" not in status_lines(replace(NOW, blocked=0))[1]


def test_time_left_is_honest() -> None:
    assert time_left(replace(NOW, done=4)) == time_left(replace(NOW, total=None)) == ""
    assert time_left(replace(NOW, done=30_000)) == "0:00 left"
    assert time_left(replace(NOW, longest_queue=7200.0)) == "2:00:00 left"


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_a_terminal_has_one_line_that_is_written_over(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    terminal = Terminal()
    display = Display(terminal)
    display.tick(NOW)
    display.tick(NOW)
    display.clear()
    display.clear()
    assert terminal.getvalue().count("\r\x1b[2K") == 4
    assert terminal.getvalue().endswith("\x1b[2K") and "\n" not in terminal.getvalue()
    assert caplog.text == ""


def test_a_pipe_has_nutchs_lines_once_a_minute(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    pipe = io.StringIO()
    display = Display(pipe)
    display.tick(replace(NOW, seconds=59.0))
    assert caplog.text == ""
    display.tick(replace(NOW, seconds=60.0))
    display.tick(replace(NOW, seconds=61.0))
    assert pipe.getvalue() == ""
    assert caplog.text.count("-activeThreads=50, spinWaiting=43") == 1


def test_tables() -> None:
    ledger, stats = Ledger(), FetchStats()
    ledger.generated = 3
    ledger.settle(Outcome.FETCHED, 2)
    ledger.settle(Outcome.SKIPPED_TIMELIMIT)
    assert host_table(stats) == []
    stats.request("slow.example", 900, 10, success=True, failed=False)
    stats.request("slow.example", 100, 10, success=False, failed=True)
    stats.request("quick.example", 5, 10, success=True, failed=False)
    assert "skipped (time limit)          1" in result_table(ledger)
    table = host_table(stats)
    assert table[0].split() == ["slowest", "hosts", "requests", "mean", "ms", "max", "ms", "errors"]
    assert [line.split() for line in table[1:]] == [
        ["slow.example", "2", "500", "900", "1"],
        ["quick.example", "1", "5", "5", "0"],
    ]


def test_times_of_very_many_hosts_stay_bounded() -> None:
    stats = FetchStats()
    for number in range(MAX_HOSTS + 100):
        stats.request(f"h{number}", number, 0, success=True, failed=False)
    assert len(stats.hosts) <= MAX_HOSTS
    assert stats.slowest(1)[0][0] == f"h{MAX_HOSTS + 99}"


def test_stats_of_processes_add_up() -> None:
    first, second = FetchStats(), FetchStats()
    first.request("a", 5, 10, success=True, failed=False)
    second.request("b", 7, 20, success=False, failed=True)
    second.events["x"] += 2
    first.merge(second)
    assert (first.pages, first.bytes, first.errors, first.requests, first.request_ms) == (
        1,
        30,
        1,
        2,
        12,
    )
    assert set(first.hosts) == {"a", "b"} and first.events["x"] == 2


# -- state -----------------------------------------------------------------------------------------


def test_state_is_kept_beside_the_segments(tmp_path: Path) -> None:
    assert state_folder(tmp_path / "crawl/segments/2026") == tmp_path / "crawl/.fetchstate"
    assert state_folder(tmp_path / "crawl/elsewhere/2026") == tmp_path / "crawl/.fetchstate"


def test_state_outlives_its_process(tmp_path: Path) -> None:
    with BusyHosts(tmp_path) as state:
        state.remember_busy("a", 1000)
        state.remember_busy("b", 2000)
    with BusyHosts(tmp_path) as state:
        assert state.busy_hosts(1000) == {"b": 2000}


def test_state_does_not_grow_for_ever(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(state_module, "MOST_HOSTS", 2)
    with BusyHosts(tmp_path) as state:
        for number in range(5):
            state.remember_busy(f"h{number}", 1000 + number)
        state.forget_old(1000)
        assert set(state.busy_hosts(0)) == {"h3", "h4"}
        state.forget_old(2000)
        assert state.busy_hosts(0) == {}


def test_state_is_pruned_and_dated_while_a_fetch_lasts(tmp_path: Path) -> None:
    """Dates are those of the list: whoever reads them later goes by the clock as it was set."""
    machine = Jumping(1_000_000)
    clock = SteadyClock(machine)
    memory = HostMemory(tmp_path, 0, clock)
    memory.busy_until("a", 1_001_000)
    for _ in range(2):
        machine.advance(3000)
        memory.busy_until("b", clock.now() + 5000)
    with BusyHosts(tmp_path, read_only=True) as state:
        assert state.busy_hosts(0) == {"b": 7_005_000}
    machine.set(500_000_000)
    clock.anchor()
    memory.busy_until("c", clock.now() + 7000)
    memory.rested([("c", clock.now() + 3000)])
    memory.close()
    with BusyHosts(tmp_path, read_only=True) as state:
        assert state.busy_hosts(10_000_000) == {"c": 500_007_000}
    assert read_rests(tmp_path, machine.now()) == {"c": 500_003_000}


def test_many_queues_are_looked_through_seldom(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(snapshot_module, "QUEUES_A_SECOND", 2)
    queues, longest = FetchQueues(QueueSettings(crawl_delay=1000)), LongestWaits()
    stats = FetchStats()
    queues.add(FetchItem("http://a/", CrawlDatum(), "a"), 0)
    assert longest.of(queues, stats, 0) == (0, 1000, 0)
    for _ in range(4):
        queues.add(FetchItem("http://a/", CrawlDatum(), "a"), 0)
    assert longest.of(queues, stats, 0) == (0, 5000, 0)
    for host in "bcd":
        queues.add(FetchItem(f"http://{host}/", CrawlDatum(), host), 0)
    assert longest.of(queues, stats, 600) == (0, 5000, 0)
    for _ in range(4):
        queues.add(FetchItem("http://a/", CrawlDatum(), "a"), 600)
    assert longest.of(queues, stats, 2599) == (0, 5000, 0)
    assert longest.of(queues, stats, 2600) == (0, 9000, 0)


def test_hosts_that_rest_for_long_or_fail_are_counted() -> None:
    """Twelve dead hosts held a list for 18 s, as one of them was always being asked again."""
    queues, stats = FetchQueues(QueueSettings(crawl_delay=1000)), FetchStats()
    for host in "abc":
        queues.add(FetchItem(f"http://{host}/", CrawlDatum(), host), 0)
    queues.queues["a"].next_fetch = 1000 + RESTS
    queues.queues["b"].next_fetch = 1000 + RESTS + 1
    assert LongestWaits().of(queues, stats, 0) == (6001, 1000, 1)
    queues.queues["c"].failures = 1
    assert LongestWaits().of(queues, stats, 0) == (6001, 1000, 2)
