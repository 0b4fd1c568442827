"""Patterns get a share by what they have given: traps a bounded one, sites that end all of it."""

from __future__ import annotations

import io
from pathlib import Path

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from minutch.conf import Configuration
from minutch.cycle.crawldb.store import CrawlDb
from minutch.cycle.fetchlist import budget, due
from minutch.cycle.fetchlist.generate import generate
from minutch.cycle.fetchlist.selector import GenerateOptions
from minutch.inspect.explain.explainer import explain, overview
from minutch.job import JobContext
from minutch.records.crawldatum import STATUS_DB_FETCHED, STATUS_DB_UNFETCHED, CrawlDatum
from tests.benchmarks.traps import web
from tests.benchmarks.traps.columns import ColumnCrawl
from tests.support.crawldbs import NOW, write_db
from tests.support.examples import examples

SITE = "http://a.example"
DAY = 86_400


def _page(signature: bytes | None, at: int = NOW) -> CrawlDatum:
    """A page that was fetched, or with None one that was found, a day ago."""
    datum = CrawlDatum(STATUS_DB_UNFETCHED if signature is None else STATUS_DB_FETCHED)
    datum.fetch_interval, datum.signature = 30 * DAY, signature
    datum.fetch_time = at + (0 if signature is None else 30 * DAY * 1000)
    return datum


def _context(**settings: str) -> JobContext:
    given = {
        "generate.pattern.budget": "20",
        "urlfilter.regex.rules": "+.",
        "generate.curTime": str(NOW),
        **settings,
    }
    return JobContext(Configuration.load([], overrides=given), out=io.StringIO(), err=io.StringIO())


def _crawldb(folder: Path, sessions: int, items: int) -> CrawlDb:
    """A CrawlDb in which sessions led to three pages, and items each to one."""
    then, asked = NOW - DAY * 1000, dict[str, CrawlDatum]()
    for number in range(120):
        asked[f"{SITE}/s?sid={number:032x}"] = _page(b"page %d" % (number % 3), then)
    for number in range(30):
        asked[f"{SITE}/item?id={number}"] = _page(b"item %d" % number, then)
    for number in range(sessions):
        asked[f"{SITE}/s?sid={number + 1000:032x}"] = _page(None, then + 1)
    for number in range(items):
        asked[f"{SITE}/item?id={number + 1000}"] = _page(None, then - 1)
    return write_db(folder / "crawldb", sorted(asked.items()))


def test_generate_explain_and_the_crawldb(tmp_path: Path) -> None:
    _crawldb(tmp_path, sessions=80, items=100)
    context = _context()
    made = generate(tmp_path / "crawldb", tmp_path / "segments", GenerateOptions(), context=context)
    assert (made.counters[due.PATTERN], made.counters["selected_total"]) == (79, 101)
    lines = {line.name: line.count for line in overview(tmp_path, context=context).next}
    assert lines[due.PATTERN] == 79
    urls = [f"{SITE}/s?sid={number + 1000:032x}" for number in range(3)]
    verdicts = [explain(tmp_path, url, context=context).generate for url in urls]
    refused = [one.text for one in verdicts if one is not None and one.reason == due.PATTERN]
    assert len(refused) >= 2
    assert "the pattern a.example/s?sid has given 3 new pages of 120 requests" in refused[0]
    assert ": 1 a round; 80 wait" in refused[0]
    assert len(CrawlDb(tmp_path / "crawldb")) == 330
    again = generate(tmp_path / "crawldb", tmp_path / "other", GenerateOptions(), context=context)
    assert again.counters == made.counters  # the seed of hashes decides nothing
    nutch = _context(**{budget.PROPERTY: "-1"})
    every = generate(tmp_path / "crawldb", tmp_path / "all", GenerateOptions(), context=nutch)
    assert every.counters["selected_total"] == 180


def test_patterns_that_share_an_allowance_have_counts_of_their_own() -> None:
    rows = [(1, 0, 9, 4, 120, 3, 80, 0), (2, 0, 9, 4, 60, 2, 10, 0), (3, 0, 9, 4, 30, 30, 5, 0)]
    counts = pl.DataFrame(rows, schema=budget.COUNTS, orient="row")
    found = budget.allowances(counts, 20).sort("group")
    assert found.select("asked", "new", "waiting").rows() == [
        (120, 3, 80),
        (60, 2, 10),
        (30, 30, 5),
    ]
    assert found["pool"][0] == found["pool"][1] != found["pool"][2] == 3
    assert found["shared"].to_list() == [True, True, False]
    assert found["allowed"][0] == found["allowed"][1] < 5 < found["allowed"][2]


