"""Lists that are turned over while they are fetched: each URL has the fate that it has where rounds
follow each other, whatever waits or is in flight at that moment.
"""

from __future__ import annotations

import asyncio
import gc
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from pathlib import Path
from shutil import rmtree
from types import FunctionType, ModuleType
from typing import Any

import polars as pl
import pytest

from minutch.clock import SteadyClock
from minutch.conf import Configuration
from minutch.cycle.fetch import stats
from minutch.cycle.fetch.components import FetchComponents
from minutch.cycle.fetch.frontier.queueitems import Share
from minutch.cycle.fetch.ledger import Outcome
from minutch.cycle.fetch.results.fetchlog import Part, frames
from minutch.cycle.fetch.results.fetchresults import FetchResults, resume
from minutch.cycle.fetch.settings import (
    FetchSettings,
    PressureSettings,
    QueueSettings,
    RedirectSettings,
    RobotsSettings,
)
from minutch.cycle.fetch.worker import FetchWorker, WorkerFiles, open_worker
from minutch.cycle.fetchlist.partition import UrlPartitioner
from minutch.cycle.fetchlist.select import ListSelection, SelectionSettings
from minutch.cycle.fetchlist.selector import OpenList
from minutch.cycle.parse.pageparser import ParsedPage
from minutch.cycle.segment.store import Segment
from minutch.hadoop.formats.sequencewriter import NONE
from minutch.job import Counters
from minutch.plugin.points import ProtocolOutput
from minutch.records import crawldatum as status
from minutch.records import protocol as codes
from minutch.records.crawldatum import CrawlDatum
from minutch.records.metadata import Metadata
from minutch.records.protocol import Content, ProtocolStatus
from tests.cycle.fetch.test_loop import Listener, Rules
from tests.support.fetchlists import write_list
from tests.support.virtualtime import VirtualClock, run

DELAY = 1000
PLAIN = FetchSettings.of(Configuration(), 0, threads=50)
SETTINGS = replace(
    PLAIN,
    form=replace(PLAIN.form, compression=NONE),
    queues=QueueSettings(crawl_delay=DELAY),
    redirects=RedirectSettings(max_redirects=3),
    robots=RobotsSettings(min_crawl_delay=0, defer_delay=7000, defer_retries=9, defer_wait=-1),
    start_delay=0,
)
CONF = Configuration.load([]).with_values({"plugin.includes": "scoring-opic"}).freeze()
COMPONENTS = FetchComponents(CONF)
PARTITIONER = UrlPartitioner.from_conf(CONF, lambda host: None)
DONE = (
    status.STATUS_FETCH_SUCCESS,
    status.STATUS_FETCH_REDIR_TEMP,
    status.STATUS_FETCH_GONE,
)


def host_of(url: str) -> str:
    return url.split("/")[2]


@dataclass
class Web:
    """Pages by URL: their links, or where they redirect to; all others are gone."""

    clock: VirtualClock
    links: dict[str, list[str]] = field(default_factory=dict)
    moved: dict[str, str] = field(default_factory=dict)
    closed: dict[str, float] = field(default_factory=dict)
    """Hosts whose robots.txt defers visits until then (s)."""
    denied: set[str] = field(default_factory=set)
    """Hosts whose robots.txt allows nothing."""
    seconds: float = 0.2
    """That an answer takes, or a parse."""
    asked: list[tuple[float, str]] = field(default_factory=list)
    turn: Any = None
    mapping: Any = field(default_factory=lambda: type("Mapping", (), {"hosts": {}}))

    def get_protocol(self, url: str) -> Web:
        return self

    async def close(self) -> None:
        pass

    async def get_protocol_output(self, url: str, datum: CrawlDatum) -> ProtocolOutput:
        self.asked.append((self.clock.seconds, url))
        await asyncio.sleep(self.seconds)
        if url in self.moved:
            return ProtocolOutput(None, ProtocolStatus(codes.TEMP_MOVED, [self.moved[url]]))
        if url not in self.links:
            return ProtocolOutput(None, ProtocolStatus(codes.NOTFOUND))
        content = Content(url, url, b"<html>", "text/html", Metadata())
        return ProtocolOutput(content, ProtocolStatus(codes.SUCCESS))

    async def get_robot_rules(self, url: str, datum: CrawlDatum, robots: object) -> Rules:
        if host_of(url) in self.denied:
            return Rules(allowed=False)
        return Rules(defer_visits=self.clock.seconds < self.closed.get(host_of(url), 0))

    # -- a PageParser --

    pages = 0

    async def parse(self, content: Content, fetch_time: int) -> ParsedPage:
        self.pages += 1
        await asyncio.sleep(self.seconds)
        self.pages -= 1
        url = content.url
        return ParsedPage(outlinks=[(url, self.links[url])])

    def hurry(self) -> None:
        pass


