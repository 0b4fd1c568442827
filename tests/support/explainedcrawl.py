"""A crawl made to hold each reason why a URL was not fetched once: files by hand, and the CrawlDb
by updatedb itself.

S1, S2    fetched, parsed, brought into the CrawlDb
S3        fetched, parsed, not brought in yet
S4        listed, not fetched
"""

from __future__ import annotations

import io
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from minutch import jobs
from minutch.clock import FakeClock
from minutch.conf import Configuration
from minutch.cycle.fetch.frontier.hostmemory import BusyHosts
from minutch.cycle.fetchlist.selector import GenerateOptions
from minutch.cycle.segment.places import segment_name
from minutch.cycle.segment.store import LAYOUTS, Segment, part_writer
from minutch.hadoop.formats.writables import (
    FloatWritable,
    IntWritable,
    LongWritable,
    MapWritable,
    Text,
)
from minutch.inspect.explain.explainer import explain
from minutch.inspect.explain.facts import Explanation
from minutch.inspect.explain.settings import ExplainOptions, Resolve
from minutch.job import JobContext
from minutch.records import crawldatum as status
from minutch.records import parsedata
from minutch.records import protocol as codes
from minutch.records.crawldatum import CrawlDatum
from minutch.records.links import Outlink
from minutch.records.metadata import Metadata
from minutch.records.parsedata import ParseData, ParseStatus, ParseText
from minutch.records.protocol import Content, ProtocolStatus
from plugins.lib_http.robotscache import FILE_NAME, RobotsDisk, StoredRobots
from tests.support.crawldbs import DAY, NOW, write_db

A = "http://a.example"
R = "http://robots.example"
T1, T2, T3, T4 = (NOW - days * DAY for days in (10, 5, 2, 1))
MONTH = 2_592_000
INJECTED = NOW - 12 * DAY

RULES = """# images
-[.]gif$
-^http://b[.]example/private/
+.
"""
SETTINGS = {
    "http.agent.name": "tester",
    "plugin.includes": "protocol-http|urlfilter-regex|urlnormalizer-(pass|basic)|scoring-opic",
    "mapreduce.job.reduces": "1",
}


@dataclass
class Fetch:
    """A page in a segment: how its fetch ended, and what parsing found."""

    url: str
    status: int = status.STATUS_FETCH_SUCCESS
    ended: ProtocolStatus = field(default_factory=lambda: ProtocolStatus(codes.SUCCESS))
    http: str = "200"
    body: bytes = b"page"
    digest: bytes | None = None
    links: tuple[tuple[str, str], ...] = ()
    headers: dict[str, str] = field(default_factory=dict)
    before: CrawlDatum | None = None
    """The entry in the fetch list; None: as injected."""
    listed: bool = True
    modified: int = 0
    parse: ParseStatus | None = None
    title: str = "a title"


def injected(interval: int = MONTH, score: float = 1.0, **metadata: float) -> CrawlDatum:
    """An entry as inject leaves it."""
    values = MapWritable({Text(name): FloatWritable(value) for name, value in metadata.items()})
    return CrawlDatum(status.STATUS_DB_UNFETCHED, interval, score, INJECTED, metadata=values)


def failed(
    url: str, code: int, message: str | None, http: str = "", retry: bool = True, **more: object
) -> Fetch:
    """A page that did not come."""
    kind = status.STATUS_FETCH_RETRY if retry else status.STATUS_FETCH_GONE
    return Fetch(url, kind, ProtocolStatus.of(code, message), http, b"", **more)  # type: ignore[arg-type]


def skipped(url: str, reason: str) -> Fetch:
    """A page that was listed and not asked for."""
    return Fetch(url, status.STATUS_LINKED, ProtocolStatus(codes.NOTFETCHING, [reason]), "", b"")


def redirected(url: str, target: str, *, temporary: bool = False) -> Fetch:
    """A page that redirects."""
    kind = status.STATUS_FETCH_REDIR_TEMP if temporary else status.STATUS_FETCH_REDIR_PERM
    code, http = (codes.TEMP_MOVED, "302") if temporary else (codes.MOVED, "301")
    return Fetch(
        url, kind, ProtocolStatus.of(code, target), http, b"", headers={"Location": target}
    )


