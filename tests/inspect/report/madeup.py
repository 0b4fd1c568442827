"""A made-up crawl: sites with slow, failing and refusing hosts, crawled for some rounds, a row of
Python at a time.

    crawl = MadeUp(seed=1, hosts=8, pages=300, rounds=6, most=60)
    crawl.write(folder)          CrawlDb and segments; `crawl.fetches` and `crawl.entries` are what
                                 they hold

What each page does follows from the seed. `python -m tests.inspect.report.madeup FOLDER HOSTS PAGES
ROUNDS MOST` writes one.
"""

from __future__ import annotations

import random
import sys
from collections.abc import Iterable
from dataclasses import dataclass, field
from hashlib import md5
from pathlib import Path

from minutch.clock import FakeClock
from minutch.conf import Configuration
from minutch.cycle.segment.places import segment_name
from minutch.cycle.segment.store import Segment, part_writer
from minutch.hadoop.formats.registry import Writable
from minutch.hadoop.formats.writables import IntWritable, MapWritable, Text
from minutch.job import JobContext
from minutch.records import crawldatum as status
from minutch.records import protocol as codes
from minutch.records.crawldatum import CrawlDatum
from minutch.records.links import Outlink
from minutch.records.metadata import Metadata
from minutch.records.parsedata import ParseData, ParseStatus, ParseText
from minutch.records.protocol import Content, ProtocolStatus
from tests.support.commands import invertlinks
from tests.support.crawldbs import write_db

START = 1_790_000_000_000
"""The time of the first round, in ms."""
HOUR = 3_600_000
DAY = 24 * HOUR
FOLDERS = ("crawl_fetch", "content", "parse_data", "parse_text")
HOSTS = (
    "www.harbour.example",
    "tides.example.org",
    "news.example.com",
    "blog.example.net",
    "maps.example.de",
)
TYPES = (
    ("text/html", 80),
    ("application/pdf", 8),
    ("image/png", 6),
    ("application/xhtml+xml", 4),
    ("text/plain", 2),
)
LANGUAGES = (("en", 60), ("de", 20), ("fr", 10), ("ja", 6), ("pt", 4))
CHARSETS = (("utf-8", 85), ("windows-1252", 11), ("shift_jis", 4))
BAD = (
    "</script><script>document.title='owned'</script><img src=http://127.0.0.1:1/x"
    " onerror=\"document.title='owned'\">"
)
HOSTILE = f"http://evil.example.org/?a='\"{BAD}\u202egnp.exe\x1b[31m\x00"
"""A URL that means harm."""


@dataclass
class Page:
    """The behaviour of a page."""

    url: str
    host: str
    fate: str = "fetched"
    to: str = ""
    links: list[tuple[str, str]] = field(default_factory=list)
    media_type: str = "text/html"
    lang: str = "en"
    charset: str = "utf-8"
    size: int = 5000
    changes: float = 0.2
    text: str = ""


@dataclass(frozen=True)
class Fetch:
    """A page that was asked for in a round."""

    round: int
    url: str
    host: str
    outcome: str
    code: str
    time: int
    ms: int | None = None
    page: Page | None = None
    digest: str = ""
    content: bytes = b""


@dataclass
class Entry:
    """A URL of the CrawlDb."""

    status: int = status.STATUS_DB_UNFETCHED
    due: int = START
    signature: bytes | None = None
    retries: int = 0


_DB_STATUS = {
    "fetched": status.STATUS_DB_FETCHED,
    "unchanged": status.STATUS_DB_NOTMODIFIED,
    "redirected": status.STATUS_DB_REDIR_PERM,
    "gone": status.STATUS_DB_GONE,
    "denied": status.STATUS_DB_GONE,
    "failed": status.STATUS_DB_UNFETCHED,
}
_FETCH_STATUS = {
    "fetched": (status.STATUS_FETCH_SUCCESS, codes.SUCCESS),
    "unchanged": (status.STATUS_FETCH_NOTMODIFIED, codes.NOTMODIFIED),
    "redirected": (status.STATUS_FETCH_REDIR_PERM, codes.MOVED),
    "gone": (status.STATUS_FETCH_GONE, codes.NOTFOUND),
    "denied": (status.STATUS_FETCH_GONE, codes.ROBOTS_DENIED),
    "failed": (status.STATUS_FETCH_RETRY, codes.EXCEPTION),
}
_CODE = {"fetched": "200", "unchanged": "304", "redirected": "301", "gone": "404"}
_WAIT = {
    "fetched": 2 * DAY,
    "unchanged": 4 * DAY,
    "redirected": 30 * DAY,
    "gone": 60 * DAY,
    "denied": 60 * DAY,
}


