"""Hadoop's compression codecs, by the names of their Java classes: on whole buffers, and as streams
for files that are written front to back (CompressionOutputStream).

    Default, Deflate    zlib stream                                     (RFC 1950)
    Gzip                gzip members; written with an empty header      (RFC 1952)
    BZip2               bzip2 streams
    ZStandard           zstd frames                                     (RFC 8878)
    Snappy, Lz4         blocks in BlockCompressorStream's framing:

    stream  :=  block*
    block   :=  int(size of the data)  chunk*           the chunks make up that size; size 0 ends
            the stream
    chunk   :=  int(size)  raw Snappy or LZ4 block

A block holds at most `buffer - overhead` bytes (buffer: `io.compression.codec.snappy.buffersize`,
256 KiB). A longer write becomes one block with a chunk per that many bytes, and the empty block
follows that closing the stream adds. Front to back a file has one stream, as Hadoop writes it; of
Snappy and LZ4, which know blocks only, a block for so many bytes.
"""

from __future__ import annotations

import bz2
import struct
import sys
import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from threading import local
from typing import TYPE_CHECKING, Any, Final, Protocol

from minutch.errors import FormatError, TruncatedError
from minutch.hadoop.formats.checksum import ChecksumWriter, WholeOrNothing

if TYPE_CHECKING:
    from minutch.kernels.clibrary import ZlibStreams


PACKAGE = "org.apache.hadoop.io.compress."
DEFAULT_CODEC = PACKAGE + "DefaultCodec"

_INT = struct.Struct(">i")
_BLOCK_BUFFER = 256 * 1024
_FAST_FROM = 1024  # bytes from which a faster library than zlib is worth its import
_INFLATED_AT_ONCE = 1 << 20  # bytes of a value for which a buffer is kept
_LIBDEFLATE_FROM = 8192  # bytes from which libdeflate's set-up is worth it
_GZIP_HEADER = bytes.fromhex("1f8b0800000000000000")


NO_LIMIT = sys.maxsize - 1
_kept = local()


@dataclass(frozen=True, slots=True)
class Codec:
    """A codec: `compress` and `decompress` take and give whole buffers; FormatError if the data is
    not the codec's.

    `unpack` may stop as soon as it has more bytes than its second argument says.
    """

    name: str
    extension: str
    compress: Callable[[bytes], bytes]
    unpack: Callable[[bytes, int], bytes]

    def decompress(self, data: bytes, most: int = NO_LIMIT) -> bytes:
        """Returns the data unpacked; FormatError early if that is more than `most` bytes."""
        out = self.unpack(data, most)
        if len(out) > most:
            raise _too_much(most)
        return out


def _zlib_compress(data: bytes) -> bytes:
    if len(data) < _LIBDEFLATE_FROM:
        return zlib.compress(data)
    import deflate

    return bytes(deflate.zlib_compress(data, 6))


def _too_much(most: int) -> FormatError:
    return FormatError(
        "compressed data unpacks to too much", expected=f"at most {most} bytes", found="more"
    )


def _zlib_decompress(data: bytes, most: int) -> bytes:
    if len(data) >= _FAST_FROM and isinstance(data, bytes):
        found = _streams_of_thread().inflate(data, 0)
        if found is not None and found[1] == len(data):  # else zlib's interface tells what is wrong
            return found[0]
    module = zlib if len(data) < _FAST_FROM else _isal()
    stream = module.decompressobj()
    try:
        out: bytes = (
            # A byte beyond the limit shows that there is more.
            stream.decompress(data, most + 1) if most < NO_LIMIT else stream.decompress(data)
        )
    except module.error as exc:
        raise FormatError(f"not zlib data ({exc})") from exc
    if len(out) > most:
        return out
    _check_end(stream, "zlib", len(data))
    return out


def _streams_of_thread() -> ZlibStreams:
    """libdeflate for whole streams of ordinary size.

    ISA-L takes little more, but what runs after its checksum (Lexbor above all) loses a tenth of
    its speed, most likely since the upper halves of vector registers stay in use.
    """
    found: ZlibStreams | None = getattr(_kept, "streams", None)
    if found is None:
        from minutch.kernels.clibrary import ZlibStreams

        found = _kept.streams = ZlibStreams(_INFLATED_AT_ONCE)
    return found


def _isal() -> Any:
    """zlib's interface by ISA-L, which takes less than half its time."""
    from isal import isal_zlib

    return isal_zlib


