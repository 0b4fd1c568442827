"""The order of a java.util.HashSet<Inlink>, for many sets at a time: what decides the bytes of an Inlinks record.

    hash   = String.hashCode(from URL) ^ String.hashCode(anchor)
    bucket = (hash ^ hash >>> 16) & (size of the table - 1)

A set is iterated bucket by bucket, within a bucket in the order of insertion. The table starts with one bucket and
doubles beyond three quarters. A set that is read into again and again (Hadoop does that) keeps the largest table that
it ever had. Buckets that Java turns into trees (9 links of one bucket in a table of 64 or more) keep that order, too,
as long as their root stays in its place; the early doubling of smaller tables in that case is followed for new sets.
Matched: java.util.HashMap of JDK 17, org.apache.nutch.crawl.Inlinks, Inlink.hashCode.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import polars as pl
from numpy.typing import NDArray

from minutch.formats.javahash import hash_map_order, string_hash
from minutch.tables.spans import kernels_loaded

Ints = NDArray[np.int64]

_BULK: Final = 50_000  # strings from which loading the kernels pays
_TREEIFY: Final = 8  # links of one bucket that a small table puts up with
_SMALL_TABLE: Final = 64


def string_hashes(column: pl.Series) -> NDArray[np.int32]:
    """String.hashCode of each string of a Binary column of UTF-8."""
    if len(column) < _BULK and not kernels_loaded():
        return np.array([_hash(data) for data in column], dtype=np.int64).astype(np.int32)
    from minutch.kernels import inlinks as links_kernels
    from minutch.kernels.arrow import from_series

    strings = from_series(column)
    hashes = np.empty(len(column), np.int32)
    links_kernels.string_hashes(strings.views, strings.addresses, hashes)
    return hashes


def _hash(data: bytes) -> int:
    return string_hash(data.decode("utf-8", "replace"))


def link_hashes(links: pl.DataFrame) -> NDArray[np.int64]:
    """Inlink.hashCode of each row, spread as HashMap does (not negative)."""
    hashes = (string_hashes(links["from_url"]) ^ string_hashes(links["anchor"])).view(np.uint32).astype(np.int64)
    spread: Ints = hashes ^ (hashes >> 16)
    return spread


def table_sizes(counts: Ints) -> Ints:
    """Buckets of the table of a new set after so many additions."""
    buckets = np.full(len(counts), 2, dtype=np.int64)
    while True:
        full = 4 * counts > 3 * buckets
        if not full.any():
            return buckets
        buckets[full] *= 2


def iteration_order(spread: Ints, starts: Ints, tables: Ints | None) -> Ints:
    """A permutation of rows: those of each set (from `starts[i]` to `starts[i + 1]`) as Java iterates over them.

    Rows stand in the order of insertion, `spread` has their hashes. `tables` are the sizes of the sets' tables; None
    stands for new sets.
    """
    counts = np.diff(starts)
    new = tables is None
    sizes = table_sizes(counts) if tables is None else tables
    order = np.arange(len(spread))
    rows = np.flatnonzero(np.repeat(counts > 1, counts))
    if not len(rows):
        return order
    owner = np.repeat(np.arange(len(counts)), counts)[rows]
    places = (owner << 32) | (spread[rows] & (sizes[owner] - 1))
    order[rows] = rows[np.argsort(places, kind="stable")]
    if new:
        for crowded in _crowded(places, sizes):
            first, last = starts[crowded], starts[crowded + 1]
            order[first:last] = first + np.array(hash_map_order(spread[first:last].tolist(), capacity=1))
    return order


def _crowded(places: Ints, sizes: Ints) -> NDArray[Any]:
    """The sets that have more links in one bucket than a small table puts up with."""
    found, counts = np.unique(places, return_counts=True)
    owners = np.unique(found[counts > _TREEIFY] >> 32)
    return owners[sizes[owners] < _SMALL_TABLE]
