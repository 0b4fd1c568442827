"""Work folders: named after their process, and removed once it is gone."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from minutch.work.tables.install import clear, left_over, make_folder, work_folder

PREFIX = ".spill-"


def dead_process() -> int:
    ran = subprocess.run(
        [sys.executable, "-c", "import os; print(os.getpid())"], capture_output=True, check=True
    )
    return int(ran.stdout)


def test_each_folder_is_its_own(tmp_path: Path) -> None:
    first, second = make_folder(tmp_path, PREFIX), make_folder(tmp_path, PREFIX)
    assert first != second and first.is_dir() and second.is_dir()
    assert left_over(tmp_path, PREFIX) == []


def test_folders_of_the_dead_go_and_others_stay(tmp_path: Path) -> None:
    dead, host = dead_process(), socket.gethostname()
    gone = [f"{PREFIX}{dead}", f"{PREFIX}{dead}-1-{host}", f"{PREFIX}{dead}-1-{host}.2"]
    gone.append(f"{PREFIX}{os.getpid()}-1-{host}")  # our number, but not our time
    kept = [
        f"{PREFIX}{dead}-1-elsewhere.org",
        f"{PREFIX}mine",
        f".new-{dead}",
        f"{PREFIX}{os.getppid()}",
    ]
    for name in gone + kept:
        (tmp_path / name / "inside").mkdir(parents=True)
    (tmp_path / f"{PREFIX}{dead}-file").touch()
    assert [path.name for path in left_over(tmp_path, PREFIX)] == sorted(gone)
    own = make_folder(tmp_path, PREFIX)
    assert {path.name for path in tmp_path.iterdir()} == {own.name, *kept, f"{PREFIX}{dead}-file"}


def test_a_folder_goes_at_the_end_unless_it_has_its_place(tmp_path: Path) -> None:
    with pytest.raises(ZeroDivisionError), work_folder(tmp_path / "new", PREFIX) as folder:
        (folder / "file").touch()
        _ = 1 / 0
    with work_folder(tmp_path / "new", PREFIX) as folder:
        folder.rename(tmp_path / "new/out")
    assert [path.name for path in (tmp_path / "new").iterdir()] == ["out"]


def test_nothing_to_clear(tmp_path: Path) -> None:
    clear(tmp_path / "nowhere", PREFIX)
    assert left_over(tmp_path / "nowhere", PREFIX) == []
