"""Undoes content codings as streams: gzip, deflate (zlib-wrapped or raw), br and zstd.

    body ──16 KB──> last coding ──64 KB──> … ──64 KB──> first coding ──> at most `limit` bytes

A stage takes a slice and yields what it makes of that before it takes the next one, so stacked
codings never hold more than a few pieces, and whoever drives the stages may do other work between
two of them. The work is bounded by what was received and by the limit: each coding yields at most
`limit` bytes (a bomb costs no more than a page), and has at most MOST_MEMBERS members or frames.
(A decoder that is handed all that is left hands it back behind each frame: a megabyte of empty zstd
frames took 7 seconds, four codings on top of each other 22.)

Damaged or cut off data gives what came before the damage, as Nutch's GZIPUtils.unzipBestEffort
does, and says so; what only claims a coding is passed on as it is. (Nutch's own reading of
`deflate` knows only the raw form and gives nothing for the zlib-wrapped one, which is the standard:
RFC 9110, 8.4.1.2.)
"""

from __future__ import annotations

import asyncio
import re
import zlib
from collections.abc import Callable, Collection, Generator, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from itertools import chain, takewhile
from typing import Any, Final, cast

SLICE: Final = 16384
"""Bytes that a stage takes at a time."""
PIECE: Final = 65536
"""Bytes that it yields at most at a time."""
TURN: Final = 1 << 17
"""Bytes, about half a millisecond, after which the event loop has its turn."""
STEP: Final = 8192
"""What a step costs beside its bytes: a new zstd frame takes 20 µs."""
MOST_MEMBERS: Final = 1000
"""Of one stream. A member or frame costs 20 µs however empty it is; pages have one. A megabyte of
empty zstd frames held the event loop for 7 seconds.
"""
MOST_CODINGS: Final = 4
"""Of one answer: four on top of each other held the event loop for 22 seconds, before `TURN`."""
NO_LIMIT: Final = 1 << 62

_GZIP_MAGIC: Final = b"\x1f\x8b"
_ZSTD_MAGIC: Final = b"\x28\xb5\x2f\xfd"
_SKIPPABLE: Final = (b"\x2a\x4d\x18", range(0x50, 0x60))
"""The end and the first byte of a skippable frame's magic number (RFC 8878, 3.1.2)."""
_TRIAL: Final = 64
"""Bytes that are tried at once where only a trial tells what data is."""
_BROTLI_STEP: Final = 256
"""Bytes that are handed to brotli at once: of a call that fails nothing is to be had."""

Decoded = tuple[bytes, bool]
"""Data, and whether it is whole (or reached the limit) rather than damaged or cut off."""


@dataclass(slots=True)
class _State:
    """What the stages of one body say beside their pieces."""

    whole: bool = True
    """Neither damaged nor cut off until now."""


Stage = Callable[[Iterator[bytes], _State], Iterator[bytes]]
"""Makes pieces of slices; an empty piece says only that some work was done."""


def _first(source: Iterator[bytes]) -> Generator[bytes, None, bytes]:
    """Returns the first bytes that come."""
    for data in source:
        if data:
            return data
        yield data
    return b""


def _gunzip(source: Iterator[bytes], state: _State) -> Iterator[bytes]:
    first = yield from _first(source)
    slices = chain([first], source)
    is_gzip = first.startswith(_GZIP_MAGIC)
    yield from _inflate(slices, state, zlib.MAX_WBITS | 16) if is_gzip else slices


def _undeflate(source: Iterator[bytes], state: _State) -> Iterator[bytes]:
    first = yield from _first(source)
    slices = chain([first], source)
    if _is_zlib(first):
        yield from _inflate(slices, state, zlib.MAX_WBITS)
    # "Some non-conformant implementations" leave the zlib wrapper out (RFC 9110, 8.4.1.2).
    elif _is_deflate(first):
        yield from _inflate(slices, state, -zlib.MAX_WBITS)
    else:
        yield from slices


def _is_zlib(data: bytes) -> bool:
    try:
        zlib.decompressobj().decompress(data, 1)
    except zlib.error:
        return False
    return True


def _is_deflate(data: bytes) -> bool:
    """Tells whether data decodes as raw deflate, which has no magic number: plain text fails or
    ends before it has yielded as much as it took (`{}` is a whole stream).
    """
    stream, made = zlib.decompressobj(-zlib.MAX_WBITS), 0
    for at in range(0, len(data), _TRIAL):
        try:
            made += len(stream.decompress(data[at : at + _TRIAL], SLICE))
        except zlib.error:
            return False
        if stream.eof or made >= at + _TRIAL:
            return len(stream.unused_data) <= made
    return True


