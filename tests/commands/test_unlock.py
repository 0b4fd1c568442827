"""unlock: locks of dead processes go, all others stay unless forced."""

from __future__ import annotations

import socket
import subprocess
import sys
from pathlib import Path

import pytest

from minutch.commands import cli
from minutch.work.tables.lock import lock


def dead() -> str:
    """Returns a lock of a process of this machine that no longer runs."""
    with subprocess.Popen([sys.executable, "-c", ""]) as process:
        process.wait()
    return f"{process.pid} {socket.gethostname()} 0\n"


def test_dead_owners(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "crawldb").mkdir()
    locks = [tmp_path / ".locked", tmp_path / "crawldb" / ".locked"]
    for path in locks:
        path.write_text(dead())
    assert cli.main(["unlock", str(tmp_path)]) == 0
    assert not any(path.exists() for path in locks)
    assert capsys.readouterr().out.count("removed, it was held by process") == 2
    assert cli.main(["unlock", str(tmp_path)]) == 0
    assert capsys.readouterr().out == f"{tmp_path}: not locked\n"


def test_a_running_owner(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with lock(tmp_path) as path:
        assert cli.main(["unlock", str(tmp_path)]) == 255
        assert path.exists()
    error, hint = capsys.readouterr().err.splitlines()
    assert error.startswith(f"error: {path} is held by process ")
    assert hint == "hint: -force removes them all the same: make sure that no job is running"


@pytest.mark.parametrize("text", ["", "1 elsewhere 5\n"])
def test_unknown_owners_need_force(text: str, tmp_path: Path) -> None:
    path = tmp_path / ".locked"
    path.write_text(text)
    assert cli.main(["unlock", str(tmp_path)]) == 255
    assert path.exists()
    assert cli.main(["unlock", str(tmp_path), "-force"]) == 0
    assert not path.exists()


def test_no_such_folder(tmp_path: Path) -> None:
    assert cli.main(["unlock", str(tmp_path / "x")]) == 255


def test_a_locked_database_says_how_to_go_on(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "seeds").write_text("http://example.org/\n")
    (tmp_path / "crawldb").mkdir()
    (tmp_path / "crawldb" / ".locked").write_text("1 elsewhere 5\n")
    assert cli.main(["inject", str(tmp_path / "crawldb"), str(tmp_path / "seeds")]) == 255
    error, hint = capsys.readouterr().err.splitlines()[-2:]
    assert error.startswith(
        f"error: lock file {tmp_path}/crawldb/.locked already exists, held by process 1 on"
        " elsewhere"
    )
    assert (
        hint == "hint: wait for it; if nobody is at work, `minutch unlock FOLDER` removes the lock"
    )
