"""Statements whose answers are known: by SQL's standard, as PostgreSQL gives them, or SQLite where
the standard is silent. And conditions that tables leave rows out by: the same without them.
"""

from __future__ import annotations

from datetime import date, datetime, timedelta
from typing import Any

import duckdb
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from minutch.errors import QueryError
from minutch.inspect.query.crawl import open_crawl
from minutch.inspect.query.session import Session
from minutch.records.crawldatum import STATUS_NAMES, CrawlDatum
from tests.support.crawldbs import DAY, NOW, metadata, write_db
from tests.support.examples import examples

FOUR = [
    ("http://a.org/1", CrawlDatum(1, 2_592_000, 1.0, NOW, retries=127)),
    ("http://a.org/2", CrawlDatum(2, 60, 2.5, NOW - DAY, modified_time=NOW - DAY)),
    ("http://b.org/%41_x", CrawlDatum(2, 60, 0.5, NOW + DAY, metadata=metadata(k="v", l="w"))),
    ("http://b.org/é", CrawlDatum(3, 7, 4.0, NOW)),
]
ANSWERS: list[tuple[str, Any]] = [
    ("select 9223372036854775807 + 1 as n", QueryError),
    ("select sum(x) as n from (select 9223372036854775807 as x from crawldb) t", QueryError),
    ("select sum(fetch_interval) as n from crawldb", [(2592127,)]),
    (
        "select fetch_interval * 4000000000 as n from crawldb where retries = 127",
        [(2592000 * 4000000000,)],
    ),
    (
        "select fetch_interval * fetch_interval * fetch_interval * fetch_interval *"
        " fetch_interval * fetch_interval * fetch_interval as n from crawldb where"
        " retries = 127",
        QueryError,
    ),
    ("select a * 3000000000 as n from (select 3000000000 as a) t", [(9 * 10**18,)]),
    ("select b * b as n from (select 70000 as b) t", QueryError),
    ("select max(retries) + max(retries) as n from crawldb", [(254,)]),
    ("select cast(300 as tinyint) as n", QueryError),
    ("select cast('12x' as integer) as n", QueryError),
    ("select url from crawldb where url like '%!%41!_x' escape '!'", [("http://b.org/%41_x",)]),
    ("select count(*) as n from crawldb where url like '%!_%' escape '!'", [(1,)]),
    ("select count(*) as n from crawldb where url like 'http://a.org/_'", [(2,)]),
    ("select count(*) as n from crawldb where url like 'HTTP://%'", [(0,)]),
    ("select count(*) as n from crawldb where url ilike 'HTTP://A%'", [(2,)]),
    ("select count(*) as n from crawldb where url not like '%a.org%'", [(2,)]),
    ("select 'a' like 'a%' and not 'b' like 'a%' as n", [(True,)]),
    ("select substr('hello', 0, 3) as x", [("he",)]),
    ("select substr('hello', -1, 3) as x", [("o",)]),
    ("select substring('hello' from 2 for 3) as x", [("ell",)]),
    ("select substr('héllo', 2, 1) as x", [("é",)]),
    ("select substr('hello', 2) as x", [("ello",)]),
    ("select strpos('aéb', 'b') as n", [(3,)]),
    ("select position('' in 'abc') as n", [(1,)]),
    ("select position('z' in 'abc') as n", [(0,)]),
    ("select strpos('a.b', '.') as n", [(2,)]),
    ("select strpos(null, 'a') as n", [(None,)]),
    ("select length('é漢') as n", [(2,)]),
    ("select upper('aé') as x", [("AÉ",)]),
    ("select 'a' || null as x", [(None,)]),
    ("select coalesce(null, 'b') as x", [("b",)]),
    ("select nullif(1, 1) as n", [(None,)]),
    ("select replace('aaa', 'a', 'b') as x", [("bbb",)]),
    ("select trim('  x ') as x", [("x",)]),
    ("select split_part('a/b/c', '/', 2) as x", [("b",)]),
    ("select left('abc', 2) || right('abc', 1) as x", [("abc",)]),
    ("select regexp_like('abc', '^a.c$') as x", [(True,)]),
    ("select count(*) as n from crawldb where 1 not in (select null from crawldb)", [(0,)]),
    ("select count(*) as n from crawldb where retries not in (1, null)", [(0,)]),
    (
        "select count(*) as n from crawldb where url not in (select url from crawldb"
        " where modified_time is null and url like '%a.org%')",
        [(3,)],
    ),
    ("select count(*) as n from crawldb where null = null", [(0,)]),
    ("select (null and false) as x", [(False,)]),
    ("select (null or true) as x", [(True,)]),
    ("select count(modified_time) as n, count(*) as m from crawldb", [(1, 4)]),
    ("select sum(retries) as n from crawldb where 1 = 0", [(None,)]),
    ("select count(*) as n from crawldb where 1 = 0", [(0,)]),
    ("select 7 // 2 as n", [(3,)]),
    ("select -7 % 3 as n", [(-1,)]),
    ("select 7 / 2.0 as n", [(3.5,)]),
    ("select 0.1 + 0.2 = 0.3 as x", [(True,)]),
    ("select cast(2.5 as decimal(4,1)) * 2 as n", [(5.0,)]),
    ("select round(2.5) as n", [(3.0,)]),
    (
        "select status, count(*) as n from crawldb group by 1 order by 2 desc, 1",
        [("db_fetched", 2), ("db_gone", 1), ("db_unfetched", 1)],
    ),
    (
        "select host, count(*) as n from crawldb group by host having count(*) > 1 order by host",
        [("a.org", 2), ("b.org", 2)],
    ),
    (
        "select host, sum(score) as n from crawldb group by host having sum(score) > 4 order by 1",
        [("b.org", 4.5)],
    ),
    ("select count(distinct host) as n from crawldb", [(2,)]),
    (
        "select url, row_number() over (partition by host order by url desc) as n"
        " from crawldb order by url",
        [
            ("http://a.org/1", 2),
            ("http://a.org/2", 1),
            ("http://b.org/%41_x", 2),
            ("http://b.org/é", 1),
        ],
    ),
    ("select rank() over (order by host) as n from crawldb order by 1", [(1,), (1,), (3,), (3,)]),
    (
        "select sum(score) over (order by url) as n from crawldb order by url",
        [(1.0,), (3.5,), (4.0,), (8.0,)],
    ),
    (
        "select lag(retries) over (order by url) as n from crawldb order by url",
        [(None,), (127,), (0,), (0,)],
    ),
    (
        "select url from crawldb order by modified_time nulls first, url limit 1",
        [("http://a.org/1",)],
    ),
    (
        "select url from crawldb order by modified_time nulls last, url limit 1",
        [("http://a.org/2",)],
    ),
    ("select url from crawldb order by score desc limit 1 offset 1", [("http://a.org/2",)]),
    (
        "select host from crawldb union select host from crawldb order by 1",
        [("a.org",), ("b.org",)],
    ),
    (
        "select count(*) as n from (select host from crawldb union all select host from crawldb) t",
        [(8,)],
    ),
    ("select host from crawldb except select 'a.org' as host", [("b.org",)]),
    ("select host from crawldb intersect select 'a.org' as host", [("a.org",)]),
    (
        "select url from crawldb a where score = (select max(score) from crawldb b"
        " where b.host = a.host) order by 1",
        [("http://a.org/2",), ("http://b.org/é",)],
    ),
    (
        "select url from crawldb a where exists (select 1 from crawldb b where b.host"
        " = a.host and b.retries > 100) order by 1",
        [("http://a.org/1",), ("http://a.org/2",)],
    ),
    ("select (select count(*) from crawldb) as n", [(4,)]),
    (
        "with t as (select host, count(*) as n from crawldb group by host)"
        " select sum(n) as n from t",
        [(4,)],
    ),
    (
        "with recursive r(i) as (select 1 union all select i + 1 from r where i < 5)"
        " select sum(i) as n from r",
        [(15,)],
    ),
    ("select URL from CrawlDb where Retries = 127", [("http://a.org/1",)]),
    ('select "url" as "My URL" from crawldb where "retries" = 127', [("http://a.org/1",)]),
    (
        "select a.url, b.url as other from crawldb a join crawldb b on a.host ="
        " b.host and a.url < b.url order by 1",
        [("http://a.org/1", "http://a.org/2"), ("http://b.org/%41_x", "http://b.org/é")],
    ),
    (
        "select count(*) as n from crawldb a left join (select 'http://a.org/1' as u)"
        " b on a.url = b.u where b.u is null",
        [(3,)],
    ),
    ("select count(*) as n from crawldb a full join (select 'x' as u) b on a.url = b.u", [(5,)]),
    ("select count(*) as n from crawldb a cross join crawldb b", [(16,)]),
    (
        "select u.key, u.value from (select unnest(metadata) as u from crawldb) t order by 1",
        [("k", "v"), ("l", "w")],
    ),
    ("select x from (select unnest([1, 2, 3]) as x) t order by x desc", [(3,), (2,), (1,)]),
    (
        "select case when score > 2 then 'high' when score > 0.7 then 'mid' else"
        " 'low' end as x, count(*) as n from crawldb group by 1 order by 1",
        [("high", 2), ("low", 1), ("mid", 1)],
    ),
    (
        "select count(*) as n from crawldb where fetch_time > timestamp '2027-01-15 08:00:00'",
        [(1,)],
    ),
    (
        "select count(*) as n from crawldb where fetch_time >= timestamptz"
        " '2027-01-15 09:00:00+01'",
        [(3,)],
    ),
    (
        "select cast(fetch_time as date) as d, count(*) as n from crawldb group by 1"
        " order by 1 limit 1",
        [(date(2027, 1, 14), 1)],
    ),
    ("select extract(year from fetch_time) as n from crawldb limit 1", [(2027,)]),
    ("select count(*) as n from crawldb where fetch_time < now() - interval '1h'", [(1,)]),
    (
        "select count(*) as n from crawldb where fetch_time between timestamp"
        " '2027-01-14 00:00:00' and timestamp '2027-01-15 12:00:00'",
        [(3,)],
    ),
    (
        "select date_trunc('month', fetch_time) = timestamptz '2027-01-01"
        " 00:00:00+00' as x from crawldb limit 1",
        [(True,)],
    ),
    ("select min(score) as a, max(score) as b, avg(score) as c from crawldb", [(0.5, 4.0, 2.0)]),
    ("select stddev_pop(score) as a from crawldb where host = 'a.org'", [(0.75,)]),
    (
        "select string_agg(host, ',' order by host) as x from (select distinct host"
        " from crawldb) t",
        [("a.org,b.org",)],
    ),
    ("select count(*) filter (where host = 'a.org') as n from crawldb", [(2,)]),
    ("select 'it''s' as x", [("it's",)]),
    ("select 'a\\' as x", [("a\\",)]),
    ("select true and not false as x", [(True,)]),
    ("select greatest(1, 3, 2) as n, least(2, 1) as m", [(3, 1)]),
    ("select * from (values (1, 'a'), (2, 'b')) as t(n, x) order by n desc", [(2, "b"), (1, "a")]),
    ("select url, url from crawldb limit 0", []),
    ("select count(*) as n from crawldb where score in (1.0, 2.5)", [(2,)]),
    ("select count(*) as n from crawldb where (host, status) in (('a.org', 'db_fetched'))", [(1,)]),
    ("select abs(-3) as n, sign(-2) as m, mod(7, 4) as k, power(2, 10) as p", [(3, -1, 3, 1024.0)]),
    ("select 1 = any(select retries + 1 from crawldb) as x", [(True,)]),
    ("select count(*) as n from crawldb where metadata is not null", [(4,)]),
    ("select count(*) as n from crawldb a left join crawldb b on a.url = b.redirect", QueryError),
    ("select url from crawldb where metadata[1].value = 'v'", [("http://b.org/%41_x",)]),
    (
        "select fetch_time - modified_time as x from crawldb where retries = 0 order"
        " by url limit 1",
        [(timedelta(0),)],
    ),
    ("select interval '36 hours' as x", [(timedelta(hours=36),)]),
    ("select 1 as a, 2 as a", [(1, 2)]),
    (
        "select fetch_time at time zone 'Asia/Tokyo' = timestamp '2027-01-15"
        " 17:00:00' as x from crawldb where retries = 127",
        [(True,)],
    ),
    (
        "select sum(retries) as n, [count(*)] as m, {'a': sum(retries)} as o from crawldb",
        [(127, [4], {"a": 127})],
    ),
    ("from crawldb select count(*) as n", [(4,)]),
]


