"""URL filters and normalizers: tables/filters.jsonl and normalizers.jsonl, every row, by row and by
column.

The rules are those of the tables (conf/). The rules that minutch ships have wording of their own;
where Nutch's default ones were asked, they have to give the same answers.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import polars as pl
import pytest

from minutch.conf import Configuration
from minutch.plugin.chains import URLFilters, URLNormalizers
from tests.support.examples import tabled
from tests.support.golden import needs_golden
from tests.support.golden_tables import TABLES, answer, rows, suffix_list

pytestmark = needs_golden

HOST = "urlnormalizer.basic.host."
JAVA = "org.apache.nutch.net.urlnormalizer."
CHAIN = "urlnormalizer-(pass|regex|basic)"

FILTERS: dict[str, tuple[str, Mapping[str, str]]] = {
    "regex-default": ("urlfilter-regex", {}),
    "regex2": ("urlfilter-regex", {"urlfilter.regex.file": "regex-urlfilter2.txt"}),
    "prefix": ("urlfilter-prefix", {}),
    "suffix": ("urlfilter-suffix", {}),
    "suffix2": ("urlfilter-suffix", {"urlfilter.suffix.file": "suffix-urlfilter2.txt"}),
    "domain": ("urlfilter-domain", {}),
    "domaindenylist": ("urlfilter-domaindenylist", {}),
    "validator": ("urlfilter-validator", {}),
    "automaton": ("urlfilter-automaton", {}),
    "regex+validator": ("urlfilter-(regex|validator)", {}),
    "fast": ("urlfilter-fast", {}),
}
NORMALIZERS: dict[str, tuple[str, str, Mapping[str, str]]] = {
    "basic": ("urlnormalizer-basic", "default", {}),
    "basic-toAscii-trimdot": (
        "urlnormalizer-basic",
        "default",
        {HOST + "idn": "toAscii", HOST + "trim-trailing-dot": "true"},
    ),
    "basic-toUnicode": ("urlnormalizer-basic", "default", {HOST + "idn": "toUnicode"}),
    "basic-idna2008": (
        "urlnormalizer-basic",
        "default",
        {HOST + "idn": "toAscii", HOST + "idna2008": "true"},
    ),
    "regex": ("urlnormalizer-regex", "default", {}),
    "pass": ("urlnormalizer-pass", "default", {}),
    "chain": (CHAIN, "default", {}),
    "chain-outlink": (CHAIN, "outlink", {}),
    "chain-inject": (CHAIN, "inject", {}),
    "chain-reversed": (
        CHAIN,
        "default",
        {"urlnormalizer.order": f"{JAVA}regex.RegexURLNormalizer {JAVA}basic.BasicURLNormalizer"},
    ),
    "chain-loop3": (CHAIN, "default", {"urlnormalizer.loop.count": "3"}),
    "querystring": ("urlnormalizer-querystring", "default", {}),
    "slash": ("urlnormalizer-slash", "default", {}),
    "host": ("urlnormalizer-host", "default", {}),
    "protocol": ("urlnormalizer-protocol", "default", {}),
    "ajax": ("urlnormalizer-ajax", "default", {}),
    "ajax-indexer": ("urlnormalizer-ajax", "indexer", {}),
}
SHIPPED_FILTERS = ("regex-default", "suffix", "automaton", "regex+validator")
SHIPPED_NORMALIZERS = (
    "regex",
    "chain",
    "chain-outlink",
    "chain-inject",
    "chain-reversed",
    "chain-loop3",
)


@pytest.fixture(autouse=True)
def _suffix_list() -> Iterator[None]:
    with suffix_list():
        yield


def configuration(
    includes: str, values: Mapping[str, str], *, shipped: bool = False
) -> Configuration:
    conf = Configuration.load([] if shipped else [TABLES / "conf"])
    return conf.with_values({"plugin.includes": includes, **values})


def filter_differences(column: str, *, shipped: bool) -> list[Any]:
    includes, values = FILTERS[column]
    filters = URLFilters(configuration(includes, values, shipped=shipped))
    table = rows("filters.jsonl.gz")
    by_column = filters.filter_column(pl.Series([row["url"] for row in table])).to_list()
    wrong = []
    for row, at_once in zip(table, by_column, strict=True):
        found = filters.filter(row["url"])
        if {found, at_once} != {row[column]}:
            wrong.append((row["url"], row[column], found, at_once))
    assert len(table) >= 265
    assert filters.filters
    return wrong


def normalizer_differences(column: str, *, shipped: bool) -> list[Any]:
    includes, scope, values = NORMALIZERS[column]
    normalizers = URLNormalizers(configuration(includes, values, shipped=shipped), scope)
    table = rows("normalizers.jsonl.gz")
    by_column = normalizers.normalize_column(pl.Series([row["url"] for row in table])).to_list()
    wrong = []
    for row, at_once in zip(table, by_column, strict=True):
        expected = row[column]
        found = answer(normalizers.normalize, row["url"])
        none_for_error = None if str(expected).startswith("!") else expected
        if found != expected or at_once != none_for_error:
            wrong.append((row["url"], expected, found, at_once))
    assert len(table) >= 793
    assert normalizers.normalizers
    return wrong


@needs_golden("tables/normalizers.jsonl.gz")
def test_the_tables_have_no_other_columns() -> None:
    assert set(rows("filters.jsonl.gz")[0]) - {"url"} == FILTERS.keys()
    assert set(rows("normalizers.jsonl.gz")[0]) - {"url"} == NORMALIZERS.keys()


@tabled("column", FILTERS)
def test_filters(column: str) -> None:
    assert filter_differences(column, shipped=False) == []


@needs_golden("tables/normalizers.jsonl.gz")
@pytest.mark.parametrize("column", NORMALIZERS)
def test_normalizers(column: str) -> None:
    assert normalizer_differences(column, shipped=False) == []


@pytest.mark.parametrize("column", SHIPPED_FILTERS)
def test_shipped_filter_rules(column: str) -> None:
    assert filter_differences(column, shipped=True) == []


@needs_golden("tables/normalizers.jsonl.gz")
@pytest.mark.parametrize("column", SHIPPED_NORMALIZERS)
def test_shipped_normalizer_rules(column: str) -> None:
    assert normalizer_differences(column, shipped=True) == []
