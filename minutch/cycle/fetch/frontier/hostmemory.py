"""Remembers from fetch to fetch when hosts may be asked again, in the state folder of the crawl,
beside Nutch's own files.

    fetch.sqlite            what they asked for: a file of minutch.state, with a table
                            busy(host TEXT PRIMARY KEY, until INTEGER)
                            of hosts that asked (Retry-After) not to be called before, ms
    rests-0, rests-1, …     what politeness asks for: until when each queue rests, so that the next
                            fetch begins as politely as this one ends. One file for each process of
                            a fetch, and `rests-sitemap` for sitemaps: lines `<time> <queue>`, the
                            time in ms since the epoch in hexadecimal

A rest is written before its request is sent, and again when it is known: a process that is killed
leaves what the next one must know. What is over is dropped when a file grows.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Final

from minutch.clock import SteadyClock
from minutch.conf import Configuration
from minutch.cycle.fetch.frontier.queues import FetchQueues
from minutch.paths import is_local
from minutch.state import StateFile

log = logging.getLogger(__name__)

PRUNE_EVERY: Final = 3600.0
"""Seconds after which what is over is removed from the files of a fetch that lasts as long as a
crawl.
"""


class HostMemory:
    """The memory of one process of a fetch, which is number `index`."""

    def __init__(self, folder: Path, index: int, clock: SteadyClock) -> None:
        self._folder = folder
        self._clock = clock
        self._state = BusyHosts(folder)
        self._pruned = clock.monotonic()
        self._state.forget_old(self._today())
        self._rests = RestLog(folder, str(index), self._today)

    def _today(self) -> int:
        return self._clock.date(self._clock.now())

    def let_rest(self, queues: FetchQueues, mine: Callable[[str], bool]) -> None:
        """Makes hosts rest that asked for it, and queues that any process asked a moment ago;
        `mine` tells whether a queue belongs to this one.
        """
        now, today, ahead = self._clock.now(), self._today(), self._clock.ahead
        # From all files: queues may be shared out among another number of processes now.
        for queue_id, until in read_rests(self._folder, today).items():
            if mine(queue_id):
                queues.remember(queue_id, until - ahead, now)
        for host, until in self._state.busy_hosts(today).items():
            queues.rest(host, until - ahead, now)

    def busy_until(self, host: str, time: int) -> None:
        """Remembers that a host does not want to be called before `time` (ms)."""
        self._state.remember_busy(host, self._clock.date(time))
        if self._clock.monotonic() - self._pruned > PRUNE_EVERY:
            self._pruned = self._clock.monotonic()
            self._state.forget_old(self._today())

    def rested(self, rests: list[Rest]) -> None:
        """Remembers until when queues rest."""
        self._rests.add((queue_id, self._clock.date(until)) for queue_id, until in rests)

    def close(self) -> None:
        """Closes the files."""
        self._rests.close()
        self._state.close()


# -- what hosts asked for --------------------------------------------------------------------------

FILE_NAME: Final = "fetch.sqlite"
STATE_PROPERTY: Final = "minutch.fetch.state"
"""The folder, where it is another one."""
CLOCK_FILE: Final = "clock"
"""Beside it: how a crawl's clock goes on (`OnwardClock`)."""
MOST_HOSTS: Final = 100_000
_SCHEMA: Final = "CREATE TABLE busy (host TEXT PRIMARY KEY, until INTEGER) WITHOUT ROWID"


def state_folder(segment: Path) -> Path:
    """Returns the folder of a crawl's state: `.fetchstate` beside the folder of segments.

    Never in it: Nutch takes whatever lies there for a segment (`-dir`).
    """
    return segment.resolve().parent.parent / ".fetchstate"


def state_folder_of(directory: Path, conf: Configuration) -> Path | None:
    """Returns that of the crawl in a folder; None where the crawl is on another machine."""
    if not is_local(directory):
        return None
    named = conf.get(STATE_PROPERTY)
    return Path(named) if named else state_folder(directory / "segments" / "any")


class BusyHosts(StateFile):
    """The file, open."""

    def __init__(self, folder: Path, *, read_only: bool = False) -> None:
        super().__init__(folder / FILE_NAME, _SCHEMA, read_only=read_only)

    def forget_old(self, now: int) -> None:
        """Removes what is of no use at `now` (ms) any more."""
        self.prune("busy", "until", now, MOST_HOSTS)

    def busy_hosts(self, now: int) -> dict[str, int]:
        """Returns the hosts that are not to be called yet, and until when (ms)."""
        return dict(self.read("SELECT host, until FROM busy WHERE until > ?", (now,)))

    def remember_busy(self, host: str, until: int) -> None:
        """Remembers that `host` does not want to be called before `until` (ms)."""
        self.write("INSERT OR REPLACE INTO busy VALUES (?, ?)", [(host, until)])


# -- rests -----------------------------------------------------------------------------------------

PREFIX: Final = "rests-"
GROWN: Final = 1 << 20
"""Bytes from which a file is written anew without what is over."""

LONGEST: Final = 3_600_000
"""ms; a later time comes from a clock that was wrong."""

Rest = tuple[str, int]
"""A queue's name, and until when it rests (ms since the epoch)."""


def read_rests(folder: Path, now: int) -> dict[str, int]:
    """Returns the queues that rest beyond `now` (ms), from all files in a state folder."""
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
    """The open file of one process. Where it can't be written, nothing is remembered."""

    def __init__(self, folder: Path, name: str, now: Callable[[], int]) -> None:
        """`now` in ms since the epoch, as the times of the rests."""
        self._now = now
        self._path = folder / f"{PREFIX}{name}"
        self._file: int | None = None
        self._size = 0
        self._begin()

    def add(self, rests: Iterable[Rest]) -> None:
        """Writes rests down."""
        if self._file is None:
            return
        lines = _lines(rests)
        try:
            # One call, unbuffered: it is in the kernel before the request is sent, whatever kills
            # us.
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
    # What is behind the last line's end is torn.
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
