"""Runs event loops for callers who wait for their end, also where one runs in their thread already:
in notebooks, and in asynchronous programs. The new one gets another thread then. `beside` is for
callers whose own loop has to go on.
"""

from __future__ import annotations

import asyncio
import ctypes
from collections.abc import Callable, Coroutine, Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from contextvars import ContextVar
from threading import Lock, Thread, get_ident
from typing import Any, Final, TypeVar

T = TypeVar("T")


def is_running() -> bool:
    """Tells whether an event loop runs in this thread."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True


def apart(call: Callable[[], T], interrupt: Callable[[], object] = lambda: None) -> T:
    """Calls a function in a thread without an event loop, this one or else another, and returns its
    result. `interrupt` is to end it where a KeyboardInterrupt ends the waiting.
    """
    if not is_running():
        return call()
    result: Future[T] = Future()

    def work() -> None:
        try:
            result.set_result(call())
        except BaseException as exc:  # noqa: BLE001 - it is raised where it is waited for
            result.set_exception(exc)

    thread = Thread(target=work, name="event loop")
    try:
        thread.start()
        return result.result()
    except KeyboardInterrupt:
        if thread.ident is not None and not result.done():
            interrupt()
        raise
    finally:
        if thread.ident is not None:  # else it was not even started
            thread.join()


def run(main: Coroutine[Any, Any, T]) -> T:
    """Returns the result of a coroutine, as asyncio.run does."""
    task: Future[asyncio.Task[Any] | None] = Future()

    async def known() -> T:
        task.set_result(asyncio.current_task())
        return await main

    def interrupt() -> None:
        if (running := task.result()) is not None:
            running.get_loop().call_soon_threadsafe(running.cancel)

    return apart(lambda: asyncio.run(known()), interrupt)


class _Interrupts:
    """What SIGINT is to the main thread, for a job in another one, which signals do not reach."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._thread: int | None = None
        self._handlers: list[Callable[[], object]] = []

    @contextmanager
    def thread(self) -> Iterator[None]:
        """While this thread is the one to interrupt."""
        self._thread = get_ident()
        try:
            yield
        finally:
            with self._lock:
                self._thread = None

    @contextmanager
    def handled(self, handler: Callable[[], object]) -> Iterator[None]:
        """While `handler` is called for an interrupt, from any thread."""
        self._handlers.append(handler)
        try:
            yield
        finally:
            self._handlers.remove(handler)

    def send(self) -> None:
        """Interrupts: as a signal does, by the newest handler, else by a KeyboardInterrupt; also
        where the handler raises that it is to be one.
        """
        with self._lock:
            if self._thread is None:
                return
            try:
                if self._handlers:
                    self._handlers[-1]()
                    return
                raised: type[BaseException] = KeyboardInterrupt
            except BaseException as exc:  # noqa: BLE001 - it is raised in the job's thread
                raised = type(exc)
            ctypes.pythonapi.PyThreadState_SetAsyncExc(
                ctypes.c_ulong(self._thread), ctypes.py_object(raised)
            )


_interrupts: Final[ContextVar[_Interrupts | None]] = ContextVar("interrupts", default=None)


@contextmanager
def interruptible(handler: Callable[[], object]) -> Iterator[None]:
    """While `handler` is what interrupts a job that was called by `beside`; elsewhere nothing."""
    interrupts = _interrupts.get()
    if interrupts is None:
        yield
    else:
        with interrupts.handled(handler):
            yield


async def beside(call: Callable[[], T]) -> T:
    """Calls a function in a thread of its own and returns its result; the event loop goes on.

    Where this is cancelled, the function is interrupted, each time, as SIGINT interrupts the main
    thread; its end is waited for.
    """
    result: Future[T] = Future()
    interrupts = _Interrupts()

    def work() -> None:
        _interrupts.set(interrupts)
        try:
            with interrupts.thread():
                found = call()
        except BaseException as exc:  # noqa: BLE001 - it is raised where it is waited for
            result.set_exception(exc)
        else:
            result.set_result(found)

    thread = Thread(target=work, name="job")
    thread.start()
    waiting, cancelled = asyncio.wrap_future(result), False
    while not waiting.done():
        try:
            await asyncio.wait([waiting])
        except asyncio.CancelledError:
            cancelled = True
            interrupts.send()
    thread.join()
    if cancelled:
        waiting.exception()  # it has been seen
        raise asyncio.CancelledError
    return waiting.result()
