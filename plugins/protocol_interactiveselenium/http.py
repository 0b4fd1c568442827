"""protocol-interactiveselenium: fetches pages and has handlers process them in the browser.

The content is what the handlers return, one after the other; for one that returns nothing, the
document as it leaves it. Source: HttpResponse of protocol-interactiveselenium, whose pages are
"null" by the default handler.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

import httpx

from minutch.conf import Configuration

from ..lib_http.exchange import Answer
from ..lib_selenium.base import BrowserHttp
from ..lib_selenium.browserfailure import BrowserFailure
from ..lib_selenium.driver import Driver
from ..lib_selenium.page import Page, Rendered
from .handlers import Handler, load


class Http(BrowserHttp):
    """org.apache.nutch.protocol.interactiveselenium.Http."""

    def __init__(
        self,
        conf: Configuration,
        parameters: Mapping[str, str],
        transport: httpx.AsyncBaseTransport | None = None,
    ) -> None:
        super().__init__(conf, parameters, transport)
        self.handlers = load(conf)

    async def work(self, page: Page, url: str, answer: Answer) -> Rendered:
        """Shows the page as it came to each handler that wants it."""
        handlers = [handler for handler in self.handlers if handler.should_process_url(url)]
        texts = []
        await page.show(url, answer)
        shown = await page.read()
        for number, handler in enumerate(handlers):
            if shown.moved is not None:
                return shown
            if number:
                page.begin_again()
                await page.show(url, answer)
            page.follow()
            texts.append(await self._process(handler, page))
        if shown.moved is None:
            await self.keep_picture(page, url)
        return Rendered("".join(texts), shown.url) if texts else shown

    async def _process(self, handler: Handler, page: Page) -> str:
        driver = Driver(page, asyncio.get_running_loop())
        try:
            text: Any = await asyncio.to_thread(handler.process_driver, driver)
        except BrowserFailure:
            raise
        except Exception as exc:  # a handler is the user's; its failure is the page's
            name = type(handler).__name__
            raise BrowserFailure(f"{name}: {type(exc).__name__}: {exc}") from exc
        return str(text) if text else (await page.read()).text
