"""Puts one process's share of a fetch together: settings and plugins in, a `FetchLoop` out.

With more than one process each has the queues whose name hashes to its number, its own log, and
nobody else's hosts.
"""

from __future__ import annotations

import asyncio
import gc
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from itertools import chain
from pathlib import Path

from minutch.clock import SteadyClock
from minutch.cycle.fetch.components import FetchComponents, ProtocolLookup
from minutch.cycle.fetch.decisions import RedirectRules
from minutch.cycle.fetch.frontier.frontier import Frontier, LinkFollower, open_frontier
from minutch.cycle.fetch.frontier.listindex import listed_urls
from minutch.cycle.fetch.frontier.queueitems import FetchItem, Neighbours
from minutch.cycle.fetch.ledger import Ledger
from minutch.cycle.fetch.limits import FetchLimits, Pause, Visits, Wakeup
from minutch.cycle.fetch.loop import FetchLoop, Reporter
from minutch.cycle.fetch.redirectchain import ChainRunner
from minutch.cycle.fetch.results.closing import stored_codec
from minutch.cycle.fetch.results.fetchlog import FetchLog
from minutch.cycle.fetch.results.fetchresults import FetchResults, Resumed
from minutch.cycle.fetch.results.pagearchive import FOLDER, PageArchive, number_of
from minutch.cycle.fetch.results.recorder import LivePageParser, Recorder
from minutch.cycle.fetch.settings import FetchSettings
from minutch.cycle.fetch.stats import FetchListener, FetchStats
from minutch.cycle.fetch.turnover import FetchState, InFlight, Turnover, left
from minutch.cycle.segment.store import Segment


@dataclass(frozen=True, slots=True)
class SessionFiles:
    """The files of one process: its fetch lists, and the log that it writes."""

    segment: Segment
    lists: Sequence[Path]
    log: Path
    ahead: int = 0
    """ms that the dates of what is fetched from then on are ahead of the clock."""

    @property
    def scratch(self) -> Path:
        """What the names of copies of lists begin with."""
        return self.log.with_name(f"list-{self.log.name}")


@dataclass(slots=True)
class FetchSession:
    """Everything that one process needs."""

    loop: FetchLoop
    clock: SteadyClock
    frontier: Frontier
    protocols: ProtocolLookup
    resumed: Resumed
    follower: LinkFollower | None
    parser: LivePageParser | None
    results_of: Callable[[SessionFiles], FetchResults]
    """Makes the results of another segment."""

    @property
    def results(self) -> FetchResults:
        """Those of the list that is being fetched."""
        return self.loop.state.results

    async def run(self) -> None:
        """Fetches; closes connections and files whatever happens."""
        try:
            with _cycles_seldom_sought():
                await self.loop.run(self._take_up)
        finally:
            self.frontier.close()
            if self.parser is not None:
                self.parser.close()
            await self.protocols.close()
            for results in self.loop.state.open_results:
                await asyncio.to_thread(results.close)
            await self.loop.reporter.listener.close()

    async def _take_up(self) -> None:
        """Takes up what an earlier run was to follow."""
        names = self.frontier.names
        await names.learn(self.resumed.follow)
        for item in self.resumed.followed(names, self.loop.state.neighbours.share):
            self.loop.add(item)
        self.resumed.let_go()

    def receive(self, item: FetchItem) -> None:
        """Takes an item that another process hands over, maybe from a list before; a link only if
        it was not followed yet.
        """
        if self.loop.state.claims.is_listed(item):
            self.results.skip(left(item), self.clock.now())
        elif item.redirects or self.follower is None or self.follower.is_new(item.url):
            self.results.follow(item)
            self.loop.add(item)

    async def turn(self, files: SessionFiles) -> int:
        """Goes on with a next segment. All that is not settled goes there: what is of the list into
        a new part of that one's, `files.lists[0]`; without a part all is settled. Returns the
        number of URLs in it. Raises StoreError.
        """
        self.clock.ahead = files.ahead

        def begin(turnover: Turnover) -> None:
            number = self.loop.state.claims.turn(files.lists, turnover.followed)
            self.frontier.leave()
            if files.lists:
                own = self.frontier.read(
                    files.lists, files.scratch, turnover.in_flight, number=number, mine=True
                )
                self.frontier.take(own)
            if self.follower is not None:
                followed = (item.url for item in turnover.followed)
                self.follower.forget(chain(listed_urls(files.lists), followed))

        turnover = Turnover(
            self.loop.state.results,
            self.results_of(files),
            files.lists[0] if files.lists else None,
            begin,
            asyncio.get_running_loop().create_future(),
        )
        self.loop.turn(turnover)
        return await turnover.done

    async def take(self, files: SessionFiles) -> int:
        """Takes more parts of the segment's list, which begins with them; returns the number of
        their URLs, those of other processes included. Raises FormatError, StoreError.
        """
        self.clock.ahead = files.ahead
        number = self.loop.state.claims.take(files.lists)
        read = partial(self.frontier.read, files.lists, files.scratch, Counter(), number=number)
        index = await asyncio.to_thread(read)
        self.frontier.take(index)
        if self.follower is not None:
            for url in listed_urls(files.lists):
                self.follower.is_new(url)
        self.loop.state.results.ledger.generated += index.records
        self.loop.begin_list()
        return index.records


