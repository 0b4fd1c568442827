"""Runs one job in a process of its own with every change of its files under control.

    run(words, root)                       undisturbed: exit code, what it said, every `Call` in
                                           order
    run(words, root, at=17, fault=KILL)    killed (all of its processes, SIGKILL) instead of making
                                           call 17
    run(words, root, at=17, fault=errno.ENOSPC)      call 17 gives an error; with `lasting`, so do
                                                     all that follow
    run(words, root, at=17, fault=SHORT)   call 17 writes only half
    run(words, root, at=17, fault=-signal.SIGTERM)   a signal comes with call 17

The process is forked from this one, which therefore must not have threads: nothing here calls
Polars, tantivy or a kernel, but by `asked_apart`. A job sees a clock that stands still (`NOW`), so
that every run of it has the same result.
"""

from __future__ import annotations

import gc
import importlib
import os
import pickle
import select
import signal
import socket
import sys
import traceback
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryFile
from typing import IO, TYPE_CHECKING, Any, Final, TypeVar, cast

from tests.faults.syscalls import (
    Call,
    Stopped,
    listen,
    next_stop,
    receive_descriptor,
    send_descriptor,
)

if TYPE_CHECKING:
    from minutch.kernels.native import Kernel

NOW: Final = 1_800_000_000_000
KILL: Final = "kill"
SHORT: Final = "short"
Fault = str | int
T = TypeVar("T")
Ticks = Callable[[], int]
"""A clock: what it shows, in epoch milliseconds."""

_WRITES: Final = frozenset({"open", "write", "truncate", "mkdir", "rename", "exchange", "link"})
_LOADED: Final = "--- loaded ---"
LIMIT: Final = 120.0
"""Seconds after which a job hangs."""


class Hung(Exception):
    """A job that did not end."""


@dataclass
class Ran:
    """The outcome of a job."""

    code: int = 0
    text: str = ""
    calls: list[Call] = field(default_factory=list)
    hit: Call | None = None


def run(
    words: Sequence[str],
    root: Path,
    *,
    at: int | None = None,
    fault: Fault = KILL,
    lasting: bool = False,
    reads: bool = False,
    clock: Ticks = lambda: NOW,
) -> Ran:
    """Run a command line; calls are counted from 0, with `reads` also opens for reading."""
    result = Ran()
    with TemporaryFile() as said:
        child, listener = start(words, said, clock, reads=reads)
        try:
            _Watch(child, root, at, fault, lasting, reads, result).until_it_ends(listener)
        finally:
            os.close(listener)
            end(child)
        result.code = ended(child)
        result.text = text_of(said)
    return result


def run_unseen(words: Sequence[str], clock: Ticks = lambda: NOW) -> Ran:
    """Run a command line in the same way, but for its calls, which pass unseen: that is quicker."""
    with TemporaryFile() as said:
        child = os.fork()
        if child == 0:
            _work(words, None, said, clock)
        process = os.pidfd_open(child)
        try:
            if not select.select([process], [], [], LIMIT)[0]:
                raise Hung(f"did not end within {LIMIT} s")
        finally:
            os.close(process)
            end(child)
        return Ran(ended(child), text_of(said))


def asked_apart(question: Callable[[], T]) -> T:
    """Answer a question in a process of its own, which may have threads. Raises what it does.

    tantivy looks after an open index in a thread, which takes the index's lock. Forked at that
    moment, the next job had the lock's descriptor, and waited for itself: once in 2,000 points.
    """
    with TemporaryFile() as answered:
        child = os.fork()
        if child == 0:
            try:
                answer: tuple[Any, BaseException | None] = question(), None
            except BaseException as exc:  # noqa: BLE001 - raised by who asked
                answer = None, exc
            pickle.dump(answer, answered)
            answered.flush()
            os._exit(0)
        code = ended(child)
        assert code == 0, f"a question's process ended with {code}"
        answered.seek(0)
        found, error = pickle.load(answered)
        if error is not None:
            raise error
        return cast("T", found)


def warm(words: Sequence[str], *, forks: bool) -> None:
    """Load what a command loads, modules and kernels, so that processes forked from this one have
    it at once.

    A command that `forks` its workers can't do so with Polars in memory: what it loads from there
    on stays away.
    """
    with TemporaryFile() as said:
        child = os.fork()
        if child == 0:
            _work(words, None, said, lambda: NOW, tell=True)
        ended(child)
        loaded = text_of(said).rpartition(f"{_LOADED}\n")[2].splitlines()
    for name in loaded[: loaded.index("polars")] if forks and "polars" in loaded else loaded:
        module, _, kernel = name.partition(" ")
        with suppress(ImportError):  # plugins have names of their own
            found = importlib.import_module(module)
            if kernel:
                _load_kernel(getattr(found, kernel))
    gc.collect()
    gc.freeze()  # a collection in a forked process would write to all that both share


