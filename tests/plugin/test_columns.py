"""The helpers of column twins: what they do to strings and to tables of records."""

from __future__ import annotations

import subprocess
import sys

import polars as pl
from hypothesis import given, settings
from hypothesis import strategies as st

from minutch.errors import UrlError
from minutch.plugin.columns import (
    domain_column,
    host_column,
    keep,
    keys_of,
    map_distinct,
    map_records,
    records,
    rewrite,
    schema,
    urls_of,
)
from minutch.records.crawldatum import CrawlDatum
from minutch.records.crawldatum_columns import to_frame
from minutch.urls.domains import domain_of
from minutch.urls.parts import host_of, parse
from tests.support.examples import examples
from tests.support.golden import PROJECT
from tests.urls.strategies import urls


def raw_host(url: str) -> str | None:
    try:
        return parse(url).host
    except UrlError:
        return None


@given(st.lists(urls, max_size=10))
@settings(max_examples=examples(100))
def test_columns_are_rows(some: list[str]) -> None:
    column = pl.Series([*some, None], dtype=pl.String)
    hosts = [host_of(url) for url in some]
    assert host_column(column).to_list() == [*map(raw_host, some), None]
    domains = [
        None if host is None else domain_of(host)
        for host in hosts
        if host is None or host.isascii()
    ]
    found = domain_column(host_column(column).str.to_lowercase()).to_list()
    assert [d for d, h in zip(found, hosts, strict=False) if h is None or h.isascii()] == domains


def test_a_rewritten_column_is_a_copy() -> None:
    column = pl.Series(["a", "b", None])
    mask = pl.Series([True, False, None])
    assert rewrite(column, mask, str.upper).to_list() == ["A", "b", None]
    assert column.to_list() == ["a", "b", None]


def test_what_is_malformed_becomes_null() -> None:
    def refuse(url: str) -> str:
        raise UrlError(url)

    assert rewrite(pl.Series(["a", "b"]), pl.Series([True, False]), refuse).to_list() == [None, "b"]


def test_what_is_not_kept_is_null() -> None:
    kept = keep(pl.Series("u", ["a", "b", None]), pl.Series([True, False, True]))
    assert (kept.name, kept.to_list()) == ("u", ["a", None, None])


def test_a_function_is_asked_once_per_distinct_string() -> None:
    asked: list[str] = []

    def upper(text: str) -> str | None:
        asked.append(text)
        return None if text == "b" else text.upper()

    assert map_distinct(pl.Series(["a", "b", None, "a"]), upper).to_list() == ["A", None, None, "A"]
    assert sorted(asked) == ["a", "b"]


def test_keys_are_bytes_and_may_be_no_text() -> None:
    frame = to_frame([("http://é/", CrawlDatum(1)), ("http://b/", CrawlDatum(2))])
    assert frame.schema == schema()
    assert urls_of(frame).to_list() == ["http://é/", "http://b/"]
    assert keys_of(urls_of(frame)).to_list() == frame["key"].to_list()
    broken = frame.with_columns(key=pl.Series([b"http://\xff/", b"x"]))
    assert urls_of(broken).to_list() == ["http://\ufffd/", "x"]


def test_records_can_be_changed_one_by_one() -> None:
    frame = to_frame(
        [("http://a/", CrawlDatum(1, score=1.0)), ("http://b/", CrawlDatum(2, score=2.0))]
    )

    def double(url: str, datum: CrawlDatum) -> None:
        datum.score *= 2 if url == "http://b/" else 1

    changed = map_records(frame.with_columns(extra=pl.Series([7, 8])), double)
    assert [(url, datum.score) for url, datum in records(changed)] == [
        ("http://a/", 1.0),
        ("http://b/", 4.0),
    ]
    assert changed["extra"].to_list() == [7, 8]


def test_plugins_that_see_single_records_do_not_load_polars() -> None:
    code = (
        "import sys, minutch.plugin.columns, minutch.plugin.points; assert 'polars' not in"
        " sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True, cwd=PROJECT)
