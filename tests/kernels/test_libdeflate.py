"""libdeflate is found in its package, or the error says what is needed."""

from __future__ import annotations

import ctypes
import zlib

import pytest

from minutch.errors import MinutchError
from minutch.kernels import libdeflate as module
from minutch.kernels.libdeflate import libdeflate


def test_the_functions_are_libdeflates() -> None:
    crc32 = ctypes.CFUNCTYPE(ctypes.c_uint32, ctypes.c_uint32, ctypes.c_char_p, ctypes.c_size_t)(libdeflate().crc32)
    assert crc32(0, b"some bytes", 10) == zlib.crc32(b"some bytes")


def test_a_package_without_them_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    libdeflate.cache_clear()
    monkeypatch.setattr(module, "_library", lambda: ctypes.CDLL(None))  # a library without these functions
    try:
        with pytest.raises(MinutchError, match=r"package deflate is needed, from 0\.7 to 0\.9"):
            libdeflate()
    finally:
        libdeflate.cache_clear()
