"""Keeps a cache from run to run in SQLite, beside Nutch's own files; it may be lost at any time.

Losing it costs a few requests, nothing else, so nothing here raises. A file that turns out to be
damaged, at whatever moment, or none of ours, is put aside under `<name>.damaged` and a new one
takes its place; the log says so once. A link is not followed: a crawl folder that came from
somebody else would have us write to any database. Where no file can be written, memory serves until
the process ends. Several processes may have one file open.
"""

from __future__ import annotations

import errno
import logging
import sqlite3
import zlib
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Final, Self, TypeVar

log = logging.getLogger(__name__)

WAIT: Final = 5.0
"""Seconds for which one process waits for another's write."""
_IN_MEMORY: Final = ":memory:"
_APPLICATION: Final = 0x6D6E7463
"""By which a file says that it is ours (PRAGMA application_id)."""
_DAMAGE: Final = frozenset({sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_IOERR})

_ERRORS: Final = (sqlite3.Error, OSError, UnicodeError)
"""The last for a message of SQLite's that quotes what a damaged file says."""

T = TypeVar("T")


class StateFile:
    """One file, open. `schema` is the SQL that makes its tables; a file with any other is emptied.

    With `read_only` a file is left as it is, and one that can't be read, or has another schema, is
    empty.
    """

    def __init__(self, path: Path, schema: str, *, read_only: bool = False) -> None:
        self.path = path
        self._read_only = read_only
        self._schema = schema
        self._version = zlib.crc32(schema.encode()) & 0x7FFF_FFFF
        self._complained = False
        self._db: sqlite3.Connection | None = self._open()

    def _open(self) -> sqlite3.Connection:
        if self._read_only:
            return self._look() or self._connect(_IN_MEMORY)
        for _ in range(2):
            try:
                self.path.parent.mkdir(parents=True, exist_ok=True)
                self._refuse_links()
                return self._connect(str(self.path))
            except _NotOursError as error:
                self._put_aside(error)
            except _ERRORS as error:
                if not _is_damage(error):
                    log.warning("%s: can't be used, nothing is remembered: %s", self.path, error)
                    break
                self._put_aside(error)
        return self._connect(_IN_MEMORY)

    def _refuse_links(self) -> None:
        """Raises OSError for a link in the place of the file, of its folder or of SQLite's own."""
        beside = (self.path.with_name(self.path.name + suffix) for suffix in ("-wal", "-shm"))
        for path in (self.path.parent, self.path, *beside):
            if path.is_symlink():
                raise OSError(errno.ELOOP, "a link, which is not followed", str(path))

    def _look(self) -> sqlite3.Connection | None:
        """Returns the file, to be read; None if it can't be."""
        if not self.path.is_file():
            return None
        db = None
        try:
            self._refuse_links()
            db = sqlite3.connect(f"{self.path.resolve().as_uri()}?mode=ro", timeout=WAIT, uri=True)
            if self._version_of(db) == self._version:
                return db
        except _ERRORS as error:
            log.warning("%s: can't be read: %s", self.path, error)
        if db is not None:
            db.close()
        return None

    def _connect(self, path: str) -> sqlite3.Connection:
        db = sqlite3.connect(path, timeout=WAIT)
        try:
            if path != _IN_MEMORY:
                db.execute("PRAGMA journal_mode=WAL")
            db.execute("PRAGMA synchronous=NORMAL")
            if self._version_of(db) != self._version:
                self._make_tables(db)
        except BaseException:
            db.close()
            raise
        return db

    def _make_tables(self, db: sqlite3.Connection) -> None:
        db.execute("BEGIN IMMEDIATE")
        if self._version_of(db) != self._version:  # or another process has made them meanwhile
            tables = db.execute("SELECT name FROM sqlite_schema WHERE type = 'table'").fetchall()
            (owner,) = db.execute("PRAGMA application_id").fetchone()
            if tables and owner != _APPLICATION:
                raise _NotOursError("a database of something else, or of a version before")
            for (name,) in tables:
                db.execute(f'DROP TABLE "{name}"')
            db.execute(f"PRAGMA application_id={_APPLICATION}")
            for statement in self._schema.split(";"):
                db.execute(statement)
            db.execute(f"PRAGMA user_version={self._version}")
        db.commit()

    @staticmethod
    def _version_of(db: sqlite3.Connection) -> int:
        return int(db.execute("PRAGMA user_version").fetchone()[0])

    def _put_aside(self, error: Exception) -> None:
        if not self._complained:
            log.warning("%s: can't be read and is replaced by a new one: %s", self.path, error)
        self._complained = True
        with suppress(OSError):
            self.path.replace(self.path.with_suffix(".damaged"))
        for suffix in ("-wal", "-shm"):
            with suppress(OSError):
                self.path.with_name(self.path.name + suffix).unlink(missing_ok=True)

    def read(self, sql: str, values: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        """Returns the rows of a query; none if they can't be read."""
        return self._do(lambda db: db.execute(sql, values).fetchall()) or []

    def write(self, sql: str, rows: Iterable[Sequence[Any]]) -> None:
        """Executes a statement for each of `rows`, all or none."""
        values = list(rows)

        def execute(db: sqlite3.Connection) -> None:
            with db:
                db.executemany(sql, values)

        self._do(execute)

    def prune(self, table: str, column: str, before: float, most: int) -> None:
        """Removes the rows of a table whose `column` (a time) is `before` or earlier, and all but
        the `most` latest.
        """
        self.write(f"DELETE FROM {table} WHERE {column} <= ?", [(before,)])
        latest = f"SELECT {column} FROM {table} ORDER BY {column} DESC LIMIT 1 OFFSET ?"
        self.write(f"DELETE FROM {table} WHERE {column} <= ({latest})", [(most,)])

    def _do(self, work: Callable[[sqlite3.Connection], T]) -> T | None:
        for _ in range(2):
            if self._db is None:
                return None
            try:
                return work(self._db)
            except _ERRORS as error:
                if not _is_damage(error):
                    log.debug("%s: %s", self.path, error)
                    return None
                self._db.close()
                if self._read_only:
                    log.warning("%s: can't be read: %s", self.path, error)
                    self._db = None
                    return None
                self._put_aside(error)
                self._db = self._open()
        return None

    def close(self) -> None:
        """Closes the file; what is asked afterwards is not known."""
        if self._db is not None:
            self._db.close()
            self._db = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class _NotOursError(Exception):
    """The file is another program's."""


def _is_damage(error: Exception) -> bool:
    """Returns whether the file itself is at fault, rather than a lock, the disk or the folder."""
    code = getattr(error, "sqlite_errorcode", 0) & 0xFF
    return code in _DAMAGE or isinstance(error, UnicodeError)
