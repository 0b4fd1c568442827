"""Hadoop's Writables: small immutable values that know their Java class, their bytes and their
`toString`.

Each class has `class_name` (the Java name found in file headers and class tables), `read`, `write`,
`java_hash` (Java's hashCode, which decides the order of a HashMap) and `__str__` (Java's toString).

    BytesWritable      int length, bytes
    MD5Hash            16 bytes
    ArrayWritable      int count, values (their class is not stored)
    GenericWritable    unsigned byte class index, value
    MapWritable        byte count of new classes, (byte id, utf8 class name)*,
                       int size, (byte class id, key, byte class id, value)*

Classes are found by Java name through `lookup` (see `registry`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, ClassVar, Self, TypeVar

from minutch.errors import FormatError
from minutch.hadoop.formats import javahash
from minutch.hadoop.formats.javaio import DataInput, DataOutput, encode_text
from minutch.hadoop.formats.registry import REGISTRY, W, Writable, lookup, register

__all__ = [
    "PREDEFINED_CLASSES", "REGISTRY", "UTF8", "ArrayWritable", "BooleanWritable", "ByteWritable",
    "BytesWritable", "DoubleWritable", "FloatWritable", "IntWritable", "LongWritable", "MD5Hash",
    "MapWritable", "NullWritable", "ShortWritable", "SortedMapWritable", "Text", "VIntWritable",
    "VLongWritable", "Writable", "lookup", "register",
]  # fmt: skip


K = TypeVar("K", bound=Writable)
# AbstractMapWritable: Byte.MIN_VALUE + 1 for ArrayWritable, and so on in this order.
_FIRST_ID = -127
_PREDEFINED = [
    "ArrayWritable", "BooleanWritable", "BytesWritable", "FloatWritable", "IntWritable",
    "LongWritable", "MapWritable", "MD5Hash", "NullWritable", "ObjectWritable", "SortedMapWritable",
    "Text", "TwoDArrayWritable", "VIntWritable", "VLongWritable",
]  # fmt: skip
_ID_TO_NAME = {_FIRST_ID + i: f"org.apache.hadoop.io.{name}" for i, name in enumerate(_PREDEFINED)}
_NAME_TO_ID = {name: i for i, name in _ID_TO_NAME.items()}
PREDEFINED_CLASSES = _ID_TO_NAME
"""Class ids (signed bytes) that every MapWritable knows without an entry in its class table."""
_MAX_NEW_CLASSES = 127  # ids are signed bytes, from 1 on


@register
@dataclass(frozen=True, slots=True)
class Text(Writable):
    """org.apache.hadoop.io.Text; bytes that are not UTF-8 are kept as lone surrogates."""

    class_name = "org.apache.hadoop.io.Text"
    value: str

    @classmethod
    def read(cls, data: DataInput) -> Self:
        return cls(data.read_text())

    def write(self, out: DataOutput) -> None:
        out.write_text(self.value)

    def java_hash(self) -> int:
        return javahash.text_hash(encode_text(self.value))

    def __str__(self) -> str:
        return self.value


@register
@dataclass(frozen=True, slots=True)
class UTF8(Writable):
    """org.apache.hadoop.io.UTF8, the string of Nutch's first years."""

    class_name = "org.apache.hadoop.io.UTF8"
    value: str

    @classmethod
    def read(cls, data: DataInput) -> Self:
        return cls(data.read_utf8())

    def write(self, out: DataOutput) -> None:
        out.write_utf8(self.value)

    def java_hash(self) -> int:
        # WritableComparator.hashBytes over the bytes, without their length.
        return javahash.text_hash(self.to_bytes()[2:])

    def __str__(self) -> str:
        return self.value


@register
@dataclass(frozen=True, slots=True)
class BytesWritable(Writable):
    """org.apache.hadoop.io.BytesWritable."""

    class_name = "org.apache.hadoop.io.BytesWritable"
    value: bytes

    @classmethod
    def read(cls, data: DataInput) -> Self:
        return cls(data.read_bytes(data.read_int()))

    def write(self, out: DataOutput) -> None:
        out.write_int(len(self.value))
        out.write_bytes(self.value)

    def java_hash(self) -> int:
        return javahash.text_hash(self.value)

    def __str__(self) -> str:
        return self.value.hex(" ")


class _Number(Writable):
    """A number that is its own hash code, cut to 32 bits."""

    __slots__ = ()
    value: int

    def java_hash(self) -> int:
        # LongWritable.hashCode: (int) value, unlike Long.hashCode.
        return javahash.int32(self.value)

    def __str__(self) -> str:
        return str(self.value)


def _number(name: str, method: str) -> Callable[[W], W]:
    """Class decorator: the Hadoop class `name` with the bytes of DataInput/Output's `method`."""
    read, write = getattr(DataInput, f"read_{method}"), getattr(DataOutput, f"write_{method}")

    def decorate(cls: Any) -> Any:
        cls.class_name = f"org.apache.hadoop.io.{name}"
        cls.read = classmethod(lambda c, data: c(read(data)))
        cls.write = lambda self, out: write(out, self.value)
        return register(cls)

    return decorate


