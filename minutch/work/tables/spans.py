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
import numpy.ma  # Polars asks for it; imported by two threads at a time it calls itself (NumPy 2.4)
import numpy.typing as npt

from minutch.errors import FormatError
from minutch.hadoop.formats.batch import Batch, Stretch
from minutch.hadoop.formats.sequencewriter import NONE
from minutch.work.tables.database import data_file
from minutch.work.tables.parallel import ordered
from minutch.work.tables.spannedfile import SPAN_SIZE, Span, SpannedFile

if TYPE_CHECKING:
    import polars as pl

_TOGETHER = 1 << 20
"""Bytes of small files that are read together: an audit of 183 segments took 5.9 s of CPU file by
file, 2.1 so.
"""

T = TypeVar("T")

Decode = Callable[[Batch], "pl.DataFrame"]
DecodeStretch = Callable[[Stretch], "pl.DataFrame | None"]
"""Decodes a part of a file without looking for its records first; None if it can't."""

Numbers = npt.NDArray[np.uint32]
DecodeNumbered = Callable[[Batch, Numbers], "pl.DataFrame"]
"""Decodes a batch; it also gets the number of each record's file."""

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


class CombineFileSplit(NamedTuple):
    """Small files, one after the other, which one task reads, and tables of which are made
    together.

    Source: org.apache.hadoop.mapreduce.lib.input.CombineFileSplit.
    """

    paths: tuple[Path, ...]

    @classmethod
    def of(cls, files: Iterable[tuple[Path, int]]) -> CombineFileSplit:
        """Returns the split of these files; their sizes are no longer needed."""
        return cls(tuple(path for path, _ in files))


InputSplit = Path | FileSplit | CombineFileSplit
"""A file or MapFile, a piece of one, or several small ones."""


def places_of(split: InputSplit) -> Sequence[Path | FileSplit]:
    """Returns the files of a split, or the piece of one that it is."""
    return split.paths if isinstance(split, CombineFileSplit) else [split]


class FileSpan(NamedTuple):
    """A span of a file, by its number among those that are read; None if it has none."""

    number: int
    file: SpannedFile
    span: Span | None


def scan(
    split: InputSplit,
    value_class: str,
    decode: Decode,
    *,
    threads: int = 0,
    span_size: int = SPAN_SIZE,
    stored: bool = False,
    decode_plain: DecodeStretch | None = None,
) -> Iterator[pl.DataFrame]:
    """Returns the records of a split, in its order, in tables (at least one).

    A table holds the records of about `span_size` bytes of a file, or of several small files.
    `threads` decode ahead (0 = one per core). `stored` leaves each value as the zlib stream that it
    is in the file, or makes one of it. `decode_plain` makes tables of what is not compressed.
    Raises FormatError: damage, or other classes than <Text, value_class>.
    """
    # Opened at once, not when the first table is taken.
    groups = [*spans_together(places_of(split), value_class, span_size=span_size, stored=stored)]
    return _read_groups(groups, lambda batch, _: decode(batch), threads, decode_plain)


def scan_all(paths: Iterable[Path], value_class: str, decode: Decode) -> Iterator[pl.DataFrame]:
    """Returns the records of any number of files, one after the other, as `scan` reads them. They
    are opened as it comes to them.
    """
    return scan_numbered(paths, value_class, lambda batch, _: decode(batch))


def scan_numbered(
    paths: Iterable[Path],
    value_class: str,
    decode: DecodeNumbered,
    *,
    span_size: int = SPAN_SIZE,
    stored: bool = False,
) -> Iterator[pl.DataFrame]:
    """Like `scan_all`; `decode` also gets the number of each record's file among `paths`."""
    groups = spans_together(paths, value_class, span_size=span_size, stored=stored)
    return _read_groups(groups, decode, 0)


def _read_groups(
    groups: Iterable[Sequence[FileSpan]],
    decode: DecodeNumbered,
    threads: int,
    decode_plain: DecodeStretch | None = None,
) -> Iterator[pl.DataFrame]:
    def read(*group: FileSpan) -> Iterable[pl.DataFrame]:
        # Small files are put together first.
        if decode_plain is not None and len(group) == 1:
            _, file, span = group[0]
            stretch = file.stretch(span) if span and file.compression == NONE else None
            table = None if stretch is None else decode_plain(stretch)
            if table is not None:
                return [table]
        return decoded(
            (
                (number, file.path, batch)
                for number, file, span in group
                for batch in ([Batch.of([], [])] if span is None else file.batches(span))
            ),
            decode,
        )

    return read_all(map(tuple, groups), read, threads)


