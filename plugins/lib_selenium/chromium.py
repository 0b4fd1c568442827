"""Finds, starts and ends Chromium on this machine, and restricts it; and reads the properties of
plugins with a browser (HttpWebClient and HtmlUnitWebDriver).

The browser has no network at all: every name and address resolves to nothing, and WebRTC may use no
UDP. What a page asks for comes to us over the DevTools pipe and is fetched by lib-http, which has
the rules about addresses, robots.txt, certificates, cookies and sizes. What does not come that way
(WebSockets, prefetches of names, updates, service workers' own requests) fails.

It ends when its pipe is closed, so it can't outlive this process, however that ends. Its profile is
a temporary folder.
"""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import logging
import os
import shutil
import signal
import time
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Final

from minutch import scratch
from minutch.conf import Configuration, Settings, made_by, prop
from minutch.conf.settings import at_least, trimmed
from minutch.errors import ConfigError

from .devtools import BrowserConnection, BrowserFailure, PipeChannel

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


log = logging.getLogger(__name__)

NAMES: Final = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
"""Programs that are looked for on PATH."""
_FIRST_FREE: Final = 10
"""Descriptors from here on are in no one's way when 3 and 4 are filled."""
_LAST_WORDS: Final = 2000
_PATIENCE: Final = 3.0
"""Seconds that a browser has to end by itself."""

NO_NETWORK: Final = (
    "--proxy-server=http://127.0.0.1:9",
    "--proxy-bypass-list=<-loopback>",
    "--host-resolver-rules=MAP * ~NOTFOUND",
    "--webrtc-ip-handling-policy=disable_non_proxied_udp",
    "--force-webrtc-ip-handling-policy=disable_non_proxied_udp",
    "--dns-prefetch-disable",
    "--disable-quic",
)
"""Arguments that leave the browser no way out."""

_QUIET: Final = (
    "--no-first-run",
    "--no-default-browser-check",
    "--no-pings",
    "--disable-background-networking",
    "--disable-breakpad",
    "--disable-client-side-phishing-detection",
    "--disable-component-update",
    "--disable-default-apps",
    "--disable-dev-shm-usage",
    "--disable-domain-reliability",
    "--disable-extensions",
    "--disable-features=Translate,MediaRouter,OptimizationHints,AutofillServerCommunication,DialMediaRouteProvider",
    "--disable-gpu",
    "--disable-sync",
    "--disable-search-engine-choice-screen",
    "--disk-cache-size=1",
    "--hide-scrollbars",
    "--metrics-recording-only",
    "--mute-audio",
    "--password-store=basic",
    "--use-mock-keychain",
    "--log-level=3",
    "--window-size=1366,900",
)


def arguments(settings: BrowserSettings) -> list[str]:
    """Returns the browser's command line, but for program, profile and pipe."""
    heap = max(settings.memory_max >> 21, 64)  # half of all, in MiB
    words = [*NO_NETWORK, *_QUIET, f"--js-flags=--max-old-space-size={heap}"]
    if settings.headless:
        words.append("--headless=new")
    if os.geteuid() == 0:
        words.append("--no-sandbox")  # Chromium refuses to sandbox root's processes
    return words


def find(named: str) -> str:
    """Returns the browser's program: the named one, else PATH's first. Raises ConfigError."""
    if named:
        found = shutil.which(named)
        if found is None:
            raise ConfigError(
                f"selenium.grid.binary: expected a browser's program, found none at {named}"
            )
        return found
    for name in NAMES:
        found = shutil.which(name)
        if found is not None:
            return found
    raise ConfigError(
        f"no browser: expected one of {', '.join(NAMES)} on PATH",
        hint="install Debian's chromium, say, or name a program by selenium.grid.binary",
    )


