"""The lock file of a database: Nutch's `.locked`, with its owner's name in it.

    .locked := pid SP host SP start time of the process (clock ticks since boot, 0 = unknown) LF

Nutch writes an empty file; such a lock has an unknown owner, and only force goes past it. A lock of ours whose owner
is no longer there is taken over, and the log says so.
Source: org.apache.nutch.util.LockUtil.
"""

from __future__ import annotations

import logging
import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from minutch.errors import LockedError, StoreError

log = logging.getLogger(__name__)

LOCK_NAME = ".locked"


@dataclass(frozen=True, slots=True)
class Owner:
    """The process that holds a lock."""

    pid: int
    host: str
    started: int

    @classmethod
    def current(cls) -> Self:
        """This process."""
        return cls(os.getpid(), socket.gethostname(), _start_time(os.getpid()))

    @classmethod
    def parse(cls, text: str) -> Self | None:
        """The owner that a lock file names; None if it names none."""
        match text.split():
            case [pid, host, started] if pid.isdigit() and started.isdigit():
                return cls(int(pid), host, int(started))
            case _:
                return None

    def is_gone(self) -> bool:
        """Whether the process certainly no longer runs: it was on this host, and its pid is free or reused."""
        if self.host != socket.gethostname():
            return False
        try:
            os.kill(self.pid, 0)
        except ProcessLookupError:
            return True
        except PermissionError:
            pass
        return bool(self.started) and _start_time(self.pid) not in {0, self.started}

    def __str__(self) -> str:
        return f"process {self.pid} on {self.host}"


def _start_time(pid: int) -> int:
    """When a process began, in clock ticks since boot; 0 where the machine does not tell."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
        return int(stat.rpartition(")")[2].split()[19])
    except (OSError, IndexError, ValueError):
        return 0


@contextmanager
def lock(directory: Path, force: bool = False) -> Iterator[Path]:
    """Hold the lock of the database at `directory` (made if missing); yields the lock file, deletes it at the end.

    Raises LockedError, naming the owner, if somebody else holds it; with `force` the lock is taken over all the same.
    """
    directory.mkdir(parents=True, exist_ok=True)
    path = directory / LOCK_NAME
    _acquire(path, force)
    try:
        yield path
    finally:
        path.unlink(missing_ok=True)


def _acquire(path: Path, force: bool) -> None:
    if path.is_dir():
        raise StoreError(f"lock file {path} already exists and is a directory")
    owner = Owner.current()
    text = f"{owner.pid} {owner.host} {owner.started}\n"
    candidate = path.with_name(f"{LOCK_NAME}.{owner.pid}")
    candidate.write_text(text, encoding="utf-8")
    try:
        while True:
            try:
                os.link(candidate, path)  # whole and only if there is none: atomic
                return
            except FileExistsError:
                _evict(path, force)
    finally:
        candidate.unlink(missing_ok=True)


def _evict(path: Path, force: bool) -> None:
    """Remove a lock that may be removed; raise LockedError for any other."""
    try:
        holder = Owner.parse(path.read_text(encoding="utf-8", errors="replace"))
    except FileNotFoundError:
        return
    if holder is not None and holder.is_gone():
        log.warning("taking over lock %s: its owner, %s, is gone", path, holder)
    elif force:
        log.warning("ignoring lock %s held by %s (-force)", path, holder or "an unknown owner")
    else:
        raise LockedError(f"lock file {path} already exists, held by {holder or 'an unknown owner (perhaps Nutch)'}")
    path.unlink(missing_ok=True)
