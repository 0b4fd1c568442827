"""Hadoop's Writables: the golden MapWritables byte for byte, hash codes, printing, hostile
input.
"""

from __future__ import annotations

import base64
import gzip
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from minutch.errors import FormatError
from minutch.hadoop.formats.javaio import DataInput
from minutch.hadoop.formats.writables import (
    ArrayWritable,
    BooleanWritable,
    BytesWritable,
    ByteWritable,
    DoubleWritable,
    FloatWritable,
    IntWritable,
    LongWritable,
    MapWritable,
    MD5Hash,
    NullWritable,
    ShortWritable,
    SortedMapWritable,
    Text,
    VIntWritable,
    VLongWritable,
    Writable,
    lookup,
)
from tests.support.examples import tabled
from tests.support.golden import GOLDEN, needs_golden

SAMPLES = [
    Text("grün"),
    BytesWritable(b"\0\x7f\xff"),
    ByteWritable(-3),
    ShortWritable(-300),
    IntWritable(70_000),
    LongWritable(-(2**40)),
    VIntWritable(-113),
    VLongWritable(2**60),
    BooleanWritable(True),
    FloatWritable(0.5),
    DoubleWritable(-0.1),
    NullWritable(),
    MD5Hash(bytes(range(16))),
    MapWritable(
        {Text("k"): DoubleWritable(1.0), Text("m"): MapWritable({Text("x"): NullWritable()})}
    ),
    SortedMapWritable({Text("b"): IntWritable(1), Text("a"): IntWritable(2)}),
]


@needs_golden
def test_map_writables_of_hadoop_come_back_byte_for_byte() -> None:
    with gzip.open(GOLDEN / "sequencefiles/records-mapwritable.jsonl.gz") as file:
        values = [base64.b64decode(json.loads(line)["v"]) for line in file]
    assert len(values) == 60
    for value in values:
        assert MapWritable.from_bytes(value).to_bytes() == value


@needs_golden
def test_map_writables_print_as_in_java() -> None:
    readable = (GOLDEN / "sequencefiles/records-mapwritable-readable.txt").read_text().splitlines()
    with gzip.open(GOLDEN / "sequencefiles/records-mapwritable.jsonl.gz") as file:
        rows = [json.loads(line) for line in file]
    printed = []
    for row in rows:
        printed.append(str(Text.from_bytes(base64.b64decode(row["k"]))))
        for key, value in MapWritable.from_bytes(base64.b64decode(row["v"])).java_items():
            printed.append(f"  {key.class_name} {key} => {value.class_name} {value}")
    assert printed == readable


@tabled("value", SAMPLES)
def test_round_trip_and_every_cut_off(value: Writable) -> None:
    data = value.to_bytes()
    assert type(value).from_bytes(data) == value
    assert lookup(value.class_name) is type(value)
    for size in range(len(data)):
        with pytest.raises(FormatError):
            type(value).from_bytes(data[:size])
    with pytest.raises(FormatError, match="left over"):
        type(value).from_bytes(data + b"\0")


def test_an_array_needs_the_class_of_its_values() -> None:
    texts = ArrayWritable.of(Text)
    value = texts((Text("a"), Text("b")))
    assert texts.from_bytes(value.to_bytes()).values == value.values
    assert str(value) == "ArrayWritable [valueClass=class org.apache.hadoop.io.Text, values=[a, b]]"
    with pytest.raises(FormatError, match="does not store the class"):
        ArrayWritable.from_bytes(value.to_bytes())


def test_a_class_once_put_stays_in_the_table() -> None:
    value = MapWritable({Text("d"): DoubleWritable(1.0)})
    del value[Text("d")]
    again = MapWritable.from_bytes(value.to_bytes())
    assert again.new_classes == [DoubleWritable.class_name]
    assert MapWritable(again).new_classes == again.copy().new_classes == again.new_classes


def test_a_sorted_map_is_written_in_key_order() -> None:
    assert (
        str(SortedMapWritable({Text("b"): IntWritable(1), Text("a"): IntWritable(2)}))
        == "{a=2, b=1}"
    )


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ("00ffffffff", "impossible size"),
        ("007fffffff", "impossible size"),
        ("00000000010300", "lacks"),
        ("0101000161000000018c000100", "unknown Writable class"),
    ],
)
def test_hostile_maps(data: str, message: str) -> None:
    with pytest.raises(FormatError, match=message):
        MapWritable.from_bytes(bytes.fromhex(data))


def test_too_many_classes() -> None:
    value = MapWritable()
    value.new_classes = [f"c{i}" for i in range(127)]
    with pytest.raises(FormatError, match="too many classes"):
        value[Text("x")] = DoubleWritable(0.0)


@given(st.binary(max_size=200))
def test_random_bytes_raise_only_our_error(data: bytes) -> None:
    for sample in SAMPLES:
        try:
            type(sample).read(DataInput(data))
        except FormatError:
            continue


def test_hash_codes_of_java() -> None:
    assert IntWritable(-5).java_hash() == -5
    assert LongWritable(2**32 + 7).java_hash() == 7
    assert BooleanWritable(True).java_hash() == 0
    assert FloatWritable(1.0).java_hash() == 0x3F800000
    assert Text("").java_hash() == 1
