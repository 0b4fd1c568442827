"""protocol-interactiveselenium: fetches pages and has handlers process them in the browser.

The content is what the handlers return, one after the other; for one that returns nothing, the
document as it leaves it. Source: HttpResponse of protocol-interactiveselenium, whose pages are
"null" by the default handler.
"""

from __future__ import annotations

import asyncio
import importlib
import re
from collections.abc import Mapping
from typing import Any, Final, Protocol

import httpx

from minutch.conf import Configuration
from minutch.errors import ConfigError

from ..lib_http.exchange import Answer
from ..lib_selenium.base import BrowserHttp
from ..lib_selenium.devtools import BrowserFailure
from ..lib_selenium.driver import Driver
from ..lib_selenium.page import Page, Rendered

# Defines handlers, which process a page in the browser before it is read
# (interactiveselenium.handlers).
#
#   DefaultHandler                     nothing
#   DefalultMultiInteractionHandler    nothing; a frame to fill in, in Nutch (its spelling)
#   DefaultClickAllAjaxLinksHandler    clicks on every link to `javascript:void(null);`, collecting
#                                      the page after each
#   package.module:Class               a user's own
#
# Source: org.apache.nutch.protocol.interactiveselenium.handlers.

PROPERTY: Final = "interactiveselenium.handlers"
_AJAX: Final = "javascript:void(null);"
_MOST_CLICKS: Final = 50
_PATH: Final = re.compile(r"[A-Za-z_][\w.]*[:.][A-Za-z_]\w*")


class Handler(Protocol):
    """The interface of a handler. It is made once, without arguments, and called in threads."""

    def should_process_url(self, url: str) -> bool:
        """Returns True if the handler is for this page."""
        ...

    def process_driver(self, driver: Driver) -> str | None:
        """Processes the page; returns the content to store, None for the page as it is then."""
        ...


class DefaultHandler:
    """A handler that leaves every page unchanged."""

    def should_process_url(self, url: str) -> bool:
        return True

    def process_driver(self, driver: Driver) -> str | None:
        return None


class DefaultClickAllAjaxLinksHandler(DefaultHandler):
    """Clicks, collects, loads the page again, until every such link had its turn."""

    def process_driver(self, driver: Driver) -> str | None:
        collected = []
        for number in range(_MOST_CLICKS):
            links = [
                a for a in driver.find_elements("tag name", "a") if a.get_attribute("href") == _AJAX
            ]
            if number >= len(links):
                break
            links[number].click()
            collected.append(
                driver.find_element("tag name", "body").get_attribute("innerHTML") or ""
            )
            if number + 1 < len(links):
                driver.refresh()
        return "".join(collected) or None


OWN: Final[dict[str, type[DefaultHandler]]] = {
    "DefaultHandler": DefaultHandler,
    "DefalultMultiInteractionHandler": DefaultHandler,
    "DefaultClickAllAjaxLinksHandler": DefaultClickAllAjaxLinksHandler,
}


def load(conf: Configuration) -> list[Handler]:
    """Returns the handlers that the configuration names. ConfigError for one not there."""
    names = conf.get_trimmed_strings(PROPERTY)
    return [_make(conf, name) for name in names if name]


def _make(conf: Configuration, name: str) -> Handler:
    own = (
        OWN.get(name.rpartition(".")[2]) if name.startswith("org.apache.nutch.") else OWN.get(name)
    )
    if own is not None:
        return own()
    where = f"{PROPERTY} ({conf.source(PROPERTY)})"
    expected = f"expected {', '.join(OWN)} or package.module:Class"
    if not _PATH.fullmatch(name):
        raise ConfigError(f"{where}: {expected}, found {name!r}")
    module, _, attribute = name.replace(":", ".").rpartition(".")
    try:
        handler = getattr(importlib.import_module(module), attribute)()
    except ImportError as exc:
        raise ConfigError(f"{where}: {expected}, found {name!r}: {exc}") from exc
    except AttributeError as exc:
        raise ConfigError(
            f"{where}: {expected}, found {name!r}: no class of that name is in {module}"
        ) from exc
    missing = [
        word
        for word in ("should_process_url", "process_driver")
        if not callable(getattr(handler, word, None))
    ]
    if missing:
        raise ConfigError(f"{where}: {name} has no method {missing[0]}")
    made: Handler = handler
    return made


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
