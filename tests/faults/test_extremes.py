"""Every command on a crawl of extremes: it answers, or says in a sentence what is wrong.

The entries have scores that are no numbers, times from year 1 to beyond every calendar, the largest
and smallest of all fields, URLs without a host, without characters, of a megabyte, with bytes that
are no text.
"""

from __future__ import annotations

import importlib
import io
import json
import math
import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from minutch.clock import FakeClock
from minutch.commands import flow
from minutch.conf import Configuration
from minutch.cycle.crawldb.store import CrawlDb
from minutch.errors import MinutchError, UsageError
from minutch.inspect.query.crawl import open_crawl
from minutch.job import JobContext
from minutch.records import crawldatum as status
from minutch.records.crawldatum import CrawlDatum
from tests.support.crawldbs import write_db, write_segment

NOW = 1_800_000_000_000
YEAR_1 = -62_135_596_800_000
BEYOND = 9_007_199_254_740_991
"""A time in the year 287396."""
SIGNATURE = b"s" * 16
LONG = "http://long.example/" + "a" * 1_000_000


def datum(
    state: int = status.STATUS_DB_UNFETCHED, score: float = 1.0, time: int = NOW
) -> CrawlDatum:
    return CrawlDatum(state, 86_400, score, fetch_time=time, modified_time=time)


FETCHED = status.STATUS_DB_FETCHED
ENTRIES = {
    "": datum(),
    "no url": datum(status.STATUS_DB_GONE),
    "http:/c": datum(),
    "http:///x": datum(FETCHED),
    "http://nan.example/": replace(datum(FETCHED, math.nan), signature=SIGNATURE),
    "http://infinite.example/": replace(datum(FETCHED, math.inf), signature=SIGNATURE),
    "http://minus.example/": datum(status.STATUS_DB_NOTMODIFIED, -math.inf),
    "http://year1.example/": datum(FETCHED, time=YEAR_1),
    "http://beyond.example/": datum(FETCHED, time=BEYOND),
    "http://most.example/": CrawlDatum(
        FETCHED, 2**31 - 1, 3.4e38, fetch_time=2**63 - 1, modified_time=2**63 - 1, retries=127
    ),
    "http://least.example/": CrawlDatum(
        FETCHED, -(2**31), -3.4e38, fetch_time=-(2**63), modified_time=-(2**63), retries=-128
    ),
    "http://text.example/\udc80\udcff": datum(FETCHED),
    "http://lines.example/\x00\r\n\x1b[2J": datum(FETCHED),
    "http://b\u00fccher.example/": datum(),
    "http://[::1]/": datum(),
    "file:/etc": datum(),
    LONG: datum(),
}
URLS = [url for url in ENTRIES if url and url != LONG]

DB, SEGMENT, HOSTS = "crawl/crawldb", "crawl/segments/20270101000000", "crawl/hostdb"
COMMANDS: dict[str, list[list[str]]] = {
    "readdb": [
        [DB, "-stats"],
        [DB, "-stats", "-sort"],
        [DB, "-topN", "5", "out"],
        *([DB, "-dump", "out", "-format", form] for form in ("normal", "csv", "json", "crawldb")),
        *([DB, "-url", url] for url in URLS),
    ],
    "explain": [
        ["crawl"],
        ["crawl", "--json"],
        *([url, "crawl", form] for url in URLS for form in ("--json", "--quick")),
    ],
    "sql": [],
    "report": [["crawl"]],
    "fsck": [["crawl"]],
    "generate": [[DB, "crawl/segments", "-noFilter", "-noNorm"], [DB, "crawl/segments"]],
    "updatedb": [[DB, SEGMENT], [DB, SEGMENT, "-filter", "-normalize"]],
    "dedup": [[DB], [DB, "-group", "host"]],
    "mergedb": [["out", DB], ["out", DB, "-filter", "-normalize"]],
    "updatehostdb": [["-hostdb", HOSTS, "-crawldb", DB]],
    "readhostdb": [["-get", HOSTS, "nan.example"], [HOSTS, "out"]],
    "domainstats": [[DB, "out", kind] for kind in ("host", "domain", "suffix", "tld")],
    "crawlcomplete": [["-inputDirs", DB, "-outputDir", "out", "-mode", "host"]],
    "protocolstats": [[DB, "out"]],
    "simulate": [["crawl"], ["crawl", "-assume", "30", "-json"]],
    "text": [[f"{DB}/current/part-r-00000/data", "-json"], [f"{SEGMENT}/crawl_fetch"]],
    "readseg": [["-list", "-dir", "crawl/segments"], ["-dump", SEGMENT, "out"]],
    "mergesegs": [["out", "-dir", "crawl/segments"]],
    "invertlinks": [["crawl/linkdb", "-dir", "crawl/segments"]],
    "readlinkdb": [["crawl/linkdb", "-dump", "out"]],
    "mergelinkdb": [["out", "crawl/linkdb"]],
    "webgraph": [["-segmentDir", "crawl/segments", "-webgraphdb", "crawl/webgraph"]],
    "linkrank": [["-webgraphdb", "crawl/webgraph"]],
    "nodedumper": [["-scores", "-webgraphdb", "crawl/webgraph", "-output", "out"]],
    "scoreupdater": [["-crawldb", DB, "-webgraphdb", "crawl/webgraph"]],
    "export": [
        ["parquet", "crawl", "out"],
        ["edges", "crawl", "out"],
        ["graphml", "crawl", "out.graphml"],
        *([kind, "crawl/segments", "out"] for kind in ("arc", "wat", "wet", "cdxj")),
        ["wacz", "crawl", "out.wacz"],
    ],
    "dump": [["-outputDir", "out", "-segment", "crawl/segments"]],
    "commoncrawldump": [["-outputDir", "out", "-segment", "crawl/segments"]],
    "warc": [["out", "-dir", "crawl/segments"]],
    "parse": [[SEGMENT]],
    "clean": [[DB]],
    "unlock": [["crawl"]],
}
OTHERS = {
    *("completion", "filterchecker", "indexchecker", "init", "normalizerchecker", "parsechecker"),
    *("plugin", "robotsparser", "showproperties"),  # they read no crawl
    *("arc2segment", "freegen", "import", "inject", "sitemap"),  # they read what is not in it
    *("crawl", "fetch", "index", "search", "serve", "startserver"),  # they have tests of their own
}


