"""Headers of SequenceFiles: the bytes of version 6, every older version, every cut-off."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from minutch.errors import FormatError, TruncatedError
from minutch.hadoop.formats.compress import DEFAULT_CODEC
from minutch.hadoop.formats.javaio import DataInput
from minutch.hadoop.formats.sequencewriter import COMPRESSIONS, SequenceHeader, new_sync
from tests.support.sequencefiles import old_header

SYNC = bytes(range(16))
FULL = SequenceHeader("a.Key", "b.Value", "BLOCK", DEFAULT_CODEC, {"name": "value"}, SYNC)


def _read(data: bytes) -> SequenceHeader:
    source = DataInput(data)
    header = SequenceHeader.read(source)
    assert not source.remaining
    return header


def test_bytes_of_version_6() -> None:
    codec = DEFAULT_CODEC.encode()
    expected = b"SEQ\x06\x05a.Key\x07b.Value\x01\x01" + bytes((len(codec),)) + codec
    expected += b"\0\0\0\1\x04name\x05value" + SYNC
    assert FULL.to_bytes() == expected
    assert _read(expected) == FULL


@given(
    names=st.tuples(st.text(max_size=300), st.text(max_size=10)),
    compression=st.sampled_from(COMPRESSIONS),
    metadata=st.dictionaries(st.text(max_size=5), st.text(max_size=5), max_size=4),
)
def test_round_trip(names: tuple[str, str], compression: str, metadata: dict[str, str]) -> None:
    codec = None if compression == "NONE" else DEFAULT_CODEC
    header = SequenceHeader(*names, compression, codec, metadata, SYNC)
    assert _read(header.to_bytes()) == header


def test_metadata_is_written_in_order() -> None:
    one = SequenceHeader("k", "v", metadata={"b": "1", "a": "2", "é": "3"}, sync=SYNC)
    other = SequenceHeader("k", "v", metadata={"é": "3", "a": "2", "b": "1"}, sync=SYNC)
    assert one.to_bytes() == other.to_bytes()


@pytest.mark.parametrize("version", range(1, 6))
def test_older_versions(version: int) -> None:
    header = _read(old_header(version, "long", "UTF8", sync=SYNC))
    assert (header.version, header.key_class, header.value_class) == (version, "long", "UTF8")
    assert header.sync == (SYNC if version > 1 else b"")
    assert header.compression == "NONE"


@pytest.mark.parametrize(
    "data",
    [FULL.to_bytes(), *(old_header(version, "long", "long", sync=SYNC) for version in range(1, 6))],
)
def test_cut_off_at_every_length(data: bytes) -> None:
    for size in range(len(data)):
        with pytest.raises(TruncatedError):
            SequenceHeader.read(DataInput(data[:size]))


@given(st.binary(max_size=100))
def test_other_bytes_are_refused(data: bytes) -> None:
    if data[:3] != b"SEQ":
        with pytest.raises(FormatError):
            SequenceHeader.read(DataInput(data))


def test_negative_counts_are_refused() -> None:
    data = FULL.to_bytes().replace(b"\0\0\0\1\x04name", b"\xff\xff\xff\xff\x04name")
    with pytest.raises(FormatError, match="negative number of metadata entries"):
        SequenceHeader.read(DataInput(data))


def test_markers_differ() -> None:
    assert len({new_sync() for _ in range(100)}) == 100
