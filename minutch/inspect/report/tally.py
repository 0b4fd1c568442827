"""Rows counted by what they have in common, piece by piece: of whole tables, one row a group is
held. Pure.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final, Literal, NamedTuple

import polars as pl

_MANY: Final = 32
"""Pieces that are added up at a time."""


class Count(NamedTuple):
    """What is kept of a group: the sum, least, greatest or first of an expression; null counts
    nothing.
    """

    of: pl.Expr
    how: Literal["sum", "min", "max", "first"] = "sum"

    def over(self, name: str) -> pl.Expr:
        """The same of values that are such counts."""
        column = pl.col(name)
        return column.drop_nulls().first() if self.how == "first" else getattr(column, self.how)()


ROWS: Final = Count(pl.lit(1, pl.Int64))


def own(frame: pl.DataFrame) -> pl.DataFrame:
    """The frame with texts of its own. Those that were chosen from a larger one keep all of its
    texts in memory.
    """
    return frame.with_columns(pl.col(pl.String) + "")


class Tally:
    """Counts by group. `by`: name → what groups are formed by; rows where one is null belong to
    none.
    """

    def __init__(self, by: Mapping[str, pl.Expr], **counts: Count) -> None:
        self._by, self._counts = by, counts
        self._parts: list[pl.DataFrame] = []

    def add(self, frame: pl.DataFrame) -> None:
        """Count the rows of a piece."""
        values = {name: count.of for name, count in self._counts.items()}
        self._parts.append(
            own(self._summed(frame.select(**self._by, **values).drop_nulls(list(self._by))))
        )
        if len(self._parts) >= _MANY:
            self._parts = [self._summed(pl.concat(self._parts))]

    def _summed(self, frame: pl.DataFrame) -> pl.DataFrame:
        sums = [count.over(name).alias(name) for name, count in self._counts.items()]
        return frame.group_by(list(self._by), maintain_order=True).agg(sums)

    def result(self) -> pl.DataFrame:
        """One row a group, in the order in which they came; without any piece, an empty table
        without columns.
        """
        return self._summed(pl.concat(self._parts)) if self._parts else pl.DataFrame()


def spread(counts: pl.DataFrame, name: str, bounds: Sequence[int]) -> pl.DataFrame:
    """Counts by value (`name`, `n`) as `below` and `n`: every bucket from the first to the last
    that has any.
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
    """The quantile of `value`, which came `n` times in a row of `counts`, for each group of
    `by`.
    """
    ordered = counts.sort(*by, value)
    groups: list[str] = list(by)
    cumulated = pl.col("n").cum_sum().over(groups) if groups else pl.col("n").cum_sum()
    total = pl.col("n").sum().over(groups) if groups else pl.col("n").sum()
    reached = ordered.filter(cumulated >= share * total)
    return reached.unique(groups, keep="first", maintain_order=True) if groups else reached.head(1)


def together(pieces: Iterable[pl.DataFrame], rows: int) -> Iterator[pl.DataFrame]:
    """Pieces of a table put together until they have so many rows."""
    held: list[pl.DataFrame] = []
    for piece in pieces:
        held.append(piece)
        if sum(map(len, held)) >= rows:
            yield pl.concat(held)
            held = []
    if held:
        yield pl.concat(held)
