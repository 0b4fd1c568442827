"""Decodes content codings within a limit: gzip, deflate (zlib-wrapped or raw), br and zstd.

Each decoder yields as much as it can and stops at `limit` bytes, so a bomb costs no more than a
page. Damaged or cut off data gives what came before the damage, as Nutch's
GZIPUtils.unzipBestEffort does, and says so. (Nutch's own reading of `deflate` knows only the raw
form and gives nothing for the zlib-wrapped one, which is the standard.)
"""

from __future__ import annotations

import zlib
from collections.abc import Callable
from typing import Any, Final

CHUNK: Final = 16384
NO_LIMIT: Final = 1 << 62
_GZIP_MAGIC: Final = b"\x1f\x8b"

Decoded = tuple[bytes, bool]
"""Data, and whether it is whole (or reached the limit) rather than damaged or cut off."""


def _before_damage(stream: Any, data: bytes, limit: int) -> bytes:
    """Decodes the rest of a stream up to the invalid byte, even if that is the last one of a
    checksum.
    """
    pieces: list[bytes] = []
    size = at = 0
    for step in (4096, 64, 1):
        while at < len(data) and size < limit and not stream.eof:
            before = stream.copy()
            try:
                piece = stream.decompress(data[at : at + step])
            except zlib.error:
                stream = before
                break
            pieces.append(piece)
            size += len(piece)
            at += step
    return b"".join(pieces)[:limit]


def _inflate(data: bytes, limit: int, window: int) -> Decoded:
    """Decodes a zlib, raw deflate or (multi-member) gzip stream up to its end or to damage."""
    pieces: list[bytes] = []
    size, whole = 0, False
    while data and size < limit:
        stream = zlib.decompressobj(window)
        try:
            while data and size < limit and not stream.eof:
                before, rest = stream.copy(), data
                piece = stream.decompress(data, min(limit - size, 1 << 20))
                pieces.append(piece)
                size += len(piece)
                data = stream.unconsumed_tail
        except zlib.error:
            pieces.append(_before_damage(before, rest, limit - size))
            return b"".join(pieces), False
        whole = stream.eof
        data = stream.unused_data if stream.eof else b""
        if window <= zlib.MAX_WBITS or not data.startswith(_GZIP_MAGIC):
            break
    return b"".join(pieces), whole or size >= limit


def gunzip(data: bytes, limit: int) -> Decoded:
    """Decodes gzip and x-gzip; data that is not gzip is returned unchanged."""
    return (
        _inflate(data, limit, zlib.MAX_WBITS | 16)
        if data.startswith(_GZIP_MAGIC)
        else (data[:limit], True)
    )


def undeflate(data: bytes, limit: int) -> Decoded:
    """Decodes deflate: with zlib's wrapping (RFC 9110) or without (as some servers send it)."""
    wrapped = _inflate(data, limit, zlib.MAX_WBITS)
    return wrapped if any(wrapped) else _inflate(data, limit, -zlib.MAX_WBITS)


def unbrotli(data: bytes, limit: int) -> Decoded:
    """Decodes br."""
    import brotli  # type: ignore[import-untyped]

    stream = brotli.Decompressor()
    pieces: list[bytes] = []
    size = 0
    try:
        piece = stream.process(data, output_buffer_limit=CHUNK)
        while piece or not stream.can_accept_more_data():
            pieces.append(piece)
            size += len(piece)
            if size >= limit or stream.is_finished():
                break
            piece = stream.process(b"", output_buffer_limit=CHUNK)
    except brotli.error:
        return b"".join(pieces)[:limit], False
    return b"".join(pieces)[:limit], stream.is_finished() or size >= limit


def unzstd(data: bytes, limit: int) -> Decoded:
    """Decodes zstd (RFC 8878), with windows up to 8 MiB as in browsers."""
    from minutch.hadoop.formats import zstd

    pieces: list[bytes] = []
    size, whole = 0, False
    try:
        while data and size < limit:
            frame = zstd.decompressor(23)
            while (
                size < limit
                and not frame.eof
                and (piece := frame.decompress(data, min(CHUNK * 4, limit - size)))
            ):
                pieces.append(piece)
                size += len(piece)
                data = b""
            whole = frame.eof
            data = frame.unused_data if frame.eof else b""
    except zstd.ZstdError:
        return b"".join(pieces), False
    return b"".join(pieces), whole or size >= limit


DECODERS: Final[dict[str, Callable[[bytes, int], Decoded]]] = {
    "gzip": gunzip,
    "x-gzip": gunzip,
    "deflate": undeflate,
    "br": unbrotli,
    "zstd": unzstd,
}
_MAX_CODINGS: Final = 4


def decode(data: bytes, codings: str | None, limit: int) -> Decoded:
    """Undoes the codings of a Content-Encoding header, last one first; an unknown one ends it.

    `limit` in bytes, negative for none.
    """
    if not codings or not data:
        return data, True
    bound = NO_LIMIT if limit < 0 else limit
    all_whole = True
    names = [name.strip().lower() for name in codings.split(",") if name.strip()]
    for name in reversed(names[-_MAX_CODINGS:]):
        decoder = DECODERS.get(name)
        if decoder is None:
            break
        data, whole = decoder(data, bound)
        all_whole = all_whole and whole
    return data, all_whole
