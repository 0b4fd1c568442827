"""readdb: its command line, statistics, one URL, the highest scores."""

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from minutch.cycle.crawldb import dump
from minutch.cycle.crawldb.stats import days_hms, iso_date, quantiles
from minutch.errors import StoreError, UsageError
from minutch.hadoop.formats.checksum import verify_file
from minutch.records.crawldatum import STATUS_DB_FETCHED, STATUS_DB_GONE, CrawlDatum
from tests.support.commands import command
from tests.support.crawldbs import DAY, NOW, context, metadata, printed, read_db, write_db

run = command("readdb").run

ENTRIES = [
    ("http://a/", CrawlDatum(STATUS_DB_FETCHED, 86400, 1.5, NOW, metadata=metadata(k="v"))),
    ("http://b/", CrawlDatum(STATUS_DB_FETCHED, 3600, 0.5, NOW + DAY, retries=2)),
    ("http://b/x", CrawlDatum(STATUS_DB_GONE, 86400 * 3 + 61, 0.25, NOW - 61_000, retries=10)),
    ("http:/nohost", CrawlDatum(STATUS_DB_GONE, 3600, float("nan"), NOW)),
]


@pytest.fixture
def db(tmp_path: Path) -> str:
    return str(write_db(tmp_path / "db", ENTRIES).path)


def test_statistics(db: str) -> None:
    job = context({"db.stats.score.quantiles": "0.5,2,x,0"})
    assert run([db, "-stats"], job) == 0
    assert printed(job).splitlines() == [
        f"Statistics for CrawlDb: {db}",
        "TOTAL urls:\t4",
        "shortest fetch interval:\t01:00:00",
        "avg fetch interval:\t1 days, 00:30:15",
        "longest fetch interval:\t3 days, 00:01:01",
        "earliest fetch time:\t2027-01-15T07:58:00.000+0000",
        "avg of fetch times:\t2027-01-15T13:59:00.000+0000",
        "latest fetch time:\t2027-01-16T08:00:00.000+0000",
        "retry 0:\t2",
        "retry 10:\t1",
        "retry 2:\t1",
        "score == NaN:\t1",
        "score quantile 0.0:\t0.25",
        "score quantile 0.5:\t0.5",
        "min score:\t0.25",
        "avg score:\t0.5625",
        "max score:\t1.5",
        "status 2 (db_fetched):\t2",
        "status 3 (db_gone):\t2",
    ]


def test_statistics_by_host(db: str) -> None:
    job = context()
    assert run([db, "-stats", "-sort"], job) == 0
    assert printed(job).splitlines()[-7:] == [
        "max score:\t1.5",
        "status 2 (db_fetched):\t2",
        "   a :\t1",
        "   b :\t1",
        "status 3 (db_gone):\t2",
        "status 3 (db_gone):\t1",  # the entry without a host, as Nutch prints it
        "   b :\t1",
    ]


def test_statistics_of_an_empty_db(tmp_path: Path) -> None:
    write_db(tmp_path / "db", [])
    job = context()
    assert run([str(tmp_path / "db"), "-stats"], job) == 0
    assert printed(job).splitlines()[1:] == ["TOTAL urls:\t0"]


def test_one_url_and_then_another_command(db: str) -> None:
    job = context()
    assert run([db, "-url", "http://b/", "-url", "http://none/"], job) == 0
    text = printed(job)
    assert text.startswith("URL: http://b/\nVersion: 7\nStatus: 2 (db_fetched)\n")
    assert text.endswith("URL: http://none/\nnot found\n")


def test_highest_scores(db: str, tmp_path: Path) -> None:
    assert run([db, "-topN", "2", str(tmp_path / "out")], context()) == 0
    assert (tmp_path / "out/part-r-00000").read_text() == "NaN\thttp:/nohost\n1.5\thttp://a/\n"
    assert (
        run([db, "-topN", "9", str(tmp_path / "min"), "0.5", "-url", "http://a/"], context()) == 0
    )
    assert (
        tmp_path / "min/part-r-00000"
    ).read_text() == "NaN\thttp:/nohost\n1.5\thttp://a/\n0.5\thttp://b/\n"
    verify_file(tmp_path / "out/part-r-00000")


