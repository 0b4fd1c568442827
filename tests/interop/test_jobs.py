"""The same step by Nutch's own command and by minutch's: the same records come out."""

from __future__ import annotations

import io
import shutil
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from minutch.clock import FakeClock, SystemClock
from minutch.commands.flow import commands
from minutch.conf import Configuration
from minutch.cycle.crawldb.store import CrawlDb
from minutch.cycle.fetchlist.partition import UrlPartitioner
from minutch.cycle.linkdb.store import LinkDb
from minutch.cycle.segment.store import (
    CRAWL_GENERATE,
    CRAWL_PARSE,
    LAYOUTS,
    PARSE_DATA,
    PARSE_TEXT,
    Segment,
)
from minutch.cycle.webgraph.store import WebGraph
from minutch.hadoop.formats.sequencefile import SequenceFileReader
from minutch.job import JobContext
from minutch.records.crawldatum import CrawlDatum
from minutch.records.metadata import SEGMENT_NAME_KEY
from minutch.records.parsedata import ParseData
from minutch.work.tables.recordfiles import scan_inlinks
from tests.cycle.segment.test_compaction import NOW as NEWEST
from tests.cycle.segment.test_compaction import URLS, History, Round, job
from tests.interop.harness import Harness
from tests.support.crawldbs import DAY
from tests.support.golden import GOLDEN, needs_golden
from tests.support.graphs import ALL_LINKS
from tests.support.sequencefiles import copy_writable
from tests.support.ties import dump_as_sets, inlinks_as_sets, tied_selection

pytestmark = [pytest.mark.jvm, pytest.mark.slow, needs_golden]

Nutch = tuple[str, Harness]
Records = dict[str, list[tuple[bytes, bytes]]]

CRAWL = GOLDEN / "crawl-small" / "run-default-r2"
NOW = 1_795_250_000_000
PROPERTIES = {
    "plugin.includes": "nutch-extensionpoints",
    "mapreduce.job.reduces": "2",
    "partition.url.seed": "1",
    "linkdb.ignore.internal.links": "false",
}


def _minutch(command: str, *args: str | Path, **properties: str) -> int:
    """Run a command of minutch's with Nutch's configuration and no plugins but the extension
    points.
    """
    conf = Configuration.load([], overrides={**PROPERTIES, **properties}).freeze()
    context = JobContext(
        conf, FakeClock(NOW), out=io.StringIO(), err=io.StringIO(), stdin=io.StringIO()
    )
    return commands()[command].run([str(arg) for arg in args], context)


def _nutch(harness: Harness, out: Path, command: str, *args: str | Path, **properties: str) -> None:
    """Run the same command of Nutch's."""
    request = (
        "tool",
        out,
        commands()[command].nutch_class,
        harness.properties({**PROPERTIES, **properties}),
        *args,
    )
    assert harness.run([request]) == ["exit 0"]


def _records(parts: list[Path]) -> Records:
    result = {}
    for part in parts:
        with SequenceFileReader(part / "data" if part.is_dir() else part) as reader:
            result[part.name] = list(reader)
    return result


def _same_crawldb(first: Path, second: Path) -> None:
    ours, theirs = (_records(CrawlDb(path).require_parts()) for path in (first, second))
    assert list(ours) == list(theirs)
    for name, records in ours.items():
        assert [key for key, _ in records] == [key for key, _ in theirs[name]]
        for (key, value), (_, other) in zip(records, theirs[name], strict=True):
            assert _without_clock(value) == _without_clock(other), key


def _without_clock(value: bytes) -> bytes:
    """A serialized CrawlDatum; a fetch time that is that of the run (ours is fixed, Nutch's is not)
    becomes 0.
    """
    datum = CrawlDatum.from_bytes(value)
    if datum.fetch_time == NOW or abs(datum.fetch_time - SystemClock().now()) < 3_600_000:
        datum.fetch_time = 0
    return datum.to_bytes()


@pytest.fixture
def crawls(tmp_path: Path) -> tuple[Path, Path]:
    """A crawl after its first round, twice: one for minutch, one for Nutch."""
    for name in ("ours", "theirs"):
        (tmp_path / name).mkdir()
        copy_writable(CRAWL / "steps" / "07-crawldb", tmp_path / name / "crawldb")
        copy_writable(CRAWL / "steps" / "06-linkdb", tmp_path / name / "linkdb")
        shutil.copytree(CRAWL / "crawl" / "segments", tmp_path / name / "segments")
    return tmp_path / "ours", tmp_path / "theirs"


