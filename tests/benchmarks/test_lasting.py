"""The benchmark of a crawl that lasts: its web, its ideal, its audit, and a short run."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
from dataclasses import replace
from itertools import pairwise
from math import inf, log2, nan
from pathlib import Path
from statistics import fmean

import numpy as np
import pytest

from minutch.clock import SystemClock
from tests.benchmarks.broad.requestlog import LEFT, REQUEST, Requests
from tests.benchmarks.lasting.__main__ import LONG, SHORT, measure, reached
from tests.benchmarks.lasting.audit import Compared, compare, too_often
from tests.benchmarks.lasting.clock import MachineClock
from tests.benchmarks.lasting.disturbances import ENDING, JUMP, JUMPS, planned
from tests.benchmarks.lasting.figures import (
    SEGMENTS_BY_LOG,
    Run,
    Tenth,
    fresh_share,
    tables,
    verdicts,
)
from tests.benchmarks.lasting.history import (
    BOTH,
    DATE,
    DEAD,
    GONE,
    MISSING,
    MOVED,
    NOT_MODIFIED,
    NOTHING,
    OK,
    PRESENT,
    History,
    Host,
    LifePlan,
    Page,
)
from tests.benchmarks.lasting.ideal import Schedule, answered, counted, freshness, ideal
from tests.benchmarks.lasting.server import ChangingAnswers
from tests.support.docpages import text

PLAN = LifePlan(60, 900, 1.0, skew=0.35, median=30.0, span=3600.0, shortest=60.0, later=10)


@pytest.fixture(scope="module")
def history() -> History:
    return History(PLAN)


def small(pages: int = 2, **changes: object) -> History:
    """One host, whose pages do nothing until a test says so."""
    plan = LifePlan(1, pages, 1.0, skew=0.0, robots=False, median=0.0)
    made = History(replace(plan, **changes))  # type: ignore[arg-type]
    made.hosts[0] = Host(0.0, (inf, inf))
    made.lives[1:] = [Page(0.0, [], BOTH) for _ in range(pages)]
    return made


def log(*rows: tuple[float, int, int]) -> Requests:
    """Requests to one host: begin in seconds, page, status."""
    found = [(int(at * 1e6), int(at * 1e6), 0, page, status, 0) for at, page, status in rows]
    return np.array(found, REQUEST)


# -- the web ---------------------------------------------------------------------------------------


@pytest.mark.smoke
def test_a_plan_makes_the_same_history_each_time_and_another_seed_another_one(
    history: History,
) -> None:
    again, other = History(PLAN), History(replace(PLAN, seed=2))
    assert again.lives == history.lives != other.lives
    assert again.hosts == history.hosts != other.hosts


def test_all_that_can_happen_does(history: History) -> None:
    pages = [page for page in history.lives if page is not None]
    share = {
        "later": fmean(page.born > 0 for page in pages),
        "gone": fmean(page.gone[1] == inf > page.gone[0] for page in pages),
        "back": fmean(page.gone[1] < inf for page in pages),
        "moved": fmean(page.moved < inf for page in pages),
    }
    assert all(0.01 < value < 0.4 for value in share.values()), share
    assert 0.6 < fmean(page.is_plain for page in pages) < 0.9
    assert 0.4 < fmean(bool(page.changes) for page in pages) < 0.8
    assert any(host.dead[1] == inf > host.dead[0] for host in history.hosts)
    assert any(host.dead[1] < inf for host in history.hosts)
    assert all(host.born > 0 for host in history.hosts[-PLAN.later :])


def test_every_page_can_be_found_by_links_of_hosts_that_do_not_die(history: History) -> None:
    end = PLAN.span
    known = {(host, 0) for host in range(PLAN.hosts - PLAN.later)}
    for host in range(PLAN.hosts):
        if history.hosts[host].dead[0] == inf:
            known |= set(history.links(host, 0, end))
    for host in range(PLAN.hosts):
        assert (host, 0) in known
        if history.hosts[host].dead[0] == inf:
            for number in range(int(history.sizes[host])):
                assert (host, number) in known or not history.life(
                    int(history.first[host]) + 1 + number
                ).linked


def test_a_hub_changes_when_it_has_a_new_link(history: History) -> None:
    for host in range(PLAN.hosts):
        hub = history.life(int(history.first[host]) + 1)
        times = np.linspace(hub.born + 1, PLAN.span, 30).tolist()
        for before, after in pairwise(times):
            if history.links(host, 0, before) != history.links(host, 0, after):
                assert hub.version(before) < hub.version(after)


def test_a_page_moves_to_one_that_is_born_then_and_that_nobody_links(history: History) -> None:
    moved = [slot for slot, page in enumerate(history.lives) if page and page.moved < inf]
    for slot in moved:
        target = history.life(slot + 1)
        assert target.born == history.life(slot).moved and not target.linked
    assert len(moved) > 10


def test_the_status_of_a_page_at_each_time() -> None:
    made = small()
    made.lives[2] = Page(10.0, [20.0, 30.0], BOTH, (40.0, 50.0), GONE, 60.0)
    times = (5.0, 15.0, 20.0, 35.0, 45.0, 55.0, 65.0)
    assert [made.status(2, time) for time in times] == [MISSING, OK, OK, OK, GONE, OK, MOVED]
    assert [made.life(2).version(time) for time in times[:4]] == [0, 0, 1, 2]
    assert made.was(2, (OK,), 12.0, 39.0) and not made.was(2, (OK,), 12.0, 55.0)
    assert made.was(2, (GONE,), 41.0, 49.0) and made.was(2, (OK, GONE, MOVED), 12.0, 99.0)
    made.hosts[0].dead = (14.0, 16.0)
    assert made.status(2, 15.0) == DEAD and not made.was(2, (OK,), 12.0, 39.0)


# -- what it answers -------------------------------------------------------------------------------


def head(answer: bytes) -> bytes:
    return answer.partition(b"\r\n\r\n")[0]


def field(answer: bytes, name: bytes) -> bytes:
    return head(answer).partition(name + b": ")[2].partition(b"\r\n")[0]


def answers(monkeypatch: pytest.MonkeyPatch, made: History) -> ChangingAnswers:
    server = ChangingAnswers(made, 80)
    monkeypatch.setattr(server, "_time", lambda: made.clock)  # type: ignore[attr-defined]
    made.clock = 0.0  # type: ignore[attr-defined]
    return server


def test_a_validator_holds_until_the_page_changes(monkeypatch: pytest.MonkeyPatch) -> None:
    made = small()
    made.life(1).changes[:] = [10.0]
    server = answers(monkeypatch, made)
    first = server.page(0, 0).data
    tag, date = field(first, b"ETag"), field(first, b"Last-Modified")
    for validator in (b"\r\nif-none-match: " + tag, b"\r\nIf-Modified-Since: " + date):
        made.clock = 9.0  # type: ignore[attr-defined]
        assert server.page(0, 0, validator).status == NOT_MODIFIED
        made.clock = 10.0  # type: ignore[attr-defined]
        again = server.page(0, 0, validator)
        assert again.status == OK and again.data != first
        assert b"version 1</title>" in again.data
    both = b"\r\nIf-None-Match: " + tag + b"\r\nIf-Modified-Since: Fri, 01 Jan 2100 00:00:00 GMT"
    assert server.page(0, 0, both).status == OK  # RFC 9110, 13.1.3: the date is not looked at
    made.life(1).validator = NOTHING
    assert b"ETag" not in server.page(0, 0).data and b"Last-Modified" not in server.page(0, 0).data
    made.life(1).validator = DATE
    assert server.page(0, 0, b"\r\nIf-None-Match: " + tag).status == OK
    assert server.page(0, 0, b"\r\nIf-Modified-Since: yesterday").status == OK


def test_a_page_that_claims_to_have_changed_just_now(monkeypatch: pytest.MonkeyPatch) -> None:
    made = small()
    made.life(1).validator = PRESENT
    server = answers(monkeypatch, made)
    first = field(server.page(0, 0).data, b"Last-Modified")
    made.clock = 60.0  # type: ignore[attr-defined]
    asked = b"\r\nIf-Modified-Since: " + first
    again = server.page(0, 0, asked)
    assert again.status == OK and field(again.data, b"Last-Modified") > first
    assert b"ETag" not in again.data and b"version 0</title>" in again.data


@pytest.mark.parametrize("set_too", [True, False])
def test_a_web_whose_time_goes_with_the_clock(
    monkeypatch: pytest.MonkeyPatch, set_too: bool
) -> None:
    server = ChangingAnswers(small(set_too=set_too), 80)
    before, real = server._time(), time.time
    monkeypatch.setattr(time, "time", lambda: real() + 86_400)
    assert server._time() - before == pytest.approx(86_400 * set_too, abs=60)


def test_what_is_answered_for_pages_that_are_not_there(monkeypatch: pytest.MonkeyPatch) -> None:
    made = small()
    made.lives[2] = Page(0.0, [], BOTH, (10.0, 20.0), GONE, 30.0)
    server = answers(monkeypatch, made)
    assert [server.page(0, 1).status, server.robots(0).status] == [OK, MISSING]
    made.clock = 10.0  # type: ignore[attr-defined]
    assert server.page(0, 1).status == GONE
    made.clock = 30.0  # type: ignore[attr-defined]
    assert field(server.page(0, 1).data, b"Location") == b"/p/2"
    made.hosts[0].dead = (30.0, 31.0)
    assert [server.page(0, 1).status, server.robots(0).status] == [503, 503]


# -- the ideal -------------------------------------------------------------------------------------


def test_an_ideal_crawler_asks_when_a_page_is_due_and_learns() -> None:
    made = small(1)
    made.life(1).changes[:] = [30.0, 45.0]
    schedule = Schedule(10.0, 20.0, 40.0)
    times = ideal(made, {1: 5.0}, schedule, 150.0)[1]
    # unchanged: 20 × 1.4; changed: × 0.8; unchanged: × 1.4, and at most 40
    assert times == pytest.approx([5, 25, 53, 75.4, 106.76, 146.76])
    at = [4.0, 26.0, 31.0, 52.0, 54.0]
    assert freshness({1: times}, {1: 5.0}, made, at) == pytest.approx(
        [nan, 1, 0, 0, 1], nan_ok=True
    )


def test_an_ideal_crawler_waits_for_its_host_and_for_nothing_else() -> None:
    made = small(3)
    made.latencies[1:] = [500, 100, 100]
    times = ideal(made, {1: 0.0, 2: 0.0, 3: 9.0}, Schedule(10.0, 10.0, 10.0), 12.0)
    assert times == {1: [0.0, 10.1], 2: [1.5], 3: [9.0]} or times == {
        1: [0.0, pytest.approx(10.1)],
        2: [1.5, pytest.approx(11.6)],
        3: [9.0],
    }


def test_pages_count_that_are_there_all_the_time(history: History) -> None:
    slots = counted(history)
    assert 0.5 * history.pages < len(slots) < 0.9 * history.pages
    assert all(history.was(slot, (OK,), history.life(slot).born, PLAN.span) for slot in slots)
    requests = log((1.0, 0, OK), (3.0, 0, NOT_MODIFIED), (2.0, 0, 503), (4.0, 1, LEFT))
    assert answered(requests, small(), [1, 2]) == {1: [1.0, 3.0]}


# -- the audit -------------------------------------------------------------------------------------


def test_pages_that_are_asked_for_too_often() -> None:
    made = small()
    rows = ((0.0, 0, OK), (61.0, 0, NOT_MODIFIED), (100.0, 0, OK), (101.0, 1, 503), (102.0, 1, OK))
    (found,) = too_often(log(*rows), made, 60.0, [], [])
    assert (found.slot, found.times, found.statuses) == (1, (61.0, 100.0), (NOT_MODIFIED, OK))
    assert not too_often(log(*rows), made, 60.0, [(80.0, 85.0)], [])
    assert not too_often(log(*rows), made, 60.0, [(50.0, 70.0)], [])
    assert not too_often(log(*rows), made, 60.0, [], [61.5])
    assert too_often(log(*rows), made, 60.0, [(50.0, 60.0)], [80.0])
    made.life(1).linked = False  # a redirect leads to it
    assert not too_often(log(*rows), made, 60.0, [], [])


def test_an_index_is_compared_with_what_has_lasted() -> None:
    made = small(5)
    made.lives[1:] = [
        Page(0.0, [], BOTH),
        Page(0.0, [50.0], BOTH),
        Page(0.0, [], BOTH, (50.0, inf)),
        Page(150.0, [], BOTH),
        Page(0.0, [], BOTH, (150.0, inf)),
    ]
    nothing = compare({}, made, 200.0, 100.0)
    assert (nothing.lacking, nothing.ghosts, nothing.live) == ([1, 2], [], 2)
    found = compare({1: 0, 2: 0, 3: 0, 4: 0, 5: 0}, made, 200.0, 100.0)
    assert (found.lacking, found.ghosts, found.older) == ([], [3], [2])
    assert compare({}, made, 90.0, 100.0) == Compared([], [], [], 0)


# -- disturbances ----------------------------------------------------------------------------------


def test_the_second_and_the_last_tenth_are_left_alone() -> None:
    found = planned(1000.0, 1, 15, JUMPS)
    tenths = {int(one.time // 100) for one in found}
    assert not tenths & {1, 9} and found == planned(1000.0, 1, 15, JUMPS)
    ends = [one for one in found if one.kind != JUMP]
    assert len(ends) == 15 and {one.kind for one in ends} == set(ENDING)
    assert max(one.time for one in ends) < 600
    assert sorted(one.seconds for one in found if one.kind == JUMP) == sorted(JUMPS)


def test_a_clock_that_can_be_set(tmp_path: Path) -> None:
    """All processes of a program see it, as soon as it is set."""
    clock = MachineClock(tmp_path / "clock")
    clock.ahead += 3600
    code = "import time; from minutch.clock import SystemClock as C; print(time.time(), C().now())"
    environment = {**os.environ, **clock.environment}
    said = subprocess.run(
        [sys.executable, "-c", code], env=environment, stdout=subprocess.PIPE, text=True, check=True
    ).stdout.split()
    now = SystemClock().now() / 1000
    assert float(said[0]) == pytest.approx(now + 3600, abs=60)
    assert int(said[1]) / 1000 == pytest.approx(now + 3600, abs=60)


# -- figures ---------------------------------------------------------------------------------------


def tenth(**other: object) -> Tenth:
    values: dict[str, object] = {
        "rounds": 50,
        "pages": 9000,
        "cpu": 4.0,
        "steps": {"generate": 0.5, "updatedb": 0.75},
        "megabytes": 300.0,
        "peak": 350.0,
        "files": 120,
        "segments": 12,
        "bytes_a_page": 5000.0,
        "fresh": 0.88,
        "permitted": 0.89,
        "compared": Compared([], [], [], 900),
    }
    return Tenth(**{**values, **other})  # type: ignore[arg-type]


def run(*tenths: Tenth, **other: object) -> Run:
    values: dict[str, object] = {
        "rounds": 512,
        "too_soon": 0,
        "early": 0,
        "requests": 90_000,
        "bytes_by_newest": 1.8,
        "died": 0,
        "deaf": 0,
        "left": 0,
    }
    return Run(tenths or [tenth()] * 10, **{**values, **other})  # type: ignore[arg-type]


def test_goals() -> None:
    assert all(one.reached for one in verdicts(run(), 500))
    worse = tenth(cpu=4.5, segments=28, compared=Compared([7], [], [], 900), fresh=0.5)
    bad = run(*[tenth()] * 9, worse, too_soon=1, bytes_by_newest=nan, rounds=499, left=2)
    missed = {one.figure for one in verdicts(bad, 500) if not one.reached}
    assert missed == {
        "CPU a page, last tenth by second",
        "segments",
        "bytes of segments by those of the newest copies",
        "requests too soon",
        "pages that the index lacks",
        "processes that outlived their crawl",
        "rounds",
        "freshness by the permitted",
    }
    assert fresh_share(run(tenth(fresh=0.1), *[tenth()] * 9)) == pytest.approx(0.88 / 0.89)


def test_the_goals_are_those_of_the_docs() -> None:
    goals = [(one.figure, one.goal) for one in verdicts(run(), LONG.least_rounds)]
    by_log = f"≤ {SEGMENTS_BY_LOG * log2(run().rounds):.4g}", f"≤ {SEGMENTS_BY_LOG} × log2(rounds)"
    stated = re.findall(r"^\| ([^|]+) \| ([≤≥] [^|]+) \|", text("lasting"), re.MULTILINE)
    assert stated == [(figure, goal.replace(*by_log)) for figure, goal in goals]


def test_the_table_has_a_column_for_each_tenth() -> None:
    made = tables(run())
    assert "| s of all steps of a round but fetch |" + " 1.25 |" * 10 in made
    assert "| CPU ms a page |" + " 4.00 |" * 10 in made


# -- a run -----------------------------------------------------------------------------------------


RIGHT = {
    "requests too soon",
    "requests for a page before its interval was over",
    "crawls that ended by themselves",
    "crawls that did not end when told to",
    "processes that outlived their crawl",
    "segments",
    "rounds",
}
"""The goals that have to be reached whatever else the machine is doing."""


@pytest.mark.slow
def test_a_short_run_loses_nothing_and_stays_polite(tmp_path: Path) -> None:
    """Kills, stops, signals, and jumps of the clock, in less than a minute."""
    result = measure(SHORT, tmp_path, {})
    missed = [
        one
        for one in verdicts(result.run, SHORT.least_rounds)
        if one.figure in RIGHT and not one.reached
    ]
    assert not missed, f"{reached(missed)}\n\n{result.text}"
    at_the_end = result.run.tenths[-1].compared
    assert at_the_end.live > 30 and not at_the_end.lacking, result.text
