"""The shapes of tables that whole-database jobs work on, and sorted tables side by side: the join
that every update of a database is.

A key is a URL's bytes as they stand in a Text, not decoded: invalid UTF-8 survives, and byte order
is Nutch's order. `records/*_columns.py` have the schemas.

Sorted tables are streams: iterators of frames with a `key` column, sorted by key over the whole
stream, in which no key is spread over two frames unless said otherwise.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import chain

import numpy as np
import numpy.typing as npt
import polars as pl

from minutch.kernels import keycolumns, sort
from minutch.kernels.arrow import MAX_BUFFER, from_series, to_series
from minutch.records.crawldatum_columns import CRAWLDB_SCHEMA


def empty(schema: pl.Schema) -> pl.DataFrame:
    """Returns a table of `schema` without rows."""
    return pl.DataFrame(schema=schema)


def concat(frames: list[pl.DataFrame], schema: pl.Schema = CRAWLDB_SCHEMA) -> pl.DataFrame:
    """Returns the rows of all `frames`, in order; an empty table of `schema` without any."""
    return pl.concat(frames, rechunk=False) if frames else empty(schema)


def decode_keys(keys: pl.Series) -> pl.Series:
    """Returns keys as strings; bytes that are not UTF-8 become U+FFFD, as in Text.toString."""
    try:
        return keys.cast(pl.String)
    except pl.exceptions.ComputeError:
        replaced = [None if key is None else key.decode("utf-8", "replace") for key in keys]
        return pl.Series(keys.name, replaced, dtype=pl.String)


def encode_keys(urls: pl.Series) -> pl.Series:
    """Returns strings as keys."""
    return urls.cast(pl.Binary)


def by_runs(keys: pl.Series, change: Callable[[pl.Series], pl.Series]) -> pl.Series:
    """Applies `change` to one key of each run of equal ones, and gives its result to all of it."""
    if keys.is_empty():
        return change(keys)
    starts = keys.ne_missing(keys.shift())
    return change(keys.filter(starts)).gather(starts.cum_sum() - 1)


Rows = npt.NDArray[np.uint32]


def sort_by_key(frame: pl.DataFrame) -> pl.DataFrame:
    """Returns `frame` in ascending order of key bytes; rows of one key keep their order."""
    frame = frame.rechunk()  # rows are gathered from one chunk several times faster than from many
    if frame["key"].is_sorted():
        return frame
    return sorted_rows(frame, np.arange(len(frame), dtype=np.uint32))


def sorted_rows(frame: pl.DataFrame, rows: Rows) -> pl.DataFrame:
    """Returns the `rows` of `frame` (in one chunk) that have these numbers, sorted as by
    `sort_by_key`.

    The keys come in a buffer of their own, one after the other, so that later walks over them read
    memory front to back.
    """
    keys = from_series(frame["key"])
    entries = np.empty((len(rows) + 1) * sort.ROOM, np.uint8)
    size = int(sort.sort_entries(keys.views, keys.addresses, rows, entries))
    order = pl.Series(rows)
    if size > MAX_BUFFER:
        return frame[order]
    out, views = np.empty(size, np.uint8), np.empty((len(rows), 4), np.int32)
    sort.pack_entries(entries, out, views)
    del entries  # 52 bytes a row, which gathering needs
    key = to_series("key", views, [out])
    return frame.drop("key")[order].insert_column(frame.columns.index("key"), key)


def key_order(frame: pl.DataFrame, rows: Rows) -> Rows:
    """Sorts `rows`, row numbers of `frame`, in place: by key, those of one key by number."""
    keys = from_series(frame["key"])
    sort.sort_order(keys.views, keys.addresses, rows)
    return rows


def has_repeats(keys: pl.Series) -> bool:
    """Returns True if a key occurs more than once in a sorted column."""
    return keycolumns.repeats(*from_series(keys).column)


def first_out_of_order(keys: pl.Series) -> int:
    """Returns the first row whose key is less than the one before it; -1 if they ascend."""
    if keys.is_sorted():
        return -1
    return int((keys < keys.shift()).fill_null(False).arg_max() or 0)


def aligned(*streams: Iterable[pl.DataFrame], least: int = 1) -> Iterator[tuple[pl.DataFrame, ...]]:
    """Walks sorted streams side by side, key range by key range.

    Each stream's frames are sorted by key over the whole stream (a key may be spread over frames).
    Yields one tuple per key range with a frame of each stream: all rows of a key, from every
    stream, come in the same tuple; the ranges ascend. Fewer than `least` rows wait for the next
    frame of a stream, once: rows may be large. Every stream must hold at least one frame (an empty
    one will do).
    """
    cursors = [_Cursor(iter(stream)) for stream in streams]
    waits = False
    while True:
        bounds = [bound for cursor in cursors if (bound := cursor.complete_below()) is not None]
        if not bounds:  # everything that is left is in memory
            if any(len(cursor.frame) for cursor in cursors):
                yield tuple(cursor.frame for cursor in cursors)
            return
        # Below this key every stream is complete.
        bound = min(bounds)
        rows = sum(cursor.below(bound) for cursor in cursors)
        waits = not waits and rows < least
        if rows and not waits:
            yield tuple(cursor.take_below(bound) for cursor in cursors)
        for cursor in cursors:
            cursor.advance(bound)


def pieces(frame: pl.DataFrame, rows: int) -> Iterator[pl.DataFrame]:
    """Yields a sorted table in tables of about `size` rows; no key is spread over two."""
    while len(frame) > rows:
        # Behind all rows of this key.
        last = frame["key"].search_sorted(frame["key"][rows], side="right")
        yield frame[:last]
        frame = frame[last:]
    yield frame


def merged(*streams: Iterable[pl.DataFrame]) -> Iterator[pl.DataFrame]:
    """Yields sorted streams as one, with at least one frame; of equal keys, rows of the first
    stream come first.

    No key is spread over two frames.
    """
    first, *others = map(iter, streams)
    frame = next(first)
    has_rows = False
    for frames in aligned(chain([frame], first), *others):
        yield sort_by_key(pl.concat(frames))
        has_rows = True
    if not has_rows:
        yield frame


class _Cursor:
    """The frames of one stream, with the rows at hand in `frame`."""

    def __init__(self, frames: Iterator[pl.DataFrame]) -> None:
        self._frames = frames
        self.frame = next(frames)
        self._next = self._following()

    def _following(self) -> pl.DataFrame | None:
        """Returns the next frame that has rows."""
        return next((frame for frame in self._frames if len(frame)), None)

    def complete_below(self) -> bytes | None:
        """Returns the key below which all rows are at hand; None at the end of the stream."""
        return None if self._next is None else bytes(self._next["key"][0])

    def below(self, bound: bytes) -> int:
        """Returns the number of rows at hand with keys below `bound`."""
        # Rows of `bound` itself may go on in the next frame.
        return int(self.frame["key"].search_sorted(bound, side="left"))

    def take_below(self, bound: bytes) -> pl.DataFrame:
        """Removes and returns the rows with keys below `bound`."""
        count = self.below(bound)
        taken, self.frame = self.frame[:count], self.frame[count:]
        return taken

    def advance(self, bound: bytes) -> None:
        """Fetches more rows if `bound` was this stream's own end."""
        if self._next is not None and self.complete_below() == bound:
            self.frame = (
                pl.concat([self.frame, self._next], rechunk=True) if len(self.frame) else self._next
            )
            self._next = self._following()
