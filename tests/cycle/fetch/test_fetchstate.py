"""The parts of the fetch loop by themselves: what is in flight, places, pauses, the wake-up; and
all of them together, whatever is done to a fetch in whatever order.
"""

from __future__ import annotations

import asyncio
import tempfile
from collections import Counter
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import Phase
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule

from minutch.clock import FakeClock
from minutch.cycle.fetch.frontier.queueitems import FetchItem, QueueNames
from minutch.cycle.fetch.frontier.queues import FetchQueues
from minutch.cycle.fetch.ledger import Outcome
from minutch.cycle.fetch.limits import FetchLimits, Pause, Visits, Wakeup
from minutch.cycle.fetch.redirectchain import RedirectChain
from minutch.cycle.fetch.results.fetchlog import frames
from minutch.cycle.fetch.results.fetchresults import logs_after, logs_in, resume
from minutch.cycle.fetch.settings import BY_HOST, QueueSettings, RobotsSettings
from minutch.cycle.fetch.stats import Snapshot
from minutch.cycle.fetch.turnover import InFlight
from minutch.cycle.fetch.worker import FetchWorker, Idle, WorkerOrder
from minutch.cycle.segment.store import Segment
from minutch.records.crawldatum import CrawlDatum
from tests.cycle.fetch.test_loop import QUICK, Bench, Web, urls
from tests.cycle.fetch.test_turnover import DELAY, Crawl, host_of
from tests.cycle.fetch.test_turnover import Web as SlowWeb
from tests.support.examples import examples
from tests.support.virtualtime import VirtualClock, _Loop, run


@pytest.fixture
def in_flight() -> InFlight:
    queues = FetchQueues(QueueSettings())
    return InFlight(Visits(queues, FakeClock(), QueueNames(BY_HOST), Wakeup()))


async def forever() -> None:
    await asyncio.Event().wait()


def chain(url: str = "http://a/") -> RedirectChain:
    return RedirectChain.of(FetchItem(url, CrawlDatum(), "a", url), None)  # type: ignore[arg-type]


# -- what is in flight -----------------------------------------------------------------------------


async def test_a_chain_hangs_when_its_time_is_over(in_flight: InFlight) -> None:
    """Once; neither a page that is parsed does, nor who waits for another host; pauses do not
    count.
    """
    chains = [chain(f"http://a/{n}") for n in range(3)]
    tasks = [asyncio.create_task(forever()) for _ in chains]
    for number, (task, one) in enumerate(zip(tasks, chains, strict=True)):
        in_flight.add(task, one, 100 * number)
    chains[1].parsing = True
    in_flight.visits._waiting[tasks[2]] = None  # type: ignore[assignment]
    assert (len(in_flight), in_flight.asking, in_flight.oldest(9)) == (3, 2, 0)
    assert list(in_flight.give_up(1000, 1000)) == []
    in_flight.put_off(500)
    assert list(in_flight.give_up(1400, 1000)) == []
    assert list(in_flight.give_up(1501, 1000)) == [(chains[0], 1001)]
    assert list(in_flight.give_up(9999, 1000)) == []
    assert [in_flight.is_given_up(task) for task in tasks] == [True, False, False]
    await asyncio.wait(tasks[:1], timeout=5)
    assert tasks[0].cancelled()
    for task in tasks:
        task.cancel()
        in_flight.remove(task)
        in_flight.remove(task)
    assert not in_flight and in_flight.oldest(9) == 9


# -- places, pauses, guards ------------------------------------------------------------------------


def limits_of(**more: Any) -> FetchLimits:
    settings = replace(QUICK, **more)
    return FetchLimits(settings, FetchQueues(settings.queues), Pause())


def test_places_open_one_after_the_other() -> None:
    limits = limits_of(places=3, start_delay=100)
    limits.begin(0, 5.0)
    assert [limits.free_at(7, 5.0, active) for active in range(3)] == [7, 107, 107]
    assert [limits.free_at(7, 5.25, active) for active in range(4)] == [7, 7, 7, None]
    limits.load.bearable = 1
    assert limits.free_at(7, 9.0, 1) is None


