"""The LinkDumper job: writes a database of the nodes that link to each page of a webgraph, which
`linkdumpreader` reads.

    LinkNodes    int count | count × LinkNode
    LinkNode     short length | URL in Java's modified UTF-8 | Node

The nodes of a page are in the order of their URLs, at most 50,000. An existing dump is replaced.

Source: org.apache.nutch.scoring.webgraph.LinkDumper.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import numpy as np
import polars as pl

from minutch.cycle.webgraph.csr import rows_of
from minutch.cycle.webgraph.settings import GraphSettings
from minutch.cycle.webgraph.store import WebGraph
from minutch.hadoop.formats.batch import Places
from minutch.hadoop.formats.javaio import DataOutput
from minutch.job import Counters, JobContext, Progress
from minutch.kernels import webgraph as kernels
from minutch.kernels.arrow import from_series, to_series
from minutch.records.webgraph import LinkNodes, node_values
from minutch.work.tables.database import part_name
from minutch.work.tables.frame import aligned, pieces
from minutch.work.tables.install import mark_success
from minutch.work.tables.parallel import for_each
from minutch.work.tables.shuffle import Shuffle
from minutch.work.tables.writer import TableWriter

log = logging.getLogger(__name__)
PAGES: Final = "pages with inlinks"
WRITTEN: Final = "links written"
LEFT_OUT: Final = "links beyond 50,000 of a page"
TOO_LONG: Final = "links from URLs of more than 65,535 bytes"
_MOST_LINKS: Final = 50_000
_LONGEST: Final = 0xFFFF
_ROWS_AT_A_TIME: Final = 1 << 18
_PIECES: Final = pl.Schema({"key": pl.Binary(), "node": pl.Binary()})
"""Serialized LinkNodes by the page that they link to."""


def linkdumper(webgraphdb: Path, *, context: JobContext) -> Counters:
    """Writes the dump of the graph at `webgraphdb`. Raises StoreError (no graph), LockedError,
    FormatError (damage).
    """
    graph = WebGraph(webgraphdb)
    graph.require()
    settings, counters = GraphSettings.from_conf(context.conf), Counters()
    log.info("LinkDumper: starting")
    with (
        graph.lock(),
        Shuffle(settings.parts, _PIECES, budget=settings.memory, spill=graph.path) as shuffle,
        context.progress("linkdumper", unit="links") as progress,
        graph.linkdump.replacement(keep_old=False) as directory,
    ):
        for links in _inverted(graph, counters, progress):
            shuffle.add(links)

        def write_part(part: int) -> Counters:
            counted = Counters()
            path, options = directory / part_name(part), settings.compression.options
            with TableWriter(path, LinkNodes.class_name, _records, **options) as writer:
                for frame in shuffle.sorted(part):
                    for links in pieces(frame, _ROWS_AT_A_TIME):
                        kept = links.filter(pl.int_range(pl.len()).over("key") < _MOST_LINKS)
                        writer.write(kept)
                        counted.add(PAGES, kept["key"].n_unique())
                        counted.add(WRITTEN, len(kept))
                        counted.add(LEFT_OUT, len(links) - len(kept))
            return counted

        for counted in for_each(write_part, range(settings.parts)):
            counters.merge(counted)
        mark_success(context.conf, directory)
    log.info("LinkDumper: finished")
    return counters


def _inverted(graph: WebGraph, counters: Counters, progress: Progress) -> Iterator[pl.DataFrame]:
    """Reads the links as tables of _PIECES, in the order of the pages that they come from."""
    for nodes, links in aligned(graph.nodes.in_order(), graph.outlinks.in_order()):
        rows = rows_of(links["key"], nodes["key"], graph)
        urls = _java_utf(nodes["key"])
        size = urls.bin.size()
        pieces = _lengths(size) + urls + node_values(nodes)
        pieces = pieces.set(size > _LONGEST, None)
        inverted = pl.DataFrame([links["url"].alias("key"), pieces.gather(rows).alias("node")])
        kept = inverted.drop_nulls("node")
        counters.add(TOO_LONG, len(inverted) - len(kept))
        progress.advance(len(links))
        yield kept


def _java_utf(urls: pl.Series) -> pl.Series:
    """Encodes URLs in Java's modified UTF-8, which differs in zero bytes and in characters of four
    bytes.
    """
    others = (
        urls.bin.contains(b"\0") | urls.bin.contains(b"\xf0") | urls.bin.contains(b"\xf4")
    ).arg_true()
    for first in (b"\xf1", b"\xf2", b"\xf3"):
        others = others.append(urls.bin.contains(first).arg_true())
    if not len(others):
        return urls
    others = others.unique()
    return urls.scatter(
        others, pl.Series([_modified(url) for url in urls.gather(others)], dtype=pl.Binary)
    )


def _modified(url: bytes) -> bytes:
    out = DataOutput()
    out.write_utf8(url.decode("utf-8", "replace"))
    return bytes(out.getvalue()[2:])


def _lengths(sizes: pl.Series) -> pl.Series:
    """Encodes each length in two bytes."""
    views = np.zeros((len(sizes), 4), np.int32)
    views[:, 0] = 2
    views[:, 1] = sizes.to_numpy().astype(np.uint16).byteswap()
    return to_series("length", views, [])


def _records(links: pl.DataFrame) -> Iterator[Places]:
    """Joins the pieces of each key, which are adjacent, to its LinkNodes."""
    if not len(links):
        return
    first = links["key"].ne_missing(links["key"].shift()).arg_true()
    starts = np.append(first.to_numpy(), len(links)).astype(np.int64)
    keys, pieces = from_series(links["key"].gather(first)), from_series(links["node"])
    out = np.empty(int(links["node"].bin.size().sum()) + 4 * len(first), np.uint8)
    at, length = np.empty(len(first), np.int64), np.empty(len(first), np.int32)
    kernels.join_runs(starts, pieces.column, out, at, length)
    yield Places.of(keys, out, at, length)
