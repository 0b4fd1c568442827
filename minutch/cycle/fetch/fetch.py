"""Fetches lists by the processes of this machine: begins, turns, adds to and closes them.

The rounds of a crawl have one list after the other, and where few hosts are left of a list, what is
left goes on in the next one while the other steps of the round run:

    begin ──> wait ─┬─ settled ──> close (the segment is whole)
                    └─ few ──> turn (to a new list), close, … add (more to it) ──> wait

Processes, queues, connections and clocks of politeness last as long as the `Fetch`. The caller's
thread does the other steps; a thread of its own passes the messages of the processes on.

The job `fetch` has one list, and so has a task on another machine: `run` starts the processes and
waits for their end, by the same two functions as above. Where one process is enough for that, it is
this one, at work while it waits. begin, wait and close would not be shorter there: whoever calls
`run` has opened the list in a way of their own, and wants its ledger and the times of its hosts
even if a signal ended it: the job to show them, the task to bring them home. A child for every job,
as rounds have them, would make 60 lines less (`is_here`). From the command line it costs nothing,
being a fork (three pages, 8 pairs: 1.27 s of CPU, 1.30 without it); but where Polars is loaded, as
in notebooks and tests, it needs a fork server, and most tests of a fetch would wait for one.

The first signal lets requests in flight finish, and interrupts the step that runs; a second one
stops at once. Either way the next run fetches the URLs left.
"""

from __future__ import annotations

import logging
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import FrameType, TracebackType
from typing import Final, Protocol, Self

from minutch import eventloops
from minutch.clock import SteadyClock
from minutch.cycle.fetch.frontier.listindex import generate_files, listed_urls
from minutch.cycle.fetch.ledger import STOPPED, Interrupted, Ledger
from minutch.cycle.fetch.listfetch import ListFetch, opened, prepared
from minutch.cycle.fetch.settings import FetchOptions
from minutch.cycle.fetch.stats import FetchStats, Snapshot
from minutch.cycle.fetch.watch import Display, host_table, result_table
from minutch.cycle.fetch.worker import HoldFetch, Take, Turn, WorkerFiles, WorkerOrder
from minutch.cycle.fetch.workers import FetchProcesses
from minutch.cycle.segment.store import CRAWL_GENERATE
from minutch.errors import MinutchError
from minutch.job import Counters, JobContext
from minutch.work.tables.database import part_name
from minutch.work.tables.install import mark_success

log = logging.getLogger(__name__)

FINISHING: Final = "interrupted: finishing what is in flight (once more to stop at once)"
INTERRUPTED: Final = "interrupted"
"""Counted once if a signal came when all was fetched; bin/crawl stops then."""
PARSED: Final = "ParseSegment"
"""Title of the counters of a parse."""
SIGNALS: Final = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_LOOK: Final = 0.5
"""Seconds between two looks while nothing is heard."""

Stops = Callable[[Callable[[], None]], AbstractContextManager[None]]
"""While this lasts, what it is given is called when the fetch is to end. Any thread may call it."""


class Watcher(Protocol):
    """Watches a fetch from outside, and may pause it (`minutch.cycle.fetch.watch`)."""

    @property
    def paused(self) -> bool:
        """Whether it is to be held."""

    def show(self, snapshot: Snapshot) -> None:
        """The state of the fetch, once a second."""

    def obeying(self, hold: Callable[[bool], None]) -> AbstractContextManager[None]:
        """While this lasts, `hold` is called from any thread with what is wanted."""

    def fetched(self, stats: FetchStats, urls: int) -> None:
        """The fetch has ended, after `urls` of its list."""


@dataclass
class _OpenList:
    """A list that is being fetched, number `number` of the crawl."""

    job: ListFetch
    number: int = 0
    succeed: Callable[[], None] = lambda: None
    """Marks its segment as fetched."""
    lock: ExitStack = field(default_factory=ExitStack)
    listed: int = 0
    """Its URLs, as far as they are known."""

    @property
    def settled(self) -> int:
        """URLs that an earlier run has dealt with."""
        return self.job.resumed.ledger.settled

    def files(self, index: int, lists: list[Path]) -> WorkerFiles:
        """Returns the files of a process."""
        log_number = self.job.number + index
        log = self.job.work / f"log-{log_number}"
        return WorkerFiles(self.job.segment, lists, log, self.job.clock.ahead)


