"""The pauses between requests as a server sees them, where more than one request is needed."""

from __future__ import annotations

import time
from collections import Counter
from itertools import pairwise
from pathlib import Path

import pytest

from tests.support.examples import few
from tests.support.nameserver import NameServer
from tests.support.segments import conf_for, contents, fetch_segment, fetched, make_segment
from tests.support.timedserver import NOT_FOUND, TimedServer, moved, page

DELAY = 0.4
"""Seconds."""
EARLY = 0.02
"""A pause may be so much shorter, since it is told by the times at which requests are read."""
MALFORMED = b"HTTP/1.1 200 OK\r\nno colon here\r\nContent-Length: 4\r\n\r\nbody"


def crawl(
    parent: Path, urls: list[str], *, threads: str = "20", **values: str
) -> dict[str, list[str]]:
    """Fetches URLs politely; returns the statuses of each."""
    segment = make_segment(parent, urls)
    values = {"fetcher__server__delay": str(DELAY), "http__timeout": "3000"} | values
    fetch_segment(segment, conf_for(**values), threads=int(threads))
    return {url: [datum.status_name for datum in data] for url, data in fetched(segment).items()}


def shortest(server: TimedServer) -> float:
    return min(gap for gaps in server.gaps().values() for gap in gaps)


def test_a_connection_that_was_closed_costs_a_pause(tmp_path: Path) -> None:
    with TimedServer(
        lambda host, path: NOT_FOUND if path == "/robots.txt" else page(), closes_second=True
    ) as server:
        urls = [server.url("127.0.0.2", f"/{number}") for number in range(5)]
        found = crawl(tmp_path, urls)
    assert set(map(tuple, found.values())) == {("fetch_success",)}
    asked = Counter(server.of("127.0.0.2"))
    assert sum(asked.values()) == 7  # robots.txt, and one page twice: then the server is known
    assert server.of("127.0.0.2")[1] == server.of("127.0.0.2")[2]
    gaps = server.gaps()["127.0.0.2"]
    assert min(gaps) > DELAY - EARLY and len(gaps) == 5


def test_a_malformed_head_costs_a_pause_once(tmp_path: Path) -> None:
    """The server leaves the connection open: the end of the page is not waited for."""
    with TimedServer(
        lambda host, path: NOT_FOUND if path == "/robots.txt" else MALFORMED
    ) as server:
        urls = [server.url("127.0.0.2", f"/{number}") for number in range(4)]
        began = time.monotonic()
        found = crawl(tmp_path, urls, http__timeout="30000")
        took = time.monotonic() - began
    assert set(map(tuple, found.values())) == {("fetch_success",)}
    assert len(server.of("127.0.0.2")) == 1 + 4 + 1
    assert shortest(server) > DELAY - EARLY
    assert took < 25


def test_the_robots_txt_of_a_page_that_is_asked_for_twice_is_stored(tmp_path: Path) -> None:
    robots = b"User-agent: *\nDisallow: /no\n"
    with TimedServer(
        lambda host, path: page(robots) if path == "/robots.txt" else MALFORMED
    ) as server:
        url = server.url("127.0.0.2", "/x")
        segment = make_segment(tmp_path, [url])
        fetch_segment(segment, conf_for(fetcher__store__robotstxt="true"))
        found = contents(segment)
    assert found[url].content == b"body"
    assert found[server.url("127.0.0.2", "/robots.txt")].content == robots


def to_c(server_port: list[int], host: str, path: str) -> bytes:
    """robots.txt of every host but 127.0.1.1 is that of 127.0.1.1."""
    if path != "/robots.txt":
        return page()
    if host == "127.0.1.1":
        return page(b"User-agent: *\nDisallow: /no\n")
    return moved(f"http://127.0.1.1:{server_port[0]}/rules/{host}")


@pytest.mark.parametrize("mode", few(["byHost", "byDomain", "byIP"]))
@pytest.mark.parametrize("threads", few(["20", "1"]))
def test_redirects_of_robots_txt_wait_for_their_target(
    tmp_path: Path, mode: str, threads: str
) -> None:
    """Five hosts' robots.txt lead to a sixth, which has pages of its own; also where there are no
    more places than chains that wait.
    """
    port: list[int] = []
    with TimedServer(lambda host, path: to_c(port, host, path)) as server:
        port.append(server.port)
        hosts = [f"127.0.0.{number}" for number in range(2, 7)]
        urls = [server.url(host, f"/{number}") for host in hosts for number in range(2)]
        urls += [server.url("127.0.1.1", f"/{number}") for number in range(3)]
        found = crawl(
            tmp_path, urls, fetcher__queue__mode=mode, threads=threads
        )  # fmt: skip
    assert len(found) == 13 and set(map(tuple, found.values())) == {("fetch_success",)}
    assert len(server.of("127.0.1.1")) == 1 + 5 + 3
    gaps = server.gaps()
    assert min(gaps["127.0.1.1"]) > DELAY - EARLY
    assert all(len(server.of(host)) == 3 for host in hosts)
    assert shortest(server) > DELAY - EARLY


