"""Headless Chromium as a reader of pages: it goes to addresses, presses keys, clicks, and takes
pictures.

Spoken with over the DevTools protocol.
"""

from __future__ import annotations

import base64
import json
import shutil
import subprocess
import tempfile
import time
from contextlib import ExitStack, suppress
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self

import pytest
from websockets.sync.client import connect

PROGRAM: Final = next(
    filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None
)
needs_chromium = pytest.mark.skipif(PROGRAM is None, reason="no Chromium on PATH")
"""Skips where no browser is installed."""
PATIENCE: Final = 120.0
"""Seconds for an answer: a browser among busy tests took more than 30."""
KEYS: Final = {"Tab": 9, "Enter": 13}


class Chromium:
    """A browser with one page. A context manager."""

    def __enter__(self) -> Self:
        assert PROGRAM is not None
        self._profile = Path(tempfile.mkdtemp(prefix="chromium-"))
        arguments = [
            "--headless=new",
            "--no-sandbox",
            "--disable-gpu",
            "--hide-scrollbars",
            "--no-first-run",
        ]
        arguments += [
            "--remote-debugging-port=0",
            f"--user-data-dir={self._profile}",
            "about:blank",
        ]
        self._process = subprocess.Popen(
            [PROGRAM, *arguments], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        self._number = 0
        self._inside = ""
        self.events: list[dict[str, Any]] = []
        self._open = ExitStack()
        try:
            port, path = self._address()
            address = f"ws://127.0.0.1:{port}{path}"
            self._socket = self._open.enter_context(connect(address, max_size=None))
            target = self.send("Target.createTarget", url="about:blank")["targetId"]
            self._session = self.send("Target.attachToTarget", targetId=target, flatten=True)[
                "sessionId"
            ]
            for domain in ("Page", "Runtime", "Network"):
                self.send(f"{domain}.enable")
        except BaseException:
            self.__exit__(None, None, None)
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        tb: TracebackType | None,
    ) -> None:
        self._open.close()
        self._process.terminate()
        try:
            self._process.wait(10)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        shutil.rmtree(self._profile, ignore_errors=True)

    def _address(self) -> tuple[str, str]:
        file, end = self._profile / "DevToolsActivePort", time.monotonic() + PATIENCE
        while time.monotonic() < end:
            lines = file.read_text().splitlines() if file.exists() else []
            if len(lines) == 2:
                return lines[0], lines[1]
            time.sleep(0.05)
        raise TimeoutError("Chromium does not say where it listens")

    def send(self, method: str, **params: Any) -> dict[str, Any]:
        """A command and its result."""
        self._number += 1
        message = {"id": self._number, "method": method, "params": params}
        if session := self._inside or getattr(self, "_session", ""):
            message["sessionId"] = session
        self._socket.send(json.dumps(message))
        while True:
            answer = json.loads(self._socket.recv(PATIENCE))
            if answer.get("id") == self._number:
                assert "error" not in answer, answer
                return dict(answer["result"])
            self.events.append(answer)

    def go(self, url: str) -> None:
        """Load a page."""
        self.events.clear()
        self.send("Page.navigate", url=url)
        self.settle()

    def settle(self) -> None:
        """Wait until a page has been loaded."""
        end = time.monotonic() + PATIENCE
        while time.monotonic() < end:
            if any(event.get("method") == "Page.loadEventFired" for event in self.events):
                return
            with suppress(TimeoutError):  # to ask the page meanwhile fails if it is just replaced
                self.events.append(json.loads(self._socket.recv(0.1)))
        raise TimeoutError("the page is not loaded")

    def run(self, script: str) -> Any:
        """The value of an expression in the page; promises are waited for. The page's own scripts
        may be off.
        """
        found = self.send(
            "Runtime.evaluate", expression=script, awaitPromise=True, returnByValue=True
        )
        assert "exceptionDetails" not in found, found
        return found["result"].get("value")

    def press(self, key: str, *, shift: bool = False) -> None:
        """A key, as a person presses it."""
        more = {"text": "\r"} if key == "Enter" else {}
        common = {
            "key": key,
            "code": key,
            "windowsVirtualKeyCode": KEYS[key],
            "modifiers": 8 if shift else 0,
        }
        self.send("Input.dispatchKeyEvent", type="keyDown", **common, **more)
        self.send("Input.dispatchKeyEvent", type="keyUp", **common)

    def until(self, script: str) -> None:
        """Wait until an expression in the page holds."""
        end = time.monotonic() + PATIENCE
        while not self.run(script):
            assert time.monotonic() < end, script
            time.sleep(0.05)

    def type(self, text: str) -> None:
        """Text into what has the focus. A page gives it when it is first drawn, which may be after
        it is loaded: text that came before that was lost.
        """
        self.until("document.activeElement !== document.body")
        self.send("Input.insertText", text=text)

    def click(self, selector: str) -> None:
        """Click an element that leads to another page, and wait for that."""
        box = self.run(
            f"(()=>{{const e=document.querySelector({json.dumps(selector)});"
            " e.scrollIntoView({block:'center', behavior:'instant'});"
            "const r=e.getClientRects()[0]; return [r.x+r.width/2, r.y+r.height/2]})()"
        )
        self.events.clear()
        for kind in ("mousePressed", "mouseReleased"):
            self.send(
                "Input.dispatchMouseEvent",
                type=kind,
                x=box[0],
                y=box[1],
                button="left",
                clickCount=1,
            )
        self.settle()

    def screen(self, width: int, height: int = 900, *, dark: bool = False) -> None:
        """The size of the window, and which colours its reader prefers."""
        self.send(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=height,
            deviceScaleFactor=1,
            mobile=False,
        )
        features = [{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}]
        self.send("Emulation.setEmulatedMedia", features=features)

    def picture(self) -> bytes:
        """Returns the contents of the window as PNG."""
        return base64.b64decode(self.send("Page.captureScreenshot", format="png")["data"])

    def _frame(self) -> dict[str, Any]:
        """The only frame of the page, which has a process of its own."""
        (target,) = self.send("Target.getTargets", filter=[{"type": "iframe"}])["targetInfos"]
        return dict(target)

    def frame_address(self) -> str:
        """Returns the address of the page's frame."""
        return str(self._frame()["url"])

    def strings(self, *, frame: bool = False) -> list[str]:
        """All strings of the page, or of the one in its frame: tags, attributes, texts."""
        if frame:
            target = self._frame()["targetId"]
            self._inside = self.send("Target.attachToTarget", targetId=target, flatten=True)[
                "sessionId"
            ]
        try:
            return list(self.send("DOMSnapshot.captureSnapshot", computedStyles=[])["strings"])
        finally:
            self._inside = ""

    def requested(self) -> list[str]:
        """The addresses that were asked for since the last `go` or `click`, but for those that a
        policy has stopped.
        """
        stopped = {
            event["params"]["requestId"]
            for event in self.events
            if event.get("method") == "Network.loadingFailed"
            and event["params"].get("blockedReason") == "csp"
        }
        asked = [
            event["params"]
            for event in self.events
            if event.get("method") == "Network.requestWillBeSent"
        ]
        return [one["request"]["url"] for one in asked if one["requestId"] not in stopped]
