"""Runs one browser for all pages of a process: started with the first, again after its end."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, Final

import httpx

from minutch.errors import ConfigError

from .chromium import Chromium, arguments, find
from .devtools import LONGEST_MESSAGE, BrowserConnection, BrowserFailure
from .page import FetchLoad, Page
from .settings import BrowserSettings

if TYPE_CHECKING:
    from websockets.asyncio.client import ClientConnection


# Uses a browser of a Selenium grid: a session by the WebDriver protocol, then DevTools over the
# WebSocket that it names.
#
# The session's capabilities say where: `se:cdp` (Selenium Grid 4), else the address in
# `goog:chromeOptions` (a ChromeDriver without a grid, on this machine). Source:
# HttpWebClient.createChromeRemoteWebDriver.

_PACKAGE: Final = "websockets"
log = logging.getLogger(__name__)

WATCH: Final = 0.5
"""Seconds between two looks at the browser's memory."""


def require_websockets() -> None:
    """Raises ConfigError where the package of the extra is missing."""
    if find_spec(_PACKAGE) is None:
        raise ConfigError(
            f"selenium.driver=remote needs the package {_PACKAGE}",
            hint="python -m pip install 'minutch[browser]'",
        )


class SocketChannel:
    """A WebSocket."""

    def __init__(self, socket: ClientConnection) -> None:
        self._socket = socket

    async def receive(self) -> bytes | str:
        from websockets.exceptions import ConnectionClosed

        try:
            message: bytes | str = await self._socket.recv()
            return message
        except ConnectionClosed:
            return ""

    async def send(self, message: str) -> None:
        from websockets.exceptions import ConnectionClosed

        try:
            await self._socket.send(message)
        except ConnectionClosed as exc:
            raise BrowserFailure("the browser has hung up") from exc

    async def close(self) -> None:
        await self._socket.close()


class Remote:
    """A session on a grid."""

    def __init__(self, hub: str, session: str, connection: BrowserConnection) -> None:
        self.connection = connection
        self._url = f"{hub}/session/{session}"

    @classmethod
    async def start(cls, settings: BrowserSettings) -> Remote:
        """Begins a session. Raises BrowserFailure."""
        from websockets.asyncio.client import connect

        options: dict[str, Any] = {"args": arguments(settings)}
        if settings.binary:
            options["binary"] = settings.binary
        wanted = {
            "capabilities": {
                "alwaysMatch": {"browserName": "chrome", "goog:chromeOptions": options}
            }
        }
        try:
            async with httpx.AsyncClient(timeout=settings.start_time, trust_env=False) as client:
                answer = await client.post(f"{settings.hub}/session", json=wanted)
                value = answer.json()["value"]
                if answer.status_code != 200:
                    raise BrowserFailure(
                        f"{settings.hub}: {value.get('message', value)}".splitlines()[0]
                    )
                address = await _address(client, value["capabilities"])
            socket = await connect(
                address, max_size=LONGEST_MESSAGE, open_timeout=settings.start_time, proxy=None
            )
        except BrowserFailure:
            raise
        except (httpx.HTTPError, OSError, TimeoutError) as exc:
            raise BrowserFailure(
                f"no browser by {settings.hub}: {exc or type(exc).__name__}"
            ) from exc
        except (ValueError, KeyError, TypeError) as exc:
            raise BrowserFailure(f"{settings.hub} does not answer as a WebDriver does") from exc
        log.info("session with %s begun", settings.hub)
        return cls(settings.hub, value["sessionId"], BrowserConnection(SocketChannel(socket)))

    async def close(self) -> None:
        """Ends the session; the grid ends the browser."""
        await self.connection.close()
        with contextlib.suppress(httpx.HTTPError):
            async with httpx.AsyncClient(timeout=10, trust_env=False) as client:
                await client.delete(self._url)


async def _address(client: httpx.AsyncClient, capabilities: dict[str, Any]) -> str:
    """Returns the WebSocket of the session's browser."""
    if "se:cdp" in capabilities:
        return str(capabilities["se:cdp"])
    debugger = capabilities["goog:chromeOptions"]["debuggerAddress"]
    found = await client.get(f"http://{debugger}/json/version")
    return str(found.json()["webSocketDebuggerUrl"])


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
