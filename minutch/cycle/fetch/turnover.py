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
from collections.abc import Callable, Coroutine, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum, auto
from pathlib import Path
from typing import Any, Final

from minutch.cycle.fetch.frontier.listindex import DATUM, listed_urls
from minutch.cycle.fetch.frontier.queueitems import (
    VARIABLE_DELAY_KEY,
    Dropped,
    FetchItem,
    Neighbours,
)
from minutch.cycle.fetch.frontier.queues import FetchQueues
from minutch.cycle.fetch.ledger import Outcome
from minutch.cycle.fetch.limits import Visitor, Visits
from minutch.cycle.fetch.redirectchain import RedirectChain
from minutch.cycle.fetch.results.fetchresults import FetchResults
from minutch.errors import StoreError
from minutch.hadoop.formats.checksum import crc_path
from minutch.hadoop.formats.sequencewriter import TEXT, SequenceFileWriter
from minutch.hadoop.formats.writables import LongWritable, Text
from minutch.records.crawldatum import CrawlDatum
from minutch.work.tables.install import sync_path

SYNC_EVERY: Final = 0.25
"""Seconds between two syncs of the logs to the medium."""
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
        # From now on it writes into the new log, whatever becomes of it.
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
            # The sums first: the part is never there without them.
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
            # The queue had taken it out of the metadata; the next run of the list needs it.
            datum.metadata[VARIABLE_DELAY_KEY] = LongWritable(own_delay)
        self._writer.append(Text(listed), datum)
        datum.metadata.pop(VARIABLE_DELAY_KEY, None)
        self.count += 1


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
        # Hashes in place of names: a fetch may last as long as its crawl.
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
        # The earliest claim decides: it was made with the fewest parts listed.
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
        # Nothing was listed since: the usual case, and nothing has to be read.
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
class _Chain:
    """A chain in flight and when its current request began (ms)."""

    chain: RedirectChain
    since: int
    hung: bool = False


@dataclass(slots=True)
class InFlight:
    """The chains in flight, by their tasks; some wait for the turn of another host than their
    own.
    """

    visits: Visits
    _chains: dict[asyncio.Future[Any], _Chain] = field(default_factory=dict)

    def add(self, task: asyncio.Task[None], chain: RedirectChain, now: int) -> None:
        """Takes a chain whose first request begins."""
        self._chains[task] = _Chain(chain, now)

    def remove(self, task: asyncio.Future[Any]) -> None:
        """Lets a chain go that has ended; what is no chain's task was not there."""
        self._chains.pop(task, None)

    def __len__(self) -> int:
        return len(self._chains)

    def __iter__(self) -> Iterator[tuple[asyncio.Future[Any], RedirectChain]]:
        return ((task, one.chain) for task, one in self._chains.items())

    @property
    def asking(self) -> int:
        """Chains that do not wait for another host."""
        return len(self._chains) - len(self.visits)

    def oldest(self, now: int) -> int:
        """Returns when the oldest request began; now, if there is none."""
        return min((one.since for one in self._chains.values()), default=now)

    def put_off(self, lasted: int) -> None:
        """As long as a pause took, no request was waited for."""
        for one in self._chains.values():
            one.since += lasted

    def give_up(self, now: int, limit: int) -> Iterator[tuple[RedirectChain, int]]:
        """Cancels what has hung for more than `limit` ms, and yields it and for how long. Neither
        who waits for another host hangs, nor a page that is parsed, which has a limit of its own.
        """
        for task, one in list(self._chains.items()):
            if self.visits.waits(task):
                one.since = now
            lasted = now - one.since
            if lasted > limit and not (one.hung or one.chain.parsing):
                # Before the task is cancelled, which asks for the reason.
                one.hung = True
                task.cancel()
                yield one.chain, lasted

    def is_given_up(self, task: asyncio.Future[Any]) -> bool:
        """Returns whether a chain was cancelled since it hangs."""
        return task in self._chains and self._chains[task].hung


@dataclass(slots=True)
class FetchState:
    """The lists of a fetch that are open, what is in flight of them, and how far it is with them.

    One list is fetched; of those before, which were turned over, chains are in flight.
    """

    results: FetchResults
    """Those of the current list."""
    neighbours: Neighbours
    in_flight: InFlight
    total: int | None = None
    """The URLs of the list altogether, if known; for the time left."""
    ended: Callable[[FetchResults], Coroutine[Any, Any, None]] | None = None
    """Awaited when all URLs of a list have ended that is not the current one."""
    stage: Stage = Stage.OPENING
    turnover: Turnover | None = None
    """Given while the queues are emptied into the next list."""
    claims: Claims = field(default_factory=Claims)
    pending: set[asyncio.Future[Any]] = field(default_factory=set)
    """What has to be done before the fetch may end: lists are on their way here, or are closed."""
    _before: list[FetchResults] = field(default_factory=list)
    """Results of lists in which chains are still to end."""

    @property
    def is_open(self) -> bool:
        """True while chains may begin or end."""
        return self.stage in (Stage.RUNNING, Stage.LEAVING)

    @property
    def is_leaving(self) -> bool:
        """True if what is not in flight is left to the next run."""
        return self.stage is Stage.LEAVING

    def is_done(self, *, has_more: bool) -> bool:
        """Returns whether the fetch has come to its end: nothing is in flight, and nothing left.
        `has_more` says whether something waits in the queues. Who has nothing left says so to the
        others (`Neighbours`), once for all that came.
        """
        if self.in_flight or self.is_leaving:
            return not self.in_flight
        is_over = not (has_more or self.turnover or self.pending)
        return is_over and self.neighbours.nothing_to_come()

    @property
    def active(self) -> int:
        """Chains that take a place: pages that are being parsed take none."""
        return self.in_flight.asking - self.results.recorder.parsing

    @property
    def open_results(self) -> list[FetchResults]:
        """The results of the current list, and of lists whose chains have not all ended."""
        return [*self._before, self.results]

    def turn(self, turnover: Turnover, queues: FetchQueues, now: int) -> None:
        """Nothing waits any more: takes what is in flight along, and opens the next list. Raises
        StoreError.
        """
        self.turnover = self.total = None
        for task, chain in self.in_flight:
            ended = task.done()  # which the loop has not heard of yet
            if chain.results is turnover.old and not (ended or chain.answered or chain.put_back):
                turnover.leave_chain(chain, now)
        self._before.append(self.results)
        self.results = turnover.new
        queues.go_on(now)
        for item in turnover.unlisted:
            queues.add(item, now)
        turnover.finish()
        self.results.recorder.hurry()  # a list before ends when its pages are parsed

    def closing(self) -> list[Coroutine[Any, Any, None]]:
        """Returns what closes the lists before in which nothing is in flight any more: once."""
        if not self._before:
            return []
        in_flight = {id(chain.results) for _, chain in self.in_flight}
        over = [one for one in self._before if id(one) not in in_flight]
        self._before = [one for one in self._before if id(one) in in_flight]
        return [] if self.ended is None else [self.ended(one) for one in over]

    async def keep_synced(self) -> None:
        """Brings what is logged onto the medium, again and again."""
        while True:
            await asyncio.sleep(SYNC_EVERY)
            for results in self.open_results:
                # Fdatasync takes milliseconds, in which the event loop would answer nobody.
                await asyncio.to_thread(results.sync)
