"""The fetch loop on a web that lives in a dictionary: redirects, robots.txt, limits, interruptions,
no URL lost.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest

from minutch.clock import FakeClock, SystemClock
from minutch.conf import Configuration
from minutch.cycle.fetch import loop as loop_module
from minutch.cycle.fetch.decisions import RedirectRules
from minutch.cycle.fetch.frontier.hostmemory import Rest
from minutch.cycle.fetch.frontier.queueitems import FetchItem, QueueNames
from minutch.cycle.fetch.frontier.queues import FetchQueues
from minutch.cycle.fetch.ledger import Ledger, Outcome
from minutch.cycle.fetch.limits import FetchLimits, Pause, Visits, Wakeup
from minutch.cycle.fetch.loop import FetchLoop, Reporter
from minutch.cycle.fetch.redirectchain import ChainRunner, LinkFollower
from minutch.cycle.fetch.results.fetchlog import FetchLog, Frame, Part, frames
from minutch.cycle.fetch.results.fetchresults import FetchResults, resume
from minutch.cycle.fetch.results.recorder import LivePageParser, Recorder
from minutch.cycle.fetch.settings import (
    FetchSettings,
    FollowSettings,
    PressureSettings,
    QueueSettings,
    RedirectSettings,
    RobotsSettings,
)
from minutch.cycle.fetch.stats import FetchStats, Snapshot, together
from minutch.cycle.fetch.turnover import FetchState, InFlight
from minutch.cycle.parse.pageparser import ParsedPage
from minutch.errors import ProtocolError, StoreError
from minutch.plugin.points import Protocol, ProtocolOutput, ScoringFilter
from minutch.records import protocol as codes
from minutch.records.crawldatum import CrawlDatum
from minutch.records.metadata import Metadata
from minutch.records.parsedata import SUCCESS, SUCCESS_REDIRECT, ParseStatus
from minutch.records.protocol import Content, ProtocolStatus
from tests.support.fetchlists import Alone, index_of

QUICK = replace(
    FetchSettings.of(Configuration(), 0, threads=8),
    queues=QueueSettings(crawl_delay=0, exceptions_delay=0),
    redirects=RedirectSettings(),
    start_delay=0,
)


class NoScoring(ScoringFilter):
    """Leaves everything as it is."""

    def __init__(self) -> None:
        pass


@dataclass
class Rules:
    allowed: bool = True
    crawl_delay: float = -1
    defer_visits: bool = False
    failure: ProtocolStatus | None = None
    retry_after: str | None = None

    def is_allowed(self, url: str) -> bool:
        return self.allowed


Page = tuple[int, str] | Callable[[], Awaitable[ProtocolOutput]]


@dataclass
class Web(Protocol):
    """Pages by URL: a status code and its message, or a function."""

    pages: dict[str, Page] = field(default_factory=dict)
    robots: dict[str, Rules] = field(default_factory=dict)
    headers: dict[str, str] = field(default_factory=dict)
    asked: list[str] = field(default_factory=list)

    async def get_protocol_output(self, url: str, datum: CrawlDatum) -> ProtocolOutput:
        self.asked.append(url)
        page = self.pages.get(url, (codes.SUCCESS, ""))
        if callable(page):
            return await page()
        await asyncio.sleep(0)
        metadata = Metadata.of(self.headers)
        content = Content(url, url, b"<html>" + url.encode(), "text/html", metadata)
        return ProtocolOutput(content, ProtocolStatus(page[0], [page[1]] if page[1] else None))

    async def get_robot_rules(
        self, url: str, datum: CrawlDatum, robots_content: list[Content] | None
    ) -> Rules:  # type: ignore[override]
        if robots_content is not None:
            robots_content.append(
                Content("http://a/robots.txt", "http://a/robots.txt", b"x", "text/plain")
            )
        return self.robots.get(url, Rules())


@dataclass
class Result:
    loop: FetchLoop
    web: Web
    records: dict[str, list[CrawlDatum]]
    ledger: Ledger

    def status(self, url: str) -> list[tuple[str, str | None]]:
        return [(d.status_name, d.metadata.get_text("_pst_")) for d in self.records.get(url, [])]

    @property
    def outcomes(self) -> dict[Outcome, int]:
        return dict(self.ledger.outcomes)


class Listener:
    """Notes what it hears: a memory of hosts, and publishers."""

    wants_details = False

    def __init__(self) -> None:
        self.ticks: list[Snapshot] = []
        self.published: list[tuple[str, str, dict[str, object]]] = []
        self.busy: list[tuple[str, int]] = []

    def tick(self, snapshot: Snapshot) -> None:
        self.ticks.append(snapshot)

    def publish(self, kind: str, url: str, data: dict[str, object]) -> None:
        self.published.append((kind, url, data))

    def busy_until(self, host: str, time: int) -> None:
        self.busy.append((host, time))

    def rested(self, rests: list[Rest]) -> None:
        pass

    def close(self) -> None:
        pass


Follow = Callable[[QueueNames, FetchStats], LinkFollower]


def following(links: Callable[[int], list[FetchItem]]) -> Follow:
    """Every page has these links, by its depth."""

    class Follower(LinkFollower):
        def follow(self, page: ParsedPage, depth: int) -> list[FetchItem]:
            return links(depth)

    return lambda names, stats: Follower(FollowSettings(), names, stats)


class Bench:
    """Builds a loop over a Web."""

    def __init__(self, tmp_path: Path) -> None:
        self.path = tmp_path / "log-0"
        self.lists = 0

    def loop(
        self,
        web: Web,
        urls: Iterable[str],
        settings: FetchSettings = QUICK,
        *,
        listener: Listener | None = None,
        follow: Follow | None = None,
        parser: LivePageParser | None = None,
        settled: Counter[str] | None = None,
        clock: FakeClock | SystemClock | None = None,
    ) -> FetchLoop:
        clock = clock or SystemClock()
        listener = listener or Listener()
        names = QueueNames(settings.queues.mode, lambda host: host)
        entries = [(url, CrawlDatum(1, 100, 1.0)) for url in urls]
        self.lists += 1
        folder = self.path.parent / f"list-{self.lists}"
        index = index_of(folder, entries, mode=settings.queues.mode, settled=settled)
        queues = FetchQueues(settings.queues, index)
        recorder = Recorder(
            "20260101000000",
            settings,
            NoScoring(),
            content_type=lambda declared, url, data: declared,
            signature=lambda content: b"",
            parser=parser,
        )
        ledger, stats = Ledger(), FetchStats()
        ledger.generated = len(entries)
        results = FetchResults(recorder, FetchLog(self.path, ""), ledger, stats)
        wakeup, pause = Wakeup(), Pause()

        def protocol_of(url: str) -> Protocol:
            if url.startswith("ftp:"):
                raise ProtocolError("none", codes.PROTO_NOT_FOUND)
            return web

        runner = ChainRunner(
            settings,
            clock,
            queues,
            names,
            protocol_of,
            RedirectRules(settings.redirects, lambda url: url, lambda url: url),
            stats,
            listener,
            listener if settings.publish else None,
            pause,
            wakeup,
            None if follow is None else follow(names, stats),
        )
        visits = Visits(queues, clock, names, wakeup)
        state = FetchState(results, Alone(), InFlight(visits))
        limits = FetchLimits(settings, queues, pause)
        reporter = Reporter(clock, queues, state, limits, listener.tick, listener.wants_details)
        return FetchLoop(clock, queues, runner, state, limits, reporter, wakeup)

    def result(self, loop: FetchLoop, web: Web) -> Result:
        loop.state.results.log.close()
        records: dict[str, list[CrawlDatum]] = {}
        for frame in frames(self.path):
            for entry in frame.entries:
                if entry.part is Part.FETCH:
                    records.setdefault(entry.key.decode(), []).append(
                        CrawlDatum.from_bytes(entry.value)
                    )
        return Result(loop, web, records, loop.state.results.ledger)

    async def fetch(
        self, web: Web, urls: Iterable[str], settings: FetchSettings = QUICK, **more: object
    ) -> Result:
        loop = self.loop(web, urls, settings, **more)  # type: ignore[arg-type]
        await asyncio.wait_for(loop.run(), 20)
        result = self.result(loop, web)
        result.ledger.check("test")
        return result


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(tmp_path)


def urls(count: int, host: str = "a") -> list[str]:
    return [f"http://{host}/{n}" for n in range(count)]


async def test_every_page_is_fetched_once(bench: Bench) -> None:
    web = Web()
    wanted = [url for host in "abc" for url in urls(30, host)]
    found = await bench.fetch(web, wanted)
    assert sorted(web.asked) == sorted(wanted) == sorted(found.records)
    assert found.outcomes == {Outcome.FETCHED: 90}
    assert found.loop.state.results.stats.pages == 90


async def test_each_status_has_its_outcome(bench: Bench) -> None:
    pages: dict[str, Page] = {
        "http://a/gone": (codes.GONE, "x"),
        "http://a/404": (codes.NOTFOUND, "x"),
        "http://a/401": (codes.ACCESS_DENIED, "x"),
        "http://a/304": (codes.NOTMODIFIED, "x"),
        "http://a/500": (codes.EXCEPTION, "x"),
        "http://a/strange": (77, "x"),
        "http://a/301": (codes.MOVED, "http://b/"),
    }
    found = await bench.fetch(Web(pages), [*pages, "http://a/200", "ftp://a/"])
    assert found.outcomes == {
        Outcome.GONE: 3,
        Outcome.NOTMODIFIED: 1,
        Outcome.RETRY: 2,
        Outcome.SKIPPED_REFUSED: 1,
        Outcome.REDIRECTED: 1,
        Outcome.FETCHED: 1,
    }
    reason = "no protocol plugin for its scheme (plugin.includes)"
    assert found.status("ftp://a/") == [("linked", f"notfetching(20), lastModified=0: {reason}")]
    assert found.loop.state.results.stats.errors == 1


async def test_what_this_crawler_refuses_is_left_as_it_was(bench: Bench) -> None:
    """By its address guard, of a page or of its robots.txt; what a redirect leads to is no news for
    the CrawlDb.
    """
    refused = codes.BLOCKED, "java.io.IOException: Forbidden connection to IP address 10.0.0.1"
    pages: dict[str, Page] = {
        "http://a/": refused,
        "http://b/": refused,
        "http://d/": (codes.MOVED, "http://a/"),
    }
    robots = {"http://c/": Rules(failure=ProtocolStatus(refused[0], [refused[1]]))}
    found = await bench.fetch(
        Web(pages, robots), ["http://b/", "http://c/", "http://d/"], FOLLOWING
    )
    why = "private address not allowed (http.filter.ipaddress.include)"
    for url in ("http://b/", "http://c/"):
        assert found.status(url) == [("linked", f"notfetching(20), lastModified=0: {why}")]
    assert "http://a/" not in found.records and "http://a/" in found.web.asked
    assert found.outcomes == {Outcome.SKIPPED_REFUSED: 2, Outcome.REDIRECTED: 1}


async def test_redirects_are_written_down_for_later(bench: Bench) -> None:
    found = await bench.fetch(Web({"http://a/": (codes.TEMP_MOVED, "http://b/")}), ["http://a/"])
    assert found.status("http://a/") == [
        ("fetch_redir_temp", "temp_moved(13), lastModified=0: http://b/")
    ]
    (linked,) = found.records["http://b/"]
    assert linked.status_name == "linked"
    assert linked.metadata.get_text("_repr_") == "http://b/"
    assert found.web.asked == ["http://a/"]


FOLLOWING = replace(QUICK, redirects=RedirectSettings(max_redirects=2))
CHAIN: dict[str, tuple[int, str]] = {
    f"http://a/{n}": (codes.MOVED, f"http://a/{n + 1}") for n in range(5)
}


async def test_redirects_are_followed_up_to_the_limit(bench: Bench) -> None:
    found = await bench.fetch(Web(dict(CHAIN)), ["http://a/0"], FOLLOWING)
    assert found.web.asked == ["http://a/0", "http://a/1", "http://a/2"]
    assert [found.status(f"http://a/{n}")[0][0] for n in range(4)] == [
        *["fetch_redir_perm"] * 3,
        "linked",
    ]
    assert found.outcomes == {Outcome.REDIRECTED: 1}
    assert found.loop.state.results.stats.events["redirect_count_exceeded_total"] == 1


async def test_exceeding_redirects_can_be_dropped(bench: Bench) -> None:
    settings = replace(QUICK, redirects=RedirectSettings(max_redirects=2, exceeded_skip=True))
    found = await bench.fetch(Web(dict(CHAIN)), ["http://a/0"], settings)
    assert "http://a/3" not in found.records


async def test_a_followed_redirect_ends_in_its_page(bench: Bench) -> None:
    found = await bench.fetch(
        Web({"http://a/0": (codes.MOVED, "http://b/x")}), ["http://a/0"], FOLLOWING
    )
    assert found.status("http://b/x") == [("fetch_success", "success(1), lastModified=0")]
    assert found.outcomes == {Outcome.REDIRECTED: 1}


async def test_redirect_targets_met_lately_are_not_fetched_twice(bench: Bench) -> None:
    settings = replace(FOLLOWING, redirects=replace(FOLLOWING.redirects, dedup_seconds=60))
    pages = {f"http://{host}/": (codes.MOVED, "http://z/") for host in "abc"}
    found = await bench.fetch(Web(dict(pages)), pages, settings)
    assert found.web.asked.count("http://z/") == 1
    assert found.loop.state.results.stats.events["redirect_deduplicated_total"] == 2


async def test_robots_txt_denies(bench: Bench, caplog: pytest.LogCaptureFixture) -> None:
    web = Web(robots={"http://a/0": Rules(allowed=False), "http://a/1": Rules(crawl_delay=40_000)})
    found = await bench.fetch(web, urls(3))
    assert web.asked == ["http://a/2"]
    denied = "robots_denied(18), lastModified=0"
    assert found.status(urls(1)[0]) == found.status(urls(2)[1]) == [("fetch_gone", denied)]
    assert "http://a/1: Crawl-Delay of 40 s, above fetcher.max.crawl.delay" in caplog.messages
    assert found.outcomes == {Outcome.DENIED: 2, Outcome.FETCHED: 1}
    assert found.loop.state.results.stats.events["robots_denied_maxcrawldelay_total"] == 1


async def test_robots_txt_out_of_reach(bench: Bench) -> None:
    refused = ProtocolStatus(codes.EXCEPTION, ["java.net.ConnectException: Connection refused"])
    denied = ProtocolStatus(codes.ROBOTS_DENIED, ["robots.txt: http code=500"])
    web = Web(robots={"http://a/0": Rules(failure=refused), "http://b/0": Rules(failure=denied)})
    found = await bench.fetch(web, ["http://a/0", "http://b/0"])
    assert web.asked == []
    assert found.status("http://a/0")[0][0] == found.status("http://b/0")[0][0] == "fetch_retry"
    assert found.outcomes == {Outcome.RETRY: 1, Outcome.DENIED: 1}


async def test_robots_txt_is_stored_if_asked_for(bench: Bench) -> None:
    loop = bench.loop(Web(), urls(1), replace(QUICK, store_robots=True))
    await loop.run()
    loop.state.results.log.close()
    keys = [
        entry.key
        for frame in frames(bench.path)
        for entry in frame.entries
        if entry.part is Part.CONTENT
    ]
    assert keys == [b"http://a/robots.txt", b"http://a/0"]


async def test_deferred_visits_come_back_and_end(bench: Bench) -> None:
    settings = replace(QUICK, robots=RobotsSettings(defer_delay=5, defer_retries=2))
    web = Web(robots={url: Rules(defer_visits=True) for url in urls(3)})
    found = await bench.fetch(web, [*urls(3), "http://b/"], settings)
    assert web.asked == ["http://b/"]
    assert found.outcomes == {Outcome.DEFERRED: 3, Outcome.FETCHED: 1}
    assert found.status("http://a/1") == [
        ("linked", "notfetching(20), lastModified=0: robots.txt defers visits")
    ]


async def test_a_deferral_that_is_lifted(bench: Bench) -> None:
    settings = replace(QUICK, robots=RobotsSettings(defer_delay=5, defer_retries=2))
    rules = Rules(defer_visits=True)
    web = Web(robots={"http://a/0": rules})
    original = web.get_robot_rules

    async def once(url: str, datum: CrawlDatum, contents: list[Content] | None) -> Rules:
        result = replace(await original(url, datum, contents))
        rules.defer_visits = False
        return result

    web.get_robot_rules = once  # type: ignore[method-assign, assignment]
    found = await bench.fetch(web, urls(2), settings)
    assert found.outcomes == {Outcome.FETCHED: 2}


async def test_exceptions_purge_the_queue_and_nobody_is_lost(bench: Bench) -> None:
    queues = QueueSettings(crawl_delay=0, max_exceptions=3, exceptions_delay=0)
    settings = replace(QUICK, queues=queues, places=1)
    web = Web(dict.fromkeys(urls(10), (codes.EXCEPTION, "boom")))
    found = await bench.fetch(web, [*urls(10), *urls(2, "b")], settings)
    assert found.outcomes == {Outcome.RETRY: 3, Outcome.SKIPPED_EXCEPTIONS: 7, Outcome.FETCHED: 2}
    assert found.status("http://a/9")[0][0] == "linked"


async def test_a_plugin_that_breaks_costs_only_its_page(bench: Bench) -> None:
    async def breaks() -> ProtocolOutput:
        raise ZeroDivisionError("oops")

    found = await bench.fetch(Web({"http://a/1": breaks}), urls(3))
    assert found.outcomes == {Outcome.FETCHED: 2, Outcome.RETRY: 1}
    assert found.status("http://a/1") == [("fetch_retry", "failed(2), lastModified=0")]


async def test_time_limit_ends_the_fetch(bench: Bench) -> None:
    clock = FakeClock(1_000_000)
    settings = replace(QUICK, queues=QueueSettings(crawl_delay=1000, time_limit=1_060_000))
    web = Web()
    loop = bench.loop(web, urls(10), settings, clock=clock)

    async def passes() -> ProtocolOutput:
        clock.advance(61)
        loop.tick(loop.reporter.snapshot())
        return ProtocolOutput(None, ProtocolStatus(codes.GONE))

    web.pages["http://a/0"] = passes
    await loop.run()
    found = bench.result(loop, web)
    found.ledger.check("test")
    assert found.outcomes == {Outcome.GONE: 1, Outcome.SKIPPED_TIMELIMIT: 9}


async def test_too_slow_a_fetch_is_ended(bench: Bench) -> None:
    clock = FakeClock()
    web = Web()
    settings = replace(
        QUICK,
        queues=QueueSettings(crawl_delay=10_000),
        pressure=PressureSettings(min_pages=5, retries=2, check_after=-1),
    )
    loop = bench.loop(web, urls(4), settings, clock=clock)

    async def slow() -> ProtocolOutput:
        for _ in range(2):
            loop.tick(loop.reporter.snapshot(pages=1))
        return ProtocolOutput(None, ProtocolStatus(codes.GONE))

    web.pages["http://a/0"] = slow
    await loop.run()
    assert bench.result(loop, web).outcomes == {Outcome.GONE: 1, Outcome.SKIPPED_THROUGHPUT: 3}


async def test_bandwidth_target_changes_the_threads(bench: Bench) -> None:
    pressure = PressureSettings(bits_per_second=1000, max_threads=20, check_every=1)
    web = Web()
    loop = bench.loop(web, urls(1), replace(QUICK, pressure=pressure))

    async def wide() -> ProtocolOutput:
        loop.queues.settings = replace(loop.queues.settings, max_threads=100)
        loop.state.results.stats.bytes = 10
        for _ in range(2):
            loop.tick(loop.reporter.snapshot())
        return ProtocolOutput(None, ProtocolStatus(codes.GONE))

    web.pages["http://a/0"] = wide
    await loop.run()
    assert loop.reporter.snapshot().threads == 8 + 11
    loop.state.results.log.close()


async def test_a_request_that_hangs_is_given_up(bench: Bench) -> None:
    clock = FakeClock()
    web = Web()
    loop = bench.loop(web, urls(2), replace(QUICK, hung_after=1000), clock=clock)

    async def hangs() -> ProtocolOutput:
        clock.advance(2)
        assert loop.reporter.snapshot().oldest_wait == 2.0
        running = asyncio.get_running_loop()
        running.call_soon(lambda: loop.tick(loop.reporter.snapshot()))
        await asyncio.Event().wait()
        raise AssertionError

    web.pages["http://a/0"] = hangs
    await loop.run()
    found = bench.result(loop, web)
    assert loop.reporter.snapshot().oldest_wait == 0.0
    assert found.outcomes == {Outcome.RETRY: 1, Outcome.FETCHED: 1}
    assert "java.net.SocketTimeoutException" in str(found.status("http://a/0"))
    assert found.loop.state.results.stats.events["hung_threads_total"] == 1


async def test_a_queue_that_rests_too_long_is_given_up(bench: Bench) -> None:
    clock = FakeClock()
    settings = replace(QUICK, hung_after=1000, queues=QueueSettings(crawl_delay=3_600_000))
    web = Web()
    loop = bench.loop(web, urls(3), settings, clock=clock)
    task = asyncio.create_task(loop.run())
    while loop.state.results.ledger.settled < 1:
        await asyncio.sleep(0)
    clock.advance(2)
    loop.tick(loop.reporter.snapshot())
    await task
    assert bench.result(loop, web).outcomes == {Outcome.FETCHED: 1, Outcome.SKIPPED_TIMEOUT: 2}


async def test_who_leaves_finishes_what_is_in_flight_and_settles_nothing_else(bench: Bench) -> None:
    web = Web()
    loop = bench.loop(web, urls(20), replace(QUICK, places=1))

    async def slow() -> ProtocolOutput:
        loop.leave()
        loop.leave()
        loop.stop(Outcome.SKIPPED_TIMELIMIT)
        loop.add(FetchItem("http://b/handed-over", CrawlDatum(), "b"))
        await asyncio.sleep(0)
        return ProtocolOutput(Content("http://a/0", "http://a/0"), ProtocolStatus(codes.SUCCESS))

    web.pages["http://a/0"] = slow
    await asyncio.wait_for(loop.run(), 20)
    found = bench.result(loop, web)
    assert found.outcomes == {Outcome.FETCHED: 1}
    assert list(found.records) == web.asked == ["http://a/0"]


async def test_redirects_and_links_are_left_to_the_next_run(bench: Bench) -> None:
    """Neither followed nor recorded as links: the log says that they are to be fetched."""

    def links(depth: int) -> list[FetchItem]:
        return [FetchItem("http://a/link", CrawlDatum(), "a", None, 1)]

    web = Web()
    loop = bench.loop(
        web, ["http://a/0", "http://b/0"], FOLLOWING, parser=Parsing(), follow=following(links)
    )

    async def redirects() -> ProtocolOutput:
        loop.leave()
        return ProtocolOutput(None, ProtocolStatus(codes.MOVED, ["http://c/"]))

    async def waits() -> ProtocolOutput:
        await asyncio.sleep(0.01)
        return ProtocolOutput(Content("http://b/0", "http://b/0"), ProtocolStatus(codes.SUCCESS))

    web.pages = {"http://a/0": redirects, "http://b/0": waits}
    await asyncio.wait_for(loop.run(), 20)
    found = bench.result(loop, web)
    assert sorted(web.asked) == sorted(found.records) == ["http://a/0", "http://b/0"]
    assert sorted(resume([bench.path]).follow) == ["http://a/link", "http://c/"]


async def test_redirects_are_not_followed_when_stopping(bench: Bench) -> None:
    web = Web()
    loop = bench.loop(web, ["http://a/0"], FOLLOWING)

    async def stops() -> ProtocolOutput:
        loop.stop(Outcome.SKIPPED_TIMELIMIT)
        return ProtocolOutput(None, ProtocolStatus(codes.MOVED, ["http://b/"]))

    web.pages["http://a/0"] = stops
    await loop.run()
    assert bench.result(loop, web).status("http://b/")[0][0] == "linked"


async def test_what_an_earlier_run_settled_is_left_out(bench: Bench) -> None:
    web = Web()
    loop = bench.loop(web, urls(5), settled=Counter({"http://a/1": 1, "http://a/3": 1}))
    await loop.run()
    loop.state.results.log.close()
    assert sorted(web.asked) == ["http://a/0", "http://a/2", "http://a/4"]


async def test_a_log_that_can_not_be_written_ends_the_fetch(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    loop = bench.loop(Web(), urls(5))

    def full(frame: object) -> None:
        raise StoreError("disk full")

    monkeypatch.setattr(loop.state.results.log, "append", full)
    with pytest.raises(StoreError, match="disk full"):
        await loop.run()


async def test_retry_after_is_kept_and_told(bench: Bench) -> None:
    listener, clock = Listener(), FakeClock(1_000_000)
    web = Web({"http://a/0": (codes.EXCEPTION, "Http code=503")}, headers={"retry-after": "3600"})
    loop = bench.loop(web, urls(3), replace(QUICK, places=1), listener=listener, clock=clock)
    await loop.run()
    found = bench.result(loop, web)
    assert listener.busy == [("a", 1_000_000 + 3_600_000)]
    assert found.outcomes == {Outcome.RETRY: 1, Outcome.DEFERRED: 2}
    assert (
        found.status("http://a/2")[0][1]
        == "notfetching(20), lastModified=0: the host asked to come back later"
    )


class Refreshing:
    """Parses every page of host a into a meta refresh."""

    pages = 0

    def __init__(self, seconds: str) -> None:
        self.status = ParseStatus(SUCCESS, SUCCESS_REDIRECT, ["http://b/next", seconds])

    async def parse(self, content: Content, fetch_time: int) -> ParsedPage:
        return ParsedPage(status=self.status if "//a/" in content.url else ParseStatus(SUCCESS))

    def hurry(self) -> None:
        pass

    def close(self) -> None:
        pass


async def test_meta_refresh_is_a_redirect(bench: Bench) -> None:
    found = await bench.fetch(Web(), ["http://a/"], QUICK, parser=Refreshing("5"))
    assert found.status("http://a/")[0][0] == "fetch_success"
    assert found.status("http://b/next")[0][0] == "linked"


class Parsing:
    """A parser that finds nothing by itself."""

    pages = 0

    async def parse(self, content: Content, fetch_time: int) -> ParsedPage:
        return ParsedPage(status=ParseStatus(SUCCESS))

    def hurry(self) -> None:
        pass

    def close(self) -> None:
        pass


class Slow(Parsing):
    """Has all pages before it parses one; `pages` take no place meanwhile."""

    def __init__(self, expected: int, *, full: bool = False) -> None:
        self.waiting = 0
        self._all = asyncio.Barrier(expected)
        self._full = full

    @property
    def pages(self) -> int:  # type: ignore[override]
        return 0 if self._full else self.waiting

    async def parse(self, content: Content, fetch_time: int) -> ParsedPage:
        self.waiting += 1
        await self._all.wait()
        self.waiting -= 1
        return await super().parse(content, fetch_time)


async def test_a_page_that_is_parsed_takes_no_place(bench: Bench) -> None:
    queues = QueueSettings(crawl_delay=0, max_threads=10)
    found = await bench.fetch(
        Web(), urls(6), replace(QUICK, places=1, queues=queues), parser=Slow(6)
    )
    assert found.outcomes == {Outcome.FETCHED: 6}
    parser = Slow(2, full=True)
    found = await bench.fetch(
        Web(), urls(6), replace(QUICK, places=2, queues=queues), parser=parser
    )
    assert found.outcomes == {Outcome.FETCHED: 6}


class Gathering(Slow):
    """Parses no page before it is told to hurry."""

    def __init__(self) -> None:
        super().__init__(1)
        self.told: list[int] = []
        self._hurried = asyncio.Event()

    async def parse(self, content: Content, fetch_time: int) -> ParsedPage:
        self.waiting += 1
        await self._hurried.wait()
        self.waiting -= 1
        return ParsedPage(status=ParseStatus(SUCCESS))

    def hurry(self) -> None:
        self.told.append(self.waiting)
        self._hurried.set()


async def test_pages_are_gathered_until_nothing_else_is_to_come(bench: Bench) -> None:
    """Pauses between requests are no end, however long: pages come after them."""
    parser = Gathering()
    queues = QueueSettings(crawl_delay=50, max_threads=1)
    found = await bench.fetch(Web(), urls(6), replace(QUICK, queues=queues), parser=parser)
    assert found.outcomes == {Outcome.FETCHED: 6}
    assert parser.told[0] == 6


async def test_links_are_followed_in_the_same_fetch(bench: Bench) -> None:
    def links(depth: int) -> list[FetchItem]:
        url = f"http://a/d{depth + 1}"
        return [FetchItem(url, CrawlDatum(), "a", None, depth + 1)] if depth < 2 else []

    found = await bench.fetch(
        Web(), ["http://a/0"], QUICK, parser=Parsing(), follow=following(links)
    )
    assert found.web.asked == ["http://a/0", "http://a/d1", "http://a/d2"]
    assert found.outcomes == {Outcome.FETCHED: 1, Outcome.FOLLOWED: 2}


@pytest.mark.parametrize("outcome", [Outcome.SKIPPED_THROUGHPUT, Outcome.SKIPPED_TIMELIMIT])
async def test_a_stop_stops_followed_links_and_what_others_hand_over(
    bench: Bench, outcome: Outcome
) -> None:
    """They end as what waited does: recorded, and not asked for."""

    def links(depth: int) -> list[FetchItem]:
        loop.stop(outcome)
        loop.add(FetchItem("http://b/handed-over", CrawlDatum(), "b"))
        return [FetchItem(f"http://a/d{n}", CrawlDatum(), "a", None, 1) for n in range(3)]

    web = Web()
    loop = bench.loop(web, ["http://a/0"], QUICK, parser=Parsing(), follow=following(links))
    await asyncio.wait_for(loop.run(), 20)
    found = bench.result(loop, web)
    assert web.asked == ["http://a/0"]
    assert found.outcomes == {Outcome.FETCHED: 1, Outcome.FOLLOWED: 4}
    reason = f"notfetching(20), lastModified=0: {outcome.reason}"
    for url in ("http://a/d0", "http://a/d2", "http://b/handed-over"):
        assert found.status(url) == [("linked", reason)]


async def test_what_is_handed_over_to_a_fetch_that_leaves_is_left_to_the_next_run(
    bench: Bench,
) -> None:
    """Both processes have it in their logs, so it may not be settled: not even as past the time
    limit.
    """

    def links(depth: int) -> list[FetchItem]:
        loop.leave()
        loop.queues.settings = replace(loop.queues.settings, time_limit=1)
        loop.add(FetchItem("http://b/handed-over", CrawlDatum(), "b"))
        return []

    web = Web()
    loop = bench.loop(web, ["http://a/0"], QUICK, parser=Parsing(), follow=following(links))
    await asyncio.wait_for(loop.run(), 20)
    assert bench.result(loop, web).outcomes == {Outcome.FETCHED: 1}


async def test_threads_start_one_after_the_other(bench: Bench) -> None:
    clock = FakeClock()
    seen: list[int] = []
    web = Web()
    settings = replace(QUICK, start_delay=100, queues=QueueSettings(crawl_delay=0, max_threads=10))
    loop = bench.loop(web, urls(6), settings, clock=clock)

    async def counts() -> ProtocolOutput:
        seen.append(loop.reporter.snapshot().active)
        clock.advance(0.1)
        loop.wakeup()
        for _ in range(3):
            await asyncio.sleep(0)
        return ProtocolOutput(None, ProtocolStatus(codes.GONE))

    for url in urls(6):
        web.pages[url] = counts
    await loop.run()
    loop.state.results.log.close()
    assert seen[:3] == [1, 2, 3]


async def test_the_loop_wakes_by_itself(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    """When a queue has rested, and when the next thread may start: nothing else wakes it here."""
    monkeypatch.setattr(loop_module, "TICK", 1e6)
    settings = replace(QUICK, start_delay=20, places=3, queues=QueueSettings(crawl_delay=20))
    web = Web()
    everybody = asyncio.Barrier(3)

    async def waits() -> ProtocolOutput:
        await everybody.wait()
        return ProtocolOutput(None, ProtocolStatus(codes.GONE))

    web.pages = {f"http://{host}/0": waits for host in "abc"}
    listed = [*web.pages, "http://a/1", "http://a/2"]
    found = await asyncio.wait_for(bench.fetch(web, listed, settings), 60)
    assert found.outcomes == {Outcome.GONE: 3, Outcome.FETCHED: 2}


async def test_events_are_published(bench: Bench) -> None:
    listener = Listener()
    await bench.fetch(Web(), urls(1), replace(QUICK, publish=True), listener=listener)
    assert listener.published == [
        ("START", "http://a/0", {}),
        ("END", "http://a/0", {"status": "success"}),
    ]


async def test_a_state_has_all_counts_of_one_moment(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The outcomes that a state shows are those of the URLs that it counts as done, after every
    page and in the sum of several processes' states.
    """
    web = Web()
    loop = bench.loop(web, urls(20))
    states: list[Snapshot] = []
    write = FetchResults.write

    def written(results: FetchResults, frame: Frame) -> None:
        write(results, frame)
        states.append(loop.reporter.snapshot())

    monkeypatch.setattr(FetchResults, "write", written)
    await asyncio.wait_for(loop.run(), 60)
    assert [state.done for state in states] == list(range(1, 21))
    for state in (*states, together(states, None)):
        assert state.outcomes == {int(Outcome.FETCHED): state.done}


async def test_depth_of_the_queues_is_bounded(bench: Bench) -> None:
    """Hosts of ten pages each: two are begun at a time."""
    most = 0

    class Watching(FetchQueues):
        def take(self, now: int) -> FetchItem | None:
            nonlocal most
            most = max(most, self.waiting - self.listed.left)
            return super().take(now)

    settings = replace(QUICK, queues=replace(QUICK.queues, depth=10))
    loop = bench.loop(Web(), [url for n in range(20) for url in urls(10, f"h{n}")], settings)
    loop.queues.__class__ = Watching
    await loop.run()
    loop.state.results.log.close()
    assert 10 < most < 20
    assert loop.state.results.ledger.settled == 200