def _segments(crawl: Path) -> list[Path]:
    return sorted((crawl / "segments").iterdir())


def test_inject(nutch: Nutch, tmp_path: Path) -> None:
    seeds = tmp_path / "seeds"
    seeds.mkdir()
    lines = [
        f"http://host{i % 11}.example.org/{i}\tkey{i % 5}=value {i}\tnutch.score={i / 7}"
        for i in range(300)
    ]
    (seeds / "seeds.txt").write_text(
        "\n".join(["# seeds", "", *lines, "http://é.example/ü"]), encoding="utf-8"
    )
    _nutch(
        nutch[1],
        tmp_path / "log",
        "inject",
        tmp_path / "theirs",
        seeds,
        "-noFilter",
        "-noNormalize",
    )
    assert _minutch("inject", tmp_path / "ours", seeds, "-noFilter", "-noNormalize") == 0
    _same_crawldb(tmp_path / "ours", tmp_path / "theirs")


@needs_golden("crawl-small/run-default-r2/steps/07-crawldb")
def test_updatedb(nutch: Nutch, crawls: tuple[Path, Path], tmp_path: Path) -> None:
    ours, theirs = crawls
    _nutch(nutch[1], tmp_path / "log", "updatedb", theirs / "crawldb", *_segments(theirs)[1:])
    assert _minutch("updatedb", ours / "crawldb", *_segments(ours)[1:]) == 0
    _same_crawldb(ours / "crawldb", theirs / "crawldb")


@needs_golden("crawl-small/run-default-r2/steps/07-crawldb")
def test_dedup_of_what_the_other_wrote(
    nutch: Nutch, crawls: tuple[Path, Path], tmp_path: Path
) -> None:
    ours, theirs = crawls
    assert _minutch("updatedb", theirs / "crawldb", *_segments(theirs)[1:]) == 0
    _nutch(nutch[1], tmp_path / "log1", "updatedb", ours / "crawldb", *_segments(ours)[1:])
    order = ("-compareOrder", "score,fetchTime,urlLength")
    _nutch(nutch[1], tmp_path / "log2", "dedup", theirs / "crawldb", "-group", "none", *order)
    assert _minutch("dedup", ours / "crawldb", "-group", "none", *order) == 0
    _same_crawldb(ours / "crawldb", theirs / "crawldb")


@needs_golden("crawl-small/run-default-r2/steps/07-crawldb")
def test_mergedb(nutch: Nutch, crawls: tuple[Path, Path], tmp_path: Path) -> None:
    ours, theirs = crawls
    older = CRAWL / "steps" / "01-crawldb"
    _nutch(nutch[1], tmp_path / "log", "mergedb", theirs / "merged", theirs / "crawldb", older)
    assert _minutch("mergedb", ours / "merged", ours / "crawldb", older) == 0
    _same_crawldb(ours / "merged", theirs / "merged")


@needs_golden("crawl-small/run-default-r2/steps/07-crawldb")
def test_invertlinks(nutch: Nutch, crawls: tuple[Path, Path], tmp_path: Path) -> None:
    version, harness = nutch
    ours, theirs = crawls
    if version == "1.20":  # dies on a LinkDb of the newer layout: start without one
        shutil.rmtree(ours / "linkdb")
        shutil.rmtree(theirs / "linkdb")
    layout = {"linkdb.inlink.layout": "1.20"} if version == "1.20" else {}
    args = ("-noNormalize", "-noFilter")
    _nutch(
        harness, tmp_path / "log", "invertlinks", theirs / "linkdb", *_segments(theirs)[1:], *args
    )
    assert _minutch("invertlinks", ours / "linkdb", *_segments(ours)[1:], *args, **layout) == 0
    assert inlinks_as_sets(ours / "linkdb") == inlinks_as_sets(theirs / "linkdb")
    assert LinkDb(ours / "linkdb").layout == LinkDb(theirs / "linkdb").layout


