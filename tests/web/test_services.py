"""The three servers as they are started: idle connections and costly pages stop none of them."""

from __future__ import annotations

import asyncio
import socket
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager, suppress
from functools import partial
from pathlib import Path

import httpx
import pytest
from starlette.types import ASGIApp

from minutch.annexes.service import app as service
from minutch.annexes.service.configs import Configs
from minutch.annexes.service.jobtable import JobTable
from minutch.annexes.service.requestchecks import Root
from minutch.clock import FakeClock
from minutch.cycle.fetch.watch import Watch
from minutch.inspect.live import liveapp
from minutch.inspect.search import app as search
from minutch.inspect.search.crawlfiles import CrawlFiles
from minutch.inspect.search.searcher import Searcher
from minutch.web.access import LOCAL, Access, listen
from minutch.web.serving import MOST, server
from tests.support.indexedcrawl import IndexedCrawl, Page
from tests.support.segments import conf_for

ANYBODY = Access(None, LOCAL, any_address=True)


def of_search(folder: Path, report: Callable[[], str] | None = None) -> ASGIApp:
    crawl = IndexedCrawl(folder)
    crawl.segment("20240101000000", [Page("http://a.org/1", "one", "words")])
    crawl.index()
    return search.make(Searcher(folder / "index"), CrawlFiles(folder), ANYBODY, report)


def of_rest(folder: Path) -> ASGIApp:
    configs, jobs = Configs(conf_for(), may_change=True), JobTable(1)
    return service.make(service.Service(Root(folder), ANYBODY, configs, jobs, "1", lambda: None))


def of_live(folder: Path) -> ASGIApp:
    return liveapp.make(Watch("crawl crawl", FakeClock(0), can_stop=True), ANYBODY)


@contextmanager
def served(make: Callable[[], ASGIApp]) -> Iterator[str]:
    """The address of a server that runs in another thread."""
    with closing(listen("127.0.0.1", 0)) as listener, ThreadPoolExecutor(1) as pool:
        stops: list[Callable[[], None]] = []

        async def run() -> None:
            running = server(make())
            stops.append(lambda: setattr(running, "should_exit", True))
            await running.serve(sockets=[listener])

        runs = pool.submit(asyncio.run, run())
        try:
            yield f"http://127.0.0.1:{listener.getsockname()[1]}"
        finally:
            while not stops and not runs.done():
                threading.Event().wait(0.01)
            for stop in stops:
                stop()


def ask(url: str) -> int:
    return httpx.get(url, trust_env=False, verify=False, timeout=60).status_code


@pytest.mark.parametrize(
    ("make", "path"),
    [(of_search, "/?q=words"), (of_rest, "/admin"), (of_live, "/")],
    ids=["serve", "startserver", "live"],
)
def test_a_hundred_idle_connections(
    tmp_path: Path, make: Callable[[Path], ASGIApp], path: str
) -> None:
    with served(partial(make, tmp_path)) as url:
        port = int(url.rpartition(":")[2])
        idle = [socket.create_connection(("127.0.0.1", port)) for _ in range(MOST + 30)]
        for one in idle[::2]:
            with suppress(OSError):  # those that have lost their place
                one.send(b"GET / HT")
        assert [ask(url + path) for _ in range(3)] == [200] * 3
        for one in idle:
            one.close()


def test_many_reports_at_once_keep_no_search_waiting(tmp_path: Path) -> None:
    """The search is answered while the report is still made: 27 s later, it was."""
    started, may_end, made = threading.Event(), threading.Event(), []

    def report() -> str:
        made.append(1)
        started.set()
        assert may_end.wait(60)
        return "report"

    with served(lambda: of_search(tmp_path, report)) as url, ThreadPoolExecutor(45) as pool:
        asked = [pool.submit(ask, f"{url}/report") for _ in range(45)]
        assert started.wait(60)
        try:
            assert [ask(f"{url}/?q=words") for _ in range(3)] == [200] * 3
            assert not may_end.is_set()
        finally:
            may_end.set()
        answers = Counter(one.result(60) for one in asked)
        assert made == [1] and set(answers) <= {200, 503}
        assert answers[200] >= search.MOST_WAITING
        assert ask(f"{url}/report") == 200 and made == [1]
