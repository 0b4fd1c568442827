"""A value in the content metadata replaced by kernels, compared with the record taken apart and
written again.
"""

from __future__ import annotations

import random

import pytest

from minutch.errors import FormatError
from minutch.hadoop.formats.batch import Batch
from minutch.hadoop.formats.writables import FloatWritable, MapWritable, Text
from minutch.records.links import Outlink
from minutch.records.metadata import SEGMENT_NAME_KEY, Metadata
from minutch.records.parsedata import ParseData, ParseStatus
from minutch.records.parsedata_columns import with_content_meta

NEW = "20260202000000-17"


def random_data(seed: int) -> ParseData:
    rng = random.Random(seed)
    values = rng.choice(([], ["20260101000000"], ["x" * 300], ["a", "b"], [""]))
    names = [f"n{rng.randrange(100)}" for _ in range(rng.randrange(20))] + [
        SEGMENT_NAME_KEY
    ] * bool(values)
    rng.shuffle(names)
    meta = Metadata(
        {
            name: values if name == SEGMENT_NAME_KEY else ["v"] * rng.randrange(1, 3)
            for name in names
        }
    )
    links = [Outlink(f"http://{i}/", "€" * rng.randrange(9)) for i in range(rng.randrange(4))]
    if links and rng.random() < 0.3:
        links[0].metadata = MapWritable({Text(SEGMENT_NAME_KEY): FloatWritable(1.0)})
    status = ParseStatus(2, 0, ["argument"] * rng.randrange(3))
    return ParseData(
        status,
        SEGMENT_NAME_KEY * rng.randrange(2),
        links,
        meta,
        Metadata.of({SEGMENT_NAME_KEY: "parse"}),
    )


def expected(data: bytes) -> bytes:
    record = ParseData.from_bytes(data)
    record.content_meta.set(SEGMENT_NAME_KEY, NEW)
    return record.to_bytes()


def test_replacing_is_what_taking_apart_gives() -> None:
    values = [random_data(seed).to_bytes() for seed in range(300)]
    changed = with_content_meta(Batch.of([b"k"] * len(values), values), SEGMENT_NAME_KEY, NEW)
    assert [changed.value(row) for row in range(changed.size)] == list(map(expected, values))


def test_damaged_records_are_errors_or_as_when_taken_apart() -> None:
    data = random_data(4).to_bytes()
    rng = random.Random(1)
    cut = [data[:size] for size in range(len(data))]
    flipped = [
        bytes(b ^ (rng.randrange(1, 256) if i == at else 0) for i, b in enumerate(data))
        for at in range(len(data))
    ]
    for damaged in cut + flipped:
        try:
            with_content_meta(Batch.of([b"http://a/"], [damaged]), SEGMENT_NAME_KEY, NEW)
        except FormatError as exc:
            assert "http://a/" in str(exc)


def test_nothing_of_nothing() -> None:
    assert with_content_meta(Batch.of([], []), SEGMENT_NAME_KEY, NEW).size == 0


def test_what_is_no_parse_data_names_its_key() -> None:
    with pytest.raises(FormatError, match="http://a/"):
        with_content_meta(Batch.of([b"http://a/"], [b"\x09"]), SEGMENT_NAME_KEY, NEW)
