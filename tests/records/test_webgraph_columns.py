"""LinkDatum, Node and dated outlinks: columns say the same as the dataclasses, on random and on
damaged records.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from contextlib import suppress

import polars as pl
import pytest

from minutch.errors import FormatError
from minutch.hadoop.formats.batch import Batch, Places
from minutch.hadoop.formats.writables import BooleanWritable, MapWritable, Text, Writable
from minutch.records.links import Outlink
from minutch.records.metadata import FETCH_TIME_KEY, Metadata
from minutch.records.parsedata import ParseData, ParseStatus
from minutch.records.webgraph import (
    LinkDatum,
    Node,
    decode_dated_outlinks,
    decode_link_data,
    decode_nodes,
    link_data_records,
    node_records,
)
from tests.support.examples import tabled

LENGTHS = (0, 1, 7, 12, 13, 127, 128, 300, 70_000)


def text(rng: random.Random) -> str:
    return "".join(rng.choices("aé/\U0001f600.", k=rng.choice(LENGTHS) // 4))


def links(count: int, seed: int) -> list[LinkDatum]:
    rng = random.Random(seed)
    return [
        LinkDatum(
            text(rng),
            text(rng),
            rng.choice((0.0, -1.5, 3e38)),
            rng.choice((0, -1, 2**62, -(2**63))),
            rng.randrange(3),
        )
        for _ in range(count)
    ]


def nodes(count: int, seed: int) -> list[Node]:
    rng = random.Random(seed)
    extra = [Metadata(), Metadata.of({"k": "v"}), Metadata.of({"grün": ["", "x" * 300]})]
    return [
        Node(rng.randrange(2**31), rng.randrange(9), rng.choice((0.25, -0.0)), rng.choice(extra))
        for _ in range(count)
    ]


def batch(records: Sequence[Writable]) -> Batch:
    return Batch.of(
        [b"key %d" % i for i in range(len(records))], [record.to_bytes() for record in records]
    )


def written(places: Iterator[Places]) -> list[tuple[bytes, bytes]]:
    return [(piece.key(row), piece.value(row)) for piece in places for row in range(piece.size)]


def test_links() -> None:
    records = links(200, 1)
    table = decode_link_data(batch(records))
    assert table.drop("key").rows() == [
        (
            link.url.encode(),
            link.anchor.encode(),
            pytest.approx(link.score),
            link.timestamp,
            link.link_type,
        )
        for link in records
    ]
    assert written(link_data_records(table)) == [
        (b"key %d" % i, link.to_bytes()) for i, link in enumerate(records)
    ]


def test_nodes() -> None:
    records = nodes(200, 2)
    table = decode_nodes(batch(records))
    assert [row[1:4] for row in table.rows()] == [
        (n.num_inlinks, n.num_outlinks, n.inlink_score) for n in records
    ]
    assert table["metadata"].null_count() == sum(not node.metadata for node in records)
    assert written(node_records(table)) == [
        (b"key %d" % i, node.to_bytes()) for i, node in enumerate(records)
    ]


def test_nothing() -> None:
    for decode, write in ((decode_link_data, link_data_records), (decode_nodes, node_records)):
        assert written(write(decode(batch([])))) == []
    assert len(decode_dated_outlinks(batch([]))) == 0


@pytest.mark.parametrize("decode", [decode_link_data, decode_nodes])
def test_damage(decode) -> None:  # type: ignore[no-untyped-def]
    records = links(20, 3) if decode is decode_link_data else nodes(20, 3)
    good = [record.to_bytes() for record in records]
    keys = [b"key %d" % i for i in range(len(good))]
    for cut in (0, 1, 5, 11, 15):
        with pytest.raises(FormatError, match="record of b'key 7'"):
            decode(Batch.of(keys, [*good[:7], good[7][:cut], *good[8:]]))
    if decode is decode_link_data:
        with pytest.raises(FormatError, match="left over"):
            decode(Batch.of(keys, [*good[:7], good[7] + b"\0", *good[8:]]))
        rng = random.Random(4)
        for _ in range(300):
            value = bytearray(good[3][:200])
            value[rng.randrange(len(value))] ^= 1 << rng.randrange(8)
            with suppress(FormatError):
                decode(Batch.of(keys[:1], [bytes(value)]))


ODD = MapWritable({Text("rel"): BooleanWritable(True)})  # a class that kernels don't pass over


def page(times: Sequence[str] | None, count: int, *, odd: bool = False) -> ParseData:
    content = Metadata.of({"Content-Type": "text/html", "x": ["1", "2"]})
    if times is not None:
        content[FETCH_TIME_KEY] = list(times)
    found = [
        Outlink(f"http://a/{i}", "anchor", ODD if odd else MapWritable()) for i in range(count)
    ]
    return ParseData(
        ParseStatus(1, 0, ["x", None]), "title", found, content, Metadata.of({FETCH_TIME_KEY: "7"})
    )


@tabled(
    ("times", "expected"),
    [
        (["1770000000000"], 1_770_000_000_000),
        (["-5"], -5),
        (["+5", "6"], 5),
        (["0"], 0),
        ([""], None),
        (["soon"], None),
        (["1.5"], None),
        (["-"], None),
        (["9" * 30], None),
        (None, None),
    ],
)
@tabled("odd", [False, True])
def test_the_time_of_a_fetch(times: list[str] | None, expected: int | None, odd: bool) -> None:
    pages = [
        page(["3"], 2),
        page(times, 3, odd=odd),
        page(["4"], 0),
        page(None, 1, odd=odd),
        page(["5"], 1),
    ]
    table = decode_dated_outlinks(batch(pages))
    assert table["timestamp"].to_list() == [3, 3, *[expected] * 3, None, 5]
    assert table["key"].to_list() == [b"key 0"] * 2 + [b"key 1"] * 3 + [b"key 3", b"key 4"]
    assert table["to_url"].dtype == pl.Binary


def test_damaged_pages() -> None:
    good = page(["3"], 2).to_bytes()
    rest = len(
        Metadata.of({FETCH_TIME_KEY: "7"}).to_bytes()
    )  # metadata of the parse, which nobody reads
    for cut in range(len(good) - rest):
        with pytest.raises(FormatError):
            decode_dated_outlinks(Batch.of([b"k"], [good[:cut]]))
    rng = random.Random(6)
    for _ in range(300):
        value = bytearray(good)
        value[rng.randrange(len(value))] ^= 1 << rng.randrange(8)
        with suppress(FormatError):
            decode_dated_outlinks(Batch.of([b"k"], [bytes(value)]))
