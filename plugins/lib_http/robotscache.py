"""Keeps robots.txt: in memory the rules of hosts, within a budget of bytes; on disk the files of
the last day, in one file (minutch.state) that the processes of a fetch share.

    robotstxt(key TEXT PRIMARY KEY, fetched REAL, code INTEGER, content BLOB, content_type TEXT,
              url TEXT, sitemaps TEXT, signals TEXT)

`url` is where the file was found in the end; `sitemaps` (a list of URLs) and `signals`
(Content-Signal for this crawler, an object) are JSON, for those who look into the file.
"""

from __future__ import annotations

import json
import logging
import sys
import time
import zlib
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass, field
from math import inf
from pathlib import Path
from typing import Final, NamedTuple

from minutch.state import StateFile
from minutch.urls.robots import ALLOW_ALL, ALLOW_NONE, UNSAID, RobotRules

log = logging.getLogger(__name__)

FILE_NAME: Final = "robots.sqlite"
MOST_KEPT: Final = 200_000
"""Files; of more, those that were fetched longest ago go."""
_EVERY: Final = 1.0
"""Seconds between two writes: a transaction for each file took 6 % of a fetch of 100,000 hosts."""
_COLUMNS: Final = "fetched, code, content, content_type, url, sitemaps, signals"
_SCHEMA: Final = (
    "CREATE TABLE robotstxt (key TEXT PRIMARY KEY, fetched REAL, code INTEGER, content BLOB,"
    " content_type TEXT, url TEXT, sitemaps TEXT, signals TEXT) WITHOUT ROWID;"
    "CREATE INDEX robotstxt_fetched ON robotstxt (fetched)"
)


@dataclass(frozen=True, slots=True)
class StoredRobots:
    """One robots.txt: when it was fetched (seconds since the epoch), what came and from where, what
    it names.
    """

    fetched: float
    code: int
    content: bytes
    content_type: str
    url: str
    sitemaps: tuple[str, ...] = ()
    signals: Mapping[str, str] = field(default_factory=dict)


class RobotsDisk(StateFile):
    """Looks up and remembers robots.txt files by key (scheme, host and port)."""

    def __init__(self, path: Path, *, read_only: bool = False) -> None:
        super().__init__(path, _SCHEMA, read_only=read_only)
        self._rows: list[tuple[object, ...]] = []
        self._written = 0.0

    def get(self, key: str, since: float, until: float = inf) -> StoredRobots | None:
        """Returns the file of `key` if it was fetched after `since` and not after `until`, by a
        clock that was wrong; one that was put a moment ago may not be found yet.
        """
        self._flush_if_due()
        rows = self.read(
            f"SELECT {_COLUMNS} FROM robotstxt WHERE key = ? AND fetched > ? AND fetched <= ?",
            (key, since, until),
        )
        try:
            return _stored(*rows[0]) if rows else None
        except (zlib.error, ValueError, TypeError) as exc:
            log.debug("%s: damaged robots.txt of %s: %s", self.path, key, exc)
            return None

    def put(self, key: str, found: StoredRobots) -> None:
        """Stores a file, with others of the same second: a fetch that is killed asks for few
        again.
        """
        self._rows.append(
            (
                key,
                found.fetched,
                found.code,
                zlib.compress(found.content, 1),
                found.content_type,
                found.url,
                json.dumps(found.sitemaps),
                json.dumps(dict(found.signals)),
            )
        )
        self._flush_if_due()

    def close(self) -> None:
        """Stores what is left, and closes the file."""
        self._flush()
        super().close()

    def _flush_if_due(self) -> None:
        if self._rows and time.monotonic() - self._written > _EVERY:
            self._flush()
            self._written = time.monotonic()

    def _flush(self) -> None:
        rows, self._rows = self._rows, []
        if rows:
            self.write("INSERT OR REPLACE INTO robotstxt VALUES (?, ?, ?, ?, ?, ?, ?, ?)", rows)

    def forget_old(self, before: float) -> None:
        """Removes the files that were fetched `before` (s) or earlier."""
        self.prune("robotstxt", "fetched", before, MOST_KEPT)


def _stored(
    fetched: float,
    code: int,
    content: bytes,
    content_type: str,
    url: str,
    sitemaps: str,
    signals: str,
) -> StoredRobots:
    """Returns a row of the table. Raises zlib.error, ValueError or TypeError if it is damaged."""
    found = zlib.decompress(content)
    return StoredRobots(
        fetched, code, found, content_type, url, tuple(json.loads(sitemaps)), json.loads(signals)
    )


# Remembers the rules of hosts, within a budget of bytes: those that were asked for longest ago go
# first.

BUDGET: Final = 64 << 20
"""Bytes of rules, in each process of a fetch. A file of 30,000 rules took 5.3 MB, and 50,000 hosts
were kept whatever theirs took.
"""
_ENTRY: Final = 310
"""Bytes of a host besides its key and its rules."""
_SHARED: Final = frozenset({ALLOW_ALL, ALLOW_NONE, UNSAID})


class Remembered(NamedTuple):
    """Rules, and when they were fetched (seconds since the epoch)."""

    fetched: float
    rules: RobotRules


class RobotsMemory:
    """The rules of hosts by key (scheme, host and port)."""

    def __init__(self, budget: int = BUDGET) -> None:
        self._budget = budget
        self._known: OrderedDict[str, Remembered] = OrderedDict()
        self.bytes = 0
        """What all of it takes."""

    def __len__(self) -> int:
        return len(self._known)

    def get(self, key: str, since: float) -> RobotRules | None:
        """Returns the rules of `key` if they were fetched after `since`."""
        found = self._known.get(key)
        if found is None or found.fetched <= since:
            return None
        self._known.move_to_end(key)
        return found.rules

    def keep(self, key: str, rules: RobotRules, fetched: float) -> None:
        """Remembers rules. Those that were kept last stay whatever they take, as they are about to
        be used.
        """
        self.forget(key)
        self._known[key] = Remembered(fetched, rules)
        self.bytes += _cost(key, rules)
        while self.bytes > self._budget and len(self._known) > 1:
            self.forget(next(iter(self._known)))

    def forget(self, key: str) -> None:
        """Forgets the rules of `key`, if there are any."""
        found = self._known.pop(key, None)
        if found is not None:
            self.bytes -= _cost(key, found.rules)


def _cost(key: str, rules: RobotRules) -> int:
    return _ENTRY + sys.getsizeof(key) + (0 if rules in _SHARED else rules.cost)
