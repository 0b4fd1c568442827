"""SequenceFiles with Text keys, read in bulk: from a file to batches of records, from those to
tables.

A file is cut at sync markers into spans of some megabytes, which are read side by side. A span
becomes a `Batch`: the places of its keys and values in a buffer, which is the file itself mapped
into memory, or what was inflated from it. The checksums of the span are compared on the way. What
minutch and Nutch write (version 6, not compressed or by zlib) is found by kernels; for anything
else, and for anything that looks wrong, SequenceFileReader finds the records or names the error.
Either way one function decodes the batch. Jobs that copy values ask for them as zlib streams,
`stored`: where the file has them so, and checksums, nothing is inflated.

    block := marker | VInt count | 4 × (VInt size | zlib stream of: key lengths, keys, value
    lengths, values)
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain, islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt

from minutch.errors import FormatError
from minutch.hadoop.formats.batch import Batch
from minutch.work.tables.parallel import ordered
from minutch.work.tables.spannedfile import SPAN_SIZE, Span, SpannedFile, data_file

if TYPE_CHECKING:
    import polars as pl

_TOGETHER = 1 << 20
"""Bytes of small files that are read together."""

T = TypeVar("T")

Decode = Callable[[Batch], "pl.DataFrame"]
Numbers = npt.NDArray[np.uint32]


ReadSpan = Callable[["SpannedFile", Span], Iterable[T]]
"""Reads a stretch of a file, in one piece or in several."""


class FileSplit(NamedTuple):
    """The records of a file (or MapFile) whose spans begin from `start` to before `end`: a piece of
    it for one task.

    All pieces of a file are of one size.
    """

    path: Path
    start: int
    end: int


FileOrSplit = Path | FileSplit
"""A file or MapFile, or a piece of one."""


def scan(
    path: FileOrSplit,
    value_class: str,
    decode: Decode,
    *,
    threads: int = 0,
    span_size: int = SPAN_SIZE,
    stored: bool = False,
) -> Iterator[pl.DataFrame]:
    """Returns the records of the file or MapFile at `path`, in its order, in tables (at least one).

    A table holds the records of about `span_size` bytes of the file. `threads` decode ahead (0 =
    one per core). `stored` leaves each value as the zlib stream that it is in the file, or makes
    one of it. Raises FormatError: damage, or other classes than <Text, value_class>.
    """
    pieces = [
        *_spans_of(path, value_class, span_size, stored)
    ]  # opened at once, not when the first table is taken
    return read_all(pieces, batchwise(decode), threads)


def scan_all(
    paths: Iterable[FileOrSplit],
    value_class: str,
    decode: Decode,
    *,
    threads: int = 0,
    span_size: int = SPAN_SIZE,
    stored: bool = False,
) -> Iterator[pl.DataFrame]:
    """Returns the records of several files, one after the other, as `scan` reads them, those of
    small files in one table.
    """
    return scan_numbered(
        paths,
        value_class,
        lambda batch, _: decode(batch),
        threads=threads,
        span_size=span_size,
        stored=stored,
    )


def scan_numbered(
    paths: Iterable[FileOrSplit],
    value_class: str,
    decode: Callable[[Batch, Numbers], pl.DataFrame],
    *,
    threads: int = 0,
    span_size: int = SPAN_SIZE,
    stored: bool = False,
) -> Iterator[pl.DataFrame]:
    """Like `scan_all`; `decode` also gets the number of each record's file among `paths`."""

    def read(group: Sequence[tuple[int, SpannedFile, Span | None]]) -> Iterator[pl.DataFrame]:
        waiting: list[tuple[int, SpannedFile, Batch]] = []
        room = _TOGETHER
        for number, file, span in group:
            for batch in [Batch.of([], [])] if span is None else file.batches(span):
                size = len(batch.keys) + len(batch.values)  # little may unpack to much
                if waiting and size > room:
                    yield _decoded(waiting, decode)
                    waiting, room = [], _TOGETHER
                waiting.append((number, file, batch))
                room -= size
        if waiting:
            yield _decoded(waiting, decode)

    pieces = (
        (number, *piece)
        for number, path in enumerate(paths)
        for piece in _spans_of(path, value_class, span_size, stored)
    )
    return read_all(((group,) for group in _together(pieces)), read, threads)


