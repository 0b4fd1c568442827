"""The made-up databases: the same every time, of the shape that is promised, and readable."""

from __future__ import annotations

import shutil
from collections import Counter
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from minutch.cycle.crawldb.store import CrawlDb
from minutch.cycle.webgraph.store import WebGraph
from minutch.hadoop.formats.sequencefile import SequenceFileReader
from minutch.records.crawldatum import STATUS_LINKED, STATUS_SIGNATURE
from minutch.records.parsedata import ParseData
from minutch.work.tables import recordfiles
from tests.benchmarks import data
from tests.benchmarks.databases import Result, make_inputs, markdown, remove_read
from tests.benchmarks.jobs import JOBS, Workspace

TOTAL = 3000
PAGES = 20


def test_the_same_at_every_run_and_every_size(tmp_path: Path) -> None:
    for name in "ab":
        data.write_seeds(tmp_path / name, 500)
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()
    assert data.urls(np.arange(50, dtype=np.uint64)).equals(
        data.urls(np.arange(100, dtype=np.uint64))[:50]
    )


def test_urls() -> None:
    urls = data.urls(np.arange(20_000, dtype=np.uint64))
    assert urls.n_unique() == 20_000
    assert 65 < urls.str.len_bytes().mean() < 75  # type: ignore[operator]
    hosts = Counter(url.split("/")[2] for url in urls).most_common()
    assert hosts[0][1] > 800 and len(hosts) > 5000


def test_crawldb(tmp_path: Path) -> None:
    data.write_crawldb(tmp_path, TOTAL)
    db = CrawlDb(tmp_path)
    frame = pl.concat([db.read_part(i) for i in range(len(db.parts()))])
    assert len(frame) == TOTAL == frame["key"].n_unique() and len(db.parts()) == data.PARTS
    assert 0.07 < 1 - frame["metadata"].null_count() / TOTAL < 0.13
    signatures = frame["signature"].drop_nulls()
    assert signatures.n_unique() < len(signatures)


def test_segment(tmp_path: Path) -> None:
    data.write_segment(tmp_path, PAGES, TOTAL)
    parts = [
        path
        for path in sorted((tmp_path / "crawl_parse").iterdir())
        if not path.name.startswith(".")
    ]
    parsed = pl.concat([recordfiles.read(path) for path in parts])
    counts = dict(parsed["status"].value_counts().iter_rows())
    assert counts == {STATUS_LINKED: PAGES * data.PARSED_LINKS_PER_PAGE, STATUS_SIGNATURE: PAGES}
    pages = 0
    for part in (tmp_path / "parse_data").iterdir():
        with SequenceFileReader(part / "data") as reader:
            for _, value in reader.records():
                assert isinstance(value, ParseData) and len(value.outlinks) == data.LINKS_PER_PAGE
                assert value.content_meta.get("Content-Type") == "text/html"
                pages += 1
    assert pages == PAGES


def test_the_table() -> None:
    small = Result("job", 1_000_000, 1_000_000, 1.0, 1.5, 1e6, 10**9, 10**8, 0.5, 2.0, 30.0, 30.0)
    middle = Result("job", 5_000_000, 5_000_000, 5.5, 7.0, 1e6 / 1.1, 10**9, 10**8, 2.5, 2.2)
    large = Result("job", 10_000_000, 10_000_000, 12.0, 15.0, 1e6 / 1.2, 2 * 10**9, 10**8, 5.0, 2.4)
    other = Result("other", 5_000_000, 100, 1.0, 1.0, 100.0, 10**9, 10**8, 1.0, 1.0)
    table = markdown([small, middle, other, large])
    assert (
        "| job | 1 M | 1.00 | 1.50 | 1,000,000 | 1.00 GB | 0.10 GB | 2.0 | 30.0 | 30.0 |" in table
    )
    assert "| job | 10 M | 12.00 | 15.00 | 833,333 | 2.00 GB | 0.10 GB | 2.4 | – | – |" in table
    assert "| job, µs per record | 1 M | 5 M | 10 M | growth | of CPU |" in table
    assert "| job | 1.00 | 1.10 | 1.20 | +20 % | +0 % |" in table
    assert "| other | – | 10000.00 | – | – | – |" in table
    assert "growth" not in markdown([small])


@pytest.mark.slow  # makes a database twice
def test_data_that_are_there_are_used_again(tmp_path: Path) -> None:
    first = make_inputs(tmp_path, 1000, 10)
    marker = first.inputs / "marker"
    marker.touch()
    assert make_inputs(tmp_path, 1000, 10).inputs == first.inputs and marker.exists()
    assert make_inputs(tmp_path, 1000, 20).inputs != first.inputs
    shutil.rmtree(first.inputs / "crawldb")
    unfinished = first.inputs / "crawldb.unfinished"
    unfinished.mkdir()
    (unfinished / "rest").touch()
    again = make_inputs(tmp_path, 1000, 10).inputs
    assert (
        (again / "crawldb" / "current").is_dir()
        and not (again / "crawldb" / "rest").exists()
        and not unfinished.exists()
    )


def test_what_a_job_reads_is_made_alone(tmp_path: Path) -> None:
    job = next(job for job in JOBS if job.command == "inject")
    work = Workspace(tmp_path / "inputs", tmp_path / "run", 100, 10)
    data.main(work.inputs, 100, 10, job.inputs(work))
    assert [path.name for path in work.inputs.iterdir()] == ["seeds"]


def test_with_little_disk_what_no_coming_job_reads_is_removed(tmp_path: Path) -> None:
    work = Workspace(tmp_path / "inputs", tmp_path / "run", 100, 10)
    for name in data.NAMES:
        (work.inputs / name).mkdir(parents=True)
    remove_read(work, [job for job in JOBS if job.name == "linkrank"])
    # The segment is needed to make the webgraph, were that not there yet.
    assert {path.name for path in work.inputs.iterdir()} == {"segments", "webgraphdb"}


def test_webgraph(tmp_path: Path) -> None:
    data.write_segment(tmp_path / "segment", PAGES, TOTAL)
    data.write_webgraph(tmp_path / "webgraphdb", tmp_path / "segment")
    graph = WebGraph(tmp_path / "webgraphdb")
    links = sum(len(frame) for frame in graph.outlinks.in_order())
    assert 0.9 * PAGES * data.LINKS_PER_PAGE < links <= PAGES * data.LINKS_PER_PAGE
    assert len(graph.nodes.parts()) == data.PARTS
