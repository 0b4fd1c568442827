"""A database's parts, look-ups and replacement."""

from __future__ import annotations

from pathlib import Path

import pytest

from minutch.errors import StoreError
from minutch.work.tables.database import Database, part_name, part_paths


def test_parts_of_new_and_old_names_in_the_order_of_their_numbers(tmp_path: Path) -> None:
    for name in (
        "part-r-00010",
        "part-00002",
        "part-m-00003",
        "part-r-00001",
        ".part-r-00001.crc",
        "_SUCCESS",
        "x",
    ):
        (tmp_path / name).mkdir()
    assert [path.name for path in part_paths(tmp_path)] == [
        "part-r-00001",
        "part-00002",
        "part-m-00003",
        "part-r-00010",
    ]
    assert part_name(12) == "part-r-00012"


def test_a_database_that_is_not_there(tmp_path: Path) -> None:
    database = Database(tmp_path / "none")
    assert not database.exists() and database.parts() == []
    with pytest.raises(StoreError, match="does not exist"):
        database.lookup("http://a/")


def test_an_error_while_writing_leaves_everything_as_it_was(tmp_path: Path) -> None:
    database = Database(tmp_path)
    with database.lock(), database.replacement(keep_old=True) as new:
        (new / "part-r-00000").mkdir()
    assert [path.name for path in database.parts()] == ["part-r-00000"]
    with (
        pytest.raises(ZeroDivisionError),
        database.lock(),
        database.replacement(keep_old=True) as new,
    ):
        (new / "part-r-00007").mkdir()
        raise ZeroDivisionError
    assert [path.name for path in database.parts()] == ["part-r-00000"]
    assert [path.name for path in tmp_path.iterdir()] == ["current"]
