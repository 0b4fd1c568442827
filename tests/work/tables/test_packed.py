"""Packed tables: what is copied through is what decoding a record and encoding it would give."""

from __future__ import annotations

from pathlib import Path
from random import Random

import numpy as np
import polars as pl
import pytest

from minutch.errors import FormatError
from minutch.hadoop.formats.checksum import verify_file
from minutch.records.crawldatum import CrawlDatum
from minutch.records.crawldatum_columns import CRAWLDB_SCHEMA, PACKED_SCHEMA, records
from minutch.work.tables import recordfiles
from minutch.work.tables.frame import concat
from minutch.work.tables.recordfiles import (
    CrawlDataWriter,
    Patched,
    PatchedWriter,
    pack,
    scan_packed,
    take,
    unpack,
)
from tests.support.tables import Records, some_records, write_records

FILES = ("data", ".data.crc", "index", ".index.crc")
PLAIN = CrawlDatum(2, signature=b"0123456789abcdef").to_bytes()
ODD = {
    "an empty map": PLAIN[:-1] + b"\1" + bytes(5),
    "another true": CrawlDatum(1).to_bytes()[:-1] + b"\2" + bytes(4) + b"\1\x8c\1a\x8c\1b",
    "a signature of less than no bytes": CrawlDatum(1).to_bytes()[:27] + b"\xff\0",
    "an older version": b"\5"
    + CrawlDatum(1, fetch_interval=5).to_bytes()[1:11]
    + b"\x40\xa0\0\0"
    + bytes(14),
}


def read(path: Path) -> pl.DataFrame:
    return pl.concat(scan_packed(path))


def values_of(frame: pl.DataFrame) -> list[bytes]:
    """The serialized records of a table, by the dataclass."""
    return [datum.to_bytes() for _, datum in records(frame)]


@pytest.mark.parametrize("compression", ["NONE", "RECORD", "BLOCK"])
@pytest.mark.parametrize("old_versions", [False, True])
def test_a_packed_table_holds_what_decoding_and_encoding_give(
    tmp_path: Path, compression: str, old_versions: bool
) -> None:
    for seed in range(3):
        write_records(
            tmp_path / "file",
            some_records(Random(seed), 400, old_versions=old_versions),
            compression,
        )
        frame = recordfiles.read(tmp_path / "file")
        packed = read(tmp_path / "file")
        again = unpack(packed)
        assert packed.schema == PACKED_SCHEMA and again.schema == CRAWLDB_SCHEMA
        assert packed["key"].to_list() == frame["key"].to_list()
        assert packed["status"].to_list() == frame["status"].to_list()
        assert packed["value"].to_list() == values_of(frame) == values_of(again)


@pytest.mark.parametrize("odd", ODD)
def test_records_that_would_be_written_otherwise_are_written_anew(tmp_path: Path, odd: str) -> None:
    write_records(tmp_path / "file", [(b"a", PLAIN), (b"b", ODD[odd]), (b"c", PLAIN)], "NONE")
    values = read(tmp_path / "file")["value"].to_list()
    assert (
        values == [PLAIN, CrawlDatum.from_bytes(ODD[odd]).to_bytes(), PLAIN]
        and values[1] != ODD[odd]
    )


@pytest.mark.parametrize("size", range(len(PLAIN)))
def test_a_record_that_ends_too_soon_is_named(tmp_path: Path, size: int) -> None:
    write_records(tmp_path / "file", [(b"http://a/", PLAIN), (b"http://b/", PLAIN[:size])], "NONE")
    with pytest.raises(FormatError, match=r"file.*http://b/"):
        read(tmp_path / "file")


def test_rows_are_taken_by_position(tmp_path: Path) -> None:
    write_records(tmp_path / "file", some_records(Random(7), 100), "NONE")
    frame = recordfiles.read(tmp_path / "file")
    packed = read(tmp_path / "file")
    some = take(packed, np.array([5, 59, 5, 0]))
    others = take(packed, np.array([-1, 3, -1]))
    none = take(packed, np.array([], np.int64))
    assert values_of(some) == values_of(frame[[5, 59, 5, 0]])
    assert values_of(others[1:2]) == values_of(frame[[3]])
    assert others.schema == CRAWLDB_SCHEMA and others[::2].null_count().row(0) == (2,) * len(
        CRAWLDB_SCHEMA
    )
    assert none.schema == CRAWLDB_SCHEMA and none.is_empty()
    nothing = take(packed, np.array([-1, -1]))
    assert nothing.schema == CRAWLDB_SCHEMA and nothing["status"].null_count() == 2


def patched(entries: Records, directory: Path, random: Random) -> tuple[Patched, pl.DataFrame]:
    """Some of the records as a packed table, others put in or in the place of what was there; and
    the whole table.

    Records are also in it with other scores than they will have.
    """
    write_records(directory / "all", entries, "NONE")
    whole = recordfiles.read(directory / "all")
    kinds = [random.choice(("kept", "kept", "kept", "changed", "added", "scored")) for _ in entries]
    table = [i for i, kind in enumerate(kinds) if kind != "added"]
    more = [i for i, kind in enumerate(kinds) if kind in ("changed", "added")]
    changes = pl.Series(
        [kinds[i] in ("changed", "scored") for i in table]
    )  # what is replaced is another record
    old = whole[table].with_columns(
        score=pl.when(changes).then(1.5).otherwise("score").cast(pl.Float32)
    )
    before = [sum(j < i for j in table) for i in more]
    at = [place if kinds[i] == "changed" else -1 for i, place in zip(more, before, strict=True)]
    scored = np.array([row for row, i in enumerate(table) if kinds[i] == "scored"], np.int64)
    scores = whole[table]["score"].gather(scored)
    patches = Patched(
        pack(old), whole[more], np.array(at, np.int64), np.array(before, np.int64), scored, scores
    )
    return patches, whole


@pytest.mark.parametrize("seed", range(5))
def test_what_is_written_is_what_a_table_of_all_entries_gives(tmp_path: Path, seed: int) -> None:
    patches, whole = patched(some_records(Random(seed), 700), tmp_path, Random(seed))
    assert len(patches) == len(whole)
    with CrawlDataWriter(tmp_path / "whole", sync=bytes(16), index_sync=bytes(16)) as writer:
        writer.write(whole)
    with PatchedWriter(tmp_path / "patched", sync=bytes(16), index_sync=bytes(16)) as patcher:
        patcher.write(patches)
    assert patcher.rows == len(whole)
    for file in FILES:
        assert (tmp_path / "patched" / file).read_bytes() == (
            tmp_path / "whole" / file
        ).read_bytes()
    verify_file(tmp_path / "patched" / "data")


def test_rows_in_the_wrong_place_are_refused(tmp_path: Path) -> None:
    write_records(tmp_path / "file", some_records(Random(3), 50), "NONE")
    packed = read(tmp_path / "file")
    with (
        pytest.raises(FormatError, match="out of order"),
        PatchedWriter(tmp_path / "out") as writer,
    ):
        writer.write(Patched(packed, take(packed, np.array([30])), np.array([10]), np.array([10])))
    assert not (tmp_path / "out" / "data").exists()


def test_nothing_patched_by_nothing(tmp_path: Path) -> None:
    nothing = np.array([], np.int64)
    with PatchedWriter(tmp_path / "out") as writer:
        writer.write(Patched(pl.DataFrame(schema=PACKED_SCHEMA), concat([]), nothing, nothing))
    assert recordfiles.read(tmp_path / "out").is_empty()