def decoded(
    found: Iterable[tuple[int, Path | None, Batch]], decode: DecodeNumbered
) -> Iterator[pl.DataFrame]:
    """Decodes batches, each with the number and the path of its file, small ones together. Raises
    FormatError with the path.
    """
    for group in _grouped(
        found,
        lambda one: len(one[2].keys) + len(one[2].values),  # little may unpack to much
    ):
        yield _decoded(group, decode)


def spans_together(
    places: Iterable[Path | FileSplit],
    value_class: str,
    *,
    span_size: int = SPAN_SIZE,
    stored: bool = False,
) -> Iterator[list[FileSpan]]:
    """Yields the spans of files, one after the other, in groups of about _TOGETHER bytes, or of one
    larger span: what a table costs, small files have together. Raises FormatError.
    """
    found = (
        FileSpan(number, file, span)
        for number, place in enumerate(places)
        for file, spans in [opened_at(place, value_class, span_size=span_size, stored=stored)]
        for span in [*spans, *([] if spans else [None])]  # an empty file, too, is a table
    )
    return _grouped(
        found,
        lambda one: 0 if one.span is None else one.span.end - one.span.start,
        min(_TOGETHER, span_size),
    )


def combined(files: Iterable[tuple[T, int]], room: int) -> Iterator[list[tuple[T, int]]]:
    """Yields files (or whatever stands for them), with their sizes, in groups of at most `room`
    bytes, or of one larger file.
    """
    return _grouped(files, lambda file: file[1], room)


def _grouped(
    items: Iterable[T], size_of: Callable[[T], int], most: int = _TOGETHER
) -> Iterator[list[T]]:
    group: list[T] = []
    room = most
    for item in items:
        size = size_of(item)
        if group and size > room:
            yield group
            group, room = [], most
        group.append(item)
        room -= size
    if group:
        yield group


def _decoded(
    found: Sequence[tuple[int, Path | None, Batch]], decode: DecodeNumbered
) -> pl.DataFrame:
    numbers = np.array([number for number, _, _ in found], np.uint32)
    batches = [batch for _, _, batch in found]
    try:
        return decode(Batch.joined(batches), numbers.repeat([batch.size for batch in batches]))
    except FormatError:
        # One by one, to name the damaged file.
        for number, path, batch in found:
            try:
                decode(batch, np.full(batch.size, number, np.uint32))
            except FormatError as exc:
                raise (exc if path is None else exc.within(path)) from exc
        raise


def opened_at(
    place: Path | FileSplit, value_class: str, *, span_size: int = SPAN_SIZE, stored: bool = False
) -> tuple[SpannedFile, list[Span]]:
    """Opens a place as `opened` does, with its spans."""
    if not isinstance(place, FileSplit):
        file = opened(place, value_class, span_size=span_size, stored=stored)
        return file, file.spans()
    path, start, end = place
    file = opened(path, value_class, span_size=min(span_size, end - start), stored=stored)
    return file, file.spans(start, end)


def opened(
    path: Path, value_class: str, *, span_size: int = SPAN_SIZE, stored: bool = False
) -> SpannedFile:
    """Returns the file (or MapFile's) at `path`. FormatError if it isn't <Text, value_class>."""
    file = SpannedFile(data_file(path), span_size=span_size, stored=stored)
    file.require(value_class)
    return file


def batchwise(decode: Callable[[Batch], T]) -> Callable[[SpannedFile, Span | None], Iterable[T]]:
    """Reads a stretch batch by batch; nothing at all counts as one batch without records."""

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
    """Calls `read` on each piece, several at a time; yields results in order, or FormatError."""

    def begun(piece: tuple[Any, ...]) -> Iterator[pl.DataFrame]:
        found = iter(read(*piece))
        # One is made here, in a thread; there are more only where little unpacks to much.
        first = list(islice(found, 1))
        return chain(first, found)

    return chain.from_iterable(ordered(begun, pieces, threads, leave=True))
