"""Webgraphs made for a test: segments with links, and the graph that comes of them, in plain
values.
"""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from pathlib import Path

import polars as pl

from minutch.clock import FakeClock
from minutch.conf import Configuration
from minutch.cycle.webgraph.build import webgraph
from minutch.cycle.webgraph.store import OutlinkDb, WebGraph
from minutch.hadoop.formats.mapfile import MapFileWriter
from minutch.hadoop.formats.writables import Text
from minutch.job import JobContext
from minutch.records.crawldatum import CrawlDatum
from minutch.records.links import Outlink
from minutch.records.metadata import FETCH_TIME_KEY, Metadata
from minutch.records.parsedata import ParseData, ParseStatus

NOW = 1_770_000_000_000
ALL_LINKS = {
    "link.ignore.internal.host": "false",
    "link.ignore.internal.domain": "false",
    "link.ignore.limit.page": "false",
    "link.ignore.limit.domain": "false",
}
Pages = Mapping[str, Sequence[str]]
"""URL -> the URLs that it links to."""


def segment(
    path: Path, pages: Pages, *, time: int | None = None, gone: Mapping[str, int] = {}
) -> Path:
    """A segment of pages that were fetched at `time`, and of others with the status of their
    fetch.
    """
    records = {}
    for url, targets in pages.items():
        metadata = Metadata.of(
            {"k": "v"} if time is None else {"a": ["b", "c"], FETCH_TIME_KEY: str(time)}
        )
        links = [Outlink(target, f"to {target}") for target in targets]
        records[url] = ParseData(ParseStatus(1, 0), "title", links, metadata)
    fetched = {url: CrawlDatum(status, fetch_time=time or NOW) for url, status in gone.items()}
    for folder, values, record in (
        ("parse_data", records, ParseData.class_name),
        ("crawl_fetch", fetched, CrawlDatum.class_name),
    ):
        part = path / folder / "part-r-00000"
        part.parent.mkdir(parents=True)
        with MapFileWriter(part, Text.class_name, record, compression="RECORD") as writer:
            for url in sorted(values, key=str.encode):
                writer.append(Text(url), values[url])
    return path


def context(now: int = NOW, **properties: str) -> JobContext:
    """A job's context; `link__delete__gone="true"` sets link.delete.gone."""
    named = {name.replace("__", "."): value for name, value in properties.items()}
    conf = Configuration.load(
        [], overrides={"plugin.includes": "urlfilter-regex|urlnormalizer-(pass|basic)", **named}
    )
    return JobContext(conf.freeze(), FakeClock(now), out=io.StringIO(), err=io.StringIO())


def graph_of(path: Path, pages: Pages, **properties: str) -> WebGraph:
    """The graph of all links of `pages`, below `path`."""
    made = WebGraph(path / "webgraphdb")
    where = ALL_LINKS | {name.replace("__", "."): value for name, value in properties.items()}
    webgraph(
        made.path,
        [segment(path / "segment", pages)],
        context=context(**{k.replace(".", "__"): v for k, v in where.items()}),
    )
    return made


def links(database: OutlinkDb) -> list[tuple[str, str]]:
    """The links in order: page and other end."""
    return [(key.decode(), url.decode()) for key, url in _rows(database, "key", "url")]


def nodes(graph: WebGraph) -> dict[str, tuple[int, int, float]]:
    """Returns inlinks, outlinks and score of each page."""
    rows = _rows(graph.nodes, "key", "num_inlinks", "num_outlinks", "inlink_score")
    return {key.decode(): (inlinks, outlinks, score) for key, inlinks, outlinks, score in rows}


def _rows(database: object, *columns: str) -> list[tuple]:  # type: ignore[type-arg]
    return pl.concat(list(database.in_order())).select(columns).rows()  # type: ignore[attr-defined]