def test_no_time_passes_in_a_pause() -> None:
    limits = limits_of(queues=QueueSettings(time_limit=10_000))
    limits.begin(1000, 1.0)
    limits.pause.begin(3000)
    assert limits.free_at(3000, 3.0, 0) is None
    assert limits.seconds(7000, 7.0) == 2.0
    assert limits.resume(8000) == 5000 and limits.resume(8000) == 0
    assert limits.seconds(8000, 8.0) == 2.0
    assert limits._queues.settings.time_limit == 15_000


def test_nothing_that_moves_ends_a_list() -> None:
    """Where nothing is in flight, what waits for hosts that rest for long is left; a host that
    asked for its rest is waited for as long as is wished.
    """
    robots = RobotsSettings(defer_wait=30_000)
    limits = limits_of(
        queues=QueueSettings(crawl_delay=5000, patience=10**6), hung_after=60_000, robots=robots
    )
    queues = limits._queues
    limits.begin(0, 0.0)
    queues.remember("a", 10**6, 0)
    queues.add(FetchItem("http://a/", CrawlDatum(), "a", "http://a/"), 0)
    assert limits.ending(9, 0.0, 60_001, is_idle=False) is None
    assert limits.ending(9, 0.0, 60_000, is_idle=True) is None
    assert limits.ending(9, 0.0, 60_001, is_idle=True) is Outcome.SKIPPED_TIMEOUT
    queues.rest("a", 90_000, 0)
    assert limits.ending(9, 0.0, 60_001, is_idle=True) is None
    assert queues.waiting == 0 and queues.has_dropped  # for it rests for more than half a minute


def test_a_list_is_judged_by_itself() -> None:
    """Between two lists no guard ends anything, and times count from the beginning of each."""
    pressure = replace(QUICK.pressure, min_pages=5, retries=1, check_after=1000)
    limits = limits_of(pressure=pressure)
    limits.begin(0, 0.0)
    assert limits.ending(0, 0.0, 1000, is_idle=True) is None
    limits.end_list()
    assert limits.ending(0, 0.0, 2000, is_idle=True) is None
    limits.begin_list(50_000)
    assert limits.ending(0, 0.0, 51_000, is_idle=True) is None
    assert limits.ending(0, 0.0, 51_001, is_idle=True) is Outcome.SKIPPED_THROUGHPUT


# -- the wake-up -----------------------------------------------------------------------------------


def test_the_earliest_time_wakes_and_one_call_is_enough() -> None:
    clock, heard = VirtualClock(), list[float]()

    async def go() -> None:
        wakeup = Wakeup()
        wakeup()  # nobody hears it
        wakeup.hear(lambda: heard.append(clock.seconds))
        for due in (5000, 3000, 4000):
            wakeup.at(due, clock.now())
        wakeup()
        wakeup()
        await asyncio.sleep(10)
        wakeup.at(20_000, clock.now())
        wakeup.close()
        wakeup()
        await asyncio.sleep(60)

    run(clock, go())
    assert heard == [0.0, 3.0]


# -- the end ---------------------------------------------------------------------------------------


async def test_a_fetch_is_done_when_nothing_can_come(tmp_path: Path) -> None:
    """Whoever is asked last is asked once: then it says to the others that it has nothing left."""
    state = Bench(tmp_path).loop(Web(), urls(1)).state
    asked = 0

    def nothing_to_come() -> bool:
        nonlocal asked
        asked += 1
        return True

    state.neighbours.nothing_to_come = nothing_to_come  # type: ignore[method-assign]
    task, coming = asyncio.create_task(forever()), asyncio.get_running_loop().create_future()
    state.in_flight.add(task, chain(), 0)
    assert not state.is_done(has_more=False)
    state.stage = type(state.stage).LEAVING
    assert not state.is_done(has_more=False)
    task.cancel()
    state.in_flight.remove(task)
    assert state.is_done(has_more=True)
    state.stage = type(state.stage).RUNNING
    state.pending.add(coming)
    assert not state.is_done(has_more=True) and not state.is_done(has_more=False)
    state.pending.clear()
    assert not state.is_done(has_more=True) and asked == 0
    assert state.is_done(has_more=False) and asked == 1
    state.results.close()


