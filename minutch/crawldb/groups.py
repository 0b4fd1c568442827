"""Rows of one key, of which some are wanted: the latest, the first, those with the lowest scores; and sorted merges.

Tables are sorted by key; so are the results. Rows of one key keep their order where nothing else is said.
"""

from __future__ import annotations

import polars as pl

_NEW_KEY = (pl.col("key") != pl.col("key").shift()).fill_null(True)


def is_first(frame: pl.DataFrame) -> pl.Series:
    """Where a key begins."""
    return frame.select(_NEW_KEY).to_series()


def first_of_key(frame: pl.DataFrame) -> pl.DataFrame:
    """The first row of each key."""
    first = is_first(frame)
    return frame if first.all() else frame.filter(first)


def keep_latest(frame: pl.DataFrame) -> pl.DataFrame:
    """The row with the latest fetch time of each key, the first of several."""
    if is_first(frame).all():
        return frame
    return first_of_key(frame.sort("key", "fetch_time", descending=[False, True], maintain_order=True))


def lowest_scores(links: pl.DataFrame, limit: int) -> pl.DataFrame:
    """At most `limit` links of each key, those with the lowest scores; within a key by descending score.

    Of links with equal scores at the limit the later ones stay (InlinkPriorityQueue replaces its top by its like).
    """
    if is_first(links).all():
        return links if limit > 0 else links.clear()
    links = links.with_columns(links.select(_NEW_KEY.cum_sum().alias("group")).to_series())
    links = links.sort("group", "score", descending=[False, True], maintain_order=True)
    rank_from_end = pl.int_range(pl.len() - 1, -1, -1).over("group")
    sizes = links["group"].value_counts(name="size")["size"]
    if (sizes.max() or 0) > limit:  # type: ignore[operator]
        links = links.filter(rank_from_end < limit)
    return links.drop("group")


def merge_sorted(first: pl.DataFrame, second: pl.DataFrame) -> pl.DataFrame:
    """Both tables' rows, sorted by key; no key is in both."""
    if first.is_empty() or second.is_empty():
        return second if first.is_empty() else first
    return first.select(second.columns).merge_sorted(second, key="key")


def has_ties(frame: pl.DataFrame, *by: str) -> bool:
    """Whether rows of one key with equal values in the columns `by` differ in anything else."""
    same = ["key", *by]
    several = frame.filter(pl.struct(same).is_duplicated())
    return bool(several.unique().select(pl.struct(same).is_duplicated().any()).item()) if len(several) else False
