"""Indexes the visits of archives: by URL and time, and by the names that other visits refer to them
with. In SQLite.

    archive(number, path, grammar, compression, start, end, entry)
    visit(url, time, archive, offset, inner)         url and name are 64-bit hashes
    name(name, archive, offset, inner)               of visits with one name, the first
    later(visit, key), wanted(later, rank, name)     visits that wait for the ones that they refer
                                                     to; while importing

    archives-<hash of names, sizes and times>.sqlite        in the folder for what outlasts a round

It lies in a file, so memory does not grow with the archives; the file is of use as long as they are
not changed. CDXJ files say where records lie, so the archives that they name are not read for it.
"""

from __future__ import annotations

import logging
import pickle
import re
import sqlite3
from collections.abc import Iterable, Iterator
from contextlib import closing
from hashlib import blake2b
from pathlib import Path
from typing import Final

from minutch.errors import StoreError, UrlError
from minutch.terminal import counted
from minutch.warc.reading.archivefiles import (
    ArchiveFile,
    IndexFile,
    OpenArchives,
    entries_of,
    find_archives,
)
from minutch.warc.reading.bytesource import RecordPosition
from minutch.warc.reading.recordheads import ARC, WARC
from minutch.warc.reading.visits import Visit, VisitKind
from minutch.warc.warcfile import target_uri
from minutch.work.tables.install import work_folder

log = logging.getLogger(__name__)

_GRAMMARS: Final = {"warc": WARC, "arc": ARC}
_SCHEMA: Final = """
CREATE TABLE archive (number INTEGER PRIMARY KEY, path TEXT, grammar TEXT, compression TEXT,
                      start INTEGER, "end" INTEGER, entry TEXT);
CREATE TABLE visit (url INTEGER, time INTEGER, number INTEGER, archive INTEGER, offset INTEGER,
                    inner INTEGER, PRIMARY KEY (url, time, number)) WITHOUT ROWID;
CREATE TABLE name (name INTEGER PRIMARY KEY, archive INTEGER, offset INTEGER, inner INTEGER);
CREATE TABLE later (visit BLOB, key INTEGER);
CREATE TABLE wanted (later INTEGER, rank INTEGER, name INTEGER,
                     PRIMARY KEY (later, rank)) WITHOUT ROWID;
"""
_PUT_OFF: Final = """
SELECT later.visit, later.key, name.archive, name.offset, name.inner
FROM later LEFT JOIN name ON name.name =
    (SELECT wanted.name FROM wanted JOIN name USING (name)
     WHERE wanted.later = later.rowid ORDER BY rank LIMIT 1)
ORDER BY name.archive, name.offset, name.inner, later.rowid
"""

_HTTP: Final = re.compile(r"(?i)(https?)://([^/?#]*)([^#]*)")
_PORTS: Final = {"http": ":80", "https": ":443"}

Found = tuple[ArchiveFile, RecordPosition]


def url_key(url: str) -> str:
    """Reduces spellings of a page's URL to a common form: host in lower case, `/` for no path, …"""
    try:
        url = target_uri(url)
    except UrlError:
        return url
    found = _HTTP.match(url)
    if found is None:
        return url
    scheme, host, path = found[1].lower(), found[2].lower(), found[3]
    return (
        f"{scheme}://{host.removesuffix(_PORTS[scheme])}{'' if path.startswith('/') else '/'}{path}"
    )


def _hash(text: str) -> int:
    return int.from_bytes(
        blake2b(text.encode("utf-8", "surrogateescape"), digest_size=8).digest(), signed=True
    )


