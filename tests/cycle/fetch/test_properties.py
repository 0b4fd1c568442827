"""Every fetcher and robots.txt property of Nutch's acts: one test each, on a clock that runs as
fast as the test.

A test is called like its property. `fetch` runs the whole loop over a web in a dictionary; what was
asked for when, in seconds, and how each URL ended is what the tests look at.
"""

from __future__ import annotations

import ast
import asyncio
import csv
from collections import Counter
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path

import httpx
import pytest

from minutch.conf import Configuration
from minutch.cycle.fetch.frontier.frontier import LinkFollower
from minutch.cycle.fetch.ledger import Outcome
from minutch.cycle.fetch.loop import FetchLoop, Snapshot
from minutch.cycle.fetch.settings import FetchSettings
from minutch.cycle.parse.pageparser import ParsedPage
from minutch.plugin.points import ProtocolOutput
from minutch.records import protocol as codes
from minutch.records.crawldatum import CrawlDatum
from minutch.records.parsedata import SUCCESS, ParseStatus
from minutch.records.protocol import Content, ProtocolStatus
from plugins.protocol_http.http import Http
from tests.cycle.fetch.test_loop import Bench, Listener, Rules, Web
from tests.support.golden import PROJECT, SHARED
from tests.support.virtualtime import VirtualClock, run

PLAIN = {
    "http.agent.name": "me",
    "fetcher.server.delay": "0",
    "fetcher.threads.start.delay": "0",
    "fetcher.exceptions.per.queue.delay": "0",
    "fetcher.max.exceptions.per.queue": "-1",
}
"""Nothing that slows a fetch down."""


@dataclass
class Timed(Web):
    """A web that takes its time: `seconds` for each request, `size` bytes for each page."""

    clock: VirtualClock = field(default_factory=VirtualClock)
    seconds: float = 0.0
    size: int = 1
    when: list[tuple[float, str]] = field(default_factory=list)
    robots_asked: Counter[str] = field(default_factory=Counter)

    async def get_protocol_output(self, url: str, datum: CrawlDatum) -> ProtocolOutput:
        self.when.append((round(self.clock.seconds, 2), url.removeprefix("http://")))
        await asyncio.sleep(self.seconds)
        output = await super().get_protocol_output(url, datum)
        if output.content is not None:
            output.content.content = b"x" * self.size
        return output

    async def get_robot_rules(
        self, url: str, datum: CrawlDatum, robots_content: list[Content] | None
    ) -> Rules:  # type: ignore[override]
        self.robots_asked[url] += 1
        return await super().get_robot_rules(url, datum, robots_content)


class Linking:
    """Every page has links, numbered on from its own."""

    pages = 0

    def __init__(self, links: Callable[[str], list[str]]) -> None:
        self._links = links

    async def parse(self, content: Content, fetch_time: int) -> ParsedPage:
        url = content.url
        return ParsedPage(status=ParseStatus(SUCCESS), outlinks=[(url, self._links(url))])

    def hurry(self) -> None:
        pass

    def close(self) -> None:
        pass


@dataclass
class Fetched:
    """How a fetch went."""

    web: Timed
    loop: FetchLoop
    snapshots: list[Snapshot]

    @property
    def times(self) -> list[float]:
        return [seconds for seconds, _ in self.web.when]

    @property
    def asked(self) -> list[str]:
        return [url for _, url in self.web.when]

    @property
    def outcomes(self) -> dict[Outcome, int]:
        return dict(self.loop.state.results.ledger.outcomes)


@dataclass
class Fetch:
    """Runs fetches in a folder."""

    folder: Path

    def __call__(
        self,
        urls: str | list[str],
        values: dict[str, str] | None = None,
        web: Timed | None = None,
        *,
        links: Callable[[str], list[str]] | None = None,
        **options: int,
    ) -> Fetched:
        """`urls` without `http://`, separated by blanks."""
        web = web or Timed()
        conf = Configuration.load([]).with_values(PLAIN | (values or {}))
        settings = FetchSettings.of(conf, web.clock.now(), **options)
        listener = Listener()
        given = urls.split() if isinstance(urls, str) else urls
        (self.folder / "log-0").unlink(missing_ok=True)

        async def go() -> FetchLoop:
            listed = [f"http://{url}" for url in given]
            loop = Bench(self.folder).loop(
                web,
                listed,
                settings,
                listener=listener,
                follow=None
                if links is None
                else lambda names, stats: LinkFollower(settings.follow, names, stats, listed),
                parser=None if links is None else Linking(links),
                clock=web.clock,  # type: ignore[arg-type]
            )
            await loop.run()
            loop.state.results.log.close()
            return loop

        loop = run(web.clock, go())
        loop.state.results.ledger.check("test")
        return Fetched(web, loop, listener.ticks)


