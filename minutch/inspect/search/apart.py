"""Calls the methods of an object in a process of its own, with limits, which may die of it.

tantivy trusts the files that it opens. Checksums tell whether they are as somebody wrote them, not
who that was: an index that was made to do harm has checksums that fit, and asks for terabytes or
overflows the stack, which ends a process whatever is caught in it.

The process has no network, writes no core, and may take `memory` bytes on top of what it begins
with. It may write files: whoever opens an index locks it. It lives as long as its object is of use:
once it has died, or has taken too long, each call fails, for the same reason.

    request  :=  a pickle: name of a method, its arguments    (written by whom it serves)
    answer   :=  as that of a parse worker, for one item      (`AnswerReader`)
"""

from __future__ import annotations

import os
import pickle
import signal
import sys
import threading
import time
import weakref
from collections.abc import Callable
from contextlib import suppress
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from typing import Any, Final, TypeVar

from minutch.cycle.parse import workerprocess
from minutch.cycle.parse.sandbox import FILES, PROCESSES, Sandbox
from minutch.cycle.parse.workerpool import START
from minutch.cycle.parse.workerprocess import AnswerReader, WorkerChannel, limit_memory
from minutch.processes import start_worker

T = TypeVar("T")

_SANDBOX: Final = Sandbox(allowed=frozenset({FILES, PROCESSES}))
"""tantivy maps files as shared memory, which counts as processes'."""
_POLL: Final = 0.5
"""Seconds after which it is asked whether the process lives: a fork of another thread may have a
copy of its end of the pipe.
"""


class Apart:
    """An object in a process of its own; several threads may call it, one after the other."""

    def __init__(
        self, make: Callable[..., object], args: tuple[Any, ...], *, memory: int, seconds: float
    ) -> None:
        """`make(*args)` makes the object there; `seconds` are what a call may take."""
        self._seconds = seconds
        self._lock = threading.Lock()
        self._process, connection = start_worker(_serve, (make, args, memory), name="index")
        self._channel = WorkerChannel(connection)
        self.close = weakref.finalize(self, _end, self._process, connection)
        self._over, self._is_at_work = "", False

    def call(self, returns: type[T], name: str, *args: object) -> T:
        """Returns what a method returns. Raises ValueError with what it has raised there, or that
        the process has ended.
        """
        with self._lock:
            if self._over:
                raise ValueError(self._over)
            try:
                ((value, reason),) = self._answer(tuple[returns], (name, args))  # type: ignore[valid-type]
            except (OSError, EOFError) as error:
                self.close()
                code = self._process.exitcode or 0
                ended = signal.Signals(-code).name if code < 0 else f"exit code {code}"
                is_gone = isinstance(error, EOFError | ConnectionError)
                self._over = f"the process for it was ended: {ended if is_gone else error}"
                raise ValueError(self._over) from error
        if value is None:
            raise ValueError(reason)
        found: T = value[0]
        return found

    def _answer(self, kind: Any, request: tuple[str, tuple[object, ...]]) -> workerprocess.Answer:
        """Raises OSError, EOFError."""
        reader = AnswerReader(kind, lambda found: True)
        self._channel.send([pickle.dumps(request)])
        end = time.monotonic() + self._seconds + (0 if self._is_at_work else START)
        while (answer := reader.arrived(self._channel, 1)) is None:
            if time.monotonic() > end:
                raise OSError(f"nothing within {self._seconds:g} s")
            if not wait([self._channel.connection], _POLL) and not self._process.is_alive():
                raise EOFError
        self._is_at_work = True
        return answer


class Here:
    """An object in this process, called in the same way."""

    def __init__(self, made: object) -> None:
        self._made = made

    def call(self, returns: type[T], name: str, *args: object) -> T:
        """Returns what a method returns, and raises what it raises."""
        found: T = getattr(self._made, name)(*args)
        return found

    def close(self) -> None:
        """Leaves the object to whoever holds it."""


def _end(process: BaseProcess, connection: Connection) -> None:
    connection.close()
    process.join(_POLL)
    if process.is_alive():
        process.kill()
        process.join()


def _serve(
    connection: Connection, make: Callable[..., object], args: tuple[Any, ...], memory: int
) -> None:
    _SANDBOX.part()
    limit_memory(memory)
    _SANDBOX.close([connection.fileno()])
    with suppress(OSError):  # what a panic says, its error says too
        os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
    channel, made = WorkerChannel(connection), None
    with suppress(OSError, EOFError):  # nobody asks any more
        while True:
            name, given = pickle.loads(channel.receive(sys.maxsize)[0])
            try:
                made = make(*args) if made is None else made
                answer: workerprocess.Answer = [((getattr(made, name)(*given),), "")]
            except BaseException as exc:  # noqa: BLE001 - tantivy's panics are no Exception
                answer = [(None, f"{exc}" or type(exc).__name__)]
            workerprocess.send(channel, answer)
