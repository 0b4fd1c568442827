"""Functions of C libraries, called by their addresses: of the C library of this process, and of
libdeflate, the library inside the `deflate` package.

    memmem(data, size, word, size of it) -> the address of the word's first place in the data, 0 if
                                            there is none
    crc32(crc, data, size) -> crc
    zlib_decompress_ex(decompressor, data, size, out, room, size_t *read, size_t *written)
        -> 0 good, 1 bad data, 2 and 3 too little or too much room
    gzip_decompress_ex(…)
        -> the same of a gzip member
    zlib_compress(compressor, data, size, out, room) -> bytes written, 0 if there is no room
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any, Final, NamedTuple

from minutch.errors import MinutchError

_TRIM_THRESHOLD: Final = -1
_MMAP_THRESHOLD: Final = -3
"""glibc's numbers."""


def trim() -> None:
    """Gives memory that is free back to the system, where glibc keeps it (malloc_trim(3))."""
    library = ctypes.CDLL(None)
    if hasattr(library, "malloc_trim"):
        library.malloc_trim(0)


def give_back_large() -> None:
    """Lets glibc take each block of 1 MiB or more from the system, and give back what is freed
    (M_MMAP_THRESHOLD and M_TRIM_THRESHOLD of mallopt(3)).

    By itself it raises both bounds to the largest block that it has seen freed, up to 32 MiB and
    twice that, and keeps so much from then on, for each of the threads that came and went.
    malloc_trim does not reach it; a limit of arenas has to be set before there are threads.
    """
    library = ctypes.CDLL(None)
    if hasattr(library, "mallopt"):
        library.mallopt(_MMAP_THRESHOLD, 1 << 20)
        library.mallopt(_TRIM_THRESHOLD, 128 << 10)


@cache
def memmem() -> int:
    """The address of memmem, which glibc, musl and macOS have."""
    return ctypes.cast(ctypes.CDLL(None).memmem, ctypes.c_void_p).value or 0


class Libdeflate(NamedTuple):
    """Addresses of libdeflate's functions."""

    crc32: int
    zlib_compress: int
    zlib_decompress_ex: int


@cache
def _library() -> Any:
    from deflate import _deflate

    return ctypes.CDLL(_deflate.__file__)


@cache
def libdeflate() -> Libdeflate:
    """The functions of libdeflate. Raises MinutchError where the package does not export them."""
    try:
        library = _library()
        found = [getattr(library, f"libdeflate_{name}") for name in Libdeflate._fields]
    except (ImportError, OSError, AttributeError) as exc:
        raise MinutchError(
            f"libdeflate can't be used: {exc}; the package deflate is needed, from 0.7 to 0.9"
        ) from exc
    return Libdeflate(*(ctypes.cast(function, ctypes.c_void_p).value or 0 for function in found))


class _Inflater:
    """Inflates data of one kind, each piece at once and with its checksum; into one buffer of
    `room` bytes.
    """

    function: str

    def __init__(self, room: int) -> None:
        library = _library()
        library.libdeflate_alloc_decompressor.restype = ctypes.c_void_p
        self._free = library.libdeflate_free_decompressor
        self._decompressor = ctypes.c_void_p(library.libdeflate_alloc_decompressor())
        self._inflate = getattr(library, self.function)
        pointer, size = ctypes.c_void_p, ctypes.c_size_t
        self._inflate.argtypes = (
            pointer,
            pointer,
            size,
            pointer,
            size,
            ctypes.POINTER(size),
            ctypes.POINTER(size),
        )
        self._room = room
        self._out = ctypes.create_string_buffer(room)
        self._to = ctypes.addressof(self._out)
        self._read, self._written = size(), size()
        self._counts = (ctypes.byref(self._read), ctypes.byref(self._written))
        self._data, self._address = b"", 0

    def inflate(self, data: bytes, at: int) -> tuple[bytes, int] | None:
        """Inflate the piece at `at`; returns its content, and how many bytes it takes.

        None if it is damaged, goes on behind `data`, or holds more than there is room for.
        """
        if data is not self._data:  # look the address up once per buffer
            self._data = data
            self._address = ctypes.cast(ctypes.c_char_p(data), ctypes.c_void_p).value or 0
        if self._inflate(
            self._decompressor,
            self._address + at,
            len(data) - at,
            self._to,
            self._room,
            *self._counts,
        ):
            return None
        return ctypes.string_at(self._to, self._written.value), self._read.value

    def __del__(self) -> None:
        self._free(self._decompressor)


class GzipMembers(_Inflater):
    """Inflates gzip members of up to `room` bytes."""

    function = "libdeflate_gzip_decompress_ex"


class ZlibStreams(_Inflater):
    """Inflates zlib streams of up to `room` bytes."""

    function = "libdeflate_zlib_decompress_ex"


@contextmanager
def decompressor() -> Iterator[int]:
    """The address of a libdeflate_decompressor."""
    library = _library()
    library.libdeflate_alloc_decompressor.restype = ctypes.c_void_p
    address = library.libdeflate_alloc_decompressor()
    try:
        yield address
    finally:
        library.libdeflate_free_decompressor(ctypes.c_void_p(address))


@contextmanager
def compressor(level: int) -> Iterator[int]:
    """The address of a libdeflate_compressor of `level` (0 to 12)."""
    library = _library()
    library.libdeflate_alloc_compressor.restype = ctypes.c_void_p
    address = library.libdeflate_alloc_compressor(level)
    try:
        yield address
    finally:
        library.libdeflate_free_compressor(ctypes.c_void_p(address))
