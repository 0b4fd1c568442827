"""Fetches pages by HTTP with a browser: a page is fetched once, as by protocol-http, and shown in
the browser if it is HTML.

    the answer is no 200, or no HTML     it stands as it came
    a script or refresh leads elsewhere  a redirect (temporarily moved) to there, which the fetcher
                                         judges as any other
    else                                 the content is the document after scripts and loads, in
                                         UTF-8

Source: HttpResponse of protocol-selenium and of protocol-htmlunit, which fetch each page twice,
once without and once with the browser, and follow wherever scripts lead.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import logging
import os
from collections.abc import AsyncIterator, Mapping
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Final

import httpx

from minutch.conf import Configuration
from minutch.errors import ConfigError
from minutch.hadoop.formats.writables import Text
from minutch.mediatypes import essence
from minutch.records.crawldatum import CrawlDatum
from minutch.records.metadata import TRUNCATED_KEY, TRUNCATED_REASON_KEY
from minutch.urls.parts import Url, parse

from ..lib_http.base import HttpBase
from ..lib_http.exchange import Answer
from .chromium import BrowserSettings, Chromium, arguments, find
from .devtools import LONGEST_MESSAGE, BrowserConnection, BrowserFailure
from .page import FetchLoad, Page, Rendered

if TYPE_CHECKING:
    from websockets.asyncio.client import ClientConnection


# Uses a browser of a Selenium grid: a session by the WebDriver protocol, then DevTools over the
# WebSocket that it names.
#
# The session's capabilities say where: `se:cdp` (Selenium Grid 4), else the address in
# `goog:chromeOptions` (a ChromeDriver without a grid, on this machine). Source:
# HttpWebClient.createChromeRemoteWebDriver.

_PACKAGE: Final = "websockets"

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


log = logging.getLogger(__name__)

_OK: Final = 200
_HTML: Final = ("text/html", "application/xhtml+xml")
_COOKIE: Final = Text("Cookie")


class BrowserHttp(HttpBase):
    """Base of the protocol plugins with a browser."""

    html_unit: ClassVar[bool] = False

    def __init__(
        self,
        conf: Configuration,
        parameters: Mapping[str, str],
        transport: httpx.AsyncBaseTransport | None = None,
    ) -> None:
        super().__init__(conf, parameters, transport)
        read = BrowserSettings.of_html_unit if self.html_unit else BrowserSettings.from_conf
        self.browsing = read(conf)
        self.browser = Browser(self.browsing)
        self._warned = False

    async def answer(self, url: Url, datum: CrawlDatum) -> Answer:
        """Returns the page as the browser shows it. Raises httpx.TransportError."""
        answer = await self.fetch(url, datum)
        kind = essence(answer.header("Content-Type") or "")
        if answer.code != _OK or kind not in _HTML:
            return answer
        limit = self.settings.content_limit
        async with self.browser.page(self._load, self.settings.user_agents[0], limit) as page:
            try:
                async with asyncio.timeout(self.browsing.page_time):
                    shown = await self.work(page, str(url), answer)
            except TimeoutError as exc:
                raise BrowserFailure(
                    f"the browser took more than {self.browsing.page_time:g} s"
                ) from exc
        return self._rendered(answer, shown, kind)

    async def work(self, page: Page, url: str, answer: Answer) -> Rendered:
        """Processes a page in the browser."""
        await page.show(url, answer)
        shown = await page.read()
        if shown.moved is None:
            await self.keep_picture(page, url)
        return shown

    async def keep_picture(self, page: Page, url: str) -> None:
        """Stores a picture of the page, if configured."""
        if not self.browsing.screenshots:
            return
        folder = self.browsing.screenshot_folder
        if folder is None:
            if not self._warned:
                log.warning(
                    "take.screenshot is true, but screenshot.location names no folder: no picture"
                    " is kept"
                )
            self._warned = True
            return
        picture = await page.picture()
        now = self.clock.now()
        await asyncio.to_thread(
            _store, folder, f"{hashlib.sha256(url.encode()).hexdigest()[:32]}-{now}.png", picture
        )

    async def close(self) -> None:
        """Ends the browser, then closes all connections."""
        await self.browser.close()
        await super().close()

    async def _load(self, url: str, most: int, cookies: str | None) -> Answer | None:
        """Fetches a resource of a page; None if robots.txt forbids it. Raises TransportError."""
        parsed = parse(url)
        rules = await self.robots.rules(str(parsed))
        if rules.defer_visits or not rules.is_allowed(str(parsed)):
            return None
        datum = CrawlDatum()
        if cookies is not None:
            datum.metadata[_COOKIE] = Text(cookies)
        return await self.fetch(parsed, datum, most)

    def _rendered(self, answer: Answer, shown: Rendered, kind: str) -> Answer:
        """Returns the answer with the document in place of what came, unless it leads elsewhere."""
        if shown.moved is not None:
            return replace(answer, moved=shown.moved)
        limit, metadata = self.settings.content_limit, answer.metadata
        body = shown.text.encode("utf-8", "replace")
        metadata.set("Content-Type", f"{kind}; charset=UTF-8")
        metadata.set(
            TRUNCATED_KEY, "false"
        )  # else Content-Length, which is that of what came, would speak against it
        if 0 <= limit < len(body):
            body = body[:limit].decode("utf-8", "ignore").encode()
            metadata.set(TRUNCATED_KEY, "true")
            metadata.set(TRUNCATED_REASON_KEY, "length")
        base = shown.url if shown.url.startswith(("http://", "https://")) else None
        return replace(answer, body=body, base=base)


def _store(folder: Path, name: str, picture: bytes) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
        beside = folder / f".{name}.{os.getpid()}"
        beside.write_bytes(picture)
        beside.replace(folder / name)
    except OSError as exc:
        log.error("screenshot.location: %s can't be written: %s", folder, exc.strerror)
