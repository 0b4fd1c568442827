"""readdb: its command line, statistics, one URL, the highest scores."""

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from minutch.crawldb import statistics, top
from minutch.crawldb.quantiles import MergingDigest, digest_of, quantiles
from minutch.crawldb.readdb import run
from minutch.crawldb.statistics import days_hms, iso_date
from minutch.errors import StoreError, UsageError
from minutch.formats.checksum import verify_file
from minutch.records.crawldatum import STATUS_DB_FETCHED, STATUS_DB_GONE, CrawlDatum
from tests.support.crawldbs import DAY, NOW, context, metadata, printed, read_db, write_db

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


def test_statistics_of_many_entries_are_exact(db: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(statistics, "FOLLOWED", 0)
    job = context({"db.stats.score.quantiles": "0.25,0.5"})
    run([db, "-stats", "-sort"], job)
    lines = printed(job).splitlines()
    assert "score quantile 0.25:\t0.375" in lines
    assert "avg score:\t0.5625" in lines


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
    assert run([db, "-topN", "9", str(tmp_path / "min"), "0.5", "-url", "http://a/"], context()) == 0
    assert (tmp_path / "min/part-r-00000").read_text() == "NaN\thttp:/nohost\n1.5\thttp://a/\n0.5\thttp://b/\n"
    verify_file(tmp_path / "out/part-r-00000")


def test_highest_of_many_scores(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(top, "FOLLOWED", 3)
    entries = [(f"http://a/{i:02d}", CrawlDatum(1, 60, float(i % 7))) for i in range(40)]
    write_db(tmp_path / "db", entries, parts=2)
    assert run([str(tmp_path / "db"), "-topN", "7", str(tmp_path / "out")], context()) == 0
    lines = (tmp_path / "out/part-r-00000").read_text().splitlines()
    assert [line.split("\t")[0] for line in lines] == ["6.0"] * 5 + ["5.0"] * 2
    assert len(set(lines)) == 7


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ([], "Usage"),
        (["-stats"], "Usage"),
        (["DB", "-what"], "wrong argument -what"),
        (["DB", "-url"], "-url needs a value"),
        (["DB", "-topN", "x", "out"], "can't use 'x'"),
        (["DB", "-dump", "out", "-retry", "x"], "can't use 'x'"),
        (["DB", "-dump", "out", "-format", "xml"], "expected one of normal, csv, json, crawldb"),
        (["DB", "-dump", "out", "-regex", "("], "can't use"),
    ],
)
def test_wrong_command_lines(db: str, words: list[str], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        run([db if word == "DB" else word for word in words], context())


@pytest.mark.parametrize("words", [["-stats"], ["-url", "http://a/"], ["-dump", "OUT"], ["-topN", "5", "OUT"]])
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
    [(0, "00:00:00"), (59, "00:00:59"), (86399, "23:59:59"), (86400, "1 days, 00:00:00"), (-5, "00:00:-05")],
)
def test_spans_of_time(seconds: int, text: str) -> None:
    assert days_hms(seconds) == text


def test_dates() -> None:
    assert iso_date(-1) == "1969-12-31T23:59:59.999+0000"
    assert iso_date(10**17).endswith("UTC 3170843")


@given(st.lists(st.floats(-10, 10, width=32), min_size=1, max_size=400), st.floats(0, 1))
def test_quantiles_of_a_digest_lie_near_the_exact_ones(values: list[float], q: float) -> None:
    found = digest_of([values]).quantile(q)
    ordered = sorted(values)
    near = max(1.0, len(values) * 0.06)
    at = q * len(values)
    low = ordered[max(0, min(len(values) - 1, int(at - near - 1)))]
    high = ordered[min(len(values) - 1, int(at + near + 1))]
    assert low <= found <= high
    assert ordered[0] <= quantiles(np.array(values, np.float32), [q])[0] <= ordered[-1]


def test_digests_of_several_parts_and_of_many_values() -> None:
    rng = np.random.default_rng(1)
    parts = [rng.random(3000).tolist(), rng.random(2000).tolist(), []]
    digest = digest_of(parts)
    assert sum(weight for _, weight in digest.centroids) == 5000
    assert [abs(digest.quantile(q) - q) < 0.02 for q in (0.01, 0.25, 0.5, 0.99)] == [True] * 4
    assert len(digest.centroids) < 220


def test_an_empty_digest() -> None:
    assert np.isnan(MergingDigest().quantile(0.5))
    assert digest_of([[5.0]]).quantile(0.9) == 5.0


def test_stats_changes_nothing(db: str) -> None:
    before = read_db(Path(db))
    run([db, "-stats"], context())
    assert str(read_db(Path(db))) == str(before)
