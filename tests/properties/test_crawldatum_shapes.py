"""A CrawlDatum as a row and as columns: the same bytes, by hypothesis and by seeded random records."""

from __future__ import annotations

from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from minutch.errors import FormatError
from minutch.records.crawldatum import CrawlDatum
from minutch.records.crawldatum_columns import decode_datum, encode_datum
from minutch.tables import crawldata
from minutch.tables.crawldata import CrawlDataWriter
from minutch.tables.frame import CRAWLDB_SCHEMA
from tests.support.tables import Records, by_kernels, read_records, record_by_record, some_records, write_records

COMPRESSIONS = ("NONE", "RECORD", "BLOCK")

data = st.builds(
    CrawlDatum,
    status=st.integers(0, 127),
    fetch_interval=st.integers(-(2**31), 2**31 - 1),
    score=st.floats(width=32),
    fetch_time=st.integers(-(2**63), 2**63 - 1),
    modified_time=st.integers(-(2**63), 2**63 - 1),
    retries=st.integers(-128, 127),
    signature=st.none() | st.binary(min_size=1, max_size=127),
)


def both_ways(path: Path) -> tuple[pl.DataFrame, pl.DataFrame]:
    """A file read by kernels and record by record."""
    with by_kernels():
        bulk = crawldata.read(path)
    with record_by_record():
        return bulk, crawldata.read(path)


def write_both_ways(directory: Path, frame: pl.DataFrame, compression: str) -> tuple[Path, Path]:
    """A MapFile written by kernels and one written record by record."""
    paths = directory / "bulk", directory / "rows"
    for path, name in zip(paths, ("_open_bulk", "_open_rows"), strict=True):
        writer = CrawlDataWriter(path, compression=compression, sync=bytes(16), index_sync=bytes(16))
        writer._sink = getattr(writer, name)()
        with writer:
            writer.write(frame)
    return paths


def check(records: Records, directory: Path, compression: str) -> None:
    """Records come back the same both ways, and are written the same both ways."""
    write_records(directory / "file", records, compression)
    bulk, rows = both_ways(directory / "file")
    assert bulk.schema == CRAWLDB_SCHEMA
    assert bulk.drop("score").equals(rows.drop("score"))
    assert bulk["key"].to_list() == [key for key, _ in records]
    rewritten = [CrawlDatum.from_bytes(value).to_bytes() for _, value in records]
    assert [encode_datum(row[1:]) for row in bulk.iter_rows()] == rewritten
    first, second = write_both_ways(directory, bulk, "NONE")
    for name in ("data", ".data.crc", "index", ".index.crc"):
        assert (first / name).read_bytes() == (second / name).read_bytes()
    assert read_records(first / "data") == [(k, v) for (k, _), v in zip(records, rewritten, strict=True)]


@settings(max_examples=40, deadline=None)
@given(st.dictionaries(st.binary(max_size=200), data, max_size=30), st.sampled_from(COMPRESSIONS))
def test_any_record(entries: dict[bytes, CrawlDatum], compression: str) -> None:
    with TemporaryDirectory() as directory:
        check([(key, entries[key].to_bytes()) for key in sorted(entries)], Path(directory), compression)


@pytest.mark.parametrize("compression", COMPRESSIONS)
@pytest.mark.parametrize("seed", range(4))
def test_random_records(tmp_path: Path, seed: int, compression: str) -> None:
    check(some_records(Random(seed), 500), tmp_path, compression)


@pytest.mark.parametrize("seed", range(3))
def test_old_versions(tmp_path: Path, seed: int) -> None:
    check(some_records(Random(seed), 200, old_versions=True), tmp_path, "NONE")


@pytest.mark.parametrize("compression", COMPRESSIONS)
def test_compressed_output_holds_the_same_records(tmp_path: Path, compression: str) -> None:
    records = some_records(Random(9), 300)
    write_records(tmp_path / "file", records, "NONE")
    frame = crawldata.read(tmp_path / "file")
    with CrawlDataWriter(tmp_path / "out", mapfile=False, compression=compression) as writer:
        if compression != "BLOCK":
            writer._sink = writer._open_bulk()
        writer.write(frame)
    assert read_records(tmp_path / "out") == records


@settings(max_examples=200, deadline=None)
@given(st.binary(max_size=80))
def test_damaged_records_raise_only_our_error(garbage: bytes) -> None:
    for record in (garbage, b"\x07" + garbage, CrawlDatum(1).to_bytes()[:-1] + b"\1" + garbage):
        try:
            decode_datum(record)
        except FormatError as exc:
            assert exc.offset is not None


def test_a_damaged_record_is_reported_with_its_file(tmp_path: Path) -> None:
    write_records(tmp_path / "file", [(b"http://a/", CrawlDatum(1).to_bytes()), (b"http://b/", b"\x07\x01")], "NONE")
    with by_kernels(), pytest.raises(FormatError, match=r"file.*http://b/"):
        crawldata.read(tmp_path / "file")


def test_an_empty_map_is_no_metadata(tmp_path: Path) -> None:
    value = CrawlDatum(2).to_bytes()[:-1] + b"\1" + bytes(5)
    write_records(tmp_path / "file", [(b"http://a/", value)], "NONE")
    for frame in both_ways(tmp_path / "file"):
        assert frame["metadata"].to_list() == [None]


def test_other_classes_are_refused(tmp_path: Path) -> None:
    write_records(tmp_path / "file", [], "NONE", value_class="org.apache.nutch.crawl.Inlinks")
    with pytest.raises(FormatError, match="CrawlDatum"):
        crawldata.scan(tmp_path / "file")


def test_keys_out_of_order_are_refused_either_way(tmp_path: Path) -> None:
    write_records(tmp_path / "file", some_records(Random(3), 50), "NONE")
    frame = crawldata.read(tmp_path / "file")[::-1]
    for name in ("_open_bulk", "_open_rows"):
        writer = CrawlDataWriter(tmp_path / name)
        writer._sink = getattr(writer, name)()
        with pytest.raises(FormatError, match="out of order"), writer:
            writer.write(frame)
        assert not (tmp_path / name / "data").exists()


def test_order_holds_over_tables(tmp_path: Path) -> None:
    write_records(tmp_path / "file", some_records(Random(3), 50), "NONE")
    frame = crawldata.read(tmp_path / "file")
    writer = CrawlDataWriter(tmp_path / "out")
    writer._sink = writer._open_bulk()
    with pytest.raises(FormatError, match="out of order"), writer:
        writer.write(frame[10:])
        writer.write(frame[:10])