class Crawl:
    """A crawl of a Web: the known URLs, the segments, and a fetch that has one list or many."""

    def __init__(self, folder: Path, web: Web, seeds: Iterable[str], **more: Any) -> None:
        self.folder, self.web = folder, web
        self.settings = replace(SETTINGS, **more)
        self.known = dict.fromkeys(seeds, 0)
        """The last fetch status of each URL; 0: it is due."""
        self.segments: list[Segment] = []
        self.max_count = -1
        self.ended: list[FetchResults] = []

    # -- the other steps --

    def segment(self) -> Segment:
        self.segments.append(Segment(self.folder / f"{len(self.segments):014}"))
        for name in ("_fetch", "crawl_generate"):
            (self.segments[-1].path / name).mkdir(parents=True)
        return self.segments[-1]

    def generate(self, into: Segment | None = None) -> list[str]:
        """The best of what is due, as generate chooses it."""
        taken = OpenList() if into is None else OpenList.of(into)
        due = sorted(url for url, fate in self.known.items() if fate not in DONE)
        keys = pl.Series("key", [url.encode() for url in due], pl.Binary)
        table = keys.filter(~keys.is_in(taken.taken.implode())).to_frame()
        limits = SelectionSettings(
            top_n=-1, segments=1, reducers=1, max_count=self.max_count, by_domain=False,
            normalizers=None, partitioner=PARTITIONER,
            listed=taken.listed,
        )  # fmt: skip
        table = table.with_columns(sort=pl.lit(1.0, pl.Float32))
        chosen = ListSelection(limits).choose([table], Counters())
        return [key.decode() for key in chosen["key"]]

    def part(self, segment: Segment, number: int, urls: list[str]) -> Path:
        entries = [(url, CrawlDatum(1, 100, 1.0)) for url in urls]
        return write_list(segment.path / "crawl_generate" / f"part-r-{number:05}", entries)

    def updatedb(self, segment: Segment) -> None:
        """Takes over what a segment has, and the links of its pages."""
        for path in (segment.path / "_fetch").glob("log-*"):
            for frame in frames(path):
                for entry in frame.entries:
                    if entry.part is Part.FETCH:
                        self._learn(entry.key.decode(), CrawlDatum.from_bytes(entry.value).status)

    def _learn(self, url: str, fate: int) -> None:
        if fate != status.STATUS_LINKED:
            self.known[url] = fate
        self.known.setdefault(url, 0)
        for link in self.web.links.get(url, []) if fate == status.STATUS_FETCH_SUCCESS else []:
            self.known.setdefault(link, 0)

    # -- the fetch --

    def open(self, segment: Segment, lists: list[Path]) -> FetchWorker:
        COMPONENTS.__dict__["protocol_factory"] = self.web
        session = open_worker(
            self.files(segment, lists), COMPONENTS, self.settings, SteadyClock(self.web.clock),
            Listener(), resume((segment.path / "_fetch").glob("log-*")), lambda message: None,
            Share(),
        )  # fmt: skip
        session.finishing = True  # what is to come is kept open by others

        async def ended(results: FetchResults) -> None:
            await session.settled(results)
            self.ended.append(results)

        session.loop.state.ended = ended
        return session

    @staticmethod
    def files(segment: Segment, lists: list[Path]) -> WorkerFiles:
        return WorkerFiles(segment, lists, segment.path / "_fetch" / "log-0")

    async def in_order(self, rounds: int = 30) -> None:
        for _ in range(rounds):
            urls = self.generate()
            if not urls:
                return
            segment = self.segment()
            session = self.open(segment, [self.part(segment, 0, urls)])
            await session.run()
            session.results.ledger.check(segment.name)
            self.updatedb(segment)

    async def overlapping(self, turns: list[float], steps: float = 0.5) -> None:
        """Each list is turned over after so many seconds, the last one again and again; the other
        steps take `steps` seconds.
        """
        urls, waits = self.generate(), list(turns)
        segment = self.segment()
        session = self.open(segment, [self.part(segment, 0, urls)])
        more_lists = asyncio.Event()
        session.loop.beside(more_lists.wait())
        running = asyncio.create_task(session.run())
        while True:
            await self.settled(session, waits[0] if len(waits) == 1 else waits.pop(0))
            old, results, is_settled = segment, session.results, session.loop.queues.is_empty
            segment = self.segment()
            part = segment.path / "crawl_generate" / "part-r-00000"
            await session.turn(self.files(segment, [part]))
            while results not in self.ended:
                await asyncio.sleep(0.01)
            results.ledger.check(old.name)
            await asyncio.sleep(steps)
            self.updatedb(old)
            urls = self.generate(segment)
            await session.take(self.files(segment, [self.part(segment, 1, urls)]))
            if is_settled and not urls and not len(OpenList.of(segment).taken):
                break
        more_lists.set()
        await running

    async def settled(self, session: FetchWorker, most: float) -> None:
        """Waits until all has ended, `most` seconds at most."""
        end = self.web.clock.seconds + most
        loop = session.loop
        while self.web.clock.seconds < end and not (
            loop.queues.is_empty and not loop.state.in_flight
        ):
            await asyncio.sleep(0.05)

    # -- what came of it --

    def lists(self) -> list[list[str]]:
        return [[url for url, _ in segment.records("crawl_generate")] for segment in self.segments]

    def requests(self) -> Counter[str]:
        return Counter(url for _, url in self.web.asked)


