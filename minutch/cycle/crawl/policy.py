"""How the rounds of a crawl follow each other: one by one, as in Nutch, or so that the fetch goes
on while a round's other steps run.

    round 1   generate ── fetch ────────┐ parse ─ updatedb ─ … ┐
    round 2               what is left ─┴──────────────────────┴─ generate ─ + ──── fetch ─ …

Then one fetch lasts as long as the crawl (`Fetch`). When few hosts are left of a list (`FewHosts`),
a new segment is made, to which all goes that is not settled; the old one is closed, and its steps
run while the hosts that are left are asked. Then `generate` adds to the list of the new segment.
Each segment is one of Nutch's, and each round one list, as ever. A list that was interrupted is the
first one of the fetch, and treated like any other.
"""

from __future__ import annotations

import logging
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Final, Protocol

from minutch.clock import SteadyClock
from minutch.conf import Configuration
from minutch.cycle.crawl.steps import CrawlOptions, Steps
from minutch.cycle.fetch.fetch import Fetch
from minutch.cycle.fetch.frontier.listindex import generate_files
from minutch.cycle.fetch.results.fetchresults import logs_in, resume
from minutch.cycle.fetch.stats import Snapshot
from minutch.cycle.fetch.watch import watch_of
from minutch.cycle.fetchlist.generate import Generated
from minutch.cycle.fetchlist.lists import FetchListWriter
from minutch.cycle.fetchlist.select import LEFT_FOR_LATER
from minutch.cycle.fetchlist.selector import OpenList
from minutch.cycle.segment.store import FETCHING, Segment
from minutch.job import Counters, JobContext
from minutch.paths import is_local
from minutch.terminal import counted
from minutch.work.engine import runs_here
from minutch.work.tables.install import remove

log = logging.getLogger(__name__)

FEW_HOSTS: Final = 0.5
"""Of the hosts that a list had, fewer than this share are left."""
SETTLED: Final = 0.9
"""The share of a list that has to have ended before, where the next list is of links that are found
in this one: they would come a round later, and in a crawl with a number of rounds not at all.
"""
SETTLED_AT_LEAST: Final = 0.5
"""The same where there are as many rounds as it takes, or pages that the list had no place for."""
SECONDS: Final = 1
"""For which that lasts: what is left is no matter of a moment."""


@dataclass(frozen=True, slots=True)
class Carried:
    """A segment whose list has begun with what another one has left, or with what an interrupted
    fetch has: generate adds to it.
    """

    path: Path
    listed: int
    """URLs of its list."""
    left: int
    """Those that have not ended."""
    hosts: int
    """The hosts of these."""


class Rounds(Protocol):
    """The rounds of a crawl, as their policy sees them."""

    context: JobContext
    options: CrawlOptions
    calls: Steps

    @property
    def may_turn(self) -> bool:
        """True if there will be another round, as far as is known."""
        ...

    @property
    def interrupted(self) -> list[Path]:
        """The segments that wait for their fetch: it was interrupted, or has not begun."""
        ...

    def joined(self, segment: Path) -> None:
        """What waits of a segment belongs to the list that is carried."""

    @property
    def has_due(self) -> bool:
        """True if there is something for generate that it has not seen: pages that make a list by
        now, seeds, sitemaps, or what was injected by hand.
        """
        ...


class OneByOne:
    """A policy, which fetches: a round ends before the next one begins, as in Nutch."""

    carried: Carried | None = None
    """The segment that the next round goes on with."""

    def __init__(self, rounds: Rounds) -> None:
        self._rounds = rounds

    @property
    def open(self) -> list[Path]:
        """The segments that are being fetched beside the steps of a round."""
        return []

    @property
    def running(self) -> AbstractContextManager[object]:
        """Is entered while there are rounds."""
        return nullcontext()

    def take_up(self, segment: Path, context: JobContext) -> bool:
        """Goes on with an interrupted fetch, and carries its segment (True): generate may add to
        its list.
        """
        return False

    def listed(self, found: Generated) -> list[Path]:
        """Returns the segments whose pages are to be fetched now, after generate."""
        return sorted(found.segments)

    def fetch(self, segment: Path) -> partial[Counters]:
        """Returns the call that fetches a segment."""
        return self._rounds.calls.fetch(segment)

    def held(self) -> AbstractContextManager[None]:
        """While this lasts, no page is asked for."""
        return nullcontext()


