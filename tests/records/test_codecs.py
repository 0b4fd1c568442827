"""Every record: round trip, cut off at every length, left-over bytes, random and damaged bytes."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from minutch.errors import FormatError
from minutch.hadoop.formats.writables import REGISTRY, Writable, lookup
from minutch.records import CLASSES
from minutch.records.webgraph import LinkNodes
from tests.records.samples import SAMPLES
from tests.support.examples import tabled


def name_of(value: Writable) -> str:
    return type(value).__name__


@tabled("value", SAMPLES)
def test_round_trip(value: Writable) -> None:
    data = value.to_bytes()
    again = type(value).from_bytes(data)
    assert again == value
    assert again.to_bytes() == data
    assert str(again)  # prints without failing
    assert lookup(value.class_name) is type(value)


@tabled("value", SAMPLES)
def test_cut_off_at_every_length(value: Writable) -> None:
    data = value.to_bytes()
    whole = 0 if isinstance(value, LinkNodes) else -1  # no bytes are an empty LinkNodes
    for size in range(len(data)):
        if size != whole:
            with pytest.raises(FormatError):
                type(value).from_bytes(data[:size])
    with pytest.raises(FormatError):
        type(value).from_bytes(data + b"\x07")


@tabled("value", SAMPLES)
def test_damage_raises_only_our_error(value: Writable) -> None:
    data = value.to_bytes()
    source = random.Random(name_of(value))
    for _ in range(300):
        damaged = bytearray(data)
        for _ in range(source.randint(1, 3)):
            if damaged:
                damaged[source.randrange(len(damaged))] = source.randrange(256)
        try:
            str(type(value).from_bytes(damaged))
        except FormatError as error:
            assert error.offset is not None


@given(st.binary(max_size=120))
def test_random_bytes_raise_only_our_error(data: bytes) -> None:
    for value in SAMPLES:
        try:
            type(value).from_bytes(data)
        except FormatError:
            continue


def test_every_class_has_a_sample() -> None:
    sampled = {value.class_name for value in SAMPLES}
    assert set(CLASSES) - sampled == set(), "add a value to tests/records/samples.py"


def test_the_registry_finds_every_class() -> None:
    for name in [*REGISTRY, *CLASSES]:
        assert lookup(name).class_name == name
    with pytest.raises(FormatError, match="unknown Writable class"):
        lookup("org.example.Missing")