@_number("ByteWritable", "byte")
@dataclass(frozen=True, slots=True)
class ByteWritable(_Number):
    """A signed byte."""

    value: int


@_number("ShortWritable", "short")
@dataclass(frozen=True, slots=True)
class ShortWritable(_Number):
    """A signed 16-bit number."""

    value: int


@_number("IntWritable", "int")
@dataclass(frozen=True, slots=True)
class IntWritable(_Number):
    """A signed 32-bit number."""

    value: int


@_number("LongWritable", "long")
@dataclass(frozen=True, slots=True)
class LongWritable(_Number):
    """A signed 64-bit number."""

    value: int


@_number("VIntWritable", "vint")
@dataclass(frozen=True, slots=True)
class VIntWritable(_Number):
    """A signed 32-bit number in one to five bytes."""

    value: int


@_number("VLongWritable", "vlong")
@dataclass(frozen=True, slots=True)
class VLongWritable(_Number):
    """A signed 64-bit number in one to nine bytes."""

    value: int


@_number("BooleanWritable", "boolean")
@dataclass(frozen=True, slots=True)
class BooleanWritable(Writable):
    """A boolean in one byte."""

    value: bool

    def java_hash(self) -> int:
        return 0 if self.value else 1  # BooleanWritable.hashCode

    def __str__(self) -> str:
        return "true" if self.value else "false"


@_number("FloatWritable", "float")
@dataclass(frozen=True, slots=True)
class FloatWritable(Writable):
    """A 32-bit float."""

    value: float

    def java_hash(self) -> int:
        # Float.floatToIntBits.
        return int.from_bytes(self.to_bytes(), "big", signed=True)

    def __str__(self) -> str:
        return javahash.float_to_string(self.value)


@_number("DoubleWritable", "double")
@dataclass(frozen=True, slots=True)
class DoubleWritable(Writable):
    """A 64-bit float."""

    value: float

    def java_hash(self) -> int:
        # DoubleWritable.hashCode: (int) Double.doubleToLongBits, the lower half.
        return int.from_bytes(self.to_bytes()[4:], "big", signed=True)

    def __str__(self) -> str:
        return javahash.double_to_string(self.value)


@register
@dataclass(frozen=True, slots=True)
class NullWritable(Writable):
    """Nothing, in no bytes."""

    class_name = "org.apache.hadoop.io.NullWritable"

    @classmethod
    def read(cls, data: DataInput) -> Self:
        return cls()

    def write(self, out: DataOutput) -> None:
        pass

    def __str__(self) -> str:
        return "(null)"


@register
@dataclass(frozen=True, slots=True)
class MD5Hash(Writable):
    """A digest of 16 bytes."""

    class_name = "org.apache.hadoop.io.MD5Hash"
    value: bytes

    @classmethod
    def read(cls, data: DataInput) -> Self:
        return cls(data.read_bytes(16))

    def write(self, out: DataOutput) -> None:
        out.write_bytes(self.value)

    def java_hash(self) -> int:
        # MD5Hash.quarterDigest.
        return int.from_bytes(self.value[:4], "big", signed=True)

    def __str__(self) -> str:
        return self.value.hex()


@dataclass(frozen=True, slots=True)
class ArrayWritable(Writable):
    """Values of one class, which the bytes don't name: `ArrayWritable.of(Text)` makes the type."""

    class_name = "org.apache.hadoop.io.ArrayWritable"
    value_class: ClassVar[type[Writable]]
    values: tuple[Writable, ...]

    @staticmethod
    def of(value_class: type[Writable]) -> type[ArrayWritable]:
        """Returns the type of ArrayWritables whose values are of `value_class`."""
        name = f"ArrayWritableOf{value_class.__name__}"
        return type(name, (ArrayWritable,), {"__slots__": (), "value_class": value_class})

    @classmethod
    def read(cls, data: DataInput) -> Self:
        if not hasattr(cls, "value_class"):
            raise FormatError(
                "an ArrayWritable does not store the class of its values", offset=data.pos
            )
        start = data.pos
        count = data.read_int()
        if count < 0:
            raise FormatError("negative length", offset=start, expected="0 or more", found=count)
        return cls(tuple(cls.value_class.read(data) for _ in range(count)))

    def write(self, out: DataOutput) -> None:
        out.write_int(len(self.values))
        for value in self.values:
            value.write(out)

    def __str__(self) -> str:
        inner = ", ".join(map(str, self.values))
        return f"ArrayWritable [valueClass=class {self.value_class.class_name}, values=[{inner}]]"


@lru_cache(maxsize=4096)
def _keys_order(keys: tuple[Writable, ...]) -> tuple[int, ...]:
    """Returns the order of a HashMap with these keys. Cached, since the metadata of pages has the
    same keys over and over.
    """
    return tuple(javahash.hash_map_order([key.java_hash() for key in keys]))


