"""Runs a process and says what it took; copies files and says how long that takes."""

from __future__ import annotations

import ctypes
import os
import resource
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import NamedTuple

_SAMPLE = 0.02
"""Seconds between two looks at a process's memory."""
_SAMPLE_TREE = 0.2
"""The same for a process with its descendants, which are looked for among all processes."""
_PAGE = os.sysconf("SC_PAGE_SIZE")
_TICKS = os.sysconf("SC_CLK_TCK")
_PR_SET_CHILD_SUBREAPER = 36
_KILO = 1024 if sys.platform != "darwin" else 1


class Cost(NamedTuple):
    """The cost of a process and of all its descendants, also of those that it did not wait for, as
    the workers of a fork server. `peak_bytes` is that of the largest and includes the pages of
    mapped files; `private_bytes` is the process's own memory, sampled; `tree_bytes` what it and all
    its descendants held at once, sampled.
    """

    seconds: float
    cpu_seconds: float
    peak_bytes: int
    private_bytes: int
    tree_bytes: int = 0


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
    with log.open("wb") as output, adopting() as orphans:
        start = time.monotonic()
        process = subprocess.Popen(
            [str(word) for word in command], cwd=cwd, env=env, stdout=output, stderr=output
        )
        memory, tree = _PrivateMemory(process.pid), _TreeMemory(process.pid)
        _, status, usage = os.wait4(process.pid, 0)
        seconds = time.monotonic() - start
        used = [usage, *orphans()]
        memory.join()
        tree.join()
    code = process.returncode = os.waitstatus_to_exitcode(status)
    if code not in good:
        raise Failed(f"{command[0]} … exit code {code}\n{log.read_text(errors='replace')[-3000:]}")
    return Cost(
        seconds,
        sum(one.ru_utime + one.ru_stime for one in used),
        max(one.ru_maxrss for one in used) * _KILO,
        memory.peak,
        tree.peak,
    )


@contextmanager
def adopting() -> Iterator[Callable[[], Iterator[resource.struct_rusage]]]:
    """Makes this process the parent of descendants whose own one ends, where the system can do
    that; yields a function that waits for these until there are none, and says what each used.
    """
    prctl = getattr(ctypes.CDLL(None), "prctl", lambda *_: -1)
    before = set(_by_parent().get(os.getpid(), []))

    def orphans() -> Iterator[resource.struct_rusage]:
        while new := set(_by_parent().get(os.getpid(), [])) - before:
            yield os.wait4(new.pop(), 0)[2]

    prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    try:
        yield orphans
    finally:
        prctl(_PR_SET_CHILD_SUBREAPER, 0, 0, 0, 0)


def family(pid: int) -> list[int]:
    """A process and all its descendants."""
    children = _by_parent()
    found = [pid]
    for one in found:
        found += children.get(one, [])
    return found


def cpu_of(pid: int) -> float:
    """Seconds that a process and those it has waited for have used."""
    with suppress(OSError):
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        return sum(int(ticks) for ticks in fields[11:15]) / _TICKS
    return 0.0


def _by_parent() -> dict[int, list[int]]:
    """All processes; none where there is no /proc."""
    found: dict[int, list[int]] = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):
            parent = int(stat.read_text(errors="replace").rpartition(")")[2].split()[1])
            found.setdefault(parent, []).append(int(stat.parent.name))
    return found


class _PrivateMemory(threading.Thread):
    """Looks at a process's anonymous memory as long as it runs; 0 where the system does not
    tell.
    """

    every = _SAMPLE

    def __init__(self, pid: int) -> None:
        super().__init__(daemon=True)
        self._pid = pid
        self._status = Path("/proc", str(pid), "status")
        self.peak = 0
        self.start()

    def run(self) -> None:
        while (now := self._now()) is not None:
            self.peak = max(self.peak, now)
            time.sleep(self.every)

    def _now(self) -> int | None:
        try:
            lines = self._status.read_text().splitlines()
        except OSError:
            return None
        return next(
            (int(line.split()[1]) * 1024 for line in lines if line.startswith("RssAnon")), None
        )


class _TreeMemory(_PrivateMemory):
    """Looks at the RSS of a process and of all its descendants, added up."""

    every = _SAMPLE_TREE

    def _now(self) -> int | None:
        found = 0
        for pid in family(self._pid):
            with suppress(OSError):
                found += int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * _PAGE
        return found or None


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
