"""The order in which Nutch's statistics add up scores: that in which Hadoop's sort leaves equal keys.

For each entry a map task emits several keys (`T`, `status 2`, `sct`, …), sorts them with a quicksort that is not
stable, combines the values of each key, and a reduce task merges what the map tasks have. `hadooporder` follows both;
here are the keys, and the sizes of the map outputs, on which the merge depends.
Matched: org.apache.nutch.crawl.CrawlDbReader.CrawlDbStatMapper, CrawlDbStatReducer as combiner.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import polars as pl

from minutch.crawldb.quantiles import digest_of
from minutch.formats.javahash import partition
from minutch.formats.javaio import encode_text, vlong_size
from minutch.tables.hadooporder import map_order, merge_order

Floats = np.ndarray[Any, Any]

_SUM: Final = "sct"
_DIGEST: Final = "scd"
_TWO_VALUES: Final = ("sc", "ft", "fi")  # smallest and largest, as two values
_COUNT_SIZE, _FLOAT_SIZE, _DIGEST_SIZE, _CENTROID_SIZE = 9, 5, 35, 8  # bytes of a value, class index included


@dataclass(frozen=True)
class Values:
    """What the statistics of a table's entries come from."""

    statuses: pl.Series
    retries: pl.Series
    scores: Floats
    hosts: pl.Series | None

    @classmethod
    def concat(cls, tables: Sequence[Values]) -> Values:
        """The entries of all tables (at least an empty one is made of none)."""
        if not tables:
            return cls(pl.Series(dtype=pl.UInt8), pl.Series(dtype=pl.Int8), np.zeros(0, np.float32), None)
        hosts = [table.hosts for table in tables if table.hosts is not None]
        return cls(
            pl.concat([table.statuses for table in tables]),
            pl.concat([table.retries for table in tables]),
            np.concatenate([table.scores for table in tables]),
            pl.concat(hosts) if len(hosts) == len(tables) else None,
        )

    def emitted(self) -> tuple[list[str], list[int]]:
        """The keys that a map task emits, in order, and the entry that each is of."""
        keys: list[str] = []
        entries: list[int] = []
        for i, (status, retries, score) in enumerate(zip(self.statuses, self.retries, self.scores, strict=True)):
            own = ["T", f"status {status}", f"retry {retries}"]
            own += ["scNaN"] if np.isnan(score) else ["sc", _SUM, _DIGEST]
            own += ["ft", "ftt", "fi", "fit"]
            if self.hosts is not None and self.hosts[i] is not None:
                own.append(f"status {status} {self.hosts[i]}")
            keys += own
            entries += [i] * len(own)
        return keys, entries


@dataclass(frozen=True)
class Order:
    """Scores as the reduce task gets them, one array per map task: for the sum, and for the digest."""

    sums: list[Floats]
    digests: list[Floats]


def value_order(parts: Sequence[Values], sizes: Sequence[int], reduces: int) -> Order:
    """The order of the scores in `parts`, one per part file; map tasks begin with the largest file (`sizes`, bytes)."""
    by_size = [parts[i] for i in sorted(range(len(parts)), key=lambda i: -sizes[i])]
    tasks = [_Task(part, reduces) for part in by_size if len(part.scores)]
    found = []
    for name in (_SUM, _DIGEST):
        home = partition(name.encode(), reduces)
        outputs = [task.output(home) for task in tasks]
        ranks = {key: i for i, key in enumerate(sorted({key for keys, _ in outputs for key in keys}))}
        segments = [np.array([ranks[key] for key in keys], np.int64) for keys, _ in outputs]
        merged = merge_order(segments, [size for _, size in outputs])
        turns = [int(task) for task, at in merged if outputs[task][0][at] == name.encode()]
        found.append([tasks[task].scores_of[name] for task in turns])
    return Order(*found)


class _Task:
    """A map task's output after its combiner."""

    def __init__(self, values: Values, reduces: int) -> None:
        names, entries = values.emitted()
        distinct = {name: encode_text(name) for name in set(names)}
        self._reduces = reduces
        self._keys = sorted(distinct.values())
        ranks = {key: i for i, key in enumerate(self._keys)}
        keys = np.array([ranks[distinct[name]] for name in names], np.int64)
        homes = {name: partition(data, reduces) for name, data in distinct.items()}
        order = map_order(keys, np.array([homes[name] for name in names], np.int64))
        self.scores_of = {
            name: values.scores[[entries[i] for i in order if names[i] == name]] for name in (_SUM, _DIGEST)
        }

    def output(self, home: int) -> tuple[list[bytes], int]:
        """The keys that go to reduce task `home`, in order, and the bytes that they take."""
        keys = [key for key in self._keys if partition(key, self._reduces) == home]
        keys = [key for key in keys for _ in range(2 if key.decode() in _TWO_VALUES else 1)]
        return keys, sum(map(self._record_size, keys))

    def _record_size(self, key: bytes) -> int:
        own = vlong_size(len(key)) + len(key)
        value = self._value_size(key.decode("utf-8", "replace"))
        return vlong_size(own) + vlong_size(value) + own + value

    def _value_size(self, name: str) -> int:
        if name in ("sc", _SUM):
            return _FLOAT_SIZE
        if name == _DIGEST:
            digest = digest_of([self.scores_of[_DIGEST].tolist()])
            return _DIGEST_SIZE + _CENTROID_SIZE * len(digest.centroids)
        return _COUNT_SIZE
