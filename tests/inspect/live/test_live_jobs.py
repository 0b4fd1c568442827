"""The live page of real jobs: a fetch is held and goes on, a crawl ends after its round."""

from __future__ import annotations

import io
import re
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from prometheus_client.parser import text_string_to_metric_families

from minutch.clock import SystemClock
from minutch.commands.crawl import served
from minutch.cycle.crawl.crawler import Crawler
from minutch.cycle.fetch.watch import Watch
from minutch.errors import ConfigError, MinutchError
from minutch.inspect.live.liveserver import LiveServer, LiveSettings
from minutch.job import JobContext
from tests.cycle.crawl.test_crawl import Jobs, crawl, jobs, printed  # noqa: F401
from tests.cycle.fetch.test_fetch_job import pages
from tests.cycle.sitemap.sitemapsite import SitemapSite
from tests.support.commands import command
from tests.support.misbehaving import MisbehavingServer
from tests.support.segments import conf_for, fetched, make_segment

run_fetch = command("fetch").run
run_sitemap = command("sitemap").run


@pytest.fixture
def server() -> Iterator[MisbehavingServer]:
    with MisbehavingServer(address="0.0.0.0") as running:
        yield running


class Caller:
    """Somebody with the link that was printed."""

    def __init__(self, says: str) -> None:
        found = re.search(r"(http://127\.0\.0\.1:\d+/)\?token=(\S+)", says)
        assert found, says
        self.base, self.token = found[1], found[2]

    def ask(self, path: str, method: str = "GET") -> str:
        request = urllib.request.Request(
            self.base + path, headers={"Authorization": f"Bearer {self.token}"}, method=method
        )
        with urllib.request.urlopen(request, timeout=30) as answer:
            return str(answer.read().decode())

    def figure(self, name: str) -> float:
        for family in text_string_to_metric_families(self.ask("metrics")):
            for sample in family.samples:
                if sample.name == name:
                    return float(sample.value)
        raise AssertionError(name)


class Running:
    """A job in a thread; what it prints can be waited for."""

    def __init__(self, job: Any, out: io.StringIO) -> None:
        self.code: int | None = None
        self._job, self._out = job, out
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        self.code = self._job()

    def caller(self) -> Caller:
        wait_for(lambda: "Live page: " in self._out.getvalue())
        return Caller(self._out.getvalue())

    def end(self) -> int | None:
        self._thread.join(60)
        return self.code


def wait_for(condition: Any) -> None:
    end = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.01)


def asked(server: MisbehavingServer) -> int:
    return sum(server.requests.values())


@pytest.mark.slow
@pytest.mark.parametrize("processes", ["1", "2"])
def test_a_fetch_is_held_and_goes_on(
    server: MisbehavingServer, tmp_path: Path, processes: str
) -> None:
    pages(server, 30)
    urls = [server.url(f"p{n}", f"127.0.1.{host}") for n in range(30) for host in (1, 2, 3, 4)]
    segment = make_segment(tmp_path, urls)
    conf = conf_for(minutch__fetch__processes=processes, fetcher__server__delay="0.05")
    out = io.StringIO()
    context = JobContext(conf.freeze(), out=out, err=io.StringIO())
    job = Running(
        lambda: run_fetch([str(segment.path), "--metrics", "0", "-threads", "4"], context), out
    )
    caller = job.caller()
    wait_for(lambda: asked(server) > 12)
    caller.ask("pause", "POST")
    time.sleep(1)
    before = asked(server)
    time.sleep(1.2)
    assert asked(server) == before < len(urls)
    assert caller.figure("minutch_paused") == 1
    assert "Paused: nothing new" in caller.ask("")
    assert job.code is None
    caller.ask("resume", "POST")
    assert job.end() == 0
    assert context.reports["Fetcher"]["fetched"] == len(urls)
    assert {d.status_name for found in fetched(segment).values() for d in found} == {
        "fetch_success"
    }
    assert {count for path, count in server.requests.items() if path != "/robots.txt"} == {4}
    with pytest.raises(urllib.error.URLError):
        caller.ask("metrics")


def live(jobs: Jobs, **options: Any) -> Crawler:  # noqa: F811
    """A crawl with a live page."""
    run = crawl(jobs, **options)
    watch = Watch(f"crawl {run.directory}", run.context.clock, can_stop=True)
    context = replace(run.context, watch=watch)
    return replace(run, context=context, serving=partial(served, watch, context, 0))


