"""Folders that a job works in until its output is complete: hidden, named after their process, gone
when it is.

    <prefix><pid>-<start time of the process>-<host>.<number>

A process that is killed leaves its folders. Whoever makes one with the same prefix in the same
place removes those whose process is gone; those of other hosts stay.
"""

from __future__ import annotations

import logging
import re
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from itertools import count
from pathlib import Path

from minutch.hadoop.stores import StorePath
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
    """Returns a name in `parent` for a folder of this process, which no other folder has."""
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
    """Removes a folder and what is in it, at the second try if need be; a warning where it
    stays.
    """
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
    match = _NAME.fullmatch(name)
    if match is None:
        return False
    here = Owner.current().host
    return Owner(int(match[1]), match[3] or here, int(match[2] or 0)).is_gone()