@needs_golden("crawl-small/run-default-r2/steps/07-crawldb")
def test_nutch_goes_on_after_our_parse(
    nutch: Nutch, crawls: tuple[Path, Path], tmp_path: Path
) -> None:
    version, harness = nutch
    ours, theirs = crawls
    second = _segments(ours)[1]
    for folder in (PARSE_DATA, PARSE_TEXT, CRAWL_PARSE):
        shutil.rmtree(second / folder)
    values = {"plugin.includes": "parse-html|parse-text", "http.store.etag": "false"}
    assert _minutch("parse", second, **values) == 0  # Nutch does not seal validators
    shutil.rmtree(_segments(theirs)[1])
    shutil.copytree(second, theirs / "segments" / second.name)
    for crawl in crawls:
        shutil.rmtree(crawl / "linkdb")
    links = ("-noNormalize", "-noFilter")
    layout = {"linkdb.inlink.layout": version} if version == "1.20" else {}
    _nutch(harness, tmp_path / "log1", "updatedb", theirs / "crawldb", _segments(theirs)[1])
    _nutch(
        harness, tmp_path / "log2", "invertlinks", theirs / "linkdb", _segments(theirs)[1], *links
    )
    assert _minutch("updatedb", ours / "crawldb", second) == 0
    assert _minutch("invertlinks", ours / "linkdb", second, *links, **layout) == 0
    _same_crawldb(ours / "crawldb", theirs / "crawldb")
    mine, others = (inlinks_as_sets(crawl / "linkdb") for crawl in crawls)
    assert mine == others
    assert sum(map(len, mine.values())) > 20


@needs_golden("crawl-small/run-default-r2/steps/07-crawldb")
def test_nutch_goes_on_with_merged_segments(
    nutch: Nutch, crawls: tuple[Path, Path], tmp_path: Path
) -> None:
    ours, theirs = crawls
    assert _minutch("mergesegs", tmp_path / "merged", "-dir", ours / "segments") == 0
    [merged] = (tmp_path / "merged").iterdir()
    _nutch(nutch[1], tmp_path / "log1", "updatedb", theirs / "crawldb", merged)
    assert _minutch("updatedb", ours / "crawldb", merged) == 0
    _same_crawldb(ours / "crawldb", theirs / "crawldb")

    _nutch(nutch[1], tmp_path / "log2", "mergesegs", tmp_path / "again", merged)
    [again] = (path for path in (tmp_path / "again").iterdir() if path.is_dir())
    for folder in LAYOUTS:
        mine, others = (_records(Segment(segment).parts(folder)) for segment in (merged, again))
        if folder == PARSE_DATA:  # it names its segment
            mine, others = (_unnamed(records) for records in (mine, others))
        assert {name: sorted(entries) for name, entries in mine.items()} == {
            name: sorted(entries) for name, entries in others.items()
        }


HISTORY: list[Round] = [
    dict.fromkeys(range(6), "fetched"),
    {0: "fetched", 1: "unchanged", 2: "gone", 3: "moved", 4: "failed"},
    {0: "unchanged", 2: "fetched", 4: "fetched"},
    {1: "fetched", 3: "fetched", 5: "unparsed"},
    {0: "unchanged", 2: "gone", 5: "failed"},
    {1: "unchanged", 4: "fetched"},
]
"""Pages that change, do not, vanish, come back and move."""


