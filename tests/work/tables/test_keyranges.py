"""Sorted files cut into ranges of keys: each record of a range is found, whatever the
compression.
"""

from __future__ import annotations

from itertools import chain, pairwise
from pathlib import Path

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from minutch.cycle.segment.store import CRAWL_FETCH, LAYOUTS
from minutch.errors import FormatError
from minutch.hadoop.formats.javaio import encode_vlong
from minutch.hadoop.formats.mapfile import INDEX, MapFileWriter
from minutch.hadoop.formats.sequencewriter import TEXT
from minutch.records.parsedata import ParseText
from minutch.work.tables.keyranges import KeyRange, SortedPart, cut
from tests.support.examples import examples

CLASS = ParseText.class_name
SIZE = 1500
"""Large enough for several blocks (of a million bytes)."""
KEYS = [b"http://h%d.org/%d" % (number // 300, number) for number in range(100, 1000)]


def write(path: Path, keys: list[bytes], **options: object) -> SortedPart:
    with MapFileWriter(path, TEXT, CLASS, **options) as writer:
        for key in sorted(keys):
            writer.append_raw(encode_vlong(len(key)) + key, key[-3:] * SIZE)
    return SortedPart(path, CLASS)


def found(part: SortedPart, keys: KeyRange, only: list[bytes] | None = None) -> list[bytes]:
    batch = part.batch(keys, None if only is None else pl.Series(only, dtype=pl.Binary))
    every = [(batch.key(row), batch.value(row)) for row in range(batch.size)]
    assert all(value == key[-3:] * SIZE for key, value in every)
    return [key for key, _ in every]


@pytest.fixture(scope="module", params=["NONE", "RECORD", "BLOCK", "zstd"])
def part(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> SortedPart:
    path = tmp_path_factory.mktemp("parts") / "part-r-00000"
    codec = (
        {"codec": "org.apache.hadoop.io.compress.ZStandardCodec"} if request.param == "zstd" else {}
    )
    return write(path, KEYS, compression="RECORD" if codec else request.param, **codec)


@settings(max_examples=examples(40))
@given(st.lists(st.one_of(st.sampled_from(KEYS), st.binary(max_size=14)), max_size=2, unique=True))
def test_any_range(part: SortedPart, bounds: list[bytes]) -> None:
    ends = [None, *sorted(bounds), None]
    pieces = [found(part, KeyRange(low, high)) for low, high in pairwise(ends)]
    assert [key for piece in pieces for key in piece] == sorted(KEYS)


def test_some_keys_of_a_range(part: SortedPart) -> None:
    every = sorted(KEYS)
    only = [every[700], every[3], b"missing", every[10], every[-1]]
    assert found(part, KeyRange(every[10], every[-1]), only) == [every[10], every[700]]
    assert found(part, KeyRange(), []) == []


@pytest.mark.parametrize("size", [1, 100_000, 10**9])
def test_cut_ranges_cover_all_keys_of_all_parts(tmp_path: Path, size: int) -> None:
    parts = [write(tmp_path / str(n), KEYS[n::3]) for n in range(3)] + [
        write(tmp_path / "empty", [])
    ]
    ranges = cut(parts, size)
    assert (ranges[0].low, ranges[-1].high) == (None, None)
    assert [keys.high for keys in ranges[:-1]] == [keys.low for keys in ranges[1:]]
    pieces = [sorted(chain.from_iterable(found(part, keys) for part in parts)) for keys in ranges]
    assert list(chain.from_iterable(pieces)) == sorted(KEYS)
    assert len(ranges) > 1 or size > 100_000


def test_a_file_without_its_index(tmp_path: Path) -> None:
    write(tmp_path / "part", KEYS)
    (tmp_path / "part" / INDEX).unlink()
    again = SortedPart(tmp_path / "part", CLASS)
    assert found(again, KeyRange(KEYS[700], KEYS[702])) == KEYS[700:702]
    assert len(cut([again], 100_000)) > 1


def test_another_class(tmp_path: Path) -> None:
    write(tmp_path / "part", KEYS)
    with pytest.raises(FormatError, match="unexpected classes"):
        SortedPart(tmp_path / "part", LAYOUTS[CRAWL_FETCH].value_class)


def test_damage_in_a_range_is_named(tmp_path: Path) -> None:
    part = write(tmp_path / "part", KEYS)
    data = bytearray((tmp_path / "part/data").read_bytes())
    data[len(data) // 2] ^= 1
    (tmp_path / "part/data").write_bytes(data)
    with pytest.raises(FormatError, match="part/data"):
        part.batch(KeyRange())
    assert found(part, KeyRange(None, KEYS[3])) == KEYS[:3]
