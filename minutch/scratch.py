"""Folders in the system's temporary folder: gone at the end, and of a process that was killed, when
the next is made.

A folder holds a file that is locked (flock) for as long as its process lives, or one that it
forked. Whoever makes a folder for the same purpose removes those of this user that nobody has
locked.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

_LOCK = ".lock"
_YOUNG = 60.0
"""Seconds for which a folder without a lock may still be getting one."""
_held: dict[Path, int] = {}
"""The descriptors of the lock files of this process's folders."""


@contextmanager
def scratch(purpose: str, directory: str | Path | None = None) -> Iterator[Path]:
    """A new, empty folder, removed at the end; `purpose` is a word of its name."""
    folder = make(purpose, directory)
    try:
        yield folder
    finally:
        remove(folder)


def make(purpose: str, directory: str | Path | None = None) -> Path:
    """Returns a new, empty folder for this user alone, in `directory` or the system's own."""
    import tempfile

    prefix = f"minutch-{purpose}-"
    parent = Path(directory or tempfile.gettempdir())
    for other in parent.glob(f"{prefix}*"):
        if _is_left(other):
            shutil.rmtree(other, ignore_errors=True)
    folder = Path(tempfile.mkdtemp(prefix=prefix, dir=parent))
    fresh = folder / f"{_LOCK}.new"
    descriptor = os.open(fresh, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
    with suppress(
        OSError
    ):  # a file system without locks: the folder of a killed process stays there
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        fresh.rename(folder / _LOCK)  # locked before it has the name by which others ask
    _held[folder] = descriptor
    return folder


def remove(folder: Path) -> None:
    """Removes a folder that `make` made, with all that is in it."""
    shutil.rmtree(folder, ignore_errors=True)
    if (descriptor := _held.pop(folder, None)) is not None:
        os.close(descriptor)


def _is_left(folder: Path) -> bool:
    """Returns whether a folder is this user's, and its process is gone."""
    try:
        found = folder.lstat()
        if folder.is_symlink() or found.st_uid != os.getuid():
            return False
        descriptor = os.open(folder / _LOCK, os.O_RDWR | os.O_NOFOLLOW)
    except FileNotFoundError:
        return (
            folder.is_dir() and not any(folder.iterdir()) and time.time() - found.st_mtime > _YOUNG
        )
    except OSError:
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        return True
    except OSError:
        return False
    finally:
        os.close(descriptor)
