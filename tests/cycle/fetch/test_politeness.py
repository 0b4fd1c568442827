"""The pauses between requests as a server sees them, where more than one request is needed."""

from __future__ import annotations

import time
from collections import Counter
from pathlib import Path

from tests.support.segments import conf_for, fetch_segment, fetched, make_segment
from tests.support.timedserver import NOT_FOUND, TimedServer, page

DELAY = 0.4
"""Seconds."""
EARLY = 0.02
"""A pause may be so much shorter, since it is told by the times at which requests are read."""
MALFORMED = b"HTTP/1.1 200 OK\r\nno colon here\r\nContent-Length: 4\r\n\r\nbody"


def crawl(parent: Path, urls: list[str], **values: str) -> dict[str, list[str]]:
    """Fetches URLs politely; returns the statuses of each."""
    segment = make_segment(parent, urls)
    values = {"fetcher__server__delay": str(DELAY), "http__timeout": "3000"} | values
    fetch_segment(segment, conf_for(**values), threads=20)
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
        found = crawl(tmp_path, urls)
        took = time.monotonic() - began
    assert set(map(tuple, found.values())) == {("fetch_success",)}
    assert len(server.of("127.0.0.2")) == 1 + 4 + 1
    assert shortest(server) > DELAY - EARLY
    assert took < 3