class Chromium:
    """A browser that runs."""

    def __init__(self, pid: int, profile: Path, connection: BrowserConnection) -> None:
        self.pid = pid
        self.connection = connection
        self._profile = profile

    @classmethod
    async def start(cls, settings: BrowserSettings) -> Chromium:
        """Starts a browser and waits until it answers. Raises BrowserFailure."""
        program = find(settings.binary)
        if os.geteuid() == 0:
            log.warning(
                "the browser runs as root, so it has no sandbox of its own: run crawls with a"
                " browser as a user"
            )
        profile = scratch.make("browser")
        started = time.monotonic()
        pid, source, target = _spawn(program, arguments(settings), profile)
        connection = BrowserConnection(await PipeChannel.open(source, target))
        browser = cls(pid, profile, connection)
        try:
            version = await connection.send("Browser.getVersion", timeout=settings.start_time)
        except BrowserFailure as exc:
            words = browser._last_words()
            await browser.close()
            raise BrowserFailure(f"{program} did not start: {words or exc}") from exc
        log.info(
            "%s started in %.1f s", version.get("product", program), time.monotonic() - started
        )
        return browser

    def memory(self) -> int:
        """Bytes that the browser's processes have for themselves; 0 if /proc does not tell."""
        return sum(_own_memory(pid) for pid in _descendants(self.pid))

    def kill(self) -> None:
        """Ends it at once."""
        with contextlib.suppress(ProcessLookupError):
            os.kill(self.pid, signal.SIGKILL)

    async def close(self) -> None:
        """Ends the browser, kills its remaining processes, removes its profile."""
        family = _descendants(self.pid)
        await self.connection.close()
        deadline = time.monotonic() + _PATIENCE
        while not _has_ended(self.pid) and time.monotonic() < deadline:
            await asyncio.sleep(0.02)
        for pid in family:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                if pid == self.pid or _parent_of(pid) in (*family, 1):
                    os.kill(pid, signal.SIGKILL)
        while not _has_ended(self.pid):
            await asyncio.sleep(0.02)
        scratch.remove(self._profile)

    def _last_words(self) -> str:
        with contextlib.suppress(OSError):
            text = (self._profile / "stderr").read_text(encoding="utf-8", errors="replace")[
                -_LAST_WORDS:
            ]
            return next((line.strip() for line in reversed(text.splitlines()) if line.strip()), "")
        return ""


def _spawn(program: str, words: list[str], profile: Path) -> tuple[int, int, int]:
    """Starts the program with two pipes as its files 3 and 4; returns its pid and our ends."""
    read_theirs, write_ours = _pipe()
    read_ours, write_theirs = _pipe()
    environment = {
        **os.environ,
        "HOME": str(profile),
        "XDG_CONFIG_HOME": str(profile),
        "XDG_CACHE_HOME": str(profile),
    }
    try:
        pid = os.posix_spawn(
            program,
            [
                program,
                "--remote-debugging-pipe",
                f"--user-data-dir={profile / 'profile'}",
                *words,
                "about:blank",
            ],
            environment,
            file_actions=[
                (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0),
                (os.POSIX_SPAWN_OPEN, 1, os.devnull, os.O_WRONLY, 0),
                (os.POSIX_SPAWN_OPEN, 2, str(profile / "stderr"), os.O_WRONLY | os.O_CREAT, 0o600),
                (os.POSIX_SPAWN_DUP2, read_theirs, 3),
                (os.POSIX_SPAWN_DUP2, write_theirs, 4),
            ],
            setpgroup=0,  # a terminal's Ctrl-C is for us
        )
    except OSError as exc:
        for descriptor in (write_ours, read_ours):
            os.close(descriptor)
        raise BrowserFailure(f"{program} did not start: {exc.strerror}") from exc
    finally:
        os.close(read_theirs)
        os.close(write_theirs)
    return pid, read_ours, write_ours


def _pipe() -> tuple[int, int]:
    """Returns a pipe whose descriptors are above those that the program gets, and closed in it."""
    ends = os.pipe()
    high = [fcntl.fcntl(end, fcntl.F_DUPFD_CLOEXEC, _FIRST_FREE) for end in ends]
    for end in ends:
        os.close(end)
    return high[0], high[1]


def _has_ended(pid: int) -> bool:
    try:
        return os.waitpid(pid, os.WNOHANG)[0] == pid
    except ChildProcessError:
        return True


def _parent_of(pid: int) -> int:
    try:
        return int(
            Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()[1]
        )
    except (OSError, ValueError, IndexError):
        return 0


def _descendants(root: int) -> list[int]:
    """Returns a process and all below it."""
    try:
        pids = [int(entry.name) for entry in Path("/proc").iterdir() if entry.name.isdecimal()]
    except OSError:
        return [root]
    children: dict[int, list[int]] = {}
    for pid in pids:
        children.setdefault(_parent_of(pid), []).append(pid)
    found = [root]
    for pid in found:
        found.extend(children.get(pid, ()))
    return found


def _own_memory(pid: int) -> int:
    """Bytes resident and not shared."""
    try:
        _, resident, shared, *_ = Path(f"/proc/{pid}/statm").read_text(encoding="utf-8").split()
    except (OSError, ValueError):
        return 0
    return (int(resident) - int(shared)) * os.sysconf("SC_PAGE_SIZE")
