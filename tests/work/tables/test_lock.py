"""Locks: one holder at a time, named; the dead hold nothing."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import logging
import os
import re
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from minutch import processwide
from minutch.conf import Configuration
from minutch.errors import LockedError, StoreError
from minutch.job import set_up_process
from minutch.work.tables.database import Database
from minutch.work.tables.lock import LOCK_NAME, Owner, left_candidates, lock


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
    with (
        lock(tmp_path),
        pytest.raises(LockedError, match=rf"\.locked.*process {os.getpid()} on"),
        lock(tmp_path),
    ):
        pass
    with lock(tmp_path):
        pass


def test_it_is_released_after_an_error(tmp_path: Path) -> None:
    with pytest.raises(ZeroDivisionError), lock(tmp_path):
        raise ZeroDivisionError
    assert not (tmp_path / LOCK_NAME).exists()


def test_a_dead_owner_is_replaced_with_a_message(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    pid = dead_process()
    (tmp_path / LOCK_NAME).write_text(f"{pid} {socket.gethostname()} 12345\n")
    with caplog.at_level(logging.WARNING), lock(tmp_path) as path:
        assert Owner.parse(path.read_text()) == Owner.current()
    assert f"process {pid}" in caplog.text and "gone" in caplog.text


def test_a_pid_that_was_given_to_another_process_is_not_the_owner(tmp_path: Path) -> None:
    me = Owner.current()
    (tmp_path / LOCK_NAME).write_text(f"{me.pid} {me.host} {me.started - 1}\n")
    assert not me.is_gone() and Owner(me.pid, me.host, me.started - 1).is_gone()
    assert (
        Owner(dead_process(), me.host, 0).is_gone()
        and not Owner(dead_process(), "elsewhere.example", 0).is_gone()
    )
    with lock(tmp_path):
        pass


def test_an_owner_on_another_host_may_live(tmp_path: Path) -> None:
    (tmp_path / LOCK_NAME).write_text(f"{dead_process()} elsewhere.example 0\n")
    with pytest.raises(LockedError, match=r"elsewhere\.example"), lock(tmp_path):
        pass


@pytest.mark.parametrize(
    "text",
    [f"{'9' * 5000} h 1", f"1 h {'9' * 5000}", "\u00b2 h 1", f"{2**40} h 1", "-1 h 1", "1 h"],
)
def test_odd_numbers_name_no_owner(text: str, tmp_path: Path) -> None:
    assert Owner.parse(text) is None
    (tmp_path / ".locked.\u00b2-1").touch()
    (tmp_path / f".locked.{'9' * 40}-1").touch()
    assert left_candidates(tmp_path) == []


@pytest.mark.parametrize("text", ["", "not a lock of ours", "1 2"])
def test_a_lock_of_nutch_needs_force(
    tmp_path: Path, text: str, caplog: pytest.LogCaptureFixture
) -> None:
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


def test_of_two_that_find_a_dead_owner_one_gets_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The second comes while the first decides that the owner is gone, and does not get it."""
    (tmp_path / LOCK_NAME).write_text(f"{dead_process()} {socket.gethostname()} 12345\n")
    winners: list[str] = []
    parse = Owner.parse

    def slowly(text: str) -> Owner | None:
        monkeypatch.setattr(Owner, "parse", parse)
        other = threading.Thread(target=attempt, args=("second",))
        other.start()
        other.join(60)
        return parse(text)

    held = contextlib.ExitStack()

    def attempt(name: str) -> None:
        with contextlib.suppress(LockedError):
            held.enter_context(lock(tmp_path))
            winners.append(name)

    monkeypatch.setattr(Owner, "parse", slowly)
    with held:
        attempt("first")
        assert len(winners) == 1
    assert not list(tmp_path.iterdir())


def test_who_was_forced_out_releases_nothing(tmp_path: Path) -> None:
    with contextlib.ExitStack() as second:
        with lock(tmp_path):
            second.enter_context(lock(tmp_path, force=True))
        assert (tmp_path / LOCK_NAME).exists()
        with pytest.raises(LockedError), lock(tmp_path):
            pass
    assert not list(tmp_path.iterdir())