def crawled(
    folder: Path, web: Web, seeds: list[str], turns: list[float] | None, **more: Any
) -> Crawl:
    """Runs a crawl; in order, or turned over."""
    max_count, steps = more.pop("max_count", -1), more.pop("steps", 0.5)
    crawl = Crawl(folder, web, seeds, **more)
    crawl.max_count = max_count
    run(web.clock, crawl.in_order() if turns is None else crawl.overlapping(turns, steps))
    return crawl


def web_of(**more: Any) -> Web:
    return Web(VirtualClock(1_000_000), **more)


def test_what_redirects_lead_to_goes_on(tmp_path: Path) -> None:
    """Of twelve pages behind redirects most wait when the list is turned over."""
    moved = {f"http://s{n}/": f"http://t/{n}" for n in range(12)}
    pages = {url: [] for url in moved.values()}
    web = web_of(moved=moved, links=pages)
    crawl = crawled(tmp_path, web, list(moved), [3.0])
    assert crawl.requests() == dict.fromkeys([*moved, *pages], 1)
    assert len(crawl.segments) > 3
    assert crawl.lists()[1:] == [[]] * (len(crawl.segments) - 1)
    assert {url for url, fate in crawl.known.items() if fate not in DONE} == set()


def test_what_waits_is_not_listed_again(tmp_path: Path) -> None:
    """A page links to all that redirects lead to; the pages are known when they still wait."""
    moved = {f"http://s{n}/": f"http://t/{n}" for n in range(12)}
    pages: dict[str, list[str]] = {url: [] for url in moved.values()}
    web = web_of(moved=moved, links=pages | {"http://l/": list(pages)})
    crawl = crawled(tmp_path, web, ["http://l/", *moved], [3.0])
    assert crawl.requests() == dict.fromkeys(["http://l/", *moved, *pages], 1)


def test_carried_pages_count_to_the_limit_of_their_host(tmp_path: Path) -> None:
    """generate.max.count is 6: no list has more of a host, and all are fetched."""
    slow, quick = [f"http://slow/{n}" for n in range(20)], [f"http://q{n}/" for n in range(8)]
    web = web_of(links={url: [] for url in [*slow, *quick]})
    crawl = crawled(tmp_path, web, [*slow, *quick], [2.5], max_count=6)
    assert max(sum(host_of(url) == "slow" for url in urls) for urls in crawl.lists()) == 6
    assert crawl.requests() == dict.fromkeys([*slow, *quick], 1)


def of_host(crawl: Crawl, outcome: Outcome) -> list[int]:
    """How many URLs ended so, list by list."""
    return [results.ledger.outcomes[outcome] for results in crawl.ended]


SLOW = [f"http://slow/{n}" for n in range(30)]
QUICK = {f"http://q{n}/": [f"http://q{n}/{page}" for page in range(3)] for n in range(10)}
LINKED = [link for links in QUICK.values() for link in links]


def slow_and_quick() -> Web:
    """A host that takes long, and ten with a page each, that has three links."""
    return web_of(links={url: [] for url in [*SLOW, *LINKED]} | QUICK)


def test_a_list_that_is_too_slow_says_nothing_of_the_next_one(tmp_path: Path) -> None:
    """The threshold is missed in the tail that goes on: what is added to the list is asked for, and
    then it is judged by itself.
    """
    web = slow_and_quick()
    pressure = PressureSettings(min_pages=4, retries=4, check_after=0)
    crawl = crawled(tmp_path, web, [*SLOW, *QUICK], [2.5, 20.0], steps=10, pressure=pressure)
    assert not set(LINKED) - set(crawl.requests())
    too_slow = of_host(crawl, Outcome.SKIPPED_THROUGHPUT)
    assert too_slow[0] == 0 and too_slow[1] > 0
    assert not {url for url, fate in crawl.known.items() if fate not in DONE}


