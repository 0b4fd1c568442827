"""records.textblocks: marks of lines."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from minutch.records.textblocks import MOST, PLACES, SIZE, marks_of, read_marks


@given(st.lists(st.tuples(st.integers(0, MOST), st.integers(0, PLACES - 1))))
def test_marks_are_read_as_they_were_written(rows: list[tuple[int, int]]) -> None:
    chances, places = np.array(rows, np.int64).reshape(-1, 2).T
    marks = marks_of(chances / MOST, places)
    assert len(marks) == SIZE * len(rows)
    found = read_marks(marks.encode("ascii"))
    assert [*zip(*(values.tolist() for values in found), strict=True)] == rows


def test_the_layout() -> None:
    assert marks_of(np.array([0, 1, 0.5]), np.array([0, PLACES - 1, 1])) == "AAAA////gAAB"
