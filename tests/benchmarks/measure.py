"""Runs a process and says what it took; copies files and says how long that takes."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

_SAMPLE = 0.02
"""Seconds between two looks at a process's memory."""
_KILO = 1024 if sys.platform != "darwin" else 1


class Cost(NamedTuple):
    """The cost of a process. `peak_bytes` includes the pages of mapped files; `private_bytes` is
    its own memory, sampled.
    """

    seconds: float
    cpu_seconds: float
    peak_bytes: int
    private_bytes: int


class Failed(Exception):
    """A measured process failed; the message has the end of its log."""


def run(
    command: Sequence[str | Path],
    *,
    cwd: Path,
    env: Mapping[str, str],
    good: tuple[int, ...] = (0,),
) -> Cost:
    """Run a command to its end. Raises Failed if it exits with a code that is not among `good`."""
    log = cwd / "command.log"
    with log.open("wb") as output:
        start = time.monotonic()
        process = subprocess.Popen(
            [str(word) for word in command], cwd=cwd, env=env, stdout=output, stderr=output
        )
        memory = _PrivateMemory(process.pid)
        _, status, usage = os.wait4(process.pid, 0)
        seconds = time.monotonic() - start
        memory.join()
    code = process.returncode = os.waitstatus_to_exitcode(status)
    if code not in good:
        raise Failed(f"{command[0]} … exit code {code}\n{log.read_text(errors='replace')[-3000:]}")
    return Cost(seconds, usage.ru_utime + usage.ru_stime, usage.ru_maxrss * _KILO, memory.peak)


class _PrivateMemory(threading.Thread):
    """Looks at a process's anonymous memory as long as it runs; 0 where the system does not
    tell.
    """

    def __init__(self, pid: int) -> None:
        super().__init__(daemon=True)
        self._status = Path("/proc", str(pid), "status")
        self.peak = 0
        self.start()

    def run(self) -> None:
        while (now := self._now()) is not None:
            self.peak = max(self.peak, now)
            time.sleep(_SAMPLE)

    def _now(self) -> int | None:
        try:
            lines = self._status.read_text().splitlines()
        except OSError:
            return None
        return next(
            (int(line.split()[1]) * 1024 for line in lines if line.startswith("RssAnon")), None
        )


def copy_seconds(paths: Sequence[Path], scratch: Path) -> float:
    """Measures `cp -r` of some files and directories, in seconds; the faster of two runs counts."""
    times = []
    for _ in range(2):
        scratch.mkdir()
        start = time.monotonic()
        for number, path in enumerate(paths):
            subprocess.run(["cp", "-r", path, scratch / str(number)], check=True)
        times.append(time.monotonic() - start)
        shutil.rmtree(scratch)
    return min(times)
