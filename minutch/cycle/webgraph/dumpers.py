"""The nodedumper job: dumps pages, hosts or domains of a webgraph by inlinks, outlinks or score;
and linkdumper: writes a database of the nodes that link to each page, which `linkdumpreader` reads.

    <url, host or domain> TAB <number> LF       with -asEff an equals sign instead of the tab

    LinkNodes    int count | count × LinkNode
    LinkNode     short length | URL in Java's modified UTF-8 | Node

Pages are sorted by number, highest first, then by URL; groups by name, each with the sum or the
maximum of its pages' numbers. -topn N keeps the first N pages, or the N groups with the highest
numbers, highest first. Nutch keeps N pages for each number, and N in each group:
nodedumper.topn.per.value=true.

The nodes of a page in a LinkDump are in the order of their URLs, at most 50,000. An existing one is
replaced.

Source: org.apache.nutch.scoring.webgraph.NodeDumper, LinkDumper.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Final, Literal

import numpy as np
import polars as pl

from minutch.cycle.webgraph.linkrank import rows_of
from minutch.cycle.webgraph.store import GraphSettings, WebGraph
from minutch.hadoop.formats.batch import Places
from minutch.hadoop.formats.checksum import ChecksumWriter
from minutch.hadoop.formats.compress import CompressedWriter
from minutch.hadoop.formats.javaio import DataOutput
from minutch.hadoop.formats.writables import FloatWritable
from minutch.job import Counters, JobContext, Progress
from minutch.kernels import webgraph as kernels
from minutch.kernels.arrow import from_series, to_series
from minutch.records.webgraph import LinkNodes, node_values, places_of
from minutch.urls.hostcolumns import domains_of, host_names
from minutch.work.tables.compression import Compression, text_codec
from minutch.work.tables.database import part_name
from minutch.work.tables.frame import aligned, decode_keys, encode_keys, pieces
from minutch.work.tables.install import mark_success
from minutch.work.tables.parallel import for_each
from minutch.work.tables.shuffle import Shuffle
from minutch.work.tables.textparts import float_texts, output_folder, require_absent, text_part
from minutch.work.tables.writer import TableWriter

log = logging.getLogger(__name__)
PER_VALUE_PROPERTY: Final = "nodedumper.topn.per.value"
WRITTEN: Final = "lines written"
LEFT_OUT: Final = "lines beyond -topn"
NODES: Final = "nodes read"
ALL: Final = (1 << 63) - 1
_RANKED: Final = pl.Schema({"key": pl.Binary(), "name": pl.Binary(), "number": pl.Float32()})
"""Names by number, highest first: `key` encodes the number so that its bytes sort that way."""
_GROUPED: Final = pl.Schema({"key": pl.Binary(), "number": pl.Float64()})
PAGES: Final = "pages with inlinks"
LINKS_WRITTEN: Final = "links written"
LINKS_LEFT_OUT: Final = "links beyond 50,000 of a page"
TOO_LONG: Final = "links from URLs of more than 65,535 bytes"
_MOST_LINKS: Final = 50_000
_LONGEST: Final = 0xFFFF
_ROWS_AT_A_TIME: Final = 1 << 18
_PIECES: Final = pl.Schema({"key": pl.Binary(), "node": pl.Binary()})
"""Serialized LinkNodes by the page that they link to."""


@dataclass(frozen=True, slots=True)
class NodeDumperOptions:
    """Options of the nodedumper job."""

    number: Literal["inlinks", "outlinks", "scores"] = "scores"
    """The number of a page that is dumped."""
    topn: int = ALL
    """Number of pages or groups that are dumped."""
    group: tuple[Literal["host", "domain"], Literal["sum", "max"]] | None = None
    """How pages are grouped, and how the numbers of a group are combined."""
    as_eff: bool = False
    """Whether lines are `name=number`, as Solr's ExternalFileField reads them."""
    as_sequence_file: bool = False
    """Whether a SequenceFile of Text and FloatWritable is written instead of text."""


_COLUMNS: Final = {"inlinks": "num_inlinks", "outlinks": "num_outlinks", "scores": "inlink_score"}


