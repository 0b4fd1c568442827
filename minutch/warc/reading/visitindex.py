"""Indexes the visits of archives: by URL and time, and by the names that other visits refer to them
with. In SQLite.

    archive(number, path, grammar, compression, start, end, entry)
    visit(url, time, archive, offset, inner)         url and name are 64-bit hashes
    name(name, archive, offset, inner)               of visits with one name, the first
    later(visit, key), wanted(later, rank, name)     visits that wait for the ones that they refer
                                                     to; while importing

It lies in a file, so memory does not grow with the archives; the file is of use as long as they are
not changed.
"""

from __future__ import annotations

import pickle
import re
import sqlite3
from collections.abc import Iterable, Iterator
from hashlib import blake2b
from pathlib import Path
from typing import Final

from minutch.errors import UrlError
from minutch.warc.reading.archivefiles import ArchiveFile
from minutch.warc.reading.arcrecords import ARC
from minutch.warc.reading.bytesource import RecordPosition
from minutch.warc.reading.visits import Visit
from minutch.warc.reading.warcrecords import WARC
from minutch.warc.warcfile import target_uri

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
    """Reduces spellings of one page's URL to a common form: host in lower case, `/` for no path,
    …
    """
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
        """Other visits may refer to this one by `names`."""
        number = self._number_of(archive)
        rows = [(_hash(name), number, place.offset, place.inner) for name in names]
        self._db.executemany("INSERT OR IGNORE INTO name VALUES (?, ?, ?, ?)", rows)

    def put_off(self, visit: Visit, key: int) -> None:
        """Keeps a visit that refers to another one until all are known; `key` is for whoever takes
        it up.
        """
        row = self._db.execute(
            "INSERT INTO later VALUES (?, ?)", (pickle.dumps(visit), key)
        ).lastrowid
        wanted = [(row, rank, _hash(name)) for rank, name in enumerate(visit.refers_to)]
        self._db.executemany("INSERT INTO wanted VALUES (?, ?, ?)", wanted)

    def put_off_visits(self) -> Iterator[tuple[Visit, int, Found | None]]:
        """Yields the visits that were put off, each with the one that it refers to, in the order in
        which those lie.
        """
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
        """Brings all into the file."""
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