class RecordStreams:
    """Makes zlib streams of values, one for each: a kernel of short ones, which libraries clear
    tables for first (a record of 260 bytes takes 3 µs instead of 10), ISA-L's level 1 of others. It
    takes a quarter of the time of zlib's default, for a twentieth more space; level 2 up to a third
    more, where pages have few matches, for a hundredth less.

    For one thread.
    """

    def __init__(self) -> None:
        import numpy as np

        from minutch.kernels import deflate
        from minutch.kernels.native import Slices

        self._short, self._kernel, self._isal = deflate.SHORT, deflate.deflate, _isal()
        self._only_short = deflate.Compressor(deflate.new_places(), 0, 0)
        value, stream = (np.empty(deflate.SHORT + deflate.OVERHEAD, np.uint8) for _ in range(2))
        self._at, self._size = np.array([value.ctypes.data], np.int64), np.empty(1, np.int32)
        self._streams = Slices(stream, np.empty(1, np.int64), np.empty(1, np.int32))
        # What stays in place is read and written by views of memory: NumPy's own indexing takes
        # as long as the kernel.
        self._value, self._stream = value.data, stream.data
        self._value_size, self._stream_size = self._size.data, self._streams.length.data

    def of(self, value: bytes) -> bytes:
        """Returns the stream of a value."""
        size = len(value)
        if size > self._short:
            return bytes(self._isal.compress(value, 1))
        self._value[:size] = value
        self._value_size[0] = size
        self._kernel(self._at, self._size, self._streams, self._only_short)
        return self._stream[: self._stream_size[0]].tobytes()

    def of_all(self, values: Sequence[bytes]) -> list[bytes]:
        """Returns the streams of values; those of short ones by one call."""
        streams = iter(self._of_short([value for value in values if len(value) <= self._short]))
        return [
            next(streams) if len(value) <= self._short else bytes(self._isal.compress(value, 1))
            for value in values
        ]

    def _of_short(self, values: list[bytes]) -> list[bytes]:
        import numpy as np

        from minutch.kernels.deflate import OVERHEAD
        from minutch.kernels.native import Slices

        data = np.frombuffer(b"".join(values), np.uint8)
        sizes = np.array([*map(len, values)], np.int32)
        starts = np.cumsum(sizes, dtype=np.int64) - sizes
        out = np.empty(len(data) + OVERHEAD * len(values), np.uint8)
        out_at, out_sizes = np.empty_like(starts), np.empty_like(sizes)
        # Addresses: the kernel takes values that lie anywhere.
        at = starts + data.ctypes.data
        self._kernel(at, sizes, Slices(out, out_at, out_sizes), self._only_short)
        packed = out[: int(out_sizes.sum())].tobytes()
        return [
            packed[at : at + size]
            for at, size in zip(out_at.tolist(), out_sizes.tolist(), strict=True)
        ]


def _check_end(stream: Any, kind: str, size: int) -> None:
    """The stream must have ended, and exactly at the end of the data."""
    if not stream.eof:
        raise TruncatedError(f"{kind} data ends inside the stream", offset=size)
    if stream.unused_data:
        extra = len(stream.unused_data)
        raise FormatError(
            f"data after the end of the {kind} stream", offset=size - extra, found=f"{extra} bytes"
        )


def _gzip_compress(data: bytes) -> bytes:
    if len(data) < _LIBDEFLATE_FROM:
        # Raw deflate: Hadoop's header has neither time nor system.
        raw = zlib.compressobj(wbits=-15)
        body = raw.compress(data) + raw.flush()
    else:
        import deflate

        body = bytes(deflate.deflate_compress(data, 6))
    return _GZIP_HEADER + body + struct.pack("<II", zlib.crc32(data), len(data) & 0xFFFF_FFFF)


def _streams(
    data: bytes, most: int, new: Callable[[], Any], errors: tuple[type[Exception], ...], kind: str
) -> bytes:
    """Decompresses one or more streams that follow each other."""
    parts: list[bytes] = []
    room = most + 1
    rest = data
    while True:
        stream = new()
        try:
            parts.append(
                stream.decompress(rest, room) if most < NO_LIMIT else stream.decompress(rest)
            )
        except errors as exc:
            raise FormatError(f"not {kind} data ({exc})", offset=len(data) - len(rest)) from exc
        room -= len(parts[-1])
        if room <= 0:
            return b"".join(parts)
        if not stream.eof:
            raise TruncatedError(f"{kind} data ends inside the stream", offset=len(data))
        rest = stream.unused_data
        # gzip and bzip2 files may hold several streams (`cat a.gz b.gz`).
        if not rest:
            return b"".join(parts)


def _gzip_decompress(data: bytes, most: int) -> bytes:
    return _streams(data, most, lambda: zlib.decompressobj(31), (zlib.error,), "gzip")


def _bzip2_decompress(data: bytes, most: int) -> bytes:
    return _streams(data, most, bz2.BZ2Decompressor, (OSError, ValueError), "bzip2")


def _zstandard_compress(data: bytes) -> bytes:
    from minutch.hadoop.formats import zstd

    return zstd.compress(data)


def _zstandard_decompress(data: bytes, most: int) -> bytes:
    from minutch.hadoop.formats import zstd

    # Windows of up to 2²⁷ bytes, the most that zstd takes unasked.
    return _streams(data, most, lambda: zstd.decompressor(27), (zstd.ZstdError,), "zstd")


def _snappy_chunk(chunk: bytes, limit: int) -> bytes:
    """Returns a raw Snappy block of at most `limit` bytes."""
    import cramjam

    try:
        size = cramjam.snappy.decompress_raw_len(chunk)
        if size > min(limit, 64 * len(chunk)):  # no element of 3 bytes gives more than 64
            raise FormatError(
                "Snappy block too long", expected=f"at most {limit} bytes", found=size
            )
        return bytes(cramjam.snappy.decompress_raw(chunk))
    except cramjam.DecompressionError as exc:
        raise FormatError(f"not Snappy data ({exc})") from exc


