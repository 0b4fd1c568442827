"""URLs that differ in the values of their query alone are bounded, whatever the order in which they
come.
"""

from __future__ import annotations

import io
from pathlib import Path

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from minutch.conf import Configuration
from minutch.cycle.crawldb.store import CrawlDb
from minutch.cycle.fetchlist import due
from minutch.cycle.fetchlist.due import PatternLimits, patterns_of
from minutch.cycle.fetchlist.generate import generate
from minutch.cycle.fetchlist.selector import GenerateOptions
from minutch.hadoop.formats.javaio import encode_text
from minutch.inspect.explain.explainer import explain, overview
from minutch.job import JobContext
from minutch.records.crawldatum import CrawlDatum
from tests.support.crawldbs import write_db

SITE = "http://a.example"


def frame(urls: list[str], asked: set[str]) -> pl.DataFrame:
    return pl.DataFrame(
        {
            "key": pl.Series([encode_text(url) for url in urls], dtype=pl.Binary),
            "status": pl.Series([2 if url in asked else 1 for url in urls], dtype=pl.UInt8),
            "retries": pl.Series([0] * len(urls), dtype=pl.Int32),
        }
    )


def test_patterns() -> None:
    same = ["/l?a=1&b=2", "/l?b=3&a=", "/l?a=1;b=2#x", "/l?a&b=1&a=2"]
    other = ["/l?a=1", "/m?a=1&b=2", "/l?a=1&c=2", "/l?", "/l?A=1&b=2"]
    found = patterns_of(frame([SITE + path for path in ["/l", *same, *other]], set()))
    assert found["row"].to_list() == list(range(1, 10))
    hashes = found["pattern"].to_list()
    assert len(set(hashes[:4])) == 1 and len(set(hashes)) == 1 + len(other)


@given(
    st.lists(st.tuples(st.sampled_from("pqr"), st.integers(0, 40), st.booleans()), max_size=80),
    st.integers(0, 12),
    st.integers(1, 5),
)
def test_no_pattern_has_more_than_its_places(
    entries: list[tuple[str, int, bool]], most: int, pieces: int
) -> None:
    known = {f"{SITE}/l?{name}={value}": asked for name, value, asked in entries}
    urls, asked = list(known), {url for url, was in known.items() if was}
    table = frame(urls, asked)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(due, "_MANY", 7)
        limits = PatternLimits.of((table[at::pieces] for at in range(pieces)), most, None)
    mask = limits.have_place(table)
    for name in "pqr":
        mine = [url for url in urls if f"?{name}=" in url]
        before = len(asked & set(mine))
        taken = {url for url, has in zip(urls, mask, strict=True) if has} & set(mine)
        assert asked & set(mine) <= taken  # they are fetched again
        assert len(taken) == min(len(mine), max(most, before))


def test_generate_leaves_them_out_and_explain_says_so(tmp_path: Path) -> None:
    urls = [f"{SITE}/l?page={number}" for number in range(30)]
    entries = [(url, CrawlDatum(1)) for url in [f"{SITE}/", *urls]]
    write_db(tmp_path / "crawldb", sorted(entries))
    conf = Configuration.load([], overrides={due.PROPERTY: "10", "urlfilter.regex.rules": "+."})
    context = JobContext(conf, out=io.StringIO(), err=io.StringIO())
    made = generate(tmp_path / "crawldb", tmp_path / "segments", GenerateOptions(), context=context)
    assert (made.counters[due.PATTERN], made.counters["selected_total"]) == (20, 11)
    lines = {line.name: line.count for line in overview(tmp_path, context=context).next}
    assert lines[due.PATTERN] == 20
    verdicts = [explain(tmp_path, url, context=context).generate for url in urls]
    refused = [one for one in verdicts if one is not None and one.reason == due.PATTERN]
    assert len(refused) == 20 and "generate.max.per.pattern" in refused[0].text
    assert len(CrawlDb(tmp_path / "crawldb")) == 31
