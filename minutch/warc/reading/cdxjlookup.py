"""The archives that the lines of a CDXJ file lead to."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from typing import Final

from minutch.errors import FormatError, StoreError
from minutch.warc.reading.archivefiles import ArchiveFile, IndexFile, find_archives
from minutch.warc.reading.cdxjlines import CdxjLine, archive_of, read_entries

log = logging.getLogger(__name__)

MOST_SAID: Final = 100
"""Lines that lead nowhere which the log names one by one."""


def entries_of(index: IndexFile) -> Iterator[tuple[ArchiveFile, CdxjLine] | None]:
    """Yields the lines of a file with the archives that they lead to; None, and a warning, for one
    that leads nowhere.
    """
    archives: dict[str, ArchiveFile | None] = {}
    said = 0
    for number, entry in read_entries(index.path):
        archive, why = None, "no CDXJ line"
        if entry is not None:
            if entry.filename not in archives:
                archives[entry.filename] = _archive(index, entry.filename)
            archive, why = (
                archives[entry.filename],
                f"there is no archive {entry.filename} beside the index, nor where -archives says",
            )
        if entry is not None and archive is not None:
            yield archive, entry
            continue
        said += 1
        if said <= MOST_SAID:
            log.warning("%s, line %d: %s", index.path, number, why)
        yield None


def _archive(index: IndexFile, filename: str) -> ArchiveFile | None:
    path = archive_of(index.path, filename, index.folders)
    if path is None:
        return None
    try:
        found = next(find_archives([path]), None)
    except (FormatError, StoreError) as exc:
        log.warning("%s", exc)
        return None
    return found if isinstance(found, ArchiveFile) else None
