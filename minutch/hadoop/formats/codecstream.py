"""Data compressed by a codec as it comes, for files that are written front to back: Hadoop's
CompressionOutputStream.

One stream a file, as Hadoop writes it; of Snappy and LZ4, which know blocks only, a block for so
many bytes.
"""

from __future__ import annotations

import bz2
import zlib
from collections.abc import Callable
from typing import Final, Protocol

from minutch.hadoop.formats.checksum import ChecksumWriter, WholeOrNothing
from minutch.hadoop.formats.compress import Codec

BLOCK: Final = 128 * 1024
"""Bytes of a block; less than the blocks that Hadoop's codecs take."""


class Packer(Protocol):
    """Compresses piece by piece."""

    def compress(self, data: bytes, /) -> bytes:
        """Takes data and returns the compressed bytes that are ready."""

    def flush(self) -> bytes:
        """Returns the remaining compressed bytes."""


class _Blocks:
    """A packer for codecs that take one block at a time."""

    def __init__(self, codec: Codec) -> None:
        self._codec, self._waiting = codec, bytearray()

    def compress(self, data: bytes, /) -> bytes:
        self._waiting += data
        out = bytearray()
        while len(self._waiting) >= BLOCK:
            out += self._codec.compress(bytes(self._waiting[:BLOCK]))
            del self._waiting[:BLOCK]
        return bytes(out)

    def flush(self) -> bytes:
        return self._codec.compress(bytes(self._waiting)) if self._waiting else b""


def _zstd() -> Packer:
    from minutch.hadoop.formats import zstd

    made: Packer = zstd.compressor()
    return made


_STREAMS: Final[dict[str, Callable[[], Packer]]] = {
    ".deflate": zlib.compressobj,
    ".gz": lambda: zlib.compressobj(wbits=31),
    ".bz2": bz2.BZ2Compressor,
    ".zst": _zstd,
}


def packer(codec: Codec) -> Packer:
    """Returns a compressor of one stream."""
    make = _STREAMS.get(codec.extension)
    return _Blocks(codec) if make is None else make()


class CompressedWriter(WholeOrNothing):
    """A new file that is compressed, and its sibling of checksums."""

    def __init__(self, file: ChecksumWriter, codec: Codec) -> None:
        self._file, self._packer = file, packer(codec)

    def write(self, data: bytes) -> None:
        """Appends."""
        self._file.write(self._packer.compress(data))

    def close(self) -> None:
        self._file.write(self._packer.flush())
        self._file.close()

    def discard(self) -> None:
        self._file.discard()
