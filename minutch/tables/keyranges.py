"""Sorted MapFiles cut into ranges of keys, so that each range of many files can be read and joined by itself.

A job over several databases and segments whose parts are sorted by key, but partitioned in different ways, takes them
range by range: every record of a key, from whichever file, is in the range of the key. Where a range lies in a file is
looked up in the MapFile's index, which has a key for each 128 records.

    entry of the index    key, position: the records from there on have this key or later ones; in a file that is
                          compressed by blocks, the block there may also begin with earlier ones
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np
import polars as pl

from minutch.errors import FormatError
from minutch.formats.javaio import DataInput
from minutch.formats.mapfile import INDEX, MapFileReader
from minutch.formats.sequencefile import BLOCK
from minutch.formats.writables import LongWritable
from minutch.records.batch import Batch, keys_of
from minutch.tables.spans import Span, SpannedFile, data_file

_LONG: Final = 8


class KeyRange(NamedTuple):
    """Keys from `low` (None: the first) to before `high` (None: the last one included)."""

    low: bytes | None = None
    high: bytes | None = None

    def mask(self, keys: pl.Series) -> pl.Series:
        """Which of `keys` (Binary) are in the range."""
        key, inside = pl.col("key"), pl.lit(True)
        if self.low is not None:
            inside = key >= pl.lit(self.low, pl.Binary)
        if self.high is not None:
            inside = inside & (key < pl.lit(self.high, pl.Binary))
        return keys.to_frame("key").select(key.is_not_null() & inside).to_series()

    def part_of(self, batch: Batch) -> Batch:
        """The records of a batch, sorted by key, that are in the range."""
        keys = _Keys(batch)
        start = 0 if self.low is None else bisect_left(keys, self.low)
        end = batch.size if self.high is None else bisect_left(keys, self.high, start)
        return batch.between(start, end)


class _Keys(Sequence[bytes]):
    """The keys of a batch, made when they are looked at."""

    def __init__(self, batch: Batch) -> None:
        self._batch = batch

    def __len__(self) -> int:
        return self._batch.size

    def __getitem__(self, index: Any) -> Any:
        return self._batch.key(index)


class SortedPart:
    """A MapFile of <Text, `value_class`>. Raises FormatError where it is none."""

    def __init__(self, path: Path, value_class: str) -> None:
        self.path = path
        self._file = SpannedFile(data_file(path))
        self._file.require(value_class)
        self._keys, self._positions = _index_of(path)

    def batch(self, keys: KeyRange, only: pl.Series | None = None) -> Batch:
        """The records of a range; of those, with `only`, the records of these keys."""

        def wanted(found: pl.Series) -> pl.Series:
            inside = keys.mask(found)
            return inside if only is None else inside & found.is_in(only.implode())

        return self._file.batch_between(self._span(keys), wanted)

    def sizes(self) -> Iterator[tuple[bytes, int]]:
        """The keys of the index, and how many bytes of the file lie from each to the next."""
        ends = [*self._positions[1:], self._file.size]
        for key, start, end in zip(self._keys, self._positions, ends, strict=False):  # one end without any record
            yield key, end - start

    def _span(self, keys: KeyRange) -> Span:
        start, end = self._file.start, self._file.size
        if keys.low is not None:
            before = bisect_left(self._keys, keys.low) - 1
            start = self._positions[before] if before >= 0 else start
        if keys.high is not None:
            after = bisect_left(self._keys, keys.high) + (self._file.compression == BLOCK)
            end = self._positions[after] if after < len(self._positions) else end
        return Span(start, max(start, end))


def _index_of(path: Path) -> tuple[list[bytes], list[int]]:
    """The keys and positions of a MapFile's index. Raises FormatError."""
    if not (path / INDEX).is_file():
        with MapFileReader(path) as reader:
            entries = reader.index_entries()
        return [DataInput(key).read_text_bytes() for key, _ in entries], [position for _, position in entries]
    file = SpannedFile(path / INDEX)
    file.require(LongWritable.class_name)
    keys: list[bytes] = []
    positions: list[int] = []
    for span in file.spans():
        for batch in file.batches(span):
            if not batch.size:
                continue
            keys += keys_of(batch).to_list()
            if (batch.value_len != _LONG).any():
                raise FormatError("an index whose values are no longs", path=path / INDEX)
            bytes_of = np.lib.stride_tricks.sliding_window_view(batch.values, _LONG)[batch.value_at]
            positions += np.ascontiguousarray(bytes_of).view(">i8").reshape(-1).tolist()
    for earlier, later in pairwise(keys):
        if later < earlier:
            raise FormatError("index out of order", path=path, expected=f"a key after {earlier!r}", found=later)
    return keys, positions


def cut(parts: Iterable[SortedPart], size: int) -> list[KeyRange]:
    """Ranges of about `size` bytes over all parts, in order; at least one."""
    found = [entry for part in parts for entry in part.sizes()]
    found.sort()
    total = np.cumsum([0, *(length for _, length in found)])
    bounds: list[bytes] = []
    goal = size
    for (key, _), before in zip(found, total, strict=False):
        if before >= goal and (not bounds or key > bounds[-1]):
            bounds.append(key)
            goal = int(before) + size
    return [KeyRange(low, high) for low, high in zip([None, *bounds], [*bounds, None], strict=True)]
