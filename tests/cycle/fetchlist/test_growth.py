"""What leads back to a group, over others."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from minutch.cycle.fetchlist.allowances import growth


def _growth(*led: tuple[int, int, float]) -> dict[int, float]:
    """Of pairs (from, to) and how many; hundreds are domains."""
    rows = [(to, of, by, to // 100, of // 100) for of, to, by in led]
    numbers = dict.fromkeys(("group", "finder"), pl.UInt64)
    schema = {**numbers, "by": pl.Float64, "owner": pl.UInt64, "finder_owner": pl.UInt64}
    return dict(growth(pl.DataFrame(rows, schema=schema, orient="row")).iter_rows())


def test_growth() -> None:
    assert _growth() == {}
    assert _growth((1, 2, 20.0), (2, 3, 9.0)) == {}  # it ends
    assert _growth((1, 1, 3.0)) == {1: 3.0}
    assert _growth((1, 1, 1.0), (1, 2, 20.0)) == {1: 1.0}  # lists, and their items
    assert _growth((1, 2, 8.0), (2, 1, 2.0)) == {1: 4.0, 2: 4.0}
    turns = _growth((1, 2, 64.0), (2, 3, 1.0), (3, 1, 8.0))
    assert turns == dict.fromkeys((1, 2, 3), pytest.approx(8.0, abs=1e-3))
    assert _growth((1, 102, 8.0), (102, 1, 2.0)) == {1: 4.0, 102: 4.0}
    assert _growth((1, 102, 8.0), (102, 203, 8.0), (203, 1, 8.0)) == {}  # as the web does
    site = _growth((1, 1, 0.5), (1, 2, 9.0), (2, 2, 5.0))  # which leads to a trap
    assert site == {1: 0.5, 2: 5.0}
    assert _growth((1, 1, 1e9), (2, 2, 1e-9)) == {1: pytest.approx(1e9), 2: pytest.approx(0.0)}


@given(st.lists(st.tuples(*[st.integers(0, 5)] * 2), min_size=1, max_size=12, unique=True))
def test_growth_of_what_is_all_connected_is_the_largest_eigenvalue(
    pairs: list[tuple[int, int]],
) -> None:
    ring = [(number, (number + 1) % 6) for number in range(6)]
    led = {pair: 0.5 + (pair[0] * 7 + pair[1]) % 5 for pair in [*pairs, *ring]}
    matrix = np.zeros((6, 6))
    for (of, to), by in led.items():
        matrix[of, to] = by
    most = max(abs(np.linalg.eigvals(matrix)))
    found = _growth(*((of, to, by) for (of, to), by in led.items()))
    assert found == {number: pytest.approx(most, rel=0.01) for number in range(6)}
