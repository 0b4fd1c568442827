"""Equal keys in Hadoop's order, where it decides between equals: which of two seeds, fetches or duplicates counts.

Each input file is a map task; what it emits is sorted by a quicksort that leaves equal keys in no natural order, and a
reduce task merges the outputs by a heap. For inputs of up to `FOLLOWED` records that order is followed, so that ties
come out as Nutch leaves them; in larger ones, records keep the order of their files.
Matched: Hadoop's local job runner, by `tables.hadooporder`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Final

import numpy as np
import polars as pl

from minutch.tables.frame import CRAWLDB_SCHEMA
from minutch.tables.hadooporder import Ints, map_order, merge_order
from minutch.tables.shuffle import Shuffle, partition_of

FOLLOWED: Final = 40_000
_DATUM_SIZE: Final = 29  # a CrawlDatum's bytes without signature and metadata
_ONE_BYTE_VINT: Final = 127


def text_sizes(keys: pl.Series) -> Ints:
    """The bytes of each key as a serialized Text."""
    sizes = keys.bin.size().cast(pl.Int64).to_numpy()
    return sizes + _vint_sizes(sizes)


def datum_sizes(frame: pl.DataFrame) -> Ints:
    """The bytes of each row as a serialized CrawlDatum, packed or not."""
    if "value" in frame.columns:
        return frame["value"].bin.size().cast(pl.Int64).to_numpy()
    extra = pl.col("signature").bin.size().fill_null(0) + pl.col("metadata").bin.size().fill_null(0)
    return frame.select(extra.cast(pl.Int64) + _DATUM_SIZE).to_series().to_numpy()


def output_size(keys: Ints, values: Ints) -> int:
    """The bytes of a map task's output of records with these sizes of keys and values."""
    return int((keys + values + _vint_sizes(keys) + _vint_sizes(values)).sum())


def _vint_sizes(values: Ints) -> Ints:
    sizes = np.ones(len(values), np.int64)
    for bits in (0, 8, 16, 24):
        sizes += values > (_ONE_BYTE_VINT if bits == 0 else (1 << bits) - 1)
    return sizes


def job_order(
    keys: Sequence[pl.Series], values: Sequence[Ints], key_sizes: Sequence[Ints], parts: int
) -> Iterator[Ints]:
    """The order in which each of `parts` reduce tasks reads its records, as rows of (task, record).

    `keys` are the keys that each map task emits, in order (Binary, compared as bytes and partitioned as Text and
    BytesWritable are); `values` and `key_sizes` the bytes of its serialized values and keys. Tasks come in the order
    in which Hadoop starts them: the largest input file first.
    """
    numbers = np.split(_numbers(pl.concat(list(keys))), np.cumsum([len(k) for k in keys])[:-1])
    homes = [partition_of(k, parts).to_numpy().astype(np.int64) for k in keys]
    orders = [map_order(n, h) for n, h in zip(numbers, homes, strict=True)]
    for part in range(parts):
        shares = [order[home[order] == part] for order, home in zip(orders, homes, strict=True)]
        sizes = [output_size(k[s], v[s]) for k, v, s in zip(key_sizes, values, shares, strict=True)]
        merged = merge_order([n[s] for n, s in zip(numbers, shares, strict=True)], sizes)
        for task, share in enumerate(shares):
            mine = merged[:, 0] == task
            merged[mine, 1] = share[merged[mine, 1]]
        yield merged


def _numbers(keys: pl.Series) -> Ints:
    """A number for each distinct key, ascending with the keys."""
    order = keys.arg_sort().to_numpy()
    ordered = keys.gather(order)
    numbers = np.empty(len(keys), np.int64)
    numbers[order] = np.cumsum(ordered.ne_missing(ordered.shift()).to_numpy())
    return numbers


class Source:
    """One input file's records, past the job's filters."""

    def __init__(self, size: int) -> None:
        self.size = size  # bytes of the file
        self.frames: list[pl.DataFrame] = []

    @property
    def frame(self) -> pl.DataFrame:
        """All its records."""
        return pl.concat(self.frames) if self.frames else pl.DataFrame(schema=CRAWLDB_SCHEMA)


class Gathering:
    """Records of several files on their way into a shuffle; held back while they are few enough to follow Hadoop."""

    def __init__(self, shuffle: Shuffle) -> None:
        self._shuffle = shuffle
        self._sources: list[Source] = []
        self._held = 0
        self._holding = True

    def begin(self, size: int) -> None:
        """What is added from now on is of another file, of `size` bytes."""
        self._sources.append(Source(size))

    def add(self, frame: pl.DataFrame) -> None:
        """Take in records of the file begun last."""
        if not self._holding:
            self._shuffle.add(frame)
            return
        self._sources[-1].frames.append(frame)
        self._held += len(frame)
        if self._held > FOLLOWED:
            self._release()

    def _release(self) -> None:
        self._holding = False
        for source in self._sources:
            for frame in source.frames:
                self._shuffle.add(frame)
        self._sources = []

    def finish(self, matters: Callable[[pl.DataFrame], bool], others: Callable[[], list[Source]], parts: int) -> None:
        """Hand all records on: in Hadoop's order if it `matters` for them, else as they came.

        `others` are the files of the CrawlDb, which the job reads, too.
        """
        known = self._holding and self._sources
        if not known or not matters(pl.concat([source.frame for source in self._sources])):
            self._release()
            return
        own = len(self._sources)
        sources = [*others(), *self._sources]
        if sum(len(source.frame) for source in sources) > FOLLOWED:
            self._release()
            return
        first = len(sources) - own
        order = sorted(range(len(sources)), key=lambda i: -sources[i].size)
        frames = [sources[i].frame for i in order]
        keys = [frame["key"] for frame in frames]
        for rows in job_order(keys, [datum_sizes(f) for f in frames], [text_sizes(k) for k in keys], parts):
            mine = np.isin(rows[:, 0], [at for at, i in enumerate(order) if i >= first])
            self._shuffle.add(take(frames, rows[mine]))


def take(frames: Sequence[pl.DataFrame], rows: Ints) -> pl.DataFrame:
    """The records that `rows` of (table, row) name, in their order."""
    starts = np.cumsum([0, *map(len, frames)])
    return pl.concat(frames)[starts[rows[:, 0]] + rows[:, 1]]
