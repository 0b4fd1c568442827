"""What a crawl remembers from round to round about hosts and pages, beside Nutch's own files.

    busy(host TEXT PRIMARY KEY, until INTEGER)        a host that asked (Retry-After) not to be called before, in ms
    etag(url BLOB PRIMARY KEY, tag TEXT)              the entity tag that a page came with; url: BLAKE2b, 16 bytes

One SQLite file, `fetch.sqlite`, in the state folder of the crawl. Losing it costs a few requests, nothing else: a file
that can't be read is put aside and begun anew.
"""

from __future__ import annotations

import logging
import sqlite3
from collections.abc import Iterable
from contextlib import suppress
from hashlib import blake2b
from pathlib import Path
from types import TracebackType
from typing import Final, Self

log = logging.getLogger(__name__)

FILE_NAME: Final = "fetch.sqlite"
MAX_TAG: Final = 512
"""Characters; a longer entity tag is not kept."""
_SCHEMA: Final = """
CREATE TABLE IF NOT EXISTS busy (host TEXT PRIMARY KEY, until INTEGER) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS etag (url BLOB PRIMARY KEY, tag TEXT) WITHOUT ROWID;
"""


def state_folder(segment: Path) -> Path:
    """Where a crawl keeps its state: `.fetchstate` beside the folder of segments (or in it, if it is not so called)."""
    parent = segment.resolve().parent
    return (parent.parent if parent.name == "segments" else parent) / ".fetchstate"


def _digest(url: str) -> bytes:
    return blake2b(url.encode("utf-8", "surrogateescape"), digest_size=16).digest()


class FetchState:
    """The file, open."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / FILE_NAME
        self._db = self._open()

    def _open(self) -> sqlite3.Connection:
        for _ in range(2):
            try:
                self.path.parent.mkdir(parents=True, exist_ok=True)
                return self._connect(str(self.path))
            except (sqlite3.DatabaseError, OSError) as exc:
                log.warning("%s: begun anew: %s", self.path, exc)
                with suppress(OSError):
                    self.path.replace(self.path.with_suffix(".damaged"))
        return self._connect(":memory:")

    @staticmethod
    def _connect(path: str) -> sqlite3.Connection:
        db = sqlite3.connect(path, timeout=5)
        if path != ":memory:":
            db.execute("PRAGMA journal_mode=WAL")
        db.execute("PRAGMA synchronous=NORMAL")
        db.executescript(_SCHEMA)
        return db

    def busy_hosts(self, now: int) -> dict[str, int]:
        """Hosts that are still not to be called, with the time in ms."""
        return dict(self._db.execute("SELECT host, until FROM busy WHERE until > ?", (now,)))

    def remember_busy(self, host: str, until: int) -> None:
        """`host` asked not to be called before `until` (ms)."""
        with suppress(sqlite3.DatabaseError), self._db:
            self._db.execute("INSERT OR REPLACE INTO busy VALUES (?, ?)", (host, until))

    def etag(self, url: str) -> str | None:
        """The entity tag of a page's last version."""
        row = self._db.execute("SELECT tag FROM etag WHERE url = ?", (_digest(url),)).fetchone()
        return None if row is None else str(row[0])

    def remember_etags(self, tags: Iterable[tuple[str, str]]) -> None:
        """Keep the entity tags of pages, by URL."""
        rows = [(_digest(url), tag) for url, tag in tags if len(tag) <= MAX_TAG]
        with suppress(sqlite3.DatabaseError), self._db:
            self._db.executemany("INSERT OR REPLACE INTO etag VALUES (?, ?)", rows)

    def close(self) -> None:
        """Close the file."""
        self._db.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        self.close()
