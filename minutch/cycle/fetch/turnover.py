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

`FetchState` has the lists of a running fetch, and how far it is with them.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Coroutine, Iterable, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum, auto
from pathlib import Path
from typing import Any, Final

from minutch.cycle.fetch.frontier.listindex import DATUM, listed_urls
from minutch.cycle.fetch.frontier.queueitems import (
    VARIABLE_DELAY_KEY,
    Dropped,
    FetchItem,
)
from minutch.cycle.fetch.ledger import Outcome
from minutch.cycle.fetch.limits import Guards, Visitor
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
        self.in_flight[item.listed] += 1
        datum = CrawlDatum.from_bytes(item.datum.to_bytes())  # the chain goes on with its own
        self.leave(replace(item, datum=datum, frame=None), now)

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


# -- the lists of a running fetch ------------------------------------------------------------------


class Stage(Enum):
    """How far a fetch is. It may be held in each of them (`Pause`), and be turning over."""

    OPENING = auto()
    """What an earlier run was to follow is taken up; no page is asked for yet."""
    RUNNING = auto()
    LEAVING = auto()
    """What is in flight is finished, the rest is left to the next run."""
    OVER = auto()


@dataclass(slots=True)
class InFlight:
    """A chain in flight and when its current request began (ms)."""

    chain: RedirectChain
    since: int
    hung: bool = False


@dataclass(slots=True)
class FetchState:
    """How far a fetch is, with the lists that are open and the chains that are in flight."""

    results: FetchResults
    """Those of the current list."""
    total: int | None = None
    """Its URLs altogether, if known; for the time left."""
    ended: Callable[[FetchResults], Coroutine[Any, Any, None]] | None = None
    """Awaited when all URLs of a list before the current one have ended."""
    stage: Stage = Stage.OPENING
    guards: Guards | None = None
    """Those of the list, from its beginning to its end; nothing ends a list that has not begun."""
    turnover: Turnover | None = None
    """That to the next list, until nothing of this one waits."""
    expected: int = 0
    """How often URLs are on their way here: it has not come to its end before."""
    before: list[FetchResults] = field(default_factory=list)
    """Results of lists in which chains are still to end."""
    closing: set[asyncio.Future[None]] = field(default_factory=set)
    """Ends of lists that are awaited."""
    running: dict[asyncio.Task[None], InFlight] = field(default_factory=dict)

    @property
    def is_open(self) -> bool:
        """True while chains may begin or end."""
        return self.stage in (Stage.RUNNING, Stage.LEAVING)

    @property
    def is_at_end(self) -> bool:
        """True if no list has anything in flight, and no other one is to come."""
        pending = self.turnover or self.before or self.closing or self.expected
        return not (self.running or pending)

    @property
    def open_results(self) -> list[FetchResults]:
        """The results of the current list, and of lists whose chains have not all ended."""
        return [*self.before, self.results]

    def opened(self) -> None:
        """Pages may be asked for, unless the fetch has been stopped meanwhile."""
        if self.stage is Stage.OPENING:
            self.stage = Stage.RUNNING

    def turn(self, turnover: Turnover, now: int) -> None:
        """Takes what is in flight along, and opens the next list. Raises StoreError."""
        self.turnover = self.guards = self.total = None
        for task, running in self.running.items():
            chain, ended = running.chain, task.done()  # which the loop has not heard of yet
            if chain.results is turnover.old and not (ended or chain.answered or chain.put_back):
                turnover.leave_chain(chain, now)
        self.before.append(self.results)
        self.results = turnover.new

    def end_those_before(self) -> list[asyncio.Future[None]]:
        """Tells of lists in which nothing is in flight any more; returns what is to be awaited."""
        in_flight = {id(running.chain.results) for running in self.running.values()}
        over = [one for one in self.before if id(one) not in in_flight]
        self.before = [one for one in self.before if id(one) in in_flight]
        if self.ended is None:
            return []
        tasks: list[asyncio.Future[None]] = [asyncio.ensure_future(self.ended(one)) for one in over]
        self.closing.update(tasks)
        return tasks


# -- what is fetched already -----------------------------------------------------------------------


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
