"""scoreupdater: scores of nodes go to the entries of their pages, all others get the clear
score.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from minutch.cycle.crawldb.store import CrawlDb
from minutch.cycle.webgraph.linkrank import CLEARED, SCORED, linkrank, scoreupdater
from minutch.errors import StoreError, UsageError
from minutch.hadoop.formats.writables import MapWritable, Text
from minutch.records.crawldatum import STATUS_DB_FETCHED, CrawlDatum
from minutch.records.crawldatum_columns import to_frame
from minutch.work.tables.recordfiles import CrawlDataWriter
from tests.support.commands import command
from tests.support.graphs import context, graph_of, nodes

run = command("scoreupdater").run

WEB = {"http://a.com/": ["http://b.com/", "http://c.com/"], "http://b.com/": ["http://a.com/"]}
URLS = ["http://a.com/", "http://b.com/", "http://other.com/"]


def crawldb(path: Path) -> CrawlDb:
    entries = [
        (
            url,
            CrawlDatum(
                STATUS_DB_FETCHED,
                5,
                9.5,
                1000,
                500,
                1,
                b"\x01" * 16,
                MapWritable({Text("k"): Text(url)}),
            ),
        )
        for url in URLS
    ]
    with CrawlDataWriter(path / "current/part-r-00000") as writer:
        writer.write(to_frame(entries))
    return CrawlDb(path)


@pytest.mark.parametrize("parts", ["1", "3"])
@pytest.mark.parametrize("clear", [None, "0.25f"])
def test_scores(tmp_path: Path, clear: str | None, parts: str) -> None:
    graph, db = graph_of(tmp_path, WEB, mapreduce__job__reduces="2"), crawldb(tmp_path / "crawldb")
    linkrank(graph.path, context=context())
    before = dict(db.items())
    more = {} if clear is None else {"link__score__updater__clear__score": clear}
    counters = scoreupdater(
        db.path, graph.path, context=context(mapreduce__job__reduces=parts, **more)
    )
    after = dict(db.items())
    assert (counters[SCORED], counters[CLEARED]) == (2, 1)
    assert {url: entry.score for url, entry in after.items()} == {
        "http://a.com/": nodes(graph)["http://a.com/"][2],
        "http://b.com/": nodes(graph)["http://b.com/"][2],
        "http://other.com/": 0.25 if clear else 0.0,
    }
    for url, entry in after.items():
        before[url].score = entry.score
    assert after == before
    assert len(db.parts()) == int(parts)
    assert {entry.score for _, entry in CrawlDb(tmp_path / "crawldb").items()} != {9.5}
    assert (tmp_path / "crawldb/old").is_dir()


def test_what_goes_wrong(tmp_path: Path) -> None:
    graph, db = graph_of(tmp_path, WEB), crawldb(tmp_path / "crawldb")
    for words in (
        ["-crawldb", str(tmp_path / "nosuch"), "-webgraphdb", str(graph.path)],
        ["-crawldb", str(db.path), "-webgraphdb", str(tmp_path / "nosuch")],
        ["-crawldb", str(graph.path), "-webgraphdb", str(db.path)],
    ):
        with pytest.raises(StoreError):
            run(words, context())
    with pytest.raises(UsageError):
        run(["-crawldb", str(db.path)], context())
    assert {entry.score for _, entry in db.items()} == {9.5}
    assert not (db.path / "old").exists()
