"""Spans and batches: every record once, in order, whatever the file, by kernels as one by one;
errors for damage.
"""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from random import Random

import polars as pl
import pytest

from minutch.errors import ChecksumError, FormatError
from minutch.hadoop.formats.batch import Batch
from minutch.hadoop.formats.checksum import crc_path
from minutch.work.tables.recordfiles import CRAWL_DATUM
from minutch.work.tables.spannedfile import Span, SpannedFile
from minutch.work.tables.spans import Numbers, scan_numbered
from tests.support.examples import few
from tests.support.tables import SYNC, Records, some_records, write_records

COMPRESSIONS = ("NONE", "RECORD", "BLOCK")


def records_of(batch: Batch) -> Records:
    """A batch's records as bytes."""
    keys, values = batch.keys.tobytes(), batch.values.tobytes()
    places = zip(batch.key_at, batch.key_len, batch.value_at, batch.value_len, strict=True)
    return [(keys[k : k + n], values[v : v + m]) for k, n, v, m in places]


def by_kernels(file: SpannedFile, span: Span) -> Batch:
    """The records of a span, which kernels can find."""
    batch = file._find(span)
    assert batch is not None
    return batch


@pytest.fixture(params=COMPRESSIONS)
def file(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[Path, Records]:
    """A file of each compression, large enough for several spans."""
    records = some_records(Random(5), 3000)
    path = tmp_path / "file"
    write_records(path, records, request.param)
    return path, records


def test_spans_cover_every_record_once(file: tuple[Path, Records]) -> None:
    path, records = file
    bulk = SpannedFile(path, span_size=150_000)
    spans = bulk.spans()
    assert spans[0].start > 0 and spans[-1].end == path.stat().st_size
    assert all(before.end == after.start for before, after in pairwise(spans))
    assert [record for span in spans for record in records_of(by_kernels(bulk, span))] == records


def test_a_short_rest_goes_with_the_last_span(tmp_path: Path) -> None:
    path = tmp_path / "file"
    write_records(path, some_records(Random(5), 30_000), "NONE")
    size = path.stat().st_size
    for share, count in ((1.05, 1), (1.2, 2), (2.05, 2), (2.2, 3)):
        assert len(SpannedFile(path, span_size=int(size / share)).spans()) == count


def test_spans_are_read_alike_record_by_record(file: tuple[Path, Records]) -> None:
    path, records = file
    bulk = SpannedFile(path, span_size=150_000)
    for span in bulk.spans():
        assert records_of(bulk._read(span)) == records_of(by_kernels(bulk, span))
    assert sum(bulk._read(span).size for span in bulk.spans()) == len(records)


def test_empty_file(tmp_path: Path) -> None:
    write_records(tmp_path / "file", [], "NONE")
    bulk = SpannedFile(tmp_path / "file")
    assert len(bulk.spans()) == 1
    assert bulk.batch(bulk.spans()[0]).size == 0


@pytest.mark.parametrize("codec", ["GzipCodec", "BZip2Codec", "SnappyCodec", "ZStandardCodec"])
@pytest.mark.parametrize("compression", ["RECORD", "BLOCK"])
def test_other_codecs_are_read_record_by_record(
    tmp_path: Path, codec: str, compression: str
) -> None:
    from minutch.hadoop.formats.sequencewriter import SequenceFileWriter

    path = tmp_path / "file"
    name = f"org.apache.hadoop.io.compress.{codec}"
    with SequenceFileWriter(
        path, "org.apache.hadoop.io.Text", "x", compression=compression, codec=name
    ) as out:
        out.append_raw(b"\x01a", b"value")
    bulk = SpannedFile(path)
    assert records_of(bulk.batch(bulk.spans()[0])) == [(b"a", b"value")]


@pytest.mark.parametrize("compression", COMPRESSIONS)
def test_a_changed_byte_is_found_by_its_checksum(tmp_path: Path, compression: str) -> None:
    path = tmp_path / "file"
    write_records(path, some_records(Random(2), 4000), compression)
    bulk = SpannedFile(path)
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)
    assert bulk._find(bulk.spans()[0]) is None
    with pytest.raises(ChecksumError) as caught:
        bulk.batch(bulk.spans()[0])
    assert caught.value.path == str(path) and caught.value.offset == len(data) // 2 // 512 * 512


