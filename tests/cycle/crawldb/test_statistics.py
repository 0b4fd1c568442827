"""domainstats, protocolstats and crawlcomplete: what Nutch counted in the same crawldbs, and what
only happens here.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from minutch.commands.flow import commands
from minutch.conf import Configuration
from minutch.cycle.crawldb import groupcounts
from minutch.errors import FormatError, MinutchError, StoreError, UsageError
from minutch.hadoop.formats.writables import BytesWritable, IntWritable, MapWritable, Text, Writable
from minutch.records.crawldatum import (
    STATUS_DB_FETCHED,
    STATUS_DB_NOTMODIFIED,
    STATUS_DB_UNFETCHED,
    CrawlDatum,
)
from minutch.records.metadata import RESPONSE_CODE_KEY
from tests.support.crawldbs import write_db
from tests.support.golden import needs_golden
from tests.support.nutchruns import COMMANDS, NutchRun, context_for

NAMES = ("domainstats", "protocolstats", "crawlcomplete")
FAIL = {"rich-current-dir", "badmode", "tables-reduces2"}
"""Nutch fails, or counts nothing useful."""
RUNS = [
    NutchRun(f"{name}/{path.name}")
    for name in NAMES
    for path in sorted(COMMANDS.glob(f"{name}/*"))
    if path.name not in FAIL
]


def run(command: str, *words: str | Path) -> None:
    context, _ = context_for(Configuration.load([]))
    assert commands()[command].run([str(word) for word in words], context) == 0


def texts(folder: Path) -> dict[str, str]:
    return {path.name: path.read_text() for path in folder.glob("part-*")}


@needs_golden("commands/domainstats", "commands/protocolstats", "commands/crawlcomplete")
@pytest.mark.parametrize("nutch", RUNS, ids=str)
def test_the_files_are_those_of_nutch(nutch: NutchRun, tmp_path: Path) -> None:
    out = tmp_path / "out"
    run(nutch.name.partition("/")[0], *(out if word == "out" else word for word in nutch.words))
    assert texts(out) == texts(nutch.folder / "out")
    assert {path.name for path in out.iterdir()} == {
        path.name for path in (nutch.folder / "out").iterdir()
    }


@needs_golden("commands/crawlcomplete")
def test_crawlcomplete_makes_as_many_files_as_it_is_told(tmp_path: Path) -> None:
    """With -numReducers Nutch fails; its other run has the same lines."""
    words = NutchRun("crawlcomplete/tables-generate-domain").words
    run(
        "crawlcomplete",
        *(tmp_path / "out" if word == "out" else word for word in words),
        "-numReducers",
        "2",
    )
    ours = texts(tmp_path / "out")
    assert sorted(ours) == ["part-r-00000", "part-r-00001"] and all(ours.values())
    wanted = COMMANDS / "crawlcomplete/tables-generate-domain/out/part-r-00000"
    assert sorted("".join(ours.values()).splitlines()) == sorted(wanted.read_text().splitlines())


def entry(status: int, code: Writable | None = None) -> CrawlDatum:
    datum = CrawlDatum(status)
    if code is not None:
        datum.metadata = MapWritable({Text("a"): IntWritable(1), Text(RESPONSE_CODE_KEY): code})
    return datum


@pytest.fixture
def crawldb(tmp_path: Path) -> Path:
    entries = {
        "http://a.example.co.uk/": entry(STATUS_DB_FETCHED, Text("200")),
        "http://A.example.co.uk:8080/x": entry(STATUS_DB_NOTMODIFIED, Text("304")),
        "http://10.0.0.1/": entry(STATUS_DB_FETCHED, IntWritable(200)),
        "http://b.example/": entry(STATUS_DB_UNFETCHED),
        "file:/etc/passwd": entry(STATUS_DB_FETCHED, BytesWritable(b"\1")),
        "no url": entry(STATUS_DB_FETCHED),
    }
    return write_db(tmp_path / "crawldb", entries.items()).path


COUNTS = {
    "host": (
        "1\t\n1\t10.0.0.1\n1\tA.example.co.uk\n4\tFETCHED\n1\tNOT_FETCHED\n1\ta.example.co.uk\n"
    ),
    "domain": "1\t\n1\t10.0.0.1\n4\tFETCHED\n1\tNOT_FETCHED\n2\texample.co.uk\n",
    "suffix": "4\tFETCHED\n1\tNOT_FETCHED\n2\tco.uk\n",
    "tld": "4\tFETCHED\n1\tNOT_FETCHED\n2\tuk\n",
}


@pytest.mark.parametrize("mode", COUNTS)
def test_addresses_files_and_what_is_no_url(crawldb: Path, tmp_path: Path, mode: str) -> None:
    """Neither line counts strings that are no URLs."""
    run("domainstats", crawldb, tmp_path / "out", mode)
    assert texts(tmp_path / "out") == {"part-r-00000": COUNTS[mode]}


def test_every_entry_goes_through_one_counter(crawldb: Path, tmp_path: Path) -> None:
    context, _ = context_for(Configuration.load([]))
    dbs = [crawldb] * 2
    for number, counters in enumerate(
        (
            groupcounts.domainstats(dbs, tmp_path / "1", context=context),
            groupcounts.crawlcomplete(
                dbs,
                tmp_path / "2",
                groupcounts.PageCountOptions(mode="domain"),
                context=context,
            ),
            groupcounts.protocolstats(dbs, tmp_path / "3", context=context),
        ),
        1,
    ):
        assert sum(counters.values()) == 12
        lines = [
            line.split("\t") for line in texts(tmp_path / str(number))["part-r-00000"].splitlines()
        ]
        assert sum(int(count) for count, _ in lines) == {1: 18, 2: 10, 3: 12}[number]


def test_status_codes(crawldb: Path, tmp_path: Path) -> None:
    run("protocolstats", crawldb, tmp_path / "out")
    assert texts(tmp_path / "out")["part-r-00000"] == "1\t01\n2\t200\n1\t304\n2\tUNFETCHED\n"


@pytest.mark.parametrize(
    ("words", "wanted"),
    [
        (
            ("domainstats", "{db}", "{out}", "tld", "-json"),
            [{"tld": "uk", "status": "FETCHED", "count": 2}],
        ),
        (("domainstats", "{db}", "{out}", "tld", "-json"), [{"status": "NOT_FETCHED", "count": 1}]),
        (("protocolstats", "{db}", "{out}", "-json"), [{"code": "200", "count": 2}]),
        (
            ("protocolstats", "{db}", "{out}", "-json"),
            [{"status": "UNFETCHED", "count": 2}],
        ),
        (
            (
                "crawlcomplete",
                "-inputDirs",
                "{db}",
                "-outputDir",
                "{out}",
                "-mode",
                "host",
                "-json",
            ),
            [
                {"host": "b.example", "status": "UNFETCHED", "count": 1},
                {"host": "", "status": "FETCHED", "count": 1},
            ],
        ),
    ],
)
def test_json(
    crawldb: Path, tmp_path: Path, words: tuple[str, ...], wanted: list[dict[str, object]]
) -> None:
    run(*(word.format(db=crawldb, out=tmp_path / "out") for word in words))
    lines = [json.loads(line) for line in texts(tmp_path / "out")["part-r-00000"].splitlines()]
    assert all(line in lines for line in wanted)


def test_parts_and_tables_add_up(
    crawldb: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(groupcounts, "_MANY", 2)
    inputs = ",".join([str(crawldb)] * 5)
    run("domainstats", inputs, tmp_path / "out", "domain", "3")
    lines = "".join(texts(tmp_path / "out").values()).splitlines()
    assert len(texts(tmp_path / "out")) == 3
    assert sorted(lines) == sorted(
        f"{int(line[0]) * 5}{line[1:]}" for line in COUNTS["domain"].splitlines()
    )


# What can go wrong


@pytest.mark.parametrize(
    ("words", "error", "says"),
    [
        (
            "domainstats {db} {out} planet",
            MinutchError,
            "expected host, domain, suffix or tld, found",
        ),
        ("domainstats {db} {out} host no", MinutchError, "expected a positive number, found 'no'"),
        (
            "domainstats {db}/current {out} host",
            StoreError,
            "Input path does not exist: .*current/current",
        ),
        ("domainstats {db},{db}/nosuch {out} host", StoreError, "does not exist"),
        ("domainstats {db} {db} host", StoreError, "already exists"),
        ("domainstats {db} {out}", UsageError, "too few arguments"),
        ("protocolstats {db}", UsageError, "too few arguments"),
        ("protocolstats {db} {out} 0", MinutchError, "expected a positive number"),
        ("crawlcomplete -inputDirs {db} -mode host", UsageError, "missing: -outputDir"),
        (
            "crawlcomplete -inputDirs {db} -outputDir {out} -mode tld",
            MinutchError,
            "expected host or domain",
        ),
        (
            "crawlcomplete -inputDirs {db} -outputDir {out} -mode host -numReducers x",
            MinutchError,
            "positive number",
        ),
    ],
)
def test_what_is_wrong_is_said(
    crawldb: Path, tmp_path: Path, words: str, error: type[Exception], says: str
) -> None:
    with pytest.raises(error, match=says):
        run(*words.format(db=crawldb, out=tmp_path / "out").split())
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("command", NAMES)
def test_damage_leaves_no_output(crawldb: Path, tmp_path: Path, command: str) -> None:
    [data] = crawldb.glob("current/*/data")
    data.write_bytes(data.read_bytes()[:-9])
    words = {
        "crawlcomplete": ("-inputDirs", crawldb, "-outputDir", tmp_path / "out", "-mode", "host")
    }
    with pytest.raises(FormatError, match=str(data)):
        run(
            command,
            *words.get(
                command,
                (crawldb, tmp_path / "out", *(["host"] if command == "domainstats" else [])),
            ),
        )
    assert [path.name for path in tmp_path.iterdir()] == ["crawldb"]
