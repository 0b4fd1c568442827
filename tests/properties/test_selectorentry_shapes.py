"""A SelectorEntry as a row and as columns: the same bytes, whatever the compression of the file."""

from __future__ import annotations

from pathlib import Path
from random import Random

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from minutch.formats.javaio import decode_text
from minutch.formats.writables import MapWritable, Text
from minutch.kernels.arrow import Bytes
from minutch.records import selectorentry_bulk
from minutch.records.crawldatum import CrawlDatum
from minutch.records.selectorentry import SelectorEntry
from minutch.tables.frame import CRAWLDB_SCHEMA
from minutch.tables.rows import records
from minutch.tables.spans import Batch, BulkFile
from tests.support.tables import by_kernels, some_records, write_records

COMPRESSIONS = ("NONE", "RECORD", "BLOCK")

some_entries = st.builds(SelectorEntry, st.text(max_size=300), st.builds(CrawlDatum), st.integers(-(2**31), 2**31 - 1))


def batch_of(path: Path) -> Batch:
    """All records of a file, found by kernels."""
    file = BulkFile(path)
    (span,) = file.spans()
    with by_kernels():
        batch = file.batch(span)
    assert batch is not None
    return batch


def decoded(path: Path, values: list[bytes], compression: str) -> pl.DataFrame | None:
    named = [(b"key %d" % number, value) for number, value in enumerate(values)]
    write_records(path, named, compression, SelectorEntry.class_name)
    return selectorentry_bulk.decode(batch_of(path))


def encoded(frame: pl.DataFrame) -> list[bytes]:
    out, at, length = selectorentry_bulk.encode(frame)
    assert len(out) == length.sum()
    return [_slice(out, start, size) for start, size in zip(at, length, strict=True)]


def _slice(out: Bytes, start: int, size: int) -> bytes:
    return out[start : start + size].tobytes()


def check(entries: list[SelectorEntry], path: Path, compression: str) -> None:
    values = [entry.to_bytes() for entry in entries]
    frame = decoded(path, values, compression)
    assert frame is not None
    assert frame.schema == {**CRAWLDB_SCHEMA, "segment": pl.Int32()}
    rows = zip(records(frame), frame["segment"], strict=True)
    assert [SelectorEntry(url, datum, number).to_bytes() for (url, datum), number in rows] == values
    assert encoded(frame) == values


@pytest.mark.parametrize("compression", COMPRESSIONS)
@pytest.mark.parametrize("seed", range(3))
def test_random_entries(tmp_path: Path, seed: int, compression: str) -> None:
    random = Random(seed)
    entries = [
        SelectorEntry(decode_text(url), CrawlDatum.from_bytes(value), random.choice((0, 1, -1, 2**31 - 1, -(2**31))))
        for url, value in some_records(random, 300)
    ]
    check(entries, tmp_path / "file", compression)


@settings(max_examples=50, deadline=None)
@given(st.lists(some_entries, min_size=1))
def test_any_entry(tmp_path_factory: pytest.TempPathFactory, entries: list[SelectorEntry]) -> None:
    check(entries, tmp_path_factory.mktemp("entries") / "file", "NONE")


def test_cut_off_at_every_length(tmp_path: Path) -> None:
    metadata = MapWritable([(Text("k"), Text("v"))])
    whole = SelectorEntry("http://a.example/", CrawlDatum(1, signature=b"x" * 16, metadata=metadata), 7).to_bytes()
    bare = SelectorEntry("http://a.example/", CrawlDatum(1), 7).to_bytes()
    assert decoded(tmp_path / "whole", [whole], "NONE") is not None
    for size in range(len(bare)):
        assert decoded(tmp_path / "file", [whole, bare[:size]], "NONE") is None


def test_older_versions_are_left_to_the_row_codec(tmp_path: Path) -> None:
    entry = SelectorEntry("http://a/", CrawlDatum(1), 2).to_bytes()
    old = entry[:10] + b"\x06" + entry[11:]
    assert entry[10] == 7
    assert decoded(tmp_path / "file", [old], "NONE") is None
