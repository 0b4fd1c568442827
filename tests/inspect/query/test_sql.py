"""`minutch sql`: statements, their results in each form, and what is refused."""

from __future__ import annotations

import csv
import io
import json
import signal
import threading
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import duckdb
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

import minutch
from minutch.commands.sql import Answers, completions, converse
from minutch.errors import FormatError, QueryError, StoreError, UsageError
from minutch.inspect.query.crawl import open_crawl
from minutch.inspect.query.results import text_table
from minutch.inspect.query.session import (
    Session,
    _Connection,
    _duckdb,
    is_complete,
    statements,
)
from minutch.records.crawldatum import CrawlDatum
from tests.support.commands import sql
from tests.support.crawldbs import DAY, NOW, context, metadata, printed, write_db


@pytest.fixture(scope="module")
def crawl(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Ten entries: five fetched, four not, one with a hostile URL."""
    folder = tmp_path_factory.mktemp("crawl")
    entries = [
        (
            f"http://a.org/{n}",
            CrawlDatum(1 + n % 2, 60, n / 2, NOW + (n - 5) * DAY, metadata=metadata(n=str(n))),
        )
        for n in range(9)
    ]
    write_db(
        folder / "crawldb",
        [*entries, ("http://b.org/\x1b[31m\n,\"x'", CrawlDatum(2, 60, 9.0, NOW))],
    )
    return folder


@pytest.fixture(scope="module")
def session(crawl: Path) -> Session:
    """A connection takes 30 ms to make."""
    return Session(open_crawl(crawl), NOW)


def answer(crawl: Path, *args: str) -> str:
    """Returns what the command prints."""
    job = context()
    assert sql.run([str(crawl), *args], job) == 0
    return printed(job)


def test_a_table_of_text(crawl: Path) -> None:
    statement = "select status, count(*) as n from crawldb group by status order by n desc, status"
    assert (
        answer(crawl, statement)
        == "status        n\n------------  -\ndb_fetched    5\ndb_unfetched  5\n"
    )


def test_the_clock_is_the_jobs_in_utc(crawl: Path) -> None:
    assert answer(crawl, "select count(*) as due from crawldb where fetch_time < now()").endswith(
        "5\n"
    )
    assert answer(crawl, "select current_date as d", "-json") == '{"d": "2027-01-15"}\n'
    assert answer(
        crawl,
        "select count(*) as n from crawldb where fetch_time > now() - interval '36 hours'",
        "--json",
    ) == ('{"n": 6}\n')


def test_values_from_pages_are_made_visible(crawl: Path) -> None:
    shown = answer(crawl, "select url from crawldb where score = 9")
    assert "\x1b" not in shown and "http://b.org/\\x1b[31m\\n" in shown


def test_csv_and_json_are_read_back(crawl: Path) -> None:
    statement = "select url, status, fetch_time, score, metadata from crawldb order by url"
    rows = list(csv.DictReader(io.StringIO(answer(crawl, statement, "-csv"), newline="")))
    objects = [json.loads(line) for line in answer(crawl, statement, "-json").splitlines()]
    assert [row["url"] for row in rows] == [row["url"] for row in objects]
    assert rows[9]["url"] == "http://b.org/\x1b[31m\n,\"x'"
    assert json.loads(rows[3]["metadata"]) == objects[3]["metadata"] == [{"key": "n", "value": "3"}]
    assert objects[5]["fetch_time"] == "2027-01-15T08:00:00.000+00:00"


@pytest.mark.parametrize(
    ("expression", "value"),
    [
        ("sum(fetch_interval)", 829 * 2_592_000),
        ("max(retries + 1)", 128),
        ("min(length(url) - 20)", -5),
        ("min(length(url) - length(url) * 2)", -15),
        ("sum(case when retries = 127 then 2000000000 else 0 end)", 829 * 2_000_000_000),
        ("max(cast(retries as integer) * cast(retries as integer))", 127 * 127),
        ("max(extract(year from fetch_time) * 1000000000)", 2027 * 10**9),
    ],
)
def test_integers_do_not_wrap(expression: str, value: int, tmp_path: Path) -> None:
    """ISO/IEC 9075-2, 6.32: what is out of range is an exception; so no other value is given."""
    entries = [
        (f"http://a.org/{n:03}"[:15], CrawlDatum(1, 2_592_000, 1.0, NOW, retries=127))
        for n in range(829)
    ]
    write_db(tmp_path / "crawldb", entries)
    found = Session(minutch.open(tmp_path), NOW).query(f"select {expression} as n from crawldb")
    assert found.collect_schema() == {"n": pl.Int64}
    assert found.collect().item() == value


def test_an_integer_beyond_64_bits_is_an_error(crawl: Path) -> None:
    for statement in (
        "select sum(fetch_interval * 9223372036854775807) as n from crawldb",
        "select 9223372036854775807 + 1 as n",
        "select cast(127 as tinyint) * cast(127 as tinyint) as n",
        "select 9223372036854775807::hugeint + 1 as n",
    ):
        with pytest.raises(QueryError, match=r"Overflow|out of range"):
            answer(crawl, statement)


def test_long_statements_take_no_square_of_time() -> None:
    urls = ", ".join(f"'http://a.org/2020-01-{number}; now()'" for number in range(5_000))
    statement = f"select 1 from crawldb where url in ({urls})"
    assert list(statements(statement)) == [statement] and not is_complete(statement)


def test_json_is_json_where_a_score_is_no_number(tmp_path: Path) -> None:
    """RFC 8259, section 6: infinity and NaN are not permitted."""
    scores = (float("nan"), float("inf"), float("-inf"), 1.5)
    write_db(tmp_path / "crawldb", [(f"http://{n}/", CrawlDatum(score=n)) for n in scores])
    lines = answer(tmp_path, "select score from crawldb order by url", "-json").splitlines()
    refuse = pytest.fail
    found = [json.loads(line, parse_constant=refuse)["score"] for line in lines]
    assert sorted(found, key=str) == [1.5, None, None, None]


def test_a_parquet_file_is_whole_and_replaces_nothing(crawl: Path, tmp_path: Path) -> None:
    file = tmp_path / "new" / "rows.parquet"
    assert (
        answer(crawl, "select url, fetch_time from crawldb", "-parquet", str(file))
        == f"10 rows in {file}\n"
    )
    assert pl.read_parquet(file).schema["fetch_time"] == pl.Datetime("ms", "UTC")
    with pytest.raises(StoreError, match="already exists"):
        answer(crawl, "select 1 as one", "-parquet", str(file))
    assert [path.name for path in file.parent.iterdir()] == ["rows.parquet"]


@pytest.mark.parametrize(
    ("statement", "message", "hint"),
    [
        ("select statu from crawldb", "there is no column statu", "did you mean status?"),
        (
            "select qqqqqq from links where url = 'crawldb.org'",
            "there is no column qqqqqq",
            "the columns are url, from_url, anchor",
        ),
        ("select c.statu from crawldb c", "there is no column statu", "did you mean status?"),
        ("select qqqqqq", "there is no column qqqqqq", "from which table? crawldb, linkdb, links,"),
        (
            "select charse",
            "there is no column charse",
            "from which table? `select charset from parses`",
        ),
        ("select x.url from crawldb", "there is no table x", "the tables are crawldb, linkdb"),
        ("select * from crawlbd", "there is no table crawlbd", "did you mean crawldb?"),
        ("select * from x", "there is no table x", "the tables are crawldb, linkdb"),
        ("select nofunc(url) from crawldb", "there is no function nofunc", ""),
        ("select * from read_csv('/etc/passwd')", "no other files", ""),
        ("select * from \"Read_Parquet\" /* x */ ('a')", "no other files", ""),
        ("select 'a\\', x.* from read_text('/etc/passwd') x --'", "no other files", ""),
        ("select * from glob /* /* ( */ */ ('/etc/*')", "no other files", ""),
        ("select * from '/etc/passwd.csv'", "no other files", ""),
        ("select * from session", "there is no table session", ""),
        ("drop table crawldb", "DROP is not possible", ""),
        ("explain analyze create view x as select 1", "not possible", ""),
        ("explain /* */ create table x as select 1", "not possible", ""),
        ("delete from crawldb", "DELETE is not possible", ""),
        ("/* select */ copy crawldb to 'x'", "COPY is not possible", ""),
        ("attach 'x'", "ATTACH is not possible", ""),
        ("set memory_limit = '1TB'", "SET is not possible", ""),
        ("pragma threads = 64", "SET is not possible", ""),
        ("install httpfs", "LOAD is not possible", ""),
        ("selct 1", "syntax error", "did you mean SELECT?"),
        ("select from where", "", ""),
        ("select url from crawldb where", "syntax error", ""),
        ("select subst(url, 2) from crawldb", "no function subst", "did you mean substr?"),
        ("select url from crawldb c join links l on l.url = c.url", "Ambiguous", ""),
        ("describe nothing", "there is no table nothing", ""),
        ("with t as (select 1 as a) insert into crawldb select * from t", "", ""),
    ],
)
def test_what_is_wrong_is_said_in_a_sentence(
    session: Session, statement: str, message: str, hint: str
) -> None:
    with pytest.raises(QueryError) as caught:
        session.query(statement).collect()
    assert message in str(caught.value) and "\n" not in str(caught.value)
    assert hint in caught.value.hint


def test_wrong_arguments_and_folders(crawl: Path, tmp_path: Path) -> None:
    for args in (
        [],
        [str(crawl), "select 1", "more"],
        [str(crawl), "select 1", "-csv", "-json"],
        [str(crawl), " ;"],
    ):
        with pytest.raises(UsageError):
            sql.run(args, context())
    with pytest.raises(StoreError, match="is no crawl"):
        answer(tmp_path, "select 1")
    with pytest.raises(StoreError, match="linkdb"):
        answer(crawl, "select * from links")


def test_a_damaged_file_is_named(crawl: Path, tmp_path: Path) -> None:
    write_db(tmp_path / "crawldb", [("http://a.org/", CrawlDatum())])
    data = tmp_path / "crawldb/current/part-r-00000/data"
    data.write_bytes(data.read_bytes()[:-3])
    with pytest.raises(FormatError, match="part-r-00000/data"):
        answer(tmp_path, "select count(*) from crawldb")


def test_statements_come_from_standard_input_too(crawl: Path) -> None:
    job = context()
    job.stdin = io.StringIO("select 1 as one; -- and\n\nselect ';' as two;;")
    assert sql.run([str(crawl), "-json"], job) == 0
    assert printed(job) == '{"one": 1}\n{"two": ";"}\n'


def test_sessions_of_a_process_share_nothing(crawl: Path, session: Session) -> None:
    """They ask one DuckDB: to make one takes longer than most statements."""
    few = Session(open_crawl(crawl), NOW + DAY, {"few": open_crawl(crawl).tables["hosts"]})
    asked = "select now() as now, current_date as today, (select count(*) from {}) as rows"
    found = [
        one.query(asked.format(name)).collect()
        for one, name in ((session, "crawldb"), (few, "few"), (session, "crawldb"))
    ]
    assert found[0].equals(found[2])
    assert [int(one["now"].dt.epoch("ms").item()) for one in found] == [NOW, NOW + DAY, NOW]
    assert found[1]["rows"].item() != found[0]["rows"].item()
    for one, name in ((session, "few"), (few, "crawldb")):
        with pytest.raises(QueryError, match=f"there is no table {name}"):
            one.query(f"select * from {name}")


def test_a_duckdb_that_is_broken_is_replaced(crawl: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It answers nobody after an error of its own."""

    def answer(*_: object) -> None:
        raise duckdb.InternalException("INTERNAL Error: broken")

    before = _duckdb()
    with monkeypatch.context() as patch:
        patch.setattr(_Connection, "_bounded", answer)
        with pytest.raises(QueryError, match="broken"):
            Session(open_crawl(crawl), NOW).query("select 1")
    assert _duckdb() is not before


def test_columns_are_described_and_tables_shown(crawl: Path) -> None:
    assert "fetch_time      TIMESTAMP WITH TIME ZONE" in answer(crawl, "describe crawldb")
    assert "duplicates\n" in answer(crawl, "show tables")
    plan = answer(crawl, "explain select score from crawldb where url = 'x'")
    assert any("Filters:" in line and "'x'" in line for line in plan.splitlines())


def test_ctrl_c_ends_an_endless_statement(crawl: Path) -> None:
    """One that never has a row: neither DuckDB nor Polars would look up before its end."""
    session = Session(minutch.open(crawl), NOW)
    endless = "with recursive r(n) as (select 1 union all select n + 1 from r) select sum(n) from r"
    rows = session.query(endless)
    signals = threading.Timer(0.3, signal.raise_signal, [signal.SIGINT])
    before = signal.getsignal(signal.SIGINT)
    signals.start()
    with pytest.raises(KeyboardInterrupt):
        session.run(rows.collect)
    assert signal.getsignal(signal.SIGINT) is before
    assert session.run(session.query("select 1 as one").collect).item() == 1


def _typed(*lines: str | type[BaseException]) -> Callable[[str], str]:
    rest = iter(lines)

    def ask(prompt: str) -> str:
        line = next(rest, EOFError)
        if isinstance(line, str):
            return line
        raise line

    return ask


def test_the_prompt_goes_on_after_errors(crawl: Path) -> None:
    job = context()
    tables = minutch.open(crawl).tables
    session = Session(minutch.open(crawl), NOW)
    answers = Answers(session, job, "json", None)
    lines = (
        "",
        "select 1",
        "as one;",
        "nonsense;",
        "half",
        KeyboardInterrupt,
        "select nothing from crawldb;",
        "columns crawldb",
        "help",
        "TABLES;",
        "select 2 as b;",
    )
    said: list[str] = []
    converse(_typed(*lines), tables, answers, job.print, said.append)
    *names, last = said[0].splitlines()
    assert " ".join(" ".join(names).split()) == f"The tables are {', '.join(tables)}."
    assert last == "A statement ends in a semicolon; `help` shows more, `quit` ends."
    assert said[1].startswith("error: syntax error at or near")
    assert said[-2] == "error: there is no column nothing"
    assert said[-1].startswith("hint: the columns are url, host,")
    out = printed(job)
    assert '{"one": 1}\n' in out and out.endswith('{"b": 2}\n')
    assert '{"column": "status", "type": "VARCHAR"}\n' in out  # as SQL has it
    assert "quit               ends" in out and "links       url, from_url, anchor\n" in out
    assert max(map(len, (*out.splitlines(), *"\n".join(said).splitlines()))) <= 80
    for word in ("quit", "exit;", ".quit", "Quit"):
        converse(_typed(word, "select 3;"), tables, answers, job.print, said.append)
    assert printed(job) == out
    assert {"crawldb", "fetch_time", "select", "tables"} <= set(completions(tables))


def test_what_shells_know_is_no_statement_in_the_middle_of_one(crawl: Path) -> None:
    job = context()
    session = Session(minutch.open(crawl), NOW)
    answers = Answers(session, job, "json", None)
    lines = _typed("select 1 as", "help", ";")
    converse(lines, session.tables, answers, job.print, lambda line: None)
    assert printed(job) == '{"help": 1}\n'


@given(st.text(alphabet="a';\"-/*\n# \\`e($1", max_size=30))
def test_statements_are_cut_as_the_engine_cuts_them(text: str) -> None:
    for statement in statements(text):
        assert statement.strip() and list(statements(statement)) == [statement]
        with suppress(duckdb.Error):
            assert len(duckdb.extract_statements(statement)) == 1


def test_where_statements_end() -> None:
    assert list(statements("a ; 'x;y' ; \"b;\" -- c;\n; /* ; */;")) == ["a", "'x;y'", '"b;" -- c;']
    assert list(statements("select 'a\\' ; select $$;$$ /* /* ; */")) == [
        "select 'a\\'",
        "select $$;$$ /* /* ; */",
    ]
    assert is_complete("select 1; -- done\n") and is_complete("  ")
    assert not is_complete("select ';'") and not is_complete("select 1 -- ;")


def test_the_clock_is_put_in_where_it_is_asked(crawl: Path) -> None:
    """Whatever the clock of the machine says: of the standard, of PostgreSQL and DuckDB."""
    for moment in ("now()", "current_timestamp", "get_current_timestamp()", "NOW ( )"):
        assert (
            answer(
                crawl,
                f"select {moment} = timestamptz '2027-01-15 08:00:00+00' as a, 'now()' as b",
                "-json",
            )
            == '{"a": true, "b": "now()"}\n'
        )
    for day in (
        "today()",
        "current_date",
        "localtimestamp::date",
        "current_localtimestamp()::date",
    ):
        assert answer(crawl, f"select {day} as day", "-json") == '{"day": "2027-01-15"}\n'


@given(
    rows=st.lists(
        st.tuples(
            st.text(max_size=60), st.integers(-(10**6), 10**6), st.text("漢字a", max_size=60)
        ),
        max_size=5,
    ),
    width=st.integers(40, 120),
)
def test_lines_fit_into_the_terminal(rows: list[tuple[str, int, str]], width: int) -> None:
    frame = pl.DataFrame(
        rows, schema={"a": pl.String, "n": pl.Int64, "wide": pl.String}, orient="row"
    )
    lines = list(text_table(frame, width))
    assert len(lines) == len(rows) + 2
    assert all("\n" not in line and len(line) <= width for line in lines)


@pytest.mark.parametrize(
    ("text", "cut"),
    [("é" * 500_000, "é" * 9), ("漢" * 500_000, "漢" * 4), ("e\u0301" * 250_000, "e\u0301" * 9)],
    ids=["one column", "two columns", "combining"],
)
def test_a_text_of_megabytes_is_cut_at_once(text: str, cut: str) -> None:
    """A text column of `pages` may be as long as http.content.limit permits. Cutting it character
    by character from its end would take hours.
    """
    assert list(text_table(pl.DataFrame({"text": [text]}), 10))[2] == cut + "…"