@pytest.mark.parametrize("compression", few(COMPRESSIONS))
def test_damage_without_checksums_never_crashes_and_never_loses_records_silently(
    tmp_path: Path, compression: str
) -> None:
    random = Random(3)
    path = tmp_path / "file"
    records = some_records(random, 40)
    write_records(path, records, compression)
    crc_path(path).unlink()
    whole = path.read_bytes()
    start = SpannedFile(path).spans()[0].start
    for _ in range(300):
        data = bytearray(whole)
        for _ in range(random.randrange(1, 4)):
            data[random.randrange(start, len(data))] = random.randrange(256)
        path.write_bytes(data[: random.choice((len(data), random.randrange(start, len(data))))])
        bulk = SpannedFile(path)
        for span in bulk.spans():
            batch = bulk._find(span)
            if batch is not None:  # then the reader of single records must agree
                assert records_of(bulk._read(span)) == records_of(batch)


@pytest.mark.parametrize("compression", few(COMPRESSIONS))
def test_a_file_cut_off_at_any_length_is_an_error(tmp_path: Path, compression: str) -> None:
    path = tmp_path / "file"
    write_records(path, some_records(Random(4), 4), compression)
    crc_path(path).unlink()
    whole = path.read_bytes()
    start = SpannedFile(path).spans()[0].start
    complete = 0
    for length in range(start + 1, len(whole)):
        path.write_bytes(whole[:length])
        bulk = SpannedFile(path)
        span = bulk.spans()[0]
        if bulk._find(span) is None:
            with pytest.raises(FormatError):
                bulk.batch(span)
        else:  # cut between two records
            complete += 1
            assert bulk.batch(span).size < 4
    assert complete < 5


def test_a_wrong_marker_is_not_passed_over(tmp_path: Path) -> None:
    path = tmp_path / "file"
    write_records(path, some_records(Random(6), 3000), "NONE")
    crc_path(path).unlink()
    data = path.read_bytes()
    at = data.index(b"\xff\xff\xff\xff" + SYNC)
    path.write_bytes(data[: at + 4] + bytes(16) + data[at + 20 :])
    bulk = SpannedFile(path)
    with pytest.raises(FormatError):
        bulk.batch(bulk.spans()[0])


