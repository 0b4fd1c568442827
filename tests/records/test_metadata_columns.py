"""Metadata as a table: the same entries and bytes as map by map, whatever the maps hold; errors for
damaged ones.
"""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from unittest.mock import Mock

import polars as pl
import pytest

from minutch.errors import FormatError
from minutch.hadoop.formats.writables import (
    BytesWritable,
    FloatWritable,
    IntWritable,
    LongWritable,
    MapWritable,
    Text,
    Writable,
)
from minutch.records import metadata_columns, rawmap
from minutch.records.metadata_columns import (
    OTHER,
    STATUS,
    TEXT,
    entries,
    maps_of,
    stored,
    stored_value,
    text_values,
    with_all,
    with_defaults,
)
from minutch.records.protocol import ProtocolStatus
from minutch.records.rawmap import RawMap, merge
from tests.support.examples import tabled
from tests.support.tables import a_metadata

MAPS = [a_metadata(Random(seed)) for seed in range(300)]
ODD = MapWritable(
    {Text("a"): BytesWritable(b"xy"), Text("b"): Text("c"), LongWritable(1): Text("no text key")}
)


def column(maps: list[MapWritable | None]) -> pl.Series:
    return pl.Series([found.to_bytes() if found else None for found in maps], dtype=pl.Binary)


def keys(metadata: pl.Series) -> pl.Series:
    return pl.Series([f"k{row}".encode() for row in range(len(metadata))], dtype=pl.Binary)


def plainly(maps: list[MapWritable | None]) -> list[tuple[int, bytes, str]]:
    """Row, name and value of each entry whose key is a text."""
    return [
        (row, str(key).encode(), str(value))
        for row, one in enumerate(maps)
        for key, value in (one.java_items() if one else ())
        if isinstance(key, Text)
    ]


def shown(found: pl.DataFrame) -> list[tuple[int, bytes, str]]:
    from minutch.cycle.hostdb.fields import text_of

    return [(row, name, text_of(kind, value)) for row, name, kind, value in found.iter_rows()]


def test_all_entries() -> None:
    maps: list[MapWritable | None] = [*MAPS, None, ODD, *MAPS[:5]]
    metadata = column(maps)
    found = entries(metadata, keys(metadata))
    assert sorted(shown(found)) == sorted(plainly(maps))
    assert found["row"].is_sorted()
    assert set(found["kind"]) >= {OTHER, STATUS, TEXT}


def test_some_names() -> None:
    metadata = column([*MAPS, ODD])
    found = entries(metadata, keys(metadata), ("key3", "a"))
    assert sorted(shown(found)) == sorted(
        row for row in plainly([*MAPS, ODD]) if row[1] in (b"key3", b"a")
    )


def test_no_maps_at_all() -> None:
    nothing = pl.Series([None, None], dtype=pl.Binary)
    assert entries(nothing, keys(nothing)).is_empty()
    assert (
        maps_of(
            entries(nothing, keys(nothing)).select("row", key="name", value="value"), 2
        ).to_list()
        == [None] * 2
    )


def test_maps_are_written_as_hadoop_writes_them() -> None:
    random = Random(3)
    maps = []
    for count in (0, 1, 2, 11, 12, 13, 14, 25, 26, 60, 3, 0):
        names = random.sample(range(10_000), count)
        maps.append(
            MapWritable({Text(f"Content-Type.{name}"): LongWritable(name) for name in names})
        )
    rows = [
        (row, stored(str(key).encode()), stored_value(value))
        for row, one in enumerate(maps)
        for key, value in one.items()
    ]
    table = pl.DataFrame(
        rows, schema={"row": pl.UInt32, "key": pl.Binary, "value": pl.Binary}, orient="row"
    )
    assert maps_of(table, len(maps)).to_list() == [one.to_bytes() if one else None for one in maps]


def test_long_names_and_values() -> None:
    name, value = "n" * 200, "ä" * 40_000
    one = MapWritable({Text(name): Text(value), Text("b" * 70_000): LongWritable(1)})
    found = entries(column([one]), pl.Series([b"k"]))
    assert set(shown(found)) == {(0, name.encode(), value), (0, b"b" * 70_000, "1")}


@tabled("length", range(1, 60, 7))
def test_damaged_maps_are_named(length: int) -> None:
    value: Writable = ProtocolStatus.of(12, "http://a/")
    whole = MapWritable({Text("a"): value, Text("b"): Text("text")}).to_bytes()
    metadata = pl.Series([MAPS[1].to_bytes(), whole[:length]], dtype=pl.Binary)
    with pytest.raises(FormatError, match="metadata of b'k1'"):
        entries(metadata, keys(metadata))


def test_random_damage_raises_nothing_else() -> None:
    random = Random(5)
    for one in MAPS[:200]:
        data = bytearray(one.to_bytes())
        data[random.randrange(len(data))] = random.randrange(256)
        metadata = pl.Series([bytes(data)], dtype=pl.Binary)
        try:
            entries(metadata, keys(metadata))
        except FormatError:
            continue


KINDS: dict[str, Callable[[], MapWritable]] = {
    "empty": MapWritable,
    "other keys": lambda: MapWritable({Text("k" * 300): Text("v"), IntWritable(1): Text("x")}),
    "text": lambda: MapWritable({Text("x"): IntWritable(2), Text("k"): Text("é" * 200)}),
    "empty text": lambda: MapWritable({Text("k"): Text("")}),
    "number": lambda: MapWritable({Text("k"): IntWritable(7)}),
    "bytes before it": lambda: MapWritable({Text("a"): BytesWritable(b"x"), Text("k"): Text("v")}),
}


