"""The search page in a browser: with the keyboard, in a narrow window, in the dark, and with a page
that means harm.
"""

from __future__ import annotations

import asyncio
import os
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import quote

import pytest
from starlette.applications import Starlette
from starlette.responses import HTMLResponse
from starlette.routing import Route

from minutch.inspect.search.app import STORED_POLICY, make
from minutch.inspect.search.crawlfiles import CrawlFiles
from minutch.inspect.search.searcher import Searcher
from minutch.web import serving
from minutch.web.access import LOCAL, Access, listen
from tests.inspect.search.conftest import HOSTILE, JAPANESE
from tests.support.devtools import Chromium, needs_chromium
from tests.support.indexedcrawl import IndexedCrawl, Page

pytestmark = [pytest.mark.browser, needs_chromium]

VIEWS = (
    "/",
    "/changes",
    "/?q=harbour",
    "/?q=harbour&page=3&host=a.example.org",
    "/?q=nosuchword",
    "/?q=harmful",
)
BEHIND = ("cached", "anchors", "history")
WIDER = """[...document.querySelectorAll('.wide')].filter(e => e.scrollWidth > e.clientWidth)
    .map(e => e.innerText)"""
"""Tables wider than their frames."""


@contextmanager
def running(app: Starlette) -> Iterator[str]:
    """Serves an app; its address."""
    listener, server = listen("localhost", 0), serving.server(app)
    thread = threading.Thread(
        target=asyncio.run, args=(server.serve(sockets=[listener]),), daemon=True
    )
    thread.start()
    yield f"http://127.0.0.1:{listener.getsockname()[1]}"
    server.should_exit = True
    thread.join(10)
    listener.close()


@pytest.fixture(scope="module")
def site(harbours: IndexedCrawl) -> Iterator[str]:
    """The address of the search page."""
    app = make(Searcher(harbours.index_folder), CrawlFiles(harbours.folder), Access(None, LOCAL))
    with running(app) as address:
        yield address


@pytest.fixture(autouse=True)
def wide_and_light(browser: Chromium) -> None:
    browser.screen(1200)
    browser.send("Emulation.setScriptExecutionDisabled", value=False)


def about(site: str, view: str, url: str) -> str:
    return f"{site}/{view}?url={quote(url, safe='')}&q=harbour"


def texts(browser: Chromium, selector: str) -> list[str]:
    return list(browser.run(f"[...document.querySelectorAll({selector!r})].map(e => e.innerText)"))


def test_a_search_with_the_keyboard_alone(browser: Chromium, site: str) -> None:
    browser.send("Emulation.setScriptExecutionDisabled", value=True)  # the page needs none
    browser.go(f"{site}/")
    browser.type("harbour 7")
    browser.events.clear()
    browser.press("Enter")
    browser.settle()
    assert texts(browser, ".hits h2") == ["Harbour 7"]
    assert texts(browser, ".hits mark") == ["harbour", "7"]
    order = []
    for _ in range(8):
        browser.press("Tab")
        order.append(
            browser.run("document.activeElement.innerText || document.activeElement.tagName")
        )
    assert order[:2] == ["Skip to content", "minutch"]
    assert "Harbour 7" in order
    assert browser.run("getComputedStyle(document.activeElement).outlineStyle") == "solid"


def test_paging_and_choosing_a_host(browser: Chromium, site: str) -> None:
    browser.go(f"{site}/?q=harbour")
    assert len(texts(browser, ".hits > li")) == 10
    browser.click("a[rel=next]")
    assert texts(browser, ".paging [aria-current]") == ["Page\n2"]
    assert browser.run("document.querySelector('.hits').start") == 11
    browser.click(".hosts li:nth-child(2) a")
    assert texts(browser, ".hits h2") == ["Another harbour"]
    assert browser.run("document.querySelector('input[type=search]').value") == "harbour"


def test_behind_a_hit(browser: Chromium, site: str) -> None:
    browser.go(f"{site}/?q=title:harbour url:00")
    browser.click(".more a:nth-of-type(2)")
    assert texts(browser, "h1") == ["Harbour 0"]
    assert len(texts(browser, "tbody tr")) == 25
    browser.click("nav[aria-label='About this page'] li:nth-child(3) a")
    assert texts(browser, "[data-label=Where]") == [
        "segment 20240101000000",
        "segment 20240102000000",
        "crawldb",
    ]
    browser.click("nav[aria-label='About this page'] li:nth-child(1) a")
    assert texts(browser, "main h2") == ["Cached"]


def test_a_stored_page_shows_in_its_charset(browser: Chromium, site: str) -> None:
    browser.go(about(site, "cached", "http://b.example.org/ja"))
    assert JAPANESE in "".join(browser.strings(frame=True))


