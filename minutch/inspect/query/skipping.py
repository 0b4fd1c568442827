"""Reads MapFiles only where they may have rows that a query asks for.

A MapFile's index has a key for each 128 records; between two of its entries lies a block of records
whose keys are between theirs. A block is passed over if no wanted URL can be in it, or if its first
key and the next block's agree up to the end of the host, and the query does not want that host.
Where the query names hosts, blocks that are left are searched for their names. What is left then is
read.

Segments are read range by range, each range of keys from all folders that a table needs: the parts
of a folder are sorted by URL, but each folder may be cut into parts in its own way.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Final, NamedTuple

import numpy as np
import polars as pl

from minutch.cycle.segment.store import LAYOUTS, Segment
from minutch.errors import FormatError
from minutch.hadoop.formats.batch import Batch, keys_of
from minutch.hadoop.formats.sequencewriter import BLOCK
from minutch.inspect.query.predicates import Pruning, Ranges, intersection, union
from minutch.inspect.query.table import Request
from minutch.urls.hostcolumns import host_names
from minutch.work.tables.frame import decode_keys
from minutch.work.tables.keyranges import KeyRange, Mask, SortedPart, cut
from minutch.work.tables.parallel import ordered
from minutch.work.tables.spannedfile import Span
from minutch.work.tables.spans import Decode, ReadSpan, opened, read_all

RANGE_SIZE: Final = 1 << 22
"""Bytes of a file that are read at a time."""
_GAP: Final = 16
"""Blocks are read with those around them if they take less than this part of RANGE_SIZE."""
_SITE: Final = r"^[A-Za-z][A-Za-z0-9+.-]*://[^/?#]*[/?#]"
"""A URL up to the end of its host (and port)."""


def piecewise(
    paths: Sequence[Path], value_class: str, read: ReadSpan[pl.DataFrame], request: Request
) -> Iterator[pl.DataFrame]:
    """Yields the results of `read`, stretch by stretch, one file after the other, where a request
    may want rows.

    A file that is no MapFile is read as a whole. Several stretches are read side by side. Raises
    FormatError.
    """
    pruning = request.pruning
    # A SequenceFile has no index.
    if pruning.keeps_everything or not all(path.is_dir() for path in paths):
        files = (opened(path, value_class) for path in paths)
        return read_all(((file, span) for file in files for span in file.spans()), read)

    def read_window(part: SortedPart, first: int, wanted: Mask) -> Iterator[pl.DataFrame]:
        # A search for bytes is far cheaper than decoding the records.
        found = part.having(first, wanted, pruning.words) if pruning.words else wanted
        for start, end in _runs(part, first, found):
            yield from read(part.file, Span(int(part.bounds[start]), int(part.bounds[end + 1])))

    parts = (SortedPart(path, value_class) for path in paths)
    return read_all(
        ((part, *window) for part in parts for window in _windows(part, pruning)), read_window
    )


def read_range(part: SortedPart, keys: KeyRange, decode: Decode) -> pl.DataFrame:
    """Returns what `decode` makes of a part's records in a range of keys. Raises FormatError."""
    try:
        return decode(keys.part_of(part.batch(keys)))
    except FormatError as exc:
        raise exc.within(part.path) from exc


def wanted_ranges(part: SortedPart, pruning: Pruning) -> Iterator[KeyRange]:
    """Yields the ranges of keys in which a part may have rows, in order, each about RANGE_SIZE
    bytes of the file at most; small gaps between them are included.
    """
    for first, last in _runs(part, 0, _wanted(part, pruning)):
        yield KeyRange(part.keys[first], part.keys[last + 1] if last + 1 < len(part.keys) else None)


def _wanted(part: SortedPart, pruning: Pruning) -> Mask:
    """Returns the blocks of a part that may have rows."""
    wanted = _by_url(part.keys, pruning.urls)
    return wanted if pruning.hosts is None else wanted & _by_host(part.keys, pruning.hosts)


def _windows(part: SortedPart, pruning: Pruning) -> Iterator[tuple[int, Mask]]:
    """Yields stretches of RANGE_SIZE bytes with wanted blocks: the first block's number, a mask."""
    wanted = _wanted(part, pruning)
    if part.file.compression == BLOCK:
        wanted[1:] |= wanted[
            :-1
        ]  # the block after the last one that is wanted may begin with keys that are
    first = 0
    while first < len(wanted):
        last = int(np.searchsorted(part.bounds, part.bounds[first] + RANGE_SIZE))
        if wanted[first:last].any():
            yield first, wanted[first:last]
        first = last