@dataclass
class FewHosts:
    """Decides when a list is turned over. Pure; asked once a second.

    There are fewer hosts than could be asked: of those of the list fewer than FEW_HOSTS have URLs
    left, and requests could be made that nobody is there for. What the list has begun with, the
    tail of another one, is not waited for: not when all else has ended, nor where there is nothing
    else and something is due. Nor are hosts that rest since they fail, or have asked for it: ten of
    them held a list with 28 URLs for 55 s, and 500 pages that were due.
    """

    settled: float = SETTLED
    """The share of the list that has to have ended."""
    tail: int = 0
    """URLs that the list has begun with."""
    hosts: int = 0
    """The hosts of these."""
    _seconds: int = 0

    def __call__(self, state: Snapshot, *, has_due: bool = False) -> bool:
        """Returns True if the list is to be turned over."""
        few, share = FEW_HOSTS * state.hosts, self.settled
        is_few = (
            state.queues > 0
            and state.active < state.threads
            and state.total is not None
            and (
                (state.queues < few and state.done >= share * state.total)
                or self._is_tail(state, state.total, has_due)
                or (has_due and state.resting >= state.queues)
            )
            and not state.paused
        )
        self._seconds = self._seconds + 1 if is_few else 0
        return self._seconds > SECONDS

    def _is_tail(self, state: Snapshot, total: int, has_due: bool) -> bool:
        fresh = total - self.tail
        if fresh <= 0:
            return has_due
        return state.queues <= self.hosts and state.done >= self.settled * fresh


class Overlapping(OneByOne):
    """Rounds that overlap."""

    def __init__(self, rounds: Rounds) -> None:
        super().__init__(rounds)
        context = rounds.context
        self.fetching = Fetch(
            SteadyClock(context.clock), rounds.calls.fetch_options, watch_of(context)
        )
        self._tail: Carried | None = None
        """What the list has begun with."""
        self._others = 0
        """Pages that are due, and for which the list had no place."""

    @property
    def running(self) -> AbstractContextManager[object]:
        return self.fetching

    @property
    def open(self) -> list[Path]:
        return self.fetching.segments

    def take_up(self, segment: Path, context: JobContext) -> bool:
        listed, left = self.fetching.begin(segment, _to_the_end(context))
        hosts = 0

        def look(state: Snapshot) -> bool:
            nonlocal hosts
            hosts = state.queues
            return True

        if self.fetching.wait(look, context):
            return False  # nothing is left of it
        self.carried = Carried(segment, listed, left, hosts)
        return True

    def listed(self, found: Generated) -> list[Path]:
        self._others = sum(found.counters.get(reason, 0) for reason in LEFT_FOR_LATER)
        self._tail, self.carried = self.carried, None
        if self._tail is None:
            return sorted(found.segments)
        path = self._tail.path
        self.fetching.add(found.added)
        if not (found.added or len(OpenList.of(Segment(path)).taken)):
            self.fetching.close(self._rounds.context)
            remove(path)
            return []
        return [path]

    def fetch(self, segment: Path) -> partial[Counters]:
        """The list of an interrupted round has hardly anything left, if another one has begun: it
        is fetched before.
        """
        others = self._rounds.interrupted
        if any(resume(logs_in(other / FETCHING)).ledger.settled for other in others):
            return self._rounds.calls.fetch(segment)
        return partial(self._fetch_list, segment, others[0] if others else None)

    def held(self) -> AbstractContextManager[None]:
        return self.fetching.held()

    def _fetch_list(self, segment: Path, other: Path | None, *, context: JobContext) -> Counters:
        """Fetches a list to its end, or until it is turned over: to a new one, or to that of
        another segment, which waits. Closes its segment.
        """
        context = _to_the_end(context)
        fetching, rounds = self.fetching, self._rounds
        is_endless = rounds.options.rounds == -1
        few = FewHosts(SETTLED_AT_LEAST if is_endless or self._others else SETTLED)
        if segment not in fetching.segments:
            _, left = fetching.begin(segment, context)
            few.tail = left if is_endless and other is not None else 0
        elif is_endless and self._tail is not None:
            few.tail, few.hosts = self._tail.left, self._tail.hosts
        hosts = 0

        def is_time(state: Snapshot) -> bool:
            nonlocal hosts
            hosts = state.queues
            has_due = is_endless and (other is not None or rounds.has_due)
            return few(state, has_due=has_due) and rounds.may_turn

        if not fetching.wait(is_time, context):
            path, files = other, [] if other is None else generate_files(other)
            if path is None:
                writer = FetchListWriter.from_conf(
                    rounds.calls.segments, context.conf, fetchers=None, seed=None
                )
                path = writer.begin(context.clock)
            left = fetching.turn(path, context)
            listed = left
            if files:
                rounds.joined(path)
                listed += fetching.add(files)
            self.carried = Carried(path, listed, listed, hosts)
            log.info(
                "%s of segment %s go on in segment %s",
                counted(left, "URLs"),
                segment.name,
                path.name,
            )
        return fetching.close(context)


def why_not_overlapping(crawl_dir: Path, conf: Configuration) -> str:
    """Returns why rounds can't overlap; empty if they can."""
    if not runs_here(conf):
        return "other machines fetch"
    return "" if is_local(crawl_dir) else f"{crawl_dir} is no folder of this machine"


def _to_the_end(context: JobContext) -> JobContext:
    """A list that is turned over need not end early."""
    conf = context.conf.with_values({"fetcher.tail.share": "0"})
    return replace(context, conf=conf.freeze())
