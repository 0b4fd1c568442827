"""Files written in bulk go to the disk while they are written, and are the same where the system
can't do that.
"""

from __future__ import annotations

from functools import partial
from itertools import pairwise
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from minutch.hadoop.formats import mapfile as mapfile_module
from minutch.hadoop.formats.batch import Places
from minutch.hadoop.formats.checksum import verify_file
from minutch.hadoop.formats.javaio import encode_vlong
from minutch.hadoop.formats.mapfile import MapFileWriter
from minutch.hadoop.formats.sequencewriter import TEXT, SequenceFileWriter
from minutch.kernels.arrow import from_series
from minutch.work.tables import writer as writer_module
from minutch.work.tables.writer import PlacesMapWriter, PlacesWriter
from tests.support.tables import SYNC, read_records

SIZE, COUNT = 3000, 3000
BYTES = "org.apache.hadoop.io.BytesWritable"


def write(path: Path) -> list[bytes]:
    """A file of more than two buffers; returns its keys."""
    keys = [b"http://www.example.org/%06d" % i for i in range(COUNT)]
    writer = PlacesWriter(path, BYTES, sync=SYNC)
    values = np.resize(np.arange(251, dtype=np.uint8), SIZE * COUNT)
    at = np.arange(0, len(values), SIZE)
    length = np.full(COUNT, SIZE, np.int32)
    writer.append(Places.of(from_series(pl.Series(keys, dtype=pl.Binary)), values, at, length))
    writer.close()
    return keys


def test_every_byte_is_handed_to_the_disk_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[tuple[int, int]] = []

    def record(descriptor: int, start: int, size: int, flags: int) -> int:
        asked.append((start, start + size))
        return 0

    monkeypatch.setattr(writer_module, "_sync_file_range", lambda: record)
    write(tmp_path / "file")
    assert (
        len(asked) > 2 and asked[0][0] == 0 and asked[-1][1] == (tmp_path / "file").stat().st_size
    )
    assert all(before[1] == after[0] for before, after in pairwise(asked))


def test_without_that_system_call_the_file_is_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    keys = write(tmp_path / "first")
    monkeypatch.setattr(writer_module, "_sync_file_range", lambda: None)
    write(tmp_path / "second")
    assert (tmp_path / "first").read_bytes() == (tmp_path / "second").read_bytes()
    assert [key for key, _ in read_records(tmp_path / "first")] == keys
    verify_file(tmp_path / "first")


@pytest.mark.parametrize("block", [1, 700, 1 << 20])
def test_an_index_of_several_blocks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, block: int
) -> None:
    for module in (writer_module, mapfile_module):
        monkeypatch.setattr(
            module, "SequenceFileWriter", partial(SequenceFileWriter, block_size=block)
        )
    monkeypatch.setattr(writer_module, "BLOCK_SIZE", block)
    keys = sorted(b"http://www.example.org/" + b"%d" % i * (i % 40) for i in range(9000))
    values, length = np.zeros(4 * len(keys), np.uint8), np.full(len(keys), 4, np.int32)
    records = Places.of(
        from_series(pl.Series(keys, dtype=pl.Binary)), values, np.arange(len(keys)) * 4, length
    )
    bulk = PlacesMapWriter(tmp_path / "bulk", BYTES, sync=SYNC, index_sync=SYNC)
    for start in range(0, len(keys), 2500):
        bulk.append(records.between(start, start + 2500))
    bulk.close()
    with MapFileWriter(tmp_path / "plain", TEXT, BYTES, sync=SYNC, index_sync=SYNC) as plain:
        for key in keys:
            plain.append_raw(encode_vlong(len(key)) + key, bytes(4))
    for name in ("data", "index"):
        assert (tmp_path / "bulk" / name).read_bytes() == (tmp_path / "plain" / name).read_bytes()


@pytest.mark.parametrize("size", [*range((1 << 22) - 700, (1 << 22) + 100, 90), 3 << 22])
def test_records_about_as_long_as_the_buffer(tmp_path: Path, size: int) -> None:
    values = np.resize(np.arange(251, dtype=np.uint8), size)
    at, length = np.array([0, 0, 0]), np.array([10, size, size - 1], np.int32)
    writer = PlacesWriter(tmp_path / "file", BYTES, sync=SYNC)
    writer.append(
        Places.of(from_series(pl.Series([b"a", b"b", b"c"], dtype=pl.Binary)), values, at, length)
    )
    writer.close()
    assert [len(value) for _, value in read_records(tmp_path / "file")] == length.tolist()
    verify_file(tmp_path / "file")
