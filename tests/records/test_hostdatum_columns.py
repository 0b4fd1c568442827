"""HostDatum as columns gives the records and bytes of the dataclass; what is cut off or damaged is
named.
"""

from __future__ import annotations

from random import Random

import pytest

from minutch.errors import FormatError
from minutch.hadoop.formats.batch import Batch
from minutch.hadoop.formats.javahash import float32
from minutch.hadoop.formats.writables import LongWritable, MapWritable, Text
from minutch.records.hostdatum import HostDatum
from minutch.records.hostdatum_columns import decode, encode, records


def a_datum(random: Random) -> HostDatum:
    counts = [random.choice((0, 1, 2**40, -1)) for _ in range(8)]
    pages = {
        Text(f"Content-Type.{kind}"): LongWritable(kind) for kind in range(random.randrange(20))
    }
    url = "http://" + "ä" * random.choice((0, 0, 3, 60, 61, 200, 70_000)) + "/"
    metadata = MapWritable(pages)
    return HostDatum(
        float32(random.random()),
        random.choice((0, 10**12)),
        random.choice(("", url)),
        *counts,
        metadata,
    )


def test_both_shapes_give_the_same_bytes() -> None:
    random = Random(1)
    values = [a_datum(random).to_bytes() for _ in range(200)]
    keys = [b"host%d" % number for number in range(200)]
    frame = decode(Batch.of(keys, values))
    buffer, at, length = encode(frame)
    assert [
        buffer[start : start + size].tobytes() for start, size in zip(at, length, strict=True)
    ] == values
    written = [
        (part.key(row), part.value(row)) for part in records(frame) for row in range(part.size)
    ]
    assert written == list(zip(keys, values, strict=True))


def test_an_empty_table() -> None:
    assert decode(Batch.of([], [])).is_empty()
    assert list(records(decode(Batch.of([], [])))) == []


def test_cut_off_at_every_length_is_an_error() -> None:
    whole = HostDatum(1.0, 5, "http://a/", 1, 2, 3, 4, 5, 6, 7, 8).to_bytes()
    for length in range(len(whole)):
        with pytest.raises(FormatError, match="b'host'"):
            decode(Batch.of([b"host"], [whole[:length]]))


@pytest.mark.parametrize("size", [b"\x80", b"\x8b\x7f\xff\xff\xff", b"\x7f"])
def test_an_impossible_length_of_the_home_page_is_an_error(size: bytes) -> None:
    whole = HostDatum().to_bytes()
    with pytest.raises(FormatError, match="b'host'"):
        decode(Batch.of([b"host"], [whole[:12] + size + whole[13:]]))
