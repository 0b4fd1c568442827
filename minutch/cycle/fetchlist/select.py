"""Decides which of the pages that are due get a place in a fetch list: topN, segments, limits of
hosts. No I/O.

Best first: by descending sort value, then by a hash of the URL, then by the URL's bytes. Nutch
leaves the order of equal sort values open; the hash scatters them, so that a cut at topN takes
pages of all hosts and not those at the beginning of the alphabet. It is the hash that fetch lists
are sorted by, with its bits mixed (similar URLs have similar ones):

    hash = 1; for each byte of VInt length and URL, the last one first: hash = 31 * hash + signed
    byte, in 32 bits

With several reducers (mapreduce.job.reduces) each deals out topN / reducers places to the hosts
that are its own.

Source: org.apache.nutch.crawl.Generator, SelectorReducer, DecreasingFloatComparator and
HashComparator.
"""

from __future__ import annotations

import secrets
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

import numpy as np
import polars as pl
from numpy.typing import NDArray

from minutch.conf import Configuration, Settings, made_by, prop
from minutch.cycle.fetchlist.hostlimits import HostLimits
from minutch.cycle.fetchlist.partition import UrlPartitioner
from minutch.job import Counters
from minutch.kernels import hash as hash_kernels
from minutch.kernels.arrow import from_series
from minutch.plugin.chains import URLNormalizers
from minutch.urls.hostcolumns import domains_of, host_names
from minutch.work.engine.selection import Ranks
from minutch.work.tables.frame import decode_keys
from minutch.work.tables.parallel import for_each, number_of_parts

Ints = NDArray[np.int64]

SELECTED: Final = "selected_total"
NOT_IN_TOP: Final = "not_in_top_n_total"
MALFORMED: Final = "malformed_urls_skipped_total"
HOSTS_OVER_LIMIT: Final = "hosts_affected_per_host_overflow_total"
OVER_LIMIT: Final = "urls_skipped_per_host_overflow_total"

REASONS: Final = {
    MALFORMED: "that are no URLs",
    OVER_LIMIT: "over the limit of their host or domain (generate.max.count)",
    NOT_IN_TOP: "beyond topN",
}
"""Counter of entries that got no place -> its meaning."""
LEFT_FOR_LATER: Final = (OVER_LIMIT, NOT_IN_TOP)
"""Those that may get one in the next list."""

NO_PLACE: Final = 0
IS_MALFORMED: Final = -1
IS_OVER_LIMIT: Final = -2
"""Instead of a segment's number (from 1): the reason why an entry has none."""
WHY: Final = {IS_MALFORMED: MALFORMED, IS_OVER_LIMIT: OVER_LIMIT, NO_PLACE: NOT_IN_TOP}

NO_LIMIT: Final = (1 << 63) - 1
NONE_LISTED: Final = MappingProxyType[str, int]({})
_MOST: Final = 1 << 31
"""No owner has so many entries."""
_BLOCK: Final = 10_000  # entries whose hosts are looked up at a time


def url_hashes(keys: pl.Series) -> NDArray[np.uint32]:
    """Returns the hash code of each URL (Binary), moved: unsigned order is Java's signed one."""
    strings, hashes = from_series(keys), np.empty(len(keys), np.int32)
    hash_kernels.url_hashes(strings.views, strings.addresses, hashes)
    return hashes.view(np.uint32) ^ np.uint32(1 << 31)


def descending(values: pl.Series) -> NDArray[np.uint32]:
    """Returns integers that ascend where the 32-bit `values` descend, in the order of
    Float.compare: NaN comes first.
    """
    # IEEE floats as integers: the sign apart, larger bits are larger numbers.
    numbers = values.to_numpy()
    bits = numbers.view(np.int32)
    ascending = np.where(
        np.isnan(numbers), np.int32(0x7FC0_0000), np.where(bits < 0, bits ^ 0x7FFF_FFFF, bits)
    )
    return ~(ascending.astype(np.int32).view(np.uint32) ^ np.uint32(1 << 31))


def mixed(hashes: NDArray[np.uint32]) -> NDArray[np.uint32]:
    """Scrambles hashes: a distinct number for each, in no order. Source: MurmurHash3, fmix32."""
    hashes = (hashes ^ (hashes >> np.uint32(16))) * np.uint32(0x85EB_CA6B)
    hashes = (hashes ^ (hashes >> np.uint32(13))) * np.uint32(0xC2B2_AE35)
    return hashes ^ (hashes >> np.uint32(16))


