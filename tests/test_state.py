"""A cache on disk: what is damaged, locked, outdated or not writable is forgotten, and nobody is
stopped by it.
"""

from __future__ import annotations

import os
import sqlite3
from pathlib import Path

import pytest

from minutch.state import StateFile

SCHEMA = "CREATE TABLE t (k TEXT PRIMARY KEY, v INTEGER)"
PUT = "INSERT OR REPLACE INTO t VALUES (?, ?)"


def filled(path: Path, rows: int = 2000) -> StateFile:
    state = StateFile(path, SCHEMA)
    state.write(PUT, [(f"key {n:06}", n) for n in range(rows)])
    return state


def test_what_is_written_is_there_in_the_next_process(tmp_path: Path) -> None:
    filled(tmp_path / "deep" / "s.sqlite").close()
    with StateFile(tmp_path / "deep" / "s.sqlite", SCHEMA) as state:
        assert state.read("SELECT v FROM t WHERE k = ?", ("key 000007",)) == [(7,)]


def test_a_file_that_is_no_database_is_replaced(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "s.sqlite"
    path.write_bytes(b"no database" * 1000)
    with filled(path, 3) as state:
        assert state.read("SELECT count(*) FROM t") == [(3,)]
    assert path.with_suffix(".damaged").read_bytes() == b"no database" * 1000
    assert caplog.text.count("is replaced by a new one") == 1


@pytest.mark.parametrize("end", [4096, -1])
def test_damage_is_met_while_the_file_is_in_use(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, end: int
) -> None:
    """Pages of the file are overwritten, or cut off; the header still looks like a database."""
    path = tmp_path / "s.sqlite"
    filled(path).close()
    size = path.stat().st_size
    with path.open("r+b") as file:
        file.seek(4096)
        file.write(b"\xff" * (size - 4096))
    if end > 0:
        os.truncate(path, end)
    state = StateFile(path, SCHEMA)
    assert state.read("SELECT v FROM t WHERE k = ?", ("key 000007",)) == []
    state.write(PUT, [("new", 1)])
    assert state.read("SELECT v FROM t") == [(1,)]
    state.close()
    assert caplog.text.count("is replaced by a new one") == 1
    with StateFile(path, SCHEMA) as again:
        assert again.read("SELECT v FROM t") == [(1,)]


def test_a_file_of_another_version_is_emptied(tmp_path: Path) -> None:
    path = tmp_path / "s.sqlite"
    filled(path).close()
    with StateFile(path, "CREATE TABLE t (k TEXT PRIMARY KEY, other TEXT, v INTEGER)") as state:
        assert state.read("SELECT k, other, v FROM t") == []


def test_without_a_place_on_disk_memory_serves(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    with filled(tmp_path / "file" / "s.sqlite", 2) as state:
        assert state.read("SELECT count(*) FROM t") == [(2,)]


def test_who_holds_the_file_too_long_is_not_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("minutch.state.WAIT", 0.01)
    path = tmp_path / "s.sqlite"
    with filled(path, 1) as state, sqlite3.connect(path) as other:
        other.execute("BEGIN EXCLUSIVE")
        state.write(PUT, [("lost", 1)])
        other.rollback()
        assert state.read("SELECT k FROM t") == [("key 000000",)]
        state.write(PUT, [("kept", 1)])
        assert state.read("SELECT count(*) FROM t") == [(2,)]
    assert not path.with_suffix(".damaged").exists()


def test_size_and_age_are_bounded(tmp_path: Path) -> None:
    with filled(tmp_path / "s.sqlite", 10) as state:
        state.prune("t", "v", 2, 100)
        assert [v for (v,) in state.read("SELECT v FROM t ORDER BY v")] == [3, 4, 5, 6, 7, 8, 9]
        state.prune("t", "v", 2, 3)
        assert [v for (v,) in state.read("SELECT v FROM t ORDER BY v")] == [7, 8, 9]


def test_a_closed_file_knows_nothing(tmp_path: Path) -> None:
    state = filled(tmp_path / "s.sqlite", 1)
    state.close()
    state.close()
    state.write(PUT, [("x", 1)])
    assert state.read("SELECT * FROM t") == []


def test_a_file_that_is_only_read(tmp_path: Path) -> None:
    path = tmp_path / "s.sqlite"
    filled(path, 3).close()
    before = path.read_bytes()
    with StateFile(path, SCHEMA, read_only=True) as state:
        assert state.read("SELECT count(*) FROM t") == [(3,)]
        state.write(PUT, [("new", 1)])
        assert state.read("SELECT count(*) FROM t") == [(3,)]
    assert path.read_bytes() == before


@pytest.mark.parametrize("content", [b"no database" * 1000, b""])
def test_a_file_that_can_not_be_read_stays_where_it_is(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "s.sqlite"
    path.write_bytes(content)
    with StateFile(path, SCHEMA, read_only=True) as state:
        assert state.read("SELECT k FROM t") == []
    assert path.read_bytes() == content
    assert [file.name for file in tmp_path.iterdir()] == ["s.sqlite"]


def test_a_file_of_another_schema_is_not_emptied_by_who_only_reads(tmp_path: Path) -> None:
    path = tmp_path / "s.sqlite"
    filled(path, 3).close()
    with StateFile(path, "CREATE TABLE other (k TEXT)", read_only=True) as state:
        assert state.read("SELECT k FROM t") == []
    with StateFile(path, SCHEMA) as state:
        assert state.read("SELECT count(*) FROM t") == [(3,)]


def test_reading_makes_no_file(tmp_path: Path) -> None:
    with StateFile(tmp_path / "deep" / "s.sqlite", SCHEMA, read_only=True) as state:
        assert state.read("SELECT k FROM t") == []
    assert list(tmp_path.iterdir()) == []


def test_a_database_of_something_else_is_put_aside_whole(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "s.sqlite"
    with sqlite3.connect(path) as other:
        other.execute("CREATE TABLE precious (x)")
        other.execute("INSERT INTO precious VALUES (1)")
    other.close()
    with filled(path, 3) as state:
        assert state.read("SELECT count(*) FROM t") == [(3,)]
    with sqlite3.connect(path.with_suffix(".damaged")) as other:
        assert other.execute("SELECT x FROM precious").fetchall() == [(1,)]
    other.close()
    assert "a database of something else" in caplog.text


@pytest.mark.parametrize("link", ["state", "state/s.sqlite", "state/s.sqlite-wal"])
def test_links_are_not_followed(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, link: str
) -> None:
    folder = tmp_path / "elsewhere"
    folder.mkdir()
    filled(folder / "s.sqlite", 3).close()
    before = {path: path.read_bytes() for path in folder.iterdir()}
    place = tmp_path / link
    place.parent.mkdir(exist_ok=True)
    place.symlink_to(folder if link == "state" else folder / place.name)
    for read_only in (False, True):
        with StateFile(
            tmp_path / "state" / "s.sqlite", "CREATE TABLE t (k)", read_only=read_only
        ) as state:
            state.write("INSERT INTO t VALUES (?)", [(1,)])
    assert {path: path.read_bytes() for path in folder.iterdir()} == before
    assert "a link, which is not followed" in caplog.text