@pytest.mark.parametrize("view", ["cached", "raw"])
def test_a_hostile_page_does_nothing(browser: Chromium, site: str, view: str) -> None:
    start = about(site, view, HOSTILE)
    browser.go(start)
    threading.Event().wait(0.7)  # for what might come later
    browser.send("Runtime.evaluate", expression="1")
    assert [url for url in browser.requested() if not url.startswith((site, "data:"))] == []
    assert browser.run("location.href") == start
    assert browser.run("document.title") != "owned"
    if view == "cached":
        assert browser.frame_address() == about(site, "raw", HOSTILE).partition("&q=")[0]
    strings = browser.strings(frame=view == "cached")
    assert "FORM" in strings and "out" in strings  # it is the page
    assert "ran" not in strings


def test_a_stored_page_opens_no_connection(browser: Chromium, tmp_path: Path) -> None:
    """Not even one that says nothing: a port listens. What was stored does open one,
    under the same policy.
    """
    with socket.create_server(("127.0.0.1", 0)) as port:
        port.settimeout(2)
        host = f"//127.0.0.1:{port.getsockname()[1]}"
        page = (
            "".join(
                f"<link rel={kind} href={host}>" for kind in ("preconnect", "dns-prefetch", "icon")
            )
            + f"<link rel=stylesheet href={host}><a href={host}>x</a><img src={host}>"
        )
        url, crawl = "http://a.example.org/", IndexedCrawl(tmp_path)
        crawl.segment("20240101000000", [Page(url, "one", "words", page.encode())])
        crawl.index()
        app = make(Searcher(crawl.index_folder), CrawlFiles(tmp_path), Access(None, LOCAL))
        with running(app) as own:
            for view in ("cached", "raw"):
                browser.go(about(own, view, url))
                with pytest.raises(TimeoutError):
                    port.accept()
        headers = {"Content-Security-Policy": STORED_POLICY}
        with running(
            Starlette(routes=[Route("/", lambda _: HTMLResponse(page, headers=headers))])
        ) as own:
            browser.go(own)
            port.accept()[0].close()


@pytest.mark.parametrize("selector", ["#out", "#b"])
def test_links_and_forms_of_a_stored_page_lead_nowhere(
    browser: Chromium, site: str, selector: str
) -> None:
    start = about(site, "raw", HOSTILE)
    browser.go(start)
    browser.events.clear()
    spot = (
        f"(() => {{const r = document.querySelector('{selector}').getClientRects()[0]; return [r.x"
        " + 5, r.y + 5]})()"
    )
    x, y = browser.run(spot)
    browser.go(about(site, "cached", HOSTILE))
    inside = browser.run(
        "(() => {const r = document.querySelector('iframe').getClientRects()[0]; return [r.x,"
        " r.y]})()"
    )
    browser.events.clear()
    for kind in ("mousePressed", "mouseReleased"):
        at = {"x": inside[0] + x + 2, "y": inside[1] + y + 2}
        browser.send("Input.dispatchMouseEvent", type=kind, button="left", clickCount=1, **at)
    threading.Event().wait(0.4)
    assert browser.run("location.href") == about(site, "cached", HOSTILE)
    assert browser.frame_address().rstrip("#") == about(site, "raw", HOSTILE).partition("&q=")[0]
    assert [url for url in browser.requested() if not url.startswith((site, "data:"))] == []


def test_a_hostile_hit_is_text(browser: Chromium, site: str) -> None:
    browser.go(f"{site}/?q=harmful")
    assert browser.run("document.documentElement.id") == ""
    assert browser.run("document.scripts.length") == 0
    assert "<script>" in texts(browser, ".hits h2")[0]
    assert browser.run("document.images.length") == 0


@pytest.mark.parametrize("dark", [False, True])
@pytest.mark.parametrize("width", [400, 1280])
def test_nothing_keeps_people_from_using_it(
    browser: Chromium, site: str, axe: str, width: int, dark: bool
) -> None:
    """axe-core finds nothing, and nothing is wider than the window."""
    browser.screen(width, dark=dark)
    paths = [
        *(f"{site}{path}" for path in VIEWS),
        *(about(site, view, "http://a.example.org/00") for view in BEHIND),
    ]
    for number, path in enumerate(paths):
        browser.go(path)
        assert browser.run("document.documentElement.scrollWidth") <= width, path
        assert browser.run(WIDER) == [], path
        browser.run(axe)
        found = browser.run("axe.run(document, {iframes: false}).then(r => r.violations)")
        assert [(one["id"], [node["html"] for node in one["nodes"]][:3]) for one in found] == [], (
            path
        )
        if folder := os.environ.get("MINUTCH_PICTURES"):
            (Path(folder) / f"{number}-{width}-{'dark' if dark else 'light'}.png").write_bytes(
                browser.picture()
            )
