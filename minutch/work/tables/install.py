"""Folders and files that appear whole or not at all: written beside their place, and put into it
when they are complete.

    <db>/current            the database
    <db>/old                the one before, where a backup is kept
    <db>/.new-…             being written; never read
    <db>/.spill-…           what a job keeps on disk for want of memory
    <db>/.next              complete, not yet in place
    <db>/.previous          taken out of its place, about to become `old` or to be deleted

    .new-…, .spill-…        prefix, then: <pid>-<start time of the process>-<host>.<number>

A directory of a database is replaced so that at every instant the old or the new one is whole and
found. A folder that holds several databases has them under names of their own instead of `current`;
what belongs to such a name has it appended (`.next-NAME`), and there is no backup.

Where the system can swap two names at once (Linux's renameat2), `current` never misses. Elsewhere
it does for the instant between two renames; `recover` then finds `.next` complete and puts it in
place. HDFS renames a folder in one step, too; for file systems that copy instead see `StorePath`.

A process that is killed leaves the folders that it worked in. Whoever makes one with the same
prefix in the same place removes those whose process is gone; those of other hosts stay.

A `WholeFile` replaces a file that is there before. Its checksum sibling, if it is to have one,
comes with it: at any instant the file has its own sums or none.

The empty file `_SUCCESS` that Hadoop's jobs leave in a finished output folder, for programs that
wait for one, is off unless `mapreduce.fileoutputcommitter.marksuccessfuljobs` is true, and then
only where Nutch does not switch it off itself, which it does for most databases: inject, updatedb,
dedup, mergelinkdb, webgraph, linkrank, HostDb, sitemap and the statistics have no mark. Source:
org.apache.hadoop.mapreduce.lib.output.FileOutputCommitter.
"""

from __future__ import annotations

import logging
import os
import re
import shutil
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from itertools import count
from pathlib import Path
from typing import Final

from minutch.conf import Configuration
from minutch.errors import StoreError
from minutch.hadoop.formats.checksum import ChecksumWriter, WholeOrNothing, crc_path
from minutch.paths import StorePath, copies, is_local
from minutch.work.tables.lock import Owner

log = logging.getLogger(__name__)

_numbers = count()
"""No name comes twice in a process: one that a folder has left is still cleared away at its end."""
_NAME = re.compile(r"(\d+)(?:-(\d+)-(.+?)(?:\.\d+)?)?")


def make_folder(parent: Path, prefix: str) -> Path:
    """Returns a new, empty folder of this process in `parent`, after those of dead processes have
    been removed.
    """
    clear(parent, prefix)
    parent.mkdir(parents=True, exist_ok=True)
    path = own_name(parent, prefix)
    path.mkdir()
    return path


def own_name(parent: Path, prefix: str) -> Path:
    """Returns a name in `parent` for a folder of this process that no other folder has."""
    # With the process's start: a number may be another process's by now.
    owner = Owner.current()
    return parent / f"{prefix}{owner.pid}-{owner.started}-{owner.host}.{next(_numbers)}"


@contextmanager
def work_folder(parent: Path, prefix: str) -> Iterator[Path]:
    """Makes a folder like `make_folder`, and removes it at the end if it is still there."""
    path = make_folder(parent, prefix)
    try:
        yield path
    finally:
        remove(path)


def remove(path: Path) -> None:
    """Removes a folder and what is in it, at the second try if need be; warns if it stays."""
    for _ in range(2):
        if path.exists():
            with suppress(OSError):
                remove_tree(path)
    if path.exists():
        log.warning("%s can't be removed; the next job tries again", path)


def remove_tree(path: Path) -> None:
    """Removes a folder and what is in it. Raises OSError."""
    if isinstance(path, StorePath):
        path.remove_tree()
    else:
        shutil.rmtree(path)


def left_over(parent: Path, prefix: str) -> list[Path]:
    """Returns the folders with `prefix` in `parent` whose processes are gone."""
    found = (
        (path for path in parent.glob(f"{prefix}*") if path.is_dir())
        if parent.is_dir()
        else iter(())
    )
    return sorted(path for path in found if _is_left(path.name.removeprefix(prefix)))


def clear(parent: Path, prefix: str) -> None:
    """Removes the folders with `prefix` in `parent` whose processes are gone."""
    for path in left_over(parent, prefix):
        remove(path)


