"""Statements by SQL's rules: DuckDB, which checks every overflow, gives the same of the same rows.

DuckDB is given integers of 128 bits, and casts what it finds to 64: so it overflows where a result
of ours must not fit, and nowhere else.
"""

from __future__ import annotations

import math
from datetime import datetime, timedelta
from typing import Any, NamedTuple

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from minutch.errors import QueryError
from minutch.inspect.query.crawl import open_crawl
from minutch.inspect.query.session import Session
from minutch.records.crawldatum import STATUS_NAMES, CrawlDatum
from tests.support.crawldbs import DAY, NOW, write_db
from tests.support.examples import examples

duckdb = pytest.importorskip("duckdb")

ENTRIES = [
    (
        f"{scheme}{host}/{name}",
        CrawlDatum(
            1 + number % 5,
            (0, 60, 2_592_000, 2**31 - 1)[number % 4],
            (0.0, 1.5, -2.25, 2.0**100)[number % 4],
            NOW + (number - 20) * 37 * DAY + number,
            0 if number % 3 else NOW - number * DAY,
            number % 128 if number % 2 else 127,
        ),
    )
    for number, (scheme, host, name) in enumerate(
        (scheme, host, name)
        for scheme in ("http://", "https://", "")
        for host in ("a.org", "B.org", "d-é.org")
        for name in ("", "a_b", "a%b", "漢字", "x" * 40)
    )
]


class Sql(NamedTuple):
    """An expression as it is asked, and the same for DuckDB."""

    text: str
    duck: str

    def within(self, form: str, *others: Sql) -> Sql:
        """Returns a form with this expression, and others, in its places."""
        parts = (self, *others)
        return Sql(
            form.format(*(part.text for part in parts)), form.format(*(part.duck for part in parts))
        )


def same(text: str) -> Sql:
    """Returns an expression that both spell alike."""
    return Sql(text, text)


def _wide(text: str) -> Sql:
    return Sql(text, f"({text})::hugeint")


def integers() -> st.SearchStrategy[Sql]:
    """Expressions of integers: columns, functions, literals, arithmetic, conditions."""
    leaves = st.sampled_from(
        [
            "fetch_interval",
            "retries",
            "length(url)",
            "bit_length(host)",
            "extract(day from fetch_time)",
            "extract(hour from fetch_time)",
            "extract(year from modified_time)",
            "cast(retries as smallint)",
            "cast('12' as int)",
        ]
    ).map(_wide)
    numbers = st.sampled_from([0, 1, 7, 100, 2_000_000_000, 2**62, 2**63 - 1]).map(str).map(_wide)
    return st.recursive(
        leaves,
        lambda inner: st.one_of(
            st.tuples(
                st.sampled_from(["({} + {})", "({} - {})", "({} * {})"]), inner, inner | numbers
            ).map(lambda made: made[1].within(made[0], made[2])),
            st.tuples(inner, st.sampled_from(["2", "7", "1000"])).map(
                lambda made: made[0].within(f"({{}} % {made[1]})")
            ),
            inner.map(lambda one: one.within("(-{})")),
            inner.map(lambda one: one.within("abs({})")),
            inner.map(lambda one: one.within("coalesce({}, 0)")),
            st.tuples(conditions(), numbers, inner | numbers).map(
                lambda made: made[0].within("case when {} then {} else {} end", *made[1:])
            ),
        ),
        max_leaves=4,
    )


def conditions() -> st.SearchStrategy[Sql]:
    """Conditions: comparisons, lists with null, patterns, times."""
    return st.one_of(
        st.sampled_from(
            [
                "modified_time is null",
                "not (modified_time > fetch_time)",
                "status in ('db_fetched', null)",
                "host not in ('a.org')",
                "host not in ('a.org', null)",
                "url like '%a_b'",
                "url like 'http%'",
                "url not like '%_'",
                "host ilike 'b%'",
                "score > 1",
                "score * 1e10 < fetch_interval",
                "fetch_time >= timestamp '2026-01-01 00:00:00'",
                "fetch_time between date '2025-01-01' and timestamp '2027-01-01 00:00:00'",
                "fetch_time + interval '1 day' > modified_time",
                "cast(fetch_time as date) = date '2027-01-15'",
                "length(url) - 20 < 0",
                "retries between 1 and 126",
            ]
        ).map(same),
        st.sampled_from(["status = 'db_gone'", "host is not null"]).map(
            lambda text: same(f"not ({text} and modified_time > timestamp '2026-12-01 00:00:00')")
        ),
    )