class VisitIndex:
    """The index in a file."""

    def __init__(self, path: Path, *, create: bool = False) -> None:
        """sqlite3.Error if it can't be opened."""
        self._db = sqlite3.connect(path, check_same_thread=False)
        self._added = 0
        if create:
            # A file that is made anew after a kill needs neither journal nor sync.
            self._db.execute("PRAGMA journal_mode=OFF")
            self._db.execute("PRAGMA synchronous=OFF")
            self._db.executescript(_SCHEMA)
        self._archives = dict(self._read_archives())
        self._numbers = {archive: number for number, archive in self._archives.items()}

    def _read_archives(self) -> Iterator[tuple[int, ArchiveFile]]:
        for number, path, grammar, compression, start, end, entry in self._db.execute(
            "SELECT * FROM archive"
        ):
            yield (
                number,
                ArchiveFile(Path(path), _GRAMMARS[grammar], compression, start, end, entry),
            )

    def _number_of(self, archive: ArchiveFile) -> int:
        number = self._numbers.get(archive)
        if number is None:
            number = len(self._numbers)
            self._numbers[archive], self._archives[number] = number, archive
            grammar = next(name for name, known in _GRAMMARS.items() if known is archive.grammar)
            row = (
                number,
                str(archive.path),
                grammar,
                archive.compression,
                archive.start,
                archive.end,
                archive.entry,
            )
            self._db.execute("INSERT INTO archive VALUES (?, ?, ?, ?, ?, ?, ?)", row)
        return number

    def add(self, archive: ArchiveFile, place: RecordPosition, url: str, time: int) -> int:
        """Puts a visit in; returns how many of its URL were there before."""
        key = _hash(url_key(url))
        (before,) = self._db.execute("SELECT count(*) FROM visit WHERE url = ?", (key,)).fetchone()
        row = (key, time, self._added, self._number_of(archive), place.offset, place.inner)
        self._added += 1
        self._db.execute("INSERT INTO visit VALUES (?, ?, ?, ?, ?, ?)", row)
        return int(before)

    def name(self, archive: ArchiveFile, place: RecordPosition, names: Iterable[str]) -> None:
        """Notes that other visits may refer to this one by `names`."""
        number = self._number_of(archive)
        rows = [(_hash(name), number, place.offset, place.inner) for name in names]
        # The first visit of a name stays.
        self._db.executemany("INSERT OR IGNORE INTO name VALUES (?, ?, ?, ?)", rows)

    def put_off(self, visit: Visit, key: int) -> None:
        """Keeps a visit that refers to another until all are known; `key`: who takes it up."""
        row = self._db.execute(
            "INSERT INTO later VALUES (?, ?)", (pickle.dumps(visit), key)
        ).lastrowid
        wanted = [(row, rank, _hash(name)) for rank, name in enumerate(visit.refers_to)]
        self._db.executemany("INSERT INTO wanted VALUES (?, ?, ?)", wanted)

    def put_off_visits(self) -> Iterator[tuple[Visit, int, Found | None]]:
        """Yields the visits that were put off, each with its original, in the originals' order."""
        for data, key, number, offset, inner in self._db.execute(_PUT_OFF):
            found = (
                None if number is None else (self._archives[number], RecordPosition(offset, inner))
            )
            yield pickle.loads(data), key, found

    def named(self, names: Iterable[str]) -> Found | None:
        """Returns the visit that one of `names` is for, the first that is known."""
        for name in names:
            query = "SELECT archive, offset, inner FROM name WHERE name = ?"
            for number, offset, inner in self._db.execute(query, (_hash(name),)):
                return self._archives[number], RecordPosition(offset, inner)
        return None

    def newest(self, url: str, until: int) -> Iterator[Found]:
        """Yields the visits to a URL, the newest first, none after `until` (ms)."""
        query = (
            "SELECT archive, offset, inner FROM visit WHERE url = ? AND time <= ? ORDER BY time"
            " DESC, number DESC"
        )
        for number, offset, inner in self._db.execute(query, (_hash(url_key(url)), until)):
            yield self._archives[number], RecordPosition(offset, inner)

    def commit(self) -> None:
        """Commits everything to the file."""
        self._db.commit()

    def close(self) -> None:
        """Closes the file."""
        self._db.close()


def resolved(visit: Visit, original: Visit | None) -> bool:
    """Gives a visit with "the same content" that content; False if `original` has none."""
    if original is None or (original.answer is None and not original.body):
        return False
    visit.body, visit.media_type, visit.truncated = (
        original.body,
        original.media_type,
        original.truncated,
    )
    if visit.answer is None:
        visit.answer = original.answer
    elif original.answer is not None:
        visit.answer.body, visit.answer.is_decoded = original.body, original.answer.is_decoded
    return True


class ArchiveIndex:
    """Finds visits in archives, whatever order they came in."""

    def __init__(self, index: VisitIndex, most: int) -> None:
        """`most`: bytes of a record's block that are read."""
        self._index, self._archives = index, OpenArchives(most)

    def newest(self, url: str, until: int) -> Visit | None:
        """Returns the newest visit to `url` up to `until` (ms), with its content, or None."""
        for archive, place in self._index.newest(url, until):
            visit = self._archives.visit_at(archive, place)
            # Without its original it has no content: the one before is asked.
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
            # Whole or not at all: others may make the same one.
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
