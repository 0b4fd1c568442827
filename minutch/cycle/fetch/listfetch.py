"""Fetches the URLs of fetch lists, in this process and those it starts, until all are settled.

    crawl_generate, logs of an earlier run ──> logs of this run ──> part files, once all is settled

It goes on where an earlier run was stopped, by whatever. `fetch` does a whole segment in this way;
where there are more machines, a task does one of its lists. The first signal lets requests in
flight finish, a second one stops at once; either way the next run fetches the URLs left.
"""

from __future__ import annotations

import asyncio
import logging
import signal
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import FrameType
from typing import Final, Protocol, TextIO

from minutch import eventloops
from minutch.clock import SteadyClock
from minutch.cycle.fetch.components import FetchComponents
from minutch.cycle.fetch.fetchprocesses import FetchProcesses
from minutch.cycle.fetch.frontier.hostmemory import HostMemory
from minutch.cycle.fetch.frontier.listindex import listed_urls
from minutch.cycle.fetch.ledger import Ledger, Outcome
from minutch.cycle.fetch.neighbours import Alone, Neighbours
from minutch.cycle.fetch.results.closing import close_segment, stored_codec
from minutch.cycle.fetch.results.fetchlog import Part
from minutch.cycle.fetch.results.fetchresults import Resumed, logs_after, logs_in, resume
from minutch.cycle.fetch.results.pagearchive import finish, recover
from minutch.cycle.fetch.session import FetchSession, SessionFiles, open_session
from minutch.cycle.fetch.settings import FetchSettings, places_here, share_of
from minutch.cycle.fetch.stats import FetchStats, ProcessListener, Snapshot
from minutch.cycle.fetch.watch import Display
from minutch.cycle.segment.store import Segment
from minutch.errors import MinutchError, StoreError
from minutch.hadoop.formats.sequencewriter import NONE, RECORD
from minutch.job import Counters
from minutch.processwide import command_line

log = logging.getLogger(__name__)

FINISHING: Final = "interrupted: finishing what is in flight (once more to stop at once)"
STOPPED: Final = "stopped at once; run fetch on the same segment again to go on"
NAMED: Final = 5
"""URLs that an error names."""
SIGNALS: Final = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)

Tick = Callable[[Snapshot], None]
Stops = Callable[[Callable[[], None]], AbstractContextManager[None]]
"""While this lasts, what it is given is called when the fetch is to end. Any thread may call it."""


class Interrupted(MinutchError):
    """A signal ended the fetch early: the log is kept, and the next run resumes from it."""

    exit_code = 130


class Watcher(Protocol):
    """Watches a fetch from outside, and may pause it (`minutch.cycle.fetch.watch`)."""

    def show(self, snapshot: Snapshot) -> None:
        """The state of the fetch, once a second."""

    def obeying(self, hold: Callable[[bool], None]) -> AbstractContextManager[None]:
        """While this lasts, `hold` is called from any thread with what is wanted."""

    def fetched(self, stats: FetchStats, urls: int) -> None:
        """The fetch has ended, after `urls` of its list."""