def _is_left(name: str) -> bool:
    match = _NAME.fullmatch(name)  # another program's
    if match is None:
        return False
    here = Owner.current().host
    return Owner(int(match[1]), match[3] or here, int(match[2] or 0)).is_gone()


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
    return make_folder(database, NEW)


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
    _put_in_order(database, name)  # a killed job may have left a complete `.next`
    if copies(database) and copies(new):
        if name == CURRENT and (not keep_old or (database / name).exists()):
            remove(database / OLD)
        old = database / OLD if keep_old and name == CURRENT else None
        database.begin_moves([(database / name, old), (new, database / name)])
        return
    sync_tree(new)  # complete on disk before any name leads to it
    current = database / name
    next_, previous = beside(database, name)
    # From here on it is found by `recover`, whatever happens.
    new.rename(next_)
    if not current.exists():
        next_.rename(current)
    elif _exchange(next_, current):  # `current` never misses
        next_.rename(previous)
    else:
        current.rename(previous)
        next_.rename(current)
    sync_path(database)
    if name == CURRENT:
        _retire(database, keep_old)
    elif previous.exists():
        remove_tree(previous)


def discard(database: Path, new: Path) -> None:
    """Removes a new directory that did not get into its place in `database`, unless it is being
    moved.
    """
    if not copies(database) or not database.has_moves():
        remove(new)


def recover(database: Path, names: Iterable[str] = (CURRENT,)) -> None:
    """Finishes or clears away what killed jobs left behind; only the holder of the lock may call
    it.
    """
    for name in names:
        _put_in_order(database, name)
    for prefix in (NEW, SPILL):
        clear(database, prefix)


def _put_in_order(database: Path, name: str) -> None:
    """Finishes or undoes an `install` that was interrupted."""
    if copies(database):
        database.resume_moves()
        return
    current = database / name
    next_, previous = beside(database, name)
    if not current.exists():
        for candidate in (next_, previous):  # `.next` is complete: only `install` gives that name
            if candidate.exists():
                candidate.rename(current)
                break
    for leftover in (next_, previous):
        if leftover.exists():
            remove_tree(leftover)


def _retire(database: Path, keep_old: bool) -> None:
    old, previous = database / OLD, database / PREVIOUS
    if previous.exists() or not keep_old:
        with suppress(OSError):
            remove_tree(old)
    if previous.exists():
        if keep_old:
            previous.rename(old)
        else:
            remove_tree(previous)


def _exchange(first: Path, second: Path) -> bool:
    """Swaps the names of two directories at once; False where the system can't."""
    if not is_local(first):
        return False
    import ctypes

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
    # Their parents get new names, which are synced below.
    missing = [place for place in (path, *path.parents) if not place.exists()]
    path.mkdir(parents=True, exist_ok=True)
    for place in reversed(missing):
        sync_path(place.parent)


def sync_path(path: Path) -> None:
    """Syncs a directory: its names are on disk when this returns. Hadoop's file systems see to that
    themselves.
    """
    if not is_local(path):
        return
    # fsync of a directory: that of its files does not bring their names to disk.
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    except OSError as exc:
        raise StoreError(f"can't write {path} to disk: {exc}") from exc
    finally:
        os.close(descriptor)


def sync_tree(path: Path) -> None:
    """Syncs `path` and every file and directory below it."""
    if not is_local(path):
        return
    for directory, _, names in os.walk(path):
        for name in names:
            sync_path(Path(directory, name))
        sync_path(Path(directory))


class WholeFile(WholeOrNothing):
    """A new file at `path`; the folders above it are made. `sums`: with a `.crc` sibling, as
    Hadoop's files have.
    """

    def __init__(self, path: Path, *, sums: bool) -> None:
        """Raises OSError where it can't be written."""
        self.path = path
        make_directory(path.parent)
        self._folder = make_folder(path.parent, f".{path.name}-")
        new = self._folder / path.name
        try:
            self._file = ChecksumWriter(new) if sums else new.open("wb")
        except BaseException:
            remove(self._folder)
            raise

    def write(self, data: bytes) -> None:
        """Appends bytes."""
        self._file.write(data)

    def close(self) -> None:
        """Puts the file in its place; if that fails, leave what was there before."""
        try:
            self._file.close()
            sync_tree(self._folder)
            new = self._folder / self.path.name
            # First: no sums for an instant, rather than those of the old file.
            crc_path(self.path).unlink(missing_ok=True)
            new.replace(self.path)
            if crc_path(new).exists():
                crc_path(new).replace(crc_path(self.path))
            self._folder.rmdir()
            sync_path(self.path.parent)
        except BaseException:
            self.discard()
            raise

    def discard(self) -> None:
        """Leaves what was there before."""
        with suppress(OSError):
            self._file.close()
        remove(self._folder)


PROPERTY: Final = "mapreduce.fileoutputcommitter.marksuccessfuljobs"
SUCCESS: Final = "_SUCCESS"


def mark_success(conf: Configuration, folder: Path) -> None:
    """Writes the mark into `folder`, which is complete, if the configuration asks for it."""
    if conf.get_boolean(PROPERTY):
        with ChecksumWriter(folder / SUCCESS):
            pass
