"""readdb -dump: selections and formats."""

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from minutch.cycle.crawldb.dump import json_text
from minutch.errors import ExpressionError
from minutch.hadoop.formats import writables as w
from minutch.hadoop.formats.checksum import verify_file
from minutch.hadoop.formats.writables import MapWritable, Text, Writable
from minutch.records.crawldatum import (
    STATUS_DB_FETCHED,
    STATUS_DB_GONE,
    STATUS_DB_UNFETCHED,
    CrawlDatum,
)
from minutch.records.protocol import ProtocolStatus
from tests.support.commands import command
from tests.support.crawldbs import NOW, context, metadata, read_db, write_db

run = command("readdb").run

ENTRIES = [
    (
        "http://a/",
        CrawlDatum(
            STATUS_DB_FETCHED, 86400, 1.5, NOW, NOW, 0, b"\x01\xab", metadata(k="v", long="x" * 200)
        ),
    ),
    ('http://b/"é', CrawlDatum(STATUS_DB_UNFETCHED, 90000, 1e-5, NOW, retries=1)),
    ("http://c/", CrawlDatum(STATUS_DB_GONE, 60, float("nan"), NOW, retries=3)),
]


def dump(tmp_path: Path, *words: str, parts: int = 1) -> Path:
    if not (tmp_path / "db").exists():
        write_db(tmp_path / "db", ENTRIES)
    job = context({"mapreduce.job.reduces": str(parts)})
    assert run([str(tmp_path / "db"), "-dump", str(tmp_path / "out"), *words], job) == 0
    return tmp_path / "out"


def hosts(tmp_path: Path, *words: str) -> str:
    """The first letters of the hosts of the entries that are written."""
    text = (dump(tmp_path, "-format", "csv", *words) / "part-r-00000").read_text()
    return "".join(line[8] for line in text.splitlines()[1:])


def test_normal(tmp_path: Path) -> None:
    text = (dump(tmp_path) / "part-r-00000").read_text()
    assert text == "".join(f"{url}\t{datum}\n" for url, datum in ENTRIES)
    verify_file(tmp_path / "out/part-r-00000")


def test_csv(tmp_path: Path) -> None:
    lines = (dump(tmp_path, "-format", "csv") / "part-r-00000").read_text().splitlines()
    assert lines[0].startswith("Url,Status code,")
    assert (
        lines[2]
        == '"http://b/"é",1,"db_unfetched",Fri Jan 15 08:00:00 UTC 2027,Thu Jan 01 00:00:00 UTC'
        " 1970,"
        '1,90000.0,1.0,1.0E-5,"null",""'
    )
    assert lines[1].endswith(f',"01ab","k:v|||long:{"x" * 200}|||"')


def test_csv_has_intervals_as_floats(tmp_path: Path) -> None:
    write_db(tmp_path / "db", [("http://a/", CrawlDatum(STATUS_DB_FETCHED, 31536000))])
    text = (dump(tmp_path, "-format", "csv") / "part-r-00000").read_text()
    assert ",0,3.1536E7,365.0,0.0," in text


@pytest.mark.parametrize("kind", ["normal", "csv", "json"])
def test_nothing_to_show(tmp_path: Path, kind: str) -> None:
    write_db(tmp_path / "db", [])
    out = dump(tmp_path, "-format", kind)
    assert [line[:3] for line in (out / "part-r-00000").read_text().splitlines()] == ["Url"] * (
        kind == "csv"
    )


