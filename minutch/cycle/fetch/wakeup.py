"""Wakes the fetch loop: its parts say that there may be something to do, and it looks once for all
that was said in one turn of the event loop.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable


class Wakeup:
    """Nobody hears it at first."""

    def __init__(self) -> None:
        self._heard: Callable[[], None] | None = None
        self._called = False

    def hear(self, call: Callable[[], None] | None) -> None:
        """Calls this from now on, or nothing."""
        self._heard = call

    def __call__(self) -> None:
        """There may be something to do."""
        if self._heard is not None and not self._called:
            self._called = True
            asyncio.get_running_loop().call_soon(self._answer)

    def _answer(self) -> None:
        self._called = False
        if self._heard is not None:
            self._heard()
