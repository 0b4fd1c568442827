"""The order of equal keys in a MapReduce job.

The expected orders were made by running Hadoop 3.4's QuickSort and PriorityQueue on these keys.
"""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from minutch.tables import hadooporder
from minutch.tables.hadooporder import map_order, merge_order

QUICKSORT = [
    ([3, 1, 2, 3, 1, 2], [1, 4, 2, 5, 0, 3]),
    (
        [3, 3, 3, 1, 1, 3, 1, 0, 3, 2, 1, 0, 0, 3, 3, 1, 0, 0, 0, 0],
        [7, 12, 11, 19, 17, 16, 18, 10, 3, 4, 6, 15, 9, 8, 13, 14, 0, 5, 2, 1],
    ),
    (
        [int(key) for key in "0020111202021102012112021102100201011002"],
        [
            *(30, 16, 3, 29, 37, 0, 26, 22, 8, 34, 10, 32, 1, 38, 14, 20, 4, 5, 6, 12, 13, 17, 19, 24, 25, 28, 33, 35),
            *(36, 18, 15, 31, 11, 7, 23, 9, 2, 21, 27, 39),
        ],
    ),
    ([5] * 15, list(range(15))),
]

HEAP = [
    (
        [[1, 3, 5], [1, 2, 5], [2, 3, 3]],
        [(0, 0), (1, 0), (1, 1), (2, 0), (2, 1), (2, 2), (0, 1), (0, 2), (1, 2)],
    ),
    ([[1, 4, 6, 7], [2, 4, 5, 7]], [(0, 0), (1, 0), (1, 1), (0, 1), (1, 2), (0, 2), (0, 3), (1, 3)]),
    ([[1], [1], [1], [1], [1]], [(0, 0), (4, 0), (3, 0), (2, 0), (1, 0)]),
    (
        [[1, 1, 2], [0, 1, 2, 2], [2, 3]],
        [(1, 0), (1, 1), (0, 0), (0, 1), (0, 2), (2, 0), (1, 2), (1, 3), (2, 1)],
    ),
]


def ints(values: list[int]) -> hadooporder.Ints:
    return np.array(values, dtype=np.int64)


def merged(segments: list[list[int]], sizes: list[int]) -> list[tuple[int, int]]:
    return [(int(segment), int(row)) for segment, row in merge_order([ints(keys) for keys in segments], sizes)]


@pytest.fixture(params=["interpreted", "compiled"], autouse=True)
def _both_ways(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    if request.param == "compiled":
        monkeypatch.setattr(hadooporder, "COMPILED_FROM", 0)


@pytest.mark.parametrize(("buffer", "expected"), QUICKSORT)
def test_sort_of_a_map_task(buffer: list[int], expected: list[int]) -> None:
    # Hadoop's buffer holds the records from the last to the first
    order = map_order(ints(buffer[::-1]))
    assert [len(buffer) - 1 - row for row in order.tolist()] == expected


def test_partition_goes_before_key() -> None:
    order = map_order(ints([7, 1, 5, 3]), ints([0, 1, 1, 0]))
    assert order.tolist() == [3, 0, 1, 2]


@pytest.mark.parametrize(("segments", "expected"), HEAP)
def test_merge_of_a_reduce_task(segments: list[list[int]], expected: list[tuple[int, int]]) -> None:
    assert merged(segments, [1] * len(segments)) == expected


def test_smaller_outputs_come_first_and_empty_ones_do_not_count() -> None:
    assert merged([[1], [], [1], [1]], [30, 2, 10, 20]) == [(2, 0), (0, 0), (3, 0)]
    assert merged([[], []], [2, 2]) == []
    assert merged([[], [4, 5]], [2, 20]) == [(1, 0), (1, 1)]


@settings(deadline=None)
@given(st.lists(st.integers(0, 9), max_size=200))
def test_a_permutation_that_sorts(keys: list[int]) -> None:
    order = map_order(ints(keys)).tolist()
    assert sorted(order) == list(range(len(keys)))
    assert [keys[row] for row in order] == sorted(keys)


@settings(deadline=None)
@given(st.lists(st.lists(st.integers(0, 9), max_size=20).map(sorted), max_size=6))
def test_a_merge_that_sorts_and_keeps_each_segment_in_order(segments: list[list[int]]) -> None:
    order = merged(segments, [10 * len(segment) for segment in segments])
    assert [segments[segment][row] for segment, row in order] == sorted(key for keys in segments for key in keys)
    for segment, keys in enumerate(segments):
        assert [row for other, row in order if other == segment] == list(range(len(keys)))
