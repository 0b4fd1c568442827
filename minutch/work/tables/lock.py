"""Locks a database or a fetch: Nutch's `.locked`, with its owner's name in it, under the system's
own lock.

    .locked := pid SP host SP start time of the process (clock ticks since boot, 0 = unknown) LF

The file is there for Nutch, which looks for nothing else, and its name is only ever given to a file
that is locked (flock) and written already. The system's lock decides among our own processes: it is
free as soon as its owner is gone, and of several that find a dead owner's file one alone gets it.
That one writes its name over the other.

Nutch writes an empty file; such a lock has an unknown owner, and only force goes past it. So it is
with an owner on another host, and with every lock where the file system knows no flock.

A database is locked for the time of a step: who finds it locked by another process of this machine
waits for that one, up to minutch.lock.wait. What is locked for a whole crawl, as its folder is and
a segment that is being fetched, is refused at once.

On a file system of Hadoop (`minutch.paths`) there is no such system's lock: the file is
made only where there is none, which HDFS and S3 decide for all, and a dead owner's is renamed out
of the way by the first who finds it. Where a rename copies (s3a), two that find a dead owner's at
the same moment may both get it; so may any two where the store, or a Hadoop before 3.4.2, does not
decide who was first. Source: org.apache.nutch.util.LockUtil.
"""

from __future__ import annotations

import fcntl
import logging
import os
import re
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Final, Self, TypeVar

from minutch.errors import LockedError, StoreError
from minutch.hadoop.formats.javahash import date_time_to_string
from minutch.paths import StorePath

log = logging.getLogger(__name__)

LOCK_NAME = ".locked"
_LONGEST = 1024
"""Bytes that are read of a lock file."""
_OPEN: Final = os.O_RDWR | os.O_NOFOLLOW
"""A link in the place of a lock would have any file overwritten."""
_OWNER: Final = re.compile(r"([0-9]{1,9}) (\S+) ([0-9]{1,18})\s*")
_CANDIDATE: Final = re.compile(rf"{re.escape(LOCK_NAME)}\.([0-9]{{1,9}})-.*")
_LOOK: Final = 0.2
"""Seconds between two looks at a lock that is waited for."""

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Owner:
    """The process that holds a lock."""

    pid: int
    host: str
    started: int

    @classmethod
    def current(cls) -> Self:
        """Returns this process as an owner."""
        return cls(os.getpid(), os.uname().nodename, _start_time(os.getpid()))

    @classmethod
    def parse(cls, text: str) -> Self | None:
        """Returns the owner that a lock file names; None if it names none."""
        match = _OWNER.fullmatch(text)
        return None if match is None else cls(int(match[1]), match[2], int(match[3]))

    def is_gone(self) -> bool:
        """True if the process no longer runs: it was on this host; its pid is free or reused."""
        if not self.is_here:
            return False
        try:
            os.kill(self.pid, 0)  # signal 0 only asks
        except ProcessLookupError:
            return True
        except PermissionError:  # it runs, as another user
            pass
        # The pid may have been reused.
        return bool(self.started) and _start_time(self.pid) not in {0, self.started}

    @property
    def is_here(self) -> bool:
        """True if it runs, or ran, on this host."""
        return self.host == os.uname().nodename

    @property
    def is_alive(self) -> bool:
        """True if it is another process that runs on this host: it may be waited for."""
        return self.is_here and self.pid != os.getpid() and not self.is_gone()

    @property
    def content(self) -> bytes:
        """Returns the content of its lock file."""
        return f"{self.pid} {self.host} {self.started}\n".encode()

    def __str__(self) -> str:
        return f"process {self.pid} on {self.host}"


