"""Hadoop's WritableUtils for strings: with int length, or gzip'd, one or many; length -1: null."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Sequence

from minutch.errors import FormatError
from minutch.hadoop.formats.javaio import DataInput, DataOutput, decode_text, encode_text

_MAX_INFLATED = 1 << 30
"""Bytes that one compressed string may inflate to."""


def read_string(data: DataInput) -> str | None:
    """WritableUtils.readString."""
    size = data.read_int()
    return None if size == -1 else decode_text(data.read_bytes(size))


def write_string(out: DataOutput, value: str | None) -> None:
    """WritableUtils.writeString."""
    if value is None:
        out.write_int(-1)
    else:
        raw = encode_text(value)
        out.write_int(len(raw))
        out.write_bytes(raw)


def read_compressed_string(data: DataInput) -> str | None:
    """WritableUtils.readCompressedString: an int length, then gzip."""
    start = data.pos
    size = data.read_int()
    return None if size == -1 else decode_text(inflate(data.read_bytes(size), start, wbits=31))


def inflate(compressed: bytes, offset: int, wbits: int = 15) -> bytes:
    """One zlib (`wbits` 15) or gzip (31) stream that must be whole; FormatError otherwise."""
    decoder = zlib.decompressobj(wbits)
    try:
        result = decoder.decompress(compressed, _MAX_INFLATED)
    except zlib.error as exc:
        raise FormatError("damaged compressed string", offset=offset, found=str(exc)) from exc
    if not decoder.eof:
        raise FormatError(
            "compressed string without its end", offset=offset, found=f"{len(compressed)} bytes"
        )
    return result


def read_string_array(
    data: DataInput, read: Callable[[DataInput], str | None] = read_string
) -> list[str | None] | None:
    """WritableUtils.readStringArray, or readCompressedStringArray (`read_string`); null is None."""
    count = data.read_int()
    return None if count == -1 else [read(data) for _ in range(count)]


def write_string_array(out: DataOutput, values: Sequence[str | None] | None) -> None:
    """WritableUtils.writeStringArray."""
    if values is None:
        out.write_int(-1)
        return
    out.write_int(len(values))
    for value in values:
        write_string(out, value)


def args_to_string(args: Sequence[str | None] | None) -> str:
    """Formats arguments as ProtocolStatus and ParseStatus do."""
    if args is None:
        return ""
    if len(args) == 1:
        return f": {'null' if args[0] is None else args[0]}"
    return "".join(f", args[{i}]={arg}" for i, arg in enumerate(args) if arg is not None)
