"""Three rounds on the demo site by bin/crawl: how every page ends, what was found in it, what the
server saw.
"""

from __future__ import annotations

import io
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from minutch.conf import Configuration
from minutch.cycle.crawldb.store import CrawlDb
from minutch.cycle.linkdb.store import LinkDb
from minutch.cycle.segment.store import COMPLETE, PARSE_DATA, PARSE_TEXT, Segment
from minutch.job import JobContext
from minutch.records.crawldatum import CrawlDatum
from minutch.records.crawldatum_columns import records
from minutch.records.parsedata import ParseData, ParseText
from tests.support.commands import command
from tests.support.demo import PROPERTIES, write_seeds
from tests.support.siteserver import HOSTS, SiteServer

run = command("crawl").run


@dataclass
class Crawled:
    """A crawl of the demo site; URLs are written `one/path` and `two/path`."""

    folder: Path
    server: SiteServer
    output: str

    def short(self, url: str) -> str:
        """http://127.0.0.1:port/a → one/a."""
        for host in HOSTS:
            url = url.replace(self.server.site.url(host, "/"), f"{host}/")
        return url

    def url(self, short: str) -> str:
        """one/a → http://127.0.0.1:port/a."""
        host, _, path = short.partition("/")
        return self.server.site.url(host, f"/{path}")

    @property
    def crawldb(self) -> dict[str, CrawlDatum]:
        database = CrawlDb(self.folder / "crawl" / "crawldb")
        frames = [database.read_part(index) for index in range(len(database.parts()))]
        return {self.short(url): datum for frame in frames for url, datum in records(frame)}

    @property
    def segments(self) -> list[Segment]:
        return [Segment(path) for path in sorted((self.folder / "crawl" / "segments").iterdir())]

    def parsed(self, part: str, short: str) -> ParseData | ParseText:
        """The record of a page in the segment that has it."""
        found = [
            record for segment in self.segments for record in segment.get(part, self.url(short))
        ]
        assert len(found) == 1, short
        assert isinstance(found[0], ParseData | ParseText)
        return found[0]

    def requests(self) -> list[str]:
        """Returns the requested URLs in short form."""
        names = {f"{address}:{self.server.site.port}": host for host, address in HOSTS.items()}
        return [f"{names[host]}{path}" for host, path in self.server.requests]


def crawl(folder: Path, *words: str) -> str:
    """The crawl command, with the demo's properties; returns what it printed."""
    out = io.StringIO()
    conf = Configuration.load([], overrides={**PROPERTIES, "fetcher.server.delay": "0.0"})
    assert run(list(words), JobContext(conf.freeze(), out=out, err=io.StringIO())) == 0
    return out.getvalue()


@pytest.fixture(scope="module")
def crawled(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Crawled]:
    folder = tmp_path_factory.mktemp("demo")
    with SiteServer() as server:
        seeds = write_seeds(folder, server.site)
        output = crawl(folder, str(seeds), str(folder / "crawl"), "3")
        yield Crawled(folder, server, output)


END_STATES = {
    # the first page, and what it links to
    "one/": "db_fetched",
    "one/about.html": "db_fetched",
    "one/books/": "db_fetched",
    "one/visit.html": "db_fetched",
    "one/opening-hours": "db_redir_perm",
    "one/news": "db_redir_temp",
    "one/lost.html": "db_gone",
    "one/closed.html": "db_gone",
    "one/broken": "db_unfetched",  # tried, failed, will be tried again
    "one/private/members.html": "db_gone",  # robots.txt
    "one/languages.html": "db_fetched",
    "one/refresh.html": "db_fetched",
    "one/notes.txt": "db_fetched",
    "one/archive.bin": "db_fetched",  # no parser: without signature
    "one/unindexed.html": "db_fetched",
    "two/": "db_fetched",
    # found in the second round
    "one/hours.html": "db_fetched",
    "one/news.html": "db_fetched",
    "one/books/tides.html": "db_fetched",
    "one/books/knots.html": "db_fetched",
    "one/fr.html": "db_fetched",
    "one/ru.html": "db_fetched",
    "one/ja.html": "db_fetched",
    "one/el.html": "db_fetched",
    "two/articles/cat.html": "db_fetched",
    "two/articles/lighthouse.html": "db_fetched",
    "two/library": "db_redir_perm",
    "two/loop": "db_redir_temp",
    "two/about-the-library.html": "db_duplicate",
    # found in the third, not fetched any more
    "one/books/tides-2.html": "db_unfetched",
}