@pytest.fixture(scope="module")
def four(tmp_path_factory: pytest.TempPathFactory) -> Session:
    folder = tmp_path_factory.mktemp("crawl")
    write_db(folder / "crawldb", FOUR)
    return Session(open_crawl(folder), NOW)


@pytest.mark.parametrize(("statement", "answer"), ANSWERS)
def test_a_statement_has_its_answer(four: Session, statement: str, answer: Any) -> None:
    if answer is QueryError:
        with pytest.raises(QueryError):
            four.query(statement).collect()
        return
    found = four.query(statement).collect().rows()
    assert found == answer and repr(found).count("True") == repr(answer).count("True")


MANY = [
    (
        f"{scheme}{host}/{name}",
        CrawlDatum(
            1 + number % 5,
            (0, 60, 2_592_000, 2**31 - 1)[number % 4],
            (0.0, 1.5, float("nan"), 2.0**100)[number % 4],
            NOW + (number - 20) * 37 * DAY + number,
            0 if number % 3 else NOW - number * DAY,
            number % 128 if number % 2 else 127,
        ),
    )
    for number, (scheme, host, name) in enumerate(
        (scheme, host, name)
        for scheme in ("http://", "https://", "")
        for host in ("a.org", "B.org", "d-é.org")
        for name in ("", "a_b", "a%b", "漢字", "~x", "x" * 40)
    )
]


