"""What is asked for where lists get more parts while others are in flight, and two processes hand
each other what they find: no page is lost, and none is asked for twice, whatever comes first.
"""

from __future__ import annotations

import asyncio
import random
from collections import Counter, deque
from collections.abc import Callable, Iterable
from contextlib import closing
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from minutch.clock import SteadyClock
from minutch.cycle.fetch.frontier.queueitems import FetchItem, Share, pack_follow
from minutch.cycle.fetch.ledger import Outcome
from minutch.cycle.fetch.listfetch import ListFetch
from minutch.cycle.fetch.results.fetchlog import FetchLog, Frame, Part
from minutch.cycle.fetch.results.fetchresults import followed, logs_after, logs_in, resume
from minutch.cycle.fetch.turnover import Claims
from minutch.cycle.fetch.worker import (
    FetchWorker,
    Take,
    Turn,
    WorkerFiles,
    WorkerOrder,
    open_worker,
)
from minutch.cycle.fetch.workers import FetchProcesses, _Worker
from minutch.cycle.fetchlist.selector import OpenList
from minutch.cycle.segment.store import Segment
from minutch.records.crawldatum import CrawlDatum
from tests.cycle.fetch.test_loop import Listener
from tests.cycle.fetch.test_turnover import COMPONENTS, DONE, Crawl, Web, crawled
from tests.support.examples import few
from tests.support.fetchlists import write_list
from tests.support.virtualtime import VirtualClock, run


class Wire:
    """One end of a pipe; what is sent comes out at the other one in order, after a while."""

    def __init__(self, chance: random.Random) -> None:
        self.chance = chance
        self.receive: Any = None
        self.other: Wire = self
        self.inbox: deque[object] = deque()
        self.last = 0.0

    def send(self, message: object) -> None:
        loop = asyncio.get_running_loop()
        self.last = max(self.last, loop.time() + self.chance.choice([0, 0.01, 0.6, 2.5]))
        loop.call_at(self.last, self.other.deliver, message)

    put = send

    def deliver(self, message: object) -> None:
        self.inbox.append(message)
        self.receive()

    def recv(self) -> Any:
        return self.inbox.popleft()


