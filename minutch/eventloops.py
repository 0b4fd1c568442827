"""Runs event loops for callers who wait for their end, also where one runs in their thread already:
in notebooks, and in asynchronous programs. The new one gets another thread then.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from concurrent.futures import Future
from threading import Thread
from typing import Any, TypeVar

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
