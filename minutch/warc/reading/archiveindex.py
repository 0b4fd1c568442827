"""The index of a set of archives, made once and kept as long as they don't change; visits found by
it.

    archives-<hash of names, sizes and times>.sqlite        in the folder for what outlasts a round

CDXJ files say where records lie, so the archives that they name are not read for the index.
"""

from __future__ import annotations

import logging
import sqlite3
from collections.abc import Iterable, Iterator
from contextlib import closing
from hashlib import blake2b
from pathlib import Path

from minutch.errors import StoreError
from minutch.terminal import counted
from minutch.warc.reading.archivefiles import ArchiveFile, IndexFile, OpenArchives, find_archives
from minutch.warc.reading.bytesource import RecordPosition
from minutch.warc.reading.cdxjlookup import entries_of
from minutch.warc.reading.visitindex import VisitIndex, resolved
from minutch.warc.reading.visits import Visit, VisitKind
from minutch.work.tables.workfolders import work_folder

log = logging.getLogger(__name__)


class ArchiveIndex:
    """Finds visits in archives, whatever order they came in."""

    def __init__(self, index: VisitIndex, most: int) -> None:
        """`most`: bytes of a record's block that are read."""
        self._index, self._archives = index, OpenArchives(most)

    def newest(self, url: str, until: int) -> Visit | None:
        """Returns the newest visit to `url` up to `until` (ms), with its content; None if there is
        none.
        """
        for archive, place in self._index.newest(url, until):
            visit = self._archives.visit_at(archive, place)
            if visit is not None and visit.kind is VisitKind.SAME and not self._resolve(visit):
                continue
            if visit is not None and visit.kind is not VisitKind.NOT_MODIFIED:
                return visit
        return None

    def _resolve(self, visit: Visit) -> bool:
        found = self._index.named(visit.refers_to)
        return found is not None and resolved(visit, self._archives.visit_at(*found))

    def close(self) -> None:
        """Closes all files."""
        self._archives.close()
        self._index.close()


def open_index(paths: Iterable[Path], folder: Path, most: int) -> ArchiveIndex:
    """Returns the index of the archives at `paths`, made in `folder` if it is not there.
    StoreError, FormatError.
    """
    archives = list(find_archives(paths))
    path = folder / f"archives-{_fingerprint(archives)}.sqlite"
    if not path.exists():
        _make(archives, path)
    try:
        return ArchiveIndex(VisitIndex(path), most)
    except sqlite3.Error as exc:
        log.warning("%s: can't be read, made anew: %s", path, exc)
        _make(archives, path)
        return ArchiveIndex(VisitIndex(path), most)


def _fingerprint(archives: Iterable[ArchiveFile | IndexFile]) -> str:
    digest = blake2b(digest_size=8)
    for archive in archives:
        state = archive.path.stat()
        text = f"{archive}\0{archive.path.resolve()}\0{state.st_size}\0{state.st_mtime_ns}\0"
        digest.update(text.encode(errors="replace"))
    return digest.hexdigest()


def _make(archives: Iterable[ArchiveFile | IndexFile], path: Path) -> None:
    """Reads all archives and puts the index in its place."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with work_folder(path.parent, ".archives-") as work:
            new = work / path.name
            index = VisitIndex(new, create=True)
            count = 0
            for archive in archives:
                log.info("reading %s for the index", archive.path)
                rows = _lines(archive) if isinstance(archive, IndexFile) else _visits(archive)
                for where, place, url, time, names in rows:
                    index.add(where, place, url, time)
                    index.name(where, place, names)
                    count += 1
            index.commit()
            index.close()
            new.replace(path)
        log.info("%s: %s", path, counted(count, "visits"))
    except (sqlite3.Error, OSError) as exc:
        raise StoreError(f"{path}: the index of the archives can't be written: {exc}") from exc


_Row = tuple[ArchiveFile, RecordPosition, str, int, list[str]]


def _visits(archive: ArchiveFile) -> Iterator[_Row]:
    with closing(archive.open()) as opened:
        for visit in opened.visits():
            if isinstance(visit, Visit):
                yield archive, visit.place, visit.url, visit.time, visit.names


def _lines(index: IndexFile) -> Iterator[_Row]:
    for found in entries_of(index):
        if found is not None:
            archive, entry = found
            yield (
                archive,
                RecordPosition(entry.offset),
                entry.url,
                entry.time,
                [entry.digest] if entry.is_original else [],
            )
