"""Every command on a crawl of extremes: it answers, or says in a sentence what is wrong.

The entries have scores that are no numbers, times from year 1 to beyond every calendar, the largest
and smallest of all fields, URLs without a host, without characters, of a megabyte, with bytes that
are no text.
"""

from __future__ import annotations

import contextlib
import io
import json
import math
import re
import shutil
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from urllib.parse import quote

import pytest
from starlette.testclient import TestClient

from minutch.annexes.service.app import Service, make
from minutch.annexes.service.configs import Configs
from minutch.annexes.service.jobtable import JobTable
from minutch.annexes.service.requestchecks import Root
from minutch.clock import FakeClock
from minutch.commands import flow
from minutch.conf import Configuration
from minutch.cycle.crawldb.store import CrawlDb
from minutch.cycle.segment.store import CONTENT, Segment, part_writer
from minutch.errors import MinutchError
from minutch.hadoop.formats.javaio import encode_text
from minutch.hadoop.formats.writables import MapWritable, Text
from minutch.inspect.query.crawl import open_crawl
from minutch.inspect.search.app import make as serve_pages
from minutch.inspect.search.crawlfiles import CrawlFiles
from minutch.inspect.search.searcher import Searcher
from minutch.job import JobContext
from minutch.records import crawldatum as status
from minutch.records import protocol
from minutch.records.crawldatum import CrawlDatum
from minutch.records.metadata import PROTO_STATUS_KEY
from minutch.records.protocol import ProtocolStatus
from minutch.web.access import Access
from tests.support.crawldbs import write_db, write_segment
from tests.support.examples import every
from tests.support.pages import content

NOW = 1_800_000_000_000
DAY = 86_400_000
YEAR_1 = -62_135_596_800_000
BEYOND = 9_007_199_254_740_991
"""A time in the year 287396."""
SIGNATURE = b"s" * 16
LONG = "http://long.example/" + "a" * (1_000_000 // every(10))


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
    "http://usual.example/": replace(datum(FETCHED), signature=b"other" * 3),
}
URLS = [url for url in ENTRIES if url and url != LONG]

DB, HOSTS = "crawl/crawldb", "crawl/hostdb"
SEGMENTS = ("crawl/segments/20270101000000", "crawl/segments/20270102000000")
SEGMENT = SEGMENTS[0]
UNPARSED = "fetched/20270101000000"
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
    "whatif": [["crawl"], ["crawl", "--json"]],
    "sql": [],
    "report": [["crawl"]],
    "audit": [["crawl"], ["crawl", "--json"], ["crawl", "--csv", "out"]],
    "learn": [["crawl"], ["crawl", "--json"]],
    "changes": [["crawl"], ["crawl", "--jsonl", "--all"], ["crawl", "--atom"]],
    "fsck": [["crawl"]],
    "generate": [[DB, "crawl/segments", "-noFilter", "-noNorm"], [DB, "crawl/segments"]],
    "updatedb": [[DB, SEGMENT], [DB, SEGMENT, "-filter", "-normalize"]],
    "dedup": [[DB], [DB, "-group", "host"]],
    "mergedb": [["out", DB], ["out", DB, "-filter", "-normalize"]],
    "updatehostdb": [["-hostdb", HOSTS, "-crawldb", DB]],
    "readhostdb": [
        [HOSTS, "-get", "nan.example"],
        [HOSTS, "out"],
        [HOSTS, "out", "-expr", "score > 0"],
    ],
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
    "parse": [[UNPARSED]],
    "clean": [[DB]],
    "index": [[DB, "-linkdb", "crawl/linkdb", "-dir", "crawl/segments", "-addBinaryContent"]],
    "search": [["crawl/index", "example"], ["crawl/index", "url:example", "--json"]],
    "unlock": [["crawl"]],
}
OTHERS = {
    *(
        "completion",
        "filterchecker",
        "indexchecker",
        "init",
        "init-plugin",
        "normalizerchecker",
        "parsechecker",
    ),
    *("plugin", "robotsparser", "showproperties"),  # they read no crawl
    *("arc2segment", "freegen", "import", "inject", "sitemap"),  # they read what is not in it
    *("check", "crawl", "fetch"),  # they ask servers
    *("serve", "startserver"),  # see below
    "mcp",  # speaks with an assistant until it hangs up
}