@pytest.fixture
def fetch(tmp_path: Path) -> Fetch:
    return Fetch(tmp_path)


def pages(count: int, host: str = "a") -> list[str]:
    return [f"{host}/{n}" for n in range(count)]


def failing(urls: list[str], **more: float) -> Timed:
    return Timed(
        pages=dict.fromkeys((f"http://{url}" for url in urls), (codes.EXCEPTION, "boom")), **more
    )  # type: ignore[arg-type]


# -- delays ----------------------------------------------------------------------------------------


def test_fetcher_server_delay(fetch: Fetch) -> None:
    found = fetch([*pages(3), *pages(2, "b")], {"fetcher.server.delay": "2.5"}, Timed(seconds=1))
    assert found.web.when == [(0, "a/0"), (0, "b/0"), (3.5, "a/1"), (3.5, "b/1"), (7.0, "a/2")]


def test_fetcher_tdmrep_takes_the_turn_of_a_page(fetch: Fetch) -> None:
    """The pages wait for the host's delay behind it, those that robots.txt denies, too."""

    class OnlyFiles(Rules):
        def is_allowed(self, url: str) -> bool:
            return "/.well-known/" in url

    for wanted, first in (("false", []), ("true", [(0, "a/.well-known/tdmrep.json")])):
        values = {"fetcher.server.delay": "5", "fetcher.tdmrep": wanted}
        found = fetch("a/1", values, Timed(seconds=1))
        assert found.web.when == [*first, (6.0 * len(first), "a/1")]
        assert found.outcomes == {Outcome.FETCHED: 1}
    found = fetch("a/0", values, Timed(robots={"http://a/0": OnlyFiles()}))
    assert (found.asked, found.outcomes) == (["a/.well-known/tdmrep.json"], {Outcome.DENIED: 1})
    limited = values | {"fetcher.max.crawl.delay": "9"}
    slow = {f"http://a/{path}": Rules(crawl_delay=10_000) for path in ("0", "1")}
    assert fetch("a/0", limited, Timed(robots=slow)).asked == []


def test_fetcher_server_min_delay(fetch: Fetch) -> None:
    values = {
        "fetcher.threads.per.queue": "2",
        "fetcher.server.min.delay": "1.5",
        "fetcher.server.delay": "60",
    }
    assert fetch(pages(4), values, Timed(seconds=1)).times == [0, 0, 2.5, 2.5]


def test_fetcher_max_crawl_delay(fetch: Fetch) -> None:
    for limit, outcomes in (
        ("9", {Outcome.DENIED: 2}),
        ("10", {Outcome.FETCHED: 2}),
        ("-1", {Outcome.FETCHED: 2}),
    ):
        web = Timed(robots={f"http://{url}": Rules(crawl_delay=10_000) for url in pages(2)})
        assert fetch(pages(2), {"fetcher.max.crawl.delay": limit}, web).outcomes == outcomes


def test_fetcher_min_crawl_delay(fetch: Fetch) -> None:
    for shortest, between in (("0", 1.0), ("4", 4.0)):
        web = Timed(robots={f"http://{url}": Rules(crawl_delay=1000) for url in pages(2)})
        assert fetch(pages(2), {"fetcher.min.crawl.delay": shortest}, web).times == [0, between]
    web = Timed(robots={f"http://{url}": Rules(crawl_delay=1000) for url in pages(2)})
    assert fetch(pages(2), {"fetcher.server.delay": "3"}, web).times == [0, 3]


# -- threads and queues ----------------------------------------------------------------------------