def conditions() -> st.SearchStrategy[str]:
    """Conditions, of which tables take some, joined by and, or and not."""
    simple = st.sampled_from(
        [
            "modified_time is null",
            "modified_time > fetch_time",
            "status in ('db_fetched', null)",
            "status = 'db_gone'",
            "status > 'db_f'",
            "host not in ('a.org')",
            "host not in ('a.org', null)",
            "host in ('a.org', 'b.org')",
            "host like 'd-é%'",
            "host is not null",
            "url like '%a_b'",
            "url like 'http%'",
            "url like 'http://a.org/~%'",
            "url like 'http://d-é%'",
            "url not like 'https://%'",
            "url like ''",
            "starts_with(url, 'http://a.org/a%')",
            "url ^@ 'https'",
            "url between 'https' and 'httpz'",
            "url = 'http://a.org/漢字'",
            "score > 1",
            "score <> 1.5",
            "score in (0, 1.5)",
            "retries between 1 and 126",
            "retries = 127",
            "fetch_interval >= 2147483648",
            "fetch_interval in (60, 9223372036854775807)",
            "fetch_time >= timestamp '2026-01-01 00:00:00'",
            "fetch_time = timestamptz '2027-01-15 08:00:00.02+00'",
            "fetch_time between date '2025-01-01' and timestamp '2027-01-01 00:00:00'",
            "modified_time in (timestamp '2027-01-15 08:00:00', timestamp '2027-01-12 08:00:00')",
            "length(url) < 20",
        ]
    )
    joined = st.sampled_from(["({} and {})", "({} or {})", "(not {} and {})"])
    return st.recursive(
        simple,
        lambda one: st.tuples(joined, one, one).map(lambda all: all[0].format(*all[1:])),
        max_leaves=4,
    )