FIRST = [
    Fetch(
        f"{A}/ok",
        digest=b"k" * 16,
        links=((f"{A}/linked", "the words"), (f"{A}/pages/1", "page 1")),
    ),
    Fetch(f"{A}/dup1", digest=b"d" * 16, before=injected(score=2.0)),
    Fetch(f"{A}/dup2", digest=b"d" * 16),
    Fetch(f"{A}/no-interval", digest=b"n" * 16, before=injected(interval=0)),
    Fetch(f"{A}/too-long", digest=b"t" * 16, before=injected(interval=9_000_000)),
    failed(f"{A}/lost", codes.NOTFOUND, f"{A}/lost", "404", retry=False),
    failed(f"{A}/closed", codes.GONE, f"Http: 410 url={A}/closed", "410", retry=False),
    failed(
        f"{A}/gone-long",
        codes.NOTFOUND,
        "x",
        "404",
        retry=False,
        before=injected(interval=6_000_000),
    ),
    failed(f"{A}/login", codes.ACCESS_DENIED, "Authentication required", "401", retry=False),
    failed(f"{A}/forbidden", codes.EXCEPTION, f"Http code=403, url={A}/forbidden", "403"),
    failed(f"{A}/broken", codes.EXCEPTION, f"Http code=500, url={A}/broken", "500"),
    failed(f"{A}/refused", codes.EXCEPTION, "java.net.ConnectException: Connection refused", "500"),
    failed(f"{A}/no-host", codes.EXCEPTION, "java.net.UnknownHostException: a.example"),
    failed(f"{A}/slow", codes.EXCEPTION, "java.net.SocketTimeoutException: Read timed out"),
    failed(
        f"{A}/own",
        codes.EXCEPTION,
        "java.io.IOException: Forbidden connection to IP address 10.0.0.1",
    ),
    failed(f"{A}/certificate", codes.EXCEPTION, "SSL connect failed: certificate has expired"),
    failed(f"{A}/scheme", codes.FAILED, None),
    failed(f"{A}/denied", codes.ROBOTS_DENIED, None, retry=False),
    skipped(f"{A}/time", "the time limit was reached"),
    skipped(f"{A}/queue", "too many exceptions in the queue"),
    skipped(f"{A}/busy", "the host asked to come back later"),
    redirected(f"{A}/moved", f"{A}/target"),
    Fetch(f"{A}/target", digest=b"g" * 16, listed=False),
    redirected(f"{A}/temporary", "http://b.example/outside", temporary=True),
    Fetch(
        f"{A}/unparsed",
        digest=None,
        parse=ParseStatus.failed(parsedata.FAILED_TRUNCATED, "cut off"),
    ),
    Fetch(f"{A}/again", digest=b"a" * 16),
    Fetch(f"{A}/changing", digest=b"1" * 16),
    Fetch(f"{A}/fixed", digest=b"f" * 16, before=injected(fixedInterval=777_600.0)),
    Fetch(
        f"{A}/hostile",
        digest=b"h" * 16,
        title="\x1b[31mred\nline",
        links=((f"{A}/linked", "\x1b]0;x\x07"),),
    ),
]
THIRD_TIME = CrawlDatum(status.STATUS_DB_UNFETCHED, MONTH, 1.0, T1, retries=2)


def again(digest: bytes | None, interval: int = MONTH) -> CrawlDatum:
    """The entry of a page that was fetched in S1, as generate lists it again."""
    return CrawlDatum(status.STATUS_DB_FETCHED, interval, 1.0, T2 - DAY, T1, signature=digest)


SECOND = [
    failed(f"{A}/given-up", codes.EXCEPTION, "Http code=502, url=x", "502", before=THIRD_TIME),
    Fetch(
        f"{A}/again",
        status.STATUS_FETCH_NOTMODIFIED,
        ProtocolStatus(codes.NOTMODIFIED),
        "304",
        b"",
        before=again(b"a" * 16),
        modified=T1,
    ),
    Fetch(f"{A}/changing", digest=b"2" * 16, before=again(b"1" * 16)),
]
PENDING = [Fetch(f"{A}/pending", digest=b"p" * 16, links=(("http://c.example/fresh", "fresh"),))]