@pytest.mark.parametrize("compression", ["RECORD", "BLOCK"])
@pytest.mark.parametrize("bulk", few([True, False]))
def test_what_unpacks_to_too_much_comes_in_several_batches(
    tmp_path: Path, compression: str, bulk: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    random = Random(4)
    records = [(b"%06d" % number, random.randbytes(500) + bytes(2500)) for number in range(3000)]
    path = tmp_path / "file"
    write_records(path, records, compression)
    monkeypatch.setattr("minutch.work.tables.spannedfile.MOST_AT_A_TIME", 4 << 20)
    file = SpannedFile(path)
    if not bulk:
        monkeypatch.setattr(file, "_find", lambda span, most: None)
    batches = list(file.batches(file.spans()[0]))
    assert [record for batch in batches for record in records_of(batch)] == records
    assert len(batches) > 1
    assert all(batch.values.size <= 4 << 20 for batch in batches)


@pytest.mark.parametrize("compression", ["RECORD", "BLOCK"])
def test_a_record_that_unpacks_to_too_much_is_damage(
    tmp_path: Path, compression: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "file"
    write_records(path, [(b"a", bytes(100)), (b"b", bytes(200_000))], compression)
    file = SpannedFile(path)
    (span,) = file.spans()
    assert [batch.size for batch in file.batches(span)] == [2]
    monkeypatch.setattr("minutch.work.tables.spannedfile.MOST", 100_000)
    monkeypatch.setattr("minutch.work.tables.spannedfile.MOST", 100_000)
    monkeypatch.setattr("minutch.work.tables.zlibvalues.MOST", 100_000)
    file = SpannedFile(path)
    with pytest.raises(
        FormatError, match="unpacks to too much: expected at most 100000 bytes"
    ) as caught:
        list(file.batches(span))
    assert caught.value.path == str(path) and caught.value.offset


def test_spans_that_may_have_a_key(file: tuple[Path, Records]) -> None:
    path, records = file
    bulk = SpannedFile(path, span_size=20_000)
    key = next(key for key, _ in records[1500:] if len(key) > 20)
    found = bulk.spans_with(key)
    assert [
        record for span in found for record in records_of(bulk.batch(span)) if record[0] == key
    ] == [record for record in records if record[0] == key]
    assert (len(found) < len(bulk.spans())) is (bulk.compression != "BLOCK")


def test_spans_that_may_have_a_value(file: tuple[Path, Records]) -> None:
    path, records = file
    bulk = SpannedFile(path, span_size=20_000)
    value = next(value for _, value in records[1500:] if len(value) > 20)
    found = bulk.spans_with(value, of_values=True)
    assert value in [record[1] for span in found for record in records_of(bulk.batch(span))]
    assert (len(found) < len(bulk.spans())) is (bulk.compression == "NONE")


def test_no_span_has_what_is_not_there(tmp_path: Path) -> None:
    write_records(tmp_path / "file", some_records(Random(5), 300), "NONE")
    assert SpannedFile(tmp_path / "file").spans_with(b"http://nowhere.example/") == []
    write_records(tmp_path / "empty", [], "NONE")
    assert len(SpannedFile(tmp_path / "empty").spans_with(b"x")) <= 1


@pytest.mark.parametrize("size", [1_000, 70_000, 150_000, 333_333])
def test_spans_of_a_piece_are_those_that_begin_in_it(tmp_path: Path, size: int) -> None:
    path = tmp_path / "file"
    write_records(path, [(b"%05d" % number, bytes(60)) for number in range(9_000)], "NONE")
    file = SpannedFile(path, span_size=min(size, 150_000))
    pieces = [file.spans(start, start + size) for start in range(0, file.size, size)]
    assert [span for piece in pieces for span in piece] == file.spans()
    assert len(file.spans()) > 3


def _row(batch: Batch, of: Numbers) -> pl.DataFrame:
    rows = records_of(batch)
    return pl.DataFrame(
        [(int(number), *row) for number, row in zip(of, rows, strict=True)],
        schema={"of": pl.UInt32, "key": pl.Binary, "value": pl.Binary},
        orient="row",
    )


@pytest.mark.parametrize("compression", few(COMPRESSIONS))
@pytest.mark.parametrize("has_sums", few([True, False]))
def test_small_files_make_one_table(tmp_path: Path, compression: str, has_sums: bool) -> None:
    """Files of no, few and many records, one after the other, with their numbers."""
    expected = []
    for number, count in enumerate((3, 0, 1, 9_000, 2, 5)):
        records = some_records(Random(number), count)
        write_records(tmp_path / str(number), records, compression)
        if not has_sums:
            crc_path(tmp_path / str(number)).unlink(missing_ok=True)
        expected += [(number, *record) for record in records]
    paths = [tmp_path / str(number) for number in range(6)]
    tables = list(scan_numbered(paths, CRAWL_DATUM, _row))
    assert len(tables[0]) == 4 and len(tables) < 12
    assert pl.concat(tables).rows() == expected


@pytest.mark.parametrize("at", [0, 30, -1])
def test_a_damaged_one_among_small_files_is_named(tmp_path: Path, at: int) -> None:
    paths = [tmp_path / str(number) for number in range(3)]
    for path in paths:
        write_records(path, some_records(Random(1), 20), "NONE")
    data = bytearray(paths[1].read_bytes())
    data[at] ^= 1
    paths[1].write_bytes(data)
    with pytest.raises(ChecksumError, match=rf"{paths[1]}"):
        list(scan_numbered(paths, CRAWL_DATUM, _row))


def test_what_cannot_be_decoded_among_small_files_is_named(tmp_path: Path) -> None:
    paths = [tmp_path / str(number) for number in range(3)]
    for number, path in enumerate(paths):
        write_records(path, [(b"key", b"%d" % number)], "NONE")

    def decode(batch: Batch, of: Numbers) -> pl.DataFrame:
        if (b"key", b"1") in records_of(batch):
            raise FormatError("not a record")
        return _row(batch, of)

    with pytest.raises(FormatError, match=rf"{paths[1]}"):
        list(scan_numbered(paths, CRAWL_DATUM, decode))
