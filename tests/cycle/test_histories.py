"""Pages over many rounds of a crawl: the index has in the end what the servers have, whatever they
and sitemaps said, and rounds in Nutch's way did in between.
"""

from __future__ import annotations

import asyncio
import io
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from minutch import FakeClock, JobContext, Segment
from minutch.conf import Configuration
from plugins.lib_http.exchange import format_date
from tests.support.commands import dedup, generate, index, inject, parse, sitemap, updatedb
from tests.support.examples import examples
from tests.support.misbehaving import MisbehavingServer, head
from tests.support.segments import conf_for, fetch_segment

NOW, DAY = 1_800_000_000_000, 86_400_000
PUBLISHED = 1_700_000_000_000
CONF = {
    "plugin.includes": "protocol-http|parse-(html|text)|urlnormalizer-pass|scoring-opic"
    "|index-basic|indexer-(csv|dummy)",
    "db.fetch.interval.default": "86400",
    "fetcher.server.delay": "0",
    "parser.workers": "1",
    "sitemap.url.overwrite.existing": "true",
}
WRITERS = """<writers>
<writer id="d" class="org.apache.nutch.indexwriter.dummy.DummyIndexWriter"><parameters>
<param name="path" value="{0}/dummy.txt"/><param name="delete" value="true"/></parameters></writer>
<writer id="c" class="org.apache.nutch.indexwriter.csv.CSVIndexWriter"><parameters>
<param name="outpath" value="{0}/csv"/><param name="fields" value="id,title"/></parameters></writer>
</writers>"""
LIVE, PATHS = 200, ("/a", "/bb", "/ccc")


@dataclass(frozen=True)
class Page:
    """What a server has: with 200 a version, published on a day, of which it says date or tag."""

    code: int = LIVE
    title: str = "x"
    day: int = 0
    is_dated: bool = True
    is_tagged: bool = False
    is_exact: bool = True
    """It compares dates for equality, as nginx does; else as RFC 9110, 13.1.3, says, with the date
    of what it has in the answer.
    """
    lies: bool = False
    """The first answer of a round is "not modified" of another version."""

    def answer(self, conditions: dict[str, str], *, first: bool) -> bytes:
        if self.code != LIVE:
            where = ("Location: /moved",) if self.code == 301 else ()
            return head(*where, "Content-Length: 0", status=f"{self.code} x")
        tag, date = f'"{self.title}"', format_date(PUBLISHED + self.day * DAY)
        if self.lies and first:
            return head('ETag: "another"', "Last-Modified: " + format_date(0), status="304 x")
        said = [f"ETag: {tag}"] * self.is_tagged + [f"Last-Modified: {date}"] * self.is_dated
        if self._matches(conditions, tag, date):
            return head(*said, status="304 x")
        text = f"<title>{self.title}</title>{self.title}"
        return head("Content-Type: text/html", *said) + text.encode()

    def _matches(self, conditions: dict[str, str], tag: str, date: str) -> bool:
        known, since = conditions.get("If-None-Match"), conditions.get("If-Modified-Since")
        if self.is_tagged and known is not None:
            return known == tag
        if not self.is_dated or since is None:
            return False
        return since == date if self.is_exact else _time(since) >= _time(date)


def _time(date: str) -> float:
    return parsedate_to_datetime(date).timestamp()


@dataclass
class Round:
    """What changes before a round, and how it is done."""

    changes: dict[str, Page] = field(default_factory=dict)
    is_denied: bool = False
    """robots.txt forbids the pages."""
    is_nutchs: bool = False
    """Requests have a modified time of whatever entry has one."""
    has_sitemap: bool = False
    """A sitemap says that all pages are new."""


