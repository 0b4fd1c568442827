"""Metadata edited as bytes: a serialized MapWritable taken apart, changed and put together without
its values.

    byte n | n × (byte id | writeUTF class name) | int size | size × (byte id | key | byte id |
    value)

Most of a CrawlDb's metadata is only carried. Where an update has to merge two maps or drop a key,
building every value as an object would cost more than the rest of the update; here entries stay the
bytes they were, and only the order (Java's HashMap) and the class table are worked out. The results
are those of `MapWritable`, which a property test holds against this module.

Source: org.apache.hadoop.io.MapWritable and AbstractMapWritable (put, putAll, remove, write; a
class that was once put stays in the table, and the map's capacity never shrinks).
"""

from __future__ import annotations

import struct
from functools import lru_cache
from typing import TYPE_CHECKING

from minutch.errors import FormatError, TruncatedError
from minutch.hadoop.formats.javahash import hash_map_order, text_hash
from minutch.hadoop.formats.javaio import DataInput, DataOutput
from minutch.hadoop.formats.writables import PREDEFINED_CLASSES, Writable, lookup

if TYPE_CHECKING:
    import polars as pl


_SIZE = struct.Struct(">i")
_NAME_LENGTH = struct.Struct(">H")
_TEXT = next(i & 0xFF for i, name in PREDEFINED_CLASSES.items() if name.endswith(".Text"))
_FIXED_SIZES = {
    i & 0xFF: {
        "IntWritable": 4,
        "LongWritable": 8,
        "FloatWritable": 4,
        "DoubleWritable": 8,
        "NullWritable": 0,
    }.get(name.rpartition(".")[2])
    for i, name in PREDEFINED_CLASSES.items()
}
_NAMES = {i & 0xFF: name for i, name in PREDEFINED_CLASSES.items()}
_CAPACITY, _LOAD_FACTOR = 16, 0.75  # of a new java.util.HashMap
_MAX_ONE_BYTE = 0x7F  # lengths up to this are their own VInt


def text_key(name: str) -> bytes:
    """Returns the entry key (class id and value) of the Text `name`."""
    out = DataOutput()
    out.write_byte(_TEXT - 0x100)
    out.write_text(name)
    return bytes(out.buf)


def _header(data: bytes) -> tuple[list[bytes], int, int]:
    """Returns the names of the class table (as writeUTF), the number of entries, their start."""
    classes, pos = [], 1
    for _ in range(data[0]):
        end = pos + 3 + _NAME_LENGTH.unpack_from(data, pos + 1)[0]
        classes.append(data[pos + 1 : end])
        pos = end
    return classes, _SIZE.unpack_from(data, pos)[0], pos + _SIZE.size


def _skip(data: bytes, pos: int, classes: list[bytes]) -> int:
    """Returns the position after the id byte and value at `pos`."""
    class_id = data[pos]
    if class_id == _TEXT and data[pos + 1] <= _MAX_ONE_BYTE:
        return pos + 2 + data[pos + 1]
    size = _FIXED_SIZES.get(class_id)
    if size is not None:
        return pos + 1 + size
    # A list of values met before saved 5 of these 12 µs where all values were equal, and cost 4
    # where they were not; shared by the threads of a job, it grew without end.
    source = DataInput(data, pos + 1)
    lookup(_class_name(class_id, classes)).read(source)
    return source.pos


def _class_name(class_id: int, classes: list[bytes]) -> str:
    """Returns the Java class of an id byte (0 to 255). Raises FormatError for an unknown id."""
    name = _NAMES.get(class_id)
    if name is not None:
        return name
    if not 1 <= class_id <= len(classes):
        raise FormatError("class id that the MapWritable's table lacks", found=class_id)
    return DataInput(classes[class_id - 1]).read_utf8()


