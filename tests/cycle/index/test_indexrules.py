"""Each URL has one outcome in the index, on every branch of the decision."""

from __future__ import annotations

from itertools import product

import polars as pl
import pytest

from minutch.cycle.index import indexrules
from minutch.cycle.index.indexrules import IndexRules
from minutch.records import crawldatum as status
from tests.support.examples import tabled
from tests.support.pages import configuration

SUCCESS = status.STATUS_FETCH_SUCCESS
SCHEMA = {
    "fetch": pl.UInt8,
    "db": pl.UInt8,
    "parsed": pl.Boolean,
    "text": pl.Boolean,
    "noindex": pl.Boolean,
}
EVERYTHING = IndexRules(True, True, True, True, True)
Facts = tuple[int | None, int | None, bool | None, bool, bool]


def outcome(rules: IndexRules, *facts: object) -> str:
    table = pl.DataFrame([facts], schema=SCHEMA, orient="row")
    return str(rules.outcomes(table)[0])


@tabled(
    ("facts", "expected", "neutral"),
    [
        ((SUCCESS, None, True, True, False), indexrules.INDEXED, None),
        ((SUCCESS, status.STATUS_DB_FETCHED, True, True, False), indexrules.INDEXED, None),
        ((SUCCESS, status.STATUS_DB_ORPHAN, True, True, False), indexrules.INDEXED, None),
        ((SUCCESS, None, True, True, True), indexrules.DELETED_NOINDEX, indexrules.INDEXED),
        (
            (None, None, True, False, True),
            indexrules.DELETED_NOINDEX,
            indexrules.SKIPPED_NOT_FETCHED,
        ),
        (
            (status.STATUS_PARSE_FAILED, None, None, False, False),
            indexrules.DELETED_FAILED_PARSE,
            indexrules.SKIPPED_NOT_FETCHED,
        ),
        (
            (SUCCESS, status.STATUS_DB_PARSE_FAILED, False, True, False),
            indexrules.DELETED_FAILED_PARSE,
            indexrules.SKIPPED_FAILED_PARSE,
        ),
        (
            (status.STATUS_FETCH_GONE, None, None, False, False),
            indexrules.DELETED_GONE,
            indexrules.SKIPPED_NOT_FETCHED,
        ),
        (
            (status.STATUS_FETCH_RETRY, status.STATUS_DB_GONE, None, False, False),
            indexrules.DELETED_GONE,
            None,
        ),
        (
            (SUCCESS, status.STATUS_DB_GONE, True, True, False),
            indexrules.DELETED_GONE,
            indexrules.INDEXED,
        ),
        ((None, status.STATUS_DB_GONE, None, False, False), indexrules.SKIPPED_NOT_FETCHED, None),
        (
            (status.STATUS_FETCH_REDIR_PERM, None, None, False, False),
            indexrules.DELETED_REDIRECTS,
            None,
        ),
        (
            (status.STATUS_FETCH_REDIR_TEMP, None, None, False, False),
            indexrules.DELETED_REDIRECTS,
            None,
        ),
        (
            (SUCCESS, status.STATUS_DB_REDIR_PERM, True, True, False),
            indexrules.DELETED_REDIRECTS,
            indexrules.INDEXED,
        ),
        (
            (SUCCESS, status.STATUS_DB_REDIR_TEMP, True, True, False),
            indexrules.DELETED_REDIRECTS,
            indexrules.INDEXED,
        ),
        (
            (SUCCESS, status.STATUS_DB_DUPLICATE, True, True, False),
            indexrules.DELETED_DUPLICATES,
            indexrules.INDEXED,
        ),
        (
            (SUCCESS, status.STATUS_DB_DUPLICATE, None, False, False),
            indexrules.SKIPPED_NOT_PARSED,
            None,
        ),
        (
            (SUCCESS, status.STATUS_DB_NOTMODIFIED, True, True, False),
            indexrules.SKIPPED_NOT_MODIFIED,
            indexrules.INDEXED,
        ),
        ((SUCCESS, None, None, True, False), indexrules.SKIPPED_NOT_PARSED, None),
        ((SUCCESS, None, True, False, False), indexrules.SKIPPED_NOT_PARSED, None),
        ((None, None, True, True, False), indexrules.SKIPPED_NOT_FETCHED, None),
        (
            (status.STATUS_FETCH_RETRY, None, True, True, False),
            indexrules.SKIPPED_NOT_FETCHED,
            None,
        ),
        ((SUCCESS, None, False, True, False), indexrules.SKIPPED_FAILED_PARSE, None),
    ],
)
def test_an_outcome(facts: Facts, expected: str, neutral: str | None) -> None:
    """With all properties set; and with none, where that differs."""
    assert outcome(EVERYTHING, *facts) == expected
    if neutral is not None:
        assert outcome(IndexRules(), *facts) == neutral


def test_every_combination_has_an_outcome() -> None:
    codes = [None, *(code for code in range(0x46) if status.status_name(code) != "unknown")]
    rows = list(product(codes, codes, (None, True, False), (True, False), (True, False)))
    table = pl.DataFrame(rows, schema=SCHEMA, orient="row")
    for rules in (IndexRules(), EVERYTHING):
        outcomes = rules.outcomes(table)
        assert outcomes.null_count() == 0
        assert set(outcomes) <= {
            getattr(indexrules, name)
            for name in dir(indexrules)
            if name.isupper() and name != "DELETED"
        }


@pytest.mark.parametrize(
    ("name", "field"),
    [
        ("indexer.delete", "delete"),
        ("indexer.delete.robots.noindex", "delete_noindex"),
        ("parser.delete.failed.parse", "delete_failed_parse"),
        ("indexer.delete.skipped.by.indexingfilter", "delete_filtered"),
        ("indexer.skip.notmodified", "skip_not_modified"),
    ],
)
def test_properties(name: str, field: str) -> None:
    assert not getattr(IndexRules.from_conf(configuration("")), field)
    assert getattr(IndexRules.from_conf(configuration("", **{name: "true"})), field)
    assert IndexRules.from_conf(configuration(""), delete=True).delete


def test_what_a_filter_leaves_out() -> None:
    assert IndexRules().filtered == indexrules.SKIPPED_BY_FILTER
    assert IndexRules(delete_filtered=True).filtered == indexrules.DELETED_BY_FILTER
