"""Keeps until when each queue rests, so that the next fetch begins as politely as this one ends.

    rests-0, rests-1, …     one file for each process of a fetch, in the state folder of the crawl:
                            lines `<time> <queue>`, the time in ms since the epoch in hexadecimal

A line is written before its request is sent, and again when the rest is known: a process that is
killed leaves what the next one must know. What is over is dropped when a file grows.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Final

log = logging.getLogger(__name__)

PREFIX: Final = "rests-"
GROWN: Final = 1 << 20
"""Bytes from which a file is written anew without what is over."""

LONGEST: Final = 3_600_000
"""ms; a later time comes from a clock that was wrong."""

Rest = tuple[str, int]
"""A queue's name, and until when it rests (ms since the epoch)."""


def read_rests(folder: Path, now: int) -> dict[str, int]:
    """Returns the queues that rest beyond `now` (ms), from all files of a state folder."""
    rests: dict[str, int] = {}
    for path in folder.glob(f"{PREFIX}*"):
        try:
            found = _alive(path.read_bytes(), now)
        except OSError as error:
            log.warning("%s: can't be read: %s", path, error)
            continue
        for queue_id, until in found.items():
            rests[queue_id] = max(until, rests.get(queue_id, 0))
    return rests


class RestLog:
    """The file of one process, open. Where it can't be written nothing is remembered."""

    def __init__(self, folder: Path, index: int, now: Callable[[], int]) -> None:
        """`now` in ms since the epoch, as the times of the rests."""
        self._now = now
        self._path = folder / f"{PREFIX}{index}"
        self._file: int | None = None
        self._size = 0
        self._begin()

    def add(self, rests: Iterable[Rest]) -> None:
        """Writes rests down."""
        if self._file is None:
            return
        lines = _lines(rests)
        try:
            os.write(self._file, lines)
        except OSError as error:
            self._give_up(error)
            return
        self._size += len(lines)
        if self._size > GROWN:
            self._begin()

    def close(self) -> None:
        """Closes the file."""
        if self._file is not None:
            os.close(self._file)
            self._file = None

    def _begin(self) -> None:
        """Writes the file anew, with what is not over; one that can't be read is lost."""
        self.close()
        new = self._path.with_name(f".{self._path.name}")
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            alive = _alive(self._path.read_bytes(), self._now()) if self._path.exists() else {}
            lines = _lines(alive.items())
            new.unlink(missing_ok=True)  # a link in its place is not followed
            new.write_bytes(lines)
            new.replace(self._path)
            self._file = os.open(self._path, os.O_WRONLY | os.O_APPEND | os.O_CLOEXEC)
            self._size = 0
        except OSError as error:
            self._give_up(error)

    def _give_up(self, error: OSError) -> None:
        log.warning("%s: can't be written, rests are forgotten: %s", self._path, error)
        self.close()


def _lines(rests: Iterable[Rest]) -> bytes:
    return "".join(f"{until:x} {queue_id}\n" for queue_id, until in rests).encode(
        "utf-8", "surrogateescape"
    )


def _alive(lines: bytes, now: int) -> dict[str, int]:
    """Returns what is not over; the last line of a queue counts. Skips lines that are torn."""
    rests = {}
    for line in lines.split(b"\n")[:-1]:
        time, _, queue_id = line.partition(b" ")
        try:
            rests[queue_id] = int(time, 16)
        except ValueError:
            continue
    return {
        queue_id.decode("utf-8", "surrogateescape"): until
        for queue_id, until in rests.items()
        if now < until <= now + LONGEST and queue_id
    }
