"""The table of kernels: rows whose two ways agree, and a row for each kernel."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import pytest

from minutch.kernels import library
from minutch.kernels.native import Kernel
from tests.benchmarks.kernels.made import Made
from tests.benchmarks.kernels.rows import Row, plain
from tests.benchmarks.kernels.table import ROWS


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Made:
    return Made(tmp_path_factory.mktemp("made"), count=2500, pages=3)


@pytest.mark.slow  # of a benchmark; tests/kernels/ has what kernels answer
@pytest.mark.parametrize("row", ROWS, ids=[row.task for row in ROWS])
def test_a_row_compares_its_kernels_with_something_else(
    row: Row, made: Made, monkeypatch: pytest.MonkeyPatch
) -> None:
    called: set[str] = set()
    call = Kernel.__call__

    def traced(kernel: Kernel, *args: Any) -> Any:
        called.add(f"{kernel.module}.{kernel.name}")
        return call(kernel, *args)

    ways = row.ways(made)
    monkeypatch.setattr(Kernel, "__call__", traced)
    results = []
    for way, expected in ((ways.by_kernel, {*row.kernels}), (ways.by_alternative, set())):
        called.clear()
        result = way()
        assert called & {*row.kernels} == expected
        results.append(plain(ways.seen(result)))
    assert results[0] == results[1]


def test_each_kernel_is_in_a_row() -> None:
    kernels = {
        f"{name}.{kernel.name}"
        for name in library.modules()
        for kernel in vars(import_module(f"minutch.kernels.{name}")).values()
        if isinstance(kernel, Kernel) and kernel.module == name
    }
    assert kernels == {kernel for row in ROWS for kernel in row.kernels}
