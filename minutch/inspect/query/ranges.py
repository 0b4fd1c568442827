"""Reads segments range by range: each range of keys from all folders that a table needs.

The parts of a folder are sorted by URL, but each folder may be cut into parts in its own way.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple

import numpy as np
import polars as pl

from minutch.cycle.segment.store import LAYOUTS, Segment
from minutch.hadoop.formats.batch import keys_of
from minutch.inspect.query.predicates import Pruning, intersection, union
from minutch.inspect.query.skipping import RANGE_SIZE, read_range, wanted_ranges
from minutch.work.tables.keyranges import KeyRange, SortedPart, cut
from minutch.work.tables.parallel import ordered
from minutch.work.tables.spans import Decode


class Stretch(NamedTuple):
    """A range of the URLs of a segment, in those of its folders that exist."""

    segment: Segment
    parts: dict[str, list[SortedPart]]
    keys: KeyRange

    def read(
        self, folder: str, decode: Decode, streams: Decode | None = None
    ) -> pl.DataFrame | None:
        """Reads the range from a folder: what `decode` makes of each part, with `key` (Binary),
        sorted by it; None if there is no such folder.

        Values that were left as zlib streams go to `streams`. `nth` numbers the rows of equal keys,
        from 0. Raises FormatError.
        """
        if folder not in self.parts:
            return None
        tables = [
            self._read(part, streams if streams and part.is_stored else decode)
            for part in self.parts[folder]
        ]
        table = pl.concat(tables)
        if len(tables) > 1:
            table = table.sort("key", maintain_order=True)
        return table.with_columns(nth=occurrences(table["key"]))

    def _read(self, part: SortedPart, decode: Decode) -> pl.DataFrame:
        return read_range(part, self.keys, lambda batch: decode(batch).with_columns(keys_of(batch)))


def occurrences(keys: pl.Series) -> pl.Series:
    """Returns for each of sorted `keys` the number of equal ones before it."""
    count = len(keys)
    first = np.ones(count, np.bool_)
    if count > 1:
        first[1:] = (keys[1:] != keys[:-1]).to_numpy()
    starts = np.flatnonzero(first)
    return pl.Series(
        "nth", (np.arange(count) - np.repeat(starts, np.diff([*starts, count]))).astype(np.uint32)
    )


def stretches(
    segments: Iterable[Segment],
    folders: Sequence[str],
    pruning: Pruning,
    *,
    stored: str | None = None,
) -> Iterator[Stretch]:
    """Yields the segments, in order, cut into ranges by the sizes of those of `folders` that they
    have.

    Ranges in which the first of the folders has no wanted rows are left out. The values of one
    folder are left as they are `stored`.
    """
    for segment in segments:
        parts = {
            folder: [
                SortedPart(path, LAYOUTS[folder].value_class, stored=folder == stored)
                for path in segment.parts(folder)
            ]
            for folder in folders
            if segment.has(folder)
        }
        ranges: Sequence[KeyRange] = cut(
            [part for found in parts.values() for part in found], RANGE_SIZE
        )
        if not pruning.keeps_everything:
            wanted = [keys for part in parts[folders[0]] for keys in wanted_ranges(part, pruning)]
            ranges = intersection(tuple(ranges), union(wanted))
        for keys in ranges:
            yield Stretch(
                segment, {folder: found for folder, found in parts.items() if found}, keys
            )


def each(
    read: Callable[[Stretch], pl.DataFrame | None], pieces: Iterable[Stretch]
) -> Iterator[pl.DataFrame]:
    """Yields the result of `read` for each stretch, in order; several are read side by side."""
    return (frame for frame in ordered(read, pieces, leave=True) if frame is not None)