def test_fetcher_threads_fetch(fetch: Fetch) -> None:
    hosts = [f"h{n}/" for n in range(6)]
    assert fetch(hosts, {"fetcher.threads.fetch": "2"}, Timed(seconds=1)).times == [
        0,
        0,
        1,
        1,
        2,
        2,
    ]
    assert (
        fetch(hosts, {"fetcher.threads.fetch": "2"}, Timed(seconds=1), threads=6).times == [0] * 6
    )


def test_fetcher_threads_start_delay(fetch: Fetch) -> None:
    values = {"fetcher.threads.start.delay": "200"}
    assert fetch("a/ b/ c/", values, Timed(seconds=5), threads=9).times == [0, 0.2, 0.4]
    assert fetch("a/ b/ c/", values, Timed(seconds=5)).times == [0, 0, 0]


def test_fetcher_threads_per_queue(fetch: Fetch) -> None:
    assert fetch(pages(4), {"fetcher.threads.per.queue": "2"}, Timed(seconds=1)).times == [
        0,
        0,
        1,
        1,
    ]


def test_fetcher_queue_mode(fetch: Fetch) -> None:
    urls = "x.example.com/ y.example.com/ other.org/"
    for mode, times in (("byHost", [0, 0, 0]), ("byDomain", [0, 0, 1]), ("byIP", [0, 0, 0])):
        assert fetch(urls, {"fetcher.queue.mode": mode}, Timed(seconds=1)).times == times
    assert fetch("a/1 a/2", {"fetcher.queue.mode": "byIP"}, Timed(seconds=1)).times == [0, 1]


def test_fetcher_queue_depth_multiplier(fetch: Fetch) -> None:
    """No more hosts are begun while so many URLs wait."""
    urls = [f"h{host}/{page}" for host in range(20) for page in range(3)]
    values = {"fetcher.server.delay": "5"}
    found = fetch(urls, values, threads=2)
    assert max(snapshot.queues for snapshot in found.snapshots) == 20
    found = fetch(urls, values | {"fetcher.queue.depth.multiplier": "3"}, threads=2)
    assert max(snapshot.queues for snapshot in found.snapshots) < 6


class Unresolved(Timed):
    """No name server answers for the host the first two times."""

    async def get_robot_rules(
        self, url: str, datum: CrawlDatum, robots_content: list[Content] | None
    ) -> Rules:
        rules = await super().get_robot_rules(url, datum, robots_content)
        if self.robots_asked[url] > 2:
            return rules
        return Rules(defer_visits=True, failure=ProtocolStatus(codes.NOTFETCHING, ["no answer"]))


@pytest.mark.parametrize(("delay", "times"), [("300000", [90]), ("10000", [20])])
def test_a_host_that_could_not_be_asked_is_tried_soon(
    fetch: Fetch, delay: str, times: list[int]
) -> None:
    """After half a minute, then a minute; not later than one whose robots.txt defers visits."""
    values = {
        "http.robots.503.defer.visits.delay": delay,
        "http.robots.503.defer.visits.wait": "-1",
    }
    assert fetch("a/", values, Unresolved()).times == times


# -- limits ----------------------------------------------------------------------------------------


def test_fetcher_tail_share(fetch: Fetch) -> None:
    """Twenty hosts of two pages and one of a hundred: with it alone the fetch does not go on."""
    urls = [*(f"h{host}/{page}" for host in range(20) for page in range(2)), *pages(100, "big")]
    delay = {"fetcher.server.delay": "5"}
    assert fetch(urls, delay, Timed()).outcomes == {Outcome.FETCHED: 140}
    found = fetch(urls, delay | {"fetcher.tail.share": "0.1"}, Timed())
    assert found.outcomes[Outcome.FETCHED] + found.outcomes[Outcome.SKIPPED_TAIL] == 140
    assert 40 < found.outcomes[Outcome.FETCHED] < 45
    assert 5 <= found.times[-1] <= 15


def test_fetcher_timelimit_mins(fetch: Fetch) -> None:
    values = {"fetcher.timelimit.mins": "1", "fetcher.server.delay": "25"}
    found = fetch(pages(9), values, Timed(clock=VirtualClock(5_000_000)))
    assert found.times == [0, 25, 50]
    assert found.outcomes == {Outcome.FETCHED: 3, Outcome.SKIPPED_TIMELIMIT: 6}
    assert 60 <= found.web.clock.seconds < 62


