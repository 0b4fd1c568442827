"""Shows a page in the browser, in a context of its own, without cookies, storage or cache of other
pages.

What the page asks for is held by the browser (Fetch.requestPaused) until `Loads` has judged it
and `fetch` has brought it. The page's text is read from a world that its scripts do not see, so
they can't forge or block the reading.
"""

from __future__ import annotations

import asyncio
import base64
import contextlib
import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from enum import Enum
from typing import Any, Final

import httpx

from ..lib_http.exchange import Answer
from .chromium import BrowserSettings
from .devtools import BrowserConnection, BrowserFailure

# Decides what a page in the browser may load. Pure: no I/O.
#
# GET, http or https                       robots.txt is asked, then lib-http fetches it other
# methods, other schemes             refused: a crawler only reads pictures, sound, pings, ...
# refused as configured: they add nothing to the text the page's own document
# answered with the document that was fetched the main frame, to another URL           refused, and
# noted as a redirect for the fetcher the main frame, to the same URL again    fetched again, at
# most twice more than the page's bounds              refused

RELOADS: Final = 2
NEVER: Final = frozenset(
    {"Media", "TextTrack", "Prefetch", "Ping", "CSPViolationReport", "Manifest", "EventSource"}
)
"""Kinds of resources (Network.ResourceType) that no text comes from, or that have no end."""


_ICON: Final = "/favicon.ico"
"""Asked for by the browser, not by the page."""
log = logging.getLogger(__name__)

QUIET: Final = 0.25
"""Seconds without a load after which a loaded page is taken to be complete."""
AT_A_TIME: Final = 6
"""Loads of one page under way at once; a browser's own limit for a host."""
_SOURCE: Final = """(() => {
  const type = document.doctype, root = document.documentElement;
  return [document.URL, ((type ? new XMLSerializer().serializeToString(type) : "") +
    (root ? root.outerHTML : "")).slice(0, %d)];
})()"""
_UNSENT: Final = (
    b"content-encoding", b"content-length", b"transfer-encoding", b"connection", b"keep-alive",
    b"trailer",
)  # fmt: skip
"""Headers that speak of how content came, which is not how it goes on."""
_REFUSED: Final = "BlockedByClient"
_STAYS: Final = "Aborted"
"""The document stays; any other reason puts a page about the error in its place."""
_MOST_SCRIPT_TIMES: Final = 2

FetchLoad = Callable[[str, int, str | None], Awaitable[Answer | None]]
"""Brings what a page asks for: URL, most bytes, cookies; None if robots.txt or rules say no."""


class RequestVerdict(Enum):
    """The decision about a request."""

    FETCH = "fetch"
    OWN = "own"
    """Answer with the document that is there."""
    LEAVE = "leave"
    """The page leads elsewhere."""
    REFUSE = "refuse"


@dataclass(slots=True)
class Loads:
    """The budget and state of one page."""

    url: str
    frame: str
    """The main frame."""
    not_loaded: frozenset[str]
    requests_left: int
    bytes_left: int
    follows: bool = False
    """While handlers work: they may go where they like, as far as robots.txt goes."""
    opened: bool = False
    reloads: int = 0

    def judge(self, event: dict[str, Any]) -> RequestVerdict:
        """Returns the verdict on a request that the browser holds (Fetch.requestPaused)."""
        request, kind = event["request"], event.get("resourceType", "Other")
        url = request["url"].partition("#")[0]
        if kind == "Document" and event.get("frameId") == self.frame:
            if not self.opened:
                self.opened = True
                return RequestVerdict.OWN
            if not self.follows and url != self.url and request["method"] == "GET":
                return RequestVerdict.LEAVE
            self.reloads += 1
            if self.reloads > RELOADS and not self.follows:
                return RequestVerdict.REFUSE
        is_web = request["method"] == "GET" and url.lower().startswith(("http://", "https://"))
        has_budget = self.requests_left > 0 and self.bytes_left > 0
        if not is_web or not has_budget or self._is_unwanted(kind, url):
            return RequestVerdict.REFUSE
        self.requests_left -= 1
        return RequestVerdict.FETCH

    def _is_unwanted(self, kind: str, url: str) -> bool:
        is_icon = kind == "Other" and url.endswith(_ICON)
        return kind in NEVER or kind in self.not_loaded or is_icon


@dataclass(frozen=True, slots=True)
class Rendered:
    """A page as the browser has it after its scripts ran."""

    text: str
    url: str
    """The document's URL, which scripts may have changed within the host."""
    moved: str | None = None
    """URL that a script or a refresh goes to instead."""


