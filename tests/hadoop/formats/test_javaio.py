"""Java's primitives: golden bytes both ways, cut-offs, properties."""

from __future__ import annotations

import csv
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from minutch.errors import FormatError, TruncatedError
from minutch.hadoop.formats.javaio import (
    DataInput,
    DataOutput,
    decode_text,
    encode_modified_utf8,
    encode_text,
    encode_vlong,
)
from tests.support.examples import every, tabled
from tests.support.golden import GOLDEN, needs_golden

LONG = st.integers(-(2**63), 2**63 - 1)


def written(method: str, value: object) -> bytes:
    out = DataOutput()
    getattr(out, f"write_{method}")(value)
    return out.getvalue()


@needs_golden
def test_vlongs_of_hadoop() -> None:
    with (GOLDEN / "sequencefiles/vint.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert rows
    for row in rows:
        value, data = int(row["value"]), bytes.fromhex(row["writeVLong_hex"])
        assert encode_vlong(value) == data
        assert written("vlong", value) == data
        assert DataInput(data).read_vlong() == value


@needs_golden
def test_strings_of_hadoop() -> None:
    with (GOLDEN / "sequencefiles/textutf8.jsonl").open() as file:
        rows = [json.loads(line) for line in file]
    assert rows
    for row in rows:
        value = bytes.fromhex(row["utf16"]).decode("utf-16-be", "surrogatepass")
        assert written("text", value).hex() == row["Text"]
        assert written("utf8", value).hex() == row["writeUTF"]
        assert DataInput(bytes.fromhex(row["writeUTF"])).read_utf8() == value


@tabled(
    ("method", "values"),
    [
        ("byte", st.integers(-128, 127)),
        ("boolean", st.booleans()),
        ("short", st.integers(-(2**15), 2**15 - 1)),
        ("int", st.integers(-(2**31), 2**31 - 1)),
        ("long", LONG),
        ("vint", st.integers(-(2**31), 2**31 - 1)),
        ("vlong", LONG),
        ("float", st.floats(width=32, allow_nan=False)),
        ("double", st.floats(allow_nan=False)),
        ("text", st.text(st.characters(exclude_categories=["Cs"]))),
        ("utf8", st.text(max_size=2000 // every(20))),
    ],
)
def test_round_trip_and_cut_off(method: str, values: st.SearchStrategy[object]) -> None:
    @given(values)
    def check(value: object) -> None:
        data = written(method, value)
        source = DataInput(data)
        assert getattr(source, f"read_{method}")() == value
        assert source.remaining == 0
        for size in range(len(data)):
            with pytest.raises(TruncatedError):
                getattr(DataInput(data, 0, size), f"read_{method}")()

    check()


@given(st.binary())
def test_bytes_that_are_not_utf8_survive(data: bytes) -> None:
    assert encode_text(decode_text(data)) == data


def test_unpaired_surrogates_become_question_marks_as_in_text() -> None:
    assert encode_text("a\ud800b") == b"a?b"
    assert encode_text("\ud83d\ude00") == "😀".encode()


@pytest.mark.parametrize("data", [b"\x80", b"\xc3", b"\xe2\x82", b"\xf0\x9f\x98\x80", b"\xc3("])
def test_malformed_modified_utf8_names_its_offset(data: bytes) -> None:
    with pytest.raises(FormatError) as caught:
        DataInput(len(data).to_bytes(2, "big") + data).read_utf8()
    assert caught.value.offset == 2


def test_too_long_for_write_utf() -> None:
    with pytest.raises(FormatError, match="at most 65535"):
        DataOutput().write_utf8("x" * 65536)
    assert len(encode_modified_utf8("\0")) == 2


def test_a_vint_beyond_32_bits_is_an_error() -> None:
    with pytest.raises(FormatError, match="32-bit"):
        DataInput(encode_vlong(2**40)).read_vint()


def test_a_float_too_large_becomes_infinite_as_in_java() -> None:
    assert DataInput(written("float", 1e300)).read_float() == float("inf")
    assert DataInput(written("float", -1e300)).read_float() == float("-inf")


def test_negative_lengths_are_errors() -> None:
    with pytest.raises(FormatError, match="negative length"):
        DataInput(written("vlong", -5) + b"abc").read_text()
