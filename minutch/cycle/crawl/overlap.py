"""Runs a crawl whose rounds overlap: while a round's other steps run, the fetch goes on.

    round 1   generate ── fetch ────────┐ parse ─ updatedb ─ … ┐
    round 2               what is left ─┴──────────────────────┴─ generate ─ + ──── fetch ─ …

One fetch lasts as long as the crawl (`RoundsFetch`). When few hosts are left of a list
(`FewHosts`), a new segment is made, to which all goes that is not settled; the old one is closed,
and its steps run while the hosts that are left are asked. Then `generate` adds to the list of the
new segment. Each segment is one of Nutch's, and each round one list, as ever. A crawl that was
interrupted first finishes the rounds that were open, one after the other.
"""

from __future__ import annotations

import logging
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final

from minutch.cycle.crawl.crawler import STOP, Crawler
from minutch.cycle.crawl.rounds import Round
from minutch.cycle.fetch.roundsfetch import RoundsFetch
from minutch.cycle.fetch.snapshot import Snapshot
from minutch.cycle.fetchlist.lists import FetchListWriter
from minutch.cycle.fetchlist.select import LEFT_FOR_LATER
from minutch.cycle.fetchlist.selector import OpenList
from minutch.cycle.segment.store import Segment
from minutch.job import Counters, JobContext
from minutch.terminal import counted
from minutch.work.tables.workfolders import remove

if TYPE_CHECKING:
    from minutch.cycle.fetchlist.generate import Generated

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


@dataclass
class FewHosts:
    """Decides when a list is turned over. Pure; asked once a second.

    There are fewer hosts than could be asked: of those of the list fewer than FEW_HOSTS have URLs
    left, and requests could be made that nobody is there for.
    """

    settled: float = SETTLED
    """The share of the list that has to have ended."""
    _seconds: int = 0

    def __call__(self, state: Snapshot) -> bool:
        """Returns True if the list is to be turned over."""
        is_few = (
            0 < state.queues < FEW_HOSTS * state.hosts
            and state.active < state.threads
            and state.total is not None
            and state.done >= self.settled * state.total
            and not state.paused
        )
        self._seconds = self._seconds + 1 if is_few else 0
        return self._seconds > SECONDS


@dataclass
class OverlappingCrawler(Crawler):
    """A crawl that runs so."""

    fetching: RoundsFetch = field(init=False)
    _carried: Path | None = field(init=False, default=None)
    """The segment whose list has begun with what the one before has left."""
    _tail: int = field(init=False, default=0)
    """How many URLs that are."""
    _others: int = field(init=False, default=0)
    """Pages that are due, and for which the list had no place."""
    _is_resuming: bool = field(init=False, default=False)

    def _fetching(self) -> AbstractContextManager[object]:
        self.fetching = RoundsFetch(self.context, self.calls.fetch_options)
        return self.fetching

    # -- rounds ------------------------------------------------------------------------------------

    def _is_over(self, number: int) -> bool:
        if not super()._is_over(number):
            return False
        if self._carried is not None:  # its list has begun, and comes to its end
            carried, self._carried = self._carried, None
            self._place(number + 1)
            self._is_last = True
            self.screen.title(self.screen.place.capitalize())
            self.fetching.add([])
            self._finish(Round(carried.name, ["generate"]), self.steps)
        return True

    @property
    def _open(self) -> list[str]:
        return [path.name for path in self.fetching.segments]

    def _go_on(self, current: Round, left: list[str]) -> None:
        self._is_resuming = True
        super()._go_on(current, left)
        self._is_resuming = False

    def _generate(self, into: Path | None = None) -> tuple[partial[Generated], dict[str, str]]:
        return super()._generate(self._carried)

    def _listed(self, found: Generated) -> list[Path]:
        self._others = sum(found.counters.get(reason, 0) for reason in LEFT_FOR_LATER)
        carried, self._carried = self._carried, None
        if carried is None:
            return super()._listed(found)
        self.fetching.add(found.added)
        if not (found.added or len(OpenList.of(Segment(carried)).taken)):
            self.fetching.close(self.context)
            remove(carried)
            return super()._listed(found)
        return [carried]

    @property
    def _left(self) -> int | None:
        left = super()._left
        return left if left is None or self._carried is None else max(0, left - self._tail)

    # -- the fetch ---------------------------------------------------------------------------------

    def _fetch(self, segment: Path) -> partial[Counters]:
        return super()._fetch(segment) if self._is_resuming else partial(self._fetch_list, segment)

    def _fetch_list(self, segment: Path, *, context: JobContext) -> Counters:
        """Fetches a list to its end, or until it is turned over; closes its segment."""
        if segment not in self.fetching.segments:
            self.fetching.begin(segment, context)
        needs_links = self.options.rounds > 0 and not self._others
        few = FewHosts(SETTLED if needs_links else SETTLED_AT_LEAST)
        if not self.fetching.wait(lambda state: few(state) and self._may_turn, context):
            writer = FetchListWriter.from_conf(
                self.calls.segments, context.conf, fetchers=None, seed=None
            )
            self._carried = writer.begin(context.clock)
            self._tail = self.fetching.turn(self._carried, context)
            log.info(
                "%s of segment %s go on in segment %s",
                counted(self._tail, "URLs"),
                segment.name,
                self._carried.name,
            )
        return self.fetching.close(context)

    def _fetch_properties(self) -> dict[str, str]:
        """A list that is turned over need not end early."""
        limit = super()._fetch_properties()
        return limit if self._is_resuming else limit | {"fetcher.tail.share": "0"}

    @property
    def _may_turn(self) -> bool:
        """True if there will be another round, as far as is known."""
        is_stopped = any(path.exists() for path in (Path(STOP), self.directory / STOP))
        return not (self._is_last or is_stopped or self._is_asked_to_stop or self._left == 0)