@dataclass
class ListFetch:
    """A fetch by processes on this machine. Its logs are in `work`, numbered from `number`."""

    segment: Segment
    files: list[Path]
    work: Path
    settings: FetchSettings
    components: FetchComponents
    clock: SteadyClock
    state_folder: Path
    """The folder in which hosts are remembered."""
    number: int = 0
    watched: bool = False
    is_stopping: Callable[[], bool] = bool
    """Asked once a second: once it is True, hosts that rest or fail are not waited for."""
    stops: Stops | None = None
    """Who ends it; without one, the signals of this process do."""
    as_begun: bool = False
    """Whether it is known that the settings are those of an earlier run."""
    resumed: Resumed = field(default_factory=Resumed)
    interrupted: bool = False

    @property
    def logs(self) -> list[Path]:
        """The logs of this run and of those before."""
        return logs_in(self.work)

    def run(
        self,
        err: TextIO,
        label: str,
        watcher: Watcher,
        serving: AbstractContextManager[None] | None = None,
    ) -> tuple[Ledger, FetchStats]:
        """Fetches, or goes on; the ledger is that of all runs, the stats are this one's. Raises
        StoreError, Interrupted.

        After a first signal (`interrupted`) some URLs may be left.
        """
        self.take_up()
        ledger, stats = self._fetch(err, label, watcher, serving or nullcontext())
        ledger.merge(self.resumed.ledger.outcomes)
        return ledger, stats

    def take_up(self) -> None:
        """Reads what an earlier run has left. Raises StoreError, FormatError."""
        recover(self.segment, self.work, self.logs)
        self.resumed = resume(self.logs, logs_after(self.segment.path))
        if self.resumed.ledger.settled:
            log.info(
                "Fetcher: going on with an unfinished fetch, %d URLs are done",
                self.resumed.ledger.settled,
            )
        if not self.as_begun:
            self.settings = _as_begun(self.settings, self.resumed)

    def checked(self, ledger: Ledger, files: Sequence[Path] = ()) -> int:
        """Returns the number of URLs in the list (`files`, if it has grown), all of which have an
        outcome: by the ledger, or by the logs if that does not add up. Raises StoreError with those
        that have none, which the next run fetches. Those that have two are only told of.
        """
        if ledger.settled == ledger.generated:
            return ledger.generated
        listed = Counter(listed_urls(files or self.files))
        settled = resume(self.logs).settled
        missing, again = listed - settled, settled - listed
        if missing:
            raise StoreError(
                f"{self.segment}: {missing.total()} of {listed.total()} URLs of the fetch list have"
                f" no outcome ({_some(missing)}); run fetch on the same segment again to fetch them"
            )
        log.error(
            "%s: the ledger does not add up: %d URLs in the fetch list, %d outcomes in the logs;"
            " more than one has %s",
            self.segment,
            listed.total(),
            settled.total(),
            _some(again) or "none",
        )
        return listed.total()

    def close(self, listed: int) -> Counters:
        """Puts what was fetched into the segment; `listed` URLs are settled. Returns the counters
        of the parse, if pages were parsed. Raises StoreError, FormatError.
        """
        finish(self.segment, self.work)
        return close_segment(self.segment, self.logs, self.parts, self.settings.form, listed)

    @property
    def parts(self) -> list[Part]:
        """The parts that the fetch writes."""
        parts = [Part.FETCH]
        if self.settings.store_content:
            parts.append(Part.CONTENT)
        if self.settings.parse:
            parts.append(Part.PARSE)
        return parts

    def session(self, tick: Tick, neighbours: Neighbours) -> FetchSession:
        """Returns one process's share of the fetch."""
        share = neighbours.share
        settings = share_of(self.settings, share.index, share.count)
        memory = HostMemory(self.state_folder, share.index, self.clock)
        publishers = self.components.publishers() if settings.publish else None
        session = open_session(
            SessionFiles(self.segment, self.files, self.work / f"log-{self.number + share.index}"),
            self.components,
            replace(settings, places=places_here(settings.places)),
            self.clock,
            ProcessListener(tick, memory, publishers, self.watched),
            neighbours,
            self.resumed,
        )
        memory.let_rest(session.frontier.queues, share.owns)
        return session

    def _fetch(
        self, err: TextIO, label: str, watcher: Watcher, serving: AbstractContextManager[None]
    ) -> tuple[Ledger, FetchStats]:
        display = Display(err, label)

        def tick(snapshot: Snapshot) -> None:
            display.tick(snapshot)
            watcher.show(snapshot)

        run = _run_alone if self.settings.processes == 1 else _run_together
        try:
            ledger, stats = run(self, tick, watcher, serving)
        finally:
            display.clear()
        watcher.fetched(stats, ledger.settled)
        return ledger, stats


def _run_alone(
    job: ListFetch, tick: Tick, watcher: Watcher, serving: AbstractContextManager[None]
) -> tuple[Ledger, FetchStats]:
    ends: list[Callable[[], None]] = []

    @contextmanager
    def stops(end: Callable[[], None]) -> Iterator[None]:
        ends.append(end)
        yield

    def on_signal() -> None:
        for end in ends:
            end()

    def fetched() -> FetchSession:
        def look(snapshot: Snapshot) -> None:
            tick(snapshot)
            session.loop.leaves_resting |= job.is_stopping()

        session = job.session(look, Alone())
        with serving:  # a thread: after the parse worker, which is a fork
            asyncio.run(_run_with_signals(job, session, watcher))
        return session

    with ExitStack() as caught:
        if eventloops.is_running() and job.stops is None:  # signals come to this thread alone
            job.stops = stops
            caught.enter_context(signals(on_signal, on_signal))
        session = eventloops.apart(fetched)
    return session.results.ledger, session.results.stats


