"""Columns of byte strings go to Polars and back without a copy, and die with their last user."""

from __future__ import annotations

import ctypes
import gc
import os
import subprocess
import sys
from collections.abc import Iterator

import numpy as np
import polars as pl
import pytest

from minutch.errors import FormatError
from minutch.hadoop.formats.batch import places, string_column
from minutch.kernels import arrow as columns_arrow
from minutch.kernels.arrow import from_series
from tests.support.golden import PROJECT

STRINGS = [
    b"",
    b"a",
    b"exactly12byt",
    b"thirteen byte",
    b"http://www.example.org/",
    b"\xff\0\xfe",
    b"x" * 5000,
]


def column(strings: list[bytes]) -> pl.Series:
    """A column over a buffer that is not a byte longer than it needs to be."""
    buffer = np.frombuffer(b"".join(strings), np.uint8)
    length = np.array([len(s) for s in strings], np.int32)
    at = np.cumsum([0, *length[:-1]]).astype(np.int64)
    return string_column("name", buffer, at, length)


def strings_of(series: pl.Series) -> list[bytes]:
    """Returns the strings that a kernel sees in a column."""
    strings = from_series(series)
    return [ctypes.string_at(int(at), int(size)) for at, size in zip(*places(strings), strict=True)]


def test_polars_sees_the_strings() -> None:
    series = column(STRINGS)
    assert series.name == "name" and series.dtype == pl.Binary
    assert series.to_list() == STRINGS
    assert series.sort().to_list() == sorted(STRINGS)


def test_kernels_see_polars_strings() -> None:
    assert strings_of(pl.Series(STRINGS, dtype=pl.Binary)) == STRINGS
    assert strings_of(column(STRINGS)) == STRINGS


def test_other_columns_are_refused() -> None:
    assert strings_of(pl.Series(["größer als zwölf", "a"])) == ["größer als zwölf".encode(), b"a"]
    for series in (
        pl.Series("n", [1, 2]),
        pl.Series("n", [[b"a"], [b"b"]]),
        pl.Series("n", ["a"]).cast(pl.Categorical),
    ):
        with pytest.raises(ValueError, match="'n'"):
            from_series(series)


def test_chunks_slices_and_nulls() -> None:
    series = pl.concat(
        [
            column(STRINGS),
            pl.Series("name", [None, b"more", b"a longer one than that"]),
            column(STRINGS),
        ]
    )
    assert strings_of(series) == [value or b"" for value in series]
    assert strings_of(series[3:12]) == [value or b"" for value in series[3:12]]
    assert strings_of(pl.Series([None, None], dtype=pl.Binary)) == [b"", b""]
    assert strings_of(pl.Series([], dtype=pl.Binary)) == []


def test_absent_strings_are_null() -> None:
    buffer = np.frombuffer(b"abcdef", np.uint8)
    at, length = np.array([0, 1, 2], np.int64), np.array([1, -1, 3], np.int32)
    assert string_column("n", buffer, at, length, least=0).to_list() == [b"a", None, b"cde"]
    everything = string_column("n", buffer, at, length, least=4)
    assert everything.to_list() == [None, None, None] and everything.dtype == pl.Binary


def test_what_polars_was_given_is_released_with_its_last_user() -> None:
    gc.collect(1)  # all objects took a second
    columns_arrow._let_go()
    before = len(columns_arrow._held)
    series = column(STRINGS)
    part = series.filter(pl.Series([True, False] * 3 + [True]))
    assert len(columns_arrow._held) == before + 1
    del series
    gc.collect(1)
    assert part.to_list() == STRINGS[::2]
    del part
    gc.collect(1)
    columns_arrow._let_go()
    assert len(columns_arrow._held) == before


@pytest.mark.slow  # a process
def test_interpreted_kernels_leave_nothing_held() -> None:
    code = (
        "import polars as pl; from minutch.kernels import arrow; "
        "from tests.kernels.test_arrow import STRINGS, column; "
        "column(STRINGS).to_list() == STRINGS or exit('strings differ'); "
        "exit(len(arrow._held))"
    )
    subprocess.run(
        [sys.executable, "-c", code],
        check=True,
        cwd=PROJECT,
        env=os.environ | {"MINUTCH_KERNELS": "python", "PYTHONPATH": str(PROJECT)},
    )


def test_polars_may_let_go_while_an_error_is_raised() -> None:
    def columns() -> Iterator[pl.Series]:
        yield column(STRINGS)
        raise FormatError("the rest is damaged")

    with pytest.raises(FormatError, match="damaged"):
        list(columns())


def test_a_column_owns_what_it_points_to(monkeypatch: pytest.MonkeyPatch) -> None:
    """`from_series(series).column` is all that a caller keeps: of chunks, it is of a copy."""
    released, free = list[int](), columns_arrow._Received.__del__

    def noted(self: columns_arrow._Received) -> None:
        released.append(1)
        free(self)

    monkeypatch.setattr(columns_arrow._Received, "__del__", noted)
    parts = [pl.Series([f"a text that is no view {n}"]) for n in range(3)]
    column = from_series(pl.concat(parts, rechunk=False)).column
    views = column.views
    gc.collect(1)
    assert not released
    del column
    assert not released
    del views
    gc.collect(1)
    assert released == [1]