OTHERS = {
    f"{A}/listed": CrawlDatum(
        status.STATUS_DB_UNFETCHED,
        MONTH,
        1.0,
        INJECTED,
        metadata=MapWritable({Text("_ngt_"): LongWritable(T4)}),
    ),
    f"{A}/later": CrawlDatum(status.STATUS_DB_UNFETCHED, MONTH, 1.0, NOW + 3 * DAY + 1),
    f"{A}/far": CrawlDatum(status.STATUS_DB_UNFETCHED, MONTH, 1.0, NOW + 400 * DAY),
    f"{A}/picture.gif": injected(),
    f"{A}/weak": injected(score=0.01),
    f"{A}/seldom": injected(interval=9_000_000),
    f"{A}/waiting": injected(score=5.0),
    "nonsense": injected(),
    "http://many.example/1": injected(score=9.0),
    "http://many.example/2": injected(score=8.0),
    "http://many.example/3": injected(score=7.0),
    f"{A}/orphan": CrawlDatum(status.STATUS_DB_ORPHAN, MONTH, 1.0, NOW + DAY),
    f"{A}/parse-failed": CrawlDatum(
        status.STATUS_DB_PARSE_FAILED, MONTH, 1.0, NOW + DAY, modified_time=T1
    ),
    f"{A}/unexplained": CrawlDatum(
        status.STATUS_DB_FETCHED, MONTH, 1.0, NOW + DAY, T1, signature=b"u" * 16
    ),
    f"{R}/private/page": injected(),
    f"{R}/private/open/page": injected(),
    f"{R}/public": injected(),
    "http://slow.example/": injected(),
    "http://stale.example/": injected(),
    "http://closed.example/": injected(),
    "http://busy.example/": injected(),
    "http://10.1.2.3/": injected(),
    "http://192.0.78.9/": injected(),
    "ftp://f.example/": injected(),
}
"""Entries that no segment speaks of."""

ROBOTS = {
    "robots.example": (
        200,
        b"User-agent: *\nAllow: /private/open/\n\nDisallow: /private/ # keep out\nCrawl-delay: 7\n",
    ),
    "slow.example": (200, b"User-agent: *\nCrawl-delay: 100\n"),
    "closed.example": (403, b""),
}


def _metadata(fetch: Fetch) -> MapWritable:
    values = MapWritable() if fetch.before is None else fetch.before.metadata.copy()
    values[Text("_pst_")] = fetch.ended
    if fetch.http:
        values[Text("nutch.protocol.code")] = Text(fetch.http)
        values[Text("_rs_")] = IntWritable(42)
    return values


def write_segment(
    folder: Path, time: int, fetches: Iterable[Fetch], *, links: Iterable[tuple[str, float]] = ()
) -> Path:
    """A segment that was fetched and parsed at `time`; `links` are linked URLs with the scores they
    get.
    """
    segment = Segment(folder / "segments" / segment_name(time))
    segment.path.mkdir(parents=True)
    found = sorted(fetches, key=lambda fetch: fetch.url.encode())
    with (
        segment.writing(tuple(LAYOUTS)) as directory,
        part_writer(directory, "crawl_generate", 0) as listed,
        part_writer(directory, "crawl_fetch", 0) as fetched,
        part_writer(directory, "content", 0) as contents,
        part_writer(directory, "parse_data", 0) as data,
        part_writer(directory, "parse_text", 0) as texts,
        part_writer(directory, "crawl_parse", 0) as parsed,
    ):
        for fetch in found:
            before = fetch.before or injected()
            if fetch.listed:
                listed(fetch.url, before)
            score = 0.0 if fetch.status == status.STATUS_LINKED else before.score
            datum = CrawlDatum(
                fetch.status, before.fetch_interval, score, time, fetch.modified, before.retries
            )
            datum.signature, datum.metadata = before.signature, _metadata(fetch)
            fetched(fetch.url, datum)
            if fetch.http and fetch.ended.code in (codes.SUCCESS, codes.MOVED, codes.TEMP_MOVED):
                head = Metadata.of(dict(fetch.headers))
                contents(fetch.url, Content(fetch.url, fetch.url, fetch.body, "text/html", head))
            if fetch.digest is not None or fetch.parse is not None:
                data(fetch.url, _parsed(fetch))
                texts(fetch.url, ParseText("text"))
            if fetch.digest is not None:
                parsed(fetch.url, CrawlDatum(status.STATUS_SIGNATURE, signature=fetch.digest))
        for url, score in links:
            parsed(url, CrawlDatum(status.STATUS_LINKED, MONTH, score))
    return segment.path


