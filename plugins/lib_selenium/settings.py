"""Reads the properties of plugins with a browser (HttpWebClient and HtmlUnitWebDriver)."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Final

from minutch.conf import Configuration, Settings, made_by, prop
from minutch.conf.settings import at_least, trimmed
from minutch.errors import ConfigError

DRIVERS: Final = ("chrome", "remote")
GRID_DRIVERS: Final = ("chrome", "random")
_NO_FIREFOX: Final = "Firefox has given up the protocol by which pages' loads are guarded"
_PICTURES: Final = frozenset({"Image"})
_STYLES: Final = frozenset({"Stylesheet", "Font"})
_LOADED: Final = "1"
"""Firefox's own word for it in permissions.default.image and .stylesheet; 2 blocks."""


def _one_of(conf: Configuration, name: str, allowed: tuple[str, ...] = DRIVERS) -> str:
    value = trimmed(conf, name).lower() or allowed[0]
    if value not in allowed:
        error = str(conf.wrong(name, " or ".join(allowed), value))
        raise ConfigError(error, hint=_NO_FIREFOX if value == "firefox" else "")
    return value


def _hub(conf: Configuration) -> str:
    """Returns the grid's URL (HttpWebClient.getDriverForPage)."""
    if _one_of(conf, "selenium.driver") != "remote":
        return ""
    _one_of(conf, "selenium.grid.driver", GRID_DRIVERS)
    scheme = conf.get_word("selenium.hub.protocol").lower()
    host, port = trimmed(conf, "selenium.hub.host"), conf.get_int("selenium.hub.port")
    path = trimmed(conf, "selenium.hub.path").strip("/")
    return f"{scheme}://{host}:{port}/{path}".rstrip("/")


def _is_headless(conf: Configuration, name: str) -> bool:
    """It always is without a display to open a window on."""
    has_screen = conf.expand("${env.DISPLAY:-}") or conf.expand("${env.WAYLAND_DISPLAY:-}")
    return conf.get_boolean(name) or not has_screen


def _not_loaded(conf: Configuration) -> frozenset[str]:
    kinds = {"image": _PICTURES, "stylesheet": _STYLES}
    for name in list(kinds):
        if conf.get_text(f"selenium.firefox.load.{name}").strip() == _LOADED:
            del kinds[name]
    return frozenset(chain(*kinds.values()))


def _script_time(conf: Configuration, name: str) -> float:
    return max(conf.get_long(name), 100) / 1000


def _page_time(conf: Configuration, name: str) -> float:
    limit = conf.get_int(name)
    return 300 if limit < 0 else limit


def _folder(conf: Configuration, name: str) -> Path | None:
    folder = trimmed(conf, name)
    return Path(folder) if folder else None


@dataclass(frozen=True, slots=True)
class BrowserSettings(Settings):
    """Times in seconds."""

    driver: str = prop("selenium.driver", _one_of)
    hub: str = made_by(_hub)
    """URL of the grid's hub, where that is the driver."""
    binary: str = prop("selenium.grid.binary", trimmed)
    headless: bool = prop("selenium.enable.headless", _is_headless)
    load_delay: float = prop("page.load.delay", at_least(0, Configuration.get_long))
    start_time: float = prop("selenium.firefox.binary.timeout", at_least(1))
    script_time: float = prop("htmlunit.javascript.timeout", _script_time)
    """Time for which a script may keep a page from answering."""
    page_time: float = prop("http.time.limit", _page_time)
    """Time limit of a page with all its handlers."""
    scripts: bool = True
    not_loaded: frozenset[str] = made_by(_not_loaded)
    """Kinds of resources, as DevTools calls them, that pages go without."""
    screenshots: bool = prop("take.screenshot")
    screenshot_folder: Path | None = prop("screenshot.location", _folder)
    handler_delay: float = prop(
        "libselenium.page.load.delay", at_least(0, Configuration.get_long), default=3
    )
    """Time that handlers wait after a click."""
    requests_max: int = prop("minutch.browser.requests.max", at_least(0))
    bytes_max: int = prop("minutch.browser.bytes.max", at_least(0, Configuration.get_size))
    memory_max: int = prop("minutch.browser.memory.max", Configuration.get_size)
    pages: int = prop("minutch.browser.pages", at_least(1))

    @classmethod
    def of_html_unit(cls, conf: Configuration) -> BrowserSettings:
        """Reads the settings of protocol-htmlunit, which shows nothing."""
        styles = frozenset() if conf.get_boolean("htmlunit.enable.css") else _STYLES
        return cls.from_conf(
            conf,
            driver="chrome",
            hub="",
            headless=True,
            scripts=conf.get_boolean("htmlunit.enable.javascript"),
            not_loaded=_PICTURES | styles,
        )
