"""Counts by group, piece by piece."""

from __future__ import annotations

import random

import polars as pl
import pytest

from minutch.inspect.report.counts import (
    ROWS,
    Aggregate,
    GroupCounts,
    batched,
    bucketed,
    quantile,
    with_own_texts,
)


@pytest.mark.parametrize("pieces", [1, 3, 100])
def test_the_same_as_of_the_whole(pieces: int) -> None:
    chance = random.Random(pieces)
    rows = [
        (
            chance.choice("abc") if chance.random() < 0.9 else None,
            chance.randrange(9),
            chance.choice([None, "x", "y"]),
        )
        for _ in range(500)
    ]
    whole = pl.DataFrame(rows, schema=["key", "number", "text"], orient="row")
    kinds = {how: Aggregate(pl.col("number"), how) for how in ("sum", "min", "max")}
    counts = GroupCounts(
        {"key": pl.col("key")}, n=ROWS, first=Aggregate(pl.col("text"), "first"), **kinds
    )
    for at in range(pieces):
        counts.add(whole[at * 500 // pieces : (at + 1) * 500 // pieces])
    number, text = pl.col("number"), pl.col("text")
    expected = whole.drop_nulls("key").group_by("key").agg(
        pl.len().cast(pl.Int64).alias("n"),
        text.drop_nulls().first().alias("first"),
        *(getattr(number, how)().alias(how) for how in kinds),
    )  # fmt: skip
    assert counts.result().sort("key").equals(expected.sort("key"))


def test_no_pieces_are_no_rows() -> None:
    assert GroupCounts({"key": pl.col("key")}, n=ROWS).result().is_empty()


def test_spread_has_every_bucket_from_the_first_to_the_last() -> None:
    counts = pl.DataFrame({"ms": [9, 10, 29, 1000], "n": [1, 2, 4, 8]})
    assert bucketed(counts, "ms", (5, 10, 20, 30, 40)).rows() == [
        (10, 1),
        (20, 2),
        (30, 4),
        (40, 0),
        (None, 8),
    ]
    assert bucketed(counts.clear(), "ms", (5, 10)).is_empty()


@pytest.mark.parametrize("share", [0.01, 0.5, 0.9, 0.99, 1.0])
def test_quantiles_are_values_of_the_sorted_list(share: float) -> None:
    chance = random.Random(7)
    counts = [(group, value, chance.randrange(1, 5)) for group in "ab" for value in range(20)]
    frame = pl.DataFrame(counts, schema=["group", "ms", "n"], orient="row").sample(
        fraction=1, shuffle=True, seed=1
    )
    found = {row["group"]: row["ms"] for row in quantile(frame, ["group"], share).to_dicts()}
    for group in "ab":
        values = [value for name, value, n in counts for _ in range(n) if name == group]
        at = next(number for number in range(1, len(values) + 1) if number >= share * len(values))
        assert found[group] == values[at - 1]
        alone = quantile(frame.filter(group=group), [], share)
        assert alone["ms"].to_list() == [found[group]]


def test_texts_of_its_own() -> None:
    frame = pl.DataFrame(
        {"text": ["a", None, "a text of more than twelve letters"], "number": [1, 2, 3]}
    )
    assert with_own_texts(frame).equals(frame)


def test_small_pieces_are_put_together() -> None:
    pieces = [
        pl.DataFrame({"n": range(start, start + size)})
        for start, size in ((0, 3), (3, 0), (3, 4), (7, 1), (8, 1))
    ]
    found = list(batched(iter(pieces), 5))
    assert [frame["n"].to_list() for frame in found] == [[0, 1, 2, 3, 4, 5, 6], [7, 8]]
    assert list(batched(iter([]), 5)) == []
