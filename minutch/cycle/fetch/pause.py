"""Holds a fetch: no request begins until it resumes, and what waits loses nothing. No I/O.

A request that is under way is finished. Before every other one, be it for robots.txt or for a
redirect's target, a chain asks `is_on`, and waits for `over`.
"""

from __future__ import annotations

import asyncio


class Pause:
    """Off at first; times in ms."""

    def __init__(self) -> None:
        self._since: int | None = None
        self._over = asyncio.Event()

    @property
    def is_on(self) -> bool:
        return self._since is not None

    def begin(self, now: int) -> None:
        """Holds back what has not begun."""
        if self._since is None:
            self._since = now
            self._over.clear()

    def end(self, now: int) -> int:
        """Lets everything go on; returns how long that took, 0 if nothing was held."""
        if self._since is None:
            return 0
        lasted = self.lasting(now)
        self._since = None
        self._over.set()
        return lasted

    def lasting(self, now: int) -> int:
        """Milliseconds since the pause began; 0 if there is none."""
        return 0 if self._since is None else max(0, now - self._since)

    async def over(self) -> None:
        """Waits for the end of the pause."""
        while self.is_on:
            await self._over.wait()