def test_every_page_ends_as_it_should(crawled: Crawled) -> None:
    assert {url: datum.status_name for url, datum in crawled.crawldb.items()} == END_STATES


def test_failures_are_counted_and_pages_signed(crawled: Crawled) -> None:
    crawldb = crawled.crawldb
    assert {url for url, datum in crawldb.items() if datum.retries} == {"one/broken"}
    signed = {url for url, datum in crawldb.items() if datum.signature}
    expected = {url for url, state in END_STATES.items() if state in ("db_fetched", "db_duplicate")}
    assert signed == expected - {"one/archive.bin"}
    assert crawldb["one/about.html"].signature == crawldb["two/about-the-library.html"].signature


def test_each_page_was_asked_for_once(crawled: Crawled) -> None:
    requests = [url for url in crawled.requests() if not url.endswith("/robots.txt")]
    not_fetched = {"one/private/members.html", "one/books/tides-2.html"}
    assert sorted(requests) == sorted(set(END_STATES) - not_fetched)


def test_robots_txt_was_asked_for_first(crawled: Crawled) -> None:
    for host in HOSTS:
        mine = [url for url in crawled.requests() if url.startswith(f"{host}/")]
        assert mine[0] == f"{host}/robots.txt"


@pytest.mark.parametrize(
    ("url", "title", "word"),
    [
        ("one/fr.html", "Bibliothèque des marées", "l'été excepté"),
        ("one/ru.html", "Библиотека приливов", "Книги, карты"),
        ("one/ja.html", "潮の図書館", "本と地図"),
        ("one/el.html", "Βιβλιοθήκη της παλίρροιας", "Βιβλία και χάρτες"),
        ("one/news.html", "News", "The cat is well."),
        ("one/notes.txt", "", "Fog until ten"),
    ],
)
def test_charsets_and_codings(crawled: Crawled, url: str, title: str, word: str) -> None:
    data, text = crawled.parsed(PARSE_DATA, url), crawled.parsed(PARSE_TEXT, url)
    assert isinstance(data, ParseData)
    assert isinstance(text, ParseText)
    assert data.title == title
    assert word in text.text


def test_links(crawled: Crawled) -> None:
    def links(url: str) -> list[tuple[str, str]]:
        data = crawled.parsed(PARSE_DATA, url)
        assert isinstance(data, ParseData)
        return [(crawled.short(link.to_url), link.anchor) for link in data.outlinks]

    assert links("one/visit.html") == [("one/books/tides.html", "reading the tides")]
    assert links("one/unindexed.html") == []
    assert links("one/books/") == [
        ("one/books/tides.html", "Reading the Tides"),
        ("one/books/knots.html", "Twelve Knots"),
        ("one/about.html", "About us"),
        ("one/books/knots.html", "Twelve Knots, second copy"),
    ]


def test_the_linkdb_has_the_links_between_hosts(crawled: Crawled) -> None:
    linkdb = LinkDb(crawled.folder / "crawl" / "linkdb")
    inlinks = linkdb.get(crawled.url("two/articles/cat.html"))
    assert inlinks is not None
    assert [(crawled.short(link.from_url), link.anchor) for link in inlinks] == [
        ("one/news.html", "More about the cat")
    ]
    assert linkdb.get(crawled.url("one/about.html")) is None  # linkdb.ignore.internal.links


def test_the_segments_are_complete(crawled: Crawled) -> None:
    assert len(crawled.segments) == 3
    assert [segment.missing(COMPLETE) for segment in crawled.segments] == [[], [], []]


def test_a_table_shows_each_round(crawled: Crawled) -> None:
    assert crawled.output.count("Round ") == 3
    for step in ("inject", "generate", "fetch", "parse", "updatedb", "invertlinks", "dedup"):
        assert f"\n  {step} " in crawled.output


def test_going_on_fetches_what_is_left_and_then_stops(crawled: Crawled, tmp_path: Path) -> None:
    import shutil

    copy = tmp_path / "crawl"
    shutil.copytree(crawled.folder / "crawl", copy)
    output = crawl(tmp_path, str(copy), "5")
    assert output.count("nothing is due") == 1
    assert "\n1 round in 0:" in output
    again = Crawled(tmp_path, crawled.server, output)
    assert again.crawldb["one/books/tides-2.html"].status_name == "db_fetched"
    assert len(again.segments) == 4