def test_nutch_finds_the_same_in_segments_merged_in_tiers(nutch: Nutch, tmp_path: Path) -> None:
    """updatedb, invertlinks and mergesegs make the same of what is left, and readseg dumps it."""
    harness = nutch[1]
    history = History(tmp_path / "crawl", HISTORY)
    anchors = {
        URLS[n].encode(): f"fetched {NEWEST - (len(HISTORY) - 1 - i) * DAY}"
        for i, fetches in enumerate(HISTORY)
        for n, outcome in fetches.items()
        if outcome == "fetched"
    }
    segments = history.segments
    shutil.copytree(segments, tmp_path / "before")
    history.compact(job(crawl__compact__retention=10**9, crawl__compact__grace=0))
    shutil.copytree(segments, tmp_path / "after")
    assert len(list(segments.iterdir())) < len(HISTORY)
    made = {}
    for name in ("before", "after"):
        out, paths = tmp_path / f"made-{name}", sorted((tmp_path / name).iterdir())
        out.mkdir()
        _nutch(harness, tmp_path / f"1{name}", "updatedb", out / "crawldb", *paths)
        links = ("-noNormalize", "-noFilter")
        _nutch(harness, tmp_path / f"2{name}", "invertlinks", out / "linkdb", *paths, *links)
        _nutch(harness, tmp_path / f"3{name}", "mergesegs", out / "merged", *paths)
        [merged] = (path for path in (out / "merged").iterdir() if path.is_dir())
        folders = {folder: _records(Segment(merged).parts(folder)) for folder in LAYOUTS}
        folders[PARSE_DATA] = _unnamed(folders[PARSE_DATA])
        made[name] = folders, _links_of(out / "linkdb", anchors)
    _same_crawldb(tmp_path / "made-before" / "crawldb", tmp_path / "made-after" / "crawldb")
    assert made["before"] == made["after"]
    assert made["after"][1]
    dumped = b""
    for number, path in enumerate(sorted((tmp_path / "after").iterdir())):
        dump = tmp_path / f"dump{number}"
        _nutch(harness, tmp_path / f"4{number}", "readseg", "-dump", path, dump)
        dumped += (dump / "dump").read_bytes()
    assert all(anchor.encode() in dumped for anchor in anchors.values())


def _links_of(linkdb: Path, anchors: dict[bytes, str]) -> set[tuple[bytes, ...]]:
    """The links that the newest versions of pages have: a merge drops those of older ones."""
    db = LinkDb(linkdb)
    tables = [table for part in db.require_parts() for table in scan_inlinks(part, db.layout)]
    links = pl.concat(tables).select("key", "from_url", "anchor").iter_rows()
    return {link for link in links if link[2].decode() == anchors[link[1]]}


def _unnamed(records: Records) -> Records:
    """ParseData without the name of the segment."""
    result = {}
    for name, entries in records.items():
        values = [ParseData.from_bytes(value) for _, value in entries]
        for value in values:
            del value.content_meta[SEGMENT_NAME_KEY]
        result[name] = [
            (key, value.to_bytes()) for (key, _), value in zip(entries, values, strict=True)
        ]
    return result


def _fetch_list(segments: Path) -> list[tuple[str, CrawlDatum]]:
    (segment,) = segments.iterdir()
    return [
        (url, page)
        for url, page in Segment(segment).records(CRAWL_GENERATE)
        if isinstance(page, CrawlDatum)
    ]


def _reducer(url: str, _: CrawlDatum) -> object:
    """Returns the number of a page's reducer, of two; pages that no scoring filter tells apart go
    to the same one.
    """
    conf = Configuration.load([], overrides=PROPERTIES)
    return UrlPartitioner.from_conf(conf, lambda host: None).parts_of(pl.Series([url]), 2)[0]


@pytest.mark.parametrize("top", [(), ("-topN", "40")], ids=["all", "top"])
@needs_golden("crawl-small/run-default-r2/steps/07-crawldb")
def test_generate(
    nutch: Nutch, crawls: tuple[Path, Path], tmp_path: Path, top: tuple[str, ...]
) -> None:
    ours, theirs = crawls
    args = ("-noFilter", "-noNorm", "-adddays", "10000", *top)
    _nutch(nutch[1], tmp_path / "log", "generate", theirs / "crawldb", theirs / "new", *args)
    assert _minutch("generate", ours / "crawldb", ours / "new", *args) == 0
    mine, others = (_fetch_list(crawl / "new") for crawl in crawls)
    tied = tied_selection(mine, others, _reducer)
    assert [url for url, _ in mine if url not in tied] == [
        url for url, _ in others if url not in tied
    ]
    assert len(mine) > 20 and (top or not tied)