@pytest.mark.parametrize("paused", [False, True])
def test_hosts_that_rest_are_left_as_soon_as_it_is_said(tmp_path: Path, paused: bool) -> None:
    """A crawl that is to stop says so every second, with each state that is shown: the fetch ends
    in that second, unless it is held.
    """
    web = SlowWeb(VirtualClock(1_000_000), closed={"a": 60.0}, links={"http://b/": []})
    robots = RobotsSettings(defer_delay=20_000, defer_wait=-1)
    crawl, segment = Crawl(tmp_path, web, [], robots=robots), Segment(tmp_path / "1")
    (segment.path / "_fetch").mkdir(parents=True)
    part = crawl.part(segment, 0, ["http://a/", "http://b/"])
    ended: list[float] = []

    async def go() -> None:
        def tell(message: object) -> None:
            if isinstance(message, Snapshot):  # as `Line` does, in a fetch of one process
                asyncio.get_running_loop().call_soon(session.obey, WorkerOrder.LEAVE_RESTING)
            if isinstance(message, Idle):
                ended.append(web.clock.seconds)
                session.obey(WorkerOrder.FINISH)

        session = crawl.open(segment, [part])
        session.send, session.finishing = tell, False
        session.loop.reporter.show = tell
        if paused:
            asyncio.get_running_loop().call_later(0.5, session.loop.hold, True)
            asyncio.get_running_loop().call_later(3.5, session.loop.hold, False)
        await session.run()
        assert session.results.ledger.outcomes == {Outcome.DEFERRED: 1, Outcome.FETCHED: 1}

    run(web.clock, go())
    assert ended == [4.0 if paused else 1.0]


# -- all together ----------------------------------------------------------------------------------

HOSTS = [f"h{number}" for number in range(6)]
GIVEN = st.lists(
    st.tuples(st.sampled_from(HOSTS), st.sampled_from(["page", "moved", "moved", "gone"])),
    max_size=6,
)