def test_a_time_limit_counts_from_the_beginning_of_a_list(tmp_path: Path) -> None:
    """It is over when the other steps have ended, or at once after a rest."""
    web = slow_and_quick()
    queues = replace(SETTINGS.queues, time_limit=1_000_000 + 8000)
    crawl = crawled(
        tmp_path, web, [*SLOW, *QUICK], [2.5, 20.0], steps=10, queues=queues, since=1_000_000
    )
    assert not set(LINKED) - set(crawl.requests())
    late = of_host(crawl, Outcome.SKIPPED_TIMELIMIT)
    assert late[:2] == [0, 12]  # a request takes 1.2 s: 3 before the turn, 8 with the steps, 7
    assert not {url for url, fate in crawl.known.items() if fate not in DONE}


class Endless(Crawl):
    """A crawl of a web to which hosts come with each list: one redirects to another, one has no
    page, one's robots.txt defers visits for a moment.
    """

    def __init__(self, folder: Path) -> None:
        super().__init__(folder, Web(VirtualClock(1_000_000), seconds=0.05), [])
        self.counts: list[Counter[str]] = []
        """What the fetch holds, every fifty lists."""
        self.opened: list[int] = []
        """The files that this process has open, after each list."""

    def urls(self, number: int) -> list[str]:
        web, urls = self.web, [f"http://h{number}-{host}/" for host in range(6)]
        web.links |= {key: [] for key in [*urls[2:], f"http://t{number}/"]}
        web.moved[urls[0]] = f"http://t{number}/"
        web.closed[host_of(urls[2])] = web.clock.seconds + 1
        return urls

    async def turned(self, turns: int) -> None:
        segment = self.segment()
        session = self.open(segment, [self.part(segment, 0, self.urls(0))])
        more_lists = asyncio.Event()
        session.loop.beside(more_lists.wait())
        running = asyncio.create_task(session.run())
        for number in range(1, turns):
            await self.settled(session, 1.2)
            old, segment = session.results, self.segment()
            part = segment.path / "crawl_generate" / "part-r-00000"
            await session.turn(self.files(segment, [part]))
            while old not in self.ended:
                await asyncio.sleep(0.01)
            self.ended.clear()
            self.web.asked.clear()
            rmtree(self.segments[-2].path)
            added = self.part(segment, 1, self.urls(number))
            await session.take(self.files(segment, [added]))
            self.opened.append(len(list(Path("/proc/self/fd").iterdir())))
            if number % 50 == 0:
                apart = self, self.web, COMPONENTS, session.loop.runner.memory
                self.counts.append(reached(session, but=apart))
        more_lists.set()
        await running


def reached(start: object, but: Iterable[object]) -> Counter[str]:
    """What can be reached from an object, by type; modules, classes and functions apart."""
    seen = {id(one) for one in but}
    found, left = Counter[str](), [start]
    while left:
        one = left.pop()
        if id(one) in seen or isinstance(one, ModuleType | FunctionType | type):
            continue
        seen.add(id(one))
        found[type(one).__name__] += 1
        left += gc.get_referents(one)
    return found


def test_list_after_list_opens_no_more_files(tmp_path: Path) -> None:
    crawl = Endless(tmp_path)
    run(crawl.web.clock, crawl.turned(12))
    assert len(crawl.opened) == 11
    # For a moment a thread has one more open; what is left open is there in the end.
    assert min(crawl.opened[-3:]) <= max(crawl.opened[:2])


@pytest.mark.slow
def test_nothing_is_kept_of_hosts_and_lists_that_are_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two hundred lists; of the hosts that the table at the end shows, as many as it says."""
    monkeypatch.setattr(stats, "MAX_HOSTS", 20)
    crawl = Endless(tmp_path)
    run(crawl.web.clock, crawl.turned(201))
    first, last = crawl.counts[0], crawl.counts[-1]
    assert last.total() <= 1.1 * first.total(), last - first


@pytest.mark.parametrize("steps", range(12))
def test_a_url_that_has_just_ended_does_not_go_on(tmp_path: Path, steps: int) -> None:
    """The list is turned over between the end of a URL that robots.txt denies and the moment in
    which the loop hears of it: it had two outcomes, and none in the next list, which ended a crawl.
    """
    web = web_of(denied={"h"})
    crawl = Crawl(tmp_path, web, ["http://h/"])

    async def turned() -> None:
        old = crawl.segment()
        session = crawl.open(old, [crawl.part(old, 0, ["http://h/"])])
        more_lists = asyncio.Event()
        session.loop.beside(more_lists.wait())
        running = asyncio.create_task(session.run())
        for _ in range(steps):
            await asyncio.sleep(0)
        new = crawl.segment()
        part = new.path / "crawl_generate" / "part-r-00000"
        await session.turn(crawl.files(new, [part]))
        more_lists.set()
        await running

    run(web.clock, turned())
    for segment in crawl.segments:
        listed = Counter(url for url, _ in segment.records("crawl_generate"))
        assert resume((segment.path / "_fetch").glob("log-*")).settled == listed
