"""Content codings undone within a limit: gzip, deflate (zlib-wrapped or raw), br and zstd.

Each decoder yields as much as it can and stops at `limit` bytes, so a bomb costs no more than a page. Damaged or cut
off data gives what came before the damage, as Nutch's GZIPUtils.unzipBestEffort does. (Nutch's own reading of
`deflate` knows only the raw form and gives nothing for the zlib-wrapped one, which is the standard.)
"""

from __future__ import annotations

import zlib
from collections.abc import Callable
from typing import Any, Final

CHUNK: Final = 16384
NO_LIMIT: Final = 1 << 62
_GZIP_MAGIC: Final = b"\x1f\x8b"


def _before_damage(stream: Any, data: bytes, limit: int) -> bytes:
    """What comes out of the rest of a stream before the byte that is wrong, be it the last one of a checksum."""
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


def _inflate(data: bytes, limit: int, window: int) -> bytes:
    """A zlib, raw deflate or (multi-member) gzip stream, as far as it goes."""
    pieces: list[bytes] = []
    size = 0
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
            break
        data = stream.unused_data if stream.eof else b""
        if window <= zlib.MAX_WBITS or not data.startswith(_GZIP_MAGIC):
            break
    return b"".join(pieces)


def gunzip(data: bytes, limit: int) -> bytes:
    """gzip and x-gzip; data that is not gzip at all is taken as it is."""
    return _inflate(data, limit, zlib.MAX_WBITS | 16) if data.startswith(_GZIP_MAGIC) else data[:limit]


def undeflate(data: bytes, limit: int) -> bytes:
    """deflate: zlib's wrapping (RFC 9110) or none (what some servers send)."""
    return _inflate(data, limit, zlib.MAX_WBITS) or _inflate(data, limit, -zlib.MAX_WBITS)


def unbrotli(data: bytes, limit: int) -> bytes:
    """br."""
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
        pass
    return b"".join(pieces)[:limit]


def unzstd(data: bytes, limit: int) -> bytes:
    """zstd (RFC 8878), windows up to 8 MiB as browsers take them."""
    from minutch.formats import zstd

    pieces: list[bytes] = []
    size = 0
    try:
        while data and size < limit:
            frame = zstd.decompressor(23)
            while size < limit and not frame.eof and (piece := frame.decompress(data, min(CHUNK * 4, limit - size))):
                pieces.append(piece)
                size += len(piece)
                data = b""
            data = frame.unused_data if frame.eof else b""
    except zstd.ZstdError:
        pass
    return b"".join(pieces)


DECODERS: Final[dict[str, Callable[[bytes, int], bytes]]] = {
    "gzip": gunzip,
    "x-gzip": gunzip,
    "deflate": undeflate,
    "br": unbrotli,
    "zstd": unzstd,
}
_MAX_CODINGS: Final = 4


def decode(data: bytes, codings: str | None, limit: int) -> bytes:
    """Undo the codings of a Content-Encoding header, last one first; an unknown one ends it.

    `limit` in bytes, negative for none.
    """
    if not codings or not data:
        return data
    bound = NO_LIMIT if limit < 0 else limit
    names = [name.strip().lower() for name in codings.split(",") if name.strip()]
    for name in reversed(names[-_MAX_CODINGS:]):
        decoder = DECODERS.get(name)
        if decoder is None:
            break
        data = decoder(data, bound)
    return data
