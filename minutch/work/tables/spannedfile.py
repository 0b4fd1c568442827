"""A SequenceFile with Text keys, opened to be read in spans, and what finds the records in a
stretch of it, by the way in which it is compressed; the scans of `spans` go through it.
"""

from __future__ import annotations

import math
import mmap
import os
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from minutch.errors import FormatError
from minutch.hadoop.formats.batch import Batch, Lengths, Offsets, Stretch, keys_of, string_column
from minutch.hadoop.formats.checksum import BYTES_PER_CHECKSUM, HEADER_SIZE, MAGIC, crc_path
from minutch.hadoop.formats.compress import DEFAULT_CODEC, NO_LIMIT, codec
from minutch.hadoop.formats.javaio import DataInput
from minutch.hadoop.formats.sequencefile import SequenceFileReader
from minutch.hadoop.formats.sequencewriter import (
    BLOCK,
    NONE,
    RECORD,
    SYNC_ESCAPE,
    TEXT,
    SequenceHeader,
)
from minutch.kernels import sequencefile
from minutch.kernels.arrow import Bytes
from minutch.kernels.clibrary import libdeflate
from minutch.kernels.sequencefile import first_bad_sum
from minutch.paths import StorePath, is_local
from minutch.work.tables.zlibvalues import MOST, MOST_AT_A_TIME, LargeSpanError, deflated, inflated

if TYPE_CHECKING:
    import polars as pl


_NO_ROOM = -2  # of `sequencefile.walk`
_TYPICAL_RECORD = 64

KeyFilter = Callable[["pl.Series"], "pl.Series"]
"""Returns the mask (Boolean) of the keys (Binary) that are wanted."""
SPAN_SIZE = 1 << 24
"""Bytes of a file that are read at a time."""
_MARKER_WINDOW = 1 << 16
"""Bytes of a file far away in which a marker is looked for first."""
_SMALL = 1 << 16
"""Bytes of a file that is read as a whole when it is opened: of 183 segments most of the time went
into a reader, checksums and an index for each of their files.
"""
_VERSION = 6
_PAGE = "org.apache.nutch.protocol.Content"
"""Pages are as large as http.content.limit lets them be."""


def chosen(batch: Batch, wanted: KeyFilter | None) -> Batch:
    if wanted is None or not batch.size:
        return batch
    return batch.filter(wanted(keys_of(batch)).to_numpy())


def find_plain(
    stretch: Stretch, most: int = NO_LIMIT, wanted: KeyFilter | None = None
) -> Batch | None:
    room = (stretch.end - stretch.start) // _TYPICAL_RECORD + 16
    while True:
        key_at, value_at = np.empty(room, np.int64), np.empty(room, np.int64)
        key_len, value_len = np.empty(room, np.int32), np.empty(room, np.int32)
        count = sequencefile.walk(
            stretch.place, sequencefile.RecordPlaces(key_at, key_len, value_at, value_len)
        )
        if count != _NO_ROOM:
            break
        room *= 3  # a record may have as few as 9 bytes
    if count < 0:
        return None
    keys, values = (key_at[:count], key_len[:count]), (value_at[:count], value_len[:count])
    return chosen(Batch(stretch.data, *keys, stretch.data, *values), wanted)


def _find_compressed_values(stretch: Stretch, most: int, wanted: KeyFilter | None) -> Batch | None:
    batch = find_plain(stretch, most, wanted)
    return None if batch is None else inflated(batch, most)


def _find_blocks(stretch: Stretch, most: int, wanted: KeyFilter | None) -> Batch | None:
    # Sums first: zlib says less of damaged bytes than the reader, which names the chunk.
    if not stretch.is_whole:
        return None
    blocks: list[Batch] = []
    source = DataInput(stretch.data[: stretch.end].data)
    source.skip(stretch.start)
    sync = stretch.marker.tobytes()
    unpacked = 0
    try:
        while source.remaining:
            blocks.append(_read_block(source, sync))
            unpacked += len(blocks[-1].keys) + len(blocks[-1].values)
            # Before the next one: a block may unpack to a thousand times its size.
            if unpacked > most:
                raise too_large(most)
    except LargeSpanError:
        raise
    except (FormatError, zlib.error):
        return None
    return chosen(_join(blocks), wanted)


def too_large(most: int) -> LargeSpanError:
    what, expected = "records unpack to too much without a sync marker", f"at most {most} bytes"
    return LargeSpanError(what, expected=expected, found="more")


