"""MapFile: a directory with a sorted SequenceFile `data` and its `index`; the order of keys, and
the sort of records that come in another.

    data     a SequenceFile of keys in ascending order (equal keys may repeat) and values
    index    a SequenceFile, always BLOCK-compressed: some of the keys -> LongWritable(position in
             data)

A key goes into the index if it is the first, or if at least `interval` (128,
`io.map.index.interval`) keys came since the last one that did and the data file has grown: so in a
block-compressed file an entry points at a block's marker.

Keys are handled as serialized bytes, and ordered as the WritableComparators of their classes do:
Text by its UTF-8 bytes, numbers by value, bytes as unsigned; other classes byte by byte. Records
are sorted with bounded memory: runs on disk, then one merge; those with equal keys stay in the
order in which they came.
"""

from __future__ import annotations

import logging
import math
import struct
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack
from heapq import merge
from operator import itemgetter
from pathlib import Path
from typing import Any, Self

from minutch.errors import FormatError
from minutch.hadoop.formats.checksum import WholeOrNothing, crc_path, remove_sums
from minutch.hadoop.formats.compress import DEFAULT_CODEC
from minutch.hadoop.formats.javaio import DataInput
from minutch.hadoop.formats.sequencefile import SequenceFileReader
from minutch.hadoop.formats.sequencewriter import BLOCK, NONE, TEXT, SequenceFileWriter
from minutch.hadoop.formats.writables import Writable
from minutch.paths import as_path
from minutch.scratch import scratch

_IO = "org.apache.hadoop.io."
LONG, NULL = _IO + "LongWritable", _IO + "NullWritable"

Key = Any
"""A sort key: of the same type for all keys of a class."""
log = logging.getLogger(__name__)

DATA, INDEX = "data", "index"
INDEX_INTERVAL = 128

_LONG = struct.Struct(">q")
Record = tuple[bytes, bytes]

_NEAR = 64 * 1024
"""Bytes that are read to find a record, not cut in half once more: markers are 100 KB apart."""

RUN_BYTES = 128 * 1024 * 1024
"""About how many bytes of keys and values are sorted at once."""

_first = itemgetter(0)


def _text(key: bytes) -> bytes:
    if key and key[0] < 0x80 and key[0] == len(key) - 1:  # the length is one byte
        return key[1:]
    return DataInput(key).read_text_bytes()


def _number(read: Callable[[DataInput], int]) -> Callable[[bytes], int]:
    return lambda key: read(DataInput(key))


def _float(layout: str) -> Callable[[bytes], tuple[bool, float, bool]]:
    """Float.compare: NaN is the largest, -0.0 lies below 0.0."""
    unpack = struct.Struct(layout).unpack

    def key(data: bytes) -> tuple[bool, float, bool]:
        value = float(unpack(data)[0])
        nan = math.isnan(value)
        # NaN compares to nothing: it is 0.0 here, behind all others by the first member.
        return nan, 0.0 if nan else value, math.copysign(1.0, value) > 0

    return key


_SORT_KEYS: dict[str, Callable[[bytes], Key]] = {
    TEXT: _text,
    # Behind two bytes of length, behind four for BytesWritable.
    _IO + "UTF8": lambda key: key[2:],
    _IO + "BytesWritable": lambda key: key[4:],
    _IO + "MD5Hash": lambda key: key,
    _IO + "BooleanWritable": _number(DataInput.read_boolean),
    _IO + "ByteWritable": _number(DataInput.read_byte),
    _IO + "ShortWritable": _number(DataInput.read_short),
    _IO + "IntWritable": _number(DataInput.read_int),
    LONG: _number(DataInput.read_long),
    _IO + "VIntWritable": _number(DataInput.read_vint),
    _IO + "VLongWritable": _number(DataInput.read_vlong),
    _IO + "FloatWritable": _float(">f"),
    _IO + "DoubleWritable": _float(">d"),
    NULL: lambda key: 0,
}
_SORT_KEYS |= {
    "UTF8": _SORT_KEYS[_IO + "UTF8"],
    "long": _SORT_KEYS[LONG],
}  # as the oldest files name them


def sort_key(class_name: str) -> Callable[[bytes], Key]:
    """Returns the function that maps serialized keys of a class to what they are ordered by.

    Keys of a class without an order of its own are compared byte by byte.
    """
    return _SORT_KEYS.get(class_name, lambda key: key)


class _Index:
    """The keys of an index in the order of the file, and where they lie."""

    def __init__(self, sort: Callable[[bytes], Key]) -> None:
        self._sort = sort
        self.keys: list[Key] = []
        self.raw: list[bytes] = []
        self.positions: list[int] = []

    def add(self, key: bytes, position: int) -> None:
        if self.positions and position == self.positions[-1]:
            return  # older Hadoop wrote several entries for one block
        self.keys.append(self._sort(key))
        self.raw.append(key)
        self.positions.append(position)


