"""Records appended in runs lie in the file exactly as if they had come one by one."""

from __future__ import annotations

import struct
import zlib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from minutch.errors import FormatError
from minutch.hadoop.formats.sequencefile import SequenceFileReader
from minutch.hadoop.formats.sequencewriter import (
    BLOCK,
    NONE,
    RECORD,
    SequenceFileWriter,
    record_places,
)

SYNC = bytes(range(16))
RECORDS = st.lists(st.tuples(st.binary(max_size=9), st.binary(max_size=40)), max_size=12)


def written(
    path: Path, runs: list[list[tuple[bytes, bytes]]], compression: str, *, whole: bool
) -> bytes:
    with SequenceFileWriter(
        path, "k", "v", compression=compression, sync=SYNC, sync_interval=64
    ) as writer:
        for run in runs:
            if whole:
                writer.append_records(
                    b"".join(
                        struct.pack(">ii", len(key + value), len(key)) + key + value
                        for key, value in run
                    )
                )
                continue
            for key, value in run:
                writer.append_raw(key, value, compressed=compression == RECORD)
    return path.read_bytes()


@given(st.lists(RECORDS, max_size=5))
@pytest.mark.parametrize("compression", [NONE, RECORD, BLOCK])
def test_the_same_bytes_as_one_by_one(
    tmp_path_factory: pytest.TempPathFactory,
    compression: str,
    runs: list[list[tuple[bytes, bytes]]],
) -> None:
    folder = tmp_path_factory.mktemp("runs")
    if compression == RECORD:
        runs = [[(key, zlib.compress(value)) for key, value in run] for run in runs]
    assert written(folder / "a", runs, compression, whole=True) == written(
        folder / "b", runs, compression, whole=False
    )


@pytest.mark.parametrize("lengths", [(-8, 0), (3, 4), (3, -1), (4, 2), (1 << 30, 1)])
def test_lengths_that_do_not_fit_are_an_error(lengths: tuple[int, int]) -> None:
    good = struct.pack(">ii", 2, 1) + b"kv"
    places = record_places(good + struct.pack(">ii", *lengths) + b"abc")
    assert next(places) == (0, len(good), len(good) - 1)
    with pytest.raises(FormatError, match="do not fit"):
        next(places)
    with pytest.raises(FormatError):
        list(record_places(good + b"cut"))


@pytest.mark.parametrize("compression", [NONE, RECORD, BLOCK])
def test_values_as_they_are_stored(tmp_path: Path, compression: str) -> None:
    with SequenceFileWriter(tmp_path / "f", "k", "v", compression=compression) as writer:
        writer.append_raw(b"key", b"value")
    with SequenceFileReader(tmp_path / "f") as reader:
        ((key, value),) = reader.stored()
    assert key == b"key"
    assert (zlib.decompress(value) if compression == RECORD else value) == b"value"
