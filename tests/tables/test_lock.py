"""Locks: one holder at a time, named; the dead hold nothing."""

from __future__ import annotations

import logging
import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from minutch.errors import LockedError, StoreError
from minutch.tables.lock import LOCK_NAME, Owner, lock


def dead_process() -> int:
    """The pid of a process that has ended."""
    process = subprocess.Popen([sys.executable, "-c", ""])
    process.wait()
    return process.pid


def test_the_lock_is_there_while_it_is_held_and_names_its_owner(tmp_path: Path) -> None:
    with lock(tmp_path / "db") as path:
        assert path == tmp_path / "db" / LOCK_NAME
        assert Owner.parse(path.read_text()) == Owner.current()
        assert Owner.current().pid == os.getpid() and Owner.current().host == socket.gethostname()
    assert list((tmp_path / "db").iterdir()) == []


def test_nobody_else_gets_it(tmp_path: Path) -> None:
    with lock(tmp_path), pytest.raises(LockedError, match=rf"\.locked.*process {os.getpid()} on"), lock(tmp_path):
        pass
    with lock(tmp_path):
        pass


def test_it_is_released_after_an_error(tmp_path: Path) -> None:
    with pytest.raises(ZeroDivisionError), lock(tmp_path):
        raise ZeroDivisionError
    assert not (tmp_path / LOCK_NAME).exists()


def test_a_dead_owner_is_replaced_with_a_message(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    pid = dead_process()
    (tmp_path / LOCK_NAME).write_text(f"{pid} {socket.gethostname()} 12345\n")
    with caplog.at_level(logging.WARNING), lock(tmp_path) as path:
        assert Owner.parse(path.read_text()) == Owner.current()
    assert f"process {pid}" in caplog.text and "gone" in caplog.text


def test_a_reused_pid_is_not_the_owner(tmp_path: Path) -> None:
    me = Owner.current()
    if not me.started:
        pytest.skip("this system does not tell when a process began")
    (tmp_path / LOCK_NAME).write_text(f"{me.pid} {me.host} {me.started - 1}\n")
    with lock(tmp_path):
        pass


def test_an_owner_on_another_host_may_live(tmp_path: Path) -> None:
    (tmp_path / LOCK_NAME).write_text(f"{dead_process()} elsewhere.example 0\n")
    with pytest.raises(LockedError, match=r"elsewhere\.example"), lock(tmp_path):
        pass


@pytest.mark.parametrize("text", ["", "not a lock of ours", "1 2"])
def test_a_lock_of_nutch_needs_force(tmp_path: Path, text: str, caplog: pytest.LogCaptureFixture) -> None:
    (tmp_path / LOCK_NAME).write_text(text)
    with pytest.raises(LockedError, match="unknown owner"), lock(tmp_path):
        pass
    with caplog.at_level(logging.WARNING), lock(tmp_path, force=True):
        assert (tmp_path / LOCK_NAME).read_text() != text
    assert "force" in caplog.text
    assert not (tmp_path / LOCK_NAME).exists()


def test_a_directory_in_its_place_is_an_error(tmp_path: Path) -> None:
    (tmp_path / LOCK_NAME).mkdir()
    with pytest.raises(StoreError, match="directory"), lock(tmp_path, force=True):
        pass
