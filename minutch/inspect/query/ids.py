"""Numbers URLs by 64 bits of their hashes, and finds them among sorted ones. Pure."""

from __future__ import annotations

from typing import Final

import numpy as np
import numpy.typing as npt
import polars as pl

ID: Final = pl.col("url").hash().alias("id")

Ids = npt.NDArray[np.uint64]
Places = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]


def places_in(ids: Ids, wanted: Ids) -> tuple[Places, Mask]:
    """Returns the place of each of `wanted` in sorted `ids`, and a mask of those that are there."""
    if not len(ids):
        return np.zeros(len(wanted), np.int64), np.zeros(len(wanted), bool)
    at = np.minimum(np.searchsorted(ids, wanted), len(ids) - 1)
    return at, ids[at] == wanted


def of_keys(urls: pl.DataFrame) -> pl.DataFrame:
    """Returns a URL (`id`, …) for each `key` of `urls.urlkeys`: what other spellings mean. The
    least id decides where several have the same.
    """
    return urls.sort("id").unique("key", keep="first", maintain_order=True)


def places_of_runs(ids: Ids, wanted: Ids) -> tuple[Places, Mask]:
    """Returns the same, faster for many repeats in a row, such as a page with many links."""
    heads = (
        np.flatnonzero(np.concatenate([[True], wanted[1:] != wanted[:-1]]))
        if len(wanted)
        else np.zeros(0, np.int64)
    )
    lengths = np.diff(np.append(heads, len(wanted)))
    at, there = places_in(ids, wanted[heads])
    return np.repeat(at, lengths), np.repeat(there, lengths)
