"""Runs one browser for all pages of a process: it is started with the first, and again when it has
ended.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator
from typing import Final

from .browserfailure import BrowserFailure
from .chromium import Chromium, find
from .page import FetchLoad, Page
from .remote import Remote, require_websockets
from .settings import BrowserSettings

log = logging.getLogger(__name__)

WATCH: Final = 0.5
"""Seconds between two looks at the browser's memory."""


class Browser:
    """A browser that provides a limited number of pages at a time."""

    def __init__(self, settings: BrowserSettings) -> None:
        """Raises ConfigError if there is no browser to be had, or no package to reach it with."""
        if settings.driver == "remote":
            require_websockets()
        else:
            find(settings.binary)
        self._settings = settings
        self._slots = asyncio.Semaphore(settings.pages)
        self._starting = asyncio.Lock()
        self._running: Chromium | Remote | None = None
        self._watching: asyncio.Task[None] | None = None

    @contextlib.asynccontextmanager
    async def page(self, fetch: FetchLoad, agent: str, limit: int) -> AsyncIterator[Page]:
        """Provides a page in a context of its own, closed at the end."""
        async with self._slots:
            running = await self._browser()
            page = Page(running.connection, self._settings, fetch, agent, limit)
            try:
                await page.open()
                yield page
            finally:
                await page.close()

    async def _browser(self) -> Chromium | Remote:
        async with self._starting:
            if self._running is not None and self._running.connection.lost.is_set():
                log.warning("the browser has ended and is started again")
                await self._end()
            if self._running is None:
                make = Remote.start if self._settings.driver == "remote" else Chromium.start
                self._running = await make(self._settings)
                if isinstance(self._running, Chromium):
                    self._watching = asyncio.create_task(self._watch(self._running))
            return self._running

    async def _watch(self, browser: Chromium) -> None:
        """Ends a browser that exceeds its memory; its pages fail, the next gets a new browser."""
        limit = self._settings.memory_max
        while limit > 0 and not browser.connection.lost.is_set():
            used = await asyncio.to_thread(browser.memory)
            if used > limit:
                log.warning(
                    "the browser has %d MiB of memory, %d are allowed (minutch.browser.memory.max):"
                    " it is ended",
                    used >> 20,
                    limit >> 20,
                )
                browser.kill()
                return
            await asyncio.sleep(WATCH)

    async def _end(self) -> None:
        if self._watching is not None:
            self._watching.cancel()
            await asyncio.gather(self._watching, return_exceptions=True)
            self._watching = None
        if self._running is not None:
            running, self._running = self._running, None
            with contextlib.suppress(BrowserFailure):
                await running.close()

    async def close(self) -> None:
        """Ends the browser."""
        async with self._starting:
            await self._end()
