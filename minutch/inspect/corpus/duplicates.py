"""Finds texts that have most of their words in common, and lines that came before, within a budget
of memory.

Texts are compared by MinHash: of the runs of `RUN` words, in lower case, without marks above
letters and signs, numbers as 0, the least of `BANDS` × `HASHES` hashes are looked at. Texts in
which all hashes of a band are equal are near each other, with a probability of 1 - (1 - s^8)^14
where s of the runs are the same: 0.05 at s = 0.5, 0.56 at 0.7, 0.92 at 0.8. All that are near each
other, also by way of others, are a cluster. Lines are the same if they are so to the character.

Source: A. Broder, On the Resemblance and Containment of Documents (1997); the numbers are those of
datatrove 0.10 (MinhashConfig).
"""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Iterator
from functools import cache
from itertools import pairwise
from typing import Final

import numpy as np
import numpy.typing as npt
import polars as pl

from minutch.inspect.corpus.signals import CHARACTERS, SPACELESS
from minutch.kernels import minhash as kernels
from minutch.kernels.arrow import from_series
from minutch.kernels.native import U32

RUN, BANDS, HASHES = 5, 14, 8
KEYS: Final = tuple(f"band_{band:02}" for band in range(BANDS))
_SEED: Final = 1
_SORTED: Final = 32
"""Bytes that a key takes while it is sorted."""
Numbers = npt.NDArray[np.int64]


def band_keys(texts: pl.Series) -> pl.DataFrame:
    """Returns the key of each band of each text (UInt64), 0 for a text without words."""
    texts = texts.fill_null("")
    out = np.empty(len(texts) * BANDS, np.uint64)
    longest = int(texts.str.len_bytes().max() or 0)  # type: ignore[arg-type]
    words = np.empty(longest + 1 + BANDS * HASHES, np.uint64)
    kernels.band_keys(from_series(texts).column, _plain(), RUN, _functions(), BANDS, words, out)
    return pl.DataFrame(out.reshape(-1, BANDS), schema=list(KEYS))


@cache
def _functions() -> kernels.Functions:
    random = np.random.Generator(np.random.PCG64(_SEED))
    factors, summands = (random.integers(0, 1 << 64, BANDS * HASHES, np.uint64) for _ in range(2))
    return kernels.Functions(factors | np.uint64(1), summands)


@cache
def _plain() -> U32:
    """Makes the table of what characters count as: 0 for those that separate words."""
    table = np.zeros(CHARACTERS, np.uint32)
    for code in range(CHARACTERS):
        category = unicodedata.category(char := chr(code))
        if category == "Mn":
            table[code] = kernels.MARK
        elif category == "Nd":
            table[code] = ord("0")
        elif category[0] in "LMN" or category == "Cs":
            table[code] = ord(unicodedata.normalize("NFD", char.lower())[0])
    for first, last in SPACELESS:
        spaceless = table[first : last + 1]
        spaceless[(spaceless > 0) & (spaceless != kernels.MARK)] |= np.uint32(kernels.ALONE)
    return table


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