def test_of_what_patterns_leave_the_best_are_listed(tmp_path: Path) -> None:
    _crawldb(tmp_path, sessions=80, items=100)
    top = GenerateOptions(top_n=50)
    made = generate(tmp_path / "crawldb", tmp_path / "segments", top, context=_context()).counters
    assert (made["selected_total"], made[due.PATTERN]) == (50, 79)


def test_little_memory_and_many_tables_change_nothing(tmp_path: Path) -> None:
    _crawldb(tmp_path, sessions=80, items=100)
    made = [
        generate(
            tmp_path / "crawldb",
            tmp_path / memory,
            GenerateOptions(),
            context=_context(**{"minutch.memory": memory}),
        ).counters
        for memory in ("10k", "1g")
    ]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(budget, "_MANY", 7)
        few = _context(**{"minutch.memory": "1g"})
        made.append(
            generate(tmp_path / "crawldb", tmp_path / "7", GenerateOptions(), context=few).counters
        )
    assert made[0] == made[1] == made[2]


def test_what_is_being_fetched_counts(tmp_path: Path) -> None:
    _crawldb(tmp_path, sessions=80, items=100)
    context = _context(**{"generate.update.crawldb": "true"})
    first = generate(
        tmp_path / "crawldb", tmp_path / "segments", GenerateOptions(), context=context
    )
    second = generate(
        tmp_path / "crawldb", tmp_path / "segments", GenerateOptions(), context=context
    )
    assert first.counters["selected_total"] == 101 and not second.segments
    assert second.counters[due.PATTERN] == 79


_TRAPS = {
    "calendar": web.calendar, "facets": web.facets, "docs/": web.relative, "maze/a/b/c": web.maze,
    "amber-zebra": web.tarpit, "t?t=0": web.noise, "old.html": web.soft404("same"),
}  # fmt: skip
_HONEST = {
    "catalogue": web.catalogue(200), "forum": web.forum(160), "wiki": web.wiki(120),
    "blog": web.blog(120), "languages": web.languages(120), "plain": web.plain(150, "plain"),
}  # fmt: skip


def _allowed(*rounds: tuple[int, int, int]) -> int:
    """Returns what a group is allowed whose rounds asked for, had new, and found so many."""
    counts = [(5, at, 9, 3, *numbers, 0) for at, numbers in enumerate(rounds)]
    counts.append((7, 0, 8, 3, 900, 900, 0, 0))  # the rest of the crawl
    table = budget.allowances(pl.DataFrame(counts, schema=budget.COUNTS, orient="row"), 20)
    return int(table.filter(pl.col("group") == 5)["allowed"][0])


def test_allowances() -> None:
    assert _allowed((0, 0, 900)) == 200  # a new host
    assert _allowed((10, 10, 900)) == 10  # links to new pages alone, so far
    assert _allowed((50, 50, 400)) == 25
    assert _allowed((90, 90, 500), (90, 90, 500)) == 10  # more than others: it grows as ever
    assert _allowed((900, 900, 4500), (900, 900, 4500)) == 10
    assert _allowed((200, 200, 1000), (20, 20, 100)) == 1
    assert _allowed((10, 10, 900), (20, 20, 0)) == 120  # all links are known: it ends
    assert _allowed((100, 100, 900), (200, 200, 30)) == 1200
    assert _allowed((100, 3, 900)) == 1  # no new pages
    assert _allowed((100, 100, 0), (300, 3, 900)) == 1  # none any more


@pytest.mark.slow
@settings(max_examples=examples(10), deadline=None)
@given(
    st.lists(st.sampled_from(sorted(_TRAPS)), min_size=1, max_size=2, unique=True),
    st.sampled_from(sorted(_HONEST)),
)
def test_traps_are_bounded_and_sites_that_end_are_read(traps: list[str], honest: str) -> None:
    sites = {honest: _HONEST[honest]}
    names = {f"trap{number}": entry for number, entry in enumerate(traps)}
    for name, entry in names.items():
        sites[name] = web.beside(name, 30, f"/{entry}", _TRAPS[entry])
    crawl = ColumnCrawl(sites, 20)
    for _ in range(30):
        crawl.round()
    assert crawl.good[honest] == len(web.contents_of(sites[honest]))
    for name, entry in names.items():
        assert crawl.good[name] == 30, entry
        assert crawl.asked[name] < 1000, entry  # of those without end that there are