def _read_block(source: DataInput, sync: bytes) -> Batch:
    """Returns the next block. Raises FormatError or zlib.error."""
    if source.read_bytes(sequencefile.MARKER_SIZE) != SYNC_ESCAPE + sync:
        raise FormatError("no sync marker before a block", offset=source.pos)
    count = source.read_vint()
    parts = [
        np.frombuffer(
            codec(DEFAULT_CODEC).decompress(source.read_bytes(source.read_vint()), MOST), np.uint8
        )
        for _ in range(4)  # key lengths, keys, value lengths, values
    ]
    keys, values = _column(parts[0], parts[1], count), _column(parts[2], parts[3], count)
    if not sequencefile.strip_lengths(parts[1], *keys):
        raise FormatError("a key that is no Text", offset=source.pos)
    return Batch(parts[1], *keys, parts[3], *values)


def _column(lengths: Bytes, data: Bytes, count: int) -> tuple[Offsets, Lengths]:
    at, length = np.empty(max(count, 0), np.int64), np.empty(max(count, 0), np.int32)
    if (
        count < 0
        or not sequencefile.vints(lengths, length)
        or sequencefile.running_sum(length, at) != len(data)
    ):
        raise FormatError("lengths that do not fit a block", expected=len(data))
    return at, length


def _join(blocks: list[Batch]) -> Batch:
    key_shift = np.cumsum([0, *(len(block.keys) for block in blocks)])
    value_shift = np.cumsum([0, *(len(block.values) for block in blocks)])
    return Batch(
        np.concatenate([block.keys for block in blocks]),
        np.concatenate([block.key_at + key_shift[i] for i, block in enumerate(blocks)]),
        np.concatenate([block.key_len for block in blocks]),
        np.concatenate([block.values for block in blocks]),
        np.concatenate([block.value_at + value_shift[i] for i, block in enumerate(blocks)]),
        np.concatenate([block.value_len for block in blocks]),
    )


FINDERS: dict[str, Callable[[Stretch, int, KeyFilter | None], Batch | None]] = {
    NONE: find_plain,
    RECORD: _find_compressed_values,
    BLOCK: _find_blocks,
}


class Span(NamedTuple):
    """A stretch of a file from one marker (or the header's end) to another (or the file's end)."""

    start: int
    end: int