class RawMap:
    """A MapWritable's entries as bytes, in order: id byte and value, for key and value alike."""

    __slots__ = ("_peak", "classes", "entries")

    def __init__(self, data: bytes | None = None) -> None:
        self.classes: list[bytes] = []  # the id is the position, from 1
        self.entries: dict[bytes, bytes] = {}
        if data is not None:
            self._read(data)
        self._peak = len(self.entries)  # decides the capacity of the HashMap

    def _read(self, data: bytes) -> None:
        try:
            self.classes, size, pos = _header(data)
            for _ in range(size):
                middle = _skip(data, pos, self.classes)
                end = _skip(data, middle, self.classes)
                self.entries[data[pos:middle]] = data[middle:end]
                pos = end
        except (IndexError, struct.error) as exc:
            raise TruncatedError("data ends inside metadata", offset=len(data)) from exc
        if pos != len(data):
            raise FormatError(
                "bytes left over after metadata", offset=pos, expected=pos, found=len(data)
            )

    def put_all(self, other: RawMap) -> None:
        """Puts every entry of `other`, in its order, as MapWritable.putAll does."""
        for key, value in other.entries.items():
            own_key = self._own(key, other)
            self.entries[own_key] = self._own(value, other)
        self._peak = max(self._peak, len(self.entries))

    def put_under(self, other: RawMap) -> None:
        """Puts every entry of `other`, then all of its own again: what is here stays."""
        for key, value in other.entries.items():
            self.entries.setdefault(self._own(key, other), self._own(value, other))
        self._peak = max(self._peak, len(self.entries))

    def _own(self, item: bytes, other: RawMap) -> bytes:
        """`item` of `other` with its class's id here; a class new to this map joins its table."""
        class_id = item[0]
        if class_id in _NAMES:
            return item
        name = other.classes[class_id - 1]
        if name not in self.classes:
            self.classes.append(name)
        own_id = self.classes.index(name) + 1  # ids are positions, from 1
        return item if own_id == class_id else bytes((own_id,)) + item[1:]

    def value(self, key: bytes) -> Writable | None:
        """Returns the value of `key`."""
        item = self.entries.get(key)
        return (
            None
            if item is None
            else lookup(_class_name(item[0], self.classes)).from_bytes(item[1:])
        )

    def to_bytes(self) -> bytes | None:
        """Returns the map's bytes in Java's order; None if it is empty, as CrawlDatum writes it."""
        if not self.entries:
            return None
        parts = [bytes((len(self.classes),))]
        parts += [bytes((i,)) + name for i, name in enumerate(self.classes, 1)]
        parts.append(_SIZE.pack(len(self.entries)))
        keys = list(self.entries)
        for i in _order(tuple(keys), tuple(self.classes), self._peak):
            parts += (keys[i], self.entries[keys[i]])
        return b"".join(parts)


@lru_cache(maxsize=4096)
def _order(keys: tuple[bytes, ...], classes: tuple[bytes, ...], peak: int) -> tuple[int, ...]:
    """Returns the order of `keys` in a Java HashMap that once held `peak` entries."""
    if len(keys) < 2:
        return tuple(range(len(keys)))
    hashes = []
    for key in keys:
        if key[0] == _TEXT:
            hashes.append(text_hash(DataInput(key[1:]).read_text_bytes()))
        else:
            name = _NAMES.get(key[0]) or DataInput(classes[key[0] - 1]).read_utf8()
            hashes.append(lookup(name).from_bytes(key[1:]).java_hash())
    capacity = _CAPACITY  # a HashMap never shrinks
    while peak > capacity * _LOAD_FACTOR:
        capacity *= 2
    return tuple(hash_map_order(hashes, capacity))


def merge(first: bytes | None, *others: bytes | None) -> bytes | None:
    """Returns a new map of `first`, then all entries of each of `others`; None is an empty map."""
    if not any(others):  # the bytes stay as they are
        return first
    result = RawMap(first)
    for other in others:
        if other is not None:
            result.put_all(RawMap(other))
    return result.to_bytes()


def with_defaults(new: bytes | None, old: bytes | None, *overlays: bytes | None) -> bytes | None:
    """`new`, the entries of `old` whose keys it lacks, then each of `overlays` put over them.

    The bytes are those of `merge(new, old, new, *overlays)`, without an `old` of `merge(new,
    *overlays)`.
    """
    if old is None or new is None:
        return merge(old or new, *overlays)
    result = RawMap(new)
    result.put_under(RawMap(old))
    for overlay in overlays:
        if overlay is not None:
            result.put_all(RawMap(overlay))
    return result.to_bytes()


def without(data: bytes | None, key: bytes) -> bytes | None:
    """Returns the map without the entry of `key` (see `text_key`), the others in their order."""
    if data is None or key not in data:  # a search for bytes spares most maps the walk
        return data
    try:
        classes, size, start = _header(data)
        pos = start
        for _ in range(size):
            middle = _skip(data, pos, classes)
            end = _skip(data, middle, classes)
            if end > len(data):  # slices would not notice
                raise IndexError(end)
            if data[pos:middle] == key:
                if size == 1:
                    return None
                return b"".join(
                    (data[: start - _SIZE.size], _SIZE.pack(size - 1), data[start:pos], data[end:])
                )
            pos = end
    except (IndexError, struct.error) as exc:
        raise TruncatedError("data ends inside metadata", offset=len(data)) from exc
    return data


def values_of(metadata: pl.Series, key: bytes) -> dict[int, Writable]:
    """Returns the values of `key` (see `text_key`) in a column of metadata: row number -> value."""
    # Bytes that may also stand in a value: `RawMap` decides.
    rows = metadata.bin.contains(key).fill_null(False).arg_true()
    found = zip(rows, metadata.gather(rows), strict=True)
    return {i: value for i, data in found if (value := RawMap(data).value(key)) is not None}
