"""ParseData, ParseText and metadata as columns: kernels against dataclasses, on random and on
damaged records.
"""

from __future__ import annotations

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from minutch.errors import FormatError
from minutch.hadoop.formats.batch import Batch
from minutch.hadoop.formats.writables import (
    BytesWritable,
    IntWritable,
    LongWritable,
    MapWritable,
    Text,
    Writable,
)
from minutch.records.links import Outlink
from minutch.records.metadata import Metadata
from minutch.records.parsedata import ParseData, ParseStatus, ParseText
from minutch.records.parsedata_columns import ParseTable, decode, decode_texts
from minutch.work.tables.frame import decode_keys
from tests.support.examples import examples

NAMES = st.sampled_from(
    ["a", "Content-Type", "content-type", "CONTENT-TYPE", "robots", "é", "É", "\u212a", "k"]
)
TEXTS = st.text(st.characters(codec="utf-8"), max_size=8)
METADATA = st.dictionaries(NAMES, st.lists(TEXTS, min_size=1, max_size=3), max_size=4).map(Metadata)
VALUES: st.SearchStrategy[Writable] = st.one_of(
    TEXTS.map(Text), st.integers(0, 9).map(IntWritable), st.integers(0, 9).map(LongWritable)
)
MAPS = st.dictionaries(NAMES.map(Text), VALUES, max_size=4).map(MapWritable)
STATUSES = st.builds(
    ParseStatus, st.integers(0, 2), st.integers(0, 300), st.lists(TEXTS, max_size=2)
)
OUTLINKS = st.builds(Outlink, TEXTS, TEXTS, st.one_of(st.none(), MAPS.filter(bool)))
RECORDS = st.builds(ParseData, STATUSES, TEXTS, st.lists(OUTLINKS, max_size=3), METADATA, METADATA)


def table(records: list[ParseData]) -> ParseTable:
    return decode(batch([record.to_bytes() for record in records]))


def values_of(found: ParseTable, name: str, of: str) -> list[tuple[int, str]]:
    values = found.all_values(name, of)
    return list(zip(values["row"], decode_keys(values["value"]), strict=True))


def _in_order(metadata: Metadata) -> Metadata:
    """The same as it is read back, in the order in which it is stored."""
    return Metadata.from_bytes(metadata.to_bytes())


def batch(values: list[bytes]) -> Batch:
    return Batch.of([b"http://a.org/%d" % number for number in range(len(values))], values)


@settings(max_examples=examples(50))
@given(st.lists(RECORDS, max_size=5))
def test_parts_of_records(records: list[ParseData]) -> None:
    found = table(records)
    assert decode_keys(found.titles()).to_list() == [record.title for record in records]
    assert found.is_success.to_list() == [record.status.is_success for record in records]
    assert [found.record(row) for row in range(len(records))] == records
    for name in ("a", "A", "content-type", "Content-type", "robots", "é", "É", "K", "\u212a"):
        content = [_in_order(record.content_meta).field(name) for record in records]
        parsed = [record.parse_meta.get(name) for record in records]
        assert decode_keys(found.first_values(name, "content")).to_list() == content
        assert decode_keys(found.first_values(name, "parse")).to_list() == parsed
        assert values_of(found, name, "content") == [
            (row, value)
            for row, record in enumerate(records)
            for value in _in_order(record.content_meta).field_values(name)
        ]
        assert values_of(found, name, "parse") == [
            (row, value)
            for row, record in enumerate(records)
            for value in record.parse_meta.get_values(name)
        ]
    links = [
        (row, link.to_url, link.anchor)
        for row, record in enumerate(records)
        for link in record.outlinks
    ]
    outlinks = found.outlinks()
    texts = [decode_keys(outlinks[name]) for name in ("to_url", "anchor")]
    assert list(zip(outlinks["row"], *texts, strict=True)) == links
    assert found.outlink_counts().tolist() == [len(record.outlinks) for record in records]


@given(st.lists(RECORDS, min_size=1, max_size=3), st.lists(RECORDS, min_size=1, max_size=3))
def test_tables_one_after_the_other(first: list[ParseData], second: list[ParseData]) -> None:
    both = ParseTable.concat([table(first), table(second)])
    assert [both.record(row) for row in range(len(both))] == first + second
    last = both.take(pl.Series([len(both) - 1]))
    assert decode_keys(last.titles()).to_list() == [second[-1].title]
    assert len(ParseTable.concat([])) == 0


def test_links_with_unusual_metadata() -> None:
    odd = Outlink("http://b.org/", "b", MapWritable({Text("k"): BytesWritable(b"\x01")}))
    record = ParseData(ParseStatus(), "t", [odd], Metadata.of({"a": "1"}), Metadata.of({"b": "2"}))
    found = table([record])
    assert found.record(0) == record
    assert found.first_values("a", "content").to_list() == [b"1"]
    assert found.first_values("b", "parse").to_list() == [b"2"]
    assert found.outlinks().rows() == [(0, b"http://b.org/", b"b")]


@settings(max_examples=examples(50))
@given(RECORDS, st.data())
def test_a_record_that_is_cut_off(record: ParseData, data: st.DataObject) -> None:
    whole = record.to_bytes()
    cut = whole[: data.draw(st.integers(0, len(whole) - 1))]
    with pytest.raises(FormatError, match=r"record of b'http://a\.org/1'"):
        decode(batch([whole, cut]))


@given(RECORDS, st.data())
def test_a_damaged_record_is_an_error_or_another_record(
    record: ParseData, data: st.DataObject
) -> None:
    damaged = bytearray(record.to_bytes())
    damaged[data.draw(st.integers(0, len(damaged) - 1))] ^= data.draw(st.integers(1, 255))
    try:
        found = decode(batch([bytes(damaged)]))
    except FormatError:
        return
    found.titles()
    found.first_values("a", "content")


@given(st.lists(st.text(st.characters(codec="utf-8"), max_size=40), max_size=5))
def test_texts(texts: list[str]) -> None:
    values = [ParseText(text).to_bytes() for text in texts]
    assert decode_keys(decode_texts(batch(values))).to_list() == texts


def test_texts_of_the_first_version_and_damaged_ones() -> None:
    import gzip

    packed = gzip.compress("old é".encode())
    old = b"\x01" + len(packed).to_bytes(4, "big") + packed
    assert decode_keys(decode_texts(batch([old, ParseText("new").to_bytes()]))).to_list() == [
        "old é",
        "new",
    ]
    for damaged in (b"", b"\x02", b"\x02\x05ab", b"\x07\x00"):
        with pytest.raises(FormatError, match="record of"):
            decode_texts(batch([damaged]))