def texts() -> st.SearchStrategy[Sql]:
    """Expressions of texts and times."""
    return st.sampled_from(
        [
            "status",
            "host",
            "lower(host)",
            "substr(url, 2, 5)",
            "url || '!'",
            "replace(url, 'a', '')",
            "date_trunc('month', fetch_time)",
            "cast(fetch_time as date)",
            "modified_time",
            "modified_time is null",
            "score",
            "score / 3",
            "fetch_interval / 7",
            "nullif(host, 'a.org')",
            "strpos(url, '.')",
            "strpos(host, '')",
            "position('é' in url)",
            "strpos(substr(url, strpos(url, 'o') + 1), 'r')",
        ]
    ).map(same)


@st.composite
def statements(draw: st.DrawFn) -> Sql:
    """A statement: rows, groups, or rows joined with themselves."""
    where = draw(st.none() | conditions())
    condition = same("") if where is None else where.within(" where {}")
    number = draw(integers())
    counted = Sql(f"{number.text} as n", f"cast({number.duck} as bigint) as n")
    match draw(st.sampled_from(["rows", "groups", "all", "join"])):
        case "rows":
            return draw(texts()).within("select {} as a, {} from crawldb{}", counted, condition)
        case "join":
            return counted.within(
                "select url, n, m from (select url, {} from crawldb{}) x left join (select url as"
                " other, count(*) as m from crawldb where retries = 127 group by 1) y"
                " on url = other",
                condition,
            )
        case kind:
            name = draw(st.sampled_from(["sum", "min", "max", "avg", "count"]))
            made = number.within(f"{name}({{}})")
            if name != "avg":
                made = Sql(made.text, f"cast({made.duck} as bigint)")
            every = made.within("{} as n, count(*) as m, count(modified_time) as k, min(score)")
            if kind == "all":
                return every.within("select {} from crawldb{}", condition)
            return every.within("select status, {} from crawldb{} group by status", condition)


@pytest.fixture(scope="module")
def session(tmp_path_factory: pytest.TempPathFactory) -> Session:
    folder = tmp_path_factory.mktemp("crawl")
    write_db(folder / "crawldb", ENTRIES, parts=2)
    return Session(open_crawl(folder), NOW)


@pytest.fixture(scope="module")
def duck() -> Any:
    connection = duckdb.connect()
    connection.execute(
        "create table crawldb (url varchar, host varchar, status varchar, fetch_time timestamp_ms,"
        " modified_time timestamp_ms, fetch_interval hugeint, retries hugeint, score double)"
    )
    rows = [
        (
            url,
            url.partition("://")[2].partition("/")[0].lower() or None,
            STATUS_NAMES[datum.status],
            _time(datum.fetch_time),
            _time(datum.modified_time) if datum.modified_time else None,
            datum.fetch_interval,
            datum.retries,
            datum.score,
        )
        for url, datum in ENTRIES
    ]
    connection.executemany(f"insert into crawldb values ({', '.join('?' * 8)})", rows)
    return connection


def _time(ms: int) -> datetime:
    return datetime(1970, 1, 1) + timedelta(milliseconds=ms)


def _comparable(rows: list[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    """Returns rows in one order, with floats of 9 digits: both add in an order of their own."""
    plain = [
        tuple(
            float(f"{value:.9g}") if isinstance(value, float) and math.isfinite(value) else value
            for value in row
        )
        for row in rows
    ]
    return sorted(plain, key=repr)


@settings(max_examples=examples(150))
@given(statement=statements())
def test_a_statement_gives_what_duckdb_gives(session: Session, duck: Any, statement: Sql) -> None:
    try:
        expected = _comparable(duck.execute(statement.duck).fetchall())
    except (duckdb.OutOfRangeException, duckdb.ConversionException):
        with pytest.raises((QueryError, pl.exceptions.InvalidOperationError)):
            session.query(statement.text).collect()
        return
    assert _comparable(session.query(statement.text).collect().rows()) == expected