def test_fetcher_max_exceptions_per_queue(fetch: Fetch) -> None:
    found = fetch([*pages(9), "b/"], {"fetcher.max.exceptions.per.queue": "3"}, failing(pages(9)))
    assert found.outcomes == {Outcome.RETRY: 3, Outcome.SKIPPED_EXCEPTIONS: 6, Outcome.FETCHED: 1}


def test_fetcher_exceptions_per_queue_in_row(fetch: Fetch) -> None:
    """Failures in a row, and those of the host, or all of them as in Nutch."""
    answers = ["Http code=500", "", "Http code=500", "Http code=403", "Http code=503", ""]
    statuses = {
        f"http://{url}": (codes.EXCEPTION, answer) if answer else (codes.SUCCESS, "")
        for url, answer in zip(pages(6), answers, strict=True)
    }

    def outcomes(in_row: str) -> dict[Outcome, int]:
        values = {
            "fetcher.exceptions.per.queue.in.row": in_row,
            "fetcher.max.exceptions.per.queue": "3",
        }
        return fetch(pages(6), values, Timed(pages=dict(statuses))).outcomes

    assert outcomes("true") == {Outcome.RETRY: 4, Outcome.FETCHED: 2}
    assert outcomes("false") == {
        Outcome.RETRY: 3,
        Outcome.FETCHED: 1,
        Outcome.SKIPPED_EXCEPTIONS: 2,
    }


def test_fetcher_exceptions_per_queue_delay(fetch: Fetch) -> None:
    values = {
        "fetcher.exceptions.per.queue.delay": "10",
        "fetcher.exceptions.per.queue.jitter": "0",
    }
    found = fetch(pages(4), values, failing(pages(3)))
    assert found.times == [0, 10, 30, 70]


def test_fetcher_exceptions_per_queue_clear_after(fetch: Fetch) -> None:
    """A queue that is empty is forgotten, with its failures, after this time and not before: here
    redirects lead to it again.
    """

    def asked(seconds: str) -> list[str]:
        values = {
            "fetcher.exceptions.per.queue.clear.after": seconds,
            "fetcher.max.exceptions.per.queue": "2",
            "http.redirect.max": "1",
        }
        web = failing(["a/0", "a/1", "a/2"])
        web.seconds = 100
        web.pages |= {f"http://s{n}/": (codes.MOVED, f"http://a/{n}") for n in (1, 2)}
        return fetch(["a/0", "s0/", "s1/", "s2/"], values, web, threads=1).asked

    assert asked("100000") == ["a/0", "s0/", "s1/", "a/1", "s2/"]
    assert asked("50") == ["a/0", "s0/", "s1/", "a/1", "s2/", "a/2"]


THROUGHPUT = {
    "fetcher.throughput.threshold.pages": "2",
    "fetcher.throughput.threshold.retries": "0",
    "fetcher.throughput.threshold.check.after": "0",
    "fetcher.server.delay": "1",
}


def seconds_to_give_up(fetch: Fetch, **values: str) -> tuple[int, int]:
    named = {f"fetcher.throughput.threshold.{name}": value for name, value in values.items()}
    found = fetch(pages(300), THROUGHPUT | {"fetcher.throughput.threshold.retries": "1"} | named)
    return round(found.web.clock.seconds), found.outcomes.get(Outcome.SKIPPED_THROUGHPUT, 0)


def test_fetcher_throughput_threshold_pages(fetch: Fetch) -> None:
    assert seconds_to_give_up(fetch, pages="-1")[1] == 0
    assert seconds_to_give_up(fetch, pages="1")[1] == 0
    assert seconds_to_give_up(fetch, pages="5")[1] > 290


def test_fetcher_throughput_threshold_retries(fetch: Fetch) -> None:
    few, many = (
        seconds_to_give_up(fetch, pages="5", retries=retries)[0] for retries in ("2", "30")
    )
    assert many - few == 28


def test_fetcher_throughput_threshold_check_after(fetch: Fetch) -> None:
    at_once = seconds_to_give_up(fetch, pages="5")[0]
    after = seconds_to_give_up(fetch, pages="5", **{"check.after": "2"})[0]
    assert at_once < 5 and 120 <= after < 125


