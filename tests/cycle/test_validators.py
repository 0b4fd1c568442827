"""ETags over several rounds: "not modified" only ever confirms the content that the CrawlDb
knows.
"""

from __future__ import annotations

import asyncio
import io
import shutil
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from minutch import CrawlDatum, CrawlDb, FakeClock, JobContext, Segment
from tests.support.commands import generate, inject, parse, updatedb
from tests.support.examples import few
from tests.support.misbehaving import MisbehavingServer, head
from tests.support.segments import conf_for, fetch_segment

NOW, DAY = 1_800_000_000_000, 86_400_000
OWN = {
    "plugin.includes": "protocol-http|parse-(html|text)|urlnormalizer-pass|scoring-opic",
    "db.ignore.external.links": "true",
}


@dataclass
class Site:
    """Pages that answer If-None-Match, and nothing else, with 304."""

    folder: Path
    server: MisbehavingServer
    pages: dict[str, tuple[str, str]] = field(default_factory=dict)
    """Path → content and tag; without a tag there is no ETag header."""
    moved: dict[str, str] = field(default_factory=dict)
    sent: list[tuple[str, str]] = field(default_factory=list)
    """Path and If-None-Match of each request of the last round."""
    rounds: int = 0

    async def answer(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, target: str
    ) -> None:
        lines = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
        path = lines[0].split(" ")[1]
        asked = next(
            (line.partition(": ")[2] for line in lines if line.startswith("If-None-Match")), ""
        )
        if path != "/robots.txt":
            self.sent.append((path, asked))
        if path in self.moved:
            writer.write(head(f"Location: {self.moved[path]}", status="301 Moved"))
        elif path not in self.pages:
            writer.write(head(status="404 Not Found"))
        else:
            text, tag = self.pages[path]
            headers = [f"ETag: {tag}"] if tag else []
            if tag and asked == tag:
                writer.write(head(*headers, status="304 Not Modified"))
            else:
                writer.write(head("Content-Type: text/html", *headers) + text.encode())

    def url(self, path: str) -> str:
        return self.server.url(path.lstrip("/"))

    def context(self, **values: str) -> JobContext:
        """The next round is 40 days later."""
        conf = conf_for(**values).with_values(OWN)
        return JobContext(
            conf,
            clock=FakeClock(NOW + 40 * DAY * self.rounds),
            out=io.StringIO(),
            err=io.StringIO(),
        )

    def inject(self, *paths: str) -> None:
        seeds = self.folder / "urls"
        seeds.mkdir()
        (seeds / "seed.txt").write_text("".join(f"{self.url(path)}\n" for path in paths))
        assert inject.run([str(self.folder / "crawldb"), str(seeds)], self.context()) == 0

    def fetch(self, *, parsed: bool = True, **values: str) -> Path:
        """Generate, fetch and parse a segment; with http.store.etag=false as Nutch does it."""
        self.rounds += 1
        self.sent.clear()
        context = self.context(**values)
        segments = self.folder / "segments"
        assert generate.run([str(self.folder / "crawldb"), str(segments)], context) == 0
        segment = max(segments.iterdir())
        fetch_segment(Segment(segment), context.conf, clock=context.clock)
        if parsed and not (segment / "crawl_parse").exists():
            assert parse.run([str(segment)], context) == 0
        return segment

    def update(self, *segments: Path, additions: bool = True) -> None:
        words = [
            str(self.folder / "crawldb"),
            *map(str, segments),
            *([] if additions else ["-noAdditions"]),
        ]
        assert updatedb.run(words, self.context()) == 0

    def round(self, **values: str) -> None:
        self.update(self.fetch(**values))

    def entry(self, path: str) -> CrawlDatum:
        found = CrawlDb(self.folder / "crawldb").get(self.url(path))
        assert found is not None
        return found

    def signature(self, path: str) -> bytes:
        signature = self.entry(path).signature
        assert signature
        return signature


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    with MisbehavingServer() as server:
        site = Site(tmp_path, server, {"/p": ("first", '"1"')})
        server.answer_all = site.answer
        site.inject("/p")
        yield site


