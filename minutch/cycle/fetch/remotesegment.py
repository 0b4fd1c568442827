"""A segment on a file system of Hadoop, fetched on this machine: its fetch list comes here, what is
fetched goes there.

The fetch's log needs a disk that keeps what was written when the machine dies; so the work lies in
a folder of this machine, whose name is made of the segment's. A fetch that was interrupted is gone
on with by the same user on the same machine. Meanwhile the segment there has a lock.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from hashlib import sha256
from pathlib import Path

from minutch.cycle.segment.store import CRAWL_GENERATE, FETCHED, LAYOUTS, WARC, Segment
from minutch.errors import StoreError
from minutch.hadoop.stores import is_local
from minutch.work.tables.lock import lock

_PIECE = 1 << 24


@contextmanager
def fetched_here(path: Path) -> Iterator[Path]:
    """Yields the folder to fetch a segment in; when the block ends its new parts are in the
    segment. On an error it stays.
    """
    if is_local(path):
        yield path
        return
    there = Segment(path)
    there.check()
    there.parts(CRAWL_GENERATE)
    with lock(path):
        here = folder_of(path) / path.name
        here.mkdir(parents=True, exist_ok=True)
        if not (here / CRAWL_GENERATE).is_dir():
            fresh = here / f".{CRAWL_GENERATE}"
            shutil.rmtree(fresh, ignore_errors=True)
            copy_folder(path / CRAWL_GENERATE, fresh)
            fresh.rename(here / CRAWL_GENERATE)
        for folder in FETCHED:
            if there.has(folder):
                (here / folder).mkdir(
                    exist_ok=True
                )  # which says that the segment is fetched already
        yield here
        if (here / WARC).is_dir():  # first: a segment that has its records is done
            copy_folder(here / WARC, path / WARC)
        made = [
            folder
            for folder in reversed(LAYOUTS)
            if folder != CRAWL_GENERATE and (here / folder).is_dir()
        ]
        with there.writing(sorted(made, key=FETCHED.__contains__)) as fresh_there:
            for folder in made:
                copy_folder(here / folder, fresh_there / folder)
    shutil.rmtree(here.parent)


def own_folder() -> Path:
    """Returns this user's folder for fetches on this machine. Raises StoreError if it is another
    user's.
    """
    own = Path(tempfile.gettempdir(), f"minutch-fetch-{os.getuid()}")
    own.mkdir(mode=0o700, exist_ok=True)
    if own.stat().st_uid != os.getuid() or own.is_symlink():
        raise StoreError(f"{own} is another's: nothing can be fetched in it")
    return own


def folder_of(path: Path, what: str = "") -> Path:
    """Returns the folder for a segment in `own_folder`, named by the segment's whole path, with
    `what` appended.
    """
    return own_folder() / f"{path.name}-{sha256(str(path).encode()).hexdigest()[:16]}{what}"


def copy_folder(source: Path, target: Path) -> None:
    """Copies a folder to or from another file system, without checksum siblings."""
    target.mkdir(exist_ok=True)
    for path in source.iterdir():
        if path.is_dir():
            copy_folder(path, target / path.name)
        elif not path.name.endswith(".crc"):
            with path.open("rb") as file, (target / path.name).open("wb") as copy:
                shutil.copyfileobj(file, copy, _PIECE)
