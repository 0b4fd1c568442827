"""What a crawl remembers from round to round about hosts and pages, beside Nutch's own files.

    busy(host TEXT PRIMARY KEY, until INTEGER)              a host that asked (Retry-After) not to be called before, ms
    etag(url BLOB PRIMARY KEY, tag TEXT, seen INTEGER)      the entity tag that a page came with, and when (ms);
                                                            url: BLAKE2b, 16 bytes

One file (minutch.state), `fetch.sqlite`, in the state folder of the crawl.
"""

from __future__ import annotations

from collections.abc import Iterable
from hashlib import blake2b
from pathlib import Path
from typing import Final

from minutch.state import StateFile

FILE_NAME: Final = "fetch.sqlite"
MAX_TAG: Final = 512
"""Characters; a longer entity tag is not kept."""
MOST_HOSTS: Final = 100_000
MOST_TAGS: Final = 5_000_000
TAG_LIFE: Final = 180 * 86_400_000
"""ms for which an entity tag is kept: twice as long as Nutch leaves a page alone at most (db.fetch.interval.max)."""
_SCHEMA: Final = """
CREATE TABLE busy (host TEXT PRIMARY KEY, until INTEGER) WITHOUT ROWID;
CREATE TABLE etag (url BLOB PRIMARY KEY, tag TEXT, seen INTEGER) WITHOUT ROWID;
CREATE INDEX etag_seen ON etag (seen);
"""


def state_folder(segment: Path) -> Path:
    """Where a crawl keeps its state: `.fetchstate` beside the folder of segments (or in it, if it is not so called)."""
    parent = segment.resolve().parent
    return (parent.parent if parent.name == "segments" else parent) / ".fetchstate"


def _digest(url: str) -> bytes:
    return blake2b(url.encode("utf-8", "surrogateescape"), digest_size=16).digest()


class FetchState(StateFile):
    """The file, open."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder / FILE_NAME, _SCHEMA)

    def forget_old(self, now: int) -> None:
        """Remove what is of no use at `now` (ms) any more."""
        self.prune("busy", "until", now, MOST_HOSTS)
        self.prune("etag", "seen", now - TAG_LIFE, MOST_TAGS)

    def busy_hosts(self, now: int) -> dict[str, int]:
        """Hosts that are still not to be called, with the time in ms."""
        return dict(self.read("SELECT host, until FROM busy WHERE until > ?", (now,)))

    def remember_busy(self, host: str, until: int) -> None:
        """`host` asked not to be called before `until` (ms)."""
        self.write("INSERT OR REPLACE INTO busy VALUES (?, ?)", [(host, until)])

    def etag(self, url: str) -> str | None:
        """The entity tag of a page's last version."""
        rows = self.read("SELECT tag FROM etag WHERE url = ?", (_digest(url),))
        return str(rows[0][0]) if rows else None

    def remember_etags(self, tags: Iterable[tuple[str, str]], now: int) -> None:
        """Keep the entity tags of pages, by URL."""
        rows = [(_digest(url), tag, now) for url, tag in tags if len(tag) <= MAX_TAG]
        self.write("INSERT OR REPLACE INTO etag VALUES (?, ?, ?)", rows)
