"""Searches: which documents a query finds, whatever language they are in, and that no query is an
error.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from minutch.inspect.search.results import Hit, SearchOptions
from minutch.inspect.search.searcher import Searcher
from minutch.inspect.search.snippets import marked
from tests.support.examples import examples
from tests.support.indexedcrawl import IndexedCrawl, Page


@pytest.fixture(scope="module")
def searcher(harbours: IndexedCrawl) -> Searcher:
    return Searcher(harbours.index_folder)


def found(searcher: Searcher, query: str) -> list[str]:
    hits = searcher.search(query, SearchOptions(limit=50)).hits
    return [hit.url.removeprefix("http://") for hit in hits]


@pytest.mark.parametrize(
    ("query", "urls"),
    [
        ("harbour 7", ["a.example.org/07"]),
        ('"with 12 boats"', ["a.example.org/12"]),
        ('"boats 12"', []),
        ("dog", ["b.example.org/en"]),  # stemmed: the language is known
        ("RUN", ["b.example.org/en"]),
        ("title:dog", ["b.example.org/en"]),
        ("boat", []),  # no language, no stemmer
        ("hauser", ["b.example.org/de"]),
        ("Haus Meer", ["b.example.org/de"]),
        ("図書館", ["b.example.org/ja"]),
        ("館", ["b.example.org/ja"]),
        ("書図", []),
        ("linux", ["b.example.org/ja"]),
        ('"Linuxの本"', ["b.example.org/ja"]),
        ("문서", ["b.example.org/ko"]),
        ("host:b.example.org boats", ["b.example.org/"]),
        ("boats -host:a.example.org", ["b.example.org/"]),
        ("boats AND NOT host:a.example.org", ["b.example.org/"]),
        ("lang:de OR lang:ko", ["b.example.org/de", "b.example.org/ko"]),
        ("title:(dogs OR Meer)", ["b.example.org/de", "b.example.org/en"]),
        ("http://b.example.org/ko", ["b.example.org/ko"]),
        ("type:application/pdf", ["b.example.org/pdf"]),
        ("pap* host:b.example.org", ["b.example.org/pdf"]),
        ("title:nosuch OR dogs", ["b.example.org/en"]),
        ("nosuchfield:dogs", []),  # words in a row
        ("running:dogs", ["b.example.org/en"]),
        ("Running::dogs", ["b.example.org/en"]),
        ('"running do"*', ["b.example.org/en"]),
        ('"dogs running"~3', ["b.example.org/en"]),
        ("has:host -has:title", ["b.example.org/pic"]),
        ("segment:20240101000000", []),  # the newer one has all of its pages
        ("url:ko date:2023", ["b.example.org/ko"]),
        ("url:ko date:2023-11-14..", ["b.example.org/ko"]),
        ("url:ko date:[2023-11-14 TO 2023-11-15]", ["b.example.org/ko"]),
        ("url:ko date:..2023-11-13", []),
        ("url:ko date:>2024", []),
        ("", []),
        ("  ", []),
        ("AND", []),
    ],
)
def test_what_a_query_finds(searcher: Searcher, query: str, urls: list[str]) -> None:
    assert sorted(found(searcher, query)) == urls


def test_all_documents_and_all_but_some(searcher: Searcher) -> None:
    everything = searcher.search("*")
    assert everything.count == searcher.count == 34
    assert searcher.search("-harbour").count == 34 - searcher.search("harbour").count
    assert len(found(searcher, "*")) == 34


def test_the_title_counts_more_than_the_text(searcher: Searcher) -> None:
    assert found(searcher, "the other harbour boats OR another")[0] == "b.example.org/"


def test_pages_of_hits_follow_each_other(searcher: Searcher) -> None:
    every = found(searcher, "harbour")
    options = [SearchOptions(limit=10, offset=offset) for offset in (0, 10, 20, 30)]
    parts = [searcher.search("harbour", one).hits for one in options]
    assert [hit.url.removeprefix("http://") for part in parts for hit in part] == every
    assert searcher.search("harbour", SearchOptions(offset=1 << 40)).hits == []


def test_hosts_are_those_of_all_hits_even_when_one_is_chosen(searcher: Searcher) -> None:
    results = searcher.search("harbour", SearchOptions(host="b.example.org", count_hosts=True))
    assert [hit.url for hit in results.hits] == ["http://b.example.org/"]
    assert results.hosts == [("a.example.org", 25), ("b.example.org", 1)]


def test_snippets_show_what_was_searched_for(searcher: Searcher) -> None:
    (hit,) = searcher.search("dog").hits
    assert hit.snippet == [("The ", False), ("dogs", True), (" were running quickly", False)]
    (hit,) = searcher.search("図書館").hits
    assert hit.snippet[:2] == [("潮の", False), ("図書館", True)]
    (hit,) = searcher.search("lang:ko").hits
    assert hit.snippet == [("한국어로 쓴 문서입니다", False)]


def test_documents_come_back_as_they_were_sent(searcher: Searcher) -> None:
    (hit,) = searcher.search("図書館").hits
    assert hit.fields["content"] == ["潮の図書館には本と地図と潮見表があります。Linuxの本も。"]
    assert hit.fields["tstamp"] == ["2023-11-14T22:13:20.000Z"]
    assert hit.fields["type"] == ["text/html", "text", "html"]
    assert hit.fields["boost"] == ["1.2247449"]  # of a score of 1.5


def test_pieces_of_doubled_text_are_marked_once() -> None:
    text = "我们\u2060们使\u2060使用\u200bLinux"
    assert marked(text, [(9, 15)]) == [("我", False), ("们使", True), ("用Linux", False)]
    assert marked("é  x", [(0, 2)]) == [("é", True), (" x", False)]


WORDS = [
    '"',
    "(",
    ")",
    "-",
    "+",
    " ",
    "NOT",
    "AND",
    "OR",
    ":",
    "title",
    "date",
    "host",
    "2020",
    "..",
    "[",
    "]",
    " TO ",
]
WORDS += [
    "*",
    "~",
    "^",
    "\\",
    "/",
    "harbour",
    "館",
    "図書",
    "\x00",
    "IN",
    "{",
    "}",
    "<",
    ">=",
    "😀",
    "\ud800",
    "{*",
    "'",
]


@settings(max_examples=examples(400))
@given(st.one_of(st.lists(st.sampled_from(WORDS), max_size=12).map("".join), st.text(max_size=40)))
def test_no_query_is_an_error(searcher: Searcher, query: str) -> None:
    results = searcher.search(query, SearchOptions(count_hosts=True))
    assert results.count >= len(results.hits)


def test_cut_snippets_say_so(tmp_path: Path) -> None:
    """An ellipsis stands where text was left out, and nowhere else."""
    crawl = IndexedCrawl(tmp_path)
    long = "before " * 200 + "needle" + " after" * 200
    pages = [Page("http://a.org/1", "", long), Page("http://a.org/2", "short", "a needle here")]
    crawl.segment("20240101000000", pages)
    crawl.index()
    searcher = Searcher(crawl.index_folder)
    shown = {hit.url[-1]: "".join(text for text, _ in hit.snippet) for hit in _hits(searcher)}
    assert shown["1"].startswith("…before") and shown["1"].endswith("after…")
    assert shown["2"] == "a needle here"
    (start,) = (hit.snippet for hit in searcher.newest_hits(9) if hit.url.endswith("1"))
    assert start[0][0].startswith("before") and start[0][0].endswith("…")


def _hits(searcher: Searcher) -> list[Hit]:
    return searcher.search("needle").hits
