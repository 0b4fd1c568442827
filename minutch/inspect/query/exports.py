"""Exports the tables of a crawl as Parquet files, for DuckDB, Spark, pandas and others, and its
links as a graph: as CSV, for Gephi and networkx, or as GraphML.

    <out>/crawldb/part-00000.parquet       a file for each partition of a database, sorted by URL
    <out>/pages/20260101120000.parquet     a file for each segment, sorted by URL; parses likewise
    <out>/hosts/part-00000.parquet         sorted by host

Row groups have statistics, which let readers skip rows. A table whose files are missing is omitted.
The folder appears whole or not at all.

Nodes of GraphML have numbers as ids, and the URL or host as `label`; edges have the anchor text, or
the number of links. Source: http://graphml.graphdrawing.org/specification.html
"""

from __future__ import annotations

import logging
import os
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final
from xml.sax.saxutils import escape

import polars as pl

from minutch.errors import StoreError
from minutch.inspect.query.crawl import CrawlFolder, open_crawl
from minutch.inspect.query.results import csv_lines
from minutch.inspect.query.table import Table
from minutch.job import Counters, JobContext
from minutch.terminal import visible
from minutch.urls.hostcolumns import host_names
from minutch.work.tables.install import remove
from minutch.work.tables.textparts import output_file, output_folder

log = logging.getLogger(__name__)
ROWS_PER_GROUP: Final = 122_880
"""Rows of a row group, each with its own statistics."""
_OS_ERROR: Final = re.compile(r"\(os error (\d+)\)")


@dataclass(frozen=True, slots=True)
class ParquetOptions:
    """Options of export parquet."""

    tables: Sequence[str] = ()
    """Names of the tables to export; empty: all whose files exist, but `site`."""


def export_parquet(
    crawl: Path, out: Path, options: ParquetOptions = ParquetOptions(), *, context: JobContext
) -> Counters:
    """Writes the tables of the crawl in a folder to the new folder `out`; counts their rows.

    Raises StoreError for an unknown table, for one that is named but has no files, and if `out`
    exists.
    """
    tables = open_crawl(crawl, context.conf).tables
    if unknown := [name for name in options.tables if name not in tables]:
        raise StoreError(f"unknown table {unknown[0]}: expected {', '.join(tables)}")
    counters = Counters()
    with (
        output_folder(out) as folder,
        context.progress("export parquet", None, unit="rows") as progress,
    ):
        for table in tables.values():
            # Near-duplicates would take a pass over all texts, and leave a cache in the crawl.
            if table.name in options.tables or not (options.tables or table.is_derived):
                rows = _write(table, folder / table.name, required=bool(options.tables))
                counters.add(f"rows of {table.name}", rows)
                progress.advance(rows)
    return counters


def _write(table: Table, folder: Path, *, required: bool) -> int:
    """Writes a table to a folder; returns the number of its rows, 0 if its files are missing."""
    try:
        parts = table.partitions()
        folder.mkdir()
        for name, part in parts.items():
            sink(part.scan(), folder / f"{name}.parquet")
    except StoreError:
        if required:
            raise
        log.info("%s is omitted: its files are missing", table.name)
        # It may have some files already: of a part that is missing in the middle.
        remove(folder)
        return 0
    return count(folder / "*.parquet") if parts else 0


def write_parquet(rows: pl.LazyFrame, path: Path) -> int:
    """Writes a file; returns the number of rows. StoreError if it exists, or as reading."""
    with output_file(path) as new:
        sink(rows, new)
        return count(new)


def sink(rows: pl.LazyFrame, path: Path) -> None:
    """Writes rows to a new file as they come. Raises OSError, and what reading them raises."""
    with _os_errors(path):
        rows.sink_parquet(
            path,
            compression="zstd",
            # The least and greatest URL of a row group: readers of one host skip most groups.
            statistics="full",
            row_group_size=ROWS_PER_GROUP,
            engine="streaming",
        )


def count(path: Path) -> int:
    """Returns the number of rows in a file, or in those of a pattern. Raises OSError."""
    with _os_errors(path):
        return int(pl.scan_parquet(path).select(pl.len()).collect().item())


@contextmanager
def _os_errors(path: Path) -> Iterator[None]:
    """Turns Polars' errors about files into the system's."""
    try:
        yield
    except pl.exceptions.ComputeError as exc:
        # A full disk is a ComputeError, whose text alone has the number.
        if found := _OS_ERROR.search(str(exc)):
            raise OSError(int(found[1]), os.strerror(int(found[1])), str(path)) from exc
        raise


