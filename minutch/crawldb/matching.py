"""Which rows of a segment speak of which entry of the CrawlDb: keys become numbers, once, and strings rest.

Tables are sorted by key. The distinct keys of a segment's rows are its URLs, numbered from 0 in the order of the keys.
Matched: the collecting half of org.apache.nutch.crawl.CrawlDbReducer.reduce, and its InlinkPriorityQueue.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import polars as pl
from numpy.typing import NDArray

from minutch.tables.spans import kernels_loaded

Ints = NDArray[np.int64]
Rows = NDArray[np.signedinteger[Any]]
Mask = NDArray[np.bool_]

BULK_KEYS = 50_000
"""Keys from which loading the kernels takes less time than Polars' joins."""


class Match(NamedTuple):
    """Where the keys of a column are in a table."""

    group: Ints
    """Of each row of the column, the number of its URL."""
    at: Ints
    """Of each URL, its row in the table, -1 if it is not there."""
    before: Ints
    """Of each URL, how many rows of the table have smaller keys."""


def match(keys: pl.Series, table: pl.Series) -> Match:
    """Number the distinct `keys` and look them up in `table`; both sorted, the keys in `table` unique."""
    if len(keys) + len(table) < BULK_KEYS and not kernels_loaded():
        return _match_by_join(keys, table)
    from minutch.kernels import match as match_kernels
    from minutch.kernels.arrow import from_series

    own, others = from_series(keys), from_series(table)
    group, at, before = (np.empty(len(keys), np.int64) for _ in range(3))
    count = match_kernels.meet(own.views, own.addresses, others.views, others.addresses, group, at, before)
    return Match(group, at[:count], before[:count])


def _match_by_join(keys: pl.Series, table: pl.Series) -> Match:
    first = keys.ne_missing(keys.shift())
    distinct = keys.filter(first).to_frame("key")
    rows = table.to_frame("key").with_row_index("at")
    at = distinct.join(rows, on="key", how="left", maintain_order="left")["at"].cast(pl.Int64).fill_null(-1)
    merged = pl.concat([rows.select("key", own=pl.lit(False)), distinct.select("key", own=pl.lit(True))])
    merged = merged.sort("key", "own", descending=[False, True])  # the URL before its row in the table
    own = merged["own"].to_numpy()
    return Match(np.cumsum(first.to_numpy()) - 1, at.to_numpy(), np.cumsum(~own)[own])


def has_repeats(keys: pl.Series) -> bool:
    """Whether a key of a sorted column stands there more than once."""
    if len(keys) < BULK_KEYS and not kernels_loaded():
        return bool(keys.eq(keys.shift()).any())
    from minutch.kernels import match as match_kernels
    from minutch.kernels.arrow import from_series

    strings = from_series(keys)
    return bool(match_kernels.first_repeat(strings.views, strings.addresses) >= 0)


def latest(rows: Rows, group: Ints, times: Ints) -> Rows:
    """Of `rows`, the one with the latest time of each URL, the first of several. All arrays are of the table."""
    own = group[rows]
    if not _repeats(own):
        return rows
    rows = rows[np.lexsort((-times[rows], own))]
    return rows[_starts(group[rows])]


def last(rows: Rows, group: Ints) -> Rows:
    """Of `rows`, the last one of each URL."""
    return rows[_starts(group[rows][::-1])[::-1]]


def by_score(rows: Rows, group: Ints, scores: NDArray[np.float32], limit: int) -> Rows:
    """The links `rows`, of each URL those with the lowest scores, at most `limit`; highest score first.

    Of equal scores at the limit the later ones stay: the queue replaces its highest by what is not higher.
    """
    own = group[rows]
    if limit <= 0:
        return rows[:0]
    if not _repeats(own):
        return rows
    rows = rows[_by_group_and_score(own, scores[rows])]
    sizes = np.bincount(own)
    if sizes.max() > limit:
        ends = np.cumsum(sizes)
        rows = rows[ends[group[rows]] - np.arange(len(rows)) <= limit]
    return rows


def _by_group_and_score(group: Ints, scores: NDArray[np.float32]) -> Rows:
    if len(group) < BULK_KEYS and not kernels_loaded():
        return np.lexsort((-scores, group))
    from minutch.kernels import match as match_kernels

    order = np.empty(len(group), np.int64)
    match_kernels.sort_runs(group, scores, order)
    return order


def first_of_each(rows: Rows, group: Ints) -> Rows:
    """Of `rows`, ordered by URL, the first of each."""
    return rows[_starts(group[rows])]


def _starts(values: Ints) -> Mask:
    """Where a run of equal values starts."""
    starts = np.ones(len(values), np.bool_)
    np.not_equal(values[1:], values[:-1], out=starts[1:])
    return starts


def _repeats(values: Ints) -> bool:
    return bool((values[1:] == values[:-1]).any())


def merged(table: pl.DataFrame, at: Ints, before: Ints, rows: pl.DataFrame) -> pl.DataFrame:
    """`table` with `rows` in it: row i in the place of row `at[i]`, or where that is -1 before row `before[i]`."""
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
