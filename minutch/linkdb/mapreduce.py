"""The two MapReduce jobs that make a LinkDb, on tables: invert links, and merge Inlinks records.

    invert    links from <page> to <URL>  →  per task: united per URL (combiner)  →  per partition: united per URL
    merge     records per task, each link and URL past `change`  →  per partition: united per URL

Tables are those of `values.LINKS_SCHEMA`, a map task each. Which links a limit lets through, and their order in a
record, depend on Hadoop's order of equal keys, followed by `tables.hadooporder`.
Matched: org.apache.nutch.crawl.LinkDb (LinkDbMapper with LinkDbMergeReducer as combiner), LinkDbMerger, LinkDbFilter.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import polars as pl
from numpy.typing import NDArray

from minutch.linkdb.values import Links, Values, text_sizes
from minutch.tables.hadooporder import map_order, merge_order
from minutch.tables.shuffle import partition_of

Ints = NDArray[np.int64]
Change = Callable[[pl.DataFrame], pl.DataFrame]

_END_OF_OUTPUT: Final = 2  # bytes


@dataclass(frozen=True)
class Keys:
    """The keys of a job's tables as numbers that ascend with partition and key."""

    parts: int
    numbers: list[Ints]  # a table each
    bounds: Ints  # partition p has the numbers from bounds[p] to bounds[p + 1]
    sizes: Ints  # bytes of each key as a serialized Text

    @classmethod
    def of(cls, tables: Sequence[pl.DataFrame], parts: int) -> Keys:
        """Number the keys of `tables`."""
        keys = pl.concat([table["key"] for table in tables])
        together = pl.DataFrame({"part": partition_of(keys, parts), "key": keys})
        order = together.select(pl.arg_sort_by("part", "key")).to_series().to_numpy()
        ordered = together[order]
        is_new = _starts(ordered["key"]) | _starts(ordered["part"])
        numbers = np.empty(len(keys), dtype=np.int64)
        numbers[order] = np.cumsum(is_new.to_numpy()) - 1
        distinct = ordered.filter(is_new)
        bounds = np.searchsorted(distinct["part"].to_numpy(), np.arange(parts + 1))
        ends = np.cumsum([len(table) for table in tables])[:-1]
        return cls(parts, np.split(numbers, ends), bounds, text_sizes(distinct["key"]))


def invert(tables: Sequence[pl.DataFrame], parts: int, limit: int) -> list[pl.DataFrame]:
    """The Inlinks records, partition by partition, of `tables` of links: `key` is linked to by `from_url`."""
    keys = Keys.of(tables, parts)
    outputs = []
    for table, numbers in zip(tables, keys.numbers, strict=True):
        order = map_order(numbers)
        outputs.append(Values.singles(Links(table), numbers, order).united(limit))
    return [_reduced(outputs, keys, part, limit).table() for part in range(parts)]


def merge(tables: Sequence[pl.DataFrame], parts: int, limit: int) -> list[pl.DataFrame]:
    """The Inlinks records, partition by partition, of `tables` that `passed` made."""
    keys = Keys.of(tables, parts)
    outputs = []
    for table, numbers in zip(tables, keys.numbers, strict=True):
        values = Values.records(Links(table), numbers, table["record"].to_numpy())
        outputs.append(values.take(map_order(values.keys)))
    return [_reduced(outputs, keys, part, limit).table() for part in range(parts)]


def passed(table: pl.DataFrame, change: Change | None) -> pl.DataFrame:
    """The records of a stored part as a map task of `merge` puts them out, numbered in a column `record`.

    `change` rewrites and rejects keys and links. Metadata is lost, as in Nutch.
    """
    table = table.with_columns(record=_runs(table["key"])).filter(pl.col("from_url").is_not_null())
    table = _by_record(table).reread().table("record")
    if change is not None:
        table = change(table)
    return _by_record(table).united().table("record")


def dumped(tables: Sequence[pl.DataFrame], parts: int) -> list[pl.DataFrame]:
    """The records of stored parts as the identity job of a dump puts them out, partition by partition.

    The column `record` tells them apart; one without links has a row with null in `from_url`.
    """
    stored = [table.with_columns(record=_runs(table["key"])) for table in tables]
    read = [_by_record(table).reread().table("metadata", "record") for table in stored]
    keys = Keys.of(read, parts)
    outputs = [
        Values.records(Links(table), numbers, table["record"].to_numpy())
        for table, numbers in zip(read, keys.numbers, strict=True)
    ]
    return [_shuffled(outputs, keys, part).reread().table("metadata", "record") for part in range(parts)]


def _by_record(table: pl.DataFrame) -> Values:
    records = table["record"].to_numpy()
    return Values.records(Links(table), records, records)


def _runs(keys: pl.Series) -> Ints:
    """A number for each run of equal keys."""
    runs: Ints = np.cumsum(_starts(keys).to_numpy()) - 1
    return runs


def _starts(values: pl.Series) -> pl.Series:
    """Where a run of equal values starts."""
    return values.ne_missing(values.shift())


def _reduced(outputs: Sequence[Values], keys: Keys, part: int, limit: int) -> Values:
    """One reduce task: its share of the map tasks' outputs, merged and united."""
    return _shuffled(outputs, keys, part).reread().united(limit)


def _shuffled(outputs: Sequence[Values], keys: Keys, part: int) -> Values:
    """A reduce task's share of the map tasks' outputs, in the order in which it reads them."""
    low, high = keys.bounds[part], keys.bounds[part + 1]
    shares = []
    for output in outputs:
        start, end = np.searchsorted(output.keys, [low, high])
        shares.append(output.take(np.arange(start, end)))
    sizes = [int((share.sizes() + keys.sizes[share.keys]).sum()) + _END_OF_OUTPUT for share in shares]
    order = merge_order([share.keys for share in shares], sizes)
    together = _concatenated(shares)
    starts = np.cumsum([0, *map(len, shares)])
    return together.take(starts[order[:, 0]] + order[:, 1])


def _concatenated(shares: Sequence[Values]) -> Values:
    """The sets of all `shares`, over a table of all their rows."""
    if len({id(share.links) for share in shares}) == 1:
        links, offsets = shares[0].links, [0] * len(shares)
    else:
        links = Links(pl.concat([share.links.frame for share in shares]))
        offsets = np.cumsum([0, *(len(share.links.frame) for share in shares)])[:-1].tolist()
    starts = np.concatenate([[0], np.cumsum(np.concatenate([share.counts for share in shares]))])
    rows = np.concatenate([share.rows + offset for share, offset in zip(shares, offsets, strict=True)])
    return Values(links, np.concatenate([share.keys for share in shares]), starts, rows)
