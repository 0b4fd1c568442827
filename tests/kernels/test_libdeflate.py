"""libdeflate is found in its package, or the error says what is needed."""

from __future__ import annotations

import ctypes
import gzip
import random
import zlib

import pytest

from minutch.errors import MinutchError
from minutch.kernels import clibrary as module
from minutch.kernels.clibrary import GzipMembers, ZlibStreams, libdeflate


def test_the_functions_are_libdeflates() -> None:
    crc32 = ctypes.CFUNCTYPE(ctypes.c_uint32, ctypes.c_uint32, ctypes.c_char_p, ctypes.c_size_t)(
        libdeflate().crc32
    )
    assert crc32(0, b"some bytes", 10) == zlib.crc32(b"some bytes")


def test_a_package_without_them_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    libdeflate.cache_clear()
    monkeypatch.setattr(
        module, "_library", lambda: ctypes.CDLL(None)
    )  # a library without these functions
    try:
        with pytest.raises(MinutchError, match=r"package deflate is needed, from 0\.7 to 0\.9"):
            libdeflate()
    finally:
        libdeflate.cache_clear()


def test_gzip_members_are_inflated_one_after_the_other() -> None:
    texts = [b"", b"a", bytes(range(256)) * 100, b"x" * 1000]
    data = b"junk" + b"".join(gzip.compress(text) for text in texts)
    members, at, found = GzipMembers(30_000), 4, []
    while (member := members.inflate(data, at)) is not None:
        found.append(member[0])
        at += member[1]
    assert found == texts
    assert at == len(data)


def test_zlib_streams_are_inflated_whole_or_not_at_all() -> None:
    streams, text = ZlibStreams(30_000), bytes(range(256)) * 100
    data = zlib.compress(text)
    assert streams.inflate(data, 0) == (text, len(data))
    assert streams.inflate(data + b"more", 0) == (text, len(data))
    for wrong in (data[:-1], data[:-4] + b"sums", b"\0" + data[1:], zlib.compress(bytes(30_001))):
        assert streams.inflate(wrong, 0) is None


@pytest.mark.parametrize("place", [0, 3, 30, -1, -6])
def test_a_damaged_or_large_member_is_none(place: int) -> None:
    data = bytearray(gzip.compress(random.Random(1).randbytes(500)))
    assert GzipMembers(500).inflate(bytes(data), 0) is not None
    assert GzipMembers(499).inflate(bytes(data), 0) is None
    assert GzipMembers(500).inflate(bytes(data[:-1]), 0) is None
    data[place] ^= 0xFF
    assert GzipMembers(500).inflate(bytes(data), 0) is None
