"""A CrawlDatum as a row and as columns: the same bytes, by hypothesis and by seeded random
records.
"""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import Any

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from minutch.errors import FormatError
from minutch.hadoop.formats.batch import Batch
from minutch.hadoop.formats.mapfile import MapFileWriter
from minutch.hadoop.formats.sequencewriter import TEXT
from minutch.hadoop.formats.writables import Text
from minutch.records import crawldatum_columns
from minutch.records.crawldatum import CrawlDatum
from minutch.records.crawldatum_columns import CRAWLDB_SCHEMA
from minutch.work.tables import recordfiles
from minutch.work.tables.recordfiles import CRAWL_DATUM, CrawlDataWriter
from tests.support.examples import examples
from tests.support.tables import Records, read_records, some_records, write_records

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


def write_by_rows(path: Path, frame: pl.DataFrame) -> None:
    """A MapFile written record by record, by the dataclass."""
    options: dict[str, Any] = {"sync": bytes(16), "index_sync": bytes(16)}
    with MapFileWriter(path, TEXT, CRAWL_DATUM, **options) as file:
        for url, datum in crawldatum_columns.records(frame):
            file.append_raw(Text(url).to_bytes(), datum.to_bytes())


def check(records: Records, directory: Path, compression: str) -> None:
    """Records are read as the dataclass reads them, and written as it writes them."""
    write_records(directory / "file", records, compression)
    frame = recordfiles.read(directory / "file")
    assert frame.schema == CRAWLDB_SCHEMA
    assert frame["key"].to_list() == [key for key, _ in records]
    rewritten = [CrawlDatum.from_bytes(value).to_bytes() for _, value in records]
    assert [datum.to_bytes() for _, datum in crawldatum_columns.records(frame)] == rewritten
    with CrawlDataWriter(directory / "columns", sync=bytes(16), index_sync=bytes(16)) as writer:
        writer.write(frame)
    write_by_rows(directory / "rows", frame)
    for name in ("data", ".data.crc", "index", ".index.crc"):
        assert (directory / "columns" / name).read_bytes() == (
            directory / "rows" / name
        ).read_bytes()


@settings(max_examples=examples(40))
@given(st.dictionaries(st.binary(max_size=200), data, max_size=30), st.sampled_from(COMPRESSIONS))
def test_any_record(entries: dict[bytes, CrawlDatum], compression: str) -> None:
    with TemporaryDirectory() as directory:
        check(
            [(key, entries[key].to_bytes()) for key in sorted(entries)],
            Path(directory),
            compression,
        )


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
    frame = recordfiles.read(tmp_path / "file")
    with CrawlDataWriter(tmp_path / "out", mapfile=False, compression=compression) as writer:
        writer.write(frame)
    assert read_records(tmp_path / "out") == records


@settings(max_examples=examples(100))
@given(st.binary(max_size=80))
def test_damaged_records_raise_only_our_error(garbage: bytes) -> None:
    for record in (garbage, b"\x07" + garbage, CrawlDatum(1).to_bytes()[:-1] + b"\1" + garbage):
        with suppress(FormatError):
            crawldatum_columns.decode(Batch.of([b"http://a/"], [record]))


def test_a_damaged_record_is_reported_with_its_file(tmp_path: Path) -> None:
    write_records(
        tmp_path / "file",
        [(b"http://a/", CrawlDatum(1).to_bytes()), (b"http://b/", b"\x07\x01")],
        "NONE",
    )
    with pytest.raises(FormatError, match=r"file.*http://b/"):
        recordfiles.read(tmp_path / "file")


def test_an_empty_map_is_no_metadata(tmp_path: Path) -> None:
    value = CrawlDatum(2).to_bytes()[:-1] + b"\1" + bytes(5)
    write_records(tmp_path / "file", [(b"http://a/", value)], "NONE")
    assert recordfiles.read(tmp_path / "file")["metadata"].to_list() == [None]


def test_other_classes_are_refused(tmp_path: Path) -> None:
    write_records(tmp_path / "file", [], "NONE", value_class="org.apache.nutch.crawl.Inlinks")
    with pytest.raises(FormatError, match="CrawlDatum"):
        recordfiles.scan(tmp_path / "file")


def test_keys_out_of_order_are_refused(tmp_path: Path) -> None:
    write_records(tmp_path / "file", some_records(Random(3), 50), "NONE")
    frame = recordfiles.read(tmp_path / "file")[::-1]
    for compression in COMPRESSIONS:
        path = tmp_path / compression
        with (
            pytest.raises(FormatError, match="out of order"),
            CrawlDataWriter(path, compression=compression) as writer,
        ):
            writer.write(frame)
        assert not (path / "data").exists()


def test_order_holds_over_tables(tmp_path: Path) -> None:
    write_records(tmp_path / "file", some_records(Random(3), 50), "NONE")
    frame = recordfiles.read(tmp_path / "file")
    with (
        pytest.raises(FormatError, match="out of order"),
        CrawlDataWriter(tmp_path / "out") as writer,
    ):
        writer.write(frame[10:])
        writer.write(frame[:10])