def test_fetcher_threads_timeout_divisor(fetch: Fetch) -> None:
    for divisor, limit in (("2", 300), ("10", 60)):
        web = Timed(seconds=1000)
        found = fetch("a/", {"fetcher.threads.timeout.divisor": divisor}, web)
        assert found.outcomes == {Outcome.RETRY: 1}
        assert limit <= web.clock.seconds < limit + 3


# -- bandwidth -------------------------------------------------------------------------------------


def threads_over_time(fetch: Fetch, **values: str) -> list[int]:
    """One page of 1000 bytes a second and thread, four threads at first."""
    named = {"fetcher.bandwidth.target.check.everyNSecs": "10"}
    named |= {f"fetcher.{name}": value for name, value in values.items()}
    urls = [f"h{host}/{n}" for n in range(24) for host in range(30)]
    web = Timed(seconds=1, size=1000)
    return [s.threads for s in fetch(urls, named, web, threads=4).snapshots]


def test_fetcher_bandwidth_target(fetch: Fetch) -> None:
    assert set(threads_over_time(fetch)) == {4}
    wide, narrow = (
        threads_over_time(fetch, **{"bandwidth.target": kbits}) for kbits in ("80", "16")
    )
    assert wide[0] == narrow[0] == 4
    assert 8 <= max(wide) <= 14
    assert min(narrow[: len(narrow) // 2]) < 4


def test_fetcher_maxNum_threads(fetch: Fetch) -> None:
    assert max(threads_over_time(fetch, **{"bandwidth.target": "8000", "maxNum.threads": "7"})) == 7


def test_fetcher_bandwidth_target_check_everyNSecs(fetch: Fetch) -> None:
    def first_change(seconds: str) -> int:
        values = {"bandwidth.target": "800", "bandwidth.target.check.everyNSecs": seconds}
        return next(
            n for n, threads in enumerate(threads_over_time(fetch, **values)) if threads > 4
        )

    assert first_change("20") - first_change("10") == 10


# -- links that are followed -----------------------------------------------------------------------

FOLLOW = {
    "fetcher.parse": "true",
    "fetcher.follow.outlinks.depth": "2",
    "fetcher.follow.outlinks.num.links": "50",
}


def links_of(url: str) -> list[str]:
    return [f"{url}/{n}" for n in range(3)] + ["http://other/"]


def depths(found: Fetched) -> Counter[int]:
    return Counter(url.count("/") for url in found.asked)


def test_fetcher_follow_outlinks_depth(fetch: Fetch) -> None:
    for depth, expected in (("-1", {1: 1}), ("1", {1: 1, 2: 3}), ("2", {1: 1, 2: 3, 3: 9})):
        values = FOLLOW | {"fetcher.follow.outlinks.depth": depth}
        assert depths(fetch("a/x", values, links=links_of)) == expected


def test_fetcher_follow_outlinks_num_links(fetch: Fetch) -> None:
    values = FOLLOW | {"fetcher.follow.outlinks.num.links": "2"}
    assert depths(fetch("a/x", values, links=links_of)) == {1: 1, 2: 2, 3: 4}


def test_fetcher_follow_outlinks_depth_divisor(caplog: pytest.LogCaptureFixture) -> None:
    """In Nutch it counts for nothing but the number of links that is announced."""
    values = {"fetcher.follow.outlinks.depth": "3", "fetcher.follow.outlinks.num.links": "4"}
    for divisor, most in (("2", 12), ("6", 6 * 4 + 3 * 4 + 2 * 4)):
        conf = Configuration().with_values(
            values | {"fetcher.follow.outlinks.depth.divisor": divisor}
        )
        assert FetchSettings.of(conf, 0).follow.most == most


def test_fetcher_follow_outlinks_ignore_external(fetch: Fetch) -> None:
    assert "other/" not in fetch("a/x", FOLLOW, links=links_of).asked
    values = FOLLOW | {"fetcher.follow.outlinks.ignore.external": "false"}
    assert "other/" in fetch("a/x", values, links=links_of).asked


# -- redirects -------------------------------------------------------------------------------------


def chain(count: int) -> Timed:
    return Timed(pages={f"http://a/{n}": (codes.MOVED, f"http://a/{n + 1}") for n in range(count)})


def test_http_redirect_max(fetch: Fetch) -> None:
    for most in (0, 1, 3):
        assert fetch("a/0", {"http.redirect.max": str(most)}, chain(9)).asked == pages(most + 1)


def test_http_redirect_max_exceeded_skip(fetch: Fetch) -> None:
    for skip, written in (("false", True), ("true", False)):
        values = {"http.redirect.max": "1", "http.redirect.max.exceeded.skip": skip}
        found = fetch("a/0", values, chain(9))
        records = Bench(fetch.folder).result(found.loop, found.web).records
        assert ("http://a/2" in records) is written


def test_fetcher_redirect_dedupcache_seconds(fetch: Fetch) -> None:
    def times(seconds: str) -> int:
        web = Timed(pages={f"http://a/{n}": (codes.MOVED, "http://z/") for n in range(3)})
        values = {"http.redirect.max": "1", "fetcher.redirect.dedupcache.seconds": seconds}
        return fetch(pages(3), values | {"fetcher.server.delay": "10"}, web).asked.count("z/")

    assert [times("-1"), times("5"), times("15"), times("100")] == [3, 3, 2, 1]


def test_fetcher_redirect_dedupcache_size(fetch: Fetch) -> None:
    def times(size: str) -> int:
        targets = ["z", "y", "z"]
        web = Timed(
            pages={
                f"http://a/{n}": (codes.MOVED, f"http://{host}/") for n, host in enumerate(targets)
            }
        )
        values = {"http.redirect.max": "1", "fetcher.redirect.dedupcache.seconds": "100"}
        return fetch(
            pages(3), values | {"fetcher.redirect.dedupcache.size": size}, web
        ).asked.count("z/")

    assert [times("1000"), times("1"), times("0")] == [1, 2, 2]


# -- robots.txt ------------------------------------------------------------------------------------


def deferring(**more: float) -> Timed:
    return Timed(robots={f"http://{url}": Rules(defer_visits=True) for url in pages(2)}, **more)  # type: ignore[arg-type]


def test_http_robots_503_defer_visits_delay(fetch: Fetch) -> None:
    for delay in (1000, 60_000):
        values = {
            "http.robots.503.defer.visits.delay": str(delay),
            "http.robots.503.defer.visits.retries": "2",
            "http.robots.503.defer.visits.wait": "-1",
        }
        web = deferring()
        assert fetch(pages(2), values, web).outcomes == {Outcome.DEFERRED: 2}
        assert web.clock.seconds == pytest.approx(2 * delay / 1000, abs=1.5)


def test_http_robots_503_defer_visits_retries(fetch: Fetch) -> None:
    for retries in (0, 1, 4):
        web = deferring()
        values = {
            "http.robots.503.defer.visits.retries": str(retries),
            "http.robots.503.defer.visits.wait": "-1",
        }
        found = fetch(pages(2), values, web)
        assert found.outcomes == {Outcome.DEFERRED: 2}
        assert web.robots_asked.total() == retries + 1


def test_http_robots_503_defer_visits_wait(fetch: Fetch) -> None:
    """One host that defers visits keeps no fetch open: its pages stay as they are, for a later
    one.
    """
    for wait, delay, asked in (("30000", 300_000, 1), ("30000", 10_000, 4), ("400000", 300_000, 4)):
        web = deferring()
        values = {
            "http.robots.503.defer.visits.wait": wait,
            "http.robots.503.defer.visits.delay": str(delay),
        }
        found = fetch(pages(2), values, web)
        assert found.outcomes == {Outcome.DEFERRED: 2}
        assert web.robots_asked.total() == asked
        assert web.clock.seconds == pytest.approx((asked - 1) * delay / 1000, abs=2)


RobotsOf = Callable[..., Awaitable[tuple[bool, bool]]]


@pytest.fixture
def robots_of() -> RobotsOf:
    """Asks a protocol for the rules of http://a/x on a web of robots.txt files: allowed,
    deferred.
    """

    async def ask(answers: dict[str, httpx.Response], **values: str) -> tuple[bool, bool]:
        named = {name.replace("__", "."): value for name, value in values.items()}
        transport = httpx.MockTransport(
            lambda request: answers.get(request.url.host, httpx.Response(404))
        )
        protocol = Http(Configuration.load([]).with_values(PLAIN | named), {}, transport)
        rules = await protocol.get_robot_rules("http://a/x", CrawlDatum(), None)
        return rules.is_allowed("http://a/x"), rules.defer_visits

    return ask


async def test_http_robots_agents(robots_of: RobotsOf) -> None:
    text = "User-agent: friend\nAllow: /\n\nUser-agent: *\nDisallow: /\n"
    for agents, allowed in (("", False), ("friend", True), ("x, friend", True)):
        answers = {"a": httpx.Response(200, text=text)}
        assert await robots_of(answers, http__robots__agents=agents) == (allowed, False)


async def test_http_robot_rules_allowlist(robots_of: RobotsOf) -> None:
    for hosts, allowed in (("", False), ("b", False), ("b,a", True)):
        answers = {"a": httpx.Response(200, text="User-agent: *\nDisallow: /\n")}
        assert await robots_of(answers, http__robot__rules__allowlist=hosts) == (allowed, False)


async def test_http_robots_403_allow(robots_of: RobotsOf) -> None:
    for value, allowed in (("true", True), ("false", False)):
        assert await robots_of({"a": httpx.Response(403)}, http__robots__403__allow=value) == (
            allowed,
            False,
        )


async def test_http_robots_503_defer_visits(robots_of: RobotsOf) -> None:
    for value, deferred in (("true", True), ("false", False)):
        answers = {"a": httpx.Response(503)}
        assert await robots_of(answers, http__robots__503__defer__visits=value) == (False, deferred)


async def test_http_robots_redirect_max(robots_of: RobotsOf) -> None:
    answers = {
        "a": httpx.Response(301, headers={"Location": "http://b/r"}),
        "b": httpx.Response(302, headers={"Location": "http://c/r"}),
        "c": httpx.Response(200, text="User-agent: *\nDisallow: /\n"),
    }
    for most, allowed in (("0", True), ("1", True), ("2", False), ("5", False)):
        assert await robots_of(answers, http__robots__redirect__max=most) == (allowed, False)


# -- all of them -----------------------------------------------------------------------------------

ELSEWHERE = {
    "fetcher.parse": "cycle/fetch/test_fetch_job.py::test_parsing_while_fetching",
    "fetcher.store.content": "cycle/fetch/test_fetch_job.py::test_content_may_stay_out",
    "fetcher.store.robotstxt": "cycle/fetch/test_fetch_job.py::test_robots_txt_may_be_stored",
    "fetcher.signature": "cycle/fetch/test_fetch_job.py::test_pages_may_be_signed",
    "fetcher.publisher": "cycle/fetch/test_fetch_job.py::test_events_are_published",
    "fetcher.filter.urls": (
        "cycle/fetch/test_fetch_job.py::test_urls_are_filtered_and_normalized_if_asked_for"
    ),
    "fetcher.normalize.urls": (
        "cycle/fetch/test_fetch_job.py::test_urls_are_filtered_and_normalized_if_asked_for"
    ),
}
"""What takes a whole job to be seen."""


@pytest.mark.skipif(
    not (SHARED / "nutch" / "properties.tsv").is_file(),
    reason="the list of properties is not beside this checkout",
)
def test_no_property_is_left_out() -> None:
    with (SHARED / "nutch" / "properties.tsv").open(encoding="utf-8") as stream:
        rows = list(csv.reader(stream, delimiter="\t", quoting=csv.QUOTE_NONE))
    names = [row[1] for row in rows if row[0].startswith(("03a ", "03b "))]
    assert len(names) == 42
    here = {name for name in globals() if name.startswith("test_")}
    assert [
        n for n in names if n not in ELSEWHERE and f"test_{n.replace('.', '_')}" not in here
    ] == []


@pytest.mark.parametrize(("name", "place"), ELSEWHERE.items())
def test_what_is_elsewhere_is_there(name: str, place: str) -> None:
    file, _, function = place.partition("::")
    text = (PROJECT / "tests" / file).read_text(encoding="utf-8")
    found = next(
        n for n in ast.parse(text).body if isinstance(n, ast.FunctionDef) and n.name == function
    )
    body = ast.get_source_segment(text, found) or ""
    assert name in body or name.replace(".", "__") in body
