"""Cuts sorted MapFiles into ranges of keys, so that each range of many files can be read and joined
by itself.

A job over several databases and segments whose parts are sorted by key, but partitioned in
different ways, takes them range by range: every record of a key, from whichever file, is in the
range of the key. Where a range lies in a file is looked up in the MapFile's index, which has a key
for each 128 records.

    entry of the index    key, position: the records from there on have this key or later ones; in a
                          file that is compressed by blocks, the block there may also begin with
                          earlier ones
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt
import polars as pl

from minutch.errors import FormatError
from minutch.hadoop.formats.batch import Batch, Offsets, keys_of
from minutch.hadoop.formats.javaio import DataInput
from minutch.hadoop.formats.mapfile import INDEX, MapFileReader
from minutch.hadoop.formats.sequencewriter import BLOCK
from minutch.hadoop.formats.writables import LongWritable
from minutch.kernels import sequencefile
from minutch.kernels.clibrary import memmem
from minutch.work.tables.frame import first_out_of_order
from minutch.work.tables.spannedfile import Span, SpannedFile
from minutch.work.tables.spans import opened

Mask = npt.NDArray[np.bool_]

_LONG: Final = 8


class KeyRange(NamedTuple):
    """Keys from `low` (None: the first) to before `high` (None: the last one included)."""

    low: bytes | None = None
    high: bytes | None = None

    def mask(self, keys: pl.Series) -> pl.Series:
        """Returns the mask of `keys` (Binary) in the range."""
        key, inside = pl.col("key"), pl.lit(True)
        if self.low is not None:
            inside = key >= pl.lit(self.low, pl.Binary)
        if self.high is not None:
            inside = inside & (key < pl.lit(self.high, pl.Binary))
        return keys.to_frame("key").select(key.is_not_null() & inside).to_series()

    def part_of(self, batch: Batch) -> Batch:
        """Returns the records of a batch, sorted by key, that are in the range."""
        if self == KeyRange():
            return batch
        # Bisected: of a range of thousands a dozen keys are made.
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
    """A MapFile of <Text, `value_class`>. Raises FormatError if the file is not one.

    With `stored`, values that the file has as zlib streams, and checksums for, are left so:
    `is_stored` says whether.
    """

    def __init__(self, path: Path, value_class: str, *, stored: bool = False) -> None:
        self.path = path
        self.file = opened(path, value_class)
        self.is_stored = self.file.stored = stored and self.file.has_streams

    @cached_property
    def _index(self) -> tuple[pl.Series, Offsets]:
        """Read where it is needed only: a small file is read as a whole."""
        return _index_of(self.path)

    @property
    def keys(self) -> pl.Series:
        """The keys of the index: the first of each of the file's blocks, mostly of 128 records."""
        return self._index[0]

    @cached_property
    def bounds(self) -> Offsets:
        """Offsets of the blocks in the file, and the end of the last one."""
        positions = self._index[1]
        return np.append(positions, self.file.size) if len(positions) else np.zeros(1, np.int64)

    def batch(self, keys: KeyRange, only: pl.Series | None = None) -> Batch:
        """Returns the records of a range; of those, with `only`, the records of these keys."""

        def wanted(found: pl.Series) -> pl.Series:
            inside = keys.mask(found)
            return inside if only is None else inside & found.is_in(only.implode())

        is_all = only is None and keys == KeyRange()
        return self.file.batch_between(self._span(keys), None if is_all else wanted)

    def sizes(self) -> Iterator[tuple[bytes, int]]:
        """Yields the keys of the index, and the bytes of the file from each to the next."""
        yield from zip(self.keys.to_list(), np.diff(self.bounds).tolist(), strict=True)

    def having(self, first: int, wanted: Mask, words: Sequence[bytes]) -> Mask:
        """Returns the wanted blocks, from number `first` on, that have one of `words`, whole and
        not compressed.

        All of them where keys are compressed, or something looks wrong.
        """
        bounds = self.bounds[first : first + len(wanted) + 1]
        stretch = (
            self.file.stretch(Span(int(bounds[0]), int(bounds[-1])))
            if self.file.compression != BLOCK
            else None
        )
        if stretch is None:
            return wanted
        found, ends = wanted.copy(), np.cumsum([len(word) for word in words], dtype=np.int64)
        needles = np.frombuffer(b"".join(words), np.uint8)
        is_good = sequencefile.blocks_having(
            stretch.place, bounds - bounds[0], needles, ends, memmem(), found
        )
        return found if is_good else wanted

    def _span(self, keys: KeyRange) -> Span:
        start, end = self.file.start, self.file.size
        if keys.low is not None:
            # Records of this key may begin in the block before the one that starts with it.
            before = self._first_from(keys.low) - 1
            start = int(self.bounds[before]) if before >= 0 else start
        if keys.high is not None:
            # A compressed block may also begin with earlier keys.
            after = self._first_from(keys.high) + (self.file.compression == BLOCK)
            end = int(self.bounds[after]) if after < len(self.keys) else end
        return Span(start, max(start, end))

    def _first_from(self, key: bytes) -> int:
        return int(self.keys.search_sorted(key, side="left"))


def _index_of(path: Path) -> tuple[pl.Series, Offsets]:
    """Returns the keys and positions of a MapFile's index. Raises FormatError."""
    if not (path / INDEX).is_file():
        with MapFileReader(path) as reader:
            entries = reader.index_entries()
        texts = [DataInput(key).read_text_bytes() for key, _ in entries]
        return pl.Series("key", texts, dtype=pl.Binary), np.array(
            [position for _, position in entries], np.int64
        )
    file = SpannedFile(path / INDEX)
    file.require(LongWritable.class_name)
    keys: list[pl.Series] = [pl.Series("key", [], dtype=pl.Binary)]
    positions: list[Offsets] = [np.empty(0, np.int64)]
    for span in file.spans():
        for batch in file.batches(span):
            if not batch.size:
                continue
            keys.append(keys_of(batch))
            if (batch.value_len != _LONG).any():
                raise FormatError("an index whose values are no longs", path=path / INDEX)
            # All values at once, as big-endian longs.
            bytes_of = np.lib.stride_tricks.sliding_window_view(batch.values, _LONG)[batch.value_at]
            positions.append(
                np.ascontiguousarray(bytes_of).view(">i8").reshape(-1).astype(np.int64)
            )
    every = pl.concat(keys).rechunk()
    wrong = first_out_of_order(every)
    if wrong >= 0:
        raise FormatError(
            "index out of order",
            path=path,
            expected=f"a key after {every[wrong - 1]!r}",
            found=every[wrong],
        )
    return every, np.concatenate(positions)


def cut(parts: Sequence[SortedPart], size: int) -> list[KeyRange]:
    """Returns ranges of about `size` bytes over all parts, in order; at least one."""
    if sum(part.file.size for part in parts) <= size:
        return [KeyRange()]
    found = [entry for part in parts for entry in part.sizes()]
    # By key, over all parts: the bounds are of the whole.
    found.sort()
    total = np.cumsum([0, *(length for _, length in found)])
    bounds: list[bytes] = []
    goal = size
    for (key, _), before in zip(found, total, strict=False):
        if before >= goal and (not bounds or key > bounds[-1]):  # no range is empty
            bounds.append(key)
            goal = int(before) + size
    return [KeyRange(low, high) for low, high in zip([None, *bounds], [*bounds, None], strict=True)]