class MapFileReader:
    """Reads a MapFile. A key is found by its data alone, between two of its markers: the index has
    a key for every 128 records, and all of it would have to be read. It is loaded for who asks for
    it; a lost one is made from the data.
    """

    def __init__(self, directory: str | Path, *, verify: bool = True) -> None:
        self.path = as_path(directory)
        self._verify = verify
        self.data = SequenceFileReader(self.path / DATA, verify=verify)
        self.key_class, self.value_class = self.data.key_class, self.data.value_class
        self.sort_key = sort_key(self.key_class)
        self._loaded: _Index | None = None
        self._firsts: dict[int, tuple[int, Key] | None] = {}

    @property
    def _index(self) -> _Index:
        if self._loaded is None:
            self._loaded = self._load_index()
        return self._loaded

    def _load_index(self) -> _Index:
        path = self.path / INDEX
        index = _Index(self.sort_key)
        if not path.exists():
            log.warning("%s has no index: reading all of its data to make one", self.path)
            position = self.data.position
            self.data.seek(self.data.header_end)
            for key, at in _index_entries(self.data, INDEX_INTERVAL):
                index.add(key, at)
            self.data.seek(position)
            return index
        with SequenceFileReader(path, verify=self._verify) as reader:
            for key, value in reader:
                if len(value) != _LONG.size:
                    raise FormatError(
                        "wrong index entry",
                        path=path,
                        expected="a LongWritable",
                        found=f"{len(value)} bytes",
                    )
                index.add(key, _LONG.unpack(value)[0])
        # A search by halves in an index out of order would miss records, silently.
        for earlier, later in zip(index.keys, index.keys[1:], strict=False):
            if later < earlier:
                raise FormatError(
                    "index out of order",
                    path=path,
                    expected=f"a key after {earlier!r}",
                    found=later,
                )
        return index

    def index_entries(self) -> list[tuple[bytes, int]]:
        """Returns the index: serialized keys and positions in the data file."""
        return list(zip(self._index.raw, self._index.positions, strict=True))

    def __iter__(self) -> Iterator[tuple[bytes, bytes]]:
        """Returns the records from where the reader stands, first the beginning, in key order."""
        return iter(self.data)

    def records(self) -> Iterator[tuple[Writable, Writable]]:
        return self.data.records()

    def reset(self) -> None:
        """Goes back to the first record."""
        self.data.seek(self.data.header_end)

    def scan(self, key: bytes) -> Iterator[tuple[bytes, bytes]]:
        """Yields the records from the first one whose key is `key` or comes after it."""
        sought = self.sort_key(key)
        self.data.seek(self._before(sought))
        records = iter(self.data)
        sort = self.sort_key
        for record in records:
            if sort(record[0]) >= sought:
                yield record
                break
        yield from records

    def _before(self, sought: Key) -> int:
        """Returns a position at or before the first record from `sought` on."""
        # Version 1 has no markers: from the start.
        low, high = self.data.header_end, self.data.size if self.data.sync else 0
        while high - low > _NEAR:
            middle = (low + high) // 2
            if middle not in self._firsts:
                # Kept: look-ups of many keys meet the same middles.
                self._firsts[middle] = self._first_from(middle)
            first = self._firsts[middle]
            if first is None or first[1] >= sought:  # records with an equal key may begin before it
                high = middle
            else:
                low = first[0]
        return low

    def _first_from(self, position: int) -> tuple[int, Key] | None:
        """Returns where the first marker from `position` on lies, and the key behind it."""
        self.data.sync_to(position)
        at = self.data.position
        return next(((at, self.sort_key(key)) for key, _ in self.data.stored()), None)

    def seek(self, key: bytes) -> bool:
        """Returns whether there is a record with this key."""
        return self.get(key) is not None

    def get(self, key: bytes) -> bytes | None:
        """Returns the value of the first record with this key, or None."""
        for found, value in self.scan(key):
            # `scan` begins at the first one not less: that is the key, or it is not there.
            return value if self.sort_key(found) == self.sort_key(key) else None
        return None

    def close(self) -> None:
        self.data.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class MapFileWriter(WholeOrNothing):
    """Writes a MapFile into a directory, which is made if need be. Keys must come in ascending
    order.

    Leaving the `with` block by an error removes the unfinished files. `sync` and `index_sync` give
    the markers.
    """

    def __init__(  # noqa: PLR0913 - what a file is made of
        self,
        directory: str | Path,
        key_class: str,
        value_class: str,
        *,
        compression: str = NONE,
        codec: str = DEFAULT_CODEC,
        interval: int = INDEX_INTERVAL,
        metadata: Mapping[str, str] | None = None,
        sync: bytes | None = None,
        index_sync: bytes | None = None,
    ) -> None:
        self.path = as_path(directory)
        self.path.mkdir(parents=True, exist_ok=True)
        self.key_class, self.value_class = key_class, value_class
        with ExitStack() as stack:
            self.data = SequenceFileWriter(
                self.path / DATA,
                key_class,
                value_class,
                compression=compression,
                codec=codec,
                metadata=metadata,
                sync=sync,
            )
            # An index that can't be opened must not leave half a MapFile.
            stack.callback(self.data.discard)
            self._index = SequenceFileWriter(
                self.path / INDEX,
                key_class,
                LONG,
                compression=BLOCK,
                metadata=metadata,
                sync=index_sync,
            )
            stack.pop_all()
        self._sort = sort_key(key_class)
        self._last: Key = None
        self._choice = _IndexChoice(interval)

    def append(self, key: Writable, value: Writable) -> None:
        """Appends a record; FormatError if its key is out of order or of another class."""
        self._check(key.to_bytes(), str(key))
        self.data.append(key, value)

    def append_raw(self, key: bytes, value: bytes, *, compressed: bool = False) -> None:
        """Appends a record of serialized bytes; FormatError if its key is out of order.

        `compressed` as for SequenceFileWriter.append_raw.
        """
        self._check(key, key)
        self.data.append_raw(key, value, compressed=compressed)

    def _check(self, key: bytes, shown: object) -> None:
        sort = self._sort(key)
        if self._choice.count and sort < self._last:  # equal keys may repeat
            raise FormatError(
                "key out of order",
                path=self.path / DATA,
                expected=f"a key after {self._last!r}",
                found=repr(shown),
            )
        self._last = sort
        position = self.data.position
        if self._choice.take(position):
            self._index.append_raw(key, _LONG.pack(position))

    def close(self) -> None:
        self.data.close()
        self._index.close()

    def discard(self) -> None:
        """Closes and removes the unfinished files."""
        self.data.discard()
        self._index.discard()