def ranks_of(order: NDArray[np.uint32], hashes: NDArray[np.uint32]) -> Ranks:
    """Returns numbers that ascend with `order`, then with the hash."""
    return order.astype(np.uint64) << np.uint64(32) | hashes


def best_first(ranks: Ranks, keys: pl.Series, first: int) -> Iterator[Ints]:
    """Yields all row numbers by rank, then key, in stretches, the first of about `first` rows."""
    low = 0
    while first < len(ranks):
        # A selection, no sort: of millions only the best are put in order.
        bound = int(np.partition(ranks, first - 1)[first - 1])
        yield by_rank(np.flatnonzero((ranks >= low) & (ranks <= bound)), ranks, keys)
        # Each stretch is longer: all of them are read in a few steps.
        low, first = bound + 1, 4 * first
    yield by_rank(np.flatnonzero(ranks >= low), ranks, keys)


def by_rank(rows: Ints, ranks: Ranks, keys: pl.Series) -> Ints:
    """Returns `rows` by rank, those of equal rank by key."""
    rows = rows[np.argsort(ranks[rows])]
    is_equal = ranks[rows[1:]] == ranks[rows[:-1]]
    places = np.flatnonzero(np.append(is_equal, False) | np.append(False, is_equal))
    if len(places):  # URLs with the same hash
        equals = rows[places]
        table = pl.DataFrame({"rank": ranks[equals], "key": keys.gather(equals), "row": equals})
        rows[places] = table.sort("rank", "key", "row")["row"].to_numpy()
    return rows


def ranks_in(table: pl.DataFrame) -> Ranks:
    """Returns the rank of each entry of a table with `sort`: lower ones come first."""
    return ranks_of(descending(table["sort"]), mixed(url_hashes(table["key"])))


def _by_domain(conf: Configuration, name: str) -> bool:
    return conf.get(name) == "domain"


@dataclass(frozen=True, slots=True)
class SelectionSettings(Settings):
    """The limits of a selection."""

    top_n: int
    """Pages in each segment, at most."""
    segments: int
    """Segments that are made, at most."""
    normalizers: URLNormalizers | None
    """Normalizers of the URLs whose hosts are counted."""
    partitioner: UrlPartitioner
    """Decides which reducer an entry belongs to."""
    reducers: int = made_by(number_of_parts)
    """Reducers, each of which deals out its share of the places."""
    max_count: int = prop("generate.max.count")
    """Pages of a host or domain in each segment, at most; 0 or less: no limit."""
    by_domain: bool = prop("generate.count.mode", _by_domain)
    """Whether the pages of a domain are counted together."""
    listed: pl.Series | None = None
    """Keys that are in the list already, to which the selected ones are added: they count to the
    limit of their host or domain.
    """