def _together(
    pieces: Iterable[tuple[int, SpannedFile, Span | None]],
) -> Iterator[list[tuple[int, SpannedFile, Span | None]]]:
    """Yields the pieces in groups of about _TOGETHER bytes, or of one larger piece: what a table
    costs, small files have together.
    """
    group: list[tuple[int, SpannedFile, Span | None]] = []
    room = _TOGETHER
    for piece in pieces:
        span = piece[2]
        size = 0 if span is None else span.end - span.start
        if group and size > room:
            yield group
            group, room = [], _TOGETHER
        group.append(piece)
        room -= size
    if group:
        yield group


def _decoded(
    found: Sequence[tuple[int, SpannedFile, Batch]],
    decode: Callable[[Batch, Numbers], pl.DataFrame],
) -> pl.DataFrame:
    """Decodes batches of some files together. Raises FormatError with the name of the file."""
    numbers = np.array([number for number, _, _ in found], np.uint32)
    batches = [batch for _, _, batch in found]
    try:
        return decode(Batch.joined(batches), numbers.repeat([batch.size for batch in batches]))
    except FormatError:
        for number, file, batch in found:
            try:
                decode(batch, np.full(batch.size, number, np.uint32))
            except FormatError as exc:
                raise exc.within(file.path) from exc
        raise


def _spans_of(
    place: FileOrSplit, value_class: str, span_size: int, stored: bool
) -> Iterator[tuple[SpannedFile, Span | None]]:
    """Yields the spans of a place; None if there are none."""
    file, spans = opened_at(place, value_class, span_size=span_size, stored=stored)
    found: list[Span | None] = [*spans] or [None]
    yield from ((file, span) for span in found)


def opened_at(
    place: FileOrSplit, value_class: str, *, span_size: int = SPAN_SIZE, stored: bool = False
) -> tuple[SpannedFile, list[Span]]:
    """Opens a place like `opened`, with its spans."""
    if not isinstance(place, FileSplit):
        file = opened(place, value_class, span_size=span_size, stored=stored)
        return file, file.spans()
    path, start, end = place
    file = opened(path, value_class, span_size=min(span_size, end - start), stored=stored)
    return file, file.spans(start, end)


def opened(
    path: Path, value_class: str, *, span_size: int = SPAN_SIZE, stored: bool = False
) -> SpannedFile:
    """Returns the file, or that of the MapFile, at `path`. Raises FormatError where it does not
    hold <Text, value_class>.
    """
    file = SpannedFile(data_file(path), span_size=span_size, stored=stored)
    file.require(value_class)
    return file


def batchwise(decode: Callable[[Batch], T]) -> Callable[[SpannedFile, Span | None], Iterable[T]]:
    """Reads a stretch batch by batch; none at all is one without records."""

    def read(file: SpannedFile, span: Span | None) -> Iterator[T]:
        for batch in [Batch.of([], [])] if span is None else file.batches(span):
            try:
                yield decode(batch)
            except FormatError as exc:
                raise exc.within(file.path) from exc

    return read


def read_all(
    pieces: Iterable[tuple[Any, ...]], read: Callable[..., Iterable[pl.DataFrame]], threads: int = 0
) -> Iterator[pl.DataFrame]:
    """Calls `read` on each piece, several at a time, and yields results in order. Raises
    FormatError.
    """

    def begun(piece: tuple[Any, ...]) -> Iterator[pl.DataFrame]:
        found = iter(read(*piece))
        first = list(
            islice(found, 1)
        )  # one is made here; there are more only where little unpacks to much
        return chain(first, found)

    return chain.from_iterable(ordered(begun, pieces, threads, leave=True))