def nodedumper(
    webgraphdb: Path,
    output: Path,
    options: NodeDumperOptions = NodeDumperOptions(),
    *,
    context: JobContext,
) -> Counters:
    """Writes the nodes of the graph at `webgraphdb` to the new directory `output`.

    Raises StoreError (no graph, `output` exists), FormatError (damage).
    """
    graph = WebGraph(webgraphdb)
    graph.nodes.require_parts()
    require_absent(output)
    log.info("NodeDumper: starting")
    conf, counters = context.conf, Counters()
    settings = GraphSettings.from_conf(conf)
    with output_folder(output) as folder, context.progress("nodedumper") as progress:
        progress.expect(graph.nodes.estimate)

        def nodes() -> Iterator[pl.DataFrame]:
            for frame in graph.nodes.in_order():
                counters.add(NODES, len(frame))
                progress.advance(len(frame))
                number = pl.col(_COLUMNS[options.number]).cast(pl.Float32)
                yield frame.select(name="key", number=number)

        ranking = _Ranking(
            options.topn,
            per_value=conf.get_boolean(PER_VALUE_PROPERTY),
            # NodeDumper sets one reducer, so that all lines are in one order.
            shuffle=partial(Shuffle, 1, budget=settings.memory, spill=folder),
        )
        rows = (
            ranking.pages(nodes())
            if options.group is None
            else ranking.groups(nodes(), *options.group)
        )
        output_file = (
            _sequence_file(folder, settings.compression)
            if options.as_sequence_file
            else _text_file(text_part(folder, 0, text_codec(conf)), "=" if options.as_eff else "\t")
        )
        with output_file as write:
            for kept, read in rows:
                write(kept)
                counters.add(WRITTEN, len(kept))
                counters.add(LEFT_OUT, read - len(kept))
        mark_success(conf, folder)
    log.info("NodeDumper: finished")
    return counters


Rows = Iterator[tuple[pl.DataFrame, int]]
"""Tables of names and numbers that are written, each with the number of rows it was chosen from."""


@dataclass(frozen=True, slots=True)
class _Ranking:
    """The selection of the first `topn` pages or groups, or that number for each value."""

    topn: int
    per_value: bool
    shuffle: Callable[[pl.Schema], Shuffle]

    def pages(self, nodes: Iterator[pl.DataFrame]) -> Rows:
        """Selects the names with the highest numbers, highest first."""
        with self.shuffle(_RANKED) as shuffle:
            for frame in nodes:
                shuffle.add(frame.select(_descending(frame["number"]), "name", "number"))
            left = self.topn
            for frame in shuffle.sorted(0):
                if self.per_value:
                    kept = frame.filter(pl.int_range(pl.len()).over("key") < self.topn)
                else:
                    kept = frame.head(left)
                    left -= len(kept)
                yield kept.select("name", "number"), len(frame)

    def groups(
        self,
        nodes: Iterator[pl.DataFrame],
        kind: Literal["host", "domain"],
        combine: Literal["sum", "max"],
    ) -> Rows:
        """Selects all groups in the order of their names, or those with the highest numbers."""
        groups = self._combined(nodes, kind, combine)
        # Nutch sorts no groups by their numbers.
        if self.per_value or self.topn == ALL:
            for frame in groups:
                yield frame, len(frame)
        else:
            yield from self.pages(groups)

    def _combined(
        self, nodes: Iterator[pl.DataFrame], kind: str, combine: str
    ) -> Iterator[pl.DataFrame]:
        """Combines the numbers of each host or domain."""
        number = pl.col("number")
        # Nutch's maximum begins with 0.
        number = number.sum() if combine == "sum" else number.max().clip(lower_bound=0)
        with self.shuffle(_GROUPED) as shuffle:
            for frame in nodes:
                # Pages that are no URLs are a group, too.
                hosts = host_names(decode_keys(frame["name"])).fill_null("")
                names = encode_keys(hosts if kind == "host" else domains_of(hosts))
                values = pl.DataFrame({"key": names, "number": frame["number"].cast(pl.Float64)})
                if not self.per_value:
                    # Of each table one row a group; not where the first N pages of a group count.
                    values = values.group_by("key", maintain_order=True).agg(number)
                shuffle.add(values)
            for frame in shuffle.sorted(0):
                values = frame
                if self.per_value:
                    values = frame.filter(pl.int_range(pl.len()).over("key") < self.topn)
                groups = values.group_by("key", maintain_order=True).agg(number)
                yield groups.select(name="key", number=pl.col("number").cast(pl.Float32))


