"""The error tree, drawn once. Every error that minutch raises on purpose is one of these.

    MinutchError                    base: one sentence for people, perhaps with a hint; the CLI
                                    prints both
    ├── UsageError                  wrong arguments of a command, with its usage
    ├── ConfigError                 a property or a rule file that can't be used: names the file,
                                    line and value
    ├── PluginError                 a plugin that can't be loaded or lacks what it requires
    ├── FormatError                 bytes that are not what the format says: file, offset, expected,
                                    found
    │   ├── ChecksumError           a block whose CRC differs from the `.crc` sibling
    │   └── TruncatedError          the data ends inside a record
    ├── StoreError                  a database or segment directory that is missing, incomplete or
                                    in the way
    │   └── LockedError             somebody else holds the lock: names the owner
    ├── ExpressionError             a filter expression (JEXL subset) that can't be compiled or
                                    evaluated
    ├── QueryError                  an SQL statement that is not understood, or asks for what is not
                                    there
    ├── UrlError                    a string that is not a URL (also a ValueError)
    ├── IndexWriterError            an index writer that can't write: the index job ends
    │   └── IndexBusyError          the same for the moment: the batch is tried again
    ├── ProtocolError               a page that could not be fetched; carries a ProtocolStatus code
    └── ParseError                  a page that could not be parsed

Foreign exceptions are translated where they enter (`raise FormatError(...) from exc`).
"""

from __future__ import annotations

import errno
import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from minutch.processwide import command_line

FULL: Final = (errno.ENOSPC, errno.EDQUOT)
"""Errors of a disk that has no room, or none for this user."""
AGAIN: Final = "make room and run the same command again"


@contextmanager
def naming(path: object) -> Iterator[None]:
    """Gives an error of the system, which comes from an open file, the name of that file."""
    try:
        yield
    except OSError as exc:
        if exc.filename is None:
            exc.filename = str(path)
        raise


def in_a_line(exc: OSError) -> str:
    """Says which file an error of the system is about, and what to do about a full disk."""
    text = exc.strerror or str(exc)
    if exc.filename:
        text = f"{exc.filename}: {text}"
    if exc.errno not in FULL:
        return text
    return f"{text} ({room_at(exc.filename) if exc.filename else AGAIN})"


def room_at(name: str | Path) -> str:
    """Says what room there is for a file, and that the same command goes on when there is more."""
    folder = Path(name).absolute()
    while not folder.is_dir() and folder != folder.parent:
        folder = folder.parent
    try:
        free = shutil.disk_usage(folder).free >> 10
    except OSError:
        return AGAIN
    return f"{free:,} KiB are free in {folder}: {AGAIN}"


class MinutchError(Exception):
    """Base of all errors that minutch raises on purpose; `str(error)` is a sentence for people.

    `hint` says in another one what they can do about it.
    """

    exit_code = 255

    def __init__(self, *args: object, hint: str = "") -> None:
        super().__init__(*args)
        self.hint = hint


class UsageError(MinutchError):
    """Wrong command-line arguments. `message` says what is wrong (empty: nothing was given),
    `usage` what is right.

    The exit code is the command's (`flow.Command.usage_exit`).
    """

    def __init__(self, message: str, usage: str = "", *, hint: str = "") -> None:
        super().__init__(message, usage, hint=hint)
        self.message, self.usage = message, usage

    def __str__(self) -> str:
        usage = f"Usage: {self.usage}" if self.usage else ""
        return "\n".join(filter(None, (self.message, usage)))


class ConfigError(MinutchError):
    """A property or a rule file that can't be used."""


class PluginError(MinutchError):
    """A plugin that can't be loaded, or lacks what it requires."""


class FormatError(MinutchError):
    """Bytes that are not what the format says.

    `path` may be empty while the reader knows no file; `at(path, base)` fills it in on the way up.
    `offset` is in bytes from the start of the file (or of the buffer while `path` is empty).
    """

    def __init__(
        self,
        what: str,
        *,
        path: str | Path = "",
        offset: int | None = None,
        expected: object = None,
        found: object = None,
    ) -> None:
        super().__init__(what)
        self.what = what
        self.path = str(path)
        self.offset = offset
        self.expected = expected
        self.found = found

    def at(self, path: str | Path, base: int = 0) -> FormatError:
        """Returns the same error, with the file named and the offset counted from the file's start;
        for re-raising.
        """
        if not self.path:
            self.path = str(path)
            self.offset = base + (self.offset or 0)
        return self

    def within(self, path: str | Path) -> FormatError:
        """Returns the same error, in a file of which only a part has been named; for re-raising."""
        self.path = f"{path}, {self.path}" if self.path else str(path)
        return self

    def __str__(self) -> str:
        text = self.what
        if self.expected is not None:
            text += f": expected {self.expected}"
            if self.found is not None:
                text += f", found {self.found}"
        elif self.found is not None:
            text += f": found {self.found}"
        where = self.path
        if self.offset is not None:
            where = f"{where or 'data'} at offset {self.offset}"
        return f"{where}: {text}" if where else text


class TruncatedError(FormatError):
    """The data ends inside a record."""


class ChecksumError(FormatError):
    """A block whose CRC-32 differs from the one in the `.crc` sibling."""


class StoreError(MinutchError):
    """A database or segment directory that is missing, incomplete or in the way."""


class LockedError(StoreError):
    """Somebody else holds the lock of a database."""

    def __init__(self, *args: object, hint: str = "") -> None:
        super().__init__(
            *args,
            hint=hint
            or f"wait for it; if nobody is at work, `{command_line('unlock FOLDER')}` removes"
            " the lock",
        )


class ExpressionError(MinutchError):
    """A filter expression (JEXL subset) that can't be compiled or evaluated."""


class QueryError(MinutchError):
    """An SQL statement that is not understood, or that asks for what is not there."""


class UrlError(MinutchError, ValueError):
    """A string that is not a URL, as java.net.URL's MalformedURLException."""


class IndexWriterError(MinutchError):
    """An index writer that can't write; the job ends with this as its reason."""


class IndexBusyError(IndexWriterError):
    """A search engine that can't take a batch for the moment: too busy, restarting, not to be
    reached.

    `rest` are the actions that it has not taken (None: the whole batch), `refused` those of the
    others that it refused for good; `retry_after` is the number of seconds that it asked to wait.
    """

    def __init__(
        self,
        message: str,
        *,
        retry_after: float | None = None,
        rest: Sequence[Any] | None = None,
        refused: Sequence[Any] = (),
        hint: str = "",
    ) -> None:
        super().__init__(message, hint=hint)
        self.retry_after, self.rest, self.refused = retry_after, rest, refused


class ProtocolError(MinutchError):
    """A page that could not be fetched; `code` is a ProtocolStatus code."""

    def __init__(self, message: str, code: int) -> None:
        super().__init__(message)
        self.code = code


class ParseError(MinutchError):
    """A page that could not be parsed."""