SUCCESS = {
    "status": status.STATUS_FETCH_SUCCESS,
    "metadata": MapWritable({Text(PROTO_STATUS_KEY): ProtocolStatus(protocol.SUCCESS)}),
}
DIGEST = {"nutch.content.digest": SIGNATURE.hex()}
SETTINGS = {
    "plugin.includes": "urlfilter-regex|scoring-orphan|parse-html|index-(basic|anchor|more|links)"
    "|indexer-local",
    "linkdb.ignore.internal.links": "false",
    "link.ignore.internal.host": "false",
    "link.ignore.internal.domain": "false",
}


STEPS = (
    *(("parse", [segment]) for segment in SEGMENTS),
    ("invertlinks", ["crawl/linkdb", "-dir", "crawl/segments"]),
    ("webgraph", ["-segmentDir", "crawl/segments", "-webgraphdb", "crawl/webgraph"]),
    ("linkrank", ["-webgraphdb", "crawl/webgraph"]),
    ("updatehostdb", ["-hostdb", HOSTS, "-crawldb", DB]),
    ("index", COMMANDS["index"][0]),
)
"""What makes the other stores of it."""


def test_no_command_is_left_out() -> None:
    assert set(flow.commands()) == COMMANDS.keys() | OTHERS


def page(url: str, text: str) -> bytes:
    """A page with a link to each of them, and a text."""
    links = "".join(f"<a href='{other}'>{other}</a>" for other in URLS)
    return f"<title>{url[:99]}</title>{text}{links}".encode("utf-8", "surrogateescape")


def build(root: Path, entries: Mapping[str, CrawlDatum], refusals: Sequence[str] = ()) -> None:
    """Makes a crawl with all its stores, and parts that are empty."""
    write_db(root / DB, entries.items(), parts=24)
    fetched = {url: replace(entry, **SUCCESS) for url, entry in entries.items()}
    before = {url: replace(entry, fetch_time=NOW - 30 * DAY) for url, entry in fetched.items()}
    for folder, rows in zip((*SEGMENTS, UNPARSED), (before, fetched, fetched), strict=True):
        write_segment(root / folder, rows.items())
        segment = Segment(root / folder)
        with segment.writing([CONTENT]) as fresh, part_writer(fresh, CONTENT, 0) as append:
            for url in sorted(entries, key=encode_text):
                append(url, content(page(url, folder), url=url, **DIGEST))
    with contextlib.chdir(root):
        for name, words in STEPS:
            answer(name, words, refusals)


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A crawl of extremes."""
    root = tmp_path_factory.mktemp("extremes")
    build(root, ENTRIES)
    return root


@pytest.fixture
def folder(built: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of it, in which the command works."""
    shutil.copytree(built, tmp_path / "here")
    monkeypatch.chdir(tmp_path / "here")
    return tmp_path / "here"


def answer(name: str, words: list[str], refusals: Sequence[str] = ()) -> str:
    """Returns what a command prints, which may end in one of the refusals, and with no other."""
    command = flow.find(name)
    assert command is not None
    conf = Configuration.load([], overrides=SETTINGS)
    context = JobContext(conf.freeze(), FakeClock(NOW), io.StringIO(), io.StringIO(), io.StringIO())
    try:
        code = command.run(words, context)
    except MinutchError as error:
        assert any(re.search(text, str(error)) for text in refusals), error
        return ""
    assert code == 0 or (name, code) in EXITS, (name, words)
    assert isinstance(context.out, io.StringIO)
    text = context.out.getvalue()
    assert "Traceback" not in text
    text.encode("utf-8", "surrogateescape")
    return text


JSON = {"Content-Type": "application/json"}
EXITS = {("fsck", 1), ("search", 1)}
"""The exit codes other than 0: pages were fetched that its CrawlDb does not know as fetched, and no
page holds a word.
"""
TEXTS = {"readdb", "readhostdb", "domainstats", "crawlcomplete", "protocolstats"} | {
    *("readlinkdb", "readseg", "nodedumper")
}
"""The commands that write text."""


def strict(text: str) -> None:
    """JSON as every reader takes it, whole or by lines (RFC 8259, section 6)."""

    def refuse(word: str) -> None:
        raise AssertionError(f"{word} is no JSON")

    try:
        json.loads(text, parse_constant=refuse)
    except json.JSONDecodeError:
        for line in text.splitlines():
            json.loads(line, parse_constant=refuse)


SLOW = ("audit", "explain", "export", "fsck", "learn", "readdb", "report", "simulate", "whatif")
"""Commands whose lines take more than a second of CPU together."""


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=[pytest.mark.slow] if name in SLOW else [])
        for name, lines in COMMANDS.items()
        if lines
    ],
)
def test_commands_answer(folder: Path, name: str) -> None:
    for words in COMMANDS[name]:
        remove(Path("out"))
        text = answer(name, words)
        if name in TEXTS and "crawldb" not in words:
            readable(Path("out"))
        if "--json" in words or "-json" in words:
            strict(text)