def test_a_killed_owner_frees_it(tmp_path: Path) -> None:
    script = (
        "import sys, time; from pathlib import Path; from minutch.work.tables.lock import lock\n"
    )
    script += "with lock(Path(sys.argv[1])): print('held', flush=True); time.sleep(600)"
    command = [sys.executable, "-c", script, str(tmp_path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None and process.stdout.readline() == "held\n"
        with pytest.raises(LockedError, match=rf"process {process.pid} on"), lock(tmp_path):
            pass
        process.kill()
        process.wait()
        with lock(tmp_path):
            pass


HOLDER = """
import sys; from pathlib import Path; from minutch.work.tables.lock import lock
with lock(Path(sys.argv[1])): print('held', flush=True); sys.stdin.read()
"""


@contextlib.contextmanager
def held_elsewhere(folder: Path) -> Iterator[subprocess.Popen[str]]:
    """Another process has the lock until its stdin is closed."""
    command = [sys.executable, "-c", HOLDER, str(folder)]
    with subprocess.Popen(command, stdin=-1, stdout=-1, text=True) as process:
        assert process.stdout is not None and process.stdout.readline() == "held\n"
        yield process


def test_a_job_waits_for_another_processs_and_says_for_whom(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """The other one ends while it is waited for."""
    processwide_before = processwide.settings()
    try:
        for seconds in ("30", "0"):
            conf = Configuration.load([]).with_values({"minutch.lock.wait": seconds})
            set_up_process(conf.freeze())
            with held_elsewhere(tmp_path) as process:
                monkeypatch.setattr("minutch.work.tables.lock.time.sleep", lambda _: end(process))
                if seconds == "0":
                    with pytest.raises(LockedError, match="held by"), Database(tmp_path).lock():
                        pass
                    process.communicate()
                else:
                    with Database(tmp_path).lock():
                        pass
                    said = (
                        r"waiting for it, at most 30 s \(minutch.lock.wait\): lock file .*"
                        rf"held by process {process.pid} on \S+ since \d{{4}}-.* UTC"
                    )
                    assert re.search(said, caplog.text)
    finally:
        processwide.use(processwide_before)


def end(process: subprocess.Popen[str]) -> None:
    if process.stdin is not None:
        process.stdin.close()
        process.wait()
        process.stdin = None


def test_nobody_waits_longer_than_asked_nor_for_oneself(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = [0.0]
    monkeypatch.setattr("minutch.work.tables.lock.time.monotonic", lambda: now[0])

    def sleep(seconds: float) -> None:
        now[0] += seconds

    monkeypatch.setattr("minutch.work.tables.lock.time.sleep", sleep)
    with held_elsewhere(tmp_path) as process:
        with pytest.raises(LockedError), lock(tmp_path, wait=5):
            pass
        end(process)
    assert 5 <= now[0] < 6
    with lock(tmp_path), pytest.raises(LockedError), lock(tmp_path, wait=5):
        pass
    for other in (f"{dead_process()} elsewhere.example 0\n", ""):
        (tmp_path / LOCK_NAME).write_text(other)
        with pytest.raises(LockedError), lock(tmp_path, wait=5):
            pass
    assert now[0] < 6


CONTENDER = """
import os, random, sys, time
from pathlib import Path
from minutch.errors import LockedError
from minutch.work.tables.lock import lock
folder, inside = Path(sys.argv[1]), Path(sys.argv[2])
entered = 0
while entered < 20:
    try:
        with lock(folder):
            os.close(os.open(inside, os.O_CREAT | os.O_EXCL))
            inside.unlink()
            entered += 1
            if entered == 20:
                os._exit(0)  # without a release: the next one finds a dead owner
    except LockedError:
        time.sleep(random.random() / 500)
"""


def test_processes_that_contend_are_never_in_it_together(tmp_path: Path) -> None:
    (tmp_path / "db").mkdir()
    (tmp_path / "db" / LOCK_NAME).write_text(f"{dead_process()} {socket.gethostname()} 12345\n")
    command = [sys.executable, "-c", CONTENDER, str(tmp_path / "db"), str(tmp_path / "inside")]
    running = [subprocess.Popen(command, stderr=subprocess.PIPE, text=True) for _ in range(4)]
    for process in running:
        _, errors = process.communicate(timeout=120)
        assert process.returncode == 0, errors


def test_where_there_is_no_flock_a_dead_owner_needs_force(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def unsupported(*_: object) -> None:
        raise OSError(errno.ENOTSUP, "Operation not supported")

    monkeypatch.setattr(fcntl, "flock", unsupported)
    (tmp_path / LOCK_NAME).write_text(f"{dead_process()} {socket.gethostname()} 12345\n")
    with pytest.raises(LockedError), lock(tmp_path):
        pass
    with lock(tmp_path, force=True), pytest.raises(LockedError), lock(tmp_path):
        pass
    assert not list(tmp_path.iterdir())
