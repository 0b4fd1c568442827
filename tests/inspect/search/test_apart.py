"""An index that this machine's jobs have not written is opened in a process that may die of it."""

from __future__ import annotations

import json
import multiprocessing
import os
import random
import shutil
from collections import Counter
from pathlib import Path

import pytest

from minutch.errors import FormatError, IndexWriterError
from minutch.inspect.search.apart import Apart
from minutch.inspect.search.localindex import LocalIndex
from minutch.inspect.search.results import SearchOptions
from minutch.inspect.search.searcher import Searcher, suggestions
from minutch.records import crawldatum as status
from tests.faults.fuzz import damaged
from tests.inspect.search.harmful import Harmful
from tests.support.indexedcrawl import IndexedCrawl, Page, parted, with_sum

URLS = [f"http://a.org/{n}" for n in range(40)]


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    crawl = IndexedCrawl(tmp_path_factory.mktemp("whole"))
    crawl.crawldb(dict.fromkeys(URLS, status.STATUS_DB_FETCHED))
    pages = [
        Page(url, f"title {number % 7}", f"words of {url} ümlaut", lang="en")
        for number, url in enumerate(URLS)
    ]
    crawl.segment("20240101000000", pages)
    crawl.index()
    return crawl.folder


@pytest.fixture
def crawl(whole: Path, tmp_path: Path) -> Path:
    """A copy, which is nothing that our jobs have written."""
    shutil.copytree(whole, tmp_path / "crawl")
    return tmp_path / "crawl"


def asked(searcher: Searcher) -> object:
    """The answers to all questions that there are."""
    return (
        searcher.count,
        searcher.newest_hits(3),
        searcher.hosts(),
        searcher.host_count(),
        searcher.texts_like("wrods"),
        suggestions(searcher, "wrods nowhere"),
        [
            searcher.search(text, SearchOptions(20, host=host, count_hosts=True))
            for text in ("words", '"words of"', "title:title date:2023", "*", "x:y \ud800", "")
            for host in ("", "a.org")
        ],
    )


def processes() -> int:
    return sum(child.name == "index" for child in multiprocessing.active_children())


def test_an_index_of_ours_is_opened_here(whole: Path) -> None:
    before = processes()
    searcher = Searcher(whole / "index")
    assert searcher.search("words").count == 40
    assert processes() == before


def test_a_copy_is_opened_elsewhere_and_answers_the_same(whole: Path, crawl: Path) -> None:
    before = processes()
    searcher = Searcher(crawl / "index")
    assert processes() == before + 1
    assert asked(searcher) == asked(Searcher(whole / "index"))
    del searcher
    assert processes() == before


def test_a_copy_stays_one_until_it_is_made_again(crawl: Path) -> None:
    index = LocalIndex(crawl / "index")
    copied = IndexedCrawl(crawl)
    segment = copied.segment("20240102000000", [Page(URLS[0], text="new"), Page("http://b/")])
    for _ in range(2):
        copied.index("-nocrawldb", str(segment))
        assert not index.require()
        searcher = Searcher(index.path)
        assert (searcher.count, searcher.search("new").count) == (41, 1)
    copied.index(minutch__index__local__rebuild="true")
    assert index.require()


def test_an_index_of_another_user(crawl: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    IndexedCrawl(crawl).index(minutch__index__local__rebuild="true")
    index = LocalIndex(crawl / "index")
    assert index.require()
    uid = os.getuid()
    monkeypatch.setattr("minutch.inspect.search.localindex.os.getuid", lambda: uid + 1)
    if uid:
        assert not index.require()
    else:  # who is root may have written it
        os.chown(index.current / "minutch.json", 1234, -1)
        assert not index.require()


def harmful(index: Path, rng: random.Random) -> str:
    """Damages a file, with a checksum that fits; returns its name."""
    path = rng.choice(sorted(path for path in index.iterdir() if len(path.stem) == 32))
    body, footer = parted(path.read_bytes())
    path.write_bytes(with_sum(damaged(body, [], rng), footer))
    return path.name


@pytest.mark.slow
def test_what_was_made_to_do_harm_ends_its_own_process(whole: Path, tmp_path: Path) -> None:
    """Searched and written to; tantivy panics over a sixth of these, and aborts over some."""
    ends = Counter[str]()
    for seed in range(9):
        crawl = tmp_path / str(seed)
        shutil.copytree(whole, crawl)
        harmful(crawl / "index/current", random.Random(seed))
        try:
            asked(Searcher(crawl / "index"))
        except FormatError as error:
            assert error.path == str(crawl / "index/current") or error.path.startswith(str(crawl))
            assert error.hint.startswith("make it again")
            ends["refused"] += 1
        if seed % 4 == 0:
            try:
                IndexedCrawl(crawl).index()
            except IndexWriterError as error:
                assert str(crawl) in str(error)
    assert ends["refused"] >= 2


@pytest.fixture
def harm() -> Apart:
    return Apart(Harmful, (), memory=1 << 28, seconds=5)


def test_errors_of_calls_end_nothing(harm: Apart) -> None:
    for name, said in (("raises", "odd"), ("takes", "MemoryError")):
        with pytest.raises(ValueError, match=said):
            harm.call(int, name)
        assert harm.call(int, "answers") == 7


@pytest.mark.parametrize(("name", "said"), [("aborts", "SIGABRT"), ("lies", "not an answer")])
def test_a_process_that_has_ended_stays_so(harm: Apart, name: str, said: str) -> None:
    for called in (name, "answers"):
        with pytest.raises(ValueError, match=rf"was ended: .*{said}"):
            harm.call(int, called)


def test_a_call_without_end_ends() -> None:
    harm = Apart(Harmful, (), memory=1 << 28, seconds=0.5)
    assert harm.call(int, "answers") == 7
    with pytest.raises(ValueError, match=r"nothing within 0\.5 s"):
        harm.call(int, "sleeps")


def test_the_stamp_says_whose_it_is(crawl: Path) -> None:
    stamp = json.loads((crawl / "index/current/minutch.json").read_text())
    assert stamp["ours"]