def _inflate(source: Iterator[bytes], state: _State, window: int) -> Iterator[bytes]:
    """Decodes a zlib, raw deflate or (multi-member) gzip stream up to its end or to damage."""
    stream, members = zlib.decompressobj(window), 1
    for received in source:
        data = received
        if not data:
            yield data
        while data:
            if stream.eof:
                if window <= zlib.MAX_WBITS or not data.startswith(_GZIP_MAGIC):
                    return  # what stands behind the end belongs to nothing
                if members == MOST_MEMBERS:
                    state.whole = False
                    return
                stream, members = zlib.decompressobj(window), members + 1
            before = stream.copy()
            try:
                piece = stream.decompress(data, PIECE)
            except zlib.error:
                state.whole = False
                yield from _before_damage(before, data)
                return
            yield piece
            data = stream.unused_data if stream.eof else stream.unconsumed_tail
            while len(piece) == PIECE and not (data or stream.eof):
                yield (piece := stream.decompress(b"", PIECE))  # what it still holds
    state.whole = state.whole and stream.eof


def _before_damage(stream: Any, data: bytes) -> Iterator[bytes]:
    """Decodes the rest of a stream up to the invalid byte, even if that is the last one of a
    checksum.
    """
    at = 0
    for step in (4096, 64, 1):
        while at < len(data) and not stream.eof:
            before = stream.copy()
            try:
                yield stream.decompress(data[at : at + step], PIECE)
                while rest := stream.unconsumed_tail:
                    yield stream.decompress(rest, PIECE)
            except zlib.error:
                stream = before
                break
            at += step


def _unbrotli(source: Iterator[bytes], state: _State) -> Iterator[bytes]:
    import brotli  # type: ignore[import-untyped]

    first = yield from _first(source)
    if not _is_brotli(first):
        yield first
        yield from source
        return
    stream, taken, size = brotli.Decompressor(), bytearray(), 0
    for step in _steps(chain([first], source), _BROTLI_STEP):
        try:
            for piece in _brotli_pieces(stream, step):
                size += len(piece)
                yield piece
        except brotli.error:
            # its decoder can't be copied: the stream is read anew, with the last bytes one by one
            yield from _behind(_brotli_bytewise(bytes(taken), step, state), size)
            return
        if stream.is_finished():
            return
        taken += step
    state.whole = False


def _is_brotli(data: bytes) -> bool:
    """Tells whether data yields anything as br, which has no magic number. Of 700 plain texts none
    did; 32 began with what is a whole stream of nothing.
    """
    import brotli

    stream, taken = brotli.Decompressor(), 0
    begin, rest = data[:_BROTLI_STEP], data[_BROTLI_STEP:]
    with suppress(brotli.error):
        for step in chain(_steps([begin], 1), _steps([rest], _BROTLI_STEP)):
            taken += len(step)
            if any(_brotli_pieces(stream, step)):
                return True
            if stream.is_finished():
                return taken == len(data)  # an empty page
    return False


def _brotli_bytewise(taken: bytes, step: bytes, state: _State) -> Iterator[bytes]:
    """Decodes a stream from its start: `taken`, and `step` up to its end or to the damage."""
    import brotli

    stream = brotli.Decompressor()
    for part in chain(_steps([taken], _BROTLI_STEP), _steps([step], 1)):
        try:
            yield from _brotli_pieces(stream, part)
        except brotli.error:
            break
        if stream.is_finished():
            return
    state.whole = False


def _brotli_pieces(stream: Any, data: bytes) -> Iterator[bytes]:
    piece = stream.process(data, output_buffer_limit=PIECE)
    yield piece
    while (piece or not stream.can_accept_more_data()) and not stream.is_finished():
        yield (piece := stream.process(b"", output_buffer_limit=PIECE))


def _behind(pieces: Iterable[bytes], size: int) -> Iterator[bytes]:
    """Leaves out the first `size` bytes; work that yields nothing is an empty piece."""
    for piece in pieces:
        yield piece[size:]
        size = max(0, size - len(piece))


