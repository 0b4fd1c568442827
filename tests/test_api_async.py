"""A crawl that runs beside the event loop of its caller."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from itertools import pairwise
from pathlib import Path

import pytest

import minutch
from minutch.api import Standing
from minutch.errors import ConfigError
from tests.support.demo import PROPERTIES
from tests.support.examples import few
from tests.support.siteserver import SiteServer

CONF = PROPERTIES | {"fetcher.server.delay": 0, "fetcher.min.crawl.delay": 0}


@asynccontextmanager
async def heartbeat() -> AsyncIterator[list[int]]:
    """A task that beats as often as the loop lets it."""
    beats: list[int] = []

    async def beat() -> None:
        while True:
            await asyncio.sleep(0.01)
            beats.append(len(beats))

    task = asyncio.create_task(beat())
    try:
        yield beats
    finally:
        task.cancel()


async def test_the_loop_goes_on_while_it_crawls(tmp_path: Path) -> None:
    """The heart beats between any two looks at the run, of which there are many."""
    with SiteServer() as server:
        crawl = minutch.open(tmp_path / "crawl", create=True, conf=CONF, quiet=True)
        crawl.inject([server.site.url("one")])
        seen: list[Standing] = []
        counts: list[int] = []
        async with heartbeat() as beats:
            run = crawl.arun(2)
            async for standing in run:
                seen.append(standing)
                counts.append(len(beats))
            counters = await run
        assert all(after > before for before, after in pairwise(counts[:-1]))
        assert len(beats) > 10
    assert counters["db_fetched"] > 0
    assert seen[-1].rounds == 2
    assert seen[-1].pages == counters["fetched"] > 1
    assert seen[0].rounds == 0


async def test_errors_are_those_of_run(tmp_path: Path) -> None:
    crawl = minutch.open(tmp_path / "crawl", create=True, quiet=True)
    with pytest.raises(ConfigError, match=r"http\.agent\.name"):
        await crawl.arun()
    with pytest.raises(ConfigError, match=r"http\.agent\.name"):
        async for _ in crawl.arun():
            pass


@pytest.mark.parametrize(
    ("iterating", "overlap"), few([(True, False), (False, True), (False, False)])
)
async def test_who_is_cancelled_stops_it_as_ctrl_c_does(
    tmp_path: Path, iterating: bool, overlap: bool
) -> None:
    """What was fetched is kept, the segment's fetch is not over, and the next run goes on."""
    with SiteServer() as server:
        conf = CONF | {"fetcher.server.delay": 30, "crawl.overlap": overlap}
        conf["http.robot.rules.allowlist"] = "127.0.0.1"  # else the first page waits, too
        crawl = minutch.open(tmp_path / "crawl", create=True, conf=conf, quiet=True)
        crawl.inject([server.site.url("one"), server.site.url("one", "/a.html")])
        run = crawl.arun(1)

        async def wait() -> None:
            if iterating:
                async for _ in run:
                    pass
            else:
                await run

        task = asyncio.create_task(wait())
        while run.standing.step != "fetch" or not run.standing.done:  # the 404 may come first
            await asyncio.sleep(0.02)
            assert not task.done()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        (segment,) = (tmp_path / "crawl/segments").iterdir()
        assert not (segment / "crawl_fetch").exists()
        assert (segment / "_fetch").is_dir()
        shutil.rmtree(tmp_path / "crawl/.fetchstate")  # else the host may be asked in 30 s
        again = minutch.open(
            tmp_path / "crawl", conf={"fetcher.server.delay": 0, "fetcher.min.crawl.delay": 0}
        )
        assert (await again.arun(1))["db_fetched"] >= 1
    assert (segment / "crawl_fetch").is_dir()


async def test_it_ends_after_the_round(tmp_path: Path) -> None:
    with SiteServer() as server:
        crawl = minutch.open(tmp_path / "crawl", create=True, conf=CONF, quiet=True)
        crawl.inject([server.site.url("one")])
        run = crawl.arun(5)
        while run.standing.step != "fetch":
            await asyncio.sleep(0.01)
        run.stop()
        await run
    assert run.standing.rounds == 1
