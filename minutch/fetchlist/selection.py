"""The selection as a whole: what is due goes, best first, to the reducers, which deal out the places.

Where there are up to `FOLLOWED` entries, the order of equal sort values is Hadoop's (`arrange.shuffle_order`), so that
the same entries get the last places as with Nutch. Beyond that it is the order of the CrawlDb's parts, and only as many
entries are looked at as there are places.
Matched: org.apache.nutch.crawl.Generator, Selector and SelectorReducer.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import Final

import numpy as np
import polars as pl
from numpy.typing import NDArray

from minutch.conf import Configuration
from minutch.crawldb.filtering import decode_keys
from minutch.fetchlist.arrange import selector_sizes, shuffle_order
from minutch.fetchlist.hosts import domains_of, hosts_of
from minutch.fetchlist.partitioner import Resolve, UrlPartitioner
from minutch.fetchlist.select import MALFORMED, OVER_LIMIT, Quota, sort_keys
from minutch.job import Counters
from minutch.plugin.chains import SCOPE_GENERATE_HOST_COUNT, URLNormalizers

Ints = NDArray[np.int64]

SELECTED: Final = "selected_total"
NOT_IN_TOP: Final = "not_in_top_n_total"
NO_LIMIT: Final = (1 << 63) - 1
FOLLOWED: Final = 200_000
_BLOCK: Final = 50_000  # entries whose hosts are worked out at a time


class Selection:
    """What limits the selection: `top_n` per segment, `segments`, generate.max.count, generate.count.mode."""

    def __init__(
        self, conf: Configuration, *, top_n: int, segments: int, normalize: bool, reducers: int, resolve: Resolve
    ) -> None:
        self._conf = conf
        self._reducers = reducers
        self._limit = top_n // reducers if top_n >= 0 else -(-top_n // reducers)
        self._segments = segments
        self._max_count = conf.get_int("generate.max.count", -1)
        self._by_domain = conf.get("generate.count.mode") == "domain"
        self._normalizers = URLNormalizers(conf, SCOPE_GENERATE_HOST_COUNT) if normalize else None
        self._resolve = resolve

    def choose(self, found: Sequence[pl.DataFrame], counters: Counters) -> list[pl.DataFrame]:
        """The chosen entries of each reducer, in its order, with their `segment`; `counters` tells of all others.

        `found` has the entries that are due of each part of the CrawlDb, with the column `sort`.
        """
        entries = pl.concat(found)
        quotas = [Quota(self._limit, self._segments, self._max_count) for _ in range(self._reducers)]
        chosen: list[list[pl.DataFrame]] = [[] for _ in quotas]
        for reducer, rows in self._order(entries, [len(part) for part in found]):
            if quotas[reducer].is_full:
                if all(quota.is_full for quota in quotas):
                    break
                continue
            block = entries[rows]
            segments = pl.Series("segment", quotas[reducer].deal(self._owners(decode_keys(block["key"]))))
            chosen[reducer].append(block.with_columns(segments).filter(segments > 0))
        for quota in quotas:
            counters.merge(quota.counters)
        nothing = entries.clear().with_columns(segment=pl.lit(None, pl.Int64))
        result = [pl.concat([nothing, *blocks]) for blocks in chosen]
        selected = sum(map(len, result))
        counters.add(NOT_IN_TOP, len(entries) - selected - counters.get(MALFORMED, 0) - counters.get(OVER_LIMIT, 0))
        counters.add(SELECTED, selected)
        return result

    @cached_property
    def _partitioner(self) -> UrlPartitioner:
        return UrlPartitioner(self._conf, self._resolve)

    @property
    def _has_host_limit(self) -> bool:
        return self._max_count > 0

    def _order(self, entries: pl.DataFrame, tasks: Sequence[int]) -> Iterator[tuple[int, Ints]]:
        """The rows of `entries` in blocks, best first for each reducer."""
        if len(entries) > FOLLOWED:
            yield from self._quick_order(entries)
            return
        keys, parts = sort_keys(entries["sort"]), self._parts(entries)
        for reducer, rows in enumerate(shuffle_order(keys, tasks, parts, self._reducers, selector_sizes(entries))):
            for start in range(0, len(rows), _BLOCK):
                yield reducer, rows[start : start + _BLOCK]

    def _quick_order(self, entries: pl.DataFrame) -> Iterator[tuple[int, Ints]]:
        keys = sort_keys(entries["sort"])
        places = min(self._limit * self._reducers * self._segments, len(entries))
        for rows in best_first(keys, max(places, _BLOCK)):
            for start in range(0, len(rows), _BLOCK):
                block = rows[start : start + _BLOCK]
                parts = self._parts(entries[block], of=len(entries))
                for reducer in range(self._reducers):
                    yield reducer, block[parts == reducer]

    def _parts(self, entries: pl.DataFrame, of: int | None = None) -> Ints:
        """The reducer of each entry. It matters only where places are limited."""
        total = len(entries) if of is None else of
        if self._reducers == 1 or (not self._has_host_limit and not 0 <= self._limit < total):
            return np.zeros(len(entries), dtype=np.int64)
        parts: Ints = self._partitioner.parts_of(decode_keys(entries["key"]), self._reducers).to_numpy()
        return parts

    def _owners(self, urls: pl.Series) -> pl.Series:
        """The host or domain that each URL counts for, in lower case; null for what is no URL."""
        if self._normalizers is not None:
            urls = self._normalizers.normalize_column(urls)
        owners = hosts_of(urls)
        return (domains_of(owners) if self._by_domain else owners).str.to_lowercase()


def best_first(keys: Ints, count: int) -> Iterator[Ints]:
    """All rows in ascending order of `keys`, equal ones as they stand, in stretches: first about `count`, then more."""
    done = np.iinfo(np.int64).min
    while count < len(keys):
        bound = np.partition(keys, count - 1)[count - 1]
        yield _ascending(keys, np.flatnonzero((keys > done) & (keys <= bound)))
        done = bound
        count *= 4
    yield _ascending(keys, np.flatnonzero(keys > done))


def _ascending(keys: Ints, rows: Ints) -> Ints:
    return rows[np.argsort(keys[rows], kind="stable")]
