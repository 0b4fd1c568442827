"""The watch sees every change of files, whoever makes it, and can forbid each."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.faults.syscalls import available
from tests.support.examples import few
from tests.support.golden import PROJECT

pytestmark = pytest.mark.skipif(not available(), reason="needs Linux's seccomp with a listener")

SCRIPT = """
import errno, json, sys
from pathlib import Path
from tests.support.examples import few
from tests.faults.watch import run
from minutch.commands import cli
from tests.support.examples import few

def work(words):
    import ctypes, os, subprocess, threading
    root = Path(words[0])
    libc = ctypes.CDLL(None, use_errno=True)
    (root / "python").write_bytes(b"by Python")
    thread = threading.Thread(target=lambda: (root / "thread").mkdir())
    thread.start()
    thread.join()
    subprocess.run(["sh", "-c", f"echo by another > {root}/shell"])
    libc.rename(os.fsencode(root / "python"), os.fsencode(root / "native"))
    with open(root / "native", "rb") as file:
        os.fsync(file.fileno())
    libc.unlink(os.fsencode(root / "shell"))
    return 0

cli.main = work
ran = run([sys.argv[1]], Path(sys.argv[1]), **json.loads(sys.argv[2]))
data = [call.data.decode() for call in ran.calls if call.data]
print(json.dumps([ran.code, [str(call) for call in ran.calls], data]))
"""
CALLS = [
    "open python",
    "write python 9 bytes at 0",
    "mkdir thread",
    "open shell",
    "write shell 11 bytes at 0",
    "rename python -> native",
    "fsync native",
    "unlink shell",
]


def watched(folder: Path, **options: object) -> tuple[int, list[str], list[str]]:
    command = [sys.executable, "-c", SCRIPT, str(folder), json.dumps(options)]
    ran = subprocess.run(command, cwd=PROJECT, capture_output=True, text=True, check=True)
    code, calls, data = json.loads(ran.stdout)
    return code, calls, data


@pytest.mark.slow  # processes
def test_python_threads_processes_and_native_code_are_seen(tmp_path: Path) -> None:
    assert watched(tmp_path) == (0, CALLS, ["by Python", "by another\n"])
    assert sorted(path.name for path in tmp_path.iterdir()) == ["native", "thread"]


@pytest.mark.slow  # processes
@pytest.mark.parametrize("at", few(range(len(CALLS)), 2))
def test_killed_before_a_call(tmp_path: Path, at: int) -> None:
    code, calls, _ = watched(tmp_path, at=at)
    assert (code, calls) == (-9, CALLS[: at + 1])
    expected = [set(), {"python"}, {"python"}, {"python", "thread"}, {"python", "thread", "shell"}]
    expected += [
        {"python", "thread", "shell"},
        {"native", "thread", "shell"},
        {"native", "thread", "shell"},
    ]
    assert {path.name for path in tmp_path.iterdir()} == expected[at]
    if at == 1:
        assert (tmp_path / "python").read_bytes() == b""


@pytest.mark.slow  # processes
def test_an_error_and_half_a_write(tmp_path: Path) -> None:
    for folder in ("error", "short"):
        (tmp_path / folder).mkdir()
    code, calls, _ = watched(tmp_path / "error", at=2, fault=28)
    assert code == 0 and calls == CALLS and not (tmp_path / "error/thread").exists()
    code, calls, _ = watched(tmp_path / "short", at=4, fault="short")
    assert code == 0
    assert calls[4:6] == ["write shell 11 bytes at 0", "write shell 6 bytes at 5"]
