"""Jobs run wherever they are called from: in scripts, notebooks and asynchronous programs."""

from __future__ import annotations

import asyncio
import os
import signal
import threading
import time
from pathlib import Path

import pytest

import minutch
from minutch import eventloops
from minutch.cycle.fetch.fetch import FINISHING
from tests.support.demo import PROPERTIES
from tests.support.siteserver import SiteServer

CONF = PROPERTIES | {"fetcher.server.delay": 0, "fetcher.min.crawl.delay": 0}


async def answer() -> tuple[int, str]:
    await asyncio.sleep(0)
    return 7, threading.current_thread().name


async def fail() -> None:
    await asyncio.sleep(0)
    raise ValueError("wrong")


def test_without_a_loop_it_is_this_thread() -> None:
    assert eventloops.run(answer()) == (7, threading.current_thread().name)
    assert eventloops.apart(threading.current_thread) is threading.current_thread()
    with pytest.raises(ValueError, match="wrong"):
        eventloops.run(fail())


async def test_beside_a_loop_it_is_another_thread() -> None:
    """A second loop in a thread is a RuntimeError (asyncio.run)."""
    assert eventloops.run(answer()) == (7, "event loop")
    with pytest.raises(ValueError, match="wrong"):
        eventloops.run(fail())


async def test_what_is_interrupted_is_cancelled() -> None:
    ended = threading.Event()

    async def last() -> None:
        try:
            os.kill(os.getpid(), signal.SIGINT)
            await asyncio.sleep(60)
        finally:
            ended.set()

    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    began = time.monotonic()
    try:
        with pytest.raises(KeyboardInterrupt):
            eventloops.run(last())
    finally:
        signal.signal(signal.SIGINT, before)
    assert ended.is_set() and time.monotonic() - began < 30


async def test_jobs_in_an_asynchronous_program(tmp_path: Path) -> None:
    with SiteServer() as server:
        (tmp_path / "sitemaps").write_text(f"{server.site.url('one', '/sitemap.xml')}\n")
        crawl = minutch.open(tmp_path / "crawl", create=True, conf=CONF, quiet=True)
        crawl.inject([server.site.url("one")])
        assert crawl.round()["db_fetched"] == 1
        assert crawl.job("sitemap", crawl.path / "crawldb", "-sitemapUrls", tmp_path / "sitemaps")
        crawl.job("parsechecker", server.site.url("one"))
        (tmp_path / "urls").write_text(f"{server.site.url('one')}\n")
        crawl.job("robotsparser", server.site.url("one", "/robots.txt"), tmp_path / "urls")


async def test_a_signal_ends_a_fetch_beside_a_loop(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """As on the command line: what is in flight is finished, and the next run goes on."""
    with SiteServer() as server:
        conf = CONF | {"fetcher.server.delay": 0.5}
        crawl = minutch.open(tmp_path / "crawl", create=True, conf=conf, quiet=True)
        crawl.inject([server.site.url("one")])
        crawl.round()
        begun: list[str] = []

        def interrupt(path: str) -> None:
            begun.append(path)
            if path == "/about.html":
                os.kill(os.getpid(), signal.SIGINT)

        server.before = interrupt
        with pytest.raises((KeyboardInterrupt, minutch.MinutchError)):
            crawl.round()
        assert FINISHING in caplog.text
        assert len(begun) - begun.index("/about.html") <= 3, "asks on though it was to end"
        server.before = lambda path: None
        crawl.conf.set("fetcher.server.delay", "0")
        assert crawl.round()["db_fetched"] > 1
