"""nodedumper: the pages, hosts or domains of a webgraph by inlinks, outlinks or score, as text.

    <url, host or domain> TAB <number> LF       with -asEff an equals sign for the tab

Pages come with the highest number first, equals in the order of their URLs; groups in the order of
their names, with the sum or the greatest of their pages' numbers. -topn N leaves the first N pages,
or the N groups with the highest numbers, these first. Nutch counts to N anew for each number, and
within each group: nodedumper.topn.per.value=true.

Source: org.apache.nutch.scoring.webgraph.NodeDumper.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np
import polars as pl

from minutch.conf import Configuration
from minutch.cycle.webgraph.store import WebGraph
from minutch.hadoop.formats.batch import Places
from minutch.hadoop.formats.writables import FloatWritable
from minutch.job import Counters, JobContext
from minutch.kernels.arrow import to_series
from minutch.records.webgraph.columns import places_of
from minutch.urls.hostcolumns import domains_of, hosts_of
from minutch.work.tables.compression import output_compression, text_codec
from minutch.work.tables.database import part_name
from minutch.work.tables.frame import decode_keys, encode_keys
from minutch.work.tables.parallel import memory_budget
from minutch.work.tables.shuffle import Shuffle
from minutch.work.tables.success import mark_success
from minutch.work.tables.textparts import float_texts, output_folder, require_absent, text_part
from minutch.work.tables.writer import TableWriter

log = logging.getLogger(__name__)
PER_VALUE_PROPERTY: Final = "nodedumper.topn.per.value"
WRITTEN: Final = "lines written"
LEFT_OUT: Final = "lines beyond -topn"
NODES: Final = "nodes read"
ALL: Final = (1 << 63) - 1
_RANKED: Final = pl.Schema({"key": pl.Binary(), "name": pl.Binary(), "number": pl.Float32()})
"""`key` has bytes whose order is that of descending numbers."""
_GROUPED: Final = pl.Schema({"key": pl.Binary(), "number": pl.Float64()})


@dataclass(frozen=True)
class Wish:
    """What is dumped: a column of the nodes, the first `top`; of each group (host, domain) with sum
    or max.
    """

    column: str = "inlink_score"
    top: int = ALL
    group: tuple[str, str] | None = None
    separator: str = "\t"
    sequence_file: bool = False


def nodedumper(graph: WebGraph, out: Path, wish: Wish, context: JobContext) -> Counters:
    """Write the nodes of `graph` to the new directory `out`.

    Raises StoreError (no graph, `out` exists), FormatError (damage).
    """
    graph.nodes.require_parts()
    require_absent(out)
    log.info("NodeDumper: starting")
    conf, counters = context.conf, Counters()
    with output_folder(out) as folder, context.progress("nodedumper") as progress:
        progress.expect(graph.nodes.estimate)

        def nodes() -> Iterator[pl.DataFrame]:
            for frame in graph.nodes.in_order():
                counters.add(NODES, len(frame))
                progress.advance(len(frame))
                yield frame.select(
                    pl.col("key").alias("name"),
                    pl.col(wish.column).cast(pl.Float32).alias("number"),
                )

        lines = (
            _pages(nodes(), wish, conf, folder)
            if wish.group is None
            else _groups(nodes(), wish, conf, folder)
        )
        with _output(folder, wish, conf) as write:
            for kept, read in lines:
                write(kept)
                counters.add(WRITTEN, len(kept))
                counters.add(LEFT_OUT, read - len(kept))
        mark_success(conf, folder)
    log.info("NodeDumper: finished")
    return counters


Lines = Iterator[tuple[pl.DataFrame, int]]
"""Names and numbers to be written, and of how many they are what is left."""


def _pages(nodes: Iterator[pl.DataFrame], wish: Wish, conf: Configuration, folder: Path) -> Lines:
    """The names with the highest numbers, highest first."""
    per_value = conf.get_boolean(PER_VALUE_PROPERTY, False)
    with Shuffle(1, _RANKED, budget=memory_budget(conf) // 2, spill=folder) as shuffle:
        for frame in nodes:
            shuffle.add(frame.select(_descending(frame["number"]), "name", "number"))
        left = wish.top
        for frame in shuffle.sorted(0):
            if per_value:
                kept = frame.filter(pl.int_range(pl.len()).over("key") < wish.top)
            else:
                kept = frame.head(left)
                left -= len(kept)
            yield kept.select("name", "number"), len(frame)


def _groups(nodes: Iterator[pl.DataFrame], wish: Wish, conf: Configuration, folder: Path) -> Lines:
    """The hosts or domains in the order of their names, or those with the highest numbers."""
    assert wish.group is not None
    name, how = wish.group
    per_value = conf.get_boolean(PER_VALUE_PROPERTY, False)
    number = pl.col("number").sum() if how == "sum" else pl.col("number").max().clip(lower_bound=0)
    top = wish.top if per_value else ALL

    def sums() -> Iterator[pl.DataFrame]:
        with Shuffle(1, _GROUPED, budget=memory_budget(conf) // 2, spill=folder) as shuffle:
            for frame in nodes:
                hosts = hosts_of(decode_keys(frame["name"])).str.to_lowercase().fill_null("")
                names = encode_keys(hosts if name == "host" else domains_of(hosts))
                values = pl.DataFrame({"key": names, "number": frame["number"].cast(pl.Float64)})
                shuffle.add(
                    values if per_value else values.group_by("key", maintain_order=True).agg(number)
                )
            for frame in shuffle.sorted(0):
                best = pl.int_range(pl.len()).over("key") < top
                groups = (
                    (frame.filter(best) if per_value else frame)
                    .group_by("key", maintain_order=True)
                    .agg(number)
                )
                yield groups.select(name="key", number=pl.col("number").cast(pl.Float32))

    if per_value or wish.top == ALL:
        for groups in sums():
            yield groups, len(groups)
    else:
        yield from _pages(sums(), wish, conf, folder)


def _descending(numbers: pl.Series) -> pl.Series:
    """Four bytes for each number; their order is that of descending numbers."""
    bits = (numbers.to_numpy() + np.float32(0)).view(np.int32)  # no negative zero
    ascending = bits ^ ((bits >> 31) | np.int32(-(1 << 31)))
    views = np.zeros((len(numbers), 4), np.int32)
    views[:, 0] = 4
    views[:, 1] = (~ascending).byteswap()
    return to_series("key", views, [])


@contextmanager
def _output(
    folder: Path, wish: Wish, conf: Configuration
) -> Iterator[Callable[[pl.DataFrame], object]]:
    """A function that writes to the one part file of a dump."""
    if wish.sequence_file:
        path, compression = folder / part_name(0), output_compression(conf)
        with TableWriter(
            path, FloatWritable.class_name, _records, mapfile=False, **compression.options
        ) as table:
            yield table.write
    else:
        with text_part(folder, 0, text_codec(conf)) as text:
            yield lambda lines: text.write(_text(lines, wish.separator))


def _text(lines: pl.DataFrame, separator: str) -> bytes:
    texts = pl.DataFrame([decode_keys(lines["name"]), float_texts(lines["number"]).alias("number")])
    return "".join(
        texts.select(pl.format("{}" + separator + "{}\n", "name", "number")).to_series()
    ).encode()


def _records(lines: pl.DataFrame) -> Iterator[Places]:
    views = np.zeros((len(lines), 4), np.int32)
    views[:, 0] = 4
    views[:, 1] = lines["number"].to_numpy().view(np.int32).byteswap()
    yield places_of(lines["name"], to_series("value", views, []))
