"""The robots.txt files of the last day on disk, in one SQLite file that the processes of a fetch share.

    robotstxt(key TEXT PRIMARY KEY, fetched REAL, code INTEGER, content BLOB, content_type TEXT, url TEXT,
              sitemaps TEXT, signals TEXT)

`url` is where the file was found in the end; `sitemaps` (a list of URLs) and `signals` (Content-Signal for this
crawler, an object) are JSON, for those who look into the file. It is a cache: a file that can't be read is put aside
and begun anew, a write that fails is forgotten.
"""

from __future__ import annotations

import json
import logging
import sqlite3
import zlib
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

log = logging.getLogger(__name__)

_SCHEMA: Final = (
    "CREATE TABLE IF NOT EXISTS robotstxt (key TEXT PRIMARY KEY, fetched REAL, code INTEGER, content BLOB,"
    " content_type TEXT, url TEXT, sitemaps TEXT, signals TEXT) WITHOUT ROWID"
)


@dataclass(frozen=True, slots=True)
class StoredRobots:
    """One robots.txt: when it was fetched (seconds since the epoch), what came and from where, what it names."""

    fetched: float
    code: int
    content: bytes
    content_type: str
    url: str
    sitemaps: tuple[str, ...] = ()
    signals: Mapping[str, str] = field(default_factory=dict)


class RobotsDisk:
    """Looks up and remembers robots.txt files by key (scheme, host and port)."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._db: sqlite3.Connection | None = self._open()

    def _open(self) -> sqlite3.Connection | None:
        self.path.parent.mkdir(parents=True, exist_ok=True)
        for _ in range(2):
            try:
                db = sqlite3.connect(self.path, timeout=5, isolation_level=None)
                db.execute("PRAGMA journal_mode=WAL")
                db.execute("PRAGMA synchronous=OFF")
                db.execute(_SCHEMA)
                return db
            except sqlite3.DatabaseError as exc:
                log.warning("%s: begun anew: %s", self.path, exc)
                with suppress(OSError):
                    self.path.replace(self.path.with_suffix(".damaged"))
        return None

    def get(self, key: str, since: float) -> StoredRobots | None:
        """The file of `key` if it was fetched after `since`."""
        if self._db is None:
            return None
        try:
            row = self._db.execute(
                "SELECT fetched, code, content, content_type, url, sitemaps, signals FROM robotstxt"
                " WHERE key = ? AND fetched > ?",
                (key, since),
            ).fetchone()
            return None if row is None else _stored(*row)
        except (sqlite3.DatabaseError, zlib.error, ValueError) as exc:
            log.debug("%s: can't look up %s: %s", self.path, key, exc)
            return None

    def put(self, key: str, found: StoredRobots) -> None:
        """Remember a file at once: a killed fetch does not ask again either."""
        if self._db is None:
            return
        row = (
            key,
            found.fetched,
            found.code,
            zlib.compress(found.content, 1),
            found.content_type,
            found.url,
            json.dumps(found.sitemaps),
            json.dumps(dict(found.signals)),
        )
        with suppress(sqlite3.DatabaseError):
            self._db.execute("INSERT OR REPLACE INTO robotstxt VALUES (?, ?, ?, ?, ?, ?, ?, ?)", row)

    def close(self) -> None:
        """Close the file."""
        if self._db is not None:
            self._db.close()
            self._db = None


def _stored(
    fetched: float, code: int, content: bytes, content_type: str, url: str, sitemaps: str, signals: str
) -> StoredRobots:
    """A row of the table. Raises zlib.error or ValueError if it is damaged."""
    found = zlib.decompress(content)
    return StoredRobots(fetched, code, found, content_type, url, tuple(json.loads(sitemaps)), json.loads(signals))
