"""Turns a running fetch over to its next list: what is not settled goes on there.

    this list ─┬─ settled ──────────────────> its segment, which can be closed
               ├─ of the list, waiting ─────> a part of the next list, and into the queues again
               ├─ of no list, waiting ──────> the log of the next list (FOLLOW), and the queues
               └─ in flight, no answer yet ─> as those two, but not into the queues

In the log of this list a URL that goes on is left to the next round, and counts so; it stands there
before it stands in the next list. Killed in between, it is in no list, but due: as before, or, if
it was of no list, as a link that was found. `generate` reads both, list and log, before it adds to
the next list. What an answer leads to that had come before the turn goes on in the same way, when
it is parsed (`go_on`).

Where rounds overlap, generate lists pages while others are in flight. A URL may be listed and be
the target of a redirect: in Nutch both are asked for, and here, where the page that led to it was
asked when the URL was listed. But what generate lists meanwhile and what these lead to is the same
page, which would have been asked for once: `Claims` knows.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final

from minutch.cycle.fetch.frontier.listindex import DATUM, listed_urls
from minutch.cycle.fetch.frontier.queueitems import (
    VARIABLE_DELAY_KEY,
    Dropped,
    FetchItem,
)
from minutch.cycle.fetch.ledger import Outcome
from minutch.cycle.fetch.limits import Visitor
from minutch.cycle.fetch.redirectchain import RedirectChain
from minutch.cycle.fetch.results.fetchresults import FetchResults
from minutch.errors import StoreError
from minutch.hadoop.formats.checksum import crc_path
from minutch.hadoop.formats.mapfile import TEXT
from minutch.hadoop.formats.sequencewriter import SequenceFileWriter
from minutch.hadoop.formats.writables import LongWritable, Text
from minutch.records.crawldatum import CrawlDatum
from minutch.work.tables.install import sync_path

_LEFT: Final = Outcome.SKIPPED_TAIL


def left(item: FetchItem) -> Dropped:
    """Returns an item as one that another list has, or another place in this one."""
    datum = CrawlDatum.from_bytes(item.datum.to_bytes())  # the item goes on with its own
    return Dropped(replace(item, datum=datum), _LEFT, _LEFT.reason)


def go_on(item: FetchItem, old: FetchResults, new: FetchResults, now: int) -> None:
    """Notes that an item of no list, which a page of the `old` one has led to, is followed in the
    `new` one. Raises StoreError.
    """
    old.skip(left(item), now)
    new.follow(item)


def _draft(path: Path) -> Path:
    return path.with_name(f".{path.name}.new")


@dataclass(slots=True)
class Turnover:
    """One turn, from `old` results to `new` ones."""

    old: FetchResults
    new: FetchResults
    path: Path | None
    """The part of the next list that is written; None: all is settled."""
    begin: Callable[[Turnover], None]
    """Lets the list before go; takes the part, if there is one, into the queues, but for those of
    its URLs that are in flight.
    """
    done: asyncio.Future[int]
    """Gets the number of listed URLs that go on."""
    count: int = 0
    unlisted: list[FetchItem] = field(default_factory=list)
    """Items of no list, which go back into the queues."""
    followed: list[FetchItem] = field(default_factory=list)
    """The items of no list that go on."""
    in_flight: Counter[str] = field(default_factory=Counter)
    """Listed URLs that go on and are being asked for."""
    _writer: SequenceFileWriter | None = field(init=False, default=None)

    def __post_init__(self) -> None:
        if self.path is not None:
            self._writer = SequenceFileWriter(_draft(self.path), TEXT, DATUM)

    def leave(self, item: FetchItem, now: int) -> None:
        """Takes an item that waits. Raises StoreError."""
        if isinstance(item, Visitor):
            self.unlisted.append(item)
        elif item.listed is None:
            self.unlisted.append(item)
            self._follow(item, now)
        else:
            self._list(item.listed, item.datum, item.own_delay)
            self.old.skip(Dropped(item, _LEFT, _LEFT.reason), now)

    def leave_chain(self, chain: RedirectChain, now: int) -> None:
        """Takes a chain whose answer has not come: it goes on as it is, and ends there. Raises
        StoreError.
        """
        chain.results = self.new
        item = chain.item
        if item.listed is None:
            self._follow(item, now)
            return
        datum = CrawlDatum.from_bytes(item.datum.to_bytes())  # the chain goes on with its own
        self._list(item.listed, datum, item.own_delay)
        self.in_flight[item.listed] += 1
        left = FetchItem(item.url, datum, item.queue_id, item.listed)
        self.old.skip(Dropped(left, _LEFT, _LEFT.reason), now)

    def finish(self) -> None:
        """Puts the part into its place, and begins with it. Raises StoreError."""
        if self._writer is not None and self.path is not None:
            self._writer.close()
            draft = _draft(self.path)
            crc_path(draft).replace(crc_path(self.path))
            draft.replace(self.path)
            sync_path(self.path.parent)
        self.new.ledger.generated += self.count
        self.begin(self)
        if not self.done.done():
            self.done.set_result(self.count)

    def _follow(self, item: FetchItem, now: int) -> None:
        self.followed.append(item)
        go_on(item, self.old, self.new, now)

    def _list(self, listed: str, datum: CrawlDatum, own_delay: int | None) -> None:
        if self._writer is None:
            raise StoreError(f"{listed} is left of a list that has ended")
        if own_delay is not None:
            datum.metadata[VARIABLE_DELAY_KEY] = LongWritable(own_delay)
        self._writer.append(Text(listed), datum)
        datum.metadata.pop(VARIABLE_DELAY_KEY, None)
        self.count += 1


class Claims:
    """The URLs of no list that a process follows, and the parts that its list has got.

    Parts are numbered as they come: of a listed URL of part n, and one of no list whose page was
    asked when there were m parts, one is fetched if m < n.
    """

    def __init__(self) -> None:
        self.parts = 0
        """Parts that have come since the fetch began."""
        self._followed: dict[int, int] = {}
        """By the hash of a URL of no list: the parts that there were."""
        self._files: list[list[tuple[int, Sequence[Path]]]] = [[], []]
        """The parts of the list before, and those of this one, with their numbers."""
        self._listed: dict[int, int] | None = None
        """By the hash of a URL of these: the number of its part. Read when it is wanted."""

    def turn(self, files: Sequence[Path], followed: Iterable[FetchItem]) -> int:
        """Begins with another list, into which `files` and what is `followed` go on. Returns the
        number of these files.
        """
        self._followed = {hash(item.url): item.parts for item in followed}
        self._files = [self._files[-1], []]
        return self.take(files)

    def take(self, files: Sequence[Path]) -> int:
        """Takes more of the list; returns the number of these files."""
        self.parts += 1
        self._files[-1].append((self.parts, files))
        self._listed = None
        return self.parts

    def follow(self, item: FetchItem) -> None:
        """Claims an item of no list."""
        key = hash(item.url)
        self._followed[key] = min(item.parts, self._followed.get(key, item.parts))

    def fetched(self, item: FetchItem) -> Dropped | None:
        """Returns how a listed item ends that is fetched already, as something had led to it; None
        for all others.
        """
        parts = None if item.listed is None else self._followed.get(hash(item.url))
        if parts is None or parts >= item.parts:
            return None
        return Dropped(item, Outcome.SKIPPED_FOLLOWED, Outcome.SKIPPED_FOLLOWED.reason)

    def is_listed(self, item: FetchItem) -> bool:
        """Tells whether an item of no list has been listed since its page was asked. Raises
        FormatError.
        """
        if item.parts == self.parts:
            return False
        if self._listed is None:
            self._listed = {
                hash(url): number
                for parts in self._files
                for number, files in parts
                for url in listed_urls(path for path in files if path.exists())
            }
        return self._listed.get(hash(item.url), 0) > item.parts