def _parsed(fetch: Fetch) -> ParseData:
    meta = Metadata.of({} if fetch.digest is None else {"nutch.content.digest": fetch.digest.hex()})
    links = [Outlink(url, words) for url, words in fetch.links]
    return ParseData(fetch.parse or ParseStatus(parsedata.SUCCESS), fetch.title, links, meta)


@dataclass
class Made:
    """A made crawl; `settings` are those that its jobs ran with, `rules` the file of its URL
    filter.
    """

    folder: Path
    settings: dict[str, str]

    @property
    def rules(self) -> Path:
        return self.folder / "conf" / "regex-urlfilter.txt"

    def conf(self, settings: Mapping[str, str] | None = None) -> Configuration:
        """The crawl's configuration with other settings put over it."""
        return Configuration.load(
            [self.folder / "conf"], overrides={**self.settings, **(settings or {})}
        ).freeze()

    def context(self, settings: Mapping[str, str] | None = None) -> JobContext:
        """Makes the context of a job."""
        return JobContext(self.conf(settings), FakeClock(NOW), io.StringIO(), io.StringIO())

    def explain(
        self,
        url: str,
        settings: Mapping[str, str] | None = None,
        options: GenerateOptions | None = None,
        resolve: Resolve | None = None,
    ) -> Explanation:
        """Explains a URL."""
        chosen = ExplainOptions(options or GenerateOptions(), resolve=resolve)
        return explain(self.folder, url, chosen, context=self.context(settings))


def make_crawl(folder: Path, **settings: str) -> Made:
    """The crawl; `__` in the names of settings stands for a dot."""
    made = Made(
        folder, SETTINGS | {name.replace("__", "."): value for name, value in settings.items()}
    )
    made.rules.parent.mkdir(parents=True)
    made.rules.write_text(RULES, encoding="utf-8")
    first = write_segment(folder, T1, FIRST, links=[(f"{A}/linked", 0.25), (f"{A}/linked", 0.5)])
    second = write_segment(folder, T2, SECOND)
    write_segment(folder, T3, PENDING, links=[("http://c.example/fresh", 0.5)])
    _list(folder, f"{A}/listed")
    known = {fetch.url: fetch.before or injected() for fetch in FIRST if fetch.listed}
    known |= {f"{A}/given-up": THIRD_TIME, f"{A}/pending": injected(), **OTHERS}
    write_db(folder / "crawldb", sorted(known.items()))
    conf = made.conf({"db.ignore.external.links": "true"})
    jobs.run("updatedb", folder / "crawldb", first, conf=conf, clock=FakeClock(T1 + 1000))
    jobs.run("updatedb", folder / "crawldb", second, conf=conf, clock=FakeClock(T2 + 1000))
    jobs.run("dedup", folder / "crawldb", conf=conf, clock=FakeClock(T2 + 2000))
    jobs.run("invertlinks", folder / "linkdb", first, "-noNormalize", "-nofilter", conf=conf)
    _remember(folder / ".fetchstate")
    return made


def _list(folder: Path, url: str) -> None:
    segment = Segment(folder / "segments" / segment_name(T4))
    segment.path.mkdir(parents=True)
    with (
        segment.writing(["crawl_generate"]) as place,
        part_writer(place, "crawl_generate", 0) as listed,
    ):
        listed(url, OTHERS[url])


def _remember(state: Path) -> None:
    with RobotsDisk(state / FILE_NAME) as disk:
        for host, (code, text) in ROBOTS.items():
            url = f"http://{host}/robots.txt"
            disk.put(
                f"http:{host}:80",
                StoredRobots((NOW - 3_600_000) / 1000, code, text, "text/plain", url),
            )
        old = StoredRobots(
            (NOW - 2 * DAY) / 1000,
            200,
            b"User-agent: *\nDisallow: /\n",
            "text/plain",
            "http://stale.example/",
        )
        disk.put("http:stale.example:80", old)
    with BusyHosts(state) as hosts:
        hosts.remember_busy("busy.example", NOW + DAY)
