"""Work on all cores: results in order, errors handed on, memory by the property."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest

from minutch.conf import Configuration
from minutch.work.tables.parallel import (
    MEMORY_PROPERTY,
    for_each,
    memory_budget,
    number_of_parts,
    ordered,
)


@pytest.mark.parametrize("threads", [0, 1, 3])
def test_results_come_in_the_order_of_the_items(threads: int) -> None:
    assert for_each(lambda x: x * x, range(50), threads) == [x * x for x in range(50)]


def test_items_run_side_by_side() -> None:
    barrier = threading.Barrier(2, timeout=20)
    assert len(for_each(lambda _: barrier.wait(), range(2), 2)) == 2


@pytest.mark.parametrize("threads", [1, 2])
def test_the_first_error_is_raised(threads: int) -> None:
    def work(x: int) -> int:
        return 1 // (x - 3)

    with pytest.raises(ZeroDivisionError):
        for_each(work, range(10), threads)


def test_items_are_taken_only_as_results_are() -> None:
    taken = 0

    def items() -> Iterator[int]:
        nonlocal taken
        for i in range(100):
            taken += 1
            yield i

    results = ordered(lambda x: x, items(), 2)
    assert next(results) == 0
    assert taken <= 4
    assert list(results) == list(range(1, 100))


@pytest.mark.parametrize(
    ("value", "expected"),
    [("1000", 1000), ("64k", 65536), ("1.5m", 3 << 19), (" 2G ", 2 << 30)],
)
def test_memory_by_the_property(value: str, expected: int) -> None:
    assert memory_budget(Configuration().with_values({MEMORY_PROPERTY: value})) == expected


@pytest.mark.parametrize("value", ["", "0"])
def test_memory_is_a_quarter_of_the_machine_otherwise(value: str) -> None:
    whole = memory_budget(Configuration().with_values({MEMORY_PROPERTY: value})) * 4
    assert 1 << 27 < whole < 1 << 50


@pytest.mark.parametrize(("value", "parts"), [("0", 1), ("1", 1), ("7", 7)])
def test_a_job_writes_at_least_one_part(value: str, parts: int) -> None:
    assert number_of_parts(Configuration().with_values({"mapreduce.job.reduces": value})) == parts