def _start_time(pid: int) -> int:
    """Returns when a process began, in clock ticks since boot; 0 if the machine does not say."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
        # Field 22 of proc(5). The name in parentheses may have blanks and parentheses itself.
        return int(stat.rpartition(")")[2].split()[19])
    except (OSError, IndexError, ValueError):
        return 0


@contextmanager
def lock(directory: Path, force: bool = False, wait: float = 0) -> Iterator[Path]:
    """Holds the lock of the database at `directory` (made if missing); yields the lock file,
    deletes it at the end.

    Raises LockedError, naming the owner, if somebody else holds it: after `wait` seconds if that is
    a process that runs on this host, else at once. With `force` the lock is taken over all the
    same.
    """
    directory.mkdir(parents=True, exist_ok=True)
    path = directory / LOCK_NAME
    if isinstance(path, StorePath):
        with _lock_in_store(path, force, wait):
            yield path
        return
    descriptor = _patiently(lambda: _acquire(path, force), wait)
    try:
        yield path
    finally:
        if _is_at(descriptor, path):  # else somebody forced us out, or the directory is gone
            path.unlink(missing_ok=True)
        os.close(descriptor)


def holder(directory: Path) -> Owner | None:
    """Returns the running process of this host that has the lock of a folder, or None."""
    try:
        found = Owner.parse((directory / LOCK_NAME).read_text("utf-8", "replace"))
    except OSError:
        return None
    return found if found is not None and found.is_here and not found.is_gone() else None


class _HeldError(LockedError):
    """The lock is held by this owner."""

    def __init__(self, path: Path, owner: Owner | None, since: float | None) -> None:
        named = str(owner or "an unknown owner (perhaps Nutch)")
        when = "" if since is None else f" since {date_time_to_string(round(since * 1000))} UTC"
        super().__init__(f"lock file {path} already exists, held by {named}{when}")
        self.is_alive = owner is not None and owner.is_alive


def _patiently(acquire: Callable[[], T], wait: float) -> T:
    """Acquires a lock, and waits for it as long as its owner is a process that runs here."""
    end = time.monotonic() + wait
    for attempt in count():
        try:
            return acquire()
        except _HeldError as exc:
            if not exc.is_alive or time.monotonic() >= end:
                raise
            if not attempt:
                log.warning("waiting for it, at most %g s (minutch.lock.wait): %s", wait, exc)
            time.sleep(_LOOK)
    raise AssertionError("counted to the end")


def _acquire(path: Path, force: bool) -> int:
    """Returns the descriptor of the lock file, locked and with our name in it."""
    if path.is_dir():
        raise StoreError(f"lock file {path} already exists and is a directory")
    for left in left_candidates(path.parent):
        left.unlink(missing_ok=True)
    candidate = path.with_name(f"{LOCK_NAME}.{os.getpid()}-{threading.get_ident()}")
    descriptor = os.open(candidate, _OPEN | os.O_CREAT | os.O_TRUNC, 0o644)
    try:
        _lock_file(descriptor)
        _write_owner(descriptor)
        while True:
            try:
                os.link(candidate, path)  # only if there is none
                return descriptor
            except FileExistsError:
                taken = _take_over(path, force)
            if taken is not None:
                os.close(descriptor)
                return taken
    except BaseException:
        os.close(descriptor)
        raise
    finally:
        candidate.unlink(missing_ok=True)


def left_candidates(folder: Path) -> list[Path]:
    """Returns what processes left that were killed while they asked for the lock of a folder."""
    here = Owner.current().host
    found = ((path, _CANDIDATE.fullmatch(path.name)) for path in folder.glob(f"{LOCK_NAME}.*"))
    return [path for path, match in found if match and Owner(int(match[1]), here, 0).is_gone()]


def _take_over(path: Path, force: bool) -> int | None:
    """Returns the descriptor of a dead owner's file, which is ours now; None if there is no file
    any more.

    Raises LockedError for any other owner's; with `force` such a file is removed.
    """
    try:
        descriptor = os.open(path, _OPEN)
    except FileNotFoundError:
        return None
    try:
        is_free = _lock_file(descriptor)
        if is_free and not _is_at(descriptor, path):
            return None  # its owner removed it meanwhile
        holder = Owner.parse(os.pread(descriptor, _LONGEST, 0).decode("utf-8", "replace"))
        since = os.fstat(descriptor).st_mtime
        # An owner on this host that does not hold the system's lock is gone.
        if is_free and holder is not None and holder.is_here:
            log.warning("taking over lock %s: its owner, %s, is gone", path, holder)
            _write_owner(descriptor)
            taken, descriptor = descriptor, -1  # keep it open
            return taken
    finally:
        if descriptor >= 0:
            os.close(descriptor)
    if not force:
        raise _HeldError(path, holder, since)
    log.warning(
        "ignoring lock %s held by %s (-force)", path, holder or "an unknown owner (perhaps Nutch)"
    )
    path.unlink(missing_ok=True)
    return None


def _lock_file(descriptor: int) -> bool:
    """Takes the system's lock on a file; returns False if another process has it."""
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True


def _write_owner(descriptor: int) -> None:
    text = Owner.current().content
    os.pwrite(descriptor, text, 0)
    os.ftruncate(descriptor, len(text))
    os.fsync(descriptor)  # an empty file, which a power cut may leave, is nobody's


def _is_at(descriptor: int, path: Path) -> bool:
    """Returns True if the name still belongs to the open file."""
    try:
        return os.path.samestat(os.fstat(descriptor), path.stat())
    except OSError:
        return False


# -- on file systems of Hadoop ---------------------------------------------------------------------


@contextmanager
def _lock_in_store(path: StorePath, force: bool, wait: float) -> Iterator[None]:
    """Locks by the file alone, in a remote store."""
    own = Owner.current().content

    def create() -> None:
        while True:
            try:
                path.create(own)
                return
            except FileExistsError:
                _take_out(path, force)

    _patiently(create, wait)
    try:
        yield
    finally:
        if _content(path) == own:  # else somebody forced us out
            path.unlink(missing_ok=True)


def _take_out(path: StorePath, force: bool) -> None:
    """Removes the lock of a dead owner, or with `force` any. Raises LockedError."""
    content = _content(path)
    if content is None:
        return
    holder = Owner.parse(content.decode("utf-8", "replace"))
    is_gone = holder is not None and holder.is_gone()
    if not is_gone and not force:
        raise _HeldError(path, holder, None)
    log.warning(
        "taking over lock %s: its owner, %s, is gone" if is_gone else "ignoring lock %s held by %s",
        path,
        holder,
    )
    aside = path.with_name(f"{LOCK_NAME}.{os.getpid()}-{threading.get_ident()}")
    try:
        path.rename(aside)
    except FileNotFoundError:
        return
    if _content(aside) == content:
        aside.unlink()
    else:  # of another process, which was faster
        aside.rename(path)


def _content(path: StorePath) -> bytes | None:
    """Reads a lock file; None if there is none."""
    try:
        return bytes(path.read_range(0, _LONGEST))
    except FileNotFoundError:
        return None