def of_turn(segments: int) -> tuple[pl.Expr, pl.Expr]:
    """Returns the segment of an entry, or WHY it has none, where hosts alone are limited, by its
    `turn` among its owner's, from 0, and their `limit`; and whether it is the first without one.
    """
    turn, limit = pl.col("turn"), pl.col("limit")
    is_over = (limit > 0) & (turn >= limit * segments)
    place = pl.when(limit <= 0).then(1).otherwise(turn // limit + 1)
    segment = pl.when(is_over).then(IS_OVER_LIMIT).otherwise(place)
    return segment.cast(pl.Int64), is_over & (turn == limit * segments)


def with_listed() -> pl.Expr:
    """Returns the `turn` after the entries that are `listed`, of which not more than `limit`
    count.
    """
    return pl.col("turn") + pl.min_horizontal(pl.col("listed").fill_null(0), "limit")


class ListSelection:
    """Gives places to entries, best first, within the limits of `settings`.

    `hosts` has limits of hosts that apply instead of generate.max.count.
    """

    def __init__(
        self, settings: SelectionSettings, hosts: HostLimits | None = None, own: range | None = None
    ) -> None:
        """`own` are the reducers whose entries come, if they are not all of them."""
        reducers, top_n = settings.reducers, settings.top_n
        self._reducers = reducers
        # Java's division rounds towards zero.
        self._limit = top_n // reducers if top_n >= 0 else -(-top_n // reducers)
        self._is_endless = top_n == NO_LIMIT
        self.segments = settings.segments
        self._max_count = settings.max_count
        self._by_domain = settings.by_domain
        self._normalizers = settings.normalizers
        self._hosts = hosts if hosts is not None and hosts.limits_counts else None
        self._partitioner = settings.partitioner
        self._own = range(reducers) if own is None else own
        self._seed = secrets.randbits(62)  # nobody can choose hosts whose hashes are equal
        self._quotas = [
            Quota(self._limit, self.segments, self._max_count, count)
            for count in self._counts_of(settings.listed)
        ]

    def _counts_of(self, listed: pl.Series | None) -> list[Counter[str]]:
        """Returns how many pages of each owner a list has, by reducer."""
        counts: list[Counter[str]] = [Counter() for _ in range(self._reducers)]
        if listed is None or not (self._max_count > 0 or self._hosts):
            return counts
        urls = decode_keys(listed)
        reducers = self._reducers_of(urls, NO_LIMIT).tolist()
        for reducer, owner in zip(reducers, self._owners(urls), strict=True):
            if owner is not None:
                counts[reducer][owner] += 1
        return counts

    @property
    def is_full(self) -> bool:
        """True if no further entry can get a place."""
        return all(self._quotas[reducer].is_full for reducer in self._own)

    def choose(
        self, found: Sequence[pl.DataFrame], counters: Counters, total: int = 0
    ) -> pl.DataFrame:
        """Returns the entries that get a place, with their `segment` (from 1); `counters` has the
        number of all others.

        `found` has at least one table of what is due, with the column `sort`. Where these are the
        best of more, there are `total` entries; worse ones have their turn in later calls.
        """
        segments = self.segments_of(found, counters, total)
        shares = np.split(segments, np.cumsum([len(table) for table in found])[:-1])
        return pl.concat(
            [_placed(table, share) for table, share in zip(found, shares, strict=True)]
        )

    def segments_of(
        self, found: Sequence[pl.DataFrame], counters: Counters, total: int = 0
    ) -> Ints:
        """Returns the segment of each entry of all tables in order, or WHY it has none."""
        if self._hosts is not None:
            self._hosts.learn(found)
        keys = pl.concat([table["key"] for table in found], rechunk=True)
        total = max(total, len(keys))
        segments = np.zeros(len(keys), dtype=np.int64)
        if self._is_endless and self._is_limited(total):
            segments = self._by_turns(keys, np.concatenate(for_each(ranks_in, found)))
        else:
            self._deal_all(found, keys, segments, total)
        for quota in self._quotas:
            counters.merge(quota.counters)
            quota.counters = Counters()
        for code, reason in WHY.items():
            count = int(np.count_nonzero(segments == code))
            if count or code == NO_PLACE:
                counters.add(reason, count)
        counters.add(SELECTED, int(np.count_nonzero(segments > NO_PLACE)))
        return segments

    def _deal_all(
        self, found: Sequence[pl.DataFrame], keys: pl.Series, segments: Ints, total: int
    ) -> None:
        for block in self._blocks(found, keys) if self._is_limited(total) else _in_order(len(keys)):
            self._deal(block, keys, segments, total)
            if self.is_full:
                break

    def _by_turns(self, keys: pl.Series, ranks: Ranks) -> Ints:
        """Returns the segment of each entry, or WHY it has none, where hosts alone are limited."""
        urls, order = decode_keys(keys), by_rank(np.arange(len(ranks)), ranks, keys)
        owners = self._hashes(self._reducers_of(urls, NO_LIMIT), self._owners(urls))
        hosts = owners if self._hosts is None else self._hosts.hashes(urls)
        rows = pl.DataFrame([owners, hosts.alias("host")]).with_row_index("row")
        rows = rows.with_columns(self.limits_of(rows))[order]
        rows = rows.with_columns(turn=pl.int_range(pl.len()).over("owner"))
        rows = rows.join(self.listed, on="owner", how="left", maintain_order="left")
        segment, is_first = of_turn(self.segments)
        rows = rows.with_columns(with_listed()).select(
            "row",
            segment=pl.when(pl.col("owner").is_null()).then(IS_MALFORMED).otherwise(segment),
            is_first=is_first & pl.col("owner").is_not_null(),
        )
        if rows["is_first"].any():
            self._quotas[0].counters.add(HOSTS_OVER_LIMIT, int(rows["is_first"].sum()))
        segments: Ints = rows.sort("row")["segment"].to_numpy()
        return segments

    # -- what `turns` asks ---------------------------------------------------------------------

    @property
    def is_even(self) -> bool:
        """True if all entries of an owner have the same limit."""
        return self._hosts is None or not self._by_domain

    @property
    def listed(self) -> pl.DataFrame:
        """The owners with entries that count to their limits before all others: `owner`,
        `listed`.
        """
        rows = [
            (reducer, owner, count)
            for reducer, quota in enumerate(self._quotas)
            for owner, count in quota.listed.items()
        ]
        reducers, owners, counts = zip(*rows, strict=True) if rows else ((), (), ())
        hashes = self._hashes(np.array(reducers, np.int64), pl.Series(owners, dtype=pl.String))
        return pl.DataFrame([hashes, pl.Series("listed", counts, pl.Int64)])

    def entrants(self, table: pl.DataFrame) -> pl.DataFrame:
        """Returns of each entry of a table (with `sort`) its `owner`, a hash, null for no URL; its
        `rank`; and its `host`, a hash, where hosts have limits of their own.
        """
        urls = decode_keys(table["key"])
        owners = self._hashes(self._reducers_of(urls, NO_LIMIT), self._owners(urls))
        rows = pl.DataFrame([owners, pl.Series("rank", ranks_in(table))])
        if self._hosts is None:
            return rows
        hosts = self._hosts.hashes(urls)
        self._hosts.note(hosts)
        return rows.with_columns(host=hosts)

    def limits_of(self, entrants: pl.DataFrame) -> pl.Series:
        """Returns the `limit` of each entry's owner in a segment."""
        if self._hosts is None:
            return pl.Series("limit", [self._max_count]).new_from_index(0, len(entrants))
        found = self._hosts.known(entrants["host"])["max_count"].fill_null(self._max_count)
        return found.clip(upper_bound=_MOST).alias("limit")

    def _hashes(self, reducers: Ints, owners: pl.Series) -> pl.Series:
        """Returns a number other than 0 for each owner in its reducer; null where there is none."""
        numbers = owners.hash(self._seed) ^ pl.Series(mixed(reducers.astype(np.uint32))).cast(
            pl.UInt64
        )
        return numbers.clip(lower_bound=1).set(owners.is_null(), None).alias("owner")

    def _is_limited(self, total: int) -> bool:
        """Returns True if an entry's place depends on the others, of `total` entries."""
        return self._max_count > 0 or self._hosts is not None or 0 <= self._limit < total

    def _blocks(self, found: Sequence[pl.DataFrame], keys: pl.Series) -> Iterator[Ints]:
        """Yields the numbers of all rows, best first, a few at a time."""
        ranks = np.concatenate(for_each(ranks_in, found))
        places = self._limit * self.segments * self._reducers if self._limit >= 0 else NO_LIMIT
        for rows in best_first(
            ranks, keys, places + max(places // 10, _BLOCK)
        ):  # reducers' shares differ a little
            for start in range(0, len(rows), _BLOCK):
                yield rows[start : start + _BLOCK]

    def _deal(self, rows: Ints, keys: pl.Series, segments: Ints, total: int) -> None:
        """Gives places to the entries `rows`: each one's segment goes into `segments`."""
        urls = decode_keys(keys.gather(rows))
        reducer_of = self._reducers_of(urls, total)
        for reducer, quota in enumerate(self._quotas):
            mine = np.flatnonzero(reducer_of == reducer)
            if len(mine) and not quota.is_full:
                own = urls.gather(mine)
                limits = (
                    None if self._hosts is None else self._hosts.max_counts(own, self._max_count)
                )
                segments[rows[mine]] = quota.deal(self._owners(own), limits)

    def _reducers_of(self, urls: pl.Series, total: int) -> Ints:
        """Returns the reducer of each of `urls`, of `total`; the same for all without limits."""
        if self._reducers == 1 or not self._is_limited(total):
            return np.zeros(len(urls), dtype=np.int64)
        reducers: Ints = self._partitioner.parts_of(urls, self._reducers).to_numpy()
        return reducers

    def _owners(self, urls: pl.Series) -> pl.Series:
        """Returns the host or domain that each URL counts for, in lower case; null for no URL."""
        if self._normalizers is not None:
            urls = self._normalizers.normalize_column(urls)
        owners = host_names(urls)
        return domains_of(owners) if self._by_domain else owners


def _in_order(rows: int) -> Iterator[Ints]:
    """Returns the numbers of `count` rows, a few at a time."""
    return (np.arange(start, min(start + _BLOCK, rows)) for start in range(0, rows, _BLOCK))


def _placed(table: pl.DataFrame, segments: Ints) -> pl.DataFrame:
    """Returns the entries that have a segment, with it; if all have one, they stay as they lie."""
    table, has_place = table.with_columns(pl.Series("segment", segments)), segments > NO_PLACE
    return table if has_place.all() else table.filter(pl.Series(has_place))


class Quota:
    """Deals out one reducer's places to entries that come best first.

    `limit` is the number of places per segment (negative: no limit), `max_count` how many pages of
    a host or domain each segment may have (0 or less: no limit), `listed` how many the first one
    has already.
    """

    def __init__(
        self, limit: int, segments: int, max_count: int, listed: Mapping[str, int] = NONE_LISTED
    ) -> None:
        self.counters = Counters()
        self.listed = listed
        self._limit = limit
        self._segments = segments
        self._max_count = max_count
        self._count = 0
        self._segment = 1
        self._filled = [0] * (segments + 1)
        self._hosts: dict[str, list[int]] = {}

    @property
    def is_full(self) -> bool:
        """True if no further entry can get a place."""
        return self._count == self._limit and self._segment >= self._segments

    def deal(self, owners: pl.Series, limits: Ints | None = None) -> Ints:
        """Returns the segment (from 1; else WHY not) of each of the next entries, given by host or
        domain (null: no URL).

        `limits` has each entry's own `max_count`.
        """
        if limits is None:
            if self._max_count <= 0 and self._limit != 0:
                return self._deal_in_order(owners)
            limits = np.full(len(owners), self._max_count)
        segments = np.zeros(len(owners), dtype=np.int64)
        for row, (owner, limit) in enumerate(zip(owners, limits.tolist(), strict=True)):
            if self._count == self._limit:
                if self._segment >= self._segments:
                    break
                self._count = 0
                self._segment += 1
            if owner is None:
                segments[row] = IS_MALFORMED
                continue
            segment = self._segment if limit <= 0 else self._segment_of(owner, limit)
            segments[row] = segment
            if segment > NO_PLACE:
                self._filled[segment] += 1
                self._count += 1
        return segments

    def _deal_in_order(self, owners: pl.Series) -> Ints:
        """Without a limit per host: fill one segment after the other."""
        if self.is_full:
            return np.zeros(len(owners), dtype=np.int64)
        limit = self._limit if self._limit > 0 else NO_LIMIT
        valid = owners.is_not_null().to_numpy()
        start = (self._segment - 1) * limit + self._count
        taken = start + np.cumsum(valid)  # places that are taken after each entry
        examined = int(np.searchsorted(taken, min(limit * self._segments, NO_LIMIT))) + 1
        segments = np.where(valid, (taken - 1) // limit + 1, IS_MALFORMED)
        segments[examined:] = NO_PLACE
        if (segments > NO_PLACE).any():
            last = start + int(np.count_nonzero(segments > NO_PLACE)) - 1
            self._segment, self._count = last // limit + 1, last % limit + 1
        return segments

    def _segment_of(self, owner: str, limit: int) -> int:
        """Returns the segment with a place for another page of `owner`, which may have `limit` in
        each, or IS_OVER_LIMIT.
        """
        state = self._hosts.get(owner)
        if state is None:  # its present segment, its pages there
            state = self._hosts[owner] = [1, min(self.listed.get(owner, 0), limit)]
        state[1] += 1
        # As SelectorReducer: full segments are passed over.
        while self._filled[state[0]] >= self._limit and state[0] < self._segments:
            state[0] += 1
            state[1] = 0
        if state[1] > limit:
            if state[0] >= self._segments:
                # Once for each host, not for each of its URLs.
                if state[1] == limit + 1:
                    self.counters.add(HOSTS_OVER_LIMIT)
                return IS_OVER_LIMIT
            state[0] += 1
            state[1] = 1
        return state[0]