@dataclass
class Fetch:
    """The fetch of a list, or of those of a crawl. Signals are its own while it lasts."""

    clock: SteadyClock
    """That of all processes; limits of time and rests go by it. Dates are anchored by list."""
    options: FetchOptions
    watcher: Watcher
    stops: Stops | None = None
    """Who ends it; without one, the signals of this process do."""
    serving: Callable[[], AbstractContextManager[None]] = nullcontext
    """Entered once there are processes, and left when they have ended."""
    interrupted: bool = False
    _processes: FetchProcesses | None = None
    _thread: threading.Thread | None = None
    _open: list[_OpenList] = field(default_factory=list)
    _snapshot: Snapshot | None = None
    _display: Display | None = None
    """Shows the fetch, where no other step is shown."""
    _stack: ExitStack = field(default_factory=ExitStack)
    _is_waiting: bool = False
    _count: int = 0
    """Lists until now."""
    _parses: bool | None = None
    """Whether they parse, by the first list, which may be an interrupted one; None: not known."""

    # -- a list ------------------------------------------------------------------------------------

    def run(self, job: ListFetch, display: Display) -> tuple[Ledger, FetchStats]:
        """Fetches a list to its end; returns its ledger, of all runs, and the stats of this one.
        After a first signal (`interrupted`) some URLs may be left. Raises StoreError, Interrupted.
        """
        self._open.append(_OpenList(job))
        self._display = display
        job.take_up()
        try:
            with self._waiting():
                self._start(job, goes_on=False)
                self._until(lambda: self._running.is_over)
        finally:
            if self._thread is not None:
                self._thread.join()
            display.clear()
            self._stack.close()
        processes = self._running
        processes.ledger.merge(job.resumed.ledger.outcomes)
        return processes.ledger, processes.stats

    # -- list after list ---------------------------------------------------------------------------

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        tb: TracebackType | None,
    ) -> None:
        """Ends the processes: at once where all is settled, else when what is in flight has
        come.
        """
        try:
            if self._processes is not None:
                self._end(self._processes, in_order=kind is None)
        finally:
            for one in self._open:
                one.lock.__exit__(kind or Interrupted, error or Interrupted(), tb)
            self._stack.close()

    @property
    def segments(self) -> list[Path]:
        """Those that are being fetched, oldest first."""
        return [one.job.segment.path for one in self._open]

    def begin(self, path: Path, context: JobContext) -> tuple[int, int]:
        """Begins with the list of a segment; none may be open. The first one goes on where an
        earlier run was stopped. Returns how many URLs it has, and how many are left. Raises
        StoreError, ConfigError.
        """
        one = self._opened(path, context)
        if self._processes is not None and self._processes.count < one.job.settings.processes:
            self._end(self._processes)  # the list is worth more of them; nothing is in flight
            if self.interrupted:
                self._leave()
            self._processes = None
        if self._processes is None:
            self._take_up(one)
        else:
            self._turn(one, settled=True)
            self.add(generate_files(path))
        return one.listed, one.listed - one.settled

    def wait(self, few: Callable[[Snapshot], bool], context: JobContext) -> bool:
        """Waits until all URLs of the list have ended (True), or, once a second, `few` says that it
        is to be turned over. Raises StoreError, Interrupted.
        """
        processes, number = self._running, self._open[-1].number
        self._snapshot = None  # what is known is of a list before, or of a part of this one
        self._display = Display(context.err, context.label)

        def is_time() -> bool:
            if processes.is_settled(number):
                return True
            shot, self._snapshot = self._snapshot, None  # each is looked at once
            return shot is not None and few(shot)

        try:
            self._until(is_time)
        finally:
            self._display.clear()
            self._display = None
        return processes.is_settled(number)

    def turn(self, path: Path, context: JobContext) -> int:
        """Goes on with another segment, whose list is empty until now: all that is not settled goes
        there. Returns the number of these URLs. Raises StoreError, Interrupted.
        """
        one = self._opened(path, context)
        return self._turn(one, settled=False)

    def add(self, files: list[Path]) -> int:
        """Takes more parts into the list, which begins with that: its guards and its time limit do.
        Returns the number of their URLs. Raises StoreError, FormatError, Interrupted.
        """
        one, processes = self._open[-1], self._running
        self.clock.anchor()  # pages that were chosen after the clock was set are not of before
        # A second open list would lose the chains that it has in flight.
        if len(self._open) == 1 and one.job.worth() > processes.count:
            before = one.listed
            self._end(processes, in_order=False)  # as few crawls ever have nothing in flight
            if self.interrupted:
                self._leave()
            one.job.files = generate_files(one.job.segment.path)
            settings = one.job.settings.beginning(self.clock.now())
            one.job.settings = replace(settings, processes=one.job.worth())
            self._take_up(one)
            return one.listed - before
        processes.take(one.number, lambda index: one.files(index, files))
        self._until(lambda: processes.has_replied(Take, one.number))
        count = processes.replies.pop((Take, one.number))[0]
        one.listed += count
        return count

    def close(self, context: JobContext) -> Counters:
        """Closes the oldest segment, when all its URLs have ended; reports what was parsed. Raises
        StoreError, FormatError, Interrupted.
        """
        one, processes = self._open[0], self._running
        # Answers that came before the turn may still be parsed.
        self._until(lambda: processes.is_settled(one.number))
        ledger = Ledger()
        for part in processes.ledgers.pop(one.number).values():
            ledger.generated = max(one.listed, part.generated)
            ledger.merge(part.outcomes)
        ledger.merge(one.job.resumed.ledger.outcomes)
        with one.lock:
            # Off the list first: what fails below must not be ended a second time by `__exit__`.
            self._open.remove(one)
            parsed = one.job.close(one.job.checked(ledger, generate_files(one.job.segment.path)))
            # _SUCCESS last: who waits for it finds all the files.
            one.succeed()
        for line in result_table(ledger):
            log.info("Fetcher: %s", line)
        if parsed:
            context.report(PARSED, parsed)
        counters = ledger.counters()
        if self.interrupted:
            counters.add(INTERRUPTED)
        return counters

    @contextmanager
    def held(self) -> Iterator[None]:
        """While this lasts, nothing is asked for: others may ask the same hosts. Both keep the
        pauses that the state folder of the crawl has.
        """
        if self._processes is None:
            yield
            return
        processes = self._processes
        processes.tell(HoldFetch(wanted=True))
        try:
            self._snapshot = None
            self._until(
                lambda: (shot := self._snapshot) is not None and shot.paused and not shot.active
            )
            yield
        finally:
            processes.tell(HoldFetch(self.watcher.paused))

    @property
    def _running(self) -> FetchProcesses:
        assert self._processes is not None
        return self._processes

    # -- lists -------------------------------------------------------------------------------------

    def _opened(self, path: Path, context: JobContext) -> _OpenList:
        """Locks a segment, and reads the settings of its fetch."""
        self.clock.anchor()
        conf, settings = prepared(path, context.conf, self.options, self.clock.now())
        if self._parses is not None:
            settings = replace(settings, parse=self._parses)
        # Queues are shared out among the processes there are: a list can't have fewer.
        least = 0 if self._processes is None else self._processes.count
        watched = context.watch is not None
        lock = ExitStack()
        job = lock.enter_context(
            opened(path, conf, settings, self.clock, watched=watched, least=least)
        )
        one = _OpenList(job, self._count, lambda: mark_success(conf, path), lock)
        self._count += 1
        self._open.append(one)
        log.info("Fetcher: open segments: %s", ", ".join(o.job.segment.name for o in self._open))
        return one

    def _take_up(self, one: _OpenList) -> None:
        """Starts the processes with a list, where an earlier run was stopped, or those before."""
        one.job.take_up()
        one.listed = sum(1 for _ in listed_urls(one.job.files))
        self._parses = one.job.settings.parse
        one.number, self._count = 0, 1  # processes count from their first list
        self._start(one.job, goes_on=True)

    def _start(self, job: ListFetch, *, goes_on: bool) -> None:
        """Starts processes. Where one is enough, and nothing else is done meanwhile, it is this
        one, which gets to work when it waits.
        """
        self._stack.close()  # of those before
        count = job.settings.processes
        is_here = count == 1 and not goes_on
        processes = FetchProcesses(count, job.worker, self._tick, is_here=is_here, goes_on=goes_on)
        self._processes = processes  # a signal has to find them, also while they start
        with self._waiting():  # and who starts them must not be thrown out of that
            self._stack.enter_context(self._stopped())
            processes.start()  # before anything runs in a thread: then they can be forks
            self._stack.enter_context(self.serving())
            hold = self.watcher.obeying(lambda wanted: processes.tell(HoldFetch(wanted)))
            self._stack.enter_context(hold)
        if not is_here:
            job.resumed.let_go()  # each process has taken its copy
            self._thread = threading.Thread(target=self._pass_messages, name="fetch", daemon=True)
            self._thread.start()

    def _end(self, processes: FetchProcesses, *, in_order: bool = True) -> None:
        """Ends the processes, when they have nothing left, or what is in flight has come."""
        if self._thread is None:
            processes.kill()  # a signal came as they had started
            return
        processes.finish() if in_order else processes.stop()
        self._until(lambda: processes.is_over, check=False)
        self._thread.join()
        self._thread = None
        for line in host_table(processes.stats):
            log.info("Fetcher: %s", line)

    def _turn(self, one: _OpenList, *, settled: bool) -> int:
        processes, begun = self._running, len(one.job.files)

        def files(index: int) -> WorkerFiles:
            part = one.job.segment.path / CRAWL_GENERATE / part_name(begun + index)
            return one.files(index, [] if settled else [part])

        processes.turn(files)
        self._until(lambda: processes.has_replied(Turn, one.number))
        processes.tell(
            WorkerOrder.MEET
        )  # what one handed to another before it turned is in this list
        self._until(lambda: processes.has_replied(WorkerOrder.MEET, one.number))
        left = sum(processes.replies.pop((Turn, one.number)).values())
        del processes.replies[WorkerOrder.MEET, one.number]
        one.listed += left
        return left

    # -- messages, signals -------------------------------------------------------------------------

    def _pass_messages(self) -> None:
        try:
            self._work(self._running)
        except (MinutchError, OSError) as exc:  # the caller's thread raises what has failed
            log.debug("the processes of the fetch ended: %s", exc)

    def _work(self, processes: FetchProcesses) -> None:
        try:
            processes.run()
        finally:
            self.watcher.fetched(processes.stats, processes.ledger.settled)

    def _tick(self, snapshot: Snapshot) -> None:
        if self._open and (listed := self._open[-1].listed):
            snapshot = replace(snapshot, total=listed - self._open[-1].settled)
        self._snapshot = snapshot
        if self.options.is_stopping():
            self._running.tell(WorkerOrder.LEAVE_RESTING)
        if (display := self._display) is not None:
            display.tick(snapshot)
        self.watcher.show(snapshot)

    def _until(self, is_time: Callable[[], bool], *, check: bool = True) -> None:
        """Waits for the processes. Raises StoreError if one has failed, Interrupted after a
        signal when they have ended.
        """
        processes = self._running
        with self._waiting():
            if processes.is_here:
                eventloops.apart(lambda: self._work(processes))
            with processes.news:
                while not is_time():
                    if check and processes.is_over:
                        processes.check()
                        self._leave()
                    processes.news.wait(_LOOK)
            if check:
                processes.check()  # what it waited for may be the end of a process that failed

    @contextmanager
    def _waiting(self) -> Iterator[None]:
        """While this lasts, a first signal raises nothing."""
        before, self._is_waiting = self._is_waiting, True
        try:
            yield
        finally:
            self._is_waiting = before

    def _leave(self) -> None:
        one, ledger = self._open[-1], self._running.ledger
        listed = one.listed or ledger.generated
        raise Interrupted.leaving(listed - one.settled - ledger.settled, listed)

    def _on_first_signal(self) -> None:
        self.interrupted = True
        if self._processes is not None:
            self._processes.stop()
        if not self._is_waiting:
            raise KeyboardInterrupt

    def _on_second_signal(self) -> None:
        if self._processes is not None:
            self._processes.kill()
            if self._processes.is_running_here:
                return  # and raises it, when it has closed its files
        raise Interrupted(STOPPED)

    def _stopped(self) -> AbstractContextManager[None]:
        """While this lasts, signals, or who is there instead, end the fetch."""
        if self.stops is not None:
            return self.stops(self._on_first_signal)
        return signals(self._on_first_signal, self._on_second_signal)


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