class SharedCrawl(Crawl):
    """A crawl whose fetch has two processes: all of them but the processes."""

    def __init__(self, chance: random.Random, *given: Any, **more: Any) -> None:
        super().__init__(*given, **more)
        self.chance = chance
        self.processes = FetchProcesses(2, None, lambda shot: None, goes_on=True)  # type: ignore[arg-type]
        self.listed_at: dict[str, float] = {}
        """When a URL was listed at first."""
        self.skipped = self.handed = 0

    def begin(self, segment: Segment, path: Path) -> list[asyncio.Task[None]]:
        COMPONENTS.__dict__["protocol_factory"] = self.web
        tasks = []
        for index in range(2):
            ours, theirs = Wire(self.chance), Wire(self.chance)
            ours.other, theirs.other = theirs, ours
            worker = _Worker(None, ours)  # type: ignore[arg-type]
            worker.outbox = ours  # type: ignore[assignment]
            ours.receive = partial(self.hear, worker)
            files = self.share(segment, index, [path])
            child = open_worker(
                files, COMPONENTS, self.settings, SteadyClock(self.web.clock), Listener(),
                resume([]), theirs.send, Share(index, 2),
            )  # fmt: skip
            theirs.receive = partial(self.obey, child, theirs)
            self.processes._workers.append(worker)
            tasks.append(asyncio.create_task(child.run()))
        return tasks

    @staticmethod
    def obey(child: FetchWorker, end: Wire) -> None:
        child.obey(end.recv())

    def hear(self, worker: _Worker) -> None:
        self.processes.heard(worker, worker.pipe.recv())  # type: ignore[union-attr]
        self.processes._finish_if_idle()

    @staticmethod
    def share(segment: Segment, index: int, lists: list[Path]) -> WorkerFiles:
        return WorkerFiles(segment, lists, segment.path / "_fetch" / f"log-{index}")

    def list(self, segment: Segment, number: int, urls: Iterable[str]) -> Path:
        for url in urls:
            self.listed_at.setdefault(url, self.web.clock.seconds)
        return self.part(segment, number, sorted(urls))

    async def until(self, is_so: Callable[[], bool], most: float = 1000.0) -> None:
        end = self.web.clock.seconds + most
        while not is_so() and self.web.clock.seconds < end:
            await asyncio.sleep(0.05)
        assert most < 1000 or is_so()

    async def has_ended(self, number: int, most: float = 1000.0) -> bool:
        """Waits until a list has ended, for so many seconds at most."""
        await self.until(lambda: self.processes.is_settled(number), most)
        return self.processes.is_settled(number)

    async def turn(self, number: int) -> Segment:
        """Goes on with list `number`, in a new segment."""
        segment, processes = self.segment(), self.processes
        parts = [segment.path / f"crawl_generate/part-r-0000{index}" for index in range(2)]
        processes.turn(lambda index: self.share(segment, index, [parts[index]]))
        await self.until(lambda: processes.has_replied(Turn, number))
        processes.tell(WorkerOrder.MEET)
        await self.until(lambda: processes.has_replied(WorkerOrder.MEET, number))
        return segment

    async def take(self, number: int, segment: Segment, part: Path) -> None:
        self.processes.take(number, lambda index: self.share(segment, index, [part]))
        await self.until(lambda: self.processes.has_replied(Take, number))

    async def shared(self) -> None:
        """Lists are turned over at any time, and the other steps take any time."""
        segment = self.segment()
        tasks = self.begin(segment, self.list(segment, 0, self.generate()))
        for number in count(1):
            was_settled = await self.has_ended(number - 1, self.chance.choice([0.3, 1, 3, 8, 60]))
            old, segment = segment, await self.turn(number)
            self.check_kill(old, segment)
            await self.has_ended(number - 1)
            self.check(old, number - 1)
            await asyncio.sleep(self.chance.choice([0.0, 0.5, 4.0]))
            self.updatedb(old)
            urls = self.generate(segment)
            is_over = was_settled and not urls and not len(OpenList.of(segment).taken)
            await asyncio.sleep(self.chance.choice([0.0, 0.5, 4.0]))
            await self.take(number, segment, self.list(segment, 2, urls))
            if is_over:
                break
        self.processes.finish()
        await asyncio.gather(*tasks)

    def check(self, segment: Segment, number: int) -> None:
        """Each URL of a list has one outcome."""
        listed = Counter(url for url, _ in segment.records("crawl_generate"))
        logs = resume((segment.path / "_fetch").glob("log-*"))
        assert logs.settled == listed
        assert max(listed.values(), default=1) == 1
        ledgers = self.processes.ledgers[number].values()
        assert sum(ledger.settled for ledger in ledgers) == listed.total()
        self.skipped += logs.ledger.outcomes[Outcome.SKIPPED_FOLLOWED]

    def check_kill(self, old: Segment, new: Segment) -> None:
        """If all were killed now, no URL of no list would be asked for both of an old list and of
        the one that it was turned over to.
        """
        logs = [logs_in(segment.path / "_fetch") for segment in (old, new)]
        left = resume(logs[0], logs_after(old.path)).follow.keys()
        assert not left & {key.decode() for key in followed(logs[1])}
        self.handed += len(resume(logs[0]).follow) - len(left)

    def again(self) -> set[str]:
        """What was asked for more often than by Nutch: for its place in a list, and for each time
        that a page was asked that has moved there. Of these one counts where the page was asked
        first, and the list knew of neither.
        """
        asked: dict[str, list[float]] = {}
        for time, url in self.web.asked:
            asked.setdefault(url, []).append(time)
        sources = {target: url for url, target in self.web.moved.items()}
        found = set()
        for url, times in asked.items():
            led = asked.get(sources.get(url, ""), [])
            listed = self.listed_at.get(url)
            is_both = listed is not None and any(time < listed for time in led)
            if len(times) > len(led) + (listed is not None) - is_both:
                found.add(url)
        return found


