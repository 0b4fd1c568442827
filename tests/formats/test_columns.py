"""Spans and batches: every record once, in order, whatever the file; and None wherever something is wrong."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from random import Random

import pytest

from minutch.errors import ChecksumError, FormatError
from minutch.formats.checksum import crc_path
from minutch.tables import spans as columns
from minutch.tables.spans import Batch, BulkFile
from tests.support.tables import SYNC, Records, by_kernels, some_records, write_records

COMPRESSIONS = ("NONE", "RECORD", "BLOCK")


def records_of(batch: Batch) -> Records:
    """A batch's records as bytes."""
    keys, values = batch.keys.tobytes(), batch.values.tobytes()
    places = zip(batch.key_at, batch.key_len, batch.value_at, batch.value_len, strict=True)
    return [(keys[k : k + n], values[v : v + m]) for k, n, v, m in places]


def bulk_records(file: BulkFile) -> Records:
    """All records of a file, by kernels."""
    found: Records = []
    with by_kernels():
        for span in file.spans():
            batch = file.batch(span)
            assert batch is not None
            found += records_of(batch)
    return found


@pytest.fixture(params=COMPRESSIONS)
def file(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[Path, Records]:
    """A file of each compression, large enough for several spans."""
    records = some_records(Random(5), 3000)
    path = tmp_path / "file"
    write_records(path, records, request.param)
    return path, records


def test_spans_cover_every_record_once(file: tuple[Path, Records]) -> None:
    path, records = file
    bulk = BulkFile(path, span_size=150_000)
    spans = bulk.spans()
    assert spans[0].start > 0 and spans[-1].end == path.stat().st_size
    assert all(before.end == after.start for before, after in pairwise(spans))
    assert bulk_records(bulk) == records


def test_a_short_rest_goes_with_the_last_span(tmp_path: Path) -> None:
    path = tmp_path / "file"
    write_records(path, some_records(Random(5), 30_000), "NONE")
    size = path.stat().st_size
    for share, count in ((1.05, 1), (1.2, 2), (2.05, 2), (2.2, 3)):
        assert len(BulkFile(path, span_size=int(size / share)).spans()) == count


def test_spans_are_read_alike_record_by_record(file: tuple[Path, Records]) -> None:
    path, records = file
    bulk = BulkFile(path, span_size=150_000)
    with by_kernels():
        for span in bulk.spans():
            batch = bulk.batch(span)
            assert batch is not None
            rows = list(bulk.rows(span))
            assert [value for _, value in rows] == [value for _, value in records_of(batch)]
            assert all(key.endswith(plain) for (key, _), (plain, _) in zip(rows, records_of(batch), strict=True))
    assert sum(len(list(bulk.rows(span))) for span in bulk.spans()) == len(records)


def test_small_files_are_left_to_the_reader_of_single_records(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_records(tmp_path / "file", some_records(Random(1), 10), "NONE")
    monkeypatch.setattr(columns, "kernels_loaded", lambda: False)
    bulk = BulkFile(tmp_path / "file")
    assert not bulk.is_bulk and bulk.batch(bulk.spans()[0]) is None


def test_empty_file(tmp_path: Path) -> None:
    write_records(tmp_path / "file", [], "NONE")
    bulk = BulkFile(tmp_path / "file")
    assert len(bulk.spans()) == 1
    assert list(bulk.rows(bulk.spans()[0])) == []


def test_other_codecs_are_left_to_the_reader_of_single_records(tmp_path: Path) -> None:
    from minutch.formats.sequencewriter import SequenceFileWriter

    path = tmp_path / "file"
    with SequenceFileWriter(
        path, "org.apache.hadoop.io.Text", "x", compression="RECORD", codec="org.apache.hadoop.io.compress.GzipCodec"
    ) as out:
        out.append_raw(b"\x01a", b"value")
    with by_kernels():
        bulk = BulkFile(path)
        assert bulk.batch(bulk.spans()[0]) is None
    assert list(bulk.rows(bulk.spans()[0])) == [(b"\x01a", b"value")]


@pytest.mark.parametrize("compression", COMPRESSIONS)
def test_a_changed_byte_is_found_by_its_checksum(tmp_path: Path, compression: str) -> None:
    path = tmp_path / "file"
    write_records(path, some_records(Random(2), 4000), compression)
    bulk = BulkFile(path)
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)
    with by_kernels():
        assert bulk.batch(bulk.spans()[0]) is None
    with pytest.raises(ChecksumError) as caught:
        list(bulk.rows(bulk.spans()[0]))
    assert caught.value.path == str(path) and caught.value.offset == len(data) // 2 // 512 * 512


@pytest.mark.parametrize("compression", COMPRESSIONS)
def test_damage_without_checksums_never_crashes_and_never_loses_records_silently(
    tmp_path: Path, compression: str
) -> None:
    random = Random(3)
    path = tmp_path / "file"
    records = some_records(random, 40)
    write_records(path, records, compression)
    crc_path(path).unlink()
    whole = path.read_bytes()
    start = BulkFile(path).spans()[0].start
    with by_kernels():
        for _ in range(300):
            data = bytearray(whole)
            for _ in range(random.randrange(1, 4)):
                data[random.randrange(start, len(data))] = random.randrange(256)
            path.write_bytes(data[: random.choice((len(data), random.randrange(start, len(data))))])
            bulk = BulkFile(path)
            for span in bulk.spans():
                batch = bulk.batch(span)
                if batch is not None:  # then the reader of single records must agree
                    assert [value for _, value in bulk.rows(span)] == [value for _, value in records_of(batch)]


@pytest.mark.parametrize("compression", COMPRESSIONS)
def test_a_file_cut_off_at_any_length_is_an_error(tmp_path: Path, compression: str) -> None:
    path = tmp_path / "file"
    write_records(path, some_records(Random(4), 4), compression)
    crc_path(path).unlink()
    whole = path.read_bytes()
    start = BulkFile(path).spans()[0].start
    complete = 0
    with by_kernels():
        for length in range(start + 1, len(whole)):
            path.write_bytes(whole[:length])
            bulk = BulkFile(path)
            span = bulk.spans()[0]
            batch = bulk.batch(span)
            if batch is None:
                with pytest.raises(FormatError):
                    list(bulk.rows(span))
            else:  # cut between two records
                complete += 1
                assert batch.size < 4
    assert complete < 5


def test_a_wrong_marker_is_not_passed_over(tmp_path: Path) -> None:
    path = tmp_path / "file"
    write_records(path, some_records(Random(6), 3000), "NONE")
    crc_path(path).unlink()
    data = path.read_bytes()
    at = data.index(b"\xff\xff\xff\xff" + SYNC)
    path.write_bytes(data[: at + 4] + bytes(16) + data[at + 20 :])
    with by_kernels():
        bulk = BulkFile(path)
        assert bulk.batch(bulk.spans()[0]) is None
