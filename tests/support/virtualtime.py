"""An event loop in which nobody waits: where all tasks sleep, the clock goes to the next timer at
once.

    clock = VirtualClock()
    run(clock, coroutine)

What takes an hour by the clock takes milliseconds, and always the same way. For tasks that wait for
timers and for each other; work handed to threads is done on the spot.
"""

from __future__ import annotations

import asyncio
import selectors
from collections.abc import Callable, Coroutine
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, ParamSpec, TypeVar

_THREADS_END = 5.0
"""Real seconds in which a thread may do what the loop waits for: a busy machine lets it wait."""
T = TypeVar("T")
P = ParamSpec("P")


class VirtualClock:
    """The loop's own time, as seconds and as milliseconds since a given start."""

    def __init__(self, start: int = 0) -> None:
        self._start = start
        self.seconds = 0.0

    def now(self) -> int:
        return self._start + round(self.seconds * 1000)

    def monotonic(self) -> float:
        return self.seconds


class _Skipping(selectors.SelectSelector):
    def __init__(self, clock: VirtualClock) -> None:
        super().__init__()
        self._clock = clock

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        if timeout is None:
            # The loop's end waits for a thread that ends the executor, and wakes it by a socket.
            if found := super().select(_THREADS_END):
                return found
            raise AssertionError("everybody waits for somebody else")
        self._clock.seconds += max(0.0, timeout)
        return super().select(0)


class _AtOnce(ThreadPoolExecutor):
    def submit(self, fn: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> Future[T]:
        future: Future[T] = Future()
        future.set_result(fn(*args, **kwargs))
        return future


class _Loop(asyncio.SelectorEventLoop):
    def __init__(self, clock: VirtualClock) -> None:
        self._clock = clock
        super().__init__(_Skipping(clock))
        self.set_default_executor(_AtOnce(1))

    def time(self) -> float:
        return self._clock.seconds


def run(clock: VirtualClock, coroutine: Coroutine[Any, Any, T]) -> T:
    """The coroutine's result."""
    with asyncio.Runner(loop_factory=lambda: _Loop(clock)) as runner:
        return runner.run(coroutine)
