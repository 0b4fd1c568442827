"""The nodedumper job: dumps pages, hosts or domains of a webgraph by inlinks, outlinks or score.

    <url, host or domain> TAB <number> LF       with -asEff an equals sign instead of the tab

Pages are sorted by number, highest first, then by URL; groups by name, each with the sum or the
maximum of its pages' numbers. -topn N keeps the first N pages, or the N groups with the highest
numbers, highest first. Nutch keeps N pages for each number, and N in each group:
nodedumper.topn.per.value=true.

Source: org.apache.nutch.scoring.webgraph.NodeDumper.
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

from minutch.cycle.webgraph.settings import GraphSettings
from minutch.cycle.webgraph.store import WebGraph
from minutch.hadoop.formats.batch import Places
from minutch.hadoop.formats.checksum import ChecksumWriter
from minutch.hadoop.formats.compress import CompressedWriter
from minutch.hadoop.formats.writables import FloatWritable
from minutch.job import Counters, JobContext
from minutch.kernels.arrow import to_series
from minutch.records.webgraph import places_of
from minutch.urls.hostcolumns import domains_of, host_names
from minutch.work.tables.compression import Compression, text_codec
from minutch.work.tables.database import part_name
from minutch.work.tables.frame import decode_keys, encode_keys
from minutch.work.tables.install import mark_success
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


_COLUMNS: Final = {
    "inlinks": "num_inlinks",
    "outlinks": "num_outlinks",
    "scores": "inlink_score",
}


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
        number = number.sum() if combine == "sum" else number.max().clip(lower_bound=0)
        with self.shuffle(_GROUPED) as shuffle:
            for frame in nodes:
                hosts = host_names(decode_keys(frame["name"])).fill_null("")
                names = encode_keys(hosts if kind == "host" else domains_of(hosts))
                values = pl.DataFrame({"key": names, "number": frame["number"].cast(pl.Float64)})
                if not self.per_value:
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
    ascending = bits ^ ((bits >> 31) | np.int32(-(1 << 31)))
    views = np.zeros((len(numbers), 4), np.int32)
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