class Page:
    """A tab. Made by `Browser.page`."""

    def __init__(
        self,
        connection: BrowserConnection,
        settings: BrowserSettings,
        fetch: FetchLoad,
        agent: str,
        limit: int,
    ) -> None:
        self.settings = settings
        self._line = connection
        self._fetch = fetch
        self._agent = agent
        self._limit = limit
        self._context = ""
        self._session = ""
        self._loads = Loads("", "", frozenset(), 0, 0)
        self._own: Answer | None = None
        self._host = ""
        self._under_way = 0
        self._turn = asyncio.Semaphore(AT_A_TIME)
        self._loaded = asyncio.Event()
        self._left = asyncio.Event()
        self._crashed = asyncio.Event()
        self._stir = asyncio.Event()
        self.moved: str | None = None

    # -- life --------------------------------------------------------------------------------------

    async def open(self) -> None:
        """Makes the context and the tab."""
        self._context = (
            await self._line.send("Target.createBrowserContext", disposeOnDetach=True)
        )["browserContextId"]
        made = await self._line.send(
            "Target.createTarget", url="about:blank", browserContextId=self._context
        )
        frame = made["targetId"]
        attached = await self._line.send("Target.attachToTarget", targetId=frame, flatten=True)
        self._session = attached["sessionId"]
        settings = self.settings
        self._loads = Loads(
            "", frame, settings.not_loaded, settings.requests_max, settings.bytes_max
        )
        await self._line.send(
            "Browser.setDownloadBehavior", behavior="deny", browserContextId=self._context
        )
        await self.send("Page.enable")
        await self.send("Inspector.enable")
        if not settings.scripts:
            await self.send("Emulation.setScriptExecutionDisabled", value=True)
        await self._guard(self._session)

    async def close(self) -> None:
        """Closes the tab with all its data."""
        self._line.listen(self._session, None)
        if self._context and not self._line.lost.is_set():
            with contextlib.suppress(BrowserFailure):
                await self._line.send(
                    "Target.disposeBrowserContext", timeout=5, browserContextId=self._context
                )

    async def send(self, method: str, timeout: float = 30, **params: Any) -> dict[str, Any]:
        """Sends a DevTools command to the page."""
        if self._crashed.is_set():
            raise BrowserFailure("the page brought its browser tab down")
        return await self._line.send(method, self._session, timeout, **params)

    async def _guard(self, session: str) -> None:
        """Intercepts all requests of a target from the first one on; also those of frames and
        workers below it.
        """
        self._line.listen(session, lambda method, params: self._take(session, method, params))
        await self._line.send("Fetch.enable", session, patterns=[{"urlPattern": "*"}])
        with contextlib.suppress(BrowserFailure):  # workers have no Emulation
            await self._line.send("Emulation.setUserAgentOverride", session, userAgent=self._agent)
        with contextlib.suppress(BrowserFailure):
            await self._line.send(
                "Target.setAutoAttach",
                session,
                autoAttach=True,
                waitForDebuggerOnStart=True,
                flatten=True,
            )

    async def _let_run(self, session: str) -> None:
        with contextlib.suppress(BrowserFailure):
            await self._guard(
                session
            )  # a worker has no loads to hold: what it asks for meets no network
        await self._line.send("Runtime.runIfWaitingForDebugger", session)

    def _take(self, session: str, method: str, params: dict[str, Any]) -> None:
        if method == "Fetch.requestPaused":
            self._line.begin(self._answer(session, params))
        elif method == "Target.attachedToTarget":
            self._line.begin(self._let_run(params["sessionId"]))
        elif method == "Page.loadEventFired":
            self._loaded.set()
            self._stir.set()
        elif method == "Page.javascriptDialogOpening":
            self._line.begin(self.send("Page.handleJavaScriptDialog", accept=False))
        elif method == "Inspector.targetCrashed":
            self._crashed.set()
            self._stir.set()

    # -- loads -------------------------------------------------------------------------------------

    async def _answer(self, session: str, event: dict[str, Any]) -> None:
        verdict = self._loads.judge(event)
        number = event["requestId"]
        if verdict is RequestVerdict.OWN and self._own is not None:
            await self._fulfill(session, number, self._own, own=True)
            return
        if verdict is RequestVerdict.LEAVE:
            self.moved = event["request"]["url"]
            self._left.set()
            self._stir.set()
        if verdict is not RequestVerdict.FETCH:
            log.debug("browser: not loaded: %s", event["request"]["url"][:200])
            reason = _STAYS if verdict is RequestVerdict.LEAVE else _REFUSED
            await self._line.send(
                "Fetch.failRequest", session, requestId=number, errorReason=reason
            )
            return
        self._under_way += 1
        self._stir.set()
        try:
            async with self._turn:
                answer = await self._load(
                    event["request"]["url"], event.get("resourceType") == "Document"
                )
            if answer is None:
                await self._line.send(
                    "Fetch.failRequest", session, requestId=number, errorReason=_REFUSED
                )
            else:
                await self._fulfill(
                    session, number, answer, own=self._is_own(event["request"]["url"])
                )
        finally:
            self._under_way -= 1
            self._stir.set()

    async def _load(self, url: str, document: bool) -> Answer | None:
        """Fetches a resource for the page; None if it is forbidden, fails, or exceeds the page's
        limits.

        A document that is cut off is shown as far as it goes; half a script or picture is of no
        use.
        """
        url = url.partition("#")[0]
        try:
            answer = await self._fetch(url, self._loads.bytes_left, await self._cookies(url))
        except (httpx.TransportError, httpx.InvalidURL, ValueError) as exc:
            log.debug("browser: %s: %s", url[:200], exc)
            return None
        if answer is None:
            log.debug("browser: robots.txt forbids %s", url[:200])
            return None
        self._loads.bytes_left -= len(answer.body)
        return answer if answer.whole or document else None

    def _is_own(self, url: str) -> bool:
        return httpx.URL(url).host == self._host

    async def _cookies(self, url: str) -> str | None:
        """Returns the cookies of the page's own host in this context, and of no other host."""
        if not self._is_own(url):
            return None
        found = await self.send("Network.getCookies", urls=[url])
        return "; ".join(f"{c['name']}={c['value']}" for c in found.get("cookies", ())) or None

    async def _fulfill(self, session: str, number: str, answer: Answer, *, own: bool) -> None:
        lines = []
        for line in answer.head[1:]:
            name, colon, value = line.partition(b":")
            kept = (
                colon
                and name.strip().lower() not in _UNSENT
                and (own or name.strip().lower() != b"set-cookie")
            )
            if kept and not any(byte in line.rstrip(b"\r\n") for byte in b"\0\r\n"):
                lines.append(name.strip() + b": " + value.strip())
        await self._line.send(
            "Fetch.fulfillRequest",
            session,
            requestId=number,
            responseCode=answer.code if 200 <= answer.code <= 599 else 502,
            binaryResponseHeaders=base64.b64encode(b"\0".join(lines)).decode(),
            body=base64.b64encode(answer.body).decode(),
        )

    # -- what is done with a page ------------------------------------------------------------------

    async def show(self, url: str, answer: Answer | None) -> None:
        """Goes to `url`, with the document in `answer` (None: fetch it), and waits for it."""
        url = url.partition("#")[0]
        self._loads.url, self._host, self._own = url, httpx.URL(url).host, answer
        self._loads.opened = answer is None
        self._loaded.clear()
        self._line.begin(self.send("Page.navigate", self.settings.page_time, url=url))
        await self.settle(self.settings.load_delay)

    async def settle(self, seconds: float) -> None:
        """Waits until the page is loaded and idle, up to a number of seconds."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                while (
                    not self._left.is_set()
                    and not self._crashed.is_set()
                    and not self._line.lost.is_set()
                ):
                    self._stir.clear()
                    calm = self._loaded.is_set() and self._under_way == 0
                    try:
                        async with asyncio.timeout(QUIET):
                            await self._stir.wait()
                    except TimeoutError:
                        if calm:
                            return

    def begin_again(self) -> None:
        """Prepares to show the page again: its limits are reset."""
        settings, frame = self.settings, self._loads.frame
        self._loads = Loads(
            "", frame, settings.not_loaded, settings.requests_max, settings.bytes_max
        )

    def follow(self) -> None:
        """Allows the page to go to other URLs from now on, as handlers make it do."""
        self._loads.follows = True

    def expect(self) -> None:
        """Notes that a load is about to begin."""
        self._loaded.clear()

    async def read(self) -> Rendered:
        """Returns the current document, cut to one character more than the content limit."""
        limit = self._limit + 1 if self._limit >= 0 else 1 << 25
        url, text = await self._in_own_world(_SOURCE % limit)
        return Rendered(text, url, self.moved)

    async def _in_own_world(self, expression: str) -> Any:
        """Evaluates a script out of reach of the page's; ends one that keeps the page busy."""
        for time in range(_MOST_SCRIPT_TIMES):
            try:
                patience = self.settings.script_time
                world = await self.send(
                    "Page.createIsolatedWorld", patience, frameId=self._loads.frame
                )
                made = world["executionContextId"]
                done = await self.send(
                    "Runtime.evaluate",
                    patience,
                    expression=expression,
                    contextId=made,
                    returnByValue=True,
                )
                return result_of(done)
            except BrowserFailure:
                if (
                    time + 1 == _MOST_SCRIPT_TIMES
                    or self._line.lost.is_set()
                    or self._crashed.is_set()
                ):
                    raise
                log.debug("browser: a script keeps %s busy and is ended", self._loads.url[:200])
                with contextlib.suppress(BrowserFailure):
                    await self.send("Emulation.setScriptExecutionDisabled", 2, value=True)
                await self.send("Runtime.terminateExecution", 2)
        raise AssertionError

    async def picture(self) -> bytes:
        """Returns the page as a PNG, as large as the window."""
        found = await self.send("Page.captureScreenshot", format="png")
        return base64.b64decode(found["data"])


def result_of(done: dict[str, Any]) -> Any:
    """Returns the value of an evaluation. Raises BrowserFailure for a script that raised."""
    if "exceptionDetails" in done:
        details = done["exceptionDetails"]
        thrown = details.get("exception", {})
        raise BrowserFailure(
            str(thrown.get("description") or thrown.get("value") or details.get("text"))
        )
    result: dict[str, Any] = done.get("result", {})
    return result.get("value")
