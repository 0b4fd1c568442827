"""The compressor of short strings: every stream is one that zlib reads back, never much longer than
the string.
"""

from __future__ import annotations

import zlib

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from minutch.kernels.clibrary import compressor, libdeflate
from minutch.kernels.deflate import (
    LIBRARY_OVERHEAD,
    OVERHEAD,
    SHORT,
    Compressor,
    deflate,
    new_places,
)
from minutch.kernels.native import Slices


def streams(strings: list[bytes]) -> list[bytes]:
    length = np.array([len(string) for string in strings], np.int32)
    at = np.cumsum(length, dtype=np.int64) - length
    buffer = np.frombuffer(b"".join(strings) + bytes(16), np.uint8)
    out = np.empty(int(length.sum()) + LIBRARY_OVERHEAD * len(strings) + 1, np.uint8)
    out_at, out_len = np.empty(len(strings), np.int64), np.empty(len(strings), np.int32)
    with compressor(1) as state:
        pack = Compressor(new_places(), state, libdeflate().zlib_compress)
        deflate(at + buffer.ctypes.data, length, Slices(out, out_at, out_len), pack)
    return [
        out[start : start + size].tobytes() for start, size in zip(out_at, out_len, strict=True)
    ]


def check(strings: list[bytes]) -> list[bytes]:
    found = streams(strings)
    for string, stream in zip(strings, found, strict=True):
        assert zlib.decompress(stream) == string
        assert len(stream) <= len(string) + OVERHEAD
    return found


PIECES = st.sampled_from(
    [b"http://www.example.org/", b"news/", b".html", b"\0\0\0\x01", b"a", b"\xff", b"the same"]
)


@settings(deadline=None)
@given(
    st.lists(
        st.binary(max_size=SHORT + 100) | st.lists(PIECES, max_size=120).map(b"".join), max_size=20
    )
)
def test_round_trip(strings: list[bytes]) -> None:
    check(strings)


def test_every_length_of_match() -> None:
    check([b"x" * size for size in range(SHORT + 2)])
    check(
        [b"abcdefghij"[: size % 10] + b"0123456789" * (size // 10) for size in range(0, SHORT, 7)]
    )


def test_every_distance() -> None:
    noise = np.random.default_rng(5).integers(0, 128, SHORT, np.uint8).tobytes()
    needle = b"needle in a haystack"
    found = check([needle + noise[:size] + needle for size in range(SHORT - 2 * len(needle))])
    assert len(found[100]) < 100 + len(needle) + 12


def test_repetition_gets_shorter() -> None:
    [stream] = check([b"http://www.example.org/page.html" * 20])
    assert len(stream) < 80


def test_a_string_owes_nothing_to_those_before_it() -> None:
    first, second = check(
        [b"http://www.example.org/some/page", b"http://www.example.org/some/page"]
    )
    assert first == second