@needs_golden("crawl-small/run-default-r2/steps/07-crawldb")
def test_readseg_and_readdb(nutch: Nutch, crawls: tuple[Path, Path], tmp_path: Path) -> None:
    ours, theirs = crawls
    args = {"mapreduce.job.reduces": "1"}
    only = ("-nofetch", "-noparse", "-nogenerate", "-noparsedata", "-noparsetext")
    for crawl, run in ((ours, _minutch), (theirs, None)):
        for command, *words in (
            ("readseg", "-dump", _segments(crawl)[0], crawl / "seg", *only),
            ("readdb", crawl / "crawldb", "-dump", crawl / "db"),
            ("readlinkdb", crawl / "linkdb", "-dump", crawl / "links"),
        ):
            if run is not None:
                assert run(str(command), *words, **args) == 0
            elif nutch[0] != "1.20" or command != "readlinkdb":
                _nutch(nutch[1], tmp_path / "log", str(command), *words, **args)
    for name in ("seg/dump", "db/part-r-00000"):
        if (theirs / name).exists():
            assert (ours / name).read_bytes() == (theirs / name).read_bytes()
    if (theirs / "links").exists():
        mine, others = (
            (crawl / "links/part-r-00000").read_text(encoding="utf-8") for crawl in crawls
        )
        assert dump_as_sets(mine) == dump_as_sets(others)


@needs_golden("crawl-small/run-default-r2/steps/07-crawldb")
def test_nutch_goes_on_with_a_webgraph(
    nutch: Nutch, crawls: tuple[Path, Path], tmp_path: Path
) -> None:
    """Nutch ranks a graph that minutch made, reads and dumps it, and adds a segment; and minutch
    does the same.
    """
    _, harness = nutch
    ours, theirs = crawls
    first, *rest = _segments(ours)
    assert (
        _minutch("webgraph", "-webgraphdb", ours / "webgraphdb", "-segment", first, **ALL_LINKS)
        == 0
    )
    shutil.copytree(ours / "webgraphdb", theirs / "webgraphdb")
    added = [word for segment in rest for word in ("-segment", segment)]
    lines = (
        ("webgraph", "-webgraphdb", "webgraphdb", *added),
        ("linkrank", "-webgraphdb", "webgraphdb"),
        ("scoreupdater", "-crawldb", "crawldb", "-webgraphdb", "webgraphdb"),
        ("nodedumper", "-scores", "-webgraphdb", "webgraphdb", "-output", "scores"),
        (
            "nodedumper",
            "-inlinks",
            "-group",
            "host",
            "sum",
            "-webgraphdb",
            "webgraphdb",
            "-output",
            "hosts",
        ),
    )
    own = ("webgraphdb", "crawldb", "scores", "hosts")
    properties = harness.properties({**PROPERTIES, **ALL_LINKS})
    requests: list[tuple[str | Path, ...]] = []
    for number, (command, *words) in enumerate(lines):
        placed = [theirs / word if word in own else word for word in words]
        requests.append(
            (
                "tool",
                tmp_path / f"log-{number}",
                commands()[command].nutch_class,
                properties,
                *placed,
            )
        )
        assert (
            _minutch(
                command, *(ours / word if word in own else word for word in words), **ALL_LINKS
            )
            == 0
        )
    assert harness.run(requests) == ["exit 0"] * len(lines)
    mine, others = (WebGraph(crawl / "webgraphdb") for crawl in crawls)
    for links in ("outlinks", "inlinks"):
        tables = [
            pl.concat(list(getattr(graph, links).in_order())).drop("timestamp")
            for graph in (mine, others)
        ]
        assert sorted(tables[0].rows()) == sorted(tables[1].rows())
    nodes = [pl.concat(list(graph.nodes.in_order())) for graph in (mine, others)]
    assert nodes[0].drop("inlink_score").equals(nodes[1].drop("inlink_score"))
    assert np.allclose(*(table["inlink_score"].to_numpy() for table in nodes), rtol=1e-6, atol=0)
    scores = [
        {url: entry.score for url, entry in CrawlDb(crawl / "crawldb").items()} for crawl in crawls
    ]
    assert scores[0] == pytest.approx(scores[1], rel=1e-6)
    hosts, other_hosts = (
        (crawl / "hosts/part-r-00000").read_text(encoding="utf-8") for crawl in crawls
    )
    assert hosts == other_hosts
    top, other_top = (
        (crawl / "scores/part-r-00000").read_text(encoding="utf-8").splitlines() for crawl in crawls
    )
    assert [round(float(line.split("\t")[1]), 5) for line in top] == [
        round(float(line.split("\t")[1]), 5) for line in other_top
    ]
    assert len(top) > 100 and max(scores[0].values()) > 0.5
