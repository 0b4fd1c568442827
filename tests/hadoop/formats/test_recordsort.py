"""Sorting in runs on disk."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from minutch.hadoop.formats.mapfile import merge_records, sort_records


@given(
    records=st.lists(st.tuples(st.binary(max_size=3), st.binary(max_size=20)), max_size=50),
    run_bytes=st.integers(1, 300),
)
def test_sorting_in_runs_is_sorting(
    records: list[tuple[bytes, bytes]], run_bytes: int, tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = tmp_path_factory.mktemp("sort")
    assert list(sort_records(records, run_bytes=run_bytes, directory=folder)) == sorted(
        records, key=lambda r: r[0]
    )
    assert list(folder.iterdir()) == []


def test_runs_go_away_when_nobody_reads_on(tmp_path: Path) -> None:
    records = [(b"%03d" % (i * 7 % 100), b"v") for i in range(100)]
    merged = sort_records(records, run_bytes=50, directory=tmp_path)
    assert next(merged) == (b"000", b"v")
    assert list(tmp_path.iterdir())
    merged.close()  # type: ignore[attr-defined]
    assert list(tmp_path.iterdir()) == []
    assert next(sort_records(records, key=lambda key: key[::-1], run_bytes=50))[0] == b"000"


def test_merging_prefers_the_earlier_source() -> None:
    first, second = [(b"a", b"1"), (b"c", b"1")], [(b"a", b"2"), (b"b", b"2")]
    assert list(merge_records([first, second])) == [
        (b"a", b"1"),
        (b"a", b"2"),
        (b"b", b"2"),
        (b"c", b"1"),
    ]
