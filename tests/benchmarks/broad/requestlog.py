"""Keeps each request that the server saw, in 32 bytes.

request = begin end host page status unused
begin, end = µs on the clock that all processes of the machine share (time.monotonic)
page = the number of a page, ROBOTS, OTHER (another path), or QUESTION: for an address of `host`
status = that of HTTP if all of the answer was sent, else a negative number
"""

from __future__ import annotations

import struct
import time
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt

REQUEST: Final = np.dtype(
    [
        ("begin", "<i8"),
        ("end", "<i8"),
        ("host", "<i4"),
        ("page", "<i4"),
        ("status", "<i4"),
        ("unused", "<i4"),
    ]
)
_PACKED: Final = struct.Struct("<qqiii4x")
ROBOTS: Final = -1
OTHER: Final = -2
QUESTION: Final = -3
LEFT: Final = -1
"""Status where the client went before all was sent."""
BROKEN: Final = -2
"""Status where the server broke off, as a hostile one does."""
OPEN: Final = -3
"""Status where neither had happened when the server was ended."""

Requests = npt.NDArray[Any]


def now() -> int:
    """The time in µs."""
    return time.monotonic_ns() // 1000


class RequestLog:
    """Collects requests in memory and appends them to a file from time to time."""

    def __init__(self, path: Path) -> None:
        self._file = path.open("ab", buffering=0)
        self._pending = bytearray()

    def add(self, begin: int, end: int, host: int, page: int, status: int) -> None:
        """Adds a request that has ended."""
        self._pending += _PACKED.pack(begin, end, host, page, status)

    def flush(self) -> None:
        """Writes what was added since the last call."""
        if self._pending:
            self._file.write(self._pending)
            self._pending.clear()


class Reader:
    """Follows a log while it grows."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._read = 0

    def more(self) -> Requests:
        """What was written since the last call."""
        found = read(self._path, self._read)
        self._read += len(found)
        return found


def read(path: Path, skip: int = 0) -> Requests:
    """The requests of a log, in the order in which they ended."""
    if not path.exists():
        return np.zeros(0, REQUEST)
    return np.fromfile(path, REQUEST, offset=skip * REQUEST.itemsize)
