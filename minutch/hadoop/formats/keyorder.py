"""Orders the serialized keys of each class (the WritableComparators).

Text by its UTF-8 bytes, numbers by value, bytes as unsigned; other classes byte by byte.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Callable
from typing import Any

from minutch.hadoop.formats.javaio import DataInput

_IO = "org.apache.hadoop.io."
TEXT, LONG, NULL = _IO + "Text", _IO + "LongWritable", _IO + "NullWritable"

Key = Any
"""A sort key: of the same type for all keys of a class."""


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
        return nan, 0.0 if nan else value, math.copysign(1.0, value) > 0

    return key


_SORT_KEYS: dict[str, Callable[[bytes], Key]] = {
    TEXT: _text,
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
