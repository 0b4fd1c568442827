"""Rows of one key, of which some are wanted: the latest, the first; and sorted merges.

Tables are sorted by key; so are the results. Rows of one key keep their order where nothing else is said.
"""

from __future__ import annotations

import polars as pl

from minutch.crawldb.matching import has_repeats

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
    if not has_repeats(frame["key"]):
        return frame
    return first_of_key(frame.sort("key", "fetch_time", descending=[False, True], maintain_order=True))


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
