"""Segments read range by range: the folders that a table needs, each range of keys from all of them at the same time.

The parts of a folder are sorted by URL, but each folder may be cut into parts in its own way.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator
from typing import Final, NamedTuple

import numpy as np
import polars as pl

from minutch.errors import FormatError
from minutch.records.batch import Batch, string_column
from minutch.segment.store import LAYOUTS, Segment
from minutch.tables.keyranges import KeyRange, SortedPart, cut
from minutch.tables.parallel import ordered

RANGE_SIZE: Final = 1 << 23
"""Bytes of a segment's folders that are read at a time; compressed ones, as a rule."""


class Stretch(NamedTuple):
    """A range of the URLs of a segment, in those of its folders that are there."""

    segment: Segment
    parts: dict[str, list[SortedPart]]
    keys: KeyRange

    def read(self, folder: str, decode: Callable[[Batch], pl.DataFrame]) -> pl.DataFrame | None:
        """What `decode` makes of each part of a folder, with `key` (Binary), sorted by it; None without such a folder.

        `nth` numbers the rows of equal keys, from 0. Raises FormatError.
        """
        if folder not in self.parts:
            return None
        tables = [self._read(part, decode) for part in self.parts[folder]]
        table = pl.concat(tables)
        if len(tables) > 1:
            table = table.sort("key", maintain_order=True)
        return table.with_columns(nth=occurrences(table["key"]))

    def _read(self, part: SortedPart, decode: Callable[[Batch], pl.DataFrame]) -> pl.DataFrame:
        batch = part.batch(self.keys)
        mine = batch.filter(self.keys.mask(string_column("key", batch.keys, batch.key_at, batch.key_len)).to_numpy())
        try:
            frame = decode(mine)
        except FormatError as exc:
            raise exc.within(part.path) from exc
        return frame.with_columns(string_column("key", mine.keys, mine.key_at, mine.key_len))


def occurrences(keys: pl.Series) -> pl.Series:
    """For each of sorted `keys` how many equal ones stand before it."""
    count = len(keys)
    first = np.ones(count, np.bool_)
    if count > 1:
        first[1:] = (keys[1:] != keys[:-1]).to_numpy()
    starts = np.flatnonzero(first)
    return pl.Series("nth", (np.arange(count) - np.repeat(starts, np.diff([*starts, count]))).astype(np.uint32))


def stretches(segments: Iterable[Segment], folders: Collection[str], size: int = RANGE_SIZE) -> Iterator[Stretch]:
    """The segments, in order, cut into ranges by the sizes of those of `folders` that they have."""
    for segment in segments:
        parts = {
            folder: [SortedPart(path, LAYOUTS[folder].value_class) for path in segment.parts(folder)]
            for folder in folders
            if segment.has(folder)
        }
        for keys in cut([part for found in parts.values() for part in found], size):
            yield Stretch(segment, {folder: found for folder, found in parts.items() if found}, keys)


def each(read: Callable[[Stretch], pl.DataFrame | None], pieces: Iterable[Stretch]) -> Iterator[pl.DataFrame]:
    """What `read` makes of each stretch, in order; several are read side by side."""
    return (frame for frame in ordered(read, pieces) if frame is not None)
