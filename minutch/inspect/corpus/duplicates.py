"""Finds clusters of texts, and lines that came before, within a budget of memory.

All texts that are near each other (`owntext.near`), also by way of others, are a cluster. Lines are
the same if they are so to the character.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import Final

import numpy as np
import numpy.typing as npt

from minutch.cycle.owntext.near import KEYS
from minutch.kernels import minhash as kernels

_SORTED: Final = 32
"""Bytes that a key takes while it is sorted."""
Numbers = npt.NDArray[np.int64]


def clusters(
    keys: Callable[[str], npt.NDArray[np.uint64]], counts: npt.NDArray[np.bool_], memory: int
) -> Numbers:
    """Returns for each row the first one of its cluster: itself, if no other is near it.

    `keys` reads those of a band; rows that do not count are near no other.
    """
    rows = np.arange(len(counts), dtype=np.int64)
    for band in KEYS:
        every = np.where(counts, keys(band), np.uint64(0))
        for low, high in _ranges(len(counts), memory):
            mine = np.flatnonzero((every >= low) & (every <= high) & (every != 0))
            order = mine[np.argsort(every[mine], kind="stable")]
            kernels.join_equal(every[order], order, rows)
    kernels.find_roots(rows)
    return rows


def came_before(
    lines: Callable[[], Iterator[npt.NDArray[np.uint64]]], count: int, memory: int
) -> npt.NDArray[np.bool_]:
    """Returns whether a line (by its hash, 0 for none) came before, for each of `count`, which
    `lines` reads one after the other.
    """
    seen = np.zeros(count, np.bool_)
    for low, high in _ranges(count, memory):
        places, hashes, start = [], [], 0
        for some in lines():
            mine = np.flatnonzero((some >= low) & (some <= high) & (some != 0))
            places.append(mine + start)
            hashes.append(some[mine])
            start += len(some)
        if not places:
            return seen
        place, value = np.concatenate(places), np.concatenate(hashes)
        order = np.argsort(value, kind="stable")
        same = np.zeros(len(order), np.bool_)
        same[1:] = value[order[1:]] == value[order[:-1]]
        seen[place[order[same]]] = True
    return seen


def _ranges(count: int, memory: int) -> Iterator[tuple[np.uint64, np.uint64]]:
    """Yields ranges of hashes, the ends included, of which so many have each about what can be
    sorted in memory.
    """
    parts = max(1, -(-count * _SORTED // memory))
    borders = [part * (1 << 64) // parts for part in range(parts + 1)]
    for low, high in pairwise(borders):
        yield np.uint64(low), np.uint64(high - 1)