def remove(path: Path) -> None:
    """Removes what the command before wrote."""
    if path.is_dir():
        shutil.rmtree(path)
    path.unlink(missing_ok=True)


def readable(path: Path) -> None:
    """Files of text are UTF-8, but for the bytes of a URL in those that hold Nutch's Text."""
    for file in path.rglob("*") if path.is_dir() else [path] * path.is_file():
        if file.is_file() and file.suffix != ".crc":
            file.read_bytes().replace(b"/\x80\xff\t", b"").decode("utf-8")


def tables() -> Iterator[str]:
    return iter(open_crawl(Path("crawl")).tables)


@pytest.mark.slow  # 75 statements
def test_tables_answer(folder: Path) -> None:
    answer("updatehostdb", COMMANDS["updatehostdb"][0])
    for table in tables():
        for form in ("-json", "-csv", ""):
            text = answer("sql", ["crawl", f"select * from {table}", *filter(None, [form])])
            if form == "-json":
                strict(text)


def test_scores_that_are_no_numbers_are_null_in_json(folder: Path) -> None:
    rows = answer("sql", ["crawl", "select url, score from crawldb", "-json"]).splitlines()
    scores = {row["url"]: row["score"] for row in map(json.loads, rows)}
    assert len(scores) == len(ENTRIES)
    assert scores["http://nan.example/"] is None is scores["http://minus.example/"]


def test_pages_are_served(built: Path) -> None:
    crawl = CrawlFiles(built / "crawl")
    app = serve_pages(
        Searcher(built / "crawl/index"), crawl, Access(None, frozenset({"testserver"}))
    )
    client = TestClient(app)
    for view in ("cached", "raw", "anchors", "history"):
        for url in URLS[:: every(4)]:
            answer = client.get(f"/{view}?url={quote(url, safe='', errors='surrogateescape')}")
            assert answer.status_code in (200, 404), (view, url)
        assert client.get(f"/{view}?url=http://usual.example/").status_code == 200
    for words in ("example", "usual", "%00", "%ED%A0%80", "%FF"):
        assert client.get(f"/?q={words}").status_code == 200


def test_the_service_answers(built: Path) -> None:
    conf = Configuration.load([], overrides=SETTINGS).freeze()
    access = Access(None, frozenset(("testserver",)), frozenset(), hosts_property="")
    configs = Configs(conf, may_change=False)
    service = Service(Root(built), access, configs, JobTable(1), "", lambda: None)
    client = TestClient(make(service))
    for url in ENTRIES:
        body = {"crawlId": "crawl", "type": "url", "args": {"url": url}}
        found = client.post("/db/crawldb", content=json.dumps(body), headers=JSON)
        if url.encode("utf-8", "replace").decode() == url:
            assert found.status_code in (200, 204), (url, found.text)
            strict(found.text or "null")
        else:  # half a surrogate pair is no text in JSON (RFC 8259, 8.2)
            assert found.status_code == 400
    for sort in ("true", "false"):
        body = {"crawlId": "crawl", "type": "stats", "args": {"sort": sort}}
        strict(client.post("/db/crawldb", json=body).text)
    for kind, path in (
        ("sequence", f"{DB}/current/part-r-00000/data"),
        ("sequence", f"{SEGMENT}/content/part-r-00000/data"),
        ("node", "crawl/webgraph/nodes/part-r-00000/data"),
        ("link", "crawl/webgraph/outlinks/current/part-r-00000/data"),
    ):
        found = client.post(f"/reader/{kind}/read", json={"path": path})
        assert found.status_code == 200, path
        strict(found.text)


FEW = (
    "is the webgraph empty",  # as in Nutch
    "nothing to simulate",
    "nothing is known of changes",
)
"""What commands may say of a crawl without any page."""


@pytest.mark.slow  # every command again, on two more crawls
def test_one_entry_and_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for count in (0, 1):
        root = tmp_path / str(count)
        build(root, dict([("http://nan.example/", datum(FETCHED, math.nan))][:count]), FEW)
        monkeypatch.chdir(root)
        for name, lines in COMMANDS.items():
            for words in lines[:3] if name != "generate" else []:
                remove(root / "out")
                answer(name, words, FEW)
        assert len(dict(CrawlDb(root / DB).items())) >= count
