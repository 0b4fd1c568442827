"""export parquet, edges and graphml: written, and read back by the programs that they are for."""

from __future__ import annotations

import csv
import resource
from pathlib import Path
from xml.etree import ElementTree

import duckdb
import polars as pl
import pytest

import minutch
from minutch.cycle.linkdb.store import LinkDb
from minutch.errors import StoreError
from minutch.records.crawldatum import CrawlDatum
from minutch.records.links_columns import LinkSets
from tests.support.commands import export
from tests.support.crawldbs import NOW, context, write_db
from tests.support.golden import GOLDEN, needs_golden

CRAWL = "crawl-small/run-rich-r2/crawl"
_GRAPHML = "{http://graphml.graphdrawing.org/xmlns}"


def run(*args: object) -> dict[str, int]:
    """Run export; returns its counters."""
    job = context()
    assert export.run([str(word) for word in args], job) == 0
    (counters,) = job.reports.values()
    return dict(counters)


@needs_golden(CRAWL)
def test_every_table_comes_back_from_parquet(tmp_path: Path) -> None:
    crawl = minutch.open(GOLDEN / CRAWL)
    counters = run("parquet", crawl.path, tmp_path / "out")
    tables = {name: table for name, table in crawl.tables.items() if not table.is_derived}
    assert counters == {f"rows of {name}": len(table) for name, table in tables.items()}
    for name, table in tables.items():
        if name in ("sitemaps", "checks"):  # there is none
            assert not (tmp_path / "out" / name).exists()
            continue
        files = sorted((tmp_path / "out" / name).iterdir())
        assert pl.concat([pl.read_parquet(file) for file in files]).equals(table.scan().collect())
        for file in files:
            key = pl.read_parquet(file).to_series(1 if name in ("pages", "parses") else 0)
            assert key.is_sorted()
    assert [file.name for file in sorted((tmp_path / "out/pages").iterdir())] == [
        f"{segment.name}.parquet" for segment in crawl.segments
    ]
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


@needs_golden(CRAWL)
def test_others_read_the_parquet_files(tmp_path: Path) -> None:
    pandas = pytest.importorskip("pandas")
    crawl = minutch.open(GOLDEN / CRAWL)
    run("parquet", crawl.path, tmp_path / "out", "-tables", "crawldb,pages")
    by_status = duckdb.sql(
        f"select status, count(*) from '{tmp_path}/out/crawldb/*.parquet' group by 1"
    ).fetchall()
    assert dict(by_status) == dict(crawl.crawldb.scan().group_by("status").len().collect().rows())
    pages = pandas.read_parquet(tmp_path / "out/pages")
    assert (
        len(pages) == len(crawl.tables["pages"])
        and str(pages["fetch_time"].dtype) == "datetime64[ms, UTC]"
    )


def test_what_is_not_there_is_left_out_unless_it_was_named(tmp_path: Path) -> None:
    write_db(tmp_path / "crawl/crawldb", [("http://a.org/", CrawlDatum(2, 60, 1.0, NOW))])
    counters = run("parquet", tmp_path / "crawl", tmp_path / "out")
    assert (
        counters["rows of crawldb"] == counters["rows of hosts"] == 1
        and counters["rows of links"] == 0
    )
    assert not (tmp_path / "out/links").exists()
    with pytest.raises(StoreError, match="linkdb"):
        run("parquet", tmp_path / "crawl", tmp_path / "more", "-tables", "links")
    with pytest.raises(StoreError, match="already exists"):
        run("parquet", tmp_path / "crawl", tmp_path / "out")
    with pytest.raises(StoreError, match="unknown table x"):
        run("parquet", tmp_path / "crawl", tmp_path / "more", "-tables", "crawldb,x")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["crawl", "out"]


