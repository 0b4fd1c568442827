"""Provides the page to handlers of protocol-interactiveselenium by the names of Selenium's
WebDriver.

A handler is plain code in a thread of its own; each call here is done in the fetcher's event loop
and waited for.

    def process_driver(self, driver: Driver) -> str | None:
        for link in driver.find_elements("css selector", "a.more"):
            link.click()
        return driver.page_source

The ways to find elements are Selenium's: id, name, class name, tag name, css selector, xpath, link
text, partial link text. Source: org.openqa.selenium.WebDriver, as far as pages are read with it.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Coroutine
from typing import Any, Final

from .devtools import BrowserFailure
from .page import Page, result_of

_FIND: Final = """function(way, value) {
  const root = this instanceof Element ? this : document;
  const by = {
    "id": () => root.querySelectorAll("#" + CSS.escape(value)),
    "name": () => root.querySelectorAll('[name="' + CSS.escape(value) + '"]'),
    "class name": () => root.querySelectorAll("." + CSS.escape(value)),
    "tag name": () => root.getElementsByTagName(value),
    "css selector": () => root.querySelectorAll(value),
    "link text": () => [...root.querySelectorAll("a")].filter(a => a.textContent.trim() === value),
    "partial link text": () =>
      [...root.querySelectorAll("a")].filter(a => a.textContent.includes(value)),
    "xpath": () => {
      const kind = XPathResult.ORDERED_NODE_SNAPSHOT_TYPE;
      const found = document.evaluate(value, root, null, kind, null);
      return Array.from({length: found.snapshotLength}, (_, i) => found.snapshotItem(i));
    },
  };
  return Array.from(by[way]()).slice(0, 1000);
}"""
WAYS: Final = (
    "id", "name", "class name", "tag name", "css selector", "link text", "partial link text",
    "xpath",
)  # fmt: skip


class Driver:
    """The page, for a handler."""

    def __init__(self, page: Page, loop: asyncio.AbstractEventLoop) -> None:
        self._page = page
        self._loop = loop

    # -- the page ----------------------------------------------------------------------------------

    @property
    def page_source(self) -> str:
        """The current document."""
        return str(self._do(self._page.read()).text)

    @property
    def current_url(self) -> str:
        """The document's URL."""
        return str(self.execute_script("return document.URL"))

    @property
    def title(self) -> str:
        """The document's title."""
        return str(self.execute_script("return document.title"))

    def get(self, url: str) -> None:
        """Goes to another page, if robots.txt allows it."""
        self._do(self._page.show(url, None))

    def refresh(self) -> None:
        """Loads the page again."""
        self._page.expect()
        self._do(self._page.send("Page.reload"))
        self.wait()

    def wait(self, seconds: float | None = None) -> None:
        """Waits until the page is loaded, by default up to libselenium.page.load.delay."""
        self._do(
            self._page.settle(self._page.settings.handler_delay if seconds is None else seconds)
        )

    def execute_script(self, script: str, *arguments: Any) -> Any:
        """Runs a function's body in the page; returns its result by JSON."""
        return self.call(f"function() {{ {script} }}", *arguments)

    def find_elements(self, by: str, value: str) -> list[Element]:
        """Returns all elements that match."""
        return self.find(None, by, value)

    def find_element(self, by: str, value: str) -> Element:
        """Returns the first element that matches. Raises LookupError if none does."""
        return _first(self.find_elements(by, value), by, value)

    # -- how ---------------------------------------------------------------------------------------

    def _do(self, work: Coroutine[Any, Any, Any]) -> Any:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(
            self._page.settings.page_time
        )

    def call(
        self, function: str, *arguments: Any, element: str | None = None, by_value: bool = True
    ) -> Any:
        """Calls a JavaScript function in the page, on `element` if there is one."""
        return self._do(self._call_on(function, arguments, element, by_value))

    async def _call_on(
        self, function: str, arguments: tuple[Any, ...], element: str | None, by_value: bool
    ) -> Any:
        target = element or result_object(
            await self._page.send("Runtime.evaluate", expression="window")
        )
        done = await self._page.send(
            "Runtime.callFunctionOn",
            self._page.settings.page_time,
            functionDeclaration=function,
            objectId=target,
            arguments=[
                {"objectId": a.number} if isinstance(a, Element) else {"value": a}
                for a in arguments
            ],
            returnByValue=by_value,
            userGesture=True,
            awaitPromise=True,
        )
        return result_of(done) if by_value else result_object(done)

    def find(self, element: str | None, by: str, value: str) -> list[Element]:
        """Finds elements below `element`, or in the whole page. Raises LookupError."""
        if by not in WAYS:
            raise LookupError(f"expected one of {', '.join(WAYS)}, found {by!r}")
        listed = self.call(_FIND, by, value, element=element, by_value=False)
        own = self._do(
            self._page.send("Runtime.getProperties", objectId=listed, ownProperties=True)
        )
        return [
            Element(self, entry["value"]["objectId"])
            for entry in own.get("result", ())
            if entry["name"].isdecimal() and "objectId" in entry.get("value", {})
        ]


class Element:
    """An element of the page."""

    def __init__(self, driver: Driver, number: str) -> None:
        self._driver = driver
        self.number = number

    def _call(self, body: str, *arguments: Any) -> Any:
        return self._driver.call(f"function(a, b) {{ {body} }}", *arguments, element=self.number)

    @property
    def text(self) -> str:
        """Its text as shown."""
        return str(self._call("return this.innerText ?? this.textContent ?? ''"))

    @property
    def tag_name(self) -> str:
        """The name of the tag in lower case."""
        return str(self._call("return this.tagName.toLowerCase()"))

    def get_attribute(self, name: str) -> str | None:
        """Returns an attribute as written, else a property of that name (`innerHTML`, `value`)."""
        found = self._call(
            "const v = this.getAttribute(a) ?? this[a]; return v == null ? null : String(v)", name
        )
        return None if found is None else str(found)

    def click(self) -> None:
        """Clicks, and waits for what that loads."""
        self._call("this.scrollIntoView({block: 'center'}); this.click()")
        self._driver.wait()

    def send_keys(self, text: str) -> None:
        """Writes into a field."""
        self._call(
            "this.focus(); this.value = (this.value ?? '') + a;for (const kind of ['input',"
            " 'change']) this.dispatchEvent(new Event(kind, {bubbles: true}))",
            text,
        )

    def find_elements(self, by: str, value: str) -> list[Element]:
        """Returns all elements below it that match."""
        return self._driver.find(self.number, by, value)

    def find_element(self, by: str, value: str) -> Element:
        """Returns the first element below it that matches. Raises LookupError if none does."""
        return _first(self.find_elements(by, value), by, value)


def _first(found: list[Element], by: str, value: str) -> Element:
    if not found:
        raise LookupError(f"no element by {by}: {value}")
    return found[0]


def result_object(done: dict[str, Any]) -> str:
    """Returns the handle of an evaluation's object. BrowserFailure if it raised or gave none."""
    if "exceptionDetails" in done:
        result_of(done)
    with contextlib.suppress(KeyError):
        return str(done["result"]["objectId"])
    raise BrowserFailure("expected an object of the page")
