"""Runs a process and says what it took; copies files and says how long that takes."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

_KILO = 1024 if sys.platform != "darwin" else 1


class Cost(NamedTuple):
    """What a process took."""

    seconds: float
    cpu_seconds: float
    peak_bytes: int


class Failed(Exception):
    """A measured process failed; the message has the end of its log."""


def run(command: Sequence[str | Path], *, cwd: Path, env: Mapping[str, str], good: tuple[int, ...] = (0,)) -> Cost:
    """Run a command to its end. Raises Failed if it exits with a code that is not among `good`."""
    log = cwd / "command.log"
    with log.open("wb") as output:
        start = time.monotonic()
        process = subprocess.Popen([str(word) for word in command], cwd=cwd, env=env, stdout=output, stderr=output)
        _, status, usage = os.wait4(process.pid, 0)
        seconds = time.monotonic() - start
    code = process.returncode = os.waitstatus_to_exitcode(status)
    if code not in good:
        raise Failed(f"{command[0]} … exit code {code}\n{log.read_text(errors='replace')[-3000:]}")
    return Cost(seconds, usage.ru_utime + usage.ru_stime, usage.ru_maxrss * _KILO)


def copy_seconds(paths: Sequence[Path], scratch: Path) -> float:
    """How long `cp -r` of some files and directories takes; the faster of two goes."""
    times = []
    for _ in range(2):
        scratch.mkdir()
        start = time.monotonic()
        for number, path in enumerate(paths):
            subprocess.run(["cp", "-r", path, scratch / str(number)], check=True)
        times.append(time.monotonic() - start)
        shutil.rmtree(scratch)
    return min(times)