def test_a_full_disk_is_an_error_of_the_system(tmp_path: Path) -> None:
    write_db(tmp_path / "crawl/crawldb", [("http://a.org/", CrawlDatum(2, 60, 1.0, NOW))])
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100, before[1]))
    try:
        with pytest.raises(OSError, match=r"crawldb/part-00000\.parquet"):
            run("parquet", tmp_path / "crawl", tmp_path / "out")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert [path.name for path in tmp_path.iterdir()] == ["crawl"]


LINKS = [
    ("http://a.org/", "http://b.org/1", "to <a> & \x1b[31m"),
    ("http://a.org/", "http://b.org/2", 'two, "quoted"\n'),
    ("http://b.org/1", "http://a.org/", ""),
    ("http://b.org/1", "http://b.org/2", "within"),
]


@pytest.fixture
def linked(tmp_path: Path) -> Path:
    """A crawl with four links: target, source, words."""
    rows = [tuple(part.encode() for part in link) for link in LINKS]
    table = pl.DataFrame(
        rows, schema={"key": pl.Binary, "from_url": pl.Binary, "anchor": pl.Binary}, orient="row"
    )
    with LinkDb.part_writer(tmp_path / "crawl/linkdb/current", 0, "metadata") as writer:
        writer.write(LinkSets.of(table))
    return tmp_path / "crawl"


def test_edges_are_csv_that_spreadsheets_and_gephi_read(linked: Path, tmp_path: Path) -> None:
    assert run("edges", linked, tmp_path / "edges.csv") == {"links": 4}
    with (tmp_path / "edges.csv").open(encoding="utf-8", newline="") as file:
        rows = [(row["Target"], row["Source"], row["Label"]) for row in csv.DictReader(file)]
    assert rows == LINKS
    assert run("edges", linked, tmp_path / "hosts.csv", "--hosts") == {"links": 2}
    assert (
        tmp_path / "hosts.csv"
    ).read_text() == "Source,Target,Weight\na.org,b.org,1\nb.org,a.org,2\n"
    (
        tmp_path / ".hosts.csv-4194305"
    ).mkdir()  # left by a process that was killed when it had done its work
    with pytest.raises(StoreError, match="already exists"):
        run("edges", linked, tmp_path / "hosts.csv")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["crawl", "edges.csv", "hosts.csv"]


def test_graphml_is_xml_whatever_pages_say(linked: Path, tmp_path: Path) -> None:
    assert run("graphml", linked, tmp_path / "links.graphml") == {"nodes": 3, "links": 4}
    graph = ElementTree.parse(tmp_path / "links.graphml").getroot().find(f"{_GRAPHML}graph")
    assert graph is not None
    labels = {
        node.get("id"): node.findtext(f"{_GRAPHML}data") for node in graph.iter(f"{_GRAPHML}node")
    }
    found = [
        (labels[edge.get("target")], labels[edge.get("source")], edge.findtext(f"{_GRAPHML}data"))
        for edge in graph.iter(f"{_GRAPHML}edge")
    ]
    assert found[0] == ("http://a.org/", "http://b.org/1", "to <a> & \\x1b[31m")
    assert [pair[:2] for pair in found] == [link[:2] for link in LINKS]


def test_networkx_reads_both(linked: Path, tmp_path: Path) -> None:
    networkx = pytest.importorskip("networkx")
    pandas = pytest.importorskip("pandas")
    run("graphml", linked, tmp_path / "hosts.graphml", "-hosts")
    graph = networkx.read_graphml(tmp_path / "hosts.graphml")
    assert sorted(networkx.get_node_attributes(graph, "label").values()) == ["a.org", "b.org"]
    assert sorted(networkx.get_edge_attributes(graph, "weight").values()) == [1, 2]
    run("edges", linked, tmp_path / "edges.csv")
    frame = pandas.read_csv(tmp_path / "edges.csv")
    pages = networkx.from_pandas_edgelist(frame, "Source", "Target", create_using=networkx.DiGraph)
    assert pages.in_degree("http://a.org/") == 2
