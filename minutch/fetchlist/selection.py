"""The selection as a whole: what is due goes, best first, to the reducers, which deal out the places.

The order of equal sort values is Hadoop's (`arrange.shuffle_order`), so that the same entries get the last places as
with Nutch. Only where several reducers share more than `FOLLOWED` entries it is the order of the CrawlDb's parts: for
Hadoop's, the reducer of each entry would have to be known, not only of those that have a chance of a place.
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
from minutch.fetchlist.arrange import map_outputs, merged, selector_sizes
from minutch.fetchlist.partitioner import Resolve, UrlPartitioner
from minutch.fetchlist.select import MALFORMED, OVER_LIMIT, Quota, sort_keys
from minutch.job import Counters
from minutch.plugin.chains import SCOPE_GENERATE_HOST_COUNT, URLNormalizers
from minutch.tables.frame import decode_keys
from minutch.tables.parallel import for_each
from minutch.urls.hosts import domains_of, hosts_of

Ints = NDArray[np.int64]

SELECTED: Final = "selected_total"
NOT_IN_TOP: Final = "not_in_top_n_total"
NO_LIMIT: Final = (1 << 63) - 1
FOLLOWED: Final = 200_000
_BLOCK: Final = 10_000  # entries whose hosts are worked out at a time


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

        `found` has the entries that each map task found due, with the column `sort`.
        """
        entries = Candidates(found)
        quotas = [Quota(self._limit, self._segments, self._max_count) for _ in range(self._reducers)]
        chosen: list[list[pl.DataFrame]] = [[] for _ in quotas]
        for reducer, block in self._order(entries, quotas):
            segments = pl.Series("segment", quotas[reducer].deal(self._owners(decode_keys(block["key"]))))
            chosen[reducer].append(block.with_columns(segments).filter(segments > 0))
        for quota in quotas:
            counters.merge(quota.counters)
        nothing = found[0].clear().with_columns(segment=pl.lit(None, pl.Int64))
        result = [pl.concat([nothing, *blocks]) for blocks in chosen]
        selected = sum(map(len, result))
        counters.add(NOT_IN_TOP, len(entries) - selected - counters.get(MALFORMED, 0) - counters.get(OVER_LIMIT, 0))
        counters.add(SELECTED, selected)
        return result

    @cached_property
    def _partitioner(self) -> UrlPartitioner:
        return UrlPartitioner(self._conf, self._resolve)

    def _places(self, total: int) -> int:
        """The places of a reducer, at most `total`."""
        return min(self._limit * self._segments, total) if self._limit >= 0 else total

    @property
    def _has_host_limit(self) -> bool:
        return self._max_count > 0

    def _order(self, entries: Candidates, quotas: Sequence[Quota]) -> Iterator[tuple[int, pl.DataFrame]]:
        """The entries in blocks, best first for each reducer, until its quota is full."""
        if self._reducers > 1 and len(entries) > FOLLOWED:
            yield from self._quick_order(entries, quotas)
            return
        parts, sizes = self._parts(entries.urls, len(entries)), entries.sizes
        outputs = map_outputs(entries.keys, entries.tasks, parts, self._reducers)
        for reducer, segments in enumerate(outputs):
            done = 0
            for first in (self._places(len(entries)) + _BLOCK, len(entries)):
                if done == sum(map(len, segments)) or quotas[reducer].is_full:
                    break
                rows = merged(entries.keys, sizes, segments, first)[done:]
                done += len(rows)
                for block in entries.take(rows).iter_slices(_BLOCK):
                    if not quotas[reducer].is_full:
                        yield reducer, block

    def _quick_order(self, entries: Candidates, quotas: Sequence[Quota]) -> Iterator[tuple[int, pl.DataFrame]]:
        likely = self._places(len(entries)) * self._reducers
        for rows in best_first(entries.keys, likely + max(likely // 10, _BLOCK)):  # reducers' shares differ a little
            stretch = entries.take(rows)
            parts = self._parts(stretch["key"], len(entries))
            for block in stretch.with_columns(pl.Series("part", parts)).iter_slices(_BLOCK):
                for reducer, quota in enumerate(quotas):
                    if not quota.is_full:
                        yield reducer, block.filter(pl.col("part") == reducer).drop("part")
            if all(quota.is_full for quota in quotas):
                return

    def _parts(self, urls: pl.Series, total: int) -> Ints:
        """The reducer of each of `urls`, of `total` entries. It matters only where places are limited."""
        if self._reducers == 1 or (not self._has_host_limit and not 0 <= self._limit < total):
            return np.zeros(len(urls), dtype=np.int64)
        parts: Ints = self._partitioner.parts_of(decode_keys(urls), self._reducers).to_numpy()
        return parts

    def _owners(self, urls: pl.Series) -> pl.Series:
        """The host or domain that each URL counts for, in lower case; null for what is no URL."""
        if self._normalizers is not None:
            urls = self._normalizers.normalize_column(urls)
        owners = hosts_of(urls)
        return (domains_of(owners) if self._by_domain else owners).str.to_lowercase()


class Candidates:
    """The entries that are due, as the map tasks found them: a table each, which are never copied into one."""

    def __init__(self, found: Sequence[pl.DataFrame]) -> None:
        self._found = found
        self.tasks = list(map(len, found))
        self._starts = np.cumsum([0, *self.tasks])

    def __len__(self) -> int:
        return int(self._starts[-1])

    @cached_property
    def keys(self) -> Ints:
        """What they are sorted by, ascending."""
        return np.concatenate(for_each(lambda table: sort_keys(table["sort"]), self._found))

    @property
    def urls(self) -> pl.Series:
        return pl.concat([table["key"] for table in self._found])

    @property
    def sizes(self) -> Ints:
        """The bytes of each in a map task's output."""
        return np.concatenate([selector_sizes(table) for table in self._found])

    def take(self, rows: Ints) -> pl.DataFrame:
        """The entries with these numbers, in their order."""
        order = np.argsort(rows, kind="stable")
        bounds = np.searchsorted(rows[order], self._starts)
        taken = [
            table[rows[order[low:high]] - start]
            for table, start, low, high in zip(self._found, self._starts, bounds, bounds[1:], strict=False)
        ]
        places = np.empty_like(order)
        places[order] = np.arange(len(order))
        together: pl.DataFrame = pl.concat(taken, rechunk=True)[places]
        return together


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
