"""Hadoop's codecs: round trips, framing, and damage that ends in our own error."""

from __future__ import annotations

import gzip
import struct
import tracemalloc
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from minutch.errors import FormatError
from minutch.hadoop.formats.compress import (
    CODECS,
    DEFAULT_CODEC,
    PACKAGE,
    RecordStreams,
    codec,
    codec_for,
)

NAMES = sorted(CODECS)
SNAPPY, LZ4, GZIP, BZIP2 = (
    PACKAGE + name for name in ("SnappyCodec", "Lz4Codec", "GzipCodec", "BZip2Codec")
)


@pytest.mark.parametrize("name", NAMES)
@given(data=st.binary(max_size=2000), times=st.sampled_from([1, 1, 1, 7, 300]))
def test_what_is_compressed_is_decompressed(name: str, data: bytes, times: int) -> None:
    entry = codec(name)
    assert entry.decompress(entry.compress(data * times)) == data * times


@given(
    st.lists(st.tuples(st.binary(max_size=300), st.sampled_from([1, 1, 7, 20, 300])), max_size=5)
)
def test_values_of_records_one_by_one_and_together(values: list[tuple[bytes, int]]) -> None:
    streams, data = RecordStreams(), [value * times for value, times in values]
    singly = [streams.of(value) for value in data]
    assert streams.of_all(data) == singly
    assert [codec(DEFAULT_CODEC).decompress(stream) for stream in singly] == data


@pytest.mark.parametrize("name", NAMES)
def test_cut_off_at_every_length(name: str) -> None:
    entry = codec(name)
    data = entry.compress(b"http://www.example.org/ some text, some text, some text" * 3)
    for size in range(1 if name in (SNAPPY, LZ4) else 0, len(data)):
        with pytest.raises(FormatError):
            entry.decompress(data[:size])


@pytest.mark.parametrize("name", NAMES)
@given(data=st.binary(max_size=200))
def test_other_bytes_raise_only_our_error(name: str, data: bytes) -> None:
    with suppress(FormatError):
        codec(name).decompress(data)


@pytest.mark.parametrize("name", NAMES)
@given(at=st.integers(0, 10_000), value=st.integers(0, 255))
def test_damaged_bytes_raise_only_our_error(name: str, at: int, value: int) -> None:
    entry = codec(name)
    data = bytearray(entry.compress(b"some text, some text, other text" * 10))
    data[at % len(data)] = value
    with suppress(FormatError):
        entry.decompress(bytes(data))


@pytest.mark.parametrize("name", [SNAPPY, LZ4])
def test_long_data_becomes_one_block_of_chunks(name: str) -> None:
    entry = codec(name)
    data = bytes(range(256)) * 2000
    out = entry.compress(data)
    assert out[:4] == struct.pack(">i", len(data))
    assert out[-4:] == bytes(4)  # closing the stream adds the empty block
    assert entry.decompress(out) == data


@pytest.mark.parametrize("name", [SNAPPY, LZ4])
def test_several_blocks_are_joined(name: str) -> None:
    entry = codec(name)
    assert entry.decompress(entry.compress(b"one") + entry.compress(b"two")) == b"onetwo"


@pytest.mark.parametrize("name", [SNAPPY, LZ4])
def test_empty_data_is_one_empty_block(name: str) -> None:
    assert codec(name).compress(b"") == bytes(4)
    assert codec(name).decompress(bytes(4)) == b""


@pytest.mark.parametrize("name", [GZIP, BZIP2])
def test_members_that_follow_each_other_are_joined(name: str) -> None:
    entry = codec(name)
    assert entry.decompress(entry.compress(b"one") + entry.compress(b"two")) == b"onetwo"


def test_gzip_has_an_empty_header_and_is_gzip() -> None:
    out = codec(GZIP).compress(b"text")
    assert out[:10] == bytes.fromhex("1f8b0800000000000000")
    assert gzip.decompress(out) == b"text"


def test_data_after_the_stream_is_an_error() -> None:
    for name in (DEFAULT_CODEC, SNAPPY, LZ4):
        data = codec(name).compress(b"text")
        with pytest.raises(FormatError):
            codec(name).decompress(data + bytes(4) + b"more")


@pytest.mark.parametrize(
    ("name", "data"),
    [
        (SNAPPY, struct.pack(">ii", 0x7FFF_FFFF, 6) + b"\xff\xff\xff\xff\x07a"),
        (SNAPPY, struct.pack(">ii", 0x7FFF_FFFF, 0x7FFF_FFFF) + b"abc"),
        (LZ4, struct.pack(">ii", 0x7FFF_FFFF, 4) + b"abcd"),
        (LZ4, struct.pack(">ii", -1, 4) + b"abcd"),
    ],
)
def test_wrong_lengths_do_not_allocate(name: str, data: bytes) -> None:
    codec(name).decompress(codec(name).compress(b"imports what it needs"))
    tracemalloc.start()
    try:
        with pytest.raises(FormatError):
            codec(name).decompress(data)
        assert tracemalloc.get_traced_memory()[1] < 1 << 20
    finally:
        tracemalloc.stop()


def test_unknown_codec_is_named() -> None:
    with pytest.raises(FormatError, match="LzoCodec"):
        codec("com.hadoop.compression.lzo.LzoCodec")


def test_codec_by_file_name() -> None:
    found = codec_for("urls.txt.gz")
    assert found is not None
    assert found.name == GZIP
    assert codec_for("urls.txt") is None