def test_no_command_is_left_out() -> None:
    assert set(flow.commands()) == COMMANDS.keys() | OTHERS


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A crawl of extremes, with parts that are empty."""
    root = tmp_path_factory.mktemp("extremes")
    write_db(root / DB, ENTRIES.items(), parts=24)
    as_fetched = {FETCHED: status.STATUS_FETCH_SUCCESS}
    fetched = {
        url: replace(entry, status=as_fetched.get(entry.status, status.STATUS_FETCH_RETRY))
        for url, entry in ENTRIES.items()
    }
    write_segment(root / SEGMENT, fetched.items())
    return root


@pytest.fixture
def folder(built: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of it, in which the command works."""
    shutil.copytree(built, tmp_path / "here")
    monkeypatch.chdir(tmp_path / "here")
    return tmp_path / "here"


def answer(name: str, words: list[str]) -> str:
    """Runs a command; what is wrong with the input may be a MinutchError, and nothing else."""
    command = flow.find(name)
    assert command is not None
    conf = Configuration.load([], overrides={"plugin.includes": "urlfilter-regex|scoring-orphan"})
    context = JobContext(conf.freeze(), FakeClock(NOW), io.StringIO(), io.StringIO(), io.StringIO())
    try:
        importlib.import_module(command.module).run(words, context)
    except MinutchError as error:
        assert str(error) and not isinstance(error, UsageError), error
        return ""
    assert isinstance(context.out, io.StringIO)
    text = context.out.getvalue()
    assert "Traceback" not in text
    return text


def strict(text: str) -> None:
    """JSON as every reader takes it, whole or by lines (RFC 8259, section 6)."""

    def refuse(word: str) -> None:
        raise AssertionError(f"{word} is no JSON")

    try:
        json.loads(text, parse_constant=refuse)
    except json.JSONDecodeError:
        for line in text.splitlines():
            json.loads(line, parse_constant=refuse)


@pytest.mark.parametrize("name", [name for name, lines in COMMANDS.items() if lines])
def test_commands_answer(folder: Path, name: str) -> None:
    for words in COMMANDS[name]:
        shutil.rmtree("out", ignore_errors=True)
        text = answer(name, words)
        if "--json" in words or "-json" in words:
            strict(text)


def tables() -> Iterator[str]:
    return iter(open_crawl(Path("crawl")).tables)


def test_tables_answer(folder: Path) -> None:
    answer("updatehostdb", COMMANDS["updatehostdb"][0])
    for table in tables():
        for form in ("-json", "-csv", ""):
            text = answer("sql", ["crawl", f"select * from {table}", *filter(None, [form])])
            if form == "-json":
                strict(text)
    rows = answer("sql", ["crawl", "select url, score from crawldb", "-json"]).splitlines()
    scores = {row["url"]: row["score"] for row in map(json.loads, rows)}
    assert len(scores) == len(ENTRIES)
    assert scores["http://nan.example/"] is None is scores["http://minus.example/"]


def test_one_entry_and_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for count in (0, 1):
        root = tmp_path / str(count)
        write_db(root / DB, [("http://nan.example/", datum(FETCHED, math.nan))][:count])
        write_segment(root / SEGMENT, [])
        monkeypatch.chdir(root)
        for name, lines in COMMANDS.items():
            for words in lines[:3]:
                shutil.rmtree("out", ignore_errors=True)
                answer(name, words)
        assert len(list(CrawlDb(root / DB).items())) == count