def _runs(part: SortedPart, before: int, wanted: Mask) -> Iterator[tuple[int, int]]:
    """Yields the first and the last block of runs of wanted blocks, small gaps included.

    `wanted` begins with block number `before`.
    """
    found = np.flatnonzero(wanted) + before
    if not len(found):
        return
    bounds = part.bounds
    first = last = int(found[0])
    for number in map(int, found[1:]):
        if (
            bounds[number] - bounds[last + 1] > RANGE_SIZE // _GAP
            or bounds[number + 1] - bounds[first] > RANGE_SIZE
        ):
            yield first, last
            first = number
        last = number
    yield first, last


def _by_url(keys: pl.Series, ranges: Ranges) -> Mask:
    """Returns the blocks in which one of the ranges may have keys."""
    wanted = np.zeros(len(keys), np.bool_)
    for low, high in ranges:
        first, last = 0, len(keys)
        if low is not None:
            # The block before may end with keys from `low` on.
            first = max(0, int(keys.search_sorted(low, side="left")) - 1)
        if high is not None:
            last = int(keys.search_sorted(high, side="left"))
        wanted[first:last] = True
    return wanted


def _by_host(keys: pl.Series, condition: pl.Expr) -> Mask:
    """Returns the blocks that may have several hosts, or have one that the condition holds for."""
    urls = decode_keys(keys)
    sites = urls.str.extract(f"({_SITE})")
    wanted = np.ones(len(keys), np.bool_)
    alone = (
        ((sites[:-1] == sites[1:]).fill_null(False)).to_numpy()
        if len(keys) > 1
        else np.zeros(0, np.bool_)
    )
    mine = host_names(urls.gather(np.flatnonzero(alone))).alias("host").to_frame()
    # The condition itself, whatever its form: it looks at nothing but the host.
    wanted[np.flatnonzero(alone)] = mine.select(condition.fill_null(False)).to_series().to_numpy()
    return wanted


class Piece(NamedTuple):
    """A range of the URLs of a segment, in those of its folders that exist."""

    segment: Segment
    parts: dict[str, list[SortedPart]]
    keys: KeyRange


class PieceGroup(NamedTuple):
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
        # Parts of a folder overlap in their keys; one part is sorted already.
        if len(parts) > len(self.pieces) or len(tables) > 1:
            table = table.sort("of", "key", maintain_order=True)
        return table.with_columns(nth=occurrences(table["key"], table["of"]))


def _read(parts: Sequence[tuple[int, KeyRange, SortedPart]], decode: Decode) -> pl.DataFrame:
    """Returns what `decode` makes of the records of parts together."""

    def known(batch: Batch) -> pl.DataFrame:
        return decode(batch).with_columns(keys_of(batch))

    if len(parts) == 1 or sum(part.file.size for *_, part in parts) > RANGE_SIZE:
        # to put large ones together would copy them
        return pl.concat(
            read_range(part, keys, known).with_columns(of=pl.lit(number, pl.UInt32))
            for number, keys, part in parts
        )
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


def piece_groups(
    segments: Iterable[Segment],
    folders: Sequence[str],
    pruning: Pruning,
    *,
    stored: str | None = None,
    size: int = RANGE_SIZE,
) -> Iterator[PieceGroup]:
    """Yields the segments, in order, cut into ranges of `size` bytes of those of `folders` that
    they have; small ones together.

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
        ranges: Sequence[KeyRange] = cut(every, size)
        if wanted is not None:
            ranges = intersection(tuple(ranges), wanted)
        there = {folder: found for folder, found in parts.items() if found}
        total = sum(part.file.size for part in every)
        # A group is read folder by folder: its segments have the same ones.
        if waiting and (total > room or there.keys() != waiting[-1].parts.keys()):
            yield PieceGroup(waiting)
            waiting, room = [], RANGE_SIZE
        pieces = [Piece(segment, there, keys) for keys in ranges]
        if len(pieces) == 1 and total <= room:
            waiting.append(pieces[0])
            room -= total
        else:
            yield from (PieceGroup([piece]) for piece in pieces)
    if waiting:
        yield PieceGroup(waiting)


def _parts(segment: Segment, folder: str, stored: str | None) -> list[SortedPart]:
    value_class = LAYOUTS[folder].value_class
    return [
        SortedPart(path, value_class, stored=folder == stored) for path in segment.parts(folder)
    ]


def each(
    read: Callable[[PieceGroup], pl.DataFrame | None], pieces: Iterable[PieceGroup]
) -> Iterator[pl.DataFrame]:
    """Yields the result of `read` for each stretch, in order; several are read side by side."""
    return (frame for frame in ordered(read, pieces, leave=True) if frame is not None)
