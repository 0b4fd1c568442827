"""Reads segments range by range: each range of keys from all folders that a table needs.

The parts of a folder are sorted by URL, but each folder may be cut into parts in its own way.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple

import numpy as np
import polars as pl

from minutch.cycle.segment.store import LAYOUTS, Segment
from minutch.errors import FormatError
from minutch.hadoop.formats.batch import Batch, keys_of
from minutch.inspect.query.predicates import Pruning, Ranges, intersection, union
from minutch.inspect.query.skipping import RANGE_SIZE, read_range, wanted_ranges
from minutch.work.tables.keyranges import KeyRange, SortedPart, cut
from minutch.work.tables.parallel import ordered
from minutch.work.tables.spans import Decode


class Piece(NamedTuple):
    """A range of the URLs of a segment, in those of its folders that exist."""

    segment: Segment
    parts: dict[str, list[SortedPart]]
    keys: KeyRange


class Stretch(NamedTuple):
    """What is read at a time: a range of a segment, or several small segments. What tables cost
    by the frame, 14 ms for one of `pages`, small ones have together.
    """

    pieces: Sequence[Piece]

    @property
    def names(self) -> pl.Series:
        """The names of the segments, by the numbers in the column `of`."""
        return pl.Series([piece.segment.name for piece in self.pieces], dtype=pl.String)

    def read(
        self, folder: str, decode: Decode, streams: Decode | None = None
    ) -> pl.DataFrame | None:
        """Reads the range from a folder: what `decode` makes of each part, with the number of the
        piece, `of`, and `key` (Binary), sorted by them; None if there is no such folder.

        Values that were left as zlib streams go to `streams`. `nth` numbers the rows of equal keys
        of a piece, from 0. Raises FormatError.
        """
        parts = [
            (number, piece.keys, part)
            for number, piece in enumerate(self.pieces)
            for part in piece.parts.get(folder, ())
        ]
        if not parts:
            return None
        tables = []
        for stored in (False, True):
            mine = [one for one in parts if one[2].is_stored == stored]
            if mine:
                tables.append(_read(mine, streams if streams and stored else decode))
        table = pl.concat(tables)
        if len(parts) > len(self.pieces) or len(tables) > 1:
            table = table.sort("of", "key", maintain_order=True)
        return table.with_columns(nth=occurrences(table["key"], table["of"]))


def _read(parts: Sequence[tuple[int, KeyRange, SortedPart]], decode: Decode) -> pl.DataFrame:
    """Returns what `decode` makes of the records of parts together."""

    def known(batch: Batch) -> pl.DataFrame:
        return decode(batch).with_columns(keys_of(batch))

    if len(parts) == 1:
        number, keys, part = parts[0]
        found = read_range(part, keys, known)
        return found.with_columns(of=pl.lit(number, pl.UInt32))
    batches = [keys.part_of(part.batch(keys)) for _, keys, part in parts]
    try:
        table = known(Batch.joined(batches))
    except FormatError:
        for _, keys, part in parts:  # says which of them it is
            read_range(part, keys, known)
        raise
    numbers = np.repeat([number for number, _, _ in parts], [batch.size for batch in batches])
    return table.with_columns(of=pl.Series(numbers.astype(np.uint32)))


def occurrences(keys: pl.Series, of: pl.Series) -> pl.Series:
    """Returns for each of `keys`, sorted in each piece, the number of equal ones before it."""
    count = len(keys)
    first = np.ones(count, np.bool_)
    if count > 1:
        first[1:] = ((keys[1:] != keys[:-1]) | (of[1:] != of[:-1])).to_numpy()
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
    have; small ones together.

    Ranges in which the first of the folders has no wanted rows are left out. The values of one
    folder are left as they are `stored`.
    """
    waiting: list[Piece] = []
    room = RANGE_SIZE
    for segment in segments:
        first = _parts(segment, folders[0], stored)
        wanted: Ranges | None = None
        if not pruning.keeps_everything:
            wanted = union([keys for part in first for keys in wanted_ranges(part, pruning)])
            if not wanted:
                continue
        parts = {folders[0]: first} | {
            folder: _parts(segment, folder, stored) for folder in folders[1:] if segment.has(folder)
        }
        every = [part for found in parts.values() for part in found]
        ranges: Sequence[KeyRange] = cut(every, RANGE_SIZE)
        if wanted is not None:
            ranges = intersection(tuple(ranges), wanted)
        there = {folder: found for folder, found in parts.items() if found}
        size = sum(part.file.size for part in every)
        if waiting and (size > room or there.keys() != waiting[-1].parts.keys()):
            yield Stretch(waiting)
            waiting, room = [], RANGE_SIZE
        pieces = [Piece(segment, there, keys) for keys in ranges]
        if len(pieces) == 1 and size <= room:
            waiting.append(pieces[0])
            room -= size
        else:
            yield from (Stretch([piece]) for piece in pieces)
    if waiting:
        yield Stretch(waiting)


def _parts(segment: Segment, folder: str, stored: str | None) -> list[SortedPart]:
    value_class = LAYOUTS[folder].value_class
    return [
        SortedPart(path, value_class, stored=folder == stored) for path in segment.parts(folder)
    ]


def each(
    read: Callable[[Stretch], pl.DataFrame | None], pieces: Iterable[Stretch]
) -> Iterator[pl.DataFrame]:
    """Yields the result of `read` for each stretch, in order; several are read side by side."""
    return (frame for frame in ordered(read, pieces, leave=True) if frame is not None)
