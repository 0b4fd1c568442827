"""Finds what killed jobs left in a crawl: work folders, half-installed databases, locks, unfinished
rounds and fetches."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

from minutch.cycle.fetchlist.lists import RECORD as GENERATED
from minutch.cycle.segment.places import waiting
from minutch.cycle.segment.store import FETCHING, LAYOUTS, WARC, Segment
from minutch.inspect.fsck.problems import Problem, Remedy
from minutch.processwide import command_line
from minutch.work.tables.install import CURRENT, NEW, SPILL, beside, left_over
from minutch.work.tables.lock import LOCK_NAME, Owner, holder, left_candidates

ROUND: Final = ".round"
"""The record that `minutch crawl` keeps while a round runs."""
_LOGS_OF_DONE: Final = "_fetch-done"


def locks(place: Path) -> Iterator[Problem]:
    """Yields the lock of a folder, and files of killed processes that waited for it."""
    path = place / LOCK_NAME
    if path.is_file():
        owner = Owner.parse(path.read_text(encoding="utf-8", errors="replace"))
        if owner is None:
            yield Problem(
                path,
                "locked by an unknown owner, perhaps Nutch:"
                f" `{command_line('unlock -force')}` if nobody is at work",
            )
        elif owner.is_gone():
            yield Problem(path, f"the lock of {owner}, which no longer runs", Remedy.REMOVE)
        else:
            yield Problem(path, f"in use by {owner}")
    for asked in sorted(left_candidates(place)):
        yield Problem(asked, "left by a process that no longer runs", Remedy.REMOVE)


def in_database(database: Path, names: Sequence[str] = (CURRENT,)) -> Iterator[Problem]:
    """Yields leftovers in the folder of a database, or of several with these names."""
    for prefix in (NEW, SPILL):
        yield from _work_folders(database, prefix)
    for name in names:
        others = list(beside(database, name))
        if name == CURRENT and not any(path.exists() for path in (database / name, *others)):
            yield Problem(database / name, "missing: its records are lost")
        for path in others:
            if path.exists() and (database / name).exists():
                yield Problem(
                    path,
                    "left by a job that was killed while it put a new database in place",
                    Remedy.REMOVE,
                )
            elif path.exists():
                yield Problem(
                    path,
                    "complete, but not in place: any job that writes the database makes it"
                    f" `{name}`",
                )
    if (database / GENERATED).exists():
        yield Problem(
            database / GENERATED, "generate was stopped before its marks: the next one makes them"
        )


def in_segments(folder: Path) -> Iterator[Problem]:
    """Yields entries of a folder of segments that are no segments."""
    yield from _work_folders(folder, NEW)
    for path in waiting(folder):
        yield Problem(
            path,
            "whole segments of a job that was killed before all were in their places",
            Remedy.PLACE,
        )
    for path in sorted(folder.iterdir()):
        if path.is_dir() and not path.name.startswith((".", "_")) and not any(path.iterdir()):
            yield Problem(path, "an empty segment", Remedy.REMOVE)


def in_segment(segment: Segment) -> Iterator[Problem]:
    """Yields leftovers in a segment, and what is not finished there."""
    yield from _work_folders(segment.path, NEW)
    if segment.is_half_fetched():
        yield Problem(
            segment.path / FETCHING,
            f"the fetch is not finished: `{command_line('fetch')}` goes on with it",
        )
    if (segment.path / _LOGS_OF_DONE).is_dir():
        yield Problem(
            segment.path / _LOGS_OF_DONE, "the logs of a fetch that is done", Remedy.REMOVE
        )
    for path in sorted(segment.path.iterdir()):
        if not path.name.startswith((".", "_")) and path.name not in (*LAYOUTS, WARC):
            yield Problem(path, "not a folder of a segment")


def in_crawl(crawl: Path) -> Iterator[Problem]:
    """Yields what a round of `minutch crawl` left."""
    if (crawl / ROUND).exists() and holder(crawl) is None:
        yield Problem(
            crawl / ROUND, f"a round is not finished: `{command_line('crawl')}` goes on with it"
        )
    if (crawl / f"{ROUND}.new").exists():
        yield Problem(crawl / f"{ROUND}.new", "a record that was not finished", Remedy.REMOVE)


def checksums(folder: Path) -> Iterator[Problem]:
    """Yields checksums of files that are missing, in `folder` and below, and work folders of such
    files.
    """
    for path in sorted(folder.rglob(".*.crc")):
        if not (path.parent / path.name[1:-4]).exists():
            yield Problem(path, "checksums of a file that is not there", Remedy.REMOVE)
    for path in sorted(folder.rglob("[!.]*")):
        if path.is_file():
            yield from _work_folders(path.parent, f".{path.name}-")


def _work_folders(place: Path, prefix: str) -> Iterator[Problem]:
    for path in left_over(place, prefix):
        yield Problem(path, "the work folder of a process that no longer runs", Remedy.REMOVE)