@contextmanager
def _cycles_seldom_sought() -> Iterator[None]:
    """Python looks for cycles every 20,000 objects, not every 700, and no more at what is there
    already.

    A fetch makes hardly any: by default the looking takes a tenth of its time.
    """
    before = gc.get_threshold()
    gc.freeze()
    gc.set_threshold(20_000, 50, before[2])
    try:
        yield
    finally:
        gc.set_threshold(*before)
        gc.unfreeze()


def open_session(
    files: SessionFiles,
    components: FetchComponents,
    settings: FetchSettings,
    clock: SteadyClock,
    listener: FetchListener,
    neighbours: Neighbours,
    resumed: Resumed,
) -> FetchSession:
    """Puts the parts together, each made of those before it. Raises FormatError, StoreError."""
    wakeup, pause, stats = Wakeup(), Pause(), FetchStats()
    frontier = open_frontier(neighbours.share, settings, components, wakeup, clock.now())
    index = frontier.read(files.lists, files.scratch, resumed.settled)
    frontier.take(index)
    queues, names = frontier.queues, frontier.names
    visits = Visits(queues, clock, names, wakeup)
    protocols = ProtocolLookup(components.protocol_factory, visits.of)

    parser = make_parser(settings, components)

    def results_of(files: SessionFiles) -> FetchResults:
        archive, folder = None, files.log.parent / FOLDER
        if settings.warc is not None:
            number = number_of(files.log)
            archive = PageArchive(files.segment, folder, number, settings.warc, components.clock)
        return FetchResults(
            make_recorder(files.segment.name, settings, components, parser, clock.date),
            FetchLog(files.log, stored_codec(settings.form.compression)),
            Ledger(),
            stats,
            archive,
        )

    results = results_of(files)
    results.ledger.generated = index.records
    follower = None
    if settings.parse and not settings.for_step and settings.follow.depth > 0:
        follower = LinkFollower(settings.follow, names, stats, listed_urls(files.lists))
    runner = ChainRunner(
        settings,
        clock,
        queues,
        names,
        protocols.protocol_of,
        RedirectRules(
            settings.redirects, components.normalizers.normalize, components.filters.filter
        ),
        stats,
        listener,
        pause,
        wakeup,
        follower,
    )
    state = FetchState(
        results, neighbours, InFlight(visits), index.records - resumed.ledger.settled
    )
    limits = FetchLimits(settings, queues, pause)
    reporter = Reporter(clock, queues, state, limits, listener)
    loop = FetchLoop(clock, queues, runner, state, limits, reporter, wakeup)
    return FetchSession(loop, clock, frontier, protocols, resumed, follower, parser, results_of)


def make_parser(settings: FetchSettings, components: FetchComponents) -> LivePageParser | None:
    """Makes what parses pages as they come; None where they are not parsed."""
    if not settings.parse:
        return None
    from minutch.cycle.fetch.fetchparser import FetchParser

    factory = components.parser_factory(settings.form, for_step=settings.for_step)
    return FetchParser(factory, components.pool, settings)


def make_recorder(
    segment_name: str,
    settings: FetchSettings,
    components: FetchComponents,
    parser: LivePageParser | None = None,
    date: Callable[[int], int] = int,
) -> Recorder:
    """Makes the recorder of a segment; `date` as there."""
    mime, signature = components.mime, components.signature
    return Recorder(
        segment_name,
        settings,
        components.scoring,
        content_type=lambda declared, url, data: mime.resolve(declared or None, url, data),
        signature=lambda content: signature.calculate(content, None),
        parser=parser,
        date=date,
    )
