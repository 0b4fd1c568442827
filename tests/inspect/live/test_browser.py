"""The live page in a browser: it keeps up without being loaded again, its buttons work, and no name
does harm.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from minutch.cycle.fetch.watch import Watch
from minutch.inspect.live.liveserver import LiveServer, LiveSettings
from tests.cycle.fetch.test_seen import NOW
from tests.inspect.live.test_app import HOSTILE, busy
from tests.support.devtools import Chromium, needs_chromium
from tests.support.segments import conf_for

pytestmark = [pytest.mark.browser, needs_chromium]


@pytest.fixture
def watch() -> Watch:
    return busy()


@pytest.fixture
def site(watch: Watch) -> Iterator[LiveServer]:
    with (
        closing(LiveServer(watch, LiveSettings.from_conf(conf_for()), 0, "--status")) as server,
        server.running(),
    ):
        yield server


@pytest.fixture(autouse=True)
def wide_and_light(browser: Chromium) -> None:
    browser.screen(1200)
    browser.send("Emulation.setScriptExecutionDisabled", value=False)
    browser.send("Log.enable")


def base(site: LiveServer) -> str:
    return f"http://127.0.0.1:{site.port}/"


def complaints(browser: Chromium) -> list[dict[str, Any]]:
    """Errors of scripts, and what a policy or the network refused."""
    browser.run("1")
    methods = ("Runtime.exceptionThrown", "Log.entryAdded", "Runtime.consoleAPICalled")
    found = [event for event in browser.events if event.get("method") in methods]
    return [event for event in found if "favicon" not in str(event)]


def test_the_page_keeps_up_without_being_loaded_again(
    browser: Chromium, site: LiveServer, watch: Watch
) -> None:
    browser.go(site.address)
    assert browser.run("location.href") == base(site)
    browser.run("window.same = true")
    watch.show(replace(NOW, done=12_777))
    browser.run("document.querySelector('summary').click()")
    watch.row("fetch", 99.0, "a new row")
    browser.until("document.getElementById('rounds').innerText.includes('a new row')")
    assert browser.run("document.querySelector('details').open")  # as its reader left it
    assert browser.run("window.same && document.title").startswith("12,777 of 25,000")
    assert browser.run("document.querySelector('progress').value") == 12_777
    assert browser.run("document.getElementById('gone').hidden")
    assert {url for url in browser.requested() if "favicon" not in url} == {
        base(site),
        site.address,
    }
    assert complaints(browser) == []


def test_buttons_work_without_scripts(browser: Chromium, site: LiveServer, watch: Watch) -> None:
    browser.go(site.address)
    browser.send("Emulation.setScriptExecutionDisabled", value=True)
    browser.go(base(site))
    for path in ("/pause", "/stop", "/?minutes=1"):  # all can be reached with the keyboard
        while True:
            browser.press("Tab")
            at = "document.activeElement"
            where = browser.run(f"{at}.getAttribute('formaction') || {at}.getAttribute('href')")
            if where == path:
                break
            assert browser.run(f"{at} !== document.body"), path
    browser.click("button[formaction='/pause']")
    assert watch.paused and browser.run("document.querySelector('.paused').innerText").startswith(
        "Paused"
    )
    browser.click("button[formaction='/resume']")
    assert not watch.paused
    browser.click("button[formaction='/stop']")
    assert watch.stopping and browser.run("document.querySelector('.stopping') !== null")


def test_without_scripts_it_is_loaded_again(
    browser: Chromium, site: LiveServer, watch: Watch
) -> None:
    browser.go(site.address)
    browser.send("Emulation.setScriptExecutionDisabled", value=True)
    browser.go(base(site))
    watch.show(replace(NOW, done=12_999))
    browser.until("document.title.startsWith('12,999')")


def test_an_end_is_noticed(browser: Chromium, watch: Watch) -> None:
    with (
        closing(LiveServer(watch, LiveSettings.from_conf(conf_for()), 0, "--status")) as server,
        server.running(),
    ):
        browser.go(server.address)
    browser.until("!document.getElementById('gone').hidden")


def test_hostile_names_do_nothing(browser: Chromium, site: LiveServer) -> None:
    browser.go(site.address)
    threading.Event().wait(2.5)  # one turn of the script
    assert browser.run("document.title") != "owned"
    assert (
        browser.run("document.scripts.length") == 1 and browser.run("document.images.length") == 0
    )
    assert HOSTILE[:30] in browser.run("document.getElementById('slow').innerText")
    assert [url for url in browser.requested() if not url.startswith(base(site))] == []
    assert complaints(browser) == []


@pytest.mark.parametrize("dark", [False, True])
@pytest.mark.parametrize("width", [400, 1280])
def test_nothing_keeps_people_from_using_it(
    browser: Chromium, site: LiveServer, watch: Watch, axe: str, width: int, dark: bool
) -> None:
    """axe-core finds nothing, and nothing is wider than the window; while it runs and while it is
    paused.
    """
    browser.screen(width, dark=dark)
    for state in (False, True):
        watch.pause(state)
        watch.stop(state)
        browser.go(site.address)
        assert browser.run("document.documentElement.scrollWidth") <= width
        browser.run(axe)
        found = browser.run("axe.run(document).then(r => r.violations)")
        assert [(one["id"], [node["html"] for node in one["nodes"]][:3]) for one in found] == []
        if folder := os.environ.get("MINUTCH_PICTURES"):
            name = f"live-{width}-{'dark' if dark else 'light'}{'-paused' * state}.png"
            (Path(folder) / name).write_bytes(browser.picture())
