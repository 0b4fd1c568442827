"""The order of entries inside generate: best first while selecting, by a hash of the URL in the fetch list. No I/O.

Both orders are sorts of a MapReduce job: equal values come in the order that Hadoop leaves them in
(`tables.hadooporder`), which decides who gets the last places. Hash codes are taken from the end of the serialized URL
to its start, so that pages of one host lie scattered over the list.

    hash = 1; for each byte of VInt length and URL, the last one first: hash = 31 * hash + signed byte, in 32 bits

Matched: org.apache.nutch.crawl.Generator, DecreasingFloatComparator and HashComparator.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np
import polars as pl
from numpy.typing import NDArray

from minutch.formats.javahash import text_hash
from minutch.formats.javaio import encode_vlong
from minutch.tables.hadooporder import map_order, merge_order
from minutch.tables.parallel import for_each
from minutch.tables.spans import kernels_loaded

Ints = NDArray[np.int64]

_DATUM: Final = 29  # bytes of a CrawlDatum without signature and metadata
_SEGMENT_NUMBER: Final = 4
_FLOAT: Final = 4
_GENERATE_TIME: Final = 16  # bytes of `_ngt_` in a map with other entries
_LONE_GENERATE_TIME: Final = 21  # and of a map of its own
_END_OF_OUTPUT: Final = 2
_BULK: Final = 50_000  # URLs from which loading the kernels pays


def shuffle_order(keys: Ints, tasks: Sequence[int], parts: Ints, reducers: int, sizes: Ints) -> list[Ints]:
    """For each of `reducers` the rows that it gets, in the order in which it gets them.

    Rows stand in the order of the map tasks, task after task; `tasks` has the number of rows of each. `keys` are what
    is sorted by, `parts` the reducer of each row, `sizes` the bytes of each record in a map task's output.
    """
    return [merged(keys, sizes, segments) for segments in map_outputs(keys, tasks, parts, reducers)]


def map_outputs(keys: Ints, tasks: Sequence[int], parts: Ints, reducers: int) -> list[list[Ints]]:
    """For each of `reducers` the rows that each map task has for it, sorted; see `shuffle_order`."""
    ends = np.cumsum(tasks, dtype=np.int64)

    def output(start: int, end: int) -> list[Ints]:
        rows = start + map_order(keys[start:end], parts[start:end])
        return np.split(rows, np.searchsorted(parts[rows], np.arange(1, reducers)))

    outputs = for_each(lambda task: output(ends[task] - tasks[task], ends[task]), range(len(tasks)))
    return [[shares[reducer] for shares in outputs] for reducer in range(reducers)]


def merged(keys: Ints, sizes: Ints, segments: list[Ints], first: int | None = None) -> Ints:
    """The order in which a reducer gets its `segments`, or the `first` rows of it; see `shuffle_order`."""
    present = [rows for rows in segments if len(rows)]
    if len(present) < 2:
        return present[0][:first] if present else np.empty(0, dtype=np.int64)
    lengths = [int(sizes[rows].sum()) + _END_OF_OUTPUT for rows in present]
    order = merge_order([keys[rows[:first]] for rows in present], lengths, first)
    starts = np.cumsum([0, *map(len, present)])
    found: Ints = np.concatenate(present)[starts[order[:, 0]] + order[:, 1]]
    return found


def selector_sizes(entries: pl.DataFrame) -> Ints:
    """Bytes of each entry in the output of the selecting map task: its sort value, URL, datum and segment number."""
    return _record_sizes(entries, _FLOAT)


def inverse_sizes(entries: pl.DataFrame) -> Ints:
    """The same in the job that makes the fetch list, where the key is the URL."""
    url = entries["key"].bin.size().cast(pl.Int64).to_numpy()
    return _record_sizes(entries, url + _vint_sizes(url))


def _record_sizes(entries: pl.DataFrame, key: Ints | int) -> Ints:
    url = entries["key"].bin.size().cast(pl.Int64).to_numpy()
    signature = entries["signature"].bin.size().fill_null(0).cast(pl.Int64).to_numpy()
    metadata = entries["metadata"].bin.size().cast(pl.Int64) + _GENERATE_TIME
    value = url + _vint_sizes(url) + _DATUM + signature + _SEGMENT_NUMBER
    value += metadata.fill_null(_LONE_GENERATE_TIME).to_numpy()
    sizes: Ints = key + _vint_sizes(np.asarray(key)) + value + _vint_sizes(value)
    return sizes


def _vint_sizes(values: NDArray[np.int64]) -> Ints:
    """Bytes of a VInt of each (positive) value."""
    sizes: Ints = np.where(values < 128, 1, np.where(values < 1 << 8, 2, np.where(values < 1 << 16, 3, 4)))
    return sizes


def url_hashes(keys: pl.Series) -> Ints:
    """The hash code of each URL (Binary) that a fetch list is sorted by."""
    if len(keys) < _BULK and not kernels_loaded():
        return np.array([_url_hash(key) for key in keys], dtype=np.int64)
    from minutch.kernels import hash as hash_kernels
    from minutch.kernels.arrow import from_series

    strings, hashes = from_series(keys), np.empty(len(keys), np.int64)
    hash_kernels.url_hashes(strings.views, strings.addresses, hashes)
    return hashes


def _url_hash(key: bytes) -> int:
    # the same polynomial as a Text's hash code, with the bytes the other way round
    return text_hash((encode_vlong(len(key)) + key)[::-1])