class _IndexChoice:
    """The rule that decides which records get an index entry (MapFile.Writer.append)."""

    def __init__(self, interval: int) -> None:
        self.count = 0
        self._interval = interval
        self._due = 0
        self._last_position = -1

    def take(self, position: int) -> bool:
        """Counts a record that will stand at `position`; True if the index gets its key."""
        taken = self.count >= self._due and position > self._last_position
        if taken:
            self._due = self.count + self._interval
            self._last_position = position
        self.count += 1
        return taken


def _index_entries(data: SequenceFileReader, interval: int) -> Iterator[tuple[bytes, int]]:
    """Yields the index entries that a writer would have made from `data.position` on."""
    choice = _IndexChoice(interval)
    position = after = data.position
    for key, _ in data:
        if data.position != after:
            # In a file of blocks, the reader stands behind the block from its first record on.
            position, after = after, data.position
        if choice.take(position):
            yield key, position


def rebuild_index(directory: str | Path, *, interval: int = INDEX_INTERVAL) -> int:
    """Rewrites the index of a MapFile from its data (MapFile.fix); returns the number of its
    entries.

    Raises FormatError if the data is damaged or out of order; an existing index stays as it is
    then.
    """
    directory = as_path(directory)
    fresh = directory / f"{INDEX}.new"
    count = 0
    with (
        SequenceFileReader(directory / DATA) as data,
        SequenceFileWriter(fresh, data.key_class, LONG, compression=BLOCK) as index,
    ):
        last: Key = None
        sort = sort_key(data.key_class)
        for count, (key, position) in enumerate(_index_entries(data, interval), 1):
            if count > 1 and sort(key) < last:
                raise FormatError(
                    "keys out of order", path=directory / DATA, offset=position, found=key
                )
            last = sort(key)
            index.append_raw(key, _LONG.pack(position))
    # No sums for an instant, rather than those of the other index.
    remove_sums(directory / INDEX)
    fresh.replace(directory / INDEX)
    crc_path(fresh).replace(crc_path(directory / INDEX))
    return count


def sort_records(
    records: Iterable[Record],
    *,
    key: Callable[[bytes], bytes] | None = None,
    run_bytes: int = RUN_BYTES,
    directory: Path | None = None,
) -> Iterator[Record]:
    """Yields the records in the order of their keys, or of `key(serialized key)`.

    Runs go into a temporary folder in `directory` (default: the system's), which disappears when
    the iterator ends or is closed.
    """

    def order(record: Record) -> bytes:
        return record[0] if key is None else key(record[0])

    with ExitStack() as stack:
        run: list[Record] = []
        files: list[Path] = []
        folder: Path | None = None
        size = 0
        for record in records:
            run.append(record)
            size += len(record[0]) + len(record[1])
            if size >= run_bytes:
                if folder is None:
                    folder = stack.enter_context(scratch("sort", directory))
                files.append(_write_run(folder / f"run-{len(files)}", sorted(run, key=order)))
                run.clear()
                size = 0
        # Stable, and the last run comes last: equals stay in their order.
        run.sort(key=order)
        readers = [stack.enter_context(SequenceFileReader(file)) for file in files]
        yield from merge(*readers, run, key=order)


def _write_run(path: Path, records: Iterable[Record]) -> Path:
    with SequenceFileWriter(path, "", "") as writer:  # nobody asks a run for its classes
        for key, value in records:
            writer.append_raw(key, value)
    return path


def merge_records(sources: Iterable[Iterable[Record]]) -> Iterator[Record]:
    """Merges sources sorted by their keys' bytes; of equal keys, the earlier source's is first."""
    return merge(*sources, key=_first)
