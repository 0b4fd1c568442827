"""Remembers from round to round what hosts asked for, beside Nutch's own files.

    busy(host TEXT PRIMARY KEY, until INTEGER)      a host that asked (Retry-After) not to be called
                                                    before, ms

One file (minutch.state), `fetch.sqlite`, in the state folder of the crawl.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

from minutch.state import StateFile

FILE_NAME: Final = "fetch.sqlite"
CLOCK_FILE: Final = "clock"
"""Beside it: how a crawl's clock goes on (`OnwardClock`)."""
MOST_HOSTS: Final = 100_000
_SCHEMA: Final = "CREATE TABLE busy (host TEXT PRIMARY KEY, until INTEGER) WITHOUT ROWID"


def state_folder(segment: Path) -> Path:
    """Returns the folder of a crawl's state: `.fetchstate` beside the folder of segments.

    Never in it: Nutch takes whatever lies there for a segment (`-dir`).
    """
    return segment.resolve().parent.parent / ".fetchstate"


class FetchState(StateFile):
    """The file, open."""

    def __init__(self, folder: Path, *, read_only: bool = False) -> None:
        super().__init__(folder / FILE_NAME, _SCHEMA, read_only=read_only)

    def forget_old(self, now: int) -> None:
        """Removes what is of no use at `now` (ms) any more."""
        self.prune("busy", "until", now, MOST_HOSTS)

    def busy_hosts(self, now: int) -> dict[str, int]:
        """Hosts that are still not to be called, with the time in ms."""
        return dict(self.read("SELECT host, until FROM busy WHERE until > ?", (now,)))

    def remember_busy(self, host: str, until: int) -> None:
        """`host` asked not to be called before `until` (ms)."""
        self.write("INSERT OR REPLACE INTO busy VALUES (?, ?)", [(host, until)])
