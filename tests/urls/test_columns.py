"""Hosts and domains of columns, as of single URLs."""

from __future__ import annotations

import polars as pl
from hypothesis import given, settings
from hypothesis import strategies as st

from minutch.errors import UrlError
from minutch.urls.columns import domain_column, host_column, rewrite
from minutch.urls.domains import domain_of
from minutch.urls.parts import host_of, parse
from tests.urls.strategies import urls


def raw_host(url: str) -> str | None:
    try:
        return parse(url).host
    except UrlError:
        return None


@given(st.lists(urls, max_size=10))
@settings(max_examples=100)
def test_columns_are_rows(some: list[str]) -> None:
    column = pl.Series([*some, None], dtype=pl.String)
    hosts = [host_of(url) for url in some]
    assert host_column(column, lower=False).to_list() == [*map(raw_host, some), None]
    domains = [None if host is None else domain_of(host) for host in hosts if host is None or host.isascii()]
    found = domain_column(host_column(column)).to_list()
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
