"""Works on untrusted input in separate processes: what hangs, crashes or eats memory takes nothing
else down.

A `WorkerPool` is a few processes that run a task on one item after the other. Items go out in
batches; each worker notes the item it is at in shared memory, so that the parent knows the culprit
when it has to kill the worker (or finds it dead): that item gets `task.fail(item, reason)` for a
result, the rest of its batch goes to a fresh worker. If it was at the end of the batch, which is
for all items together, or if what it answers is no answer, the batch is halved until one item is
left to blame.

Time is kept twice. In the worker an alarm interrupts Python code after `timeout` seconds
(`workerprocess`); a library that doesn't come back is ended by the parent soon after.
"""

from __future__ import annotations

import contextlib
import logging
import threading
import time
import weakref
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from itertools import islice
from multiprocessing.connection import Connection, wait
from multiprocessing.sharedctypes import RawValue
from typing import Any, Final, Generic, Self, TypeVar

from minutch.conf import Configuration, Settings, made_by, prop
from minutch.cycle.parse.sandbox import Sandbox
from minutch.cycle.parse.workerprocess import (
    FINISHING,
    NOT_BEGUN,
    Answer,
    AnswerReader,
    WorkerChannel,
    WorkerTask,
    serve,
    too_long,
)
from minutch.processes import may_fork, start_worker
from minutch.work.tables.parallel import cores

log = logging.getLogger(__name__)

BATCH_ITEMS: Final = 512
BATCH_BYTES: Final = 3 << 20
"""Of items as they are handed over. Half as much takes a twentieth more time: judging links as
columns has a price of its own, 25 µs less a page at this size.
"""
GRACE: Final = 2.0
"""Seconds that a worker has to answer after its alarm."""
START: Final = 120.0
"""Seconds that a worker has to get to its first item: one that is no copy has to load
everything.
"""
POLL: Final = 0.5
"""Seconds after which somebody who waits for a worker looks whether it is stuck."""
_AHEAD: Final = 4
"""Batches for each worker that may be taken before the first of them is done."""

R = TypeVar("R")


def _bytes(conf: Configuration, name: str) -> int:
    return conf.get_int(name) << 20


@dataclass(frozen=True, slots=True)
class PoolSettings(Settings):
    """The number of workers and the limits of each."""

    workers: int = prop("parser.workers")
    """0: one per processor."""
    timeout: float = prop("parser.timeout", Configuration.get_int)
    """Seconds for an item; 0 or less: no limit."""
    memory: int = prop("parser.worker.memory", _bytes)
    """Bytes that a worker may take on top of what it begins with; 0 or less: no limit."""
    sandbox: Sandbox = made_by(Sandbox.from_conf)


