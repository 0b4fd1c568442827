"""Says what a row of the table is, measures it, and tells whether its two ways agree."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import polars as pl

from minutch.hadoop.formats.batch import Batch, Places
from tests.benchmarks.kernels.made import Made

ROUNDS = 5


class Ways(NamedTuple):
    """A task by kernels, and by the alternative."""

    by_kernel: Callable[[], Any]
    by_alternative: Callable[[], Any]
    seen: Callable[[Any], Any] = lambda result: result
    """What of a result is compared."""


class Row(NamedTuple):
    """A task, the kernels that do it, and what else does it."""

    task: str
    kernels: tuple[str, ...]
    """The kernels that are called, as `module.name`."""
    alternative: str
    ways: Callable[[Made], Ways]


def rows_of(rows: list[Row]) -> Callable[..., Callable[[Callable[[Made], Ways]], Row]]:
    """Returns a decorator that adds a row to a list: the function's name is the task."""

    def row(*kernels: str, by: str) -> Callable[[Callable[[Made], Ways]], Row]:
        def added(ways: Callable[[Made], Ways]) -> Row:
            rows.append(Row(ways.__name__.replace("_", " "), kernels, by, ways))
            return rows[-1]

        return added

    return row


def cpu_seconds(work: Callable[[], Any], rounds: int = ROUNDS) -> float:
    """Returns the least CPU time of some goes, after one that counts for nothing."""
    work()
    times = []
    for _ in range(rounds):
        start = time.process_time()
        work()
        times.append(time.process_time() - start)
    return min(times)


def plain(value: Any) -> Any:
    """Returns a result as lists and Python's own values, whichever library made it."""
    if isinstance(value, pl.DataFrame):
        return {name: plain(value[name]) for name in value.columns}
    if isinstance(value, pl.Series):
        return (value.cast(pl.Binary) if value.dtype == pl.String else value).to_list()
    if isinstance(value, Batch | Places):
        return [(value.key(row), value.value(row)) for row in range(value.size)]
    if isinstance(value, np.ndarray | np.generic):
        return value.tolist()
    if isinstance(value, tuple | list):
        return [plain(one) for one in value]
    return value


def assert_same(row: Row, ways: Ways) -> None:
    """Raises AssertionError where the two ways of a row differ."""
    by_kernel, by_alternative = (plain(ways.seen(way())) for way in ways[:2])
    assert by_kernel == by_alternative, f"{row.task}: {row.alternative} gives something else"