class MadeUp:
    """The crawl. One round a day; at most `most` pages in each."""

    def __init__(
        self,
        *,
        seed: int = 1,
        hosts: int = 8,
        pages: int = 300,
        rounds: int = 6,
        most: int = 60,
        hostile: bool = False,
    ) -> None:
        self._chance = random.Random(seed)
        self.hosts = [*HOSTS, *(f"host{number}.example.org" for number in range(hosts))][:hosts]
        self.pages = {page.url: page for page in self._web(pages)}
        self.seeds = [f"http://{host}/" for host in self.hosts[: max(1, hosts // 2)]]
        if hostile:
            self._add_hostile()
        self.entries = {url: Entry() for url in self.seeds}
        self.fetches: list[Fetch] = []
        self.parsed: dict[str, int] = {}
        self.rounds = rounds
        for number in range(rounds):
            self._round(number, most)

    @property
    def now(self) -> int:
        """Half a day after the last round, in ms."""
        return START + self.rounds * DAY - DAY // 2

    def segment(self, number: int) -> str:
        """The name of a round's segment."""
        return segment_name(START + number * DAY)

    # -- what the web is like ----------------------------------------------------------------------

    def _pick(self, shares: Iterable[tuple[str, int]]) -> str:
        names, weights = zip(*shares, strict=True)
        return str(self._chance.choices(names, weights)[0])

    def _web(self, count: int) -> list[Page]:
        chance, pages = self._chance, list[Page]()
        weights = [1 / (1 + number) for number in range(len(self.hosts))]
        for number in range(count):
            host = (
                self.hosts[number]
                if number < len(self.hosts)
                else chance.choices(self.hosts, weights)[0]
            )
            path = (
                ""
                if number < len(self.hosts)
                else f"{chance.choice(('tides', 'ships', 'news'))}/{number}.html"
            )
            page = Page(f"http://{host}/{path}", host, size=int(chance.lognormvariate(8.5, 1)))
            page.media_type, page.lang, page.charset = (
                self._pick(TYPES),
                self._pick(LANGUAGES),
                self._pick(CHARSETS),
            )
            page.changes, page.text = (
                chance.choice((0.05, 0.3, 0.9)),
                f"text {number % (count * 9 // 10 + 1)}",
            )
            if path:
                refuses = host == self.hosts[-1]
                page.fate = (
                    "denied"
                    if refuses
                    else self._pick((("fetched", 84), ("gone", 6), ("moved", 7), ("fails", 3)))
                )
            pages.append(page)
        moved = [at for at, page in enumerate(pages) if page.fate == "moved"]
        for number, page in enumerate(pages):
            later = [
                min(count - 1, number * 3 + chance.randrange(1, 12))
                for _ in range(chance.randrange(2, 9))
            ]
            back = [chance.randrange(number + 1) for _ in range(chance.randrange(4))]
            page.links = [(pages[at].url, f"page {at}") for at in (*later, *back)]
            if page.fate == "moved":
                to = min(count - 1, number + chance.randrange(1, 30))
                page.to = pages[
                    (
                        min((at for at in moved if at > number), default=to)
                        if chance.random() < 0.4
                        else to
                    )
                ].url
        return pages

    def _add_hostile(self) -> None:
        other = f"http://evil.example.org/{BAD}"
        bad = Page(
            HOSTILE, "evil.example.org", media_type=f"text/{BAD}", lang=BAD, charset=BAD, text="bad"
        )
        bad.links = [
            (f"{other}gone", f"{BAD}\u202e\x1b[31m"),
            (f"{other}moved", BAD),
            ("javascript:alert(1)", "x"),
        ]
        moved = Page(f"{other}moved", "evil.example.org", "moved", to=f"{other}again")
        again = Page(
            f"{other}again", "evil.example.org", "moved", to="javascript:alert(1)//\x1b[31m"
        )
        script = Page("javascript:alert(1)", "", "fetched", text="bad")
        self.pages |= {
            page.url: page for page in (bad, moved, again, script, Page(f"{other}gone", "", "gone"))
        }
        self.seeds.append(HOSTILE)

    # -- the crawl ---------------------------------------------------------------------------------

    def _round(self, number: int, most: int) -> None:
        time = START + number * DAY
        due = sorted((entry.due, url) for url, entry in self.entries.items() if entry.due <= time)
        found: list[str] = []
        for at, (_, url) in enumerate(due[:most]):
            fetch = self._fetch(number, url, time + 1000 * at)
            self.fetches.append(fetch)
            entry = self.entries[url]
            entry.status = _DB_STATUS[fetch.outcome]
            entry.due = time + _WAIT.get(fetch.outcome, DAY)
            if fetch.outcome == "fetched":
                entry.signature, self.parsed[url] = bytes.fromhex(fetch.digest), number
            if fetch.page is not None:
                found += [to for to, _ in fetch.page.links] if fetch.outcome == "fetched" else []
                found += [fetch.page.to] if fetch.outcome == "redirected" else []
        for url in found:
            self.entries.setdefault(url, Entry(due=time))

    def _fetch(self, number: int, url: str, time: int) -> Fetch:
        page, chance = self.pages.get(url), self._chance
        if page is None:
            return Fetch(number, url, "", "gone", "404", time, 40, Page(url, ""))
        ms = int(
            chance.lognormvariate(
                4.5 + (2 if page.host == self.hosts[1 % len(self.hosts)] else 0), 0.7
            )
        )
        if page.fate == "fetched" and chance.random() < (
            0.3 if page.host == self.hosts[2 % len(self.hosts)] else 0.01
        ):
            return Fetch(number, url, page.host, "failed", "", time)
        outcome = {"moved": "redirected", "fails": "failed"}.get(page.fate, page.fate)
        code = "503" if page.fate == "fails" else _CODE.get(outcome, "")
        if outcome == "fetched":
            before = self.entries[url].signature
            if before is not None and chance.random() >= page.changes:
                outcome, code = (
                    ("unchanged", "304") if chance.random() < 0.5 else ("fetched", "200")
                )
            elif before is not None:
                page.text += "!"
        content = (page.text.encode() * (page.size // len(page.text.encode() or b"x") + 1))[
            : page.size
        ]
        digest = md5(page.text.encode()).hexdigest()
        return Fetch(
            number, url, page.host, outcome, code, time, ms if code else None, page, digest, content
        )

    # -- its files ---------------------------------------------------------------------------------

    def write(self, folder: Path) -> None:
        """Write the CrawlDb and the segments."""
        for number in range(self.rounds):
            mine = [fetch for fetch in self.fetches if fetch.round == number]
            self._write_segment(Segment(folder / "segments" / self.segment(number)), mine)
        write_db(
            folder / "crawldb",
            [(url, CrawlDatum(one.status, 2 * 86400, 1.0, one.due, 0, one.retries, one.signature))
             for url, one in sorted(self.entries.items(), key=lambda item: item[0].encode())],
        )  # fmt: skip

    def invert(self, folder: Path) -> None:
        """The LinkDb of all segments."""
        conf = Configuration.load([], overrides={"linkdb.ignore.internal.links": "false"})
        words = [
            str(folder / "linkdb"),
            "-dir",
            str(folder / "segments"),
            "-nofilter",
            "-noNormalize",
        ]
        assert invertlinks.run(words, JobContext(conf.freeze(), FakeClock(self.now))) == 0

    def _write_segment(self, segment: Segment, fetches: list[Fetch]) -> None:
        segment.path.mkdir(parents=True)
        with (
            segment.writing(FOLDERS) as directory,
            part_writer(directory, "crawl_fetch", 0) as fetched,
            part_writer(directory, "content", 0) as content,
            part_writer(directory, "parse_data", 0) as data,
            part_writer(directory, "parse_text", 0) as texts,
        ):
            for fetch in sorted(fetches, key=lambda one: one.url.encode()):
                fetched(fetch.url, _datum(fetch))
                if fetch.outcome == "fetched" and fetch.page is not None:
                    content(
                        fetch.url,
                        Content(fetch.url, fetch.url, fetch.content, fetch.page.media_type),
                    )
                    data(fetch.url, _parsed(fetch, fetch.page, segment.name))
                    texts(fetch.url, ParseText(fetch.page.text))


def _datum(fetch: Fetch) -> CrawlDatum:
    code, protocol = _FETCH_STATUS[fetch.outcome]
    message = {"redirected": fetch.page.to if fetch.page else "", "gone": fetch.url}.get(
        fetch.outcome
    )
    if fetch.outcome == "failed":
        message = (
            f"Http code={fetch.code}, url={fetch.url}"
            if fetch.code
            else "java.net.SocketTimeoutException: Read timed out"
        )
    metadata: dict[Writable, Writable] = {Text("_pst_"): ProtocolStatus.of(protocol, message)}
    if fetch.code:
        metadata[Text("nutch.protocol.code")] = Text(fetch.code)
    if fetch.ms is not None:
        metadata[Text("_rs_")] = IntWritable(fetch.ms)
    if fetch.outcome == "fetched" and fetch.page:
        metadata[Text("Content-Type")] = Text(fetch.page.media_type)
    return CrawlDatum(code, 2 * 86400, 1.0, fetch.time, metadata=MapWritable(metadata))


def _parsed(fetch: Fetch, page: Page, segment: str) -> ParseData:
    kept = {
        "Content-Type": page.media_type,
        "nutch.segment.name": segment,
        "nutch.content.digest": fetch.digest,
    }
    tags = {"CharEncodingForConversion": page.charset, "language": page.lang}
    outlinks = [Outlink(url, anchor) for url, anchor in page.links]
    return ParseData(
        ParseStatus(1, 0, []), f"Title {BAD}", outlinks, Metadata.of(kept), Metadata.of(tags)
    )


if __name__ == "__main__":
    hosts, pages, rounds, most = map(int, sys.argv[2:])
    MadeUp(hosts=hosts, pages=pages, rounds=rounds, most=most).write(Path(sys.argv[1]))
