"""What commands that look at a crawl, or mend it, do besides calling their job."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from minutch.commands.arguments import Arguments
from minutch.errors import LockedError, StoreError
from minutch.job import JobContext
from minutch.terminal import counted
from minutch.work.tables.lock import LOCK_NAME, Owner

if TYPE_CHECKING:
    from minutch.inspect.report.reportfile import Report


def report(made: Report, arguments: Arguments, context: JobContext) -> int:
    """Says what the report is about."""
    urls, rounds = made.facts.total("urls") or 0, made.facts.total("rounds") or 0
    context.print(f"{made.file}: {counted(urls, 'URLs')}, {counted(rounds, 'rounds')}")
    return 0


def fsck(arguments: Arguments, context: JobContext) -> int:
    """Exit code 0 if nothing is wrong, or nothing any more; otherwise 1."""
    if arguments["-drop"] and not arguments["-repair"]:
        arguments.fail("-drop is for -repair")
    result = arguments.call(context)
    context.report("fsck", result.counters)
    return 1 if result.left else 0


def unlock(arguments: Arguments, context: JobContext) -> int:
    """Removes locks whose owners no longer run. A lock of a running process stays; one of another
    machine or without an owner (Nutch writes such) can't be judged from here: -force removes it,
    too. Raises LockedError if one is left.
    """
    left = []
    for folder in arguments["folder"]:
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
            hint="-force removes them all the same: make sure that no job is running",
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
