"""One fetch for all rounds of a crawl: it takes one list after the other, and where few hosts are
left of a list, what is left goes on in the next one while the other steps of the round run.

    begin ──> wait ─┬─ settled ──> close (the segment is whole)
                    └─ few ──> turn (to a new list), close, … add (more to it) ──> wait

Its processes, queues, connections and clocks of politeness last as long as the crawl. The caller's
thread does the other steps; a thread of its own passes the messages of the processes on.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import TracebackType
from typing import Final, Self

from minutch.clock import SteadyClock
from minutch.cycle.fetch.components import STATE_PROPERTY, FetchComponents
from minutch.cycle.fetch.fetcher import (
    INTERRUPTED,
    LEFT,
    PARSED,
    FetchOptions,
    check_agent,
    settings_of,
    working,
)
from minutch.cycle.fetch.fetchprocesses import FetchProcesses, number_of
from minutch.cycle.fetch.frontier.hostmemory import state_folder
from minutch.cycle.fetch.frontier.listindex import generate_files, listed_urls
from minutch.cycle.fetch.ledger import Ledger
from minutch.cycle.fetch.listfetch import STOPPED, Interrupted, ListFetch, signals
from minutch.cycle.fetch.results.recorder import archiving
from minutch.cycle.fetch.session import SessionFiles
from minutch.cycle.fetch.stats import Snapshot
from minutch.cycle.fetch.watch import Display, Watch, host_table, result_table
from minutch.cycle.segment.store import CRAWL_GENERATE, Segment
from minutch.errors import MinutchError
from minutch.job import Counters, JobContext
from minutch.work.tables.database import part_name
from minutch.work.tables.install import mark_success
from minutch.work.tables.parallel import workers

log = logging.getLogger(__name__)

_LOOK: Final = 0.5
"""Seconds between two looks while nothing is heard."""


@dataclass
class _OpenList:
    """A list that is being fetched, number `number` of the crawl."""

    number: int
    job: ListFetch
    succeed: Callable[[], None]
    """Marks its segment as fetched."""
    lock: ExitStack
    wanted: int = 0
    """Processes that the configuration wants; 0: as many as the list is worth."""
    listed: int = 0
    """Its URLs, as far as they are known."""

    @property
    def settled(self) -> int:
        """URLs that an earlier run has dealt with."""
        return self.job.resumed.ledger.settled


@dataclass
class RoundsFetch:
    """The fetch of a crawl. Signals are its own while it lasts: the first one ends it in order and
    interrupts the step that runs, a second one kills it.
    """

    context: JobContext
    options: FetchOptions
    interrupted: bool = False
    _processes: FetchProcesses | None = None
    _thread: threading.Thread | None = None
    _open: list[_OpenList] = field(default_factory=list)
    _snapshot: Snapshot | None = None
    _display: Display | None = None
    """Shows the fetch, where no other step is shown."""
    _stack: ExitStack = field(default_factory=ExitStack)
    _is_waiting: bool = False
    _clock: SteadyClock = field(init=False)
    """That of all processes; limits of time and rests go by it. Dates are anchored by list."""
    _count: int = 0
    """Lists until now."""
    _parses: bool | None = None
    """Whether they parse, by the first list, which may be an interrupted one; None: not known."""

    def __post_init__(self) -> None:
        self._clock = SteadyClock(self.context.clock)

    # -- what the rounds call ----------------------------------------------------------------------

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
        if len(self._open) == 1 and self._worth(one) > processes.count:
            before = one.listed
            self._end(processes, in_order=False)  # as few crawls ever have nothing in flight
            if self.interrupted:
                self._leave()
            one.job.files = generate_files(one.job.segment.path)
            settings = one.job.settings.beginning(self._clock.now())
            one.job.settings = replace(settings, processes=self._worth(one))
            self._take_up(one)
            return one.listed - before
        processes.take(one.number, lambda index: self._files(one, index, files))
        self._until(lambda: processes.has_replied("taken", one.number))
        count = processes.replies.pop(("taken", one.number))[0]
        one.listed += count
        return count

    def close(self, context: JobContext) -> Counters:
        """Closes the oldest segment, when all its URLs have ended; reports what was parsed. Raises
        StoreError, FormatError, Interrupted.
        """
        one, processes = self._open[0], self._running
        self._until(lambda: processes.is_settled(one.number))
        ledger = Ledger()
        for part in processes.ledgers.pop(one.number).values():
            ledger.generated = max(one.listed, part.generated)
            ledger.merge(part.outcomes)
        ledger.merge(one.job.resumed.ledger.outcomes)
        with one.lock:
            self._open.remove(one)
            parsed = one.job.close(one.job.checked(ledger, generate_files(one.job.segment.path)))
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
    def held(self, rest: Callable[[], None]) -> Iterator[None]:
        """While this lasts, nothing is asked for: others may ask the same hosts. `rest` keeps the
        pause between two requests.
        """
        if self._processes is None:
            yield
            return
        processes = self._processes
        processes.hold(True)
        try:
            self._snapshot = None
            self._until(lambda: self._snapshot is not None and self._is_at_rest(self._snapshot))
            rest()
            yield
            rest()
        finally:
            processes.hold(self._watch is not None and self._watch.paused)

    @staticmethod
    def _is_at_rest(state: Snapshot) -> bool:
        return state.paused and not state.active

    @property
    def _running(self) -> FetchProcesses:
        assert self._processes is not None
        return self._processes

    # -- lists -------------------------------------------------------------------------------------

    def _opened(self, path: Path, context: JobContext) -> _OpenList:
        """Locks a segment, and reads the settings of its fetch."""
        conf = context.conf
        check_agent(conf)
        segment = Segment(path)
        segment.finish()
        segment.check()
        self._clock.anchor()
        settings = settings_of(conf, self.options, self._clock)
        if settings.warc is not None:
            conf = archiving(conf)
        files = generate_files(path)
        count, wanted = number_of(settings, files, workers()), settings.processes
        settings = replace(settings, processes=max(count, self._count_of_processes))
        if self._parses is not None:
            settings = replace(settings, parse=self._parses)
        state = Path(conf.get(STATE_PROPERTY) or state_folder(path))
        with ExitStack() as stack:
            work = stack.enter_context(working(segment))
            job = ListFetch(
                segment,
                files,
                work,
                settings,
                FetchComponents(conf).with_state(state),
                self._clock,
                state,
                watched=context.watch is not None,
            )
            one = _OpenList(
                self._count, job, lambda: mark_success(conf, path), stack.pop_all(), wanted
            )
        self._count += 1
        self._open.append(one)
        log.info("Fetcher: open segments: %s", ", ".join(o.job.segment.name for o in self._open))
        return one

    def _take_up(self, one: _OpenList) -> None:
        """Starts the processes with a list, where an earlier run was stopped, or those before."""
        one.job.take_up()
        one.listed = sum(1 for _ in listed_urls(one.job.files))
        self._parses = one.job.settings.parse
        self._start(one)

    @staticmethod
    def _worth(one: _OpenList) -> int:
        """Returns the number of processes for all parts of a list."""
        settings = replace(one.job.settings, processes=one.wanted)
        return number_of(settings, generate_files(one.job.segment.path), workers())

    @property
    def _count_of_processes(self) -> int:
        return 0 if self._processes is None else self._processes.count

    def _start(self, one: _OpenList) -> None:
        job, watch = one.job, self._watch
        one.number, self._count = 0, 1  # they count from their first list
        self._stack.close()  # of those before
        processes = FetchProcesses(job.settings.processes, job.session, self._tick, goes_on=True)
        self._processes = processes  # a signal has to find them, also while they start
        self._is_waiting = True  # and who starts them must not be thrown out of that
        try:
            self._stack.enter_context(signals(self._on_first_signal, self._on_second_signal))
            processes.start()
        finally:
            self._is_waiting = False
        job.resumed.let_go()  # each process has taken its copy
        if watch is not None:
            self._stack.enter_context(watch.obeying(processes.hold))
        self._thread = threading.Thread(target=self._pass_messages, name="fetch", daemon=True)
        self._thread.start()

    def _end(self, processes: FetchProcesses, *, in_order: bool = True) -> None:
        """Ends the processes, when they have nothing left, or what is in flight has come."""
        if self._thread is None:
            processes.kill()  # a signal came as they had started
            return
        processes.finish() if in_order else processes.stop()
        self._until(self._has_ended, check=False)
        self._thread.join()
        self._thread = None
        for line in host_table(processes.stats):
            log.info("Fetcher: %s", line)

    def _turn(self, one: _OpenList, *, settled: bool) -> int:
        processes, begun = self._running, len(one.job.files)

        def files(index: int) -> SessionFiles:
            part = one.job.segment.path / CRAWL_GENERATE / part_name(begun + index)
            return self._files(one, index, [] if settled else [part])

        processes.turn(files, self._clock.ahead)
        self._until(lambda: processes.has_replied("turned", one.number))
        processes.meet()  # what one has handed to another before it turned is in this list
        self._until(lambda: processes.has_replied("met", one.number))
        left = sum(processes.replies.pop(("turned", one.number)).values())
        del processes.replies["met", one.number]
        one.listed += left
        return left

    @staticmethod
    def _files(one: _OpenList, index: int, files: list[Path]) -> SessionFiles:
        return SessionFiles(one.job.segment, files, one.job.work / f"log-{index}")

    # -- messages, signals -------------------------------------------------------------------------

    @property
    def _watch(self) -> Watch | None:
        return self.context.watch if isinstance(self.context.watch, Watch) else None

    def _pass_messages(self) -> None:
        processes = self._running
        try:
            processes.run()
        except (MinutchError, OSError) as exc:  # the caller's thread raises what has failed
            log.debug("the processes of the fetch ended: %s", exc)
        if self._watch is not None:
            self._watch.fetched(processes.stats, processes.ledger.settled)

    def _tick(self, snapshot: Snapshot) -> None:
        if self._open and (listed := self._open[-1].listed):
            snapshot = replace(snapshot, total=listed - self._open[-1].settled)
        self._snapshot = snapshot
        if self.options.is_stopping():
            self._running.leave_resting()
        display = self._display
        if display is not None:
            display.tick(snapshot)
        if self._watch is not None:
            self._watch.show(snapshot)

    def _has_ended(self) -> bool:
        return self._running.is_over

    def _until(self, is_time: Callable[[], bool], *, check: bool = True) -> None:
        """Waits for the processes. Raises StoreError if one has failed, Interrupted after a
        signal when they have ended.
        """
        processes = self._running
        self._is_waiting = True
        try:
            with processes.news:
                while not is_time():
                    if check and processes.is_over:
                        processes.check()
                        self._leave()
                    processes.news.wait(_LOOK)
            if check:
                processes.check()  # what it waited for may be the end of a process that failed
        finally:
            self._is_waiting = False

    def _leave(self) -> None:
        one, ledger = self._open[-1], self._running.ledger
        listed = one.listed or ledger.generated
        raise Interrupted(LEFT.format(listed - one.settled - ledger.settled, listed))

    def _on_first_signal(self) -> None:
        self.interrupted = True
        if self._processes is not None:
            self._processes.stop()
        if not self._is_waiting:
            raise KeyboardInterrupt

    def _on_second_signal(self) -> None:
        if self._processes is not None:
            self._processes.kill()
        raise Interrupted(STOPPED)
