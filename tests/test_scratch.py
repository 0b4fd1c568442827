"""`minutch.scratch`: what a process puts aside is gone once it is."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from minutch import scratch

KILLED = """
import os, signal, sys
from minutch import scratch
folder = scratch.make("test", sys.argv[1])
(folder / "run-0").write_bytes(b"much")
if sys.argv[2:] and os.fork() == 0:
    signal.pause()
print(folder, flush=True)
os.kill(os.getpid(), signal.SIGKILL)
"""


def _names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_a_folder_is_private_and_gone_at_the_end(tmp_path: Path) -> None:
    with scratch.scratch("test", tmp_path) as folder:
        assert folder.stat().st_mode & 0o777 == 0o700
        (folder / "inner").mkdir()
    assert _names(tmp_path) == []


def test_the_next_of_its_kind_removes_what_a_killed_process_left(tmp_path: Path) -> None:
    found = subprocess.run(
        [sys.executable, "-c", KILLED, tmp_path], stdout=subprocess.PIPE, text=True, check=False
    )
    left = Path(found.stdout.strip())
    assert _names(left) == [".lock", "run-0"]
    with scratch.scratch("other", tmp_path):
        assert left.exists()  # it is for another purpose
    with scratch.scratch("test", tmp_path) as folder, scratch.scratch("test", tmp_path) as second:
        assert _names(tmp_path) == sorted([folder.name, second.name])


def test_what_a_living_child_of_it_may_use_stays(tmp_path: Path) -> None:
    command = [sys.executable, "-c", KILLED, tmp_path, "with a child"]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, text=True, start_new_session=True
    ) as process:
        assert process.stdout is not None
        left = Path(process.stdout.readline().strip())
        process.wait()
        with scratch.scratch("test", tmp_path):
            assert (left / "run-0").exists()
        os.killpg(process.pid, 9)


def test_a_folder_that_has_no_lock_yet_is_left_alone_while_it_is_young(tmp_path: Path) -> None:
    young, old = tmp_path / "minutch-test-young", tmp_path / "minutch-test-old"
    young.mkdir()
    old.mkdir()
    os.utime(old, (0, 0))
    with scratch.scratch("test", tmp_path):
        assert young.exists()
        assert not old.exists()


def test_a_link_of_such_a_name_is_not_followed(tmp_path: Path) -> None:
    other = tmp_path / "data"
    other.mkdir()
    (other / ".lock").touch()
    (tmp_path / "minutch-test-link").symlink_to(other)
    with scratch.scratch("test", tmp_path):
        pass
    assert _names(other) == [".lock"]
