"""Replace a directory of a database so that at every instant the old or the new one is whole and
found.

    <db>/current            the database
    <db>/old                the one before, where a backup is kept
    <db>/.new-…             being written; never read (`workfolders` has the names)
    <db>/.spill-…           what a job keeps on disk for want of memory
    <db>/.next              complete, not yet in place
    <db>/.previous          taken out of its place, about to become `old` or to be deleted

A folder that holds several databases has them under names of their own instead of `current`;
what belongs to such a name has it appended (`.next-NAME`), and there is no backup.

Where the system can swap two names at once (Linux's renameat2), `current` never misses. Elsewhere
it does for the instant between two renames; `recover` then finds `.next` complete and puts it in
place. HDFS renames a folder in one step, too; for file systems that copy instead see `journal`.
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from minutch.errors import StoreError
from minutch.hadoop.stores import copies, is_local
from minutch.work.tables import journal, workfolders

CURRENT = "current"
OLD = "old"
NEXT = ".next"
PREVIOUS = ".previous"
NEW = ".new-"
SPILL = ".spill-"

_AT_FDCWD = -100
_RENAME_EXCHANGE = 2


def new_directory(database: Path) -> Path:
    """Returns an empty directory beside `current` for a new database to be written into."""
    return workfolders.make_folder(database, NEW)


def beside(database: Path, name: str = CURRENT) -> tuple[Path, Path]:
    """Returns the paths that hold the next and the previous database while one replaces the
    other.
    """
    suffix = "" if name == CURRENT else f"-{name}"
    return database / f"{NEXT}{suffix}", database / f"{PREVIOUS}{suffix}"


def install(database: Path, new: Path, *, keep_old: bool, name: str = CURRENT) -> None:
    """Makes `new` (a complete directory in `database`) the database; the one before becomes `old`
    or goes away.
    """
    _put_in_order(database, name)
    if copies(database) and copies(new):
        if name == CURRENT and (not keep_old or (database / name).exists()):
            workfolders.remove(database / OLD)
        old = database / OLD if keep_old and name == CURRENT else None
        journal.begin(database, [(database / name, old), (new, database / name)])
        return
    sync_tree(new)
    current = database / name
    next_, previous = beside(database, name)
    new.rename(next_)
    if not current.exists():
        next_.rename(current)
    elif _exchange(next_, current):
        next_.rename(previous)
    else:
        current.rename(previous)
        next_.rename(current)
    sync_path(database)
    if name == CURRENT:
        _retire(database, keep_old)
    elif previous.exists():
        workfolders.remove_tree(previous)


def discard(database: Path, new: Path) -> None:
    """Removes a new directory that did not get into its place in `database`, unless it is on its
    way.
    """
    if not copies(database) or not (database / journal.JOURNAL).exists():
        workfolders.remove(new)


def recover(database: Path, names: Iterable[str] = (CURRENT,)) -> None:
    """Finishes or clears away what killed jobs left behind; only the holder of the lock may call
    it.
    """
    for name in names:
        _put_in_order(database, name)
    for prefix in (NEW, SPILL):
        workfolders.clear(database, prefix)


def _put_in_order(database: Path, name: str) -> None:
    """Finishes or undoes an `install` that was interrupted."""
    if copies(database):
        journal.resume(database)
        return
    current = database / name
    next_, previous = beside(database, name)
    if not current.exists():
        for candidate in (next_, previous):
            if candidate.exists():
                candidate.rename(current)
                break
    for leftover in (next_, previous):
        if leftover.exists():
            workfolders.remove_tree(leftover)


def _retire(database: Path, keep_old: bool) -> None:
    old, previous = database / OLD, database / PREVIOUS
    if previous.exists() or not keep_old:
        with suppress(OSError):
            workfolders.remove_tree(old)
    if previous.exists():
        if keep_old:
            previous.rename(old)
        else:
            workfolders.remove_tree(previous)


def _exchange(first: Path, second: Path) -> bool:
    """Swaps the names of two directories at once; False where the system can't."""
    if not is_local(first):
        return False
    try:
        rename = ctypes.CDLL(None, use_errno=True).renameat2
    except (AttributeError, OSError):
        return False
    return bool(
        rename(_AT_FDCWD, os.fsencode(first), _AT_FDCWD, os.fsencode(second), _RENAME_EXCHANGE) == 0
    )


def make_directory(path: Path) -> None:
    """Makes a directory and what is missing above it; on disk when this returns."""
    if not is_local(path):
        path.mkdir(parents=True, exist_ok=True)
        return
    missing = [place for place in (path, *path.parents) if not place.exists()]
    path.mkdir(parents=True, exist_ok=True)
    for place in reversed(missing):
        sync_path(place.parent)


def sync_path(path: Path) -> None:
    """fsync a directory: its names are on disk when this returns. File systems of Hadoop see to
    that themselves.
    """
    if not is_local(path):
        return
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    except OSError as exc:
        raise StoreError(f"can't write {path} to disk: {exc}") from exc
    finally:
        os.close(descriptor)


def sync_tree(path: Path) -> None:
    """fsync every file and directory below `path`, and itself."""
    if not is_local(path):
        return
    for directory, _, names in os.walk(path):
        for name in names:
            sync_path(Path(directory, name))
        sync_path(Path(directory))
