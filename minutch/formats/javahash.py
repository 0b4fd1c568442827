"""Java's hash codes, the order they give a HashMap, Hadoop's partitioner, and Java's printing of numbers and dates."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

_FLOAT = struct.Struct(">f")


def int32(value: int) -> int:
    """`value` cut to a signed 32-bit number."""
    return (value + 0x8000_0000 & 0xFFFF_FFFF) - 0x8000_0000


def float32(value: float) -> float:
    """`value` rounded to a 32-bit float."""
    try:
        return float(_FLOAT.unpack(_FLOAT.pack(value))[0])
    except OverflowError:
        return float("inf") if value > 0 else float("-inf")


def string_hash(value: str) -> int:
    """java.lang.String.hashCode over UTF-16 units."""
    result = 0
    units = value.encode("utf-16-be", "surrogatepass")
    for i in range(0, len(units), 2):
        result = result * 31 + (units[i] << 8 | units[i + 1]) & 0xFFFF_FFFF
    return int32(result)


def text_hash(data: bytes) -> int:
    """WritableComparator.hashBytes: Text.hashCode over its bytes."""
    result = 1
    for b in data:
        result = result * 31 + (b - 256 if b > 127 else b) & 0xFFFF_FFFF
    return int32(result)


def partition(key: bytes, count: int) -> int:
    """HashPartitioner: the partition of a Text key out of `count`."""
    return (text_hash(key) & 0x7FFF_FFFF) % count


def hash_map_order(hashes: Sequence[int], capacity: int = 16) -> list[int]:
    """Indexes of `hashes`, given in insertion order, in the order in which a Java HashMap iterates over them."""
    while len(hashes) > capacity * 0.75:
        capacity *= 2
    mask = capacity - 1
    buckets = []
    for i, value in enumerate(hashes):
        unsigned = value & 0xFFFF_FFFF
        buckets.append(((unsigned ^ unsigned >> 16) & mask, i))
    return [i for _, i in sorted(buckets)]


def float_to_string(value: float) -> str:
    """Float.toString of JDK 17."""
    for digits in range(1, 10):
        text = f"{value:.{digits}g}"
        if float32(float(text)) == value:
            return repr(float(text))
    return repr(value)


def double_to_string(value: float) -> str:
    """Double.toString of JDK 17."""
    return repr(value)


def date_to_string(ms: int) -> str:
    """Date.toString in UTC of `ms` since the epoch."""
    date = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(milliseconds=ms)
    return f"{date:%a %b %d %H:%M:%S} UTC {date:%Y}"
