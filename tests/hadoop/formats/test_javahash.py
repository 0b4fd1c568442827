"""Java's hash codes, HashMap order, and its printing of numbers and dates."""

from __future__ import annotations

import base64
import csv
import json
import math
import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from minutch.hadoop.formats import javahash
from tests.support.examples import tabled
from tests.support.golden import needs_golden
from tests.support.sequencefiles import SEQUENCEFILES


def _rows(name: str) -> list[list[str]]:
    with (SEQUENCEFILES / name).open(encoding="utf-8") as lines:
        return list(csv.reader(lines))[1:]


@needs_golden("sequencefiles/hash.jsonl")
def test_golden_hashes_and_partitions() -> None:
    lines = (SEQUENCEFILES / "hash.jsonl").read_text(encoding="utf-8").splitlines()
    for row in map(json.loads, lines):
        data = base64.b64decode(row["b64"])
        assert javahash.text_hash(data) == row["textHash"], row
        assert javahash.string_hash(data.decode()) == row["stringHash"], row
        assert [javahash.partition(data, n) for n in (1, 2, 3, 7, 100)] == [
            0,
            *(row[f"p{n}"] for n in (2, 3, 7, 100)),
        ]
    assert len(lines) > 500


@needs_golden("sequencefiles/floats.csv")
def test_golden_floats_and_doubles() -> None:
    for bits, as_float, as_double in _rows("floats.csv"):
        value = struct.unpack(">f", bytes.fromhex(bits.zfill(8)))[0]
        assert (javahash.float_to_string(value), javahash.double_to_string(value)) == (
            as_float,
            as_double,
        ), bits
    for bits, as_double in _rows("doubles.csv"):
        assert (
            javahash.double_to_string(struct.unpack(">d", bytes.fromhex(bits.zfill(16)))[0])
            == as_double
        ), bits


@tabled(
    ("value", "text"),
    [
        (0.0, "0.0"),
        (-0.0, "-0.0"),
        (math.inf, "Infinity"),
        (-math.inf, "-Infinity"),
        (math.nan, "NaN"),
        (1.0, "1.0"),
        (0.001, "0.001"),
        (0.0001, "1.0E-4"),
        (1e7, "1.0E7"),
        (9999999.0, "9999999.0"),
        (-2.5, "-2.5"),
        (1e40, "Infinity"),
        (1.4e-45, "1.4E-45"),
        (3.4028234663852886e38, "3.4028235E38"),
        (8.589973e9, "8.5899735E9"),  # JDK 19 prints 8.589973E9
    ],
)
def test_float_to_string(value: float, text: str) -> None:
    assert javahash.float_to_string(value) == text


@tabled(
    ("value", "text"),
    [
        (2.0e-3, "0.002"),
        (5e-324, "4.9E-324"),
        (1.7976931348623157e308, "1.7976931348623157E308"),
        (2.2250738585072014e-308, "2.2250738585072014E-308"),
        (2e23, "1.9999999999999998E23"),  # JDK 19 prints 2.0E23
        (1e23, "9.999999999999999E22"),  # JDK 19 prints 1.0E23
        (9007199254740993.0, "9.007199254740992E15"),
        (2.0**63, "9.223372036854776E18"),
    ],
)
def test_double_to_string(value: float, text: str) -> None:
    assert javahash.double_to_string(value) == text


@given(st.floats(allow_nan=False, width=32))
def test_a_printed_float_reads_back_equal(value: float) -> None:
    text = javahash.float_to_string(value)
    if not math.isinf(value):
        assert javahash.float32(float(text)) == value


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_a_printed_double_reads_back_equal(value: float) -> None:
    assert float(javahash.double_to_string(value)) == value


def _plain_hash(units: list[int], start: int) -> int:
    value = start
    for unit in units:
        value = (31 * value + unit) & 0xFFFF_FFFF
    return value - (1 << 32) if value >> 31 else value