_NAMES: Final = {"source": "Source", "target": "Target", "anchor": "Label", "weight": "Weight"}
_HEAD: Final = """<?xml version="1.0" encoding="UTF-8"?>
<graphml xmlns="http://graphml.graphdrawing.org/xmlns">
<key id="label" for="node" attr.name="label" attr.type="string"/>
<key id="{name}" for="edge" attr.name="{name}" attr.type="{kind}"/>
<graph edgedefault="directed">
"""
_TAIL: Final = "</graph>\n</graphml>\n"


@dataclass(frozen=True, slots=True)
class GraphOptions:
    """Options of export edges and export graphml."""

    by_host: bool = False
    """Export the links between hosts, with their numbers, instead of those between pages."""


def export_edges(
    crawl: Path, out: Path, options: GraphOptions = GraphOptions(), *, context: JobContext
) -> Counters:
    """Writes the links of the crawl in a folder to the new CSV file `out`.

    Columns are Source, Target, and Label (the anchor text) or Weight (the number of links).
    """
    rows = edges(open_crawl(crawl), by_host=options.by_host)
    rows = rows.rename({name: _NAMES[name] for name in rows.collect_schema()})
    counters = Counters({"links": 0})
    with (
        output_file(out) as new,
        new.open("wb") as file,
        context.progress("export edges", unit="links") as progress,
    ):

        def counted(frames: Iterator[pl.DataFrame]) -> Iterator[pl.DataFrame]:
            for frame in frames:
                counters.add("links", len(frame))
                progress.advance(len(frame))
                yield frame

        frames = rows.collect_batches(maintain_order=True, engine="streaming")
        for text in csv_lines(counted(frames), rows.collect_schema()):
            file.write(text.encode("utf-8", "replace"))
    return counters


def export_graphml(
    crawl: Path, out: Path, options: GraphOptions = GraphOptions(), *, context: JobContext
) -> Counters:
    """Writes the links of the crawl in a folder to the new GraphML file `out`."""
    opened = open_crawl(crawl)
    with (
        output_file(out) as new,
        new.open("wb") as file,
        context.progress("export graphml", unit="links") as progress,
    ):
        links = edges(opened, by_host=options.by_host).collect(engine="streaming")
        # All at once: GraphML has its nodes before the edges.
        nodes = pl.concat([links["source"], links["target"]]).unique().sort()
        for line in _graphml_lines(links, nodes):
            file.write(line.encode("utf-8", "replace"))
        progress.advance(len(links))
    return Counters({"nodes": len(nodes), "links": len(links)})


def _graphml_lines(links: pl.DataFrame, nodes: pl.Series) -> Iterator[str]:
    name = links.columns[2]
    yield _HEAD.format(name=name, kind="int" if links[name].dtype.is_integer() else "string")
    for number, label in enumerate(nodes):
        yield f'<node id="n{number}"><data key="label">{_xml(label)}</data></node>\n'
    ends = [
        column.replace_strict(nodes, pl.Series(range(len(nodes))))
        for column in (links["source"], links["target"])
    ]
    for source, target, value in zip(*ends, links[name], strict=True):
        yield (
            f'<edge source="n{source}" target="n{target}"><data'
            f' key="{name}">{_xml(str(value))}</data></edge>\n'
        )
    yield _TAIL


def _xml(value: str) -> str:
    """Escapes a text for XML; control characters, which XML excludes, are written out."""
    return escape(visible(value).replace("\ufffe", "\ufffd").replace("\uffff", "\ufffd"))


def edges(crawl: CrawlFolder, *, by_host: bool) -> pl.LazyFrame:
    """Returns `source`, `target` and, of pages, `anchor`; of hosts `weight`, without links within a
    host.
    """
    links = crawl.tables["links"].scan().rename({"from_url": "source", "url": "target"})
    if not by_host:
        return links.select("source", "target", "anchor")
    hosts = links.select(pl.col("source", "target").map_batches(host_names, return_dtype=pl.String))
    # Null is what has no host.
    between = hosts.filter((pl.col("source") != pl.col("target")).fill_null(False))
    return between.group_by("source", "target").agg(weight=pl.len()).sort("source", "target")
