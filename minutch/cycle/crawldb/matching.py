"""Rows of one key, in one table or in two: keys are compared once, then they are numbers.

Tables are sorted by key; the rows of one key keep the order of the input. The distinct keys of a
column are its URLs, numbered from 0 in the order of the keys. Source:
org.apache.nutch.crawl.CrawlDbReducer.reduce, its first half, and InlinkPriorityQueue.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import polars as pl
from numpy.typing import NDArray

from minutch.kernels import keycolumns as kernels
from minutch.kernels.arrow import from_series
from minutch.work.tables.frame import has_repeats

Ints = NDArray[np.int64]
Rows = NDArray[np.signedinteger[Any]]
Mask = NDArray[np.bool_]


class Match(NamedTuple):
    """The positions of a column's keys in a table."""

    group: Ints
    """Number of the URL of each row of the column."""
    at: Ints
    """Row of each URL in the table, -1 if it has none."""
    before: Ints
    """Number of rows of the table with smaller keys, of each URL."""


def match(keys: pl.Series, table: pl.Series) -> Match:
    """Numbers the distinct `keys` and finds them in `table`, where each is once; both sorted."""
    own, others = from_series(keys), from_series(table)
    group, at, before = (np.empty(len(keys), np.int64) for _ in range(3))
    count = kernels.meet(
        own.views, own.addresses, others.views, others.addresses, group, at, before
    )
    return Match(group, at[:count], before[:count])


def last_of_key(frame: pl.DataFrame) -> pl.DataFrame:
    """Returns the last row of each key of a sorted table."""
    return (
        frame.unique("key", keep="last", maintain_order=True)
        if has_repeats(frame["key"])
        else frame
    )


def latest(rows: Rows, group: Ints, times: Ints) -> Rows:
    """Returns the latest of `rows` for each URL, of equally late ones the first; `group` and
    `times` are those of all rows.
    """
    own = group[rows]
    if not _repeats(own):
        return rows
    rows = rows[np.lexsort((-times[rows], own))]  # stable: of equally late ones the first
    return rows[_starts(group[rows])]


def last(rows: Rows, group: Ints) -> Rows:
    """Returns the last of `rows` for each URL."""
    return rows[_starts(group[rows][::-1])[::-1]]  # the first from behind


def by_score(rows: Rows, group: Ints, scores: NDArray[np.float32], limit: int) -> Rows:
    """Returns the links `rows`, of each URL those with the lowest scores, at most `limit`; highest
    score first.

    Of equal scores at the limit the later ones stay: the queue replaces its highest unless the new
    one is higher.
    """
    own = group[rows]
    if limit <= 0:
        return rows[:0]
    if not _repeats(own):
        return rows
    order = np.empty(len(rows), np.int64)
    kernels.sort_runs(own, scores[rows], order)
    rows = rows[order]
    sizes = np.bincount(own)
    if sizes.max() > limit:
        ends = np.cumsum(sizes)
        rows = rows[ends[group[rows]] - np.arange(len(rows)) <= limit]  # distance to the URL's end
    return rows


def first_of_each(rows: Rows, group: Ints) -> Rows:
    """Returns the first of `rows`, which are ordered by URL, for each URL."""
    return rows[_starts(group[rows])]


def _starts(values: Ints) -> Mask:
    """Returns the mask of the values that differ from the one before."""
    starts = np.ones(len(values), np.bool_)
    np.not_equal(values[1:], values[:-1], out=starts[1:])
    return starts


def _repeats(values: Ints) -> bool:
    return bool((values[1:] == values[:-1]).any())


def put_rows(table: pl.DataFrame, at: Ints, before: Ints, rows: pl.DataFrame) -> pl.DataFrame:
    """Returns `table` with `rows` put in: row i replaces `at[i]`, or if -1 precedes `before[i]`."""
    if rows.is_empty():
        return table
    if table.is_empty():
        return rows.select(table.columns)
    mine = len(table) + np.arange(len(rows))
    order = np.arange(len(table))
    known = at >= 0
    order[at[known]] = mine[known]
    if not known.all():
        order = np.insert(order, before[~known], mine[~known])
    return pl.concat([table, rows.select(table.columns)], rechunk=True)[order]


def merge_sorted(first: pl.DataFrame, second: pl.DataFrame) -> pl.DataFrame:
    """Returns the rows of both tables, sorted by key; no key is in both."""
    if first.is_empty() or second.is_empty():
        return second if first.is_empty() else first
    return first.select(second.columns).merge_sorted(second, key="key")