def _descending(numbers: pl.Series) -> pl.Series:
    """Encodes each number in four bytes that sort in descending order of the numbers."""
    bits = (numbers.to_numpy() + np.float32(0)).view(np.int32)  # no negative zero
    # IEEE 754: with the sign turned, and for negative numbers all bits, floats sort as bytes do.
    ascending = bits ^ ((bits >> 31) | np.int32(-(1 << 31)))
    views = np.zeros((len(numbers), 4), np.int32)
    # An Arrow view of a string of four bytes: its length, then the bytes.
    views[:, 0] = 4
    views[:, 1] = (~ascending).byteswap()
    return to_series("key", views, [])


@contextmanager
def _sequence_file(
    folder: Path, compression: Compression
) -> Iterator[Callable[[pl.DataFrame], object]]:
    """Opens the part file of a dump as a SequenceFile; yields a function that writes rows."""
    path, name = folder / part_name(0), FloatWritable.class_name
    with TableWriter(path, name, _records, mapfile=False, **compression.options) as table:
        yield table.write


@contextmanager
def _text_file(
    part: ChecksumWriter | CompressedWriter, separator: str
) -> Iterator[Callable[[pl.DataFrame], object]]:
    """Closes the part file `part` at the end; yields a function that writes rows as text."""
    with part as text:
        yield lambda rows: text.write(_text(rows, separator))


def _text(rows: pl.DataFrame, separator: str) -> bytes:
    texts = pl.DataFrame([decode_keys(rows["name"]), float_texts(rows["number"]).alias("number")])
    return "".join(
        texts.select(pl.format("{}" + separator + "{}\n", "name", "number")).to_series()
    ).encode()


def _records(rows: pl.DataFrame) -> Iterator[Places]:
    views = np.zeros((len(rows), 4), np.int32)
    views[:, 0] = 4
    views[:, 1] = rows["number"].to_numpy().view(np.int32).byteswap()
    yield places_of(rows["name"], to_series("value", views, []))


def linkdumper(webgraphdb: Path, *, context: JobContext) -> Counters:
    """Writes the dump of the graph at `webgraphdb`. StoreError, LockedError, FormatError."""
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
            with TableWriter(path, LinkNodes.class_name, _link_records, **options) as writer:
                for frame in shuffle.sorted(part):
                    for links in pieces(frame, _ROWS_AT_A_TIME):
                        kept = links.filter(pl.int_range(pl.len()).over("key") < _MOST_LINKS)
                        writer.write(kept)
                        counted.add(PAGES, kept["key"].n_unique())  # no page lies in two pieces
                        counted.add(LINKS_WRITTEN, len(kept))
                        counted.add(LINKS_LEFT_OUT, len(links) - len(kept))
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
        views = np.zeros((len(size), 4), np.int32)
        views[:, 0] = 2
        # DataOutput.writeUTF: the length in two bytes, highest first.
        views[:, 1] = size.to_numpy().astype(np.uint16).byteswap()
        pieces = to_series("length", views, []) + urls + node_values(nodes)
        # LinkNode.write would fail: UTFDataFormatException.
        pieces = pieces.set(size > _LONGEST, None)
        inverted = pl.DataFrame([links["url"].alias("key"), pieces.gather(rows).alias("node")])
        kept = inverted.drop_nulls("node")
        counters.add(TOO_LONG, len(inverted) - len(kept))
        progress.advance(len(links))
        yield kept


def _java_utf(urls: pl.Series) -> pl.Series:
    """Encodes URLs in Java's modified UTF-8: zero bytes and characters of four bytes differ."""
    others = (
        # F0 to F4 begin characters of four bytes: two surrogates of three bytes in Java.
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


def _link_records(links: pl.DataFrame) -> Iterator[Places]:
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
