"""Reads and writes the parts of old records: short strings, gzip'd bytes, properties, links.

    string       unsigned short length in bytes, modified UTF-8; at most 21,845 characters, longer
                 ones are cut off
    gzip'd       int length, a gzip stream of that length
    properties   int count, (string name, string value)*
    Outlink      string URL, string anchor

The page says only `java.util.Properties` and `compressed byte array`; how these lie is Nutch's
source of March 2005: net.nutch.io.UTF8, net.nutch.io.WritableUtils, net.nutch.protocol.Content.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, Self, TypeVar

from minutch.errors import FormatError
from minutch.hadoop.formats.javaio import DataInput, DataOutput
from minutch.hadoop.formats.writables import Writable
from minutch.records.strings import inflate

LONGEST: Final = 0xFFFF // 3
"""UTF-16 units of the longest string (net.nutch.io.UTF8)."""
_GZIP_HEAD: Final = b"\x1f\x8b\x08" + bytes(7)
"""The header of java.util.zip.GZIPOutputStream: no name, no time, no system."""

T = TypeVar("T")


def short_enough(text: str) -> str:
    """Cuts a text to the length that a string may have."""
    if len(text) * 2 <= LONGEST:
        return text
    return text.encode("utf-16-le", "surrogatepass")[: 2 * LONGEST].decode(
        "utf-16-le", "surrogatepass"
    )


def write_string(out: DataOutput, text: str) -> None:
    """A string, cut off where it is too long, as Nutch did."""
    out.write_utf8(short_enough(text))


def read_gzipped(data: DataInput) -> bytes:
    """Returns the bytes in a gzip stream with its length before it."""
    start = data.pos
    return inflate(data.read_bytes(data.read_int()), start, wbits=31)


def write_gzipped(out: DataOutput, content: bytes) -> None:
    """Bytes as a gzip stream with its length before it."""
    deflate = zlib.compressobj(wbits=-15)
    packed = deflate.compress(content) + deflate.flush()
    out.write_int(len(_GZIP_HEAD) + len(packed) + 8)
    out.write_bytes(
        _GZIP_HEAD + packed + struct.pack("<II", zlib.crc32(content), len(content) & 0xFFFF_FFFF)
    )


def read_list(data: DataInput, what: str, least: int, read: Callable[[DataInput], T]) -> list[T]:
    """Returns an int and so many values of at least `least` bytes. Raises FormatError for numbers
    that can't be.
    """
    start = data.pos
    count = data.read_int()
    if not 0 <= count <= data.remaining // least:
        raise FormatError(
            f"impossible number of {what}",
            offset=start,
            expected=f"0 to {data.remaining // least}",
            found=count,
        )
    return [read(data) for _ in range(count)]


def read_properties(data: DataInput) -> dict[str, str]:
    """java.util.Properties."""
    return dict(
        read_list(data, "properties", 4, lambda source: (source.read_utf8(), source.read_utf8()))
    )


def write_properties(out: DataOutput, properties: dict[str, str]) -> None:
    """java.util.Properties, in the order in which they are."""
    out.write_int(len(properties))
    for name, value in properties.items():
        write_string(out, name)
        write_string(out, value)


def properties_to_string(properties: dict[str, str]) -> str:
    """Hashtable.toString."""
    return "{" + ", ".join(f"{name}={value}" for name, value in properties.items()) + "}"


@dataclass(slots=True)
class Outlink(Writable):
    """net.nutch.fetcher.Outlink, later net.nutch.parse.Outlink: a link found on a page."""

    class_name = "net.nutch.fetcher.Outlink"
    to_url: str
    anchor: str = ""

    @classmethod
    def read(cls, data: DataInput) -> Self:
        return cls(data.read_utf8(), data.read_utf8())

    def write(self, out: DataOutput) -> None:
        write_string(out, self.to_url)
        write_string(out, self.anchor)

    def __str__(self) -> str:
        return f"toUrl: {self.to_url} anchor: {self.anchor}"


def read_outlinks(data: DataInput) -> list[Outlink]:
    """Returns an int and so many links."""
    return read_list(data, "outlinks", 4, Outlink.read)


def write_outlinks(out: DataOutput, outlinks: list[Outlink]) -> None:
    """An int and so many links."""
    out.write_int(len(outlinks))
    for outlink in outlinks:
        outlink.write(out)


def outlinks_to_string(outlinks: list[Outlink]) -> str:
    """Returns the lines of ParseData.toString."""
    return f"Outlinks: {len(outlinks)}\n" + "".join(
        f"  outlink: {outlink}\n" for outlink in outlinks
    )


def read_up_to(data: DataInput, name: str, newest: int) -> int:
    """Returns a version byte from 1 to `newest`. Raises FormatError."""
    start = data.pos
    version = data.read_byte()
    if not 1 <= version <= newest:
        raise FormatError(
            f"version of {name} that minutch does not know",
            offset=start,
            expected=f"1 to {newest}",
            found=version,
        )
    return version
