"""A function of one item, in as many processes as there are cores; results come in the order of the
items.

Columns let go of Python's lock, for which threads are enough; plugins written for one document do
not: their work is done by processes. A single item, or a single core, needs none: then it is done
here. Not a part of `local`: a job that needs no processes does not load multiprocessing.
"""

from __future__ import annotations

import pickle
import traceback
from collections.abc import Callable, Iterable, Iterator
from itertools import chain, islice
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from typing import Final, Generic, TypeVar

from minutch.errors import MinutchError
from minutch.processes import start_worker
from minutch.work.tables.parallel import workers

T = TypeVar("T")
R = TypeVar("R")

AHEAD: Final = 2
"""Items that are begun, per process, before the result of the first of them has been taken."""


def mapped(
    make: Callable[[], Callable[[T], R]], items: Iterable[T], processes: int = 0
) -> Iterator[R]:
    """`make()(item)` for each of `items`; each process makes a function of its own. 0 processes:
    one per core.

    Raises what the function raises; MinutchError where a process dies.
    """
    queue = iter(items)
    first = list(islice(queue, 2))  # a single item needs no processes
    count = processes or workers()
    if len(first) < 2 or count < 2:
        function = make()
        yield from map(function, first)
        yield from map(function, queue)
        return
    pool = _Pool(make, count)
    try:
        yield from pool.run(chain(first, queue))
    finally:
        pool.close()


class _Pool(Generic[T, R]):
    """Worker processes. An item is with one of them, or its result is kept until those before it
    have been taken.
    """

    def __init__(self, make: Callable[[], Callable[[T], R]], count: int) -> None:
        self._workers: list[tuple[BaseProcess, Connection]] = []
        try:
            for number in range(count):
                self._workers.append(start_worker(_serve, (make,), name=f"worker-{number}"))
        except BaseException:
            self.close()
            raise

    def run(self, items: Iterator[T]) -> Iterator[R]:
        idle = [connection for _, connection in self._workers]
        busy: dict[Connection, int] = {}
        held: dict[int, R] = {}
        sent = taken = 0
        more = True
        while more or busy or held:
            while more and idle and sent - taken < AHEAD * len(self._workers):
                item = next(items, None)
                if item is None:
                    more = False
                    break
                connection = idle.pop()
                connection.send(item)
                busy[connection] = sent
                sent += 1
            while taken in held:
                yield held.pop(taken)
                taken += 1
            # Nothing can be sent, so wait for an answer.
            if busy and not (more and idle and sent - taken < AHEAD * len(self._workers)):
                for ready in [
                    connection
                    for connection in wait(list(busy))
                    if isinstance(connection, Connection)
                ]:
                    try:
                        error, result = ready.recv()
                    except (EOFError, OSError):
                        raise MinutchError("a worker process has died: out of memory?") from None
                    if error is not None:
                        raise error
                    held[busy.pop(ready)] = result  # until those before it are taken
                    idle.append(ready)

    def close(self) -> None:
        """Ends all processes, even busy ones."""
        for process, connection in self._workers:
            connection.close()
            process.kill()
            process.join()


def _serve(connection: Connection, make: Callable[[], Callable[[T], R]]) -> None:
    """The main function of a process: items in, (error, result) out."""
    function: Callable[[T], R] | None = None
    while True:
        try:
            item = connection.recv()
        except (EOFError, OSError):
            return
        try:
            function = function or make()  # made here, once: what it holds need not be pickled
            answer: tuple[BaseException | None, R | None] = None, function(item)
        except Exception as error:  # noqa: BLE001 - handed to the caller
            answer = _portable(error), None
        try:
            connection.send(answer)
        except (BrokenPipeError, OSError):
            return


def _portable(error: Exception) -> Exception:
    """Returns an error for another process; a bug's has the way to it as a note."""
    if not isinstance(error, MinutchError):
        error.add_note("".join(traceback.format_exception(error)))
    try:
        # An error that pickles may still not unpickle, which would hide it behind another.
        pickle.loads(pickle.dumps(error))
    except Exception:  # noqa: BLE001 - pickle calls anything
        return MinutchError(f"{type(error).__name__}: {error}")
    return error