class Fetches(RuleBasedStateMachine):
    """A fetch whose lists are added to, turned over, ended, held and killed at any moment, of hosts
    that ask to be left alone for a while. Each URL is given once, in one list.
    """

    @initialize(given=GIVEN, seconds=st.sampled_from([0.1, 0.6, 3.0]), may_stop=st.booleans())
    def begin(self, given: list[tuple[str, str]], seconds: float, may_stop: bool) -> None:
        self.may_stop = may_stop
        self.clock = VirtualClock(1_000_000)
        self.runner = asyncio.Runner(loop_factory=lambda: _Loop(self.clock))
        self.folder = tempfile.TemporaryDirectory()
        self.web = SlowWeb(self.clock, seconds=seconds)
        self.crawl = Crawl(Path(self.folder.name), self.web, [])
        self.given: list[str] = []
        self.kills = 0
        self.open(given)

    # -- what is done to it --

    def urls(self, given: list[tuple[str, str]]) -> list[str]:
        found = []
        for host, kind in given:
            url = f"http://{host}/{len(self.given)}"
            self.given.append(url)
            found.append(url)
            target = f"http://t/{len(self.given)}"
            if kind == "moved":
                self.web.moved[url] = target
            if kind != "gone":
                self.web.links[target if kind == "moved" else url] = []
        return found

    def open(self, given: list[tuple[str, str]]) -> None:
        segment = self.crawl.segment()
        self.parts, self.held = 1, False
        part = self.crawl.part(segment, 0, self.urls(given))
        self.runner.run(self.start(segment, [part]))

    async def start(self, segment: Segment, lists: list[Path]) -> None:
        self.session: FetchWorker = self.crawl.open(segment, lists)
        self.more = asyncio.Event()
        self.session.loop.beside(self.more.wait())
        self.running = asyncio.create_task(self.session.run())

    @property
    def segment(self) -> Segment:
        return self.crawl.segments[-1]

    def new_part(self, given: list[tuple[str, str]]) -> Path:
        self.parts += 1
        return self.crawl.part(self.segment, self.parts, self.urls(given))

    @rule(seconds=st.sampled_from([0.0, 0.05, 0.5, 1.3, 20.0]))
    def pass_time(self, seconds: float) -> None:
        self.runner.run(asyncio.sleep(seconds))
        if self.running.done():
            self.running.result()
            raise AssertionError("it has ended, and more lists are to come")

    @rule(given=GIVEN, seconds=st.sampled_from([0.0, 0.7, 1.5]))
    def add(self, given: list[tuple[str, str]], seconds: float) -> None:
        part = self.new_part(given)
        self.runner.run(self.session.take(self.crawl.files(self.segment, [part])))
        self.pass_time(seconds)

    @rule()
    def turn(self) -> None:
        segment = self.crawl.segment()
        self.parts = 1
        part = segment.path / "crawl_generate" / "part-r-00000"
        self.runner.run(self.session.turn(self.crawl.files(segment, [part])))

    @rule(host=st.sampled_from(HOSTS), seconds=st.sampled_from([3.0, 30.0]))
    def close_host(self, host: str, seconds: float) -> None:
        """Its robots.txt defers visits."""
        self.web.closed[host] = self.clock.seconds + seconds

    @rule(wanted=st.booleans())
    def hold(self, wanted: bool) -> None:
        self.held = wanted

        async def hold() -> None:
            self.session.loop.hold(wanted)

        self.runner.run(hold())

    @precondition(lambda self: self.may_stop)
    @rule(outcome=st.sampled_from([Outcome.SKIPPED_THROUGHPUT, Outcome.SKIPPED_TIMELIMIT]))
    def stop(self, outcome: Outcome) -> None:
        async def stop() -> None:
            self.session.loop.stop(outcome)

        self.runner.run(stop())

    @precondition(lambda self: self.kills < 2)
    @rule(in_order=st.booleans(), given=GIVEN)
    def kill(self, in_order: bool, given: list[tuple[str, str]]) -> None:
        """What is left of each list is fetched by itself, the oldest one first; then a new fetch
        begins. In order, what is in flight is finished before.
        """
        self.kills += 1
        self.runner.run(self.end(in_order=in_order))
        self.runner.run(self.finish_all())
        self.open(given)

    async def end(self, *, in_order: bool) -> None:
        if in_order:
            self.session.loop.leave()
        else:
            self.running.cancel()
        await asyncio.wait([self.running])
        await asyncio.sleep(DELAY / 1000)  # the memory of hosts is not part of this

    async def finish_all(self) -> None:
        for segment in self.crawl.segments:
            work = segment.path / "_fetch"
            if not work.exists():
                continue
            lists = sorted((segment.path / "crawl_generate").glob("part-*"))
            found = resume(logs_in(work), logs_after(segment.path))
            await self.start(segment, lists)
            self.session.resumed.follow = found.follow
            self.more.set()
            await self.running
            work.rename(segment.path / "done")  # what it was to follow is followed
            await asyncio.sleep(DELAY / 1000)

    # -- what holds --

    def check(self) -> None:
        """Each URL of each list has one outcome; in all lists each URL that was given has one that
        is no way into the next list.
        """
        ends = Counter[str]()
        for segment in self.crawl.segments:
            listed = Counter(url for url, _ in segment.records("crawl_generate"))
            settled = Counter[str]()
            for log in segment.path.glob("*/log-*"):
                for frame in frames(log):
                    settled.update(frame.listed)
                    if frame.outcome is not Outcome.SKIPPED_TAIL:
                        ends.update(frame.listed)
            assert settled == listed and max(listed.values(), default=1) == 1
        assert ends == Counter(self.given)
        times: dict[str, list[float]] = {}
        for time, url in self.web.asked:
            times.setdefault(host_of(url), []).append(time)
        for host, at in times.items():
            rests = (later - before for before, later in pairwise(at))
            assert all(rest >= DELAY / 1000 - 0.001 for rest in rests), (host, at)
        asked = Counter(url for _, url in self.web.asked)
        if not self.kills:
            assert max(asked.values(), default=1) == 1
        if not self.may_stop:
            led = (target for url, target in self.web.moved.items() if url in asked)
            assert not {*self.given, *led} - set(asked)

    def teardown(self) -> None:
        """All that is left comes to its end."""
        if not hasattr(self, "runner"):
            return
        try:
            if self.held:
                self.hold(wanted=False)

            async def end() -> None:
                self.more.set()
                await self.running

            self.runner.run(end())
            self.check()
        finally:
            self.runner.close()
            self.folder.cleanup()


TestFetches = Fetches.TestCase
TestFetches.settings = hypothesis_settings(
    max_examples=examples(40),
    stateful_step_count=20,
    deadline=None,
    phases=[Phase.explicit, Phase.generate],
)
