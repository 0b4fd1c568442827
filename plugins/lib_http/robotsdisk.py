"""The robots.txt files of the last day on disk, in one SQLite file that the processes of a fetch share.

    robots(key TEXT PRIMARY KEY, fetched REAL, code INTEGER, content BLOB, content_type TEXT)

It is a cache: a file that can't be read is put aside and begun anew, a write that fails is forgotten.
"""

from __future__ import annotations

import logging
import sqlite3
import zlib
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

log = logging.getLogger(__name__)

_SCHEMA: Final = (
    "CREATE TABLE IF NOT EXISTS robots"
    " (key TEXT PRIMARY KEY, fetched REAL, code INTEGER, content BLOB, content_type TEXT) WITHOUT ROWID"
)


@dataclass(frozen=True, slots=True)
class StoredRobots:
    """One robots.txt: when it was fetched (seconds since the epoch) and what came."""

    fetched: float
    code: int
    content: bytes
    content_type: str


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
                "SELECT fetched, code, content, content_type FROM robots WHERE key = ? AND fetched > ?", (key, since)
            ).fetchone()
            return None if row is None else StoredRobots(row[0], row[1], zlib.decompress(row[2]), row[3])
        except (sqlite3.DatabaseError, zlib.error) as exc:
            log.debug("%s: can't look up %s: %s", self.path, key, exc)
            return None

    def put(self, key: str, fetched: float, code: int, content: bytes, content_type: str) -> None:
        """Remember a file at once: a killed fetch does not ask again either."""
        if self._db is None:
            return
        row = (key, fetched, code, zlib.compress(content, 1), content_type)
        with suppress(sqlite3.DatabaseError):
            self._db.execute("INSERT OR REPLACE INTO robots VALUES (?, ?, ?, ?, ?)", row)

    def close(self) -> None:
        """Close the file."""
        if self._db is not None:
            self._db.close()
            self._db = None
