"""Defines handlers, which process a page in the browser before it is read
(interactiveselenium.handlers).

    DefaultHandler                     nothing
    DefalultMultiInteractionHandler    nothing; a frame to fill in, in Nutch (its spelling)
    DefaultClickAllAjaxLinksHandler    clicks on every link to `javascript:void(null);`, collecting
                                       the page after each
    package.module:Class               a user's own

Source: org.apache.nutch.protocol.interactiveselenium.handlers.
"""

from __future__ import annotations

import importlib
import re
from typing import Final, Protocol

from minutch.conf import Configuration
from minutch.errors import ConfigError

from ..lib_selenium.driver import Driver

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
    """Returns the handlers that the configuration names. Raises ConfigError for one that is not
    there.
    """
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
