"""Reads the properties of the protocol plugins with a browser (HttpWebClient and
HtmlUnitWebDriver).
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Final

from minutch.conf import Configuration
from minutch.errors import ConfigError

DRIVERS: Final = ("chrome", "remote")
GRID_DRIVERS: Final = ("chrome", "random")
_PICTURES: Final = frozenset({"Image"})
_STYLES: Final = frozenset({"Stylesheet", "Font"})
_LOADED: Final = "1"
"""Firefox's own word for it in permissions.default.image and .stylesheet; 2 blocks."""


@dataclass(frozen=True, slots=True)
class BrowserSettings:
    """Times in seconds."""

    driver: str = "chrome"
    hub: str = ""
    """URL of the grid's hub."""
    binary: str = ""
    headless: bool = True
    load_delay: float = 3
    start_time: float = 45
    script_time: float = 3.5
    """Time for which a script may keep a page from answering."""
    page_time: float = 300
    """Time limit of a page with all its handlers."""
    scripts: bool = True
    not_loaded: frozenset[str] = frozenset()
    """Kinds of resources, as DevTools calls them, that pages go without."""
    screenshots: bool = False
    screenshot_folder: Path | None = None
    handler_delay: float = 3
    """Time that handlers wait after a click."""
    requests_max: int = 200
    bytes_max: int = 1 << 25
    memory_max: int = 2048 << 20
    pages: int = 4

    @classmethod
    def from_conf(cls, conf: Configuration, *, html_unit: bool = False) -> BrowserSettings:
        """Reads the settings of the Selenium plugins, or of protocol-htmlunit."""
        driver = "chrome" if html_unit else _one_of(conf, "selenium.driver", "chrome", DRIVERS)
        not_loaded: frozenset[str] = frozenset()
        if html_unit or conf.get_text("selenium.firefox.load.image").strip() != _LOADED:
            not_loaded |= _PICTURES
        if not conf.get_boolean("htmlunit.enable.css") if html_unit else _without_styles(conf):
            not_loaded |= _STYLES
        folder = conf.get("screenshot.location", "").strip()
        limit = conf.get_int("http.time.limit")
        return cls(
            driver=driver,
            hub=_hub(conf) if driver == "remote" else "",
            binary=conf.get("selenium.grid.binary", "").strip(),
            headless=html_unit
            or conf.get_boolean("selenium.enable.headless")
            or not _has_screen(conf),
            load_delay=max(conf.get_long("page.load.delay"), 0),
            start_time=max(conf.get_int("selenium.firefox.binary.timeout"), 1),
            script_time=max(conf.get_long("htmlunit.javascript.timeout"), 100) / 1000,
            page_time=300 if limit < 0 else limit,
            scripts=not html_unit or conf.get_boolean("htmlunit.enable.javascript"),
            not_loaded=not_loaded,
            screenshots=conf.get_boolean("take.screenshot"),
            screenshot_folder=Path(folder) if folder else None,
            handler_delay=max(conf.get_long("libselenium.page.load.delay", 3), 0),
            requests_max=max(conf.get_int("minutch.browser.requests.max"), 0),
            bytes_max=max(conf.get_size("minutch.browser.bytes.max"), 0),
            memory_max=conf.get_size("minutch.browser.memory.max"),
            pages=max(conf.get_int("minutch.browser.pages"), 1),
        )


def _without_styles(conf: Configuration) -> bool:
    return conf.get_text("selenium.firefox.load.stylesheet").strip() != _LOADED


def _one_of(conf: Configuration, name: str, default: str, allowed: tuple[str, ...]) -> str:
    value = conf.get(name, default).strip().lower() or default
    if value not in allowed:
        hint = (
            "Firefox has given up the protocol by which pages' loads are guarded"
            if value == "firefox"
            else ""
        )
        words = " or ".join(allowed)
        raise ConfigError(
            f"{name} ({conf.source(name)}): expected {words}, found {value!r}", hint=hint
        )
    return value


def _hub(conf: Configuration) -> str:
    """Returns the grid's URL (HttpWebClient.getDriverForPage)."""
    _one_of(conf, "selenium.grid.driver", "chrome", GRID_DRIVERS)
    scheme = conf.get_text("selenium.hub.protocol").strip().lower()
    if scheme not in ("http", "https"):
        raise ConfigError(
            f"selenium.hub.protocol ({conf.source('selenium.hub.protocol')}): expected http or"
            f" https, found {scheme!r}"
        )
    host, port = (
        conf.get_text("selenium.hub.host").strip(),
        conf.get_int("selenium.hub.port"),
    )
    path = conf.get_text("selenium.hub.path").strip().strip("/")
    return f"{scheme}://{host}:{port}/{path}".rstrip("/")


def _has_screen(conf: Configuration) -> bool:
    """Returns True if there is a display to open a window on."""
    return bool(conf.expand("${env.DISPLAY:-}") or conf.expand("${env.WAYLAND_DISPLAY:-}"))