def _run_together(
    job: ListFetch, tick: Tick, watcher: Watcher, serving: AbstractContextManager[None]
) -> tuple[Ledger, FetchStats]:
    def look(snapshot: Snapshot) -> None:
        tick(snapshot)
        if job.is_stopping():
            processes.leave_resting()

    make = replace(job, is_stopping=bool).session  # this process looks, and it need not pickle
    processes = FetchProcesses(job.settings.processes, make, look)

    def stop() -> None:
        job.interrupted = True
        processes.stop()

    def kill() -> None:
        processes.kill()
        raise Interrupted(STOPPED)

    with signals(stop, kill):
        processes.start()  # before anything runs in a thread: then the children can be forks
        with serving, watcher.obeying(processes.hold):
            processes.run()
    return processes.ledger, processes.stats


def _some(urls: Counter[str]) -> str:
    """Names the first of some URLs."""
    first = sorted(urls)[:NAMED]
    return ", ".join(first) + (", …" if len(urls) > NAMED else "")


@contextmanager
def signals(first: Callable[[], None], second: Callable[[], None]) -> Iterator[None]:
    """Calls `first` for the first of SIGNALS and `second` for all others, both in the main
    thread.
    """
    seen = 0

    def on_signal(number: int, frame: FrameType | None) -> None:
        nonlocal seen
        seen += 1
        if seen == 1:
            first()
            log.warning(FINISHING)  # who reads this may count on it
        else:
            second()

    if threading.current_thread() is not threading.main_thread():  # signals are somebody else's
        with eventloops.interruptible(lambda: on_signal(0, None)):
            yield
        return
    before = [signal.signal(number, on_signal) for number in SIGNALS]
    try:
        yield
    finally:
        for number, handler in zip(SIGNALS, before, strict=True):
            signal.signal(number, handler)


async def _run_with_signals(job: ListFetch, session: FetchSession, watcher: Watcher) -> None:
    """Runs; after the first signal what is in flight is finished, a second one ends it at once."""
    main = asyncio.ensure_future(session.run())
    running = asyncio.get_running_loop()
    seen = 0

    def on_signal() -> None:
        nonlocal seen
        seen += 1
        if seen == 1:
            job.interrupted = True
            if job.stops is None:
                log.warning(FINISHING)
            session.loop.leave()
        else:
            main.cancel()

    stops = job.stops or (lambda stop: _signalled(running, stop))
    try:
        with (
            stops(lambda: _from_outside(running, on_signal)),
            watcher.obeying(
                lambda wanted: _from_outside(running, lambda: session.loop.hold(wanted))
            ),
        ):
            await main
    except asyncio.CancelledError:
        if seen > 1:
            raise Interrupted(STOPPED) from None
        raise


@contextmanager
def _signalled(running: asyncio.AbstractEventLoop, stop: Callable[[], None]) -> Iterator[None]:
    """SIGNALS call `stop`."""
    caught = []
    for number in SIGNALS:
        try:
            running.add_signal_handler(number, stop)
            caught.append(number)
        except (ValueError, RuntimeError):
            break  # not in the main thread: signals are somebody else's
    try:
        with eventloops.interruptible(stop):
            yield
    finally:
        for number in caught:
            running.remove_signal_handler(number)


def _from_outside(running: asyncio.AbstractEventLoop, call: Callable[[], None]) -> None:
    running.call_soon_threadsafe(call)


def _as_begun(settings: FetchSettings, resumed: Resumed) -> FetchSettings:
    """Settings for the rest of a fetch: a segment is parsed as a whole, or pages would count as
    parsed that are not; and it is compressed as a whole, since the logs' values go into it as they
    are.
    """
    form = settings.form
    if resumed.codec not in (None, stored_codec(form.compression)):
        begun = RECORD if resumed.codec else NONE
        log.warning(
            "Fetcher: begun with another compression of its output, so it ends with that: %s", begun
        )
        settings = replace(settings, form=replace(form, compression=begun))
    if not settings.parse or not settings.store_content:
        return settings
    if resumed.parsed or not resumed.ledger.outcomes.get(Outcome.FETCHED, 0):
        return settings
    log.warning(
        "Fetcher: begun without fetcher.parse, so it ends without: `%s` takes all pages",
        command_line("parse"),
    )
    return replace(settings, parse=False)