def test_a_crawl_stops_after_its_round(jobs: Jobs) -> None:  # noqa: F811
    run = live(jobs, rounds=-1)
    seen: dict[str, str] = {}

    def update() -> None:
        if jobs.made == 2:
            caller = Caller(printed(run))
            caller.ask("stop", "POST")
            seen["page"], seen["metrics"] = caller.ask(""), caller.ask("metrics")

    jobs.before["updatedb"] = update
    run.run()
    assert jobs.made == 2 and jobs.names[-1] == "dedup"
    assert "Stopped on the live page after 2 rounds" in printed(run)
    assert (
        "Round 1" in seen["page"]
        and "round 2: updatedb" in seen["page"]
        and "Stops after" in seen["page"]
    )
    assert 'minutch_crawl_step_running{step="updatedb"} 1' in seen["metrics"]
    assert "minutch_crawl_rounds_total 1" in seen["metrics"]


def test_a_paused_crawl_begins_no_step(jobs: Jobs) -> None:  # noqa: F811
    run = live(jobs, rounds=1)
    watch = run.context.watch
    assert watch is not None
    watch.pause(True)
    assert isinstance(run.context.out, io.StringIO)
    job = Running(lambda: 0 if run.run() else 1, run.context.out)
    caller = job.caller()
    time.sleep(0.2)
    assert jobs.names == [] and job.code is None
    caller.ask("resume", "POST")
    assert job.end() == 0 and jobs.names[0] == "inject"


def test_a_crawl_that_waits_for_pages_can_be_stopped(jobs: Jobs) -> None:  # noqa: F811
    jobs.due = 1
    run = live(jobs, rounds=-1, wait=3600)
    watch = run.context.watch
    assert watch is not None
    slept: list[float] = []

    def sleep(seconds: float) -> None:
        slept.append(seconds)
        watch.stop(True)

    run.sleep = sleep
    run.run()
    assert slept == [5.0]


# -- the server ------------------------------------------------------------------------------------


def test_a_token_of_ones_own_is_not_printed() -> None:
    watch = Watch("x", SystemClock())
    conf = conf_for(minutch__service__token="a-token-of-one's-own")
    with (
        closing(LiveServer(watch, LiveSettings.from_conf(conf), 0, "--status")) as server,
        server.running(),
    ):
        assert (
            server.says == f"Live page: http://127.0.0.1:{server.port}/ (the token is that of"
            " minutch.service.token)"
        )
        request = urllib.request.Request(
            f"http://127.0.0.1:{server.port}/",
            headers={"Authorization": "Bearer a-token-of-one's-own"},
        )
        assert urllib.request.urlopen(request, timeout=30).status == 200
    with pytest.raises(ConfigError, match="expected 16 printable"):
        LiveServer(
            watch, LiveSettings.from_conf(conf_for(minutch__service__token="short")), 0, "--status"
        )


@pytest.mark.parametrize("port", [-1, 65536, 10**9])
def test_ports_that_are_none(port: int) -> None:
    with pytest.raises(MinutchError, match=r"can't listen on 127\.0\.0\.1") as failure:
        LiveServer(Watch("x", SystemClock()), LiveSettings.from_conf(conf_for()), port, "--status")
    assert failure.value.hint == "--status takes another port"


def test_a_port_that_is_taken() -> None:
    watch = Watch("x", SystemClock())
    with (
        closing(LiveServer(watch, LiveSettings.from_conf(conf_for()), 0, "--status")) as first,
        pytest.raises(MinutchError, match="Address already in use"),
    ):
        LiveServer(watch, LiveSettings.from_conf(conf_for()), first.port, "--status")


def test_sitemaps_are_held_too(tmp_path: Path) -> None:
    with SitemapSite() as site:
        listed = (
            "<urlset"
            " xmlns='http://www.sitemaps.org/schemas/sitemap/0.9'><url><loc>{site}x</loc></url></urlset>"
        )
        (tmp_path / "urls.txt").write_text(
            "\n".join(site.add(f"/map{n}.xml", listed) for n in range(5))
        )
        watch = Watch("crawl", SystemClock(), can_stop=True)
        watch.pause(True)
        conf = conf_for(fetcher__server__delay="0.01").freeze()
        context = JobContext(conf, out=io.StringIO(), err=io.StringIO(), watch=watch)
        words = [
            str(tmp_path / "crawldb"),
            "-sitemapUrls",
            str(tmp_path / "urls.txt"),
            "-noFilter",
            "-noNormalize",
        ]
        job = Running(lambda: run_sitemap(words, context), io.StringIO())
        time.sleep(0.5)
        assert site.asked == [] and job.code is None
        watch.pause(False)
        assert job.end() == 0
        assert sorted(site.paths) == [f"/map{n}.xml" for n in range(5)]
