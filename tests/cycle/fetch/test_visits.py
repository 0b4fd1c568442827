"""Requests to hosts of other queues: in turn, with a place in the queue, and never stuck."""

from __future__ import annotations

import asyncio

import pytest

from minutch.clock import FakeClock
from minutch.cycle.fetch.frontier.queueitems import FetchItem, QueueNames
from minutch.cycle.fetch.frontier.queues import FetchQueues
from minutch.cycle.fetch.ledger import Outcome
from minutch.cycle.fetch.limits import Visitor, Visits, Wakeup
from minutch.cycle.fetch.settings import BY_HOST, QueueSettings
from minutch.plugin.extension import NoTurn
from minutch.records.crawldatum import CrawlDatum

DELAY = 1000


class Bench:
    """Queues named by hosts of one letter, and who visits them."""

    def __init__(self) -> None:
        self.clock = FakeClock(10_000)
        self.queues = FetchQueues(QueueSettings(crawl_delay=DELAY, patience=5000))
        names = QueueNames(BY_HOST)
        self.visits = Visits(self.queues, self.clock, names, Wakeup())
        self.granted: list[str] = []

    def item(self, host: str) -> FetchItem:
        return FetchItem(f"http://{host}/", CrawlDatum(), host)

    def visit(self, home: str, host: str, *, asked: bool = True) -> asyncio.Task[None]:
        async def go() -> None:
            async with self.visits.of(f"http://{home}/", f"http://{host}/rules") as visit:
                visit.asked = asked
                self.granted.append(home)
                await asyncio.sleep(0)

        return asyncio.create_task(go())

    async def at(self, time: int) -> list[str]:
        """Who has had a turn up to then (ms from the beginning)."""
        self.clock.advance((10_000 + time - self.clock.now()) / 1000)
        for _ in range(3):
            await asyncio.sleep(0)
            self.pump()
            await asyncio.sleep(0)
        return self.granted

    def pump(self) -> None:
        """What the loop does with visitors."""
        now = self.clock.now()
        for dropped in self.queues.dropped(9):
            assert isinstance(dropped.item, Visitor)
            dropped.item.refuse(dropped.reason)
        for queue in self.queues.queues.values():
            next_one = queue.hosts[0].added if queue.hosts else None
            if next_one and not isinstance(next_one[0], Visitor):
                return  # an item, which the test takes itself
        while (item := self.queues.take(now)) is not None:
            assert isinstance(item, Visitor)
            self.visits.begin(item, now)


@pytest.fixture
def bench() -> Bench:
    return Bench()


async def test_one_after_the_other(bench: Bench) -> None:
    tasks = [bench.visit(home, "c") for home in ("a", "b", "d")]
    assert await bench.at(0) == ["a"]
    assert bench.queues.take(bench.clock.now()) is None
    assert bench.queues.next_ready(bench.clock.now()) == 10_000 + DELAY
    assert await bench.at(DELAY - 1) == ["a"]
    assert await bench.at(DELAY) == ["a", "b"]
    assert await bench.at(2 * DELAY) == ["a", "b", "d"]
    assert not len(bench.visits)
    await asyncio.gather(*tasks)
    bench.queues.add(bench.item("c"), bench.clock.now())
    assert bench.queues.take(bench.clock.now()) is None
    await bench.at(3 * DELAY)
    assert bench.queues.take(bench.clock.now()) is not None


async def test_an_item_in_progress_is_waited_for_with_its_rest(bench: Bench) -> None:
    bench.queues.add(bench.item("c"), bench.clock.now())
    item = bench.queues.take(bench.clock.now())
    assert item is not None
    task = bench.visit("a", "c")
    assert await bench.at(5000) == []
    bench.queues.finish(item, bench.clock.now())
    assert await bench.at(5999) == [] and await bench.at(6000) == ["a"]
    await task
    assert not bench.queues.queues and bench.queues.in_progress == 0


async def test_who_does_not_ask_leaves_no_rest(bench: Bench) -> None:
    tasks = [bench.visit("a", "c", asked=False), bench.visit("b", "c")]
    assert await bench.at(0) == ["a", "b"]
    await asyncio.gather(*tasks)


async def test_the_own_queue_is_not_waited_for(bench: Bench) -> None:
    bench.queues.add(bench.item("a"), bench.clock.now())
    assert bench.queues.take(bench.clock.now()) is not None
    await bench.visit("a", "a")
    assert bench.granted == ["a"]


async def test_nobody_waits_in_a_circle(bench: Bench) -> None:
    for host in "abc":
        bench.queues.add(bench.item(host), bench.clock.now())
        assert bench.queues.take(bench.clock.now()) is not None
    tasks = [bench.visit(home, host) for home, host in ("ab", "bc", "ca")]
    await bench.at(0)
    with pytest.raises(NoTurn, match="each other"):
        await tasks[2]
    assert len(bench.visits) == 2
    bench.visits.refuse("over")
    for task in tasks[:2]:
        with pytest.raises(NoTurn, match="over"):
            await task
    with pytest.raises(NoTurn, match="over"):
        await bench.visit("d", "e")


async def test_a_host_that_is_given_up_is_not_visited(bench: Bench) -> None:
    bench.queues.rest("c", bench.clock.now() + 6000, bench.clock.now())
    task = bench.visit("a", "c")
    await bench.at(0)
    with pytest.raises(NoTurn):
        await task
    bench.queues.rest("d", bench.clock.now() + 3000, bench.clock.now())
    bench.visit("a", "d")
    assert await bench.at(2999) == [] and await bench.at(3000) == ["a"]
    bench.queues.end(Outcome.SKIPPED_TIMELIMIT, bench.clock.now())
    task = bench.visit("a", "e")
    await bench.at(3000)
    with pytest.raises(NoTurn):
        await task


@pytest.mark.parametrize("granted", [False, True])
async def test_a_chain_that_is_given_up_leaves_its_place(bench: Bench, granted: bool) -> None:
    task = bench.visit("a", "c")
    await asyncio.sleep(0)
    if granted:
        bench.pump()
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    assert not len(bench.visits) and bench.queues.in_progress == 0 and not bench.granted
    bench.visit("b", "c")
    assert await bench.at(0) == ["b"]