@pytest.mark.parametrize(("parts", "held"), [(1, 1000), (2, 1000), (3, 1000), (3, -7)])
def test_equal_scores_come_in_the_order_of_the_urls(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, parts: int, held: int
) -> None:
    monkeypatch.setattr(dump, "_MORE", held)
    entries = [(f"http://a/{i:02d}", CrawlDatum(1, 60, float(i % 7))) for i in range(40)]
    write_db(tmp_path / "db", entries, parts=parts)
    assert run([str(tmp_path / "db"), "-topN", "7", str(tmp_path / "out")], context()) == 0
    lines = (tmp_path / "out/part-r-00000").read_text().splitlines()
    best = [f"6.0\thttp://a/{i:02d}" for i in (6, 13, 20, 27, 34)]
    assert lines == [*best, "5.0\thttp://a/05", "5.0\thttp://a/12"]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ([], "Usage"),
        (["-stats"], "Usage"),
        (["DB"], "Usage"),
        (["DB", "-what"], "unknown option -what"),
        (["DB", "-stats", "-what"], "unknown option -what"),
        (["DB", "-stats", "more"], "too many arguments: more"),
        (["DB", "more", "-stats"], "too many arguments: more"),
        (["DB", "-url"], "-url needs a value"),
        (["DB", "-topN", "x", "out"], "-topN: expected <nnnn> <out_dir>"),
        (["DB", "-topN", "5"], "-topN: expected <nnnn> <out_dir>"),
        (["DB", "-topN", "5", "out", "1", "2"], "-topN: expected <nnnn> <out_dir>"),
        (["DB", "-dump", "out", "-retry", "x"], "expected <num>, found 'x'"),
        (["DB", "-dump", "out", "-format", "xml"], "expected normal, csv, json or crawldb"),
        (["DB", "-dump", "out", "-regex", "("], "can't use"),
    ],
)
def test_wrong_command_lines(db: str, words: list[str], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        run([db if word == "DB" else word for word in words], context())


@pytest.mark.parametrize(
    "words", [["-stats"], ["-url", "http://a/"], ["-dump", "OUT"], ["-topN", "5", "OUT"]]
)
def test_no_db(tmp_path: Path, words: list[str]) -> None:
    words = [str(tmp_path / "out") if word == "OUT" else word for word in words]
    with pytest.raises(StoreError, match="does not exist"):
        run([str(tmp_path / "none"), *words], context())
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("words", [["-dump", "OUT"], ["-topN", "5", "OUT"]])
def test_output_that_is_there_already(db: str, tmp_path: Path, words: list[str]) -> None:
    (tmp_path / "out").mkdir()
    with pytest.raises(StoreError, match="already exists"):
        run([db, *(str(tmp_path / "out") if word == "OUT" else word for word in words)], context())


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0, "00:00:00"),
        (59, "00:00:59"),
        (86399, "23:59:59"),
        (86400, "1 days, 00:00:00"),
        (-5, "00:00:-05"),
    ],
)
def test_spans_of_time(seconds: int, text: str) -> None:
    assert days_hms(seconds) == text


def test_dates() -> None:
    assert iso_date(-1) == "1969-12-31T23:59:59.999+0000"
    assert iso_date(10**17).endswith("UTC 3170843")


@given(st.lists(st.floats(-10, 10, width=32), min_size=1, max_size=50), st.floats(0, 1))
def test_a_quantile_is_a_score_with_that_share_below_it(values: list[float], q: float) -> None:
    (found,) = quantiles(np.sort(np.array(values, np.float32)), [q])
    assert sum(value < found for value in values) <= q * len(values)
    assert q == 1 or sum(value <= found for value in values) > q * len(values)


def test_scores_of_any_kind_have_statistics(tmp_path: Path) -> None:
    kinds = (float("inf"), float("-inf"), -0.0, 0.0, float("nan"))
    write_db(
        tmp_path / "db",
        [(f"http://a/{i}", CrawlDatum(1, 60, score)) for i, score in enumerate(kinds)],
    )
    job = context({"db.stats.score.quantiles": "0.3"})
    assert run([str(tmp_path / "db"), "-stats"], job) == 0
    lines = printed(job).splitlines()
    assert lines[9:14] == [
        "score == NaN:\t1",
        "score quantile 0.3:\t0.0",
        "min score:\t-Infinity",
        "avg score:\tNaN",
        "max score:\tInfinity",
    ]


def test_stats_changes_nothing(db: str) -> None:
    before = read_db(Path(db))
    run([db, "-stats"], context())
    assert str(read_db(Path(db))) == str(before)
