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
import hashlib
import logging
import os
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import ClassVar, Final

import httpx

from minutch.conf import Configuration
from minutch.hadoop.formats.writables import Text
from minutch.mediatypes import essence
from minutch.records.crawldatum import CrawlDatum
from minutch.records.metadata import TRUNCATED_KEY, TRUNCATED_REASON_KEY
from minutch.urls.parts import Url, parse

from ..lib_http.base import HttpBase
from ..lib_http.exchange import Answer
from .browser import Browser
from .devtools import BrowserFailure
from .page import Page, Rendered
from .settings import BrowserSettings

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
