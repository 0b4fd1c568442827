"""Uses a browser of a Selenium grid: a session by the WebDriver protocol, then DevTools over the
WebSocket that it names.

The session's capabilities say where: `se:cdp` (Selenium Grid 4), else the address in
`goog:chromeOptions` (a ChromeDriver without a grid, on this machine). Source:
HttpWebClient.createChromeRemoteWebDriver.
"""

from __future__ import annotations

import contextlib
import logging
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, Final

import httpx

from minutch.errors import ConfigError

from .browserfailure import BrowserFailure
from .chromium import arguments
from .devtools import LONGEST_MESSAGE, Connection
from .settings import BrowserSettings

if TYPE_CHECKING:
    from websockets.asyncio.client import ClientConnection

log = logging.getLogger(__name__)

_PACKAGE: Final = "websockets"


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

    def __init__(self, hub: str, session: str, connection: Connection) -> None:
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
        return cls(settings.hub, value["sessionId"], Connection(SocketChannel(socket)))

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