@dataclass(slots=True)
class _Batch(Generic[R]):
    number: int
    items: list[bytes]
    results: list[R | None] = field(default_factory=list)
    suspects: int = 0
    """So many of the next items have one among them on which a worker ended."""

    def missing(self) -> list[int]:
        """Numbers of the items that go to a worker next: of suspects the first half."""
        # Halving finds the item that ends workers in log2 of the batch's length steps.
        most = max(1, self.suspects // 2) if self.suspects else len(self.items)
        return [index for index, result in enumerate(self.results) if result is None][:most]


@dataclass(slots=True)
class Running(Generic[R]):
    """A batch under way (`WorkerPool.begin`); the worker that it is with may change at each
    `collect`.
    """

    batch: _Batch[R]
    worker: _Worker[R]

    @property
    def connection(self) -> Connection:
        """Becomes readable when there is something to collect."""
        return self.worker.connection


class _Worker(Generic[R]):
    """A process and the batch that it is working on."""

    def __init__(
        self, task: WorkerTask[R], make_task: Callable[[], WorkerTask[R]], settings: PoolSettings
    ) -> None:
        # A copy of this process has the task already; a new process makes its own.
        task_of = (lambda: task) if may_fork() else make_task
        # Shared memory without a lock: a worker killed while it held one would block the parent.
        self.at: Any = RawValue("q", 0)
        self.batch: _Batch[R] | None = None
        self.answer: Answer | None = None
        self.is_forging = False
        self.is_late = False
        self.seen = -1
        self.since = 0.0
        args = (task_of, self.at, settings)
        self.process, self.connection = start_worker(serve, args, name="parse-worker")
        self.channel = WorkerChannel(self.connection)

    def send(self, batch: _Batch[R]) -> None:
        self.batch, self.seen, self.since = batch, NOT_BEGUN, time.monotonic()
        self.answer = None
        self.at.value = NOT_BEGUN
        self.channel.send([batch.items[index] for index in batch.missing()])

    def is_stuck(self, timeout: float) -> bool:
        """Tells whether the worker has been at one item for too long. Only steps forward count,
        since a compromised worker may note what it likes.
        """
        # A worker that notes two items in turn makes no step forward.
        place = self._place()
        if place > self.seen:
            self.seen, self.since = place, time.monotonic()
        # The worker's own alarm is to go off first: then only the item fails, and no process.
        allowed = START if place == NOT_BEGUN else timeout + GRACE
        return time.monotonic() - self.since > allowed

    def _place(self) -> int:
        """Returns where in its batch the worker is, by what it has noted: FINISHING comes last."""
        at, last = int(self.at.value), len(self.batch.items) if self.batch is not None else 0
        # What is noted may be any number: a large one must not count as steps without end.
        return last if at == FINISHING else min(at, last)

    def stop(self) -> None:
        self.connection.close()
        self.process.kill()
        self.process.join()


class WorkerPool(Generic[R]):
    """Runs a task in worker processes.

    `make_task` is called here, for `WorkerTask.fail`, and in each process that is not a copy of
    this one.
    """

    def __init__(self, make_task: Callable[[], WorkerTask[R]], settings: PoolSettings) -> None:
        self._make_task = make_task
        self._task = make_task()
        self._answers = AnswerReader(self._task.result_type, self._task.accepts)
        self._settings = settings
        self._timeout = settings.timeout
        self._most = max(1, settings.workers or cores())
        self._idle: list[_Worker[R]] = []
        self._busy: dict[Any, _Worker[R]] = {}
        self._lent: set[_Worker[R]] = set()
        self._lock = threading.Lock()
        # Nobody may have closed the pool when the interpreter ends; its own way, SIGTERM, is lost
        # on workers.
        weakref.finalize(self, _end, self._idle, self._busy, self._lent)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Ends all workers."""
        _end(self._idle, self._busy, self._lent)

    def run(self, item: bytes) -> R:
        """Returns the result for one item; several threads may call this at the same time."""
        running = self.begin([item])
        while (results := self.collect(running)) is None:
            wait([running.connection], timeout=POLL)
        return results[0]

    def begin(self, items: list[bytes]) -> Running[R]:
        """Gives a batch to a worker of its own; `collect` has the results once its connection is
        readable.
        """
        batch: _Batch[R] = _Batch(0, items, [None] * len(items))
        return Running(batch, self._lend(batch))

    def collect(self, running: Running[R]) -> list[R] | None:
        """Returns the results of a batch; None if they are not there yet. To be called at least
        every POLL seconds.
        """
        worker, batch = running.worker, running.batch
        if not self._is_over(worker, batch):
            return None
        self._receive(worker, batch)
        with self._lock:
            self._lent.discard(worker)
            if worker.process.is_alive():
                self._idle.append(worker)
        if None in batch.results:
            # A worker died, or half of the suspects were asked: what is missing goes on.
            running.worker = self._lend(batch)
            return None
        return batch.results  # type: ignore[return-value]  # no None among them

    def _lend(self, batch: _Batch[R]) -> _Worker[R]:
        """A worker that is at work on the batch."""
        with self._lock:
            # One that was idle may have been ended from outside.
            while self._idle and not self._idle[-1].process.is_alive():
                self._idle.pop().stop()
            worker = self._idle.pop() if self._idle else self._start()
            self._lent.add(worker)
        with contextlib.suppress(
            BrokenPipeError, ConnectionResetError
        ):  # found dead by the next `collect`
            worker.send(batch)
        return worker

    def warm_up(self, count: int = 1) -> None:
        """Starts workers before there is work: it takes moments while this process has only one
        thread.
        """
        with self._lock:
            self._idle += [self._start() for _ in range(count)]

    def map(self, items: Iterable[bytes]) -> Iterator[R]:
        """Yields the results in the order of the items. Items are taken a few batches ahead of the
        results.
        """
        waiting: Iterator[_Batch[R]] = _batches(items)
        ready: deque[_Batch[R]] = deque()
        done: dict[int, _Batch[R]] = {}
        expected = 0
        while True:
            # Batches done but not yielded count: one slow page must not have all others held in
            # memory.
            room = self._most * _AHEAD - len(ready) - len(self._busy) - len(done)
            ready.extend(islice(waiting, max(0, room)))
            self._hand_out(ready)
            if not self._busy and not ready and not done:
                return
            for batch in self._collect() if self._busy else ():
                if None in batch.results:
                    # Foremost, since everything behind it waits for its results.
                    ready.appendleft(batch)
                else:
                    done[batch.number] = batch
            # Workers end out of turn; results don't.
            while expected in done:
                yield from done.pop(expected).results  # type: ignore[misc]  # no None among them
                expected += 1

    def _start(self) -> _Worker[R]:
        return _Worker(self._task, self._make_task, self._settings)

    def _hand_out(self, ready: deque[_Batch[R]]) -> None:
        while ready and len(self._busy) < self._most:
            worker = self._idle.pop() if self._idle else self._start()
            worker.send(ready.popleft())
            self._busy[worker.connection] = worker

    def _collect(self) -> list[_Batch[R]]:
        """The batches that workers have answered, or died on; waits until there is news, half a
        second at most.
        """
        wait(list(self._busy), timeout=POLL)
        over = [
            worker
            for worker in self._busy.values()
            if worker.batch is not None and self._is_over(worker, worker.batch)
        ]
        batches = []
        for worker in over:
            batch = worker.batch
            assert batch is not None
            del self._busy[worker.connection]
            self._receive(worker, batch)
            if worker.process.is_alive():
                self._idle.append(worker)
            batches.append(batch)
        return batches

    def _is_over(self, worker: _Worker[R], batch: _Batch[R]) -> bool:
        """Reads what the worker has written; tells whether that is its answer, or there won't be
        one.
        """
        worker.is_late = self._timeout > 0 and worker.is_stuck(self._timeout)
        # Asked before the pipe is read: what a worker wrote before it died is still taken.
        is_lost = worker.is_late or not worker.process.is_alive()
        try:
            worker.answer = self._answers.arrived(worker.channel, len(batch.missing()))
        except (EOFError, OSError) as error:
            log.debug("no answer of a worker: %s", error)
            # A pipe that ends is a crash; bytes that are no answer come from a worker taken over.
            worker.is_forging = not isinstance(error, EOFError | ConnectionError)
            return True
        return is_lost or worker.answer is not None

    def _receive(self, worker: _Worker[R], batch: _Batch[R]) -> None:
        """Takes what the worker has answered; whatever goes wrong with that, no worker is left
        behind.
        """
        try:
            self._take(worker, batch)
        except BaseException:
            worker.stop()
            raise

    def _take(self, worker: _Worker[R], batch: _Batch[R]) -> None:
        """Fills in what the worker has answered; if it has not answered, ends it and fails the item
        that it was at.
        """
        missing = batch.missing()
        if worker.answer is None:
            reason = self._reason(worker)
            worker.stop()
            log.warning("a worker was ended: %s (%s)", reason, worker.process.exitcode)
            at = worker.at.value
            # The place says nothing: the fault lies in all items together, or the note is not to be
            # trusted.
            if (at == FINISHING or worker.is_forging) and len(missing) > 1:
                batch.suspects = len(missing)  # any of them: who forges an answer goes on
                return
            batch.suspects = 0
            # What the worker has noted may be no number of an item.
            culprit = missing[at if 0 <= at < len(missing) else 0]
            batch.results[culprit] = self._task.fail(batch.items[culprit], reason)
            return
        # This half was good: the culprit is among the others.
        batch.suspects = max(0, batch.suspects - len(missing))
        for index, (result, reason) in zip(missing, worker.answer, strict=True):
            batch.results[index] = self._task.fail(batch.items[index], reason) if reason else result

    def _reason(self, worker: _Worker[R]) -> str:
        """Returns the reason why a worker has not answered."""
        if worker.is_forging:
            return "the parser crashed: what it answered makes no sense"
        return too_long(self._timeout) if worker.is_late else "the parser crashed"


def _end(idle: list[_Worker[R]], busy: dict[Any, _Worker[R]], lent: set[_Worker[R]]) -> None:
    for worker in (*idle, *busy.values(), *lent):
        worker.stop()
    for workers in (idle, busy, lent):
        workers.clear()


def _batches(items: Iterable[bytes]) -> Iterator[_Batch[R]]:
    number, batch, size = 0, [], 0
    for item in items:
        batch.append(item)
        size += len(item)
        if len(batch) >= BATCH_ITEMS or size >= BATCH_BYTES:
            yield _Batch(number, batch, [None] * len(batch))
            number, batch, size = number + 1, [], 0
    if batch:
        yield _Batch(number, batch, [None] * len(batch))