def _load_kernel(kernel: Kernel) -> None:
    kernel._native = kernel._native or kernel._load()


def _tell_what_is_loaded() -> None:
    """Print the names of this process's modules, in their order, then those of its kernels."""
    from minutch.kernels.native import Kernel

    modules = dict(sys.modules)
    print(_LOADED, *modules, sep="\n")
    for name, module in modules.items():
        for value in vars(module).values() if name.startswith("minutch.kernels.") else ():
            if isinstance(value, Kernel) and value._native is not None:
                print(value.__module__, value.name)


def start(words: Sequence[str], said: IO[bytes], clock: Ticks, *, reads: bool) -> tuple[int, int]:
    """A process for a command line, and the listener that its calls come to."""
    ours, theirs = socket.socketpair()
    child = os.fork()
    if child == 0:
        ours.close()
        _work(words, theirs, said, clock, reads=reads)
    theirs.close()
    listener = receive_descriptor(ours)
    ours.close()
    return child, listener


def ended(child: int) -> int:
    """The exit code of a process that ends, negative for a signal's number."""
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def text_of(said: IO[bytes]) -> str:
    """All that a process has said."""
    said.seek(0)
    return said.read().decode("utf-8", "replace")


def end(child: int) -> None:
    """End what is left of the job: its process group."""
    with suppress(ProcessLookupError):
        os.killpg(child, signal.SIGKILL)


def pin() -> None:
    """Keep this process, and those that it starts, on one core.

    Then one thread at a time makes the calls of a job, in the same order each time, and its watch
    answers sooner.
    """
    if hasattr(os, "sched_setaffinity"):
        cores = sorted(os.sched_getaffinity(0))
        os.sched_setaffinity(0, {cores[os.getpid() % len(cores)]})


def _work(
    words: Sequence[str],
    channel: socket.socket | None,
    said: IO[bytes],
    clock: Ticks,
    *,
    reads: bool = False,
    tell: bool = False,
) -> None:
    """The job's process, watched if there is a channel; does not return."""
    code = 254
    try:
        os.setpgid(0, 0)
        for stream in (1, 2):
            os.dup2(said.fileno(), stream)
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        from minutch.clock import SteadyClock, SystemClock
        from minutch.commands import cli

        SystemClock.now = lambda self: clock()  # type: ignore[method-assign]
        SteadyClock.now = lambda self: self._start  # type: ignore[method-assign]
        if channel is not None:
            listener = listen(reads)
            send_descriptor(channel, listener)
            os.close(listener)
            channel.close()
        code = cli.main(words)
        if tell:
            _tell_what_is_loaded()
    except SystemExit as exc:
        code = exc.code if isinstance(exc.code, int) else 1
    except BaseException:  # noqa: BLE001 - shown, whatever it is
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code & 0xFF)


@dataclass
class _Watch:
    child: int
    root: Path
    at: int | None
    fault: Fault
    lasting: bool
    reads: bool
    result: Ran

    def until_it_ends(self, listener: int) -> None:
        poll = select.poll()
        poll.register(listener, select.POLLIN)
        while True:
            events = poll.poll(LIMIT * 1000)
            if not events:
                raise Hung(f"no call for {LIMIT} s")
            if not events[0][1] & select.POLLIN:
                return
            stop = next_stop(listener)
            if stop is not None and not self._handle(stop):
                return

    def _handle(self, stop: Stopped) -> bool:
        """Answer a call; False if the job was killed."""
        try:
            call = stop.describe(self.root)
        except (FileNotFoundError, ProcessLookupError):  # it has been killed meanwhile
            return True
        if call is None or (call.kind == "read" and not self.reads):
            stop.go_on()
            return True
        number = len(self.result.calls)
        self.result.calls.append(call)
        if self.at is None or number < self.at or (number > self.at and not self.lasting):
            if not stop.go_on():
                self.result.calls.pop()
            return True
        return self._disturb(stop, call)

    def _disturb(self, stop: Stopped, call: Call) -> bool:
        self.result.hit = self.result.hit or call
        if self.fault == KILL:
            os.killpg(self.child, signal.SIGKILL)
            return False
        if self.fault == SHORT:
            stop.shorten()
        elif isinstance(self.fault, int) and self.fault < 0:
            os.kill(self.child, -self.fault)
            if not stop.go_on():
                self.result.calls.pop()
                self.at = None  # it has come; the interrupted call comes again
        elif isinstance(self.fault, int) and (not self.lasting or call.kind in _WRITES):
            stop.fail(self.fault)
        else:
            stop.go_on()
        return True
