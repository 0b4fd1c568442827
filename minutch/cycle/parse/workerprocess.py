"""Runs a task in a worker process: batches of items in, an answer for each out, within limits.

The worker notes the item that it is at in memory that it shares with the parent. An alarm
interrupts Python code after `timeout` seconds. `memory` bytes are what the worker may take on top
of what it begins with. What else it may not do is decided in `sandbox`, and holds from before its
first item.
"""

from __future__ import annotations

import contextlib
import gc
import resource
import signal
import sys
from collections.abc import Callable
from multiprocessing.connection import Connection
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Any, Final, Protocol, TypeVar

from minutch.cycle.parse import workeranswers
from minutch.cycle.parse.dispatch import ParseTimeout
from minutch.cycle.parse.workerpipe import Channel
from minutch.kernels import library

if TYPE_CHECKING:
    from minutch.cycle.parse.workerpool import PoolSettings

NOT_BEGUN: Final = -1
FINISHING: Final = -2
"""In place of the number of an item: none yet, all of the batch."""
_OBJECTS: Final = 250_000
"""Objects by which those of a batch may grow before a worker looks for cycles among them: few pages
need as many.
"""
_BATCHES: Final = 64
"""Batches after which cycles are looked for among all that has been made, not only in the last
one.
"""

R = TypeVar("R")


class WorkerTask(Protocol[R]):
    """The task of workers. `run` and `finish` work in a worker, `fail` in the parent."""

    @property
    def result_type(self) -> Any:
        """The type of a result: of NamedTuples, dataclasses and Python's own (`workeranswers`)."""

    def accepts(self, result: R) -> bool:
        """Tells whether a result of this type, from whoever has taken the worker over, can be
        used.
        """

    def run(self, item: bytes) -> Any:
        """Reads an item within the limits; may raise ParseTimeout (from the alarm) and
        MemoryError.
        """

    def finish(self, results: Any) -> list[R]:
        """Returns the results, made of what `run` has returned for the items of a batch."""

    def fail(self, item: bytes, reason: str) -> R:
        """Returns the result for an item on which the task could not be brought to an end."""


def serve(
    connection: Connection,
    make_task: Callable[[], WorkerTask[R]],
    at: Any,
    settings: PoolSettings,
) -> None:
    """The worker's side: batches in, lists of (result, reason of failure) out, until the parent
    hangs up.
    """
    settings.sandbox.part()
    signal.signal(signal.SIGALRM, _alarm)
    limit_memory(settings.memory)
    task = make_task()
    library.load()
    settings.sandbox.close([connection.fileno()])
    # Batches are made of objects that live and die together: cycles are looked for when one is
    # gone.
    gc.freeze()
    gc.set_threshold(_OBJECTS, 20, 50)
    channel = Channel(connection)
    batches = 0
    with contextlib.suppress(BrokenPipeError, ConnectionResetError):
        while (items := _next_batch(channel)) is not None:
            found = []
            for number, item in enumerate(items):
                at.value = number
                found.append(_attempt(task, item, settings.timeout))
            _set_alarm(0)
            at.value = FINISHING
            results = iter(task.finish([result for result, reason in found if not reason]))
            workeranswers.send(
                channel, [(None, reason) if reason else (next(results), "") for _, reason in found]
            )
            del items, found, results
            batches += 1
            gc.collect(0 if batches % _BATCHES else 2)


def _next_batch(channel: Channel) -> list[bytes] | None:
    """Returns the next items; None if the parent has hung up, be it in the middle of a batch."""
    try:
        return channel.receive(sys.maxsize)
    except (EOFError, OSError):
        return None


def _attempt(task: WorkerTask[Any], item: bytes, timeout: float) -> tuple[Any, str]:
    """Runs the task on an item; the alarm stays set, until the next item sets it again."""
    try:
        _set_alarm(timeout)
        return task.run(item), ""
    except ParseTimeout:
        return None, too_long(timeout)
    except MemoryError:
        return None, "out of memory"


def _set_alarm(seconds: float) -> None:
    """Lets the alarm go off in so many seconds, never for 0 or less."""
    signal.setitimer(signal.ITIMER_REAL, max(0.0, seconds))


def _alarm(number: int, frame: FrameType | None) -> None:
    raise ParseTimeout


def too_long(timeout: float) -> str:
    """Returns the reason of a failure for want of time."""
    return f"not done within {timeout:g} s (parser.timeout)"


def limit_memory(memory: int) -> None:
    """Allows `memory` bytes more than are in use; where the system does not know such limits there
    is none.
    """
    if memory <= 0:
        return
    with contextlib.suppress(OSError, ValueError, IndexError):
        used = (
            int(Path("/proc/self/statm").read_text(encoding="ascii").split()[5])
            * resource.getpagesize()
        )
        resource.setrlimit(resource.RLIMIT_DATA, (used + memory, resource.RLIM_INFINITY))
