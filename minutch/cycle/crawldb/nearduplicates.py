"""Decides which pages are near-duplicates. Pure: no I/O.

Two pages are near each other if their SimHashes differ in at most so many bits. Best pages come
first, in the order of `duplicates`: a page stays unless a better one within that distance stays. So
each page that goes has a page that stays in its reach, its leader (the best of them), and chains of
small changes don't make one group of different pages. Pages that are equally good are no duplicates
of each other, as in dedup without `-near`.

Pairs are not tried: the 64 bits are cut into blocks, more than the bits that may differ, so that
some blocks of two near pages are equal whatever differs. For each choice of that many blocks the
rows are sorted by them (a permuted table), and only rows with the same value there are compared.
More blocks mean more tables and fewer comparisons; what is cheaper depends on the number of rows,
so the cost grows little faster than they do. Who stays is found in rounds: a page stays when no
better one near it is undecided, and goes as soon as a better one near it stays. Source: G. Manku,
A. Jain, A. Das Sarma, Detecting Near-Duplicates for Web Crawling (2007), section 3.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations
from math import comb
from typing import Final

import numpy as np
import polars as pl

from minutch.cycle.crawldb.duplicates import FETCH_TIME, HTTPS, SCORE, URL_LENGTH
from minutch.kernels import simhash as kernels
from minutch.kernels.native import I64, U32, U64, Flags
from minutch.work.tables.parallel import ordered

DEFAULT_BITS: Final = 3
MOST_BITS: Final = 10
"""Beyond, unrelated pages meet, and there is no cheap way to find them."""
NO_LEADER: Final = -1
SCHEMA: Final = pl.Schema(
    {
        "word": pl.UInt64(),  # the SimHash
        # pages of different groups are not compared; a hash of the group's name
        "group": pl.UInt64(),
        "score": pl.Float32(),
        "fetch_time": pl.Int64(),
        "length": pl.Int32(),  # of the URL
        "address": pl.UInt64(),  # a hash of the URL after its scheme
        "secure": pl.Boolean(),  # https
    }
)
"""Columns that are compared, a row for each page."""
_SORT_COST: Final = 200
_SHORT_SORT_COST: Final = 120
_COMPARISON_COST: Final = 3
"""Nanoseconds: a row in a table with keys of more than 16 bits, of less, two rows compared."""


@dataclass(frozen=True)
class Tables:
    """A way to cut 64 bits: how many blocks, how many of them are equal."""

    blocks: int
    equal: int

    def choices(self) -> Iterator[tuple[int, ...]]:
        """Returns the equal blocks of each table."""
        return combinations(range(self.blocks), self.equal)

    def key(self, words: U64, chosen: tuple[int, ...]) -> U64:
        """Returns the key of each word in a table: the bits of its blocks."""
        edges = [64 * i // self.blocks for i in range(self.blocks + 1)]
        key = np.zeros(len(words), np.uint64)
        for block in chosen:
            size = edges[block + 1] - edges[block]
            bits = (words >> np.uint64(edges[block])) & np.uint64((1 << size) - 1)
            key = (key << np.uint64(size)) | bits
        return key


def cheapest(rows: int, bits: int) -> Tables:
    """Returns the cut that finds pairs within `bits` bits among so many rows fastest."""

    def cost(cut: Tables) -> float:
        width = 64 * cut.equal // cut.blocks
        sort = _SHORT_SORT_COST if width <= 16 else _SORT_COST
        return float(
            comb(cut.blocks, cut.equal) * (sort + _COMPARISON_COST * rows / 2 ** (width + 1))
        )

    return min((Tables(blocks, blocks - bits) for blocks in range(bits + 1, bits + 5)), key=cost)


def leaders(words: U64, groups: U64, ranks: I64, bits: int) -> I64:
    """Returns the row of each row's leader, NO_LEADER for those that stay.

    Rows are sorted by rank, the best (lowest) first. `groups` may be empty: then all rows are of
    one group.
    """
    firsts, of_row = _distinct(words, groups)
    state = _Rounds(words[firsts], groups[firsts] if len(groups) else groups, ranks[firsts], bits)
    found = state.run()
    above = np.where(found == NO_LEADER, np.arange(len(firsts)), found)[of_row]
    result = firsts[above]
    result[ranks[result] == ranks] = NO_LEADER  # equally good, or the row itself
    return result


def _distinct(words: U64, groups: U64) -> tuple[I64, I64]:
    """Returns the first row of each different SimHash (of a group), ascending, and for each row the
    number of that one.
    """
    columns = {"word": words, "group": groups} if len(groups) else {"word": words}
    rows = pl.DataFrame(columns).with_row_index("row").select(pl.col("row").first().over(*columns))
    first = rows.to_series().to_numpy().astype(np.int64)
    firsts = np.flatnonzero(first == np.arange(len(first)))
    return firsts, np.searchsorted(firsts, first)


class _Rounds:
    """Different SimHashes, best first: which stay."""

    def __init__(self, words: U64, groups: U64, ranks: I64, bits: int) -> None:
        self.words, self.groups, self.ranks, self.bits = words, groups, ranks, bits
        self.kept = np.zeros(len(words), np.bool_)
        self.undecided = np.ones(len(words), np.bool_)
        self.cut = cheapest(len(words), bits) if bits else None

    def run(self) -> I64:
        """The leader of each that goes."""
        while self.undecided.any():
            blocked, found = self.sweep(self.undecided)
            self.kept |= self.undecided & ~blocked & (found == NO_LEADER)
            self.undecided &= blocked & (found == NO_LEADER)
        return self.sweep(~self.kept)[1]  # once more, now that all that stay are known

    def sweep(self, asked: Flags) -> tuple[Flags, I64]:
        """Finds, of the rows that are `asked` for, those with a better undecided one near, and the
        best one that stays.
        """
        blocked, found = np.zeros(len(asked), np.bool_), np.full(len(asked), NO_LEADER, np.int64)
        if self.cut is None:
            return blocked, found
        cut = self.cut

        def table(chosen: tuple[int, ...]) -> I64:
            """Returns the leaders that this table shows; `blocked` is for all, and only ever
            set.
            """
            key, own = cut.key(self.words, chosen), np.full(len(asked), NO_LEADER, np.int64)
            order = _together(key, asked)
            by_key = kernels.Sorted(order, key[order], self.words[order])
            rows = kernels.Rows(self.groups, self.ranks, self.kept, asked)
            kernels.sweep(by_key, rows, self.bits, blocked, own)
            return own

        for own in ordered(table, cut.choices()):
            better = (own != NO_LEADER) & ((found == NO_LEADER) | (own < found))
            found[better] = own[better]
        return blocked, found


def _together(key: U64, asked: Flags) -> U32:
    """Returns the rows by key, those of one key in ascending order; keys that no row `asked` for
    has may be missing.
    """
    if asked.all():
        rows = np.arange(len(key), dtype=np.uint32)
    else:
        wanted = np.zeros(1 << 22, np.bool_)
        places = (key * np.uint64(0x9E37_79B9_7F4A_7C15)) >> np.uint64(42)
        wanted[places[asked]] = True
        rows = np.flatnonzero(wanted[places]).astype(np.uint32)
    key = key[rows]
    small = len(key) and int(key.max()) < 1 << 16
    return rows[np.argsort(key.astype(np.uint16) if small else key, kind="stable")]


def best_first(pages: pl.DataFrame, order: Sequence[str]) -> tuple[I64, I64]:
    """Returns the rows of `pages` (columns of SCHEMA), best first by the criteria in `order`, and
    the rank of each of them.

    Equally good ones have the same rank, and stand as they came. With httpsOverHttp, pages whose
    URL is there with https as well are the worse ones.
    """
    twins = pages.filter("secure")["address"].implode()
    columns = {
        SCORE: pl.col("score"),
        FETCH_TIME: pl.col("fetch_time"),
        URL_LENGTH: -pl.col("length"),
        HTTPS: pl.col("secure") | ~pl.col("address").is_in(twins),
    }
    criteria = [name for name in dict.fromkeys(order) if name in columns]
    table = pages.select(columns[name].alias(name) for name in criteria)
    at = table.select(pl.arg_sort_by(criteria, descending=True, maintain_order=True)).to_series()
    table = table[at]
    differ = [pl.col(name).ne_missing(pl.col(name).shift()) for name in criteria]
    changes = table.select(pl.any_horizontal(differ)).to_series().to_numpy().copy()
    changes[:1] = False
    return at.to_numpy().astype(np.int64), np.cumsum(changes, dtype=np.int64)
