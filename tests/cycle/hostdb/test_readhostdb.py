"""readhostdb as a command: one host, dumps, expressions, and what goes wrong."""

from __future__ import annotations

import io
from pathlib import Path

import pytest

from minutch.cycle.hostdb.store import HostDb
from minutch.errors import ExpressionError, FormatError, StoreError, UsageError
from minutch.hadoop.formats.writables import FloatWritable, LongWritable, MapWritable, Text
from minutch.job import JobContext
from minutch.records.hostdatum import HostDatum
from tests.cycle.hostdb.test_updatehostdb import context, write_hostdb
from tests.support.commands import readhostdb

A = HostDatum(
    *(1.5, 86_400_000, "http://a/", 1, 2, 3, 4, 5, 6, 7, 8),
    MapWritable(
        {
            Text("pct95._rs_"): FloatWritable(2.5),
            Text("my-key"): Text("v"),
            Text("n"): LongWritable(9),
        }
    ),
)
HOSTS = {
    "a": A,
    "b": HostDatum(unfetched=1),
    "bücher": HostDatum(fetched=2, homepage_url="https://bücher/"),
}


@pytest.fixture
def db(tmp_path: Path) -> HostDb:
    write_hostdb(tmp_path / "hostdb", HOSTS)
    return HostDb(tmp_path / "hostdb")


def read(db: HostDb, *arguments: str, job: JobContext | None = None) -> str:
    """Returns what a dump with these arguments contains."""
    out = db.path.parent / "out"
    assert readhostdb.run([str(db.path), str(out), *arguments], job or context()) == 0
    [part] = out.glob("part-*")
    assert part.name == "part-m-00000"
    return part.read_text(encoding="utf-8")


def test_a_dump_has_the_text_of_each_record(db: HostDb) -> None:
    head, *lines = read(db).splitlines()
    assert head.split("\t")[:2] == ["hostname", "unfetched"]
    assert lines == [f"{host}\t{datum}" for host, datum in HOSTS.items()]


def test_without_the_head(db: HostDb) -> None:
    assert len(read(db, job=context(hostdb__dump__field__header="false")).splitlines()) == 3


@pytest.mark.parametrize(
    ("arguments", "settings", "expected"),
    [
        (["-dumpHostnames"], {}, "a\t\nb\t\nbücher\t\n"),
        ([], {"hostdb__dump__hostnames": "true"}, "a\t\nb\t\nbücher\t\n"),
        (["-dumpHomepages"], {}, "http://a/\t\nhttps://bücher/\t\n"),
        (["-dumpHomepages", "-dumpHostnames"], {}, "http://a/\t\nhttps://bücher/\t\n"),
        ([], {"hostdb__dump__homepages": "true"}, "http://a/\t\nhttps://bücher/\t\n"),
    ],
)
def test_names_alone(
    arguments: list[str], settings: dict[str, str], expected: str, db: HostDb
) -> None:
    assert read(db, *arguments, job=context(**settings)) == expected


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("numRecords > 0", "a b bücher"),
        ("redirs == 13 && ok == 9 && numRecords == 33", "a"),
        (
            (
                "dnsFailures + connectionFailures == 3 && redirTemp == 6 && redirPerm == 7 && gone"
                " == 8"
            ),
            "a",
        ),
        ("pct95._rs_ > 2", "a"),
        ("n == 9 && my_key == 'v'", "a"),
        ("empty pct95._rs_", "b bücher"),
        ("unfetched", ""),
        ("nosuch > 1", ""),
        ("true", "a b bücher"),
        ("if (fetched == 2) { return true; } return false;", "bücher"),
    ],
)
def test_expressions(expression: str, expected: str, db: HostDb) -> None:
    assert [
        line.strip() for line in read(db, "-dumpHostnames", "-expr", expression).splitlines()
    ] == expected.split()


def test_an_expression_by_property(db: HostDb) -> None:
    job = context(hostdb__filter__expression="fetched == 2")
    assert read(db, "-dumpHostnames", job=job) == "bücher\t\n"
    assert job.reports["ReadHostDb"] == {"hosts written": 1, "hosts left out": 2}


def test_an_expression_on_a_hostdb_without_hosts(tmp_path: Path) -> None:
    write_hostdb(tmp_path / "hostdb", {})
    args = [str(tmp_path / "hostdb"), str(tmp_path / "out"), "-expr", "unfetched > 0"]
    assert readhostdb.run(args, context()) == 0
    assert (tmp_path / "out").is_dir()


def test_one_host(db: HostDb) -> None:
    job = context()
    assert readhostdb.run([str(db.path), "-get", "a"], job) == 0
    assert readhostdb.run([str(db.path), "-get", "nosuch"], job) == 0
    assert readhostdb.run([str(db.path), "-get", "https://A/some/page"], job) == 0
    assert isinstance(job.out, io.StringIO)
    assert job.out.getvalue() == f"{A}\n{A}\n"
    with pytest.raises(UsageError, match="-get"):
        readhostdb.run([str(db.path), "-get", "nosuch://a/"], context())


def test_the_store(db: HostDb) -> None:
    assert len(db) == 3
    assert list(db) == list(HOSTS)
    assert "b" in db
    assert "c" not in db
    assert db["bücher"] == HOSTS["bücher"]
    with pytest.raises(KeyError):
        db["c"]


def test_what_goes_wrong(db: HostDb, tmp_path: Path) -> None:
    out = tmp_path / "out"
    with pytest.raises(UsageError, match="a folder to write to"):
        readhostdb.run([str(db.path), "-dumpHostnames"], context())
    with pytest.raises(StoreError, match="does not exist"):
        readhostdb.run([str(tmp_path / "nosuch"), str(out)], context())
    with pytest.raises(ExpressionError):
        readhostdb.run([str(db.path), str(out), "-expr", "a >"], context())
    data = db.path / "current/part-r-00000"
    data.write_bytes(data.read_bytes()[:-5])
    with pytest.raises(FormatError, match="part-r-00000"):
        readhostdb.run([str(db.path), str(out)], context())
    assert not out.exists()
    out.mkdir()
    with pytest.raises(StoreError, match="already exists"):
        readhostdb.run([str(db.path), str(out)], context())