class SpannedFile:
    """A SequenceFile on disk, opened to be read in spans. Raises FormatError as the reader does."""

    def __init__(self, path: Path, *, span_size: int = SPAN_SIZE, stored: bool = False) -> None:
        self.path = path
        self.stored = stored
        self._sums: tuple[Bytes, int] | None = None
        self._whole: Bytes | None = None
        small = _read_small(path) if is_local(path) else None
        if small is None:
            with SequenceFileReader(path) as reader:
                header, self.start = reader.header, reader.header_end
            self.size = path.stat().st_size
        else:
            self._whole, self._sums, header, self.start = small
            self.size = len(self._whole)
        self._header = header
        self.key_class, self.value_class = header.key_class, header.value_class
        self.compression, self.sync = header.compression, header.sync
        self._is_usual = header.version == _VERSION and (
            header.compression == NONE or header.codec == DEFAULT_CODEC
        )
        self._marker = np.frombuffer(self.sync, np.uint8)
        self._most = NO_LIMIT if self.value_class == _PAGE else MOST
        self._span_size = span_size

    def require(self, value_class: str) -> None:
        """Raises FormatError unless the file holds <Text, value_class>."""
        self._header.require(value_class, self.path)

    @property
    def has_streams(self) -> bool:
        """True if each value is a zlib stream of its own, and checksums show whether it is good."""
        return self._is_usual and self.compression == RECORD and len(self._read_sums()[0]) > 0

    def spans(self, first: int = 0, last: int | None = None) -> list[Span]:
        """Returns the file cut into spans, at least one, as Hadoop's FileInputFormat splits it.

        A rest of up to a tenth of a span goes with the last one. A file without markers (version 1)
        is one span. Of a piece of it, those that begin from `first` to before `last`; nothing else
        of the file is looked at.
        """
        size, last = self._span_size, self.size + 1 if last is None else last
        cuts = [self.start]
        if self.sync and self.size > size:
            with self._finder() as find_marker:
                for goal in range(max((first - 1) // size, 1) * size, self.size, size):
                    # FileInputFormat.SPLIT_SLOP.
                    if self.size - goal <= size / 10 or cuts[-1] >= last:
                        break
                    if goal <= cuts[-1]:  # the last marker lies beyond this goal
                        continue
                    found = find_marker(goal)
                    if found < 0:
                        break
                    cuts.append(found)
        return [
            Span(start, end) for start, end in pairwise([*cuts, self.size]) if first <= start < last
        ]

    @contextmanager
    def _finder(self) -> Iterator[Callable[[int], int]]:
        """Yields a function that finds the first marker from a position on; -1 if there is none."""
        marker = SYNC_ESCAPE + self.sync
        if isinstance(self.path, StorePath):
            yield partial(_find_in_store, self.path, marker, self.size)
            return
        with (
            self.path.open("rb") as file,
            mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data,
        ):
            yield partial(data.find, marker)

    def spans_with(self, part: bytes, *, of_values: bool = False) -> list[Span]:
        """Returns the spans that may have these bytes in a key (or in values), all of them where
        those are compressed.

        Of keys of another class than Text it is not known how they are spelled.
        """
        hidden = (
            self.compression == BLOCK
            or self.key_class != TEXT
            or (of_values and self.compression != NONE)
        )
        if hidden or self.size <= self.start:
            return self.spans()
        if isinstance(self.path, StorePath):
            return [span for span in self.spans() if part in self.path.read_range(*span)]
        with (
            self.path.open("rb") as file,
            mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data,
        ):
            return [span for span in self.spans() if data.find(part, span.start, span.end) >= 0]

    def values_of(self, key: bytes, span: Span) -> list[bytes]:
        """Returns the values of a key in a span, in order; of a file that is `stored` no others are
        inflated. FormatError.
        """
        batch = self.batch(span)
        keys = string_column("key", batch.keys, batch.key_at, batch.key_len)
        values = [batch.value(row) for row in keys.is_in([key]).arg_true()]
        return (
            [codec(DEFAULT_CODEC).decompress(value, self._most) for value in values]
            if self.stored
            else values
        )

    def batches(self, span: Span) -> Iterator[Batch]:
        """Yields the records of a span, in one batch unless they unpack to more than
        MOST_AT_A_TIME. Raises FormatError.
        """
        try:
            batch = self.batch(span, MOST_AT_A_TIME)
        except LargeSpanError as exc:
            # Halve it at a marker; if the second half has none, cut at the first one.
            middle = self._marker_after((span.start + span.end) // 2)
            if not span.start < middle < span.end:
                middle = self._marker_after(span.start + 1)
            if not span.start < middle < span.end:
                raise exc.at(str(self.path), span.start) from None
            yield from self.batches(Span(span.start, middle))
            yield from self.batches(Span(middle, span.end))
        else:
            yield batch

    def _marker_after(self, position: int) -> int:
        """Finds the first marker at or after `position`; -1 if there is none."""
        if not self.sync:
            return -1
        with self._finder() as find_marker:
            return find_marker(position)

    def batch(self, span: Span, most: int = NO_LIMIT) -> Batch:
        """Returns the records of a span. Raises FormatError for damage, LargeSpanError if they
        unpack to more than `most`.
        """
        # Kernels first; the reader, record by record, where these see something they don't know.
        found = self._find(span, most)
        return self._read(span, most) if found is None else found

    def keys(self, span: Span) -> pl.Series:
        """Returns the keys of a span (Binary); no value is inflated. Raises FormatError."""
        stretch = self.stretch(span) if self.compression != BLOCK else None
        batch = None if stretch is None else find_plain(stretch)
        batch = self.batch(span) if batch is None else batch
        return string_column("key", batch.keys, batch.key_at, batch.key_len)

    def batch_between(self, span: Span, wanted: KeyFilter | None = None) -> Batch:
        """Returns the records (wanted) between two positions of records (of blocks where the file
        has those).

        Where values are compressed one by one those of other keys stay so. Raises FormatError.
        """
        found = self._find(span, wanted=wanted)
        return chosen(self._read(span), wanted) if found is None else found

    def streams(self, span: Span) -> Batch | None:
        """Returns the records of a span, each value as the zlib stream that it is in the file; None
        if it is none there, or something looks wrong.
        """
        stretch = self.stretch(span) if self.has_streams else None
        return None if stretch is None else find_plain(stretch)

    def _key(self, key: bytes) -> bytes:
        try:
            return DataInput(key).read_text_bytes()
        except FormatError as exc:
            raise exc.at(f"{self.path}, key {key!r}") from exc

    def stretch(self, span: Span) -> Stretch | None:
        """Returns a span in memory, as kernels take it; None where they can't read it."""
        if not self._is_usual or span.end <= span.start:
            return None
        checksums, chunk = self._read_sums()
        unit = math.lcm(mmap.ALLOCATIONGRANULARITY, chunk)  # of pages and of chunks
        base = span.start // unit * unit
        # Up to the end of a chunk, whose sum is of all its bytes.
        data = self._map(base, min(self.size, -(-span.end // chunk) * chunk))
        sums = checksums[base // chunk * 4 :]
        return Stretch(data, span.start - base, span.end - base, self._marker, sums, chunk)

    def _find(
        self, span: Span, most: int = NO_LIMIT, wanted: KeyFilter | None = None
    ) -> Batch | None:
        """Returns the records (wanted) by kernels; None if something looks wrong."""
        stretch = self.stretch(span)
        if stretch is None:
            return None
        # The checksums tell damage, so nothing has to be inflated.
        if self.stored and self.compression == RECORD and len(stretch.sums):
            return find_plain(stretch, most, wanted)
        found = FINDERS[self.compression](stretch, most, wanted)
        return deflated(found) if found is not None and self.stored else found

    def _read(self, span: Span, most: int = NO_LIMIT) -> Batch:
        """Returns the records one by one."""
        keys: list[bytes] = []
        values: list[bytes] = []
        unpacked = 0
        for key, value in self._records(span):
            unpacked += len(key) + len(value)
            if self.compression != NONE and unpacked > most:
                raise too_large(most)
            keys.append(self._key(key))
            values.append(value)
        batch = Batch.of(keys, values)
        return deflated(batch) if self.stored else batch

    def _records(self, span: Span) -> Iterator[tuple[bytes, bytes]]:
        # A reader starts behind the header by itself.
        start = 0 if span.start == self.start else span.start
        end = None if span.end == self.size else span.end
        if self.compression == BLOCK:
            with SequenceFileReader(self.path, start=start, end=end, most=self._most) as reader:
                yield from reader
            return
        with SequenceFileReader(self.path, most=self._most) as reader:
            if start:
                reader.seek(start)
            records = iter(reader)
            # Asked before the record is read: one that begins at the end is the next span's.
            while reader.position < span.end and (record := next(records, None)) is not None:
                yield record

    def _read_sums(self) -> tuple[Bytes, int]:
        """Returns the sums in the file's sibling (empty if there is none) and the bytes per sum."""
        if self._sums is None:
            sibling = crc_path(self.path)
            has_sums = is_local(self.path) and sibling.exists()
            found = np.fromfile(sibling, np.uint8) if has_sums else np.empty(0, np.uint8)
            chunk = int.from_bytes(found[4:HEADER_SIZE].tobytes(), "big") or BYTES_PER_CHECKSUM
            self._sums = found[HEADER_SIZE:], chunk
        return self._sums

    def _map(self, start: int, end: int) -> Bytes:
        """Returns a stretch of the file in memory. Each span has a map of its own, which goes away
        with its last record.
        """
        if isinstance(self.path, StorePath):
            return np.frombuffer(self.path.read_range(start, end), np.uint8)
        whole, self._whole = self._whole, None  # once: many files that are open take no memory
        if whole is not None:
            return whole[start:end]
        with self.path.open("rb") as file:
            mapped = mmap.mmap(file.fileno(), end - start, access=mmap.ACCESS_READ, offset=start)
        return np.frombuffer(mapped, np.uint8)


def _read_small(path: Path) -> tuple[Bytes, tuple[Bytes, int], SequenceHeader, int] | None:
    """Reads a small file and its checksums: the bytes, sums and bytes per sum, header and its end.

    None if it is large, or anything is wrong: SequenceFileReader says what. Opening by that took
    most of the time of reading many small segments.
    """
    folder, name = os.path.split(path)
    sums, chunk = np.empty(0, np.uint8), BYTES_PER_CHECKSUM
    try:
        with open(path, "rb", buffering=0) as file:  # noqa: PTH123 - no time for pathlib
            if os.fstat(file.fileno()).st_size > _SMALL:
                return None
            data = np.frombuffer(file.readall(), np.uint8)
        with suppress(FileNotFoundError):
            with open(f"{folder}/.{name}.crc", "rb", buffering=0) as file:  # noqa: PTH123
                found = file.readall()
            chunk = int.from_bytes(found[4:HEADER_SIZE], "big")
            sums = np.frombuffer(found, np.uint8)[HEADER_SIZE:]
            count = -(-len(data) // chunk)  # a damaged .crc may have 0
            if found[: len(MAGIC)] != MAGIC or len(sums) != 4 * count:
                return None
            if first_bad_sum(data, 0, count, chunk, sums, libdeflate().crc32) >= 0:
                return None
        source = DataInput(data.data)
        return data, (sums, chunk), SequenceHeader.read(source), source.pos
    except (OSError, ZeroDivisionError, FormatError):
        return None


def _find_in_store(path: StorePath, marker: bytes, size: int, position: int) -> int:
    """Finds the first marker from a position on in a file of a remote store; -1 without one."""
    length = _MARKER_WINDOW
    while position < size:
        found = path.read_range(position, position + length).find(marker)
        if found >= 0:
            return position + found
        # A marker may span two windows. Later windows are large, as each is a request.
        position, length = position + length - len(marker) + 1, SPAN_SIZE
    return -1