def test_json(tmp_path: Path) -> None:
    lines = (dump(tmp_path, "-format", "json") / "part-r-00000").read_text().splitlines()
    assert (
        lines[1] == '{"url": "http://b/\\"\\u00E9", "statusCode": 1, "statusName": "db_unfetched",'
        ' "fetchTime": "Fri Jan 15 08:00:00 UTC 2027", "modifiedTime": "Thu Jan 01 00:00:00 UTC'
        ' 1970", "retriesSinceFetch": 1, "retryIntervalSeconds": 90000, "retryIntervalDays": 1,'
        ' "score": 1.0E-5, "signature": "null", "metadata": {}}'
    )
    assert json.loads(lines[0])["metadata"] == {"k": "v", "long": "x" * 200}
    assert json.loads(lines[2])["score"] == "NaN"


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (w.IntWritable(-5), "-5"),
        (w.LongWritable(2**60), str(2**60)),
        (w.VIntWritable(7), "7"),
        (w.FloatWritable(0.5), "0.5"),
        (w.FloatWritable(float("inf")), '"Infinity"'),
        (w.DoubleWritable(1e300), "1.0E300"),
        (w.BooleanWritable(True), "true"),
        (w.NullWritable(), "null"),
        (w.BytesWritable(b"\x00\xff"), '"AP8="'),
        (Text("a\tb"), '"a\\tb"'),
        (ProtocolStatus(1), '"success(1), lastModified=0"'),
    ],
)
def test_json_metadata(tmp_path: Path, value: Writable, text: str) -> None:
    datum = CrawlDatum(STATUS_DB_FETCHED, metadata=MapWritable({Text("k"): value}))
    write_db(tmp_path / "db", [("http://a/", datum)])
    line = (dump(tmp_path, "-format", "json") / "part-r-00000").read_text()
    assert line.endswith(f'"metadata": {{"k": {text}}}}}\n')


@given(st.text())
def test_json_strings(value: str) -> None:
    text = json_text(value)
    assert text.isascii()
    assert json.loads(text) == value


def test_json_strings_as_jackson_writes_them() -> None:
    assert (
        json_text('"\\/\b\f\n\r\t\x01\x7f\x80😀')
        == '"\\"\\\\/\\b\\f\\n\\r\\t\\u0001\x7f\\u0080\\uD83D\\uDE00"'
    )


def test_crawldb(tmp_path: Path) -> None:
    out = dump(tmp_path, "-format", "crawldb", "-status", "DB_GONE")
    (tmp_path / "again").mkdir()
    out.rename(tmp_path / "again/current")
    assert list(read_db(tmp_path / "again")) == ["http://c/"]


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ((), "abc"),
        (("-status", "db_fetched"), "a"),
        (("-status", "nonsense"), ""),
        (("-retry", "1"), "bc"),
        (("-retry", "-1"), "abc"),
        (("-regex", "http://[ac]/"), "ac"),
        (("-regex", "http"), ""),
        (("-expr", "score > 1 && status == 'db_fetched'"), "a"),
        (("-expr", "k == 'v'"), "a"),
        (("-expr", "retries > 0", "-status", "db_gone"), "c"),
        (("-sample", "1"), "abc"),
        (("-sample", "-1"), ""),
    ],
)
def test_selections(tmp_path: Path, words: tuple[str, ...], expected: str) -> None:
    assert hosts(tmp_path, *words) == expected


def test_a_sample_has_the_same_urls_each_time(tmp_path: Path) -> None:
    entries = [
        (f"http://{i % 7}.example.org/{i}", CrawlDatum(STATUS_DB_FETCHED)) for i in range(2000)
    ]
    write_db(tmp_path / "db", entries, parts=2)
    found = []
    for parts, fraction in ((2, "0.2"), (3, "0.2"), (1, "0.4")):
        out = tmp_path / f"out{parts}"
        job = context({"mapreduce.job.reduces": str(parts)})
        run([str(tmp_path / "db"), "-dump", str(out), "-format", "csv", "-sample", fraction], job)
        lines = [
            line for part in out.glob("part-r-0000?") for line in part.read_text().splitlines()[1:]
        ]
        found.append(set(lines))
    assert found[0] == found[1] < found[2]
    assert 300 < len(found[0]) < 500
    assert 700 < len(found[2]) < 900


def test_a_wrong_expression(tmp_path: Path) -> None:
    with pytest.raises(ExpressionError):
        dump(tmp_path, "-expr", "score >")
    assert not (tmp_path / "out").exists()


def test_several_parts(tmp_path: Path) -> None:
    out = dump(tmp_path, "-format", "csv", parts=2)
    texts = [(out / f"part-r-0000{i}").read_text().splitlines() for i in (0, 1)]
    assert sorted(line[8] for text in texts for line in text[1:]) == ["a", "b", "c"]
    assert texts[0][0] == texts[1][0]


def test_keys_that_are_no_utf8(tmp_path: Path) -> None:
    write_db(tmp_path / "db", [("http://a/\udcff", ENTRIES[2][1])])
    assert (dump(tmp_path) / "part-r-00000").read_bytes().startswith(b"http://a/\xff\tVersion")