@register
class MapWritable(dict[Writable, Writable], Writable):
    """org.apache.hadoop.io.MapWritable: a map with a table of the classes that Hadoop has no id
    for.

    Entries are iterated in insertion order in Python and written in the order of Java's HashMap
    (`java_items`). As in Hadoop, a class once put in stays in the table (`new_classes`, in order of
    id from 1).
    """

    __slots__ = ("new_classes",)
    class_name = "org.apache.hadoop.io.MapWritable"

    def __init__(self, entries: Mapping[K, Writable] | None = None) -> None:
        super().__init__()
        self.new_classes: list[str] = (
            list(entries.new_classes) if isinstance(entries, MapWritable) else []
        )
        self.update(entries or {})

    def __setitem__(self, key: Writable, value: Writable) -> None:
        # MapWritable.put: key first, so its class has the lower id.
        self._learn(key.class_name)
        self._learn(value.class_name)
        super().__setitem__(key, value)

    def _learn(self, name: str) -> None:
        if name not in _NAME_TO_ID and name not in self.new_classes:
            if len(self.new_classes) == _MAX_NEW_CLASSES:
                raise FormatError(
                    "too many classes in one MapWritable", expected=f"at most {_MAX_NEW_CLASSES}"
                )
            self.new_classes.append(name)

    def update(self, entries: Mapping[K, Writable], /) -> None:  # type: ignore[override]
        """Puts all entries, through the class table."""
        for key, value in entries.items():
            self[key] = value

    def copy(self) -> MapWritable:
        """Returns what Hadoop's copy constructor makes: the entries in the order of writing."""
        result = MapWritable()
        result.new_classes = list(self.new_classes)
        for key, value in self.java_items():
            result[key] = value
        return result

    def get_text(self, key: str) -> str | None:
        """Returns the string form of the value of the Text key `key`."""
        value = self.get(Text(key))
        return None if value is None else str(value)

    def set_text(self, key: str, value: str) -> None:
        """Puts a Text under a Text key."""
        self[Text(key)] = Text(value)

    def java_items(self) -> Iterator[tuple[Writable, Writable]]:
        """Returns the entries in the order of Java's HashMap."""
        if len(self) < 2:
            return iter(self.items())
        entries = list(self.items())
        return (entries[i] for i in _keys_order(tuple(self)))

    @classmethod
    def read(cls, data: DataInput) -> Self:
        result = cls()
        names = dict(_ID_TO_NAME)
        # AbstractMapWritable.readFields: the table, then the entries.
        for _ in range(data.read_byte()):
            class_id = data.read_byte()
            names[class_id] = name = data.read_utf8()
            result.new_classes.append(name)
        start = data.pos
        size = data.read_int()
        if not 0 <= size <= data.remaining:  # an entry has two bytes at least
            raise FormatError("impossible size of a MapWritable", offset=start, found=size)
        for _ in range(size):
            key = _read_by_id(data, names)
            result[key] = _read_by_id(data, names)
        return result

    def write(self, out: DataOutput) -> None:
        own = self.new_classes
        out.write_byte(len(own))
        for class_id, name in enumerate(own, 1):
            out.write_byte(class_id)
            out.write_utf8(name)
        out.write_int(len(self))
        append = out.buf.append
        for entry in self.java_items():
            for value in entry:
                name = value.class_name
                append((_NAME_TO_ID.get(name) or own.index(name) + 1) & 0xFF)  # no id is 0
                value.write(out)

    def java_hash(self) -> int:
        return javahash.int32(
            # MapWritable.hashCode begins with 1, AbstractMap's with 0.
            1 + sum(key.java_hash() ^ value.java_hash() for key, value in self.items())
        )

    def __hash__(self) -> int:  # type: ignore[override]
        return self.java_hash()

    def __str__(self) -> str:
        return "{" + ", ".join(f"{key}={value}" for key, value in self.java_items()) + "}"


def _read_by_id(data: DataInput, names: dict[int, str]) -> Writable:
    start = data.pos
    class_id = data.read_byte()
    name = names.get(class_id)
    if name is None:
        raise FormatError(
            "class id that the MapWritable's table lacks", offset=start, found=class_id
        )
    return lookup(name, start).read(data)


@register
class SortedMapWritable(MapWritable):
    """org.apache.hadoop.io.SortedMapWritable: a MapWritable written in the order of its keys."""

    __slots__ = ()
    class_name = "org.apache.hadoop.io.SortedMapWritable"

    def java_items(self) -> Iterator[tuple[Writable, Writable]]:
        return iter(sorted(self.items(), key=lambda entry: _sort_key(entry[0])))


def _sort_key(key: Writable) -> Any:
    value = getattr(key, "value", b"")
    # Text compares bytes of UTF-8, not characters.
    return encode_text(value) if isinstance(value, str) else value