def _unzstd(source: Iterator[bytes], state: _State) -> Iterator[bytes]:
    """Decodes frames (RFC 8878), with windows up to 8 MiB as in browsers."""
    from minutch.hadoop.formats import zstd

    first = yield from _first(source)
    if not _is_zstd(first):
        yield first
        yield from source
        return
    frame, frames = zstd.decompressor(23), 1
    for data in chain([first], source):
        rest = data
        if not data:
            yield data
        while rest or not (frame.eof or frame.needs_input):
            if frame.eof:
                if not _is_zstd(rest):
                    return
                if frames == MOST_MEMBERS:
                    state.whole = False
                    return
                frame, frames = zstd.decompressor(23), frames + 1
            try:
                yield frame.decompress(rest, PIECE)
            except zstd.ZstdError:
                state.whole = False
                return
            rest = frame.unused_data if frame.eof else b""
    state.whole = state.whole and frame.eof


def _is_zstd(data: bytes) -> bool:
    end, firsts = _SKIPPABLE
    return data.startswith(_ZSTD_MAGIC) or (data[1:4] == end and data[0] in firsts)


_STAGES: Final[dict[str, Stage]] = {
    "gzip": _gunzip,
    "x-gzip": _gunzip,
    "deflate": _undeflate,
    "br": _unbrotli,
    "zstd": _unzstd,
}
CODINGS: Final = frozenset(_STAGES)
ALWAYS: Final = frozenset({"gzip", "x-gzip", "deflate"})
"""Codings that Nutch reads whether they were offered or not."""


def offered(accept_encoding: str) -> frozenset[str]:
    """Returns the codings that an answer to this Accept-Encoding header is decoded of: a server
    that sends another one sends something that nobody asked for.
    """
    names = set()
    for item in accept_encoding.lower().split(","):
        name, _, weight = item.partition(";")
        if not re.fullmatch(r"\s*q\s*=\s*0(\.0*)?\s*", weight):
            names.add(name.strip())
    return CODINGS if "*" in names else ALWAYS | (CODINGS & names)


def decoding(
    data: bytes, codings: str | None, limit: int, known: Collection[str] = CODINGS
) -> Generator[None, None, Decoded]:
    """Undoes the codings of a Content-Encoding header, last one first; one that is not `known` ends
    it. Pauses after every millisecond or less; returns data and whether it is whole.

    `limit` in bytes, negative for none.
    """
    bound = NO_LIMIT if limit < 0 else limit
    state = _State()
    pieces = _steps([data], SLICE)
    names = [name.strip().lower() for name in (codings or "").split(",") if name.strip()]
    # The header lists codings in the order in which they were applied (RFC 9110, 8.4).
    names = list(takewhile(known.__contains__, reversed(names[-MOST_CODINGS:])))
    if not names or not data:
        return data, True
    for name in names:
        pieces = _within(_STAGES[name](pieces, state), bound, state)
    result: list[bytes] = []
    work = 0
    for piece in pieces:
        result.append(piece)
        work += len(piece) + STEP
        if work >= TURN:
            work = 0
            yield
    return b"".join(result), state.whole


def _within(pieces: Iterable[bytes], limit: int, state: _State) -> Iterator[bytes]:
    """At most `limit` bytes of a coding; where they end, nobody knows if it is whole."""
    for piece in pieces:
        yield piece[:limit]
        limit -= len(piece)
        if limit <= 0:
            state.whole = True
            return


def _steps(pieces: Iterable[bytes], size: int) -> Iterator[bytes]:
    """Cuts pieces into steps of at most `size` bytes."""
    for piece in pieces:
        for at in range(0, len(piece), size):
            yield piece[at : at + size]


def decode(
    data: bytes, codings: str | None, limit: int, known: Collection[str] = CODINGS
) -> Decoded:
    """Returns what `decoding` does, at once."""
    work = decoding(data, codings, limit, known)
    while (found := _turn(work)) is None:
        pass
    return found


async def decode_between(
    data: bytes, codings: str | None, limit: int, known: Collection[str] = CODINGS
) -> Decoded:
    """Returns what `decoding` does, letting the event loop have its turns."""
    work = decoding(data, codings, limit, known)
    while (found := _turn(work)) is None:
        await asyncio.sleep(0)
    return found


def _turn(work: Generator[None, None, Decoded]) -> Decoded | None:
    """Does the work of a turn; returns what came of all of it, once it is done."""
    try:
        next(work)
    except StopIteration as done:
        return cast(Decoded, done.value)
    return None