def web_of(chance: random.Random) -> tuple[Web, list[str]]:
    """Pages that others have moved to, on few hosts, which take long; and pages that link to them,
    so that generate lists them in that moment.
    """
    pages = [f"http://h{chance.randrange(12)}/{n}" for n in range(50)]
    old = [f"http://o{chance.randrange(4)}/{n}" for n in range(25)]
    targets = old[20:] + chance.sample(pages[20:], 20)
    web = Web(
        VirtualClock(1_000_000),
        links={url: chance.sample([*pages, *targets, *targets], 3) for url in pages},
        moved=dict(zip(old, targets, strict=True)),
        closed={"h1": 1 + chance.choice([0, 20])},
        seconds=chance.choice([0.1, 0.4, 2.0]),
    )
    return web, [*pages[:8], *old[:20]]


@pytest.mark.parametrize("seed", few(range(8), 2))
def test_no_page_is_lost_and_none_is_asked_for_twice(tmp_path: Path, seed: int) -> None:
    web, seeds = web_of(random.Random(seed))
    in_order = crawled(tmp_path / "1", web, seeds, None)
    web, seeds = web_of(random.Random(seed))
    crawl = SharedCrawl(random.Random(seed), tmp_path / "2", web, seeds)
    run(web.clock, crawl.shared())
    assert set(crawl.requests()) == set(in_order.requests())
    assert crawl.known == in_order.known
    assert not {url for url, fate in crawl.known.items() if fate not in DONE}
    assert crawl.again() == set()
    assert len(crawl.segments) > 2


def test_parts_that_came_say_which_of_two_is_fetched(tmp_path: Path) -> None:
    """What was asked for a page before the page was listed, and after it, and both again later."""
    url, claims = "http://h/", Claims()
    listed = FetchItem(url, CrawlDatum(1), "h", url)
    before, after = FetchItem(url, CrawlDatum(1), "h"), FetchItem(url, CrawlDatum(1), "h")
    claims.follow(before)
    assert claims.fetched(listed) is None  # of the list that the fetch began with: as in Nutch
    part = write_list(tmp_path / "part-r-00000", [url])
    listed.parts = after.parts = claims.take([part])
    fetched = claims.fetched(listed)
    assert fetched is not None and fetched.outcome is Outcome.SKIPPED_FOLLOWED
    assert claims.fetched(before) is claims.fetched(after) is None
    assert claims.is_listed(before) and not claims.is_listed(after)
    assert not claims.is_listed(FetchItem("http://h/other", CrawlDatum(1), "h"))
    claims.turn([], [])
    assert claims.fetched(listed) is None
    assert claims.is_listed(before)  # its page may still be in flight
    claims.turn([], [after])
    listed.parts = claims.take([part])
    assert claims.fetched(listed) is not None


def test_after_a_kill_the_later_one_of_two_lists_follows_a_url(tmp_path: Path) -> None:
    """Of two processes one had turned, and took over what the other's page had led to."""
    web = Web(VirtualClock(1_000_000))
    crawl = Crawl(tmp_path, web, [])
    item, other = (FetchItem(f"http://h/{n}", CrawlDatum(1), "h") for n in range(2))
    for segment, found in ((crawl.segment(), [item, other]), (crawl.segment(), [item])):
        with closing(FetchLog(segment.path / "_fetch" / "log-0", "")) as log:
            for one in found:
                frame = Frame(Outcome.FETCHED)
                frame.add(Part.FOLLOW, one.url, pack_follow(one))
                log.append(frame)
    followed = []
    for segment in crawl.segments:
        work, clock = segment.path / "_fetch", SteadyClock(web.clock)
        job = ListFetch(segment, [], work, crawl.settings, COMPONENTS, clock, tmp_path / "state")
        job.take_up()
        followed.append(list(job.resumed.follow))
    assert followed == [[other.url], [item.url]]