@given(st.binary(max_size=300))
def test_text_hash_is_the_plain_loop(data: bytes) -> None:
    assert javahash.text_hash(data) == _plain_hash([b - 256 if b > 127 else b for b in data], 1)


@given(st.text(max_size=100))
def test_string_hash_is_the_plain_loop(value: str) -> None:
    raw = value.encode("utf-16-be", "surrogatepass")
    units = [int.from_bytes(raw[i : i + 2], "big") for i in range(0, len(raw), 2)]
    assert javahash.string_hash(value) == _plain_hash(units, 0)


def test_wrapping() -> None:
    assert javahash.int32(0x8000_0000) == -0x8000_0000
    assert javahash.int32(-1) == -1
    assert javahash.int64(1 << 63) == -(1 << 63)
    assert javahash.float32(0.1) == 0.10000000149011612
    assert javahash.float32(-1e300) == -math.inf


def test_hash_map_order_within_one_table() -> None:
    # In Java: new HashMap with the keys "b" (98), "a" (97), "q" (113): 113 & 15 == 1, as 97.
    assert javahash.hash_map_order([98, 97, 113]) == [1, 2, 0]
    assert javahash.hash_map_order([]) == []
    # The high half is folded in: 0x10000 ^ 1 lies in bucket 1.
    assert javahash.hash_map_order([2, 0x10000]) == [1, 0]
    assert javahash.hash_map_order([-1, 0]) == [0, 1]  # 0xffffffff ^ 0xffff lies in bucket 0, too


def test_hash_map_grows_beyond_three_quarters() -> None:
    hashes = [16, *range(1, 12)]
    assert (
        javahash.hash_map_order(hashes)[0] == 0
    )  # 12 entries: still 16 buckets, 16 lies in bucket 0
    assert javahash.hash_map_order([*hashes, 12])[-1] == 0  # 13 entries: 32 buckets


def test_hash_map_grows_when_a_bucket_is_long() -> None:
    eight = [16 * i for i in range(1, 9)]
    assert javahash.hash_map_order([*eight, 1]) == list(range(9))
    # The ninth in a bucket doubles the table: multiples of 32 go first, then 1, then the others.
    assert javahash.hash_map_order([*eight, 16 * 9, 1]) == [1, 3, 5, 7, 9, 0, 2, 4, 6, 8]


@tabled(
    ("ms", "text"),
    [
        (0, "Thu Jan 01 00:00:00 UTC 1970"),
        (-1, "Wed Dec 31 23:59:59 UTC 1969"),
        (1752000000123, "Tue Jul 08 18:40:00 UTC 2025"),
        (2**63 - 1, "Sun Aug 17 07:12:55 UTC 292278994"),
        (-(2**63), "Sun Dec 02 16:47:04 UTC 292269055"),
        (-12219292800000, "Fri Oct 15 00:00:00 UTC 1582"),
        (-12219292800001, "Thu Oct 04 23:59:59 UTC 1582"),
        (-62135769600001, "Fri Dec 31 23:59:59 UTC 1"),
        (253402300800000, "Sat Jan 01 00:00:00 UTC 10000"),
    ],
)
def test_date_to_string(ms: int, text: str) -> None:
    assert javahash.date_to_string(ms) == text


@pytest.mark.parametrize(
    ("put", "given"),
    [
        ("refresh pragma", "pragma refresh"),
        (
            (
                "window-target pragma pics-label expires x-dns-prefetch-control set-cookie"
                " x-ua-compatible imagetoolbar content-language content-type content-style-type"
            ),
            (
                "expires content-language x-dns-prefetch-control imagetoolbar pragma pics-label"
                " set-cookie x-ua-compatible window-target content-style-type content-type"
            ),
        ),
    ],
)
def test_order_of_property_names(put: str, given: str) -> None:
    """Orders that JDK 17 gives."""
    assert javahash.property_names_order(put.split()) == given.split()