@pytest.fixture(scope="module")
def session(tmp_path_factory: pytest.TempPathFactory) -> Session:
    folder = tmp_path_factory.mktemp("crawl")
    write_db(folder / "crawldb", MANY, parts=2)
    return Session(open_crawl(folder), NOW)


@pytest.fixture(scope="module")
def duck() -> duckdb.DuckDBPyConnection:
    """The same rows in a table of DuckDB's own."""
    connection = duckdb.connect()
    connection.execute("set TimeZone = 'UTC'")
    connection.execute(
        "create table crawldb (url varchar, host varchar, status varchar, fetch_time timestamptz,"
        " modified_time timestamptz, fetch_interval bigint, retries bigint, score double)"
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
        for url, datum in MANY
    ]
    connection.executemany(f"insert into crawldb values ({', '.join('?' * 8)})", rows)
    return connection


def _time(ms: int) -> str:
    return f"{datetime(1970, 1, 1) + timedelta(milliseconds=ms)}+00"


@settings(max_examples=examples(150))
@given(
    where=conditions(), columns=st.sampled_from(["url", "url, score", "count(*)", "status, url"])
)
def test_tables_leave_out_what_conditions_leave_out(
    session: Session, duck: duckdb.DuckDBPyConnection, where: str, columns: str
) -> None:
    statement = f"select {columns} from crawldb where {where}"
    expected = sorted(duck.execute(statement).fetchall(), key=repr)
    assert repr(sorted(session.query(statement).collect().rows(), key=repr)) == repr(expected)


def test_an_answer_is_read_again_and_in_part(session: Session) -> None:
    rows = session.query("select url, status, retries from crawldb order by url")
    every = rows.collect()
    assert rows.head(3).collect().equals(every.head(3)) and rows.collect().equals(every)
    assert rows.select("status").collect().equals(every.select("status"))
    assert rows.filter(pl.col("retries") == 127).collect().equals(every.filter(retries=127))
    assert rows.join(rows, on="url").collect().height == len(every)
