"""The service's description in a browser: narrow windows, the dark, the keyboard."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from minutch.annexes.service import openapi
from tests.support.browsers import SmallWeb
from tests.support.devtools import Chromium, needs_chromium

pytestmark = [pytest.mark.browser, needs_chromium]


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    """The address of the page, under its policy."""
    headers = {"Content-Security-Policy": openapi.POLICY}
    with SmallWeb({"/docs": (200, headers, openapi.page())}) as web:
        yield web.url("/docs")


@pytest.mark.parametrize("dark", [False, True])
@pytest.mark.parametrize("width", [400, 1280])
def test_everybody_can_read_it(
    browser: Chromium, address: str, axe: str, width: int, dark: bool
) -> None:
    """axe-core finds nothing, nothing is wider than the window, and it is dark where readers want
    that.
    """
    browser.screen(width, dark=dark)
    browser.go(address)
    assert browser.run("document.documentElement.scrollWidth") <= width
    assert browser.run("getComputedStyle(document.body).backgroundColor") == (
        "rgb(16, 20, 24)" if dark else "rgb(244, 246, 248)"
    )
    assert browser.requested() == [address]
    browser.send("Runtime.evaluate", expression=axe)
    found = browser.run("axe.run(document).then(r => r.violations)")
    assert [(one["id"], [node["html"] for node in one["nodes"]][:3]) for one in found] == []
    if folder := os.environ.get("MINUTCH_PICTURES"):
        name = f"service-{width}-{'dark' if dark else 'light'}.png"
        (Path(folder) / name).write_bytes(browser.picture())


def test_groups_are_reached_with_the_keyboard(browser: Chromium, address: str) -> None:
    browser.screen(1280)
    browser.go(address)
    reached = []
    for _ in range(4):
        browser.press("Tab")
        reached.append(browser.run("document.activeElement.innerText"))
    assert reached == ["Skip to content", "openapi.json", "The service", "Configurations"]
    assert browser.run("getComputedStyle(document.activeElement).outlineStyle") == "solid"
    browser.press("Enter")
    browser.until("location.hash === '#config'")
