"""Replacing a database: whatever instant a process dies at, the old or the new one is whole and
found.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from unittest import mock

import pytest

from minutch.work.tables import install
from minutch.work.tables.database import Database

DEAD = f".new-{2**22 + 1}"
"""The work folder of a process that can't be there."""


class Killed(BaseException):
    """The process dies here."""


def make(database: Path, name: str, content: str) -> Path:
    """A directory of two files that hold `content`."""
    directory = database / name
    (directory / "part-r-00000").mkdir(parents=True)
    for file in ("data", "index"):
        (directory / "part-r-00000" / file).write_text(content)
    return directory


def content(directory: Path) -> str:
    """Returns the content of a whole directory; fails on a mixture."""
    found = {path.read_text() for path in directory.rglob("*") if path.is_file()}
    assert len(found) == 1 and len([path for path in directory.rglob("*") if path.is_file()]) == 2
    return found.pop()


@pytest.fixture(params=[True, False], ids=["exchange", "two renames"])
def _exchange(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """With the system's exchange of names, and without."""
    if not request.param:
        monkeypatch.setattr(install, "_exchange", lambda first, second: False)


@pytest.mark.usefixtures("_exchange")
@pytest.mark.parametrize("keep_old", [True, False])
def test_install(tmp_path: Path, keep_old: bool) -> None:
    for text in ("one", "two", "three"):
        new = install.new_directory(tmp_path)
        shutil.rmtree(new)
        make(tmp_path, new.name, text)
        install.install(tmp_path, new, keep_old=keep_old)
        assert content(tmp_path / "current") == text
    names = sorted(path.name for path in tmp_path.iterdir())
    assert names == (["current", "old"] if keep_old else ["current"])
    if keep_old:
        assert content(tmp_path / "old") == "two"


def steps_until_done(run: Callable[[], None], patched: list[str]) -> int:
    """Returns how many file system calls of the kinds `patched` an installation makes."""
    with counting(patched, None) as count:
        run()
        return int(count())


def counting(names: list[str], die_at: int | None):  # type: ignore[no-untyped-def]
    """Count calls that change names; die before number `die_at`."""
    from contextlib import ExitStack, contextmanager

    @contextmanager
    def patches():  # type: ignore[no-untyped-def]
        done = 0

        def wrap(original: Callable[..., object]) -> Callable[..., object]:
            def call(*args: object, **options: object) -> object:
                nonlocal done
                if done == die_at:
                    raise Killed
                done += 1
                return original(*args, **options)

            return call

        with ExitStack() as stack:
            for name in names:
                target, attribute = name.rsplit(":")
                owner = {"Path": Path, "shutil": shutil, "install": install}[target]
                stack.enter_context(
                    mock.patch.object(owner, attribute, wrap(getattr(owner, attribute)))
                )
            yield lambda: done

    return patches()


CALLS = [
    "Path:rename",
    "shutil:rmtree",
    "install:_exchange",
    "install:sync_tree",
    "install:sync_path",
]


@pytest.mark.usefixtures("_exchange")
@pytest.mark.parametrize("keep_old", [True, False])
def test_a_kill_at_any_step_leaves_one_of_the_two_whole(tmp_path: Path, keep_old: bool) -> None:
    def prepare(database: Path) -> Path:
        make(database, "current", "before")
        make(database, "old", "long before")
        return make(database, DEAD, "after")

    trial = tmp_path / "trial"
    steps = steps_until_done(
        lambda: install.install(trial, prepare(trial), keep_old=keep_old), CALLS
    )
    assert steps >= 4
    seen = set()
    for step in range(steps):
        database = tmp_path / str(step)
        new = prepare(database)
        with counting(CALLS, step), pytest.raises(Killed):
            install.install(database, new, keep_old=keep_old)
        readable = Database(database)
        assert readable.exists()
        state = content(readable.current)
        assert state in {"before", "after"}
        seen.add(state)
        install.recover(database)
        assert content(database / "current") == state
        new = make(database, ".new-later", "later")
        install.install(database, new, keep_old=keep_old)
        assert content(database / "current") == "later"
        names = {path.name for path in database.iterdir()}
        assert names <= {"current", "old"}
        if keep_old:
            assert content(database / "old") == state
    assert seen == {"before", "after"}


def test_a_kill_while_writing_leaves_the_old_database_and_no_litter(tmp_path: Path) -> None:
    make(tmp_path, "current", "before")
    make(tmp_path, DEAD, "half of aft")
    make(tmp_path, f".spill-{2**22 + 1}", "what did not fit into memory")
    install.recover(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["current"]
    assert content(tmp_path / "current") == "before"
