"""Worker processes: the one place where a process is started, and how it ends with its parent.

A fork has everything at once, but it copies one thread only: Polars, or any other library with
threads of its own, then waits for ever for threads that are not there. So a process is forked as
long as it has one thread and never loaded Polars. Otherwise a fork server is started afresh, once,
which loads what workers need and forks itself for each of them; what such a worker is given has to
be picklable.
"""

from __future__ import annotations

import contextlib
import ctypes
import fcntl
import multiprocessing
import os
import select
import signal
import sys
import threading
import weakref
from collections.abc import Callable, Iterator, Sequence
from multiprocessing import resource_tracker
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any, Final

from minutch import log, processwide
from minutch.processwide import ProcessSettings

if TYPE_CHECKING:
    import asyncio

_PR_SET_PDEATHSIG: Final = 1
_F_SETSIG: Final = 10
_LIBC: Final = ctypes.CDLL(None)
"""Loaded here: a fork is no place to load anything."""
_LEFT_TO_THE_PARENT: Final = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
"""Sent to the whole group by a terminal or supervisor: the parent decides when workers end."""

_START: Final = (
    "import sys; sys.path.insert(0, sys.argv.pop(1)); from minutch.commands.cli import main;"
    " sys.exit(main())"
)
"""`python -m minutch`, but for the working folder, which is no place to take modules from."""
_LOADED_FIRST: Final = "minutch.cycle.fetch.preloaded"
"""The module that a fork server imports before it forks, since most workers fetch or parse; by
name, as it is far above this one.
"""

_SAFE_PATH: Final = "PYTHONSAFEPATH"

_starting = threading.Lock()
_parents_ends: weakref.WeakSet[Connection] = weakref.WeakSet()
"""This process's ends of the pipes to its workers."""


def may_fork() -> bool:
    """Returns whether a fork of this process can work."""
    return _threads() == 1 and "polars" not in sys.modules


def _threads() -> int:
    """Returns the number of this process's threads, where Linux tells with those of libraries.

    tantivy looks after each open index in one, which takes the index's lock now and then: a fork at
    that moment has the lock's descriptor, and keeps all others waiting for as long as it lives.
    """
    try:
        return sum(1 for _ in Path("/proc/self/task").iterdir())
    except OSError:
        return threading.active_count()


def start_worker(
    main: Callable[..., None], args: tuple[Any, ...], *, name: str, daemon: bool = True
) -> tuple[BaseProcess, Connection]:
    """Start `main(connection, *args)` in a process of its own; returns it and the other end of its
    pipe.

    A daemon may have no workers of its own. The process is killed with its parent, whatever either
    is at.
    """
    forks = may_fork()
    context: Any = multiprocessing.get_context("fork" if forks else "forkserver")
    if not forks:  # preloaded, a worker costs 0.09 s of CPU; on its own it loaded all for 0.25
        context.set_forkserver_preload([_LOADED_FIRST])
        # whose start lets these signals in again: a Ctrl-C ended the fork server that came next
        with _apart():
            resource_tracker.ensure_running()
    ours, theirs = context.Pipe()
    _parents_ends.add(ours)
    process = context.Process(
        target=_forked if forks else _served,
        args=(
            (os.getpid(), main, theirs, *args)
            if forks
            else (processwide.settings(), bool(sys.flags.safe_path), main, theirs, *args)
        ),
        name=name,
        daemon=daemon,
    )
    # the process begins deaf, and ignores these signals before it listens again
    with _deaf(), contextlib.nullcontext() if forks else _apart():
        process.start()
    theirs.close()
    return process, ours


async def start_command(words: Sequence[str], *, limit: int) -> asyncio.subprocess.Process:
    """Start `minutch WORDS…` as a program in a session of its own: no signal of this terminal
    reaches it.

    Its stderr can be read, in lines of `limit` bytes at most; it reads nothing, and what it prints
    is dropped. It goes on when this process ends.
    """
    import asyncio

    return await asyncio.create_subprocess_exec(
        sys.executable,
        "-P",
        "-c",
        _START,
        str(Path(__file__).resolve().parents[1]),
        *words,
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.DEVNULL,
        stderr=asyncio.subprocess.PIPE,
        limit=limit,
        start_new_session=True,
    )


@contextlib.contextmanager
def _deaf() -> Iterator[None]:
    """Blocks the signals that a worker leaves to its parent in this thread."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, _LEFT_TO_THE_PARENT)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


@contextlib.contextmanager
def _apart() -> Iterator[None]:
    """Has a fork server start without two things of this process.

    The script that runs: the server's processes would run it again, as far as it does not ask for
    its `__name__`, and need nothing of it. The working folder, where `python -c`, as which the
    server begins, looks for all modules first: a `selectors.py` there was run. (With -P, or with
    the variable, a process hands that on itself.)
    """
    with _starting:
        main = sys.modules["__main__"]
        sys.modules["__main__"] = ModuleType("__main__")
        if not sys.flags.safe_path:
            os.putenv(_SAFE_PATH, "1")
        try:
            yield
        finally:
            sys.modules["__main__"] = main
            if not sys.flags.safe_path:
                os.unsetenv(_SAFE_PATH)


def _forked(parent: int, main: Callable[..., None], *args: Any) -> None:
    for end in list(_parents_ends):  # left open, these copies would hide the parent's death
        end.close()
    _parents_ends.clear()
    end_with(parent)
    _work(main, *args)


def _served(
    settings: ProcessSettings, is_safe_path: bool, main: Callable[..., None], *args: Any
) -> None:
    _end_at_hang_up()
    if not is_safe_path:  # a program of parse-ext may have modules of its own beside it
        os.unsetenv(_SAFE_PATH)
    processwide.use(settings)
    if used := settings.log:
        log.configure(
            sys.stderr,
            level=used.level,
            log_file=used.file,
            only_live=used.only_live,
            in_crawl=used.in_crawl,
        )
    _work(main, *args)


def _work(main: Callable[..., None], *args: Any) -> None:
    for number in _LEFT_TO_THE_PARENT:
        signal.signal(number, signal.SIG_IGN)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, _LEFT_TO_THE_PARENT)
    main(*args)


def end_with(parent: int) -> None:
    """Lets the system kill this process, a fork of `parent` (its pid), when that ends, whatever it
    is at: it holds copies of open files. A program that it becomes keeps that.

    The system watches the thread that forked, so this is for forks, which are made by a process's
    only thread.
    """
    with contextlib.suppress(OSError, AttributeError):
        _LIBC.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        os._exit(1)


def _end_at_hang_up() -> None:
    """Lets the system kill this process when who asked the fork server for it ends.

    That is not its parent: it is known by a pipe, of which it alone has the other end. A thread
    that read from it could do nothing while a library keeps Python's lock.
    """
    asker = multiprocessing.parent_process()
    if asker is None:
        return
    end = asker.sentinel
    fcntl.fcntl(end, _F_SETSIG, signal.SIGKILL)
    fcntl.fcntl(end, fcntl.F_SETOWN, os.getpid())
    fcntl.fcntl(end, fcntl.F_SETFL, fcntl.fcntl(end, fcntl.F_GETFL) | os.O_ASYNC)
    if select.select([end], [], [], 0)[0]:  # it had ended before
        os._exit(1)
