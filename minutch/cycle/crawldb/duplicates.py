"""Decides which of several pages with the same signature are duplicates, and which pages are
near-duplicates. Pure: no I/O.

    score           the higher score stays
    fetchTime       the later fetch time stays
    httpsOverHttp   of two URLs that differ in that only, https stays
    urlLength       the shorter URL (percent-decoded) stays

The pages of a group are compared one after the other with the one kept so far, by the criteria in
their order; the loser is a duplicate. Where no criterion decides between two pages, neither is a
duplicate of the other. Nutch takes the pages as its sort leaves them, and that then decides what
becomes of pages which equal one another but not the best. Here the order is fixed: best first by
the numeric criteria, equal ones by URL. So every page that is worse than the best of its group is a
duplicate. Source: org.apache.nutch.crawl.DeduplicationJob.DedupReducer.

Two pages are near each other if their own texts are (`owntext.near`: one of their keys is equal),
or if their SimHashes differ in at most so many bits. Best pages come first: a page stays unless a
better one within that distance stays. So each page that goes has a page that stays in its reach,
its leader (the best of them), and chains of small changes don't make one group of different pages.
Pages that are equally good are no duplicates of each other, either.

Pairs are not tried: only rows with the same value of a key are compared. Those of SimHashes are
made of their 64 bits, cut into blocks, more than the bits that may differ, so that some blocks of
two near pages are equal whatever differs. For each choice of that many blocks the rows are sorted
by them (a permuted table). More blocks mean more tables and fewer comparisons; what is cheaper
depends on the number of rows, so the cost grows little faster than they do. Who stays is found in
rounds: a page stays when no better one near it is undecided, and goes as soon as a better one near
it stays. Source: G. Manku, A. Jain, A. Das Sarma, Detecting Near-Duplicates for Web Crawling
(2007), section 3.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from itertools import combinations
from math import comb
from typing import Any, Final

import numpy as np
import polars as pl

from minutch.kernels import simhash as kernels
from minutch.kernels.native import I64, U32, U64, Flags
from minutch.work.tables.frame import decode_keys
from minutch.work.tables.parallel import ordered

SCORE: Final = "score"
FETCH_TIME: Final = "fetchTime"
HTTPS: Final = "httpsOverHttp"
URL_LENGTH: Final = "urlLength"
REQUIRED: Final = (SCORE, FETCH_TIME, URL_LENGTH)
DEFAULT_ORDER: Final = ",".join(REQUIRED)
DEFAULT_CRITERIA: Final = tuple(DEFAULT_ORDER.split(","))

_NUMERIC: Final = {SCORE: "score", FETCH_TIME: "fetch_time", URL_LENGTH: "shortness"}
"""Criterion -> column; the page with the higher number stays."""
TEXTS: Final = -1
"""In place of bits: near are pages whose own texts are."""
DEFAULT_BITS: Final = 3
"""Where no texts are stored."""
NO_LEADER: Final = -1
SCHEMA: Final = pl.Schema(
    {
        "word": pl.UInt64(),  # the SimHash, or a hash of the signature
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


def find(pages: pl.DataFrame, order: Sequence[str]) -> pl.Series:
    """Returns the URLs of the duplicates in `pages`, which has the columns `key` (the group's),
    `url`, `score`, `fetch_time`.

    All pages of a group are in the table. Unknown criteria in `order` are ignored, as in Nutch.
    """
    pages = pages.filter(may_repeat(pages["key"]))
    pages = pages.with_columns(shortness=-url_lengths(pages["url"]))
    criteria = [_NUMERIC[name] for name in dict.fromkeys(order) if name in _NUMERIC]
    # It compares two URLs, and so gives no order: by pairs, as DedupReducer does.
    if HTTPS in order:
        descending = [False, *[True] * len(criteria), False]
        return _one_by_one(pages.sort("key", *criteria, "url", descending=descending), order)
    best = pages.with_row_index("row")
    for column in criteria:
        # Criterion by criterion, the best of each group are left.
        best = best.filter(pl.col(column) == pl.col(column).max().over("key"))
    worse = np.ones(len(pages), np.bool_)
    worse[best["row"].to_numpy()] = False
    return pages["url"].filter(pl.Series(worse))


def may_repeat(groups: pl.Series) -> pl.Series:
    """Returns the mask of the rows whose group has several rows, or shares its hash with another
    group.

    A cheap first cut: numbers compare faster than strings.
    """
    return groups.hash().is_duplicated()


def _one_by_one(pages: pl.DataFrame, order: Sequence[str]) -> pl.Series:
    """Returns the URLs of the duplicates. `pages` is sorted by group, then for comparison."""
    found: list[bytes] = []
    kept: tuple[Any, ...] | None = None
    for page in pages.select("key", "url", *_NUMERIC.values()).iter_rows():
        if kept is None or page[0] != kept[0]:
            kept = page
            continue
        verdict = _compare(kept, page, order)
        if verdict:
            found.append(kept[1] if verdict > 0 else page[1])
            kept = page if verdict > 0 else kept
    return pl.Series("url", found, dtype=pl.Binary)


def _compare(kept: tuple[Any, ...], new: tuple[Any, ...], order: Sequence[str]) -> int:
    """Positive if `new` stays, negative if `kept` stays, 0 if no criterion decides."""
    for name in order:
        if name == HTTPS:
            verdict = _is_https_of(new[1], kept[1]) - _is_https_of(kept[1], new[1])
        elif name in _PLACES:
            place = _PLACES[name]
            verdict = (new[place] > kept[place]) - (new[place] < kept[place])
        else:
            continue
        if verdict:
            return verdict
    return 0


_PLACES: Final = {name: place for place, name in enumerate(_NUMERIC, 2)}
"""Criterion -> position in a row of `_one_by_one`."""


def _is_https_of(first: bytes, second: bytes) -> bool:
    return (
        first.startswith(b"https://") and second.startswith(b"http://") and first[8:] == second[7:]
    )


def url_lengths(keys: pl.Series) -> pl.Series:
    """Returns the length of each URL in UTF-16 units after percent-decoding."""
    lengths = keys.bin.size().cast(pl.Int64)
    urls = decode_keys(keys)
    # ASCII without escapes has as many units as bytes.
    special = urls.str.contains("%", literal=True) | (
        urls.str.len_chars().cast(pl.Int64) != lengths
    )
    at = special.arg_true()
    if at.is_empty():
        return lengths
    decoded = [decoded_length(url) for url in urls.gather(at)]
    return lengths.scatter(at, pl.Series(decoded, dtype=pl.Int64))


def decoded_length(url: str) -> int:
    """Returns the length of `url`, decoded as URLDecoder does if it can, in UTF-16 units."""
    with suppress(ValueError):
        url = _decode(url)
    return len(url.encode("utf-16-le", "surrogatepass")) // 2


def _decode(url: str) -> str:
    """URLDecoder.decode in UTF-8. Raises ValueError."""
    parts, at = [], 0
    while (start := url.find("%", at)) >= 0:
        parts.append(url[at:start])
        data = bytearray()
        at = start
        while at < len(url) and url[at] == "%":
            data.append(_escape(url[at + 1 : at + 3]))
            at += 3
        parts.append(data.decode("utf-8", "replace"))
    return "".join(parts) + url[at:]


def _escape(digits: str) -> int:
    """Returns the byte of an escape, from its two characters, as Integer.parseInt reads them."""
    if len(digits) < 2 or "_" in digits or digits.strip() != digits:  # int() is laxer than parseInt
        raise ValueError(digits)
    value = int(digits, 16)
    if value < 0:
        raise ValueError(digits)
    return value


@dataclass(frozen=True)
class Tables:
    """A way to cut 64 bits: into how many blocks, and how many of these are equal."""

    blocks: int
    equal: int

    def choices(self) -> Iterator[tuple[int, ...]]:
        """Returns the equal blocks of each table."""
        return combinations(range(self.blocks), self.equal)

    def key(self, words: U64, chosen: tuple[int, ...]) -> U64:
        """Returns the key of each word in a table: the bits of its blocks."""
        # Blocks differ by a bit at most.
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
        # Tables are sorted; then half of the rows with one key are compared with each.
        return float(
            comb(cut.blocks, cut.equal) * (sort + _COMPARISON_COST * rows / 2 ** (width + 1))
        )

    return min((Tables(blocks, blocks - bits) for blocks in range(bits + 1, bits + 5)), key=cost)


def leaders(
    words: U64,
    groups: U64,
    ranks: I64,
    bits: int,
    tables: Sequence[Callable[[], U64]] | None = None,
) -> I64:
    """Returns the row of each row's leader; NO_LEADER for rows that are kept.

    Rows are sorted by rank, the best (lowest) first. `groups` may be empty: then all rows are of
    one group. Rows of equal words are near each other, and those with an equal key in one of
    `tables`; without these, those whose words differ in so many bits.
    """
    firsts, of_row = _distinct(words, groups)
    words = words[firsts]
    if tables is not None:
        # All 64 may differ: the keys decide.
        bits, cuts = 64, [lambda keys=keys: keys()[firsts] for keys in tables]
    else:
        cut = cheapest(len(words), bits)
        cuts = [partial(cut.key, words, chosen) for chosen in cut.choices()] if bits else []
    groups = groups[firsts] if len(groups) else groups
    # Rows of equal words share their fate: one of them is compared.
    found = _Rounds(words, groups, ranks[firsts], bits, cuts).run()
    above = np.where(found == NO_LEADER, np.arange(len(firsts)), found)[of_row]
    result = firsts[above]
    result[ranks[result] == ranks] = NO_LEADER  # equally good, or the row itself
    return result


def _distinct(words: U64, groups: U64) -> tuple[I64, I64]:
    """Returns each different SimHash's (in a group) first row, ascending; and each row's number."""
    columns = {"word": words, "group": groups} if len(groups) else {"word": words}
    rows = pl.DataFrame(columns).with_row_index("row").select(pl.col("row").first().over(*columns))
    first = rows.to_series().to_numpy().astype(np.int64)
    firsts = np.flatnonzero(first == np.arange(len(first)))
    return firsts, np.searchsorted(firsts, first)


class _Rounds:
    """Decides which of different rows, best first, are kept."""

    def __init__(
        self, words: U64, groups: U64, ranks: I64, bits: int, tables: Sequence[Callable[[], U64]]
    ) -> None:
        self.words, self.groups, self.ranks, self.bits = words, groups, ranks, bits
        self.tables = tables
        self.kept = np.zeros(len(words), np.bool_)
        self.undecided = np.ones(len(words), np.bool_)

    def run(self) -> I64:
        """Returns the leader of each one that is not kept."""
        while self.undecided.any():
            # A row stays if no better one near it stays or is undecided, goes if one stays.
            blocked, found = self.sweep(self.undecided)
            self.kept |= self.undecided & ~blocked & (found == NO_LEADER)
            self.undecided &= blocked & (found == NO_LEADER)
        return self.sweep(~self.kept)[1]  # once more, now that all that stay are known

    def sweep(self, asked: Flags) -> tuple[Flags, I64]:
        """Finds, of the rows in `asked`, those with a better undecided one near, and the best one
        that is kept.
        """
        blocked, found = np.zeros(len(asked), np.bool_), np.full(len(asked), NO_LEADER, np.int64)

        def table(keys: Callable[[], U64]) -> I64:
            """Returns the leaders that this table shows; `blocked` is for all, and only ever
            set.
            """
            key, own = keys(), np.full(len(asked), NO_LEADER, np.int64)
            order = _together(key, asked)
            by_key = kernels.Sorted(order, key[order], self.words[order])
            rows = kernels.HashRows(self.groups, self.ranks, self.kept, asked)
            kernels.sweep(by_key, rows, self.bits, blocked, own)
            return own

        for own in ordered(table, self.tables):  # threads only ever set flags, in any order
            better = (own != NO_LEADER) & ((found == NO_LEADER) | (own < found))
            found[better] = own[better]
        return blocked, found


def _together(key: U64, asked: Flags) -> U32:
    """Returns the rows by key, a key's ascending; keys without an `asked` row may be missing."""
    if asked.all():
        rows = np.arange(len(key), dtype=np.uint32)
    else:
        # A filter of 4 MB, by Fibonacci hashing: keys that nobody asked for need not be sorted.
        wanted = np.zeros(1 << 22, np.bool_)
        places = (key * np.uint64(0x9E37_79B9_7F4A_7C15)) >> np.uint64(42)
        wanted[places[asked]] = True
        rows = np.flatnonzero(wanted[places]).astype(np.uint32)
    key = key[rows]
    small = len(key) and int(key.max()) < 1 << 16
    # NumPy sorts 16 bits by radix.
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
