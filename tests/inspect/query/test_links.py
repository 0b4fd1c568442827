"""Links where the LinkDb has none within a host: those of the newest parse of each page."""

from __future__ import annotations

import csv
import shlex
from pathlib import Path

import pytest

import minutch
from minutch.inspect.search.crawlfiles import CrawlFiles
from minutch.records import crawldatum as status
from minutch.records.links import Inlink
from tests.inspect.query.test_exports import run
from tests.support.commands import invertlinks
from tests.support.demo import PROPERTIES
from tests.support.docpages import blocks
from tests.support.indexedcrawl import IndexedCrawl, Page
from tests.support.siteserver import SiteServer

A, B, GONE, FAR = "http://a.org/", "http://a.org/b", "http://a.org/gone", "http://far.org/"


@pytest.fixture
def site(tmp_path: Path) -> IndexedCrawl:
    """A site crawled twice; its first page was changed in between, its second one lost its links,
    and a third one could not be parsed the second time.
    """
    crawl = IndexedCrawl(tmp_path / "crawl")
    other = "http://a.org/c"
    gone = Page(GONE, status=status.STATUS_FETCH_GONE)
    first = [
        Page(A, links=[(B, "old words"), (GONE, "gone")]),
        Page(B, links=[(A, "lost")]),
        Page(other, links=[(A, "home")]),
    ]
    crawl.segment("20260101000000", first)
    crawl.segment(
        "20260102000000", [Page(A, links=[(B, "b"), (GONE, "go"), (FAR, "far")]), Page(B), gone]
    )
    crawl.crawldb({A: 2, B: 2, other: 2, GONE: 3, FAR: 1})
    return crawl


NEWEST = {(B, A, "b"), (GONE, A, "go"), (FAR, A, "far"), (A, "http://a.org/c", "home")}


def invert(site: IndexedCrawl) -> None:
    """Builds a LinkDb as Nutch does by default, without the links within a host."""
    words = [str(site.folder / "linkdb"), "-dir", str(site.folder / "segments"), "-noNormalize"]
    assert invertlinks.run(words, site.context(urlfilter__regex__rules="+.")) == 0


def links_of(crawl: Path) -> set[tuple[str, str, str]]:
    frame = minutch.open(crawl).tables["links"].scan().collect()
    assert frame.height == frame.unique().height
    return set(frame.select("url", "from_url", "anchor").iter_rows())


def test_without_a_linkdb_or_without_links_in_hosts(site: IndexedCrawl) -> None:
    assert links_of(site.folder) == NEWEST
    invert(site)
    db = minutch.open(site.folder).linkdb
    assert [row["url"] for row in db] == [FAR]  # what Nutch leaves there
    assert links_of(site.folder) == NEWEST


def test_a_linkdb_with_them_is_what_is_read(site: IndexedCrawl) -> None:
    site.invert()
    assert (A, B, "lost") in links_of(site.folder)  # a LinkDb forgets no link


@pytest.mark.slow  # a whole crawl
def test_the_queries_for_broken_links_find_them(tmp_path: Path) -> None:
    """As the docs have it, on a crawl of one site with Nutch's own defaults."""
    with SiteServer() as server:
        nutchs = PROPERTIES | {"minutch.profile": "nutch"}
        crawl = minutch.open(tmp_path / "crawl", create=True, conf=nutchs)
        crawl.inject([server.site.url("one")])
        crawl.run(rounds=3)
    assert crawl.conf.get("linkdb.ignore.internal.links") == "true"
    within = server.site.url("one")
    for page in ("audit", "sql"):
        link = next(one for one in statements(page) if "join links" in one and "code >= 400" in one)
        found = crawl.sql(link)
        assert any(
            row["url"].startswith(within) and row["from_url"].startswith(within)
            for row in found.iter_rows(named=True)
        ), page
        assert set(found["code"]) <= set(range(400, 600))


def statements(page: str) -> list[str]:
    """The SQL of a page of the docs."""
    found = [block.body for block in blocks(page) if block.language == "sql"]
    lines = [line for block in blocks(page) if block.language == "sh" for line in block.lines]
    return found + [shlex.split(line)[3] for line in lines if line.startswith("minutch sql")]


@pytest.mark.parametrize("linkdb", ["none", "external", "all"])
def test_wrong_links_are_those_to_what_is_no_page(site: IndexedCrawl, linkdb: str) -> None:
    """By numbers that are collected while parses are read, or by the LinkDb."""
    if linkdb != "none":
        internal = str(linkdb == "external").lower()
        words = [str(site.folder / "linkdb"), "-dir", str(site.folder / "segments")]
        context = site.context(
            urlfilter__regex__rules="+.", linkdb__ignore__internal__links=internal
        )
        assert invertlinks.run([*words, "-noNormalize"], context) == 0
    crawl = minutch.open(site.folder)
    joined = crawl.sql(
        "select s.url, s.outcome, s.code, s.redirect_to, l.from_url, l.anchor"
        " from links l join site s on s.url = l.url"
        " where s.outcome not in ('fetched', 'unchanged') order by all"
    )
    found = crawl.sql("select * from wrong_links order by all")
    assert found.rows() == joined.rows()
    assert (GONE, A, "go") in set(found.select("url", "from_url", "anchor").iter_rows())


def test_edges_and_pages_show_them(site: IndexedCrawl, tmp_path: Path) -> None:
    invert(site)
    run("edges", site.folder, tmp_path / "edges.csv")
    with (tmp_path / "edges.csv").open(encoding="utf-8", newline="") as file:
        rows = {(row["Target"], row["Source"], row["Label"]) for row in csv.DictReader(file)}
    assert rows == NEWEST
    assert run("graphml", site.folder, tmp_path / "links.graphml")["links"] == len(NEWEST)
    files = CrawlFiles(site.folder)
    assert files.inlinks(GONE) == [Inlink(A, "go")]
    assert files.inlinks(FAR) == [Inlink(A, "far")]
    assert files.inlinks("http://a.org/unknown") == []