@dataclass
class World:
    """A site, its crawl and the index of it."""

    folder: Path
    server: MisbehavingServer
    pages: dict[str, Page] = field(default_factory=lambda: dict.fromkeys(PATHS, Page()))
    indexed: dict[str, str] = field(default_factory=dict)
    """Path → title."""
    asked: list[tuple[str, dict[str, str]]] = field(default_factory=list)
    """Path and conditions of the requests of the last round."""
    rounds: int = 0
    is_denied: bool = False

    async def answer(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, target: str
    ) -> None:
        lines = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
        path, fields = lines[0].split(" ")[1], [line.split(": ", 1) for line in lines[1:-2]]
        if path == "/robots.txt":
            disallowed = "".join(f"Disallow: {path}\n" for path in PATHS) if self.is_denied else ""
            writer.write(head("Content-Type: text/plain") + f"User-agent: *\n{disallowed}".encode())
        elif path == "/sitemap.xml":
            writer.write(head("Content-Type: text/xml") + self._sitemap().encode())
        elif path in self.pages:
            first = path not in [known for known, _ in self.asked]
            self.asked.append((path, {k: v for k, v in fields if k.startswith("If-")}))
            writer.write(self.pages[path].answer(self.asked[-1][1], first=first))
        else:
            writer.write(head(status="404 x"))

    def _sitemap(self) -> str:
        date = datetime.fromtimestamp(self.now / 1000, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        urls = [f"<url><loc>{self.url(p)}</loc><lastmod>{date}</lastmod></url>" for p in self.pages]
        return (
            f'<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">{"".join(urls)}</urlset>'
        )

    @property
    def now(self) -> int:
        """The next round is late enough for any page to be due."""
        return NOW + 12 * DAY * self.rounds

    def url(self, path: str) -> str:
        return self.server.url(path.lstrip("/"))

    def context(self, **values: str) -> JobContext:
        conf = Configuration.load(
            [self.folder], overrides=dict(conf_for(**values).with_values(CONF).items())
        )
        return JobContext(conf, FakeClock(self.now), io.StringIO(), io.StringIO())

    def seed(self, *, sitemaps: bool) -> None:
        seeds = self.folder / "seeds"
        seeds.mkdir()
        (seeds / "seeds").write_text(
            f"{self.url('/sitemap.xml')}\n"
            if sitemaps
            else "".join(f"{self.url(path)}\n" for path in self.pages)
        )
        if sitemaps:
            self.read_sitemap()
        else:
            assert inject.run([str(self.folder / "crawldb"), str(seeds)], self.context()) == 0

    def read_sitemap(self) -> None:
        words = [str(self.folder / "crawldb"), "-sitemapUrls", str(self.folder / "seeds")]
        (self.folder / "seeds/seeds").write_text(f"{self.url('/sitemap.xml')}\n")
        assert sitemap.run(words, self.context()) == 0

    def run(self, story: Round) -> None:
        self.rounds += 1
        self.asked.clear()
        self.pages |= story.changes
        self.is_denied = story.is_denied
        if story.has_sitemap:
            self.read_sitemap()
        context = self.context(http__store__etag="false" if story.is_nutchs else "true")
        db, segments = str(self.folder / "crawldb"), self.folder / "segments"
        assert generate.run([db, str(segments)], context) == 0
        segment = max(segments.iterdir())
        fetch_segment(Segment(segment), context.conf, clock=context.clock)
        if not (segment / "crawl_parse").exists():
            assert parse.run([str(segment)], context) == 0
        assert updatedb.run([db, str(segment)], context) == 0
        assert dedup.run([db], context) == 0
        deleted, added = self.index(segment)
        self.indexed = {path: t for path, t in self.indexed.items() if path not in deleted} | added

    def index(self, *segments: Path) -> tuple[set[str], dict[str, str]]:
        """Indexes segments; returns the paths deleted, and the titles of those added."""
        shutil.rmtree(self.folder / "csv", ignore_errors=True)
        words = [str(self.folder / "crawldb"), *map(str, segments), "-deleteGone"]
        assert index.run(words, self.context()) == 0
        lines = (self.folder / "dummy.txt").read_text().splitlines()
        root = self.url("")
        deleted = {"/" + line[7:].removeprefix(root) for line in lines if line[:6] == "delete"}
        rows = (self.folder / "csv/nutch.csv").read_text().splitlines()[1:]
        return deleted, {"/" + u.removeprefix(root): t for u, t in (r.split(",") for r in rows)}

    def check(self, indexed: dict[str, str]) -> None:
        """Each version that is live is there, and nothing else, of twins at least one."""
        live = {path: page.title for path, page in self.pages.items() if page.code == LIVE}
        assert indexed.items() <= live.items()
        assert set(indexed.values()) == set(live.values())


@contextmanager
def world(*, sitemaps: bool = False) -> Iterator[World]:
    with MisbehavingServer() as server, tempfile.TemporaryDirectory() as folder:
        made = World(Path(folder), server)
        (made.folder / "index-writers.xml").write_text(WRITERS.format(folder))
        server.answer_all = made.answer
        made.seed(sitemaps=sitemaps)
        yield made


def test_what_each_request_says() -> None:
    """A page of a sitemap, one that is gone, one that has moved, twins, and a lie."""
    first, later = format_date(PUBLISHED), format_date(PUBLISHED + DAY)
    known = {"If-Modified-Since": first}
    stories = [
        (Round(dict(zip(PATHS, (Page(title=t) for t in "xyz"), strict=True))), [{}, {}, {}]),
        (Round(has_sitemap=True), [known, known, known]),
        (
            Round({"/a": Page(404), "/bb": Page(301), "/ccc": Page(title="z2", day=1)}),
            [known, known, known],
        ),
    ]
    with world(sitemaps=True) as made:
        for story, said in stories:
            made.run(story)
            assert sorted(made.asked) == list(zip(PATHS, said, strict=True))
            made.check(made.indexed)
        made.run(Round({"/a": Page(title="x"), "/bb": Page(title="y"), "/ccc": Page(title="z")}))
        rolled_back = {"If-Modified-Since": later}
        assert sorted(made.asked) == list(zip(PATHS, ({}, {}, rolled_back), strict=True))
        made.check(made.indexed)
        made.run(Round({"/bb": Page(title="x", day=1)}))
        made.check(made.indexed)
        made.run(Round({"/a": Page(title="w", day=1), "/ccc": Page(title="z", lies=True)}))
        assert sorted(made.asked, key=lambda one: one[0]) == [
            ("/a", known),
            ("/bb", {}),
            ("/ccc", known),
            ("/ccc", {}),
        ]
        made.check(made.indexed)
        made.check(made.index(*(made.folder / "segments").iterdir())[1])


PAGES = st.builds(
    Page,
    st.sampled_from([LIVE, LIVE, LIVE, 301, 404, 410, 500]),
    st.just("x"),
    st.integers(-9, 9),
    st.booleans(),
    st.booleans(),
    st.booleans(),
    st.sampled_from([False, False, False, True]),
)
ROUNDS = st.builds(
    Round,
    st.dictionaries(st.sampled_from(PATHS), PAGES, max_size=3),
    st.sampled_from([False, False, False, True]),
    st.sampled_from([False, False, False, True]),
    st.booleans(),
)


def lived(rounds: list[Round], titles: list[str], *, sitemaps: bool) -> None:
    """Lives through rounds; a version has a date of its own, later or earlier than those before."""
    with world(sitemaps=sitemaps) as made:
        versions: dict[tuple[str, str], int] = {}
        for number, story in enumerate(rounds):
            for at, (path, page) in enumerate(story.changes.items()):
                title = titles[(number * len(PATHS) + at) % len(titles)]
                day = versions.setdefault((path, title), page.day * 100 + number)
                story.changes[path] = replace(page, title=title, day=day)
            made.run(story)
        ended = {
            path: replace(page, lies=False) if page.code != 500 else replace(page, code=LIVE)
            for path, page in made.pages.items()
        }
        made.run(Round(ended))
        made.check(made.indexed)
        made.run(Round())
        made.check(made.indexed)
        made.check(made.index(*(made.folder / "segments").iterdir())[1])


SLOW = (HealthCheck.too_slow, HealthCheck.data_too_large)


@pytest.mark.slow  # whole crawls
@settings(max_examples=examples(2), deadline=None, suppress_health_check=SLOW)
@given(st.lists(ROUNDS, min_size=2, max_size=3), st.lists(st.sampled_from("xyz"), min_size=5))
def test_any_history(rounds: list[Round], titles: list[str]) -> None:
    lived(rounds, titles, sitemaps=True)


@pytest.mark.slow
@settings(max_examples=examples(60), deadline=None, suppress_health_check=SLOW)
@given(
    st.lists(ROUNDS, min_size=2, max_size=4),
    st.lists(st.sampled_from("xyz"), min_size=5),
    st.booleans(),
)
def test_many_histories(rounds: list[Round], titles: list[str], sitemaps: bool) -> None:
    lived(rounds, titles, sitemaps=sitemaps)
