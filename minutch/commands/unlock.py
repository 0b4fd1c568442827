"""Removes the locks of a crawl folder or database whose owners no longer run.

A lock of a running process stays. One of another machine or without an owner (Nutch writes such)
can't be judged from here: -force removes it, too.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from minutch.commands.arguments import Flag, parse
from minutch.errors import LockedError, StoreError
from minutch.job import JobContext
from minutch.work.tables.lock import LOCK_NAME, Owner

USAGE = """unlock <crawl_dir or database> ... [-force]
  <crawl_dir or database>  its lock, and those of the databases and segments in it
  -force                   also remove locks of other machines, of unknown owners and of running \
processes"""

FLAGS = (Flag("-force"),)


def run(args: list[str], context: JobContext) -> int:
    """The command: 0 if no lock is left. Raises LockedError for the first that is."""
    arguments = parse(args, FLAGS, usage=USAGE, least=1)
    left = []
    for folder in map(Path, arguments.positional):
        if not folder.is_dir():
            raise StoreError(f"{folder}: no such folder")
        locks = list(_locks(folder))
        if not locks:
            context.print(f"{folder}: not locked")
        for path in locks:
            left += _unlock(path, context, force=arguments["-force"])
    if left:
        raise LockedError(
            "; ".join(left),
            hint="-force removes them all the same: make sure that nobody is at work",
        )
    return 0


def _locks(folder: Path) -> Iterator[Path]:
    """Yields the lock files of a folder and of those in it, two levels down (segments of a crawl,
    the fetcher's in them).
    """
    for pattern in ("", "*/", "*/*/", "*/*/*/"):
        yield from sorted(folder.glob(f"{pattern}{LOCK_NAME}"))


def _unlock(path: Path, context: JobContext, *, force: bool) -> list[str]:
    """Removes a lock; returns the reason if it has to stay."""
    owner = Owner.parse(path.read_text(encoding="utf-8", errors="replace"))
    if force or (owner is not None and owner.is_gone()):
        path.unlink(missing_ok=True)
        context.print(f"{path}: removed, it was held by {owner or 'an unknown owner'}")
        return []
    return [f"{path} is held by {owner or 'an unknown owner (perhaps Nutch)'}"]