def _snappy_compress_raw(data: bytes) -> bytes:
    import cramjam

    return bytes(cramjam.snappy.compress_raw(data))


def _lz4_chunk(chunk: bytes, limit: int) -> bytes:
    """Returns a raw LZ4 block of at most `limit` bytes."""
    import cramjam

    out = bytearray(min(limit, 255 * len(chunk)))  # a byte gives at most 255
    try:
        size = cramjam.lz4.decompress_block_into(chunk, out, output_len=len(out)) if out else 0
    except cramjam.DecompressionError as exc:
        raise FormatError(f"not LZ4 data ({exc})") from exc
    return bytes(out[:size])


def _lz4_compress_raw(data: bytes) -> bytes:
    import cramjam

    return bytes(cramjam.lz4.compress_block(data, store_size=False))


def _blocks_compress(
    compress_raw: Callable[[bytes], bytes], overhead: int
) -> Callable[[bytes], bytes]:
    """BlockCompressorStream over a raw block compressor."""
    limit = _BLOCK_BUFFER - overhead

    def compress(data: bytes) -> bytes:
        out = bytearray(_INT.pack(len(data)))
        for at in range(0, len(data), limit):
            chunk = compress_raw(data[at : at + limit])
            out += _INT.pack(len(chunk))
            out += chunk
        if len(data) > limit:
            out += _INT.pack(0)
        return bytes(out)

    return compress


def _blocks_decompress(
    decompress_chunk: Callable[[bytes, int], bytes],
) -> Callable[[bytes, int], bytes]:
    """BlockDecompressorStream over a raw block decompressor."""

    def decompress(data: bytes, most: int) -> bytes:
        parts: list[bytes] = []
        total = 0
        pos = 0
        while pos < len(data):
            left, pos = _read_size(data, pos)
            if left == 0:
                break
            total += left
            if total > most:
                raise _too_much(most)
            while left > 0:
                size, at = _read_size(data, pos)
                if size > len(data) - at:
                    raise TruncatedError(
                        "compressed chunk is cut off", offset=at, expected=f"{size} bytes"
                    )
                try:
                    part = decompress_chunk(data[at : at + size], left)
                except FormatError as exc:
                    exc.offset = at
                    raise
                # Or the loop would never end.
                if not part:
                    raise FormatError(
                        "compressed chunk gives no data", offset=at, expected=f"{left} bytes"
                    )
                parts.append(part)
                left -= len(part)
                pos = at + size
        if pos != len(data):
            raise FormatError("data after the end of the compressed stream", offset=pos)
        return b"".join(parts)

    return decompress


def _read_size(data: bytes, pos: int) -> tuple[int, int]:
    """Returns the size at `pos`, and the position after it."""
    if pos + 4 > len(data):
        raise TruncatedError("data ends inside a block size", offset=pos)
    size = int(_INT.unpack_from(data, pos)[0])
    if size < 0:
        raise FormatError("negative block size", offset=pos, found=size)
    return size, pos + 4


_snappy = (
    _blocks_compress(_snappy_compress_raw, _BLOCK_BUFFER // 6 + 32),  # overhead as in SnappyCodec
    _blocks_decompress(_snappy_chunk),
)
_lz4 = (
    _blocks_compress(_lz4_compress_raw, _BLOCK_BUFFER // 255 + 16),  # overhead as in Lz4Codec
    _blocks_decompress(_lz4_chunk),
)

CODECS: dict[str, Codec] = {
    codec.name: codec
    for codec in (
        Codec(DEFAULT_CODEC, ".deflate", _zlib_compress, _zlib_decompress),
        Codec(PACKAGE + "DeflateCodec", ".deflate", _zlib_compress, _zlib_decompress),
        Codec(PACKAGE + "GzipCodec", ".gz", _gzip_compress, _gzip_decompress),
        Codec(PACKAGE + "BZip2Codec", ".bz2", bz2.compress, _bzip2_decompress),
        Codec(PACKAGE + "ZStandardCodec", ".zst", _zstandard_compress, _zstandard_decompress),
        Codec(PACKAGE + "SnappyCodec", ".snappy", *_snappy),
        Codec(PACKAGE + "Lz4Codec", ".lz4", *_lz4),
    )
}


def codec(name: str) -> Codec:
    """Returns the codec of a Java class name; FormatError for others."""
    try:
        return CODECS[name]
    except KeyError:
        known = ", ".join(key.removeprefix(PACKAGE) for key in CODECS)
        raise FormatError(
            "unknown compression codec", expected=f"one of {known}", found=name
        ) from None


def codec_for(file_name: str) -> Codec | None:
    """Returns the codec of a file name's ending, as CompressionCodecFactory does, or None."""
    return next((entry for entry in CODECS.values() if file_name.endswith(entry.extension)), None)


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