def test_a_robots_txt_that_was_found_meanwhile_is_not_asked_for_again(tmp_path: Path) -> None:
    port: list[int] = []

    def answer(host: str, path: str) -> bytes:
        if path != "/robots.txt":
            return page()
        if host == "127.0.1.1":
            return page(b"User-agent: *\nDisallow: /no\n")
        return moved(f"http://127.0.1.1:{port[0]}/robots.txt")

    with TimedServer(answer, slow=0.1) as server:
        port.append(server.port)
        urls = [server.url(f"127.0.0.{number}", "/x") for number in range(2, 7)]
        found = crawl(tmp_path, urls)
    assert set(map(tuple, found.values())) == {("fetch_success",)}
    assert server.of("127.0.1.1") == ["/robots.txt"]


def test_files_that_lead_to_each_other_are_an_end(tmp_path: Path) -> None:
    """Neither chain waits for the other."""
    port: list[int] = []

    def answer(host: str, path: str) -> bytes:
        if path != "/robots.txt":
            return page()
        other = "127.0.0.3" if host == "127.0.0.2" else "127.0.0.2"
        return moved(f"http://{other}:{port[0]}/rules")

    with TimedServer(answer, slow=0.2) as server:
        port.append(server.port)
        urls = [server.url(f"127.0.0.{number}", "/x") for number in (2, 3)]
        began = time.monotonic()
        found = crawl(
            tmp_path, urls, http__robots__503__defer__visits__delay="500",
            http__robots__503__defer__visits__retries="2",
        )  # fmt: skip
    assert list(found.values()) == [["linked"], ["linked"]] and time.monotonic() - began < 10
    assert {server.of(host).count("/robots.txt") for host in ("127.0.0.2", "127.0.0.3")} == {3}


NAMES = {name: (60, ["127.0.0.1"]) for name in ("a.example.com", "b.example.com", "c.example.com")}


@pytest.mark.parametrize("mode", few(["byDomain", "byIP"]))
def test_the_longest_crawl_delay_of_its_hosts_is_a_queues(tmp_path: Path, mode: str) -> None:
    """Whatever the order in which their pages come; one without rules shortens nothing."""

    def answer(host: str, path: str) -> bytes:
        delay = {"a.example.com": "1", "b.example.com": "0.5"}.get(host)
        if path != "/robots.txt":
            return page()
        return NOT_FOUND if delay is None else page(f"User-agent: *\nCrawl-delay: {delay}".encode())

    with NameServer(NAMES) as names, TimedServer(answer) as server:
        urls = [server.url(host, f"/{number}") for number in range(2) for host in NAMES]
        found = crawl(tmp_path, urls, fetcher__queue__mode=mode, http__dns__servers=names.address)
    assert set(map(tuple, found.values())) == {("fetch_success",)} and len(found) == 6
    pages = [asked for asked in server.asked if asked.path != "/robots.txt"]
    gaps = [after.time - before.time for before, after in pairwise(pages)]
    asked_a = next(n for n, asked in enumerate(pages) if asked.host == "a.example.com")
    assert min(gaps) > DELAY - EARLY
    assert min(gaps[asked_a:]) > 1 - EARLY


@pytest.mark.parametrize("mode", few(["byDomain", "byIP"]))
@pytest.mark.parametrize("robots", [page(b"", status="503 Busy"), b""], ids=["503", "no answer"])
def test_a_robots_txt_that_fails_rests_its_host_alone(
    tmp_path: Path, mode: str, robots: bytes
) -> None:
    def answer(host: str, path: str) -> bytes:
        return page() if path != "/robots.txt" else robots if host == "a.example.com" else NOT_FOUND

    with NameServer(NAMES) as names, TimedServer(answer) as server:
        urls = [server.url(host, f"/{number}") for number in range(3) for host in NAMES]
        began = time.monotonic()
        found = crawl(
            tmp_path, urls, fetcher__queue__mode=mode, http__dns__servers=names.address,
            fetcher__exceptions__per__queue__delay="5",
            fetcher__max__exceptions__per__queue="1",
            http__robots__503__defer__visits__delay="600000",
        )  # fmt: skip
        took = time.monotonic() - began
    ended = Counter((url.split("/")[2][0], *statuses) for url, statuses in found.items())
    assert ended["b", "fetch_success"] == ended["c", "fetch_success"] == 3
    asked = server.of("a.example.com")
    assert set(asked) == {"/robots.txt"} and len(asked) <= 2 and took < 300
    assert shortest(server) > DELAY - EARLY


@pytest.mark.parametrize("mode", few(["byDomain", "byHost", "byIP"]))
def test_spellings_of_a_host_share_a_queue_and_its_rules(tmp_path: Path, mode: str) -> None:
    spellings = [
        ["127.0.0.1", "127.1", "2130706433", "0x7f.0.0.1", "[::ffff:7f00:1]"],
        ["localhost", "localhost."],
        ["[::1]", "[::0001]", "[0:0:0:0:0:0:0:1]"],
    ]
    with TimedServer(lambda host, path: NOT_FOUND if "robots" in path else page()) as server:
        for number, hosts in enumerate(spellings if server.has_ipv6 else spellings[:2]):
            server.asked.clear()
            found = crawl(
                tmp_path / str(number), [server.url(host, "/x") for host in hosts],
                fetcher__queue__mode=mode,
            )  # fmt: skip
            times = [asked.time for asked in server.asked if asked.path == "/x"]
            assert set(map(tuple, found.values())) == {("fetch_success",)}, found
            assert len(times) == len(hosts)
            assert len([asked for asked in server.asked if asked.path == "/robots.txt"]) == 1
            assert min(after - before for before, after in pairwise(times)) > DELAY - EARLY
