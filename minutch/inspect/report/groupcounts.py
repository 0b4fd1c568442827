"""Counts rows by group, piece by piece: one row a group is held of a whole table. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final, Literal, NamedTuple

import polars as pl

_MANY: Final = 32
"""Pieces that are added up at a time."""


class Aggregate(NamedTuple):
    """The aggregate of a group: sum, least, greatest or first value of an expression; null counts
    nothing.
    """

    of: pl.Expr
    how: Literal["sum", "min", "max", "first"] = "sum"

    def over(self, name: str) -> pl.Expr:
        """Returns the aggregate of values that are such aggregates."""
        column = pl.col(name)
        return column.drop_nulls().first() if self.how == "first" else getattr(column, self.how)()


ROWS: Final = Aggregate(pl.lit(1, pl.Int64))


def with_own_texts(frame: pl.DataFrame) -> pl.DataFrame:
    """Copies the texts of a frame: rows chosen from a larger frame keep all of its texts in
    memory.
    """
    return frame.with_columns(pl.col(pl.String) + "")


class GroupCounts:
    """Counts by group. `by`: name → expression of the group; rows with a null there belong to
    none.
    """

    def __init__(self, by: Mapping[str, pl.Expr], **counts: Aggregate) -> None:
        self._by, self._counts = by, counts
        self._parts: list[pl.DataFrame] = []

    def add(self, frame: pl.DataFrame) -> None:
        """Counts the rows of a piece."""
        values = {name: count.of for name, count in self._counts.items()}
        self._parts.append(
            with_own_texts(
                self._summed(frame.select(**self._by, **values).drop_nulls(list(self._by)))
            )
        )
        if len(self._parts) >= _MANY:
            self._parts = [self._summed(pl.concat(self._parts))]

    def _summed(self, frame: pl.DataFrame) -> pl.DataFrame:
        sums = [count.over(name).alias(name) for name, count in self._counts.items()]
        return frame.group_by(list(self._by), maintain_order=True).agg(sums)

    def result(self) -> pl.DataFrame:
        """Returns one row a group, in the order of their first rows; an empty table without columns
        if there was no piece.
        """
        return self._summed(pl.concat(self._parts)) if self._parts else pl.DataFrame()


def bucketed(counts: pl.DataFrame, name: str, bounds: Sequence[int]) -> pl.DataFrame:
    """Turns counts by value (`name`, `n`) into `below` and `n`: every bucket from the first to the
    last that is not empty.
    """
    if counts.is_empty():
        return pl.DataFrame(schema={"below": pl.Int64, "n": pl.Int64})
    place = pl.lit(0)
    for bound in bounds:
        place = place + (pl.col(name) >= bound).cast(pl.Int32)
    found = dict(counts.group_by(place.alias("place")).agg(pl.col("n").sum()).iter_rows())
    shown = range(min(found), max(found) + 1)
    ends = [*bounds, None]
    return pl.DataFrame(
        {"below": [ends[at] for at in shown], "n": [found.get(at, 0) for at in shown]},
        schema={"below": pl.Int64, "n": pl.Int64},
    )


def quantile(counts: pl.DataFrame, by: Sequence[str], value: str, share: float) -> pl.DataFrame:
    """Returns the quantile of `value`, which came `n` times in a row of `counts`, for each group of
    `by`.
    """
    ordered = counts.sort(*by, value)
    groups: list[str] = list(by)
    cumulated = pl.col("n").cum_sum().over(groups) if groups else pl.col("n").cum_sum()
    total = pl.col("n").sum().over(groups) if groups else pl.col("n").sum()
    reached = ordered.filter(cumulated >= share * total)
    return reached.unique(groups, keep="first", maintain_order=True) if groups else reached.head(1)


def batched(pieces: Iterable[pl.DataFrame], rows: int) -> Iterator[pl.DataFrame]:
    """Joins pieces of a table until they have so many rows."""
    held: list[pl.DataFrame] = []
    for piece in pieces:
        held.append(piece)
        if sum(map(len, held)) >= rows:
            yield pl.concat(held)
            held = []
    if held:
        yield pl.concat(held)
