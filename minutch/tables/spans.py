"""The records of a SequenceFile with Text keys in bulk: where keys and values lie, not what they are.

A file is cut at sync markers into spans of some megabytes, which can be read side by side. A span becomes a `Batch`:
offsets and lengths of its keys and values in a buffer, which is the file itself mapped into memory, or what was
inflated from it. The checksums of the span are compared on the way.

Only what minutch and Nutch write in bulk is read here: SequenceFiles of version 6 that are not compressed, or by zlib.
For anything else, and for anything that looks wrong, `BulkFile.batch` returns None, and the caller reads the span by
SequenceFileReader, which reads everything and names errors.
"""

from __future__ import annotations

import math
import mmap
import sys
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from minutch.formats.checksum import BYTES_PER_CHECKSUM, HEADER_SIZE, crc_path
from minutch.formats.compress import DEFAULT_CODEC
from minutch.formats.sequencefile import BLOCK, NONE, RECORD, SYNC_ESCAPE, SequenceFileReader
from minutch.kernels.arrow import Bytes

Offsets = npt.NDArray[np.int64]
Lengths = npt.NDArray[np.int32]

SPAN_SIZE = 1 << 24
"""Bytes of a file that are read at a time."""
WORTH_IT = {NONE: 4 << 20, RECORD: 1 << 20, BLOCK: 1 << 20}
"""Sizes of files, by compression, from which loading the kernels takes less time than reading record by record."""
_VERSION = 6
_KERNELS = "minutch.kernels.layout"


class Batch(NamedTuple):
    """The records of a span: key i is `keys[key_at[i] : key_at[i] + key_len[i]]` (a Text's bytes), values likewise."""

    keys: Bytes
    key_at: Offsets
    key_len: Lengths
    values: Bytes
    value_at: Offsets
    value_len: Lengths

    @property
    def size(self) -> int:
        """How many records there are."""
        return len(self.key_at)


class Span(NamedTuple):
    """A stretch of a file from one marker (or the header's end) to another (or the file's end)."""

    start: int
    end: int


def kernels_loaded() -> bool:
    """Whether the kernels are in memory already, so that they are worth using for less."""
    return _KERNELS in sys.modules


class BulkFile:
    """A SequenceFile on disk, opened to be read in spans; a context manager. Raises FormatError as the reader does."""

    def __init__(self, path: Path, *, span_size: int = SPAN_SIZE) -> None:
        self.path = path
        with SequenceFileReader(path) as reader:
            self.key_class, self.value_class = reader.key_class, reader.value_class
            self.compression, self.sync = reader.compression, reader.sync
            self._codec, self._version = reader.codec, reader.version
            self._start = reader.header_end
        self.size = path.stat().st_size
        self._span_size = span_size
        self._sums: tuple[Bytes, int] | None = None

    @property
    def is_bulk(self) -> bool:
        """Whether kernels can read the file, and it is large enough for them."""
        known = self._version == _VERSION and (self.compression == NONE or self._codec == DEFAULT_CODEC)
        return known and self.size > self._start and (self.size >= WORTH_IT[self.compression] or kernels_loaded())

    def spans(self) -> list[Span]:
        """The file cut into spans, at least one, as Hadoop's FileInputFormat splits it.

        A rest of up to a tenth of a span goes with the last one. A file without markers (version 1) is one span.
        """
        cuts = [self._start]
        if self.sync and self.size > self._span_size:
            marker = SYNC_ESCAPE + self.sync
            with self.path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
                for goal in range(self._span_size, self.size, self._span_size):
                    if self.size - goal <= self._span_size / 10:
                        break
                    if goal <= cuts[-1]:
                        continue
                    found = data.find(marker, goal)
                    if found < 0:
                        break
                    cuts.append(found)
        return [Span(start, end) for start, end in pairwise([*cuts, self.size])]

    def rows(self, span: Span) -> Iterator[tuple[bytes, bytes]]:
        """The records of a span one by one, as SequenceFileReader gives them."""
        start = 0 if span.start == self._start else span.start
        end = None if span.end == self.size else span.end
        with SequenceFileReader(self.path, start=start, end=end) as reader:
            yield from reader

    def batch(self, span: Span) -> Batch | None:
        """The records of a span; None if the kernels can't read it, or something in it looks wrong."""
        if not self.is_bulk:
            return None
        from minutch.tables import spans_reading as columns_reading

        sums, chunk = self._read_sums()
        unit = math.lcm(mmap.ALLOCATIONGRANULARITY, chunk)
        base = span.start // unit * unit
        end = min(self.size, -(-span.end // chunk) * chunk)
        data = self._map(base, end)
        local = Span(span.start - base, span.end - base)
        if not columns_reading.sums_match(data, local, sums[base // chunk * 4 :], chunk):
            return None
        read: Callable[[Bytes, Span, bytes], Batch | None] = columns_reading.READERS[self.compression]
        return read(data, local, self.sync)

    def _read_sums(self) -> tuple[Bytes, int]:
        """The sums in the file's sibling (empty if there is none) and the bytes per sum."""
        if self._sums is None:
            sibling = crc_path(self.path)
            sums = np.fromfile(sibling, np.uint8) if sibling.exists() else np.empty(0, np.uint8)
            chunk = int.from_bytes(sums[4:HEADER_SIZE].tobytes(), "big") or BYTES_PER_CHECKSUM
            self._sums = sums[HEADER_SIZE:], chunk
        return self._sums

    def _map(self, start: int, end: int) -> Bytes:
        """A stretch of the file in memory. Each span has a map of its own, which goes away with its last record."""
        with self.path.open("rb") as file:
            mapped = mmap.mmap(file.fileno(), end - start, access=mmap.ACCESS_READ, offset=start)
        return np.frombuffer(mapped, np.uint8)
