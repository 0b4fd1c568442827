"""Metadata edited as bytes gives what MapWritable gives."""

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from minutch.errors import FormatError
from minutch.hadoop.formats.writables import (
    BooleanWritable,
    BytesWritable,
    DoubleWritable,
    FloatWritable,
    IntWritable,
    LongWritable,
    MapWritable,
    NullWritable,
    Text,
    VIntWritable,
    Writable,
)
from minutch.records import rawmap
from minutch.records.protocol import ProtocolStatus

texts = st.text(max_size=200).map(Text)
int32s = st.integers(-(2**31), 2**31 - 1)
values = st.one_of(
    texts,
    int32s.map(IntWritable),
    int32s.map(VIntWritable),
    st.integers(-(2**63), 2**63 - 1).map(LongWritable),
    st.floats(width=32, allow_nan=False).map(FloatWritable),
    st.floats(allow_nan=False).map(DoubleWritable),
    st.booleans().map(BooleanWritable),
    st.binary(max_size=200).map(BytesWritable),
    st.just(NullWritable()),
    st.builds(
        ProtocolStatus, st.integers(0, 20), st.lists(st.text(max_size=5), max_size=2).map(tuple)
    ),
)
keys = st.one_of(
    st.sampled_from(["_pst_", "_rs_", "Content-Type", "_ngt_", "a", "b"]).map(Text),
    texts,
    int32s.map(IntWritable),
)
maps = st.dictionaries(keys, values, max_size=30).map(MapWritable)


def stored(data: MapWritable) -> bytes | None:
    return data.to_bytes() if data else None


def read(data: bytes | None) -> MapWritable:
    return MapWritable() if data is None else MapWritable.from_bytes(data)


@given(maps)
def test_taken_apart_and_put_together(data: MapWritable) -> None:
    serialized = stored(data)
    assert rawmap.RawMap(serialized).to_bytes() == stored(read(serialized))


@given(maps, maps, maps)
def test_merge_is_put_all(first: MapWritable, second: MapWritable, third: MapWritable) -> None:
    parts = [stored(first), stored(second), stored(third)]
    expected = read(parts[0])
    expected.update(read(parts[1]))
    expected.update(read(parts[2]))
    assert read(rawmap.merge(*parts)) == expected
    if any(parts[1:]):
        assert rawmap.merge(*parts) == stored(expected)


@given(maps, maps, maps)
def test_new_over_old(new: MapWritable, old: MapWritable, overlay: MapWritable) -> None:
    expected = read(stored(new))
    if stored(old):
        expected.update(read(stored(old)))
        expected.update(read(stored(new)))
    expected.update(read(stored(overlay)))
    found = rawmap.with_defaults(stored(new), stored(old), stored(overlay))
    assert read(found) == expected
    if new and old:
        assert found == stored(expected)


@given(maps, st.sampled_from(["_ngt_", "a", "absent"]))
def test_without_a_key(data: MapWritable, name: str) -> None:
    serialized = stored(data)
    expected = read(serialized)
    expected.pop(Text(name), None)
    assert read(rawmap.without(serialized, rawmap.text_key(name))) == expected


def test_the_last_key_taken_out_leaves_no_metadata() -> None:
    data = MapWritable({Text("_ngt_"): LongWritable(1)}).to_bytes()
    assert rawmap.without(data, rawmap.text_key("_ngt_")) is None


def test_a_removed_key_keeps_its_class_in_the_table() -> None:
    data = MapWritable({Text("a"): Text("b"), Text("_pst_"): ProtocolStatus(1)})
    del data[Text("_pst_")]
    full = MapWritable({Text("a"): Text("b"), Text("_pst_"): ProtocolStatus(1)}).to_bytes()
    assert rawmap.without(full, rawmap.text_key("_pst_")) == data.to_bytes()


def test_a_key_inside_a_value_is_no_key() -> None:
    key = rawmap.text_key("_ngt_")
    data = MapWritable({Text("a"): BytesWritable(key), Text("b"): IntWritable(1)}).to_bytes()
    assert rawmap.without(data, key) == data


def test_classes_get_the_ids_of_the_map_they_come_into() -> None:
    class Other(IntWritable):
        class_name = "test.Other"

    first: dict[Writable, Writable] = {Text("x"): Other(1), Text("y"): ProtocolStatus(2)}
    second: dict[Writable, Writable] = {Text("y"): ProtocolStatus(3), Text("z"): Text("t")}
    from minutch.hadoop.formats import writables

    writables.REGISTRY["test.Other"] = Other
    try:
        expected = MapWritable(first)
        expected.update(MapWritable(second))
        assert (
            rawmap.merge(MapWritable(first).to_bytes(), MapWritable(second).to_bytes())
            == expected.to_bytes()
        )
    finally:
        del writables.REGISTRY["test.Other"]


def test_values_of_a_column() -> None:
    column = pl.Series(
        [
            None,
            MapWritable({Text("a"): IntWritable(7)}).to_bytes(),
            MapWritable({Text("b"): Text("a")}).to_bytes(),
        ],
        dtype=pl.Binary,
    )
    assert rawmap.values_of(column, rawmap.text_key("a")) == {1: IntWritable(7)}


def test_cut_off_metadata_is_an_error() -> None:
    data = MapWritable(
        {Text("_pst_"): ProtocolStatus(1), Text("a"): Text("b" * 300), Text("n"): LongWritable(1)}
    )
    whole = data.to_bytes()
    for length in range(1, len(whole)):
        with pytest.raises(FormatError):
            rawmap.RawMap(whole[:length])
        if rawmap.text_key("n") in whole[:length]:
            with pytest.raises(FormatError):
                rawmap.without(whole[:length], rawmap.text_key("n"))
    with pytest.raises(FormatError, match="left over"):
        rawmap.RawMap(whole + b"\0")