@pytest.mark.parametrize("at_once", few(["false", "true"]))
def test_an_unchanged_page_is_asked_for_by_its_tag(site: Site, at_once: str) -> None:
    site.round(fetcher__parse=at_once)
    assert site.sent == [("/p", "")]
    first = site.signature("/p")
    for _ in range(2):
        site.round(fetcher__parse=at_once)
        assert site.sent == [("/p", '"1"')]
        assert (site.entry("/p").status_name, site.signature("/p")) == ("db_notmodified", first)
    site.pages["/p"] = "second", '"2"'
    site.round(fetcher__parse=at_once)
    assert site.entry("/p").status_name == "db_fetched" and site.signature("/p") != first
    site.round(fetcher__parse=at_once)
    assert site.sent == [("/p", '"2"')]


def test_the_old_way(site: Site) -> None:
    site.round(http__store__etag="false")
    assert "_validators_" not in str(site.entry("/p"))
    site.round()
    assert site.sent == [("/p", "")]
    site.round(http__store__etag="false")
    assert site.sent == [("/p", "")]


def test_a_segment_that_never_reaches_updatedb(site: Site) -> None:
    """Its version of the page is fetched once more: the CrawlDb does not know it."""
    site.round()
    first = site.signature("/p")
    site.pages["/p"] = "second", '"2"'
    shutil.rmtree(site.fetch())
    site.round()
    assert site.sent == [("/p", '"1"')]
    assert site.entry("/p").status_name == "db_fetched" and site.signature("/p") != first


def test_a_page_that_rolls_back_after_a_round_of_nutchs(site: Site) -> None:
    site.round()
    first = site.signature("/p")
    site.pages["/p"] = "second", '"2"'
    site.round(http__store__etag="false")
    assert "_validators_" not in str(site.entry("/p")) and site.signature("/p") != first
    site.pages["/p"] = "first", '"1"'
    site.round()
    assert site.sent == [("/p", "")]
    assert (site.entry("/p").status_name, site.signature("/p")) == ("db_fetched", first)


def test_a_page_that_rolls_back_to_what_it_was_before_it_had_no_tag(site: Site) -> None:
    site.round()
    first = site.signature("/p")
    site.pages["/p"] = "second", ""
    site.round()
    site.pages["/p"] = "first", '"1"'
    site.round()
    assert site.sent == [("/p", "")]
    assert (site.entry("/p").status_name, site.signature("/p")) == ("db_fetched", first)


def test_a_segment_that_was_not_parsed(site: Site) -> None:
    """Two segments in one update: the later fetch has no signature, so its tag is of no version
    known.
    """
    first = site.fetch()
    site.pages["/p"] = "second", '"2"'
    second = site.fetch(parsed=False)
    site.update(first, second)
    before = site.signature("/p")
    site.round()
    assert site.sent[0][1] != '"2"'
    assert site.entry("/p").status_name == "db_fetched" and site.signature("/p") != before


def test_without_additions(site: Site) -> None:
    site.pages |= {"/p": ('<a href="/q">q</a>', '"1"'), "/q": ("q", '"1"')}
    site.update(site.fetch(), additions=False)
    site.update(site.fetch(), additions=False)
    assert site.sent == [("/p", '"1"')]


@pytest.mark.parametrize("most", few(["0", "3"]))
def test_a_redirect_does_not_inherit_the_tag(site: Site, most: str) -> None:
    """The target has the same content and, for another version, the same tag."""
    site.round()
    site.moved["/p"] = "/q"
    site.pages["/q"] = "first", '"0"'
    site.round(http__redirect__max=most)
    if most == "0":
        assert "_validators_" not in str(site.entry("/q"))
    site.round(http__redirect__max=most)
    assert dict(site.sent)["/q"] in ("", '"0"')
    site.pages["/q"] = "second", '"1"'
    site.round(http__redirect__max=most)
    assert site.entry("/q").status_name == "db_fetched"
    assert '"1"' not in [tag for path, tag in site.sent if path == "/q"]


def test_a_page_that_was_cut_off_is_not_asked_for_by_its_tag(site: Site) -> None:
    site.pages["/p"] = "x" * 1000, '"1"'
    site.round(http__content__limit="100", parser__skip__truncated="false")
    site.round()
    assert site.sent == [("/p", "")]
    assert site.entry("/p").status_name == "db_fetched"