def test_values_of_metadata_in_bulk() -> None:
    maps = [build() for build in KINDS.values()]
    column = pl.Series([None, *(found.to_bytes() for found in maps)], dtype=pl.Binary)
    values = text_values(column, column, "k").to_list()
    expected = [None, None, None, "é" * 200, "", "7", "v"]
    assert values == [None if value is None else value.encode() for value in expected]


def test_numbers_of_metadata_are_shown_as_java_shows_them() -> None:
    ints, longs = (-(2**31), -1, 0, 2**31 - 1), (-(2**63), -1, 2**40, 2**63 - 1)
    numbers = [*map(IntWritable, ints), *map(LongWritable, longs), FloatWritable(1e10)]
    found = column([MapWritable({Text("k"): number}) for number in numbers])
    assert text_values(found, found, "k").to_list() == [str(one).encode() for one in numbers]


def test_damaged_metadata_is_an_error_or_has_no_such_key() -> None:
    data = KINDS["bytes before it"]().to_bytes()
    for size in range(len(data)):
        try:
            assert (
                text_values(cut := pl.Series([data[:size]], dtype=pl.Binary), cut, "k")[0] is None
            )
        except FormatError:
            continue


# -- maps put into maps ----------------------------------------------------------------------------


def own_order(maps: list[bytes | None]) -> list[bytes | None]:
    """Maps as something else may have written them: their entries the other way round."""
    found = []
    for data in maps:
        raw = RawMap(data)
        body = b"".join(key + value for key, value in reversed(raw.entries.items()))
        found.append(data and data[: len(data) - len(body)] + body)
    return found


def test_maps_are_put_into_others_as_one_by_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """One entry into Texts, numbers and a ProtocolStatus, new or over an old value, and all that is
    unusual: other classes and sizes, no map, several entries, another order, one twice.
    """
    chance, seal = Random(5), Text("_validators_")
    some = [Text(name) for name in ("_pst_", "_rs_", "Content-Type", "a", "b", "é" * 70, "_ngt_")]
    values = [IntWritable(5), Text("x" * 200), ProtocolStatus(1), LongWritable(-1), Text("")]
    owns = [*MAPS, ODD, MapWritable()]
    for _ in range(1500):
        names = chance.sample([*some, seal], chance.randrange(8))
        names += [Text(f"k{number}") for number in range(chance.choice([0, 0, 0, 4, 5, 6, 30]))]
        owns.append(MapWritable({name: chance.choice(values) for name in names}))
    others = [
        MapWritable({chance.choice([seal, *some]): chance.choice([*8 * [Text("v")], *values])})
        for _ in owns
    ]
    others[::9] = [MAPS[row % 300] or ODD for row in range(len(others[::9]))]
    others[::13] = [ODD] * len(others[::13])
    first = [found.to_bytes() if found else None for found in owns]
    second = [found.to_bytes() for found in others]
    twice = b"\0\0\0\0\x02" + 2 * (stored(b"a") + stored_value(Text("v")))
    slowly = Mock(wraps=merge)
    monkeypatch.setattr(metadata_columns, "merge", slowly)
    for mine in (first, own_order(first), [twice] * len(first)):
        pairs = zip(mine, second, strict=True)
        found = with_all(pl.Series(mine, dtype=pl.Binary), pl.Series(second, dtype=pl.Binary))
        assert found.to_list() == [merge(*pair) for pair in pairs]
        assert mine is not first or 300 < slowly.call_count < len(first) - 300
    empty = pl.Series([], dtype=pl.Binary)
    assert with_all(empty, empty).is_empty()


def test_maps_get_what_they_lack_as_one_by_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """What an entry had, of which a fetch has all by its list, or not: other keys, classes, orders,
    none at all, and values that differ.
    """
    chance = Random(6)
    some = [Text(name) for name in ("_pst_", "_rs_", "Content-Type", "a", "b", "é" * 70, "_ngt_")]
    values = [IntWritable(5), Text("x" * 200), ProtocolStatus(1), LongWritable(-1), Text("")]
    olds, news = [*MAPS, ODD, MapWritable()], [*MAPS[1:], ODD, ODD, MapWritable()]
    for _ in range(1500):
        names = chance.sample(some, chance.randrange(8))
        more = chance.sample(some, chance.choice([0, 0, 0, 2]))
        more += [Text(f"k{number}") for number in range(chance.choice([0, 0, 0, 0, 9]))]
        olds.append(MapWritable({name: chance.choice(values) for name in names}))
        news.append(
            MapWritable({name: chance.choice(values) for name in {**dict.fromkeys(names + more)}})
        )
        if chance.random() < 0.2:
            olds[-1], news[-1] = news[-1], olds[-1]
    old, new = [one.to_bytes() for one in olds], [one.to_bytes() for one in news]
    twice = b"\0\0\0\0\x02" + 2 * (stored(b"a") + stored_value(Text("v")))
    for mine, other in (
        (new, old),
        (own_order(new), old),
        (new, own_order(old)),
        ([twice] * len(old), old),
    ):
        slowly = Mock(wraps=rawmap.with_defaults)
        monkeypatch.setattr(metadata_columns.rawmap, "with_defaults", slowly)
        found = with_defaults(pl.Series(mine, dtype=pl.Binary), pl.Series(other, dtype=pl.Binary))
        calls = slowly.call_count
        monkeypatch.undo()
        pairs = zip(mine, other, strict=True)
        assert found.to_list() == [rawmap.with_defaults(*pair) for pair in pairs]
        assert mine is not new or 300 < calls < len(new) - 300
