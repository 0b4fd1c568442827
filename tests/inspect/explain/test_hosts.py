"""explain knows hosts: looked up, in the HostDb, by domain or address."""

from __future__ import annotations

from pathlib import Path

import pytest

from minutch import jobs
from minutch.clock import FakeClock
from minutch.cycle.fetchlist.selector import GenerateOptions
from minutch.inspect.explain import textpages
from tests.support.crawldbs import NOW
from tests.support.explainedcrawl import A, Made, make_crawl


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Made:
    made = make_crawl(tmp_path_factory.mktemp("made") / "crawl")
    names = ("-crawldb", made.folder / "crawldb", "-hostdb", made.folder / "hostdb")
    jobs.run("updatehostdb", *names, conf=made.conf(), clock=FakeClock(NOW))
    return made


@pytest.mark.parametrize(
    ("addresses", "asks"),
    [(["10.0.0.9"], False), (["10.0.0.9", "8.8.8.8"], True), (["8.8.8.8"], True), ([], True)],
)
def test_a_host_that_is_looked_up(made: Made, addresses: list[str], asks: bool) -> None:
    found = made.explain(
        f"{A}/waiting", resolve=lambda host: addresses if host == "a.example" else []
    )
    assert (found.fetch.asks, found.host.addresses) == (asks, tuple(addresses))
    assert asks or "10.0.0.9 is in 10.0.0.0/8" in found.fetch.text


def test_queues_by_domain_and_by_address(made: Made) -> None:
    assert (
        made.explain("http://www.x.co.uk/", {"fetcher.queue.mode": "byDomain"}).host.queue
        == "x.co.uk"
    )
    by_address = {"fetcher.queue.mode": "byIP"}
    assert made.explain(f"{A}/ok", by_address).fetch.asks
    assert (
        made.explain(f"{A}/ok", by_address, resolve=lambda host: ["8.8.8.8"]).host.queue
        == "8.8.8.8"
    )
    assert made.explain(f"{A}/ok", by_address, resolve=lambda host: []).fetch.reason == "no_queue"


def test_the_hostdb_limits_a_host(made: Made) -> None:
    one_each = {"generate.max.count.expr": "unfetched > 2 ? 1 : -1"}
    options = GenerateOptions(hostdb=made.folder / "hostdb")
    assert made.explain("http://many.example/1", one_each, options).generate.taken  # type: ignore[union-attr]
    second = made.explain("http://many.example/2", one_each, options)
    assert (
        second.generate is not None
        and second.generate.reason == "urls_skipped_per_host_overflow_total"
    )
    assert "0 fetched, 3 unfetched, 0 gone" in "\n".join(textpages.explanation_lines(second))


def test_a_host_that_the_hostdb_does_not_know(made: Made) -> None:
    assert made.explain("http://unknown.example/").host.known == "not in the HostDb"


def test_several_threads_for_a_host(made: Made) -> None:
    several = {"fetcher.threads.per.queue": "3", "fetcher.server.min.delay": "0.5"}
    assert "0.5 s between requests, 3 at a time" in "\n".join(
        textpages.explanation_lines(made.explain(f"{A}/ok", several))
    )


def test_a_host_rests_whatever_its_queue_is_called(made: Made) -> None:
    found = made.explain("http://BUSY.example.:8080/", {"fetcher.queue.mode": "byIP"})
    assert found.fetch.reason == "host_busy"


def test_without_a_name_nobody_asks(made: Made) -> None:
    found = made.explain("http://10.1.2.3/", {"http.agent.name": ""})
    assert (found.fetch.asks, found.fetch.remedy) == (False, "mend the configuration")
    assert "http.agent.name is not set" in found.fetch.text


def test_no_state_of_earlier_fetches(made: Made, tmp_path: Path) -> None:
    (made.folder / ".fetchstate").rename(tmp_path / "state")
    try:
        found = made.explain("http://busy.example/")
        assert found.fetch.asks and found.robots.verdict is None
        assert not (made.folder / ".fetchstate").exists()
    finally:
        (tmp_path / "state").rename(made.folder / ".fetchstate")
