"""Work on all cores: results in order, errors handed on, memory by the property."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from minutch.conf import Configuration
from minutch.work.tables.parallel import (
    MEMORY_PROPERTY,
    available_memory,
    cores,
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
def test_memory_is_an_eighth_of_the_machine_otherwise(value: str) -> None:
    whole = memory_budget(Configuration().with_values({MEMORY_PROPERTY: value})) * 8
    assert 1 << 27 < whole < 1 << 50


GROUPS = "sys/fs/cgroup"
OWN = f"{GROUPS}/minutch.slice/minutch@news.service"


def write_groups(root: Path, files: dict[str, str]) -> None:
    """A machine's files of a process in a group, and these of the groups."""
    (root / "proc/self").mkdir(parents=True)
    path = root / "proc/self/cgroup"
    path.write_text("1:name=systemd:/\n0::/minutch.slice/minutch@news.service\n")
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        ({f"{OWN}/memory.max": "2097152000\n"}, 2097152000),
        ({f"{OWN}/memory.max": "max\n", f"{OWN}/memory.high": "1048576000\n"}, 1048576000),
        ({f"{OWN}/memory.max": "2000\n", f"{GROUPS}/minutch.slice/memory.max": "1000\n"}, 1000),
        ({f"{GROUPS}/memory.max": "3000\n"}, 3000),  # a container that sees the host's path
        ({f"{OWN}/memory.max": "max\n", "sys/memory.max": "1\n"}, available_memory()),
        ({}, available_memory()),
    ],
)
def test_memory_is_that_of_the_control_group(
    tmp_path: Path, files: dict[str, str], expected: int
) -> None:
    """Linux's cgroup-v2.rst: a limit holds for the group and all below it; `max` is none."""
    write_groups(tmp_path, files)
    assert available_memory(tmp_path) == expected


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        ({f"{OWN}/cpu.max": "300000 100000\n"}, 3),
        ({f"{OWN}/cpu.max": "150000 100000\n"}, 2),
        ({f"{OWN}/cpu.max": "max 100000\n", f"{GROUPS}/cpu.max": "20000 100000\n"}, 1),
        ({f"{OWN}/cpu.max": "800000 100000\n"}, 4),
        ({}, 4),
    ],
)
def test_cores_are_those_of_the_control_group(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, files: dict[str, str], expected: int
) -> None:
    """Linux's cgroup-v2.rst: "$MAX $PERIOD", microseconds of all cores together in a period."""
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(4)), raising=False)
    write_groups(tmp_path, files)
    assert cores(tmp_path) == expected


def test_memory_where_there_are_no_control_groups(tmp_path: Path) -> None:
    assert available_memory(tmp_path) == os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


@pytest.mark.parametrize(("value", "parts"), [("0", 1), ("1", 1), ("7", 7)])
def test_a_job_writes_at_least_one_part(value: str, parts: int) -> None:
    assert number_of_parts(Configuration().with_values({"mapreduce.job.reduces": value})) == parts
