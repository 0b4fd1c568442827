"""A fetch that is held asks for nothing, and goes on as if no time had passed."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from minutch.clock import FakeClock
from minutch.cycle.fetch.ledger import Outcome
from minutch.cycle.fetch.limits import Pause
from minutch.cycle.fetch.loop import FetchLoop
from minutch.cycle.fetch.settings import PressureSettings, QueueSettings, RedirectSettings
from minutch.cycle.fetch.stats import Details, Failure, HostTimes, QueueState, together
from minutch.plugin.points import ProtocolOutput
from minutch.records import protocol as codes
from minutch.records.protocol import ProtocolStatus
from tests.cycle.fetch.test_loop import QUICK, Bench, Listener, Rules, Web, urls
from tests.cycle.fetch.test_seen import NOW

HOUR = 3_600_000


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(tmp_path)


def tick(loop: FetchLoop) -> None:
    loop.tick(loop.reporter.snapshot())


async def turns(count: int = 50) -> None:
    """Let everything run that can."""
    for _ in range(count):
        await asyncio.sleep(0)


def holding(loop: FetchLoop) -> Callable[[], object]:
    """A page during whose request the fetch is held."""

    async def page() -> ProtocolOutput:
        loop.hold(True)
        return ProtocolOutput(None, ProtocolStatus(codes.GONE))

    return page


def test_a_pause_has_a_length() -> None:
    pause = Pause()
    assert not pause.is_on and pause.end(7) == 0
    pause.begin(1000)
    pause.begin(5000)
    assert pause.is_on and pause.lasting(4000) == 3000
    assert pause.end(9000) == 8000
    assert not pause.is_on and pause.lasting(10_000) == 0


async def test_nothing_is_asked_for_while_held_and_everything_after(bench: Bench) -> None:
    web = Web()
    wanted = [url for host in "abcdef" for url in urls(5, host)]
    loop = bench.loop(web, wanted)
    web.pages["http://a/0"] = holding(loop)  # type: ignore[assignment]
    task = asyncio.create_task(loop.run())
    await turns()
    asked = list(web.asked)
    assert "http://a/0" in asked and len(asked) < len(wanted)
    assert loop.reporter.snapshot().paused and not task.done()
    await turns()
    tick(loop)
    await turns()
    assert web.asked == asked
    loop.hold(False)
    await asyncio.wait_for(task, 20)
    found = bench.result(loop, web)
    found.ledger.check("test")
    assert sorted(web.asked) == sorted(wanted)
    assert found.outcomes == {Outcome.GONE: 1, Outcome.FETCHED: 29}


async def test_a_redirect_waits_before_its_target(bench: Bench) -> None:
    web = Web()
    loop = bench.loop(
        web, ["http://a/0"], replace(QUICK, redirects=RedirectSettings(max_redirects=3))
    )

    async def moved() -> ProtocolOutput:
        loop.hold(True)
        return ProtocolOutput(None, ProtocolStatus(codes.MOVED, ["http://b/target"]))

    web.pages["http://a/0"] = moved
    task = asyncio.create_task(loop.run())
    await turns()
    assert web.asked == ["http://a/0"]
    loop.hold(False)
    await asyncio.wait_for(task, 20)
    assert web.asked == ["http://a/0", "http://b/target"]


async def test_a_page_waits_behind_its_robots_txt(bench: Bench) -> None:
    class Slow(Web):
        async def get_robot_rules(self, *arguments: object) -> Rules:  # type: ignore[override]
            loop.hold(True)
            return Rules()

    web = Slow()
    loop = bench.loop(web, ["http://a/0"])
    task = asyncio.create_task(loop.run())
    await turns()
    assert web.asked == [] and loop.reporter.snapshot().active == 1
    loop.hold(False)
    await asyncio.wait_for(task, 20)
    assert web.asked == ["http://a/0"]


async def test_limits_of_time_do_not_count_it(bench: Bench) -> None:
    """Neither the time limit, nor what hangs, nor what is too slow, nor the seconds that are
    shown.
    """
    clock = FakeClock(1_000_000)
    pressure = PressureSettings(min_pages=10, retries=0, check_after=0)
    queues = QueueSettings(crawl_delay=0, time_limit=1_060_000)

    class Gate(Web):
        async def get_robot_rules(self, *arguments: object) -> Rules:  # type: ignore[override]
            loop.hold(True)
            return Rules()

    web = Gate()
    settings = replace(QUICK, queues=queues, pressure=pressure, hung_after=1000)
    loop = bench.loop(web, urls(3), settings, clock=clock)
    task = asyncio.create_task(loop.run())
    await turns()
    clock.advance(HOUR / 1000)
    tick(loop)
    await turns()
    assert loop.reporter.snapshot().seconds == 0.0
    Gate.get_robot_rules = Web.get_robot_rules  # type: ignore[assignment]
    loop.hold(False)
    assert loop.queues.settings.time_limit == 1_060_000 + HOUR
    tick(loop)
    assert loop.reporter.snapshot().seconds == 0.0
    await asyncio.wait_for(task, 20)
    found = bench.result(loop, web)
    found.ledger.check("test")
    assert found.outcomes == {Outcome.FETCHED: 3}


async def test_who_leaves_does_not_wait_for_the_end_of_a_pause(bench: Bench) -> None:
    web = Web()
    loop = bench.loop(web, urls(20))
    web.pages["http://a/3"] = holding(loop)  # type: ignore[assignment]
    task = asyncio.create_task(loop.run())
    await turns()
    loop.leave()
    loop.hold(True)
    await asyncio.wait_for(task, 20)
    assert loop.state.results.ledger.settled == len(web.asked) < 20


# -- details ---------------------------------------------------------------------------------------


async def test_details_name_hosts_queues_and_failures(bench: Bench) -> None:
    web = Web({"http://a/0": (codes.EXCEPTION, "it broke")})
    loop = bench.loop(
        web, [*urls(4), *urls(3, "b")], replace(QUICK, queues=QueueSettings(crawl_delay=HOUR))
    )
    task = asyncio.create_task(loop.run())
    while loop.state.results.ledger.settled < 2:
        await asyncio.sleep(0)
    details = loop.reporter.snapshot(details=True).details
    assert details is not None
    assert {name for name, _ in details.slowest} == {"a", "b"}
    assert [(queue.id, queue.waiting) for queue in details.longest] == [("a", 3), ("b", 2)]
    assert HOUR - 60_000 < details.longest[0].rest <= HOUR + 60_000
    assert [(failure.url, failure.text) for failure in details.failures] == [
        ("http://a/0", "it broke")
    ]
    assert loop.reporter.snapshot().details is None
    loop.leave()
    await task


@pytest.mark.parametrize("few", [1000, 0])
async def test_few_hosts_are_looked_at_with_every_count(
    bench: Bench, monkeypatch: pytest.MonkeyPatch, few: int
) -> None:
    """What waits in the queues that are named is what waits in all; with very many hosts they are
    looked at less often.
    """
    monkeypatch.setattr("minutch.cycle.fetch.loop.TICK", 0.01)
    monkeypatch.setattr("minutch.cycle.fetch.loop.FEW", few)
    listener = Listener()
    listener.wants_details = True
    settings = replace(QUICK, queues=QueueSettings(crawl_delay=HOUR))
    loop = bench.loop(Web(), [*urls(4), *urls(3, "b")], settings, listener=listener)
    task = asyncio.create_task(loop.run())
    while len(listener.ticks) < 9:
        await asyncio.sleep(0.01)
    loop.leave()
    await task
    named = [state for state in listener.ticks[:9] if state.details is not None]
    assert len(named) == (9 if few else 3)
    for state in named:
        assert state.details is not None
        assert sum(queue.waiting for queue in state.details.longest) == state.waiting


def test_details_of_several_processes_are_put_together() -> None:
    first = Details(
        [("a", HostTimes(1, 900, 900, 0))],
        [QueueState("a", 5, 0, 0, 1)],
        [Failure(2, "x", "")],
        17,
    )
    second = Details(
        [("b", HostTimes(2, 4000, 3000, 1))],
        [QueueState("b", 9, 1, 7, 1)],
        [Failure(3, "y", "")],
        18,
    )
    shots = [
        replace(NOW, details=first, outcomes=Counter({1: 3, 4: 1})),
        replace(NOW, details=second, paused=True, outcomes=Counter({1: 2})),
        replace(NOW, details=None),
    ]
    found = together(shots, 99)
    assert (found.pages, found.total, found.requests) == (3 * NOW.pages, 99, 0)
    assert found.outcomes == {1: 5, 4: 1}
    assert found.details == Details(
        [*second.slowest, *first.slowest],
        [*second.longest, *first.longest],
        [Failure(3, "y", ""), Failure(2, "x", "")],
        17,
    )
    assert together([NOW], None).details is None
