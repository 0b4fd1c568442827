"""Partitions are Hadoop's."""

from __future__ import annotations

import base64
import gzip
import json
from random import Random

import polars as pl
import pytest

from minutch.hadoop.formats import javahash
from minutch.work.tables.shuffle import partition_of, split
from tests.support.golden import GOLDEN, needs_golden
from tests.support.tables import a_key


@pytest.mark.parametrize("parts", [1, 2, 3, 7, 100])
def test_parts_are_those_of_the_hash(parts: int) -> None:
    random = Random(parts)
    keys = [a_key(random) for _ in range(500)]
    found = partition_of(pl.Series(keys, dtype=pl.Binary), parts)
    assert found.dtype == pl.UInt32
    assert found.to_list() == [javahash.partition(key, parts) for key in keys]


def test_split_keeps_every_row_and_the_order() -> None:
    random = Random(1)
    frame = pl.DataFrame({"key": [a_key(random) for _ in range(300)], "row": range(300)})
    pieces = split(frame, 4)
    assert sorted(row for piece in pieces for row in piece["row"]) == list(range(300))
    for i, piece in enumerate(pieces):
        assert piece["row"].is_sorted()
        assert all(javahash.partition(key, 4) == i for key in piece["key"])
    assert split(frame, 1)[0].equals(frame)


@needs_golden("sequencefiles/records-text-text.jsonl.gz")
def test_golden_partitions_of_long_and_odd_texts() -> None:
    with gzip.open(
        GOLDEN / "sequencefiles" / "records-text-text.jsonl.gz", "rt", encoding="utf-8"
    ) as lines:
        keys = [javahash_text(base64.b64decode(json.loads(line)["k"])) for line in lines]
    found = partition_of(pl.Series(keys, dtype=pl.Binary), 5)
    assert found.to_list() == [javahash.partition(key, 5) for key in keys]


def javahash_text(serialized: bytes) -> bytes:
    """The bytes of a serialized Text."""
    from minutch.hadoop.formats.javaio import DataInput

    return DataInput(serialized).read_text_bytes()
