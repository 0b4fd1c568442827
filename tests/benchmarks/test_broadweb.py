"""The web of the benchmark of a broad fetch: its hosts, their names, and what they answer."""

from __future__ import annotations

import re
import socket
import struct
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest

from tests.benchmarks.broad.names import respond
from tests.benchmarks.broad.requestlog import LEFT, OPEN, ROBOTS, read
from tests.benchmarks.broad.server import Serving, serving
from tests.benchmarks.broad.web import (
    CRAWL_DELAY,
    HOSTILE,
    NO_NAME,
    NO_SERVER,
    Plan,
    Web,
    address,
    name,
    number,
)
from tests.support.examples import few


@pytest.fixture(scope="module")
def web() -> Web:
    return Web(Plan(50, 400, 1.0, 0.2))


# -- the web ---------------------------------------------------------------------------------------


@pytest.mark.smoke
def test_a_plan_makes_the_same_web_each_time_and_another_seed_another_one(web: Web) -> None:
    again, other = Web(web.plan), Web(Plan(50, 400, 1.0, 0.2, seed=2))
    assert again.kinds == web.kinds != other.kinds
    assert (again.latencies == web.latencies).all() and (again.sizes == web.sizes).all()
    assert len(set(web.urls(80))) == web.pages


def test_sizes_and_latencies_are_as_planned() -> None:
    web = Web(Plan(20_000, 46_000, 1.0, 0.05))
    assert 0.9 * 46_000 < web.pages < 1.1 * 46_000
    largest = np.sort(web.sizes)[::-1]
    assert largest[0] / largest[31] == pytest.approx(32**0.6, rel=0.1)
    assert 140 < np.median(web.latencies) < 160
    assert np.log(web.latencies).std() == pytest.approx(0.78, rel=0.05)
    hostile = sum(kind != "" for kind in web.kinds)
    assert 800 < hostile < 1200 and set(web.kinds) == {"", *HOSTILE}
    assert 0.03 < (web.robots == CRAWL_DELAY).mean() < 0.07


def test_a_host_has_one_size_whatever_else_there_is() -> None:
    assert set(Web(Plan(10, 100, 0.0, skew=0.0)).sizes.tolist()) == {10}
    assert Web(Plan(10, 100, 0.0, median=0.0)).latencies.max() == 0


def test_names_and_addresses_are_distinct_and_found_again() -> None:
    hosts = range(0, 130_000, 7)
    assert [number(name(host).encode()) for host in hosts] == list(hosts)
    assert len({address(host) for host in hosts}) == len(hosts)
    assert number(b"www.site.example") == number(b"localhost") == -1


def test_questions_for_addresses(web: Web) -> None:
    def answer(host: str, kind: int = 1) -> tuple[int, int, bytes]:
        labels = b"".join(bytes([len(x)]) + x.encode() for x in host.split("."))
        head = struct.pack(">6H", 7, 0x100, 1, 0, 0, 0)
        found, packet = respond(head + labels + struct.pack(">BHH", 0, kind, 1), web.kinds)
        assert packet[:2] == b"\x00\x07"
        return found, packet[3] & 15, packet[-4:] if packet[7] else b""

    ordinary = web.kinds.index("")
    assert answer(name(ordinary)) == (ordinary, 0, address(ordinary))
    assert answer(name(ordinary).upper()) == (ordinary, 0, address(ordinary))
    assert answer(name(ordinary), 28) == (ordinary, 0, b"")
    assert answer("elsewhere.example") == (-1, 3, b"")
    assert answer(name(51))[1] == 3
    kinds = ["", NO_NAME, NO_SERVER]
    for host, code in ((1, 3), (2, 2)):
        packet = struct.pack(">6H", 7, 0x100, 1, 0, 0, 0)
        packet += b"".join(bytes([len(x)]) + x.encode() for x in name(host).split("."))
        assert respond(packet + b"\0\0\1\0\1", kinds)[1][3] & 15 == code


def test_links_lead_to_pages_mostly_of_the_same_host() -> None:
    web = Web(Plan(100, 1_000, 1.0, links=12))
    assert web.targets.shape == (len(web.slot_hosts), 12)
    assert not np.isin(web.targets, web.first).any(), "none leads to a robots.txt"
    to = web.slot_hosts[web.targets]
    assert 0.65 < (to == web.slot_hosts[:, None]).mean() < 0.75
    assert (to < 25).mean() > (to >= 75).mean()
    urls = list(web.urls(80))
    pages = np.setdiff1d(np.arange(len(web.slot_hosts)), web.first)
    assert [web.url(slot, 80) for slot in pages.tolist()] == urls


# -- the server ------------------------------------------------------------------------------------


@contextmanager
def connected(server: Serving, host: int) -> Iterator[socket.socket]:
    where = socket.inet_ntoa(address(host)), server.port
    with socket.create_connection(where, timeout=20) as client:
        yield client


def ask(client: socket.socket, host: int, path: str) -> None:
    client.sendall(f"GET {path} HTTP/1.1\r\nHost: {name(host)}:80\r\n\r\n".encode())


def answer(client: socket.socket) -> tuple[int, bytes]:
    """Status and body of an answer that says its length."""
    got = b""
    while b"\r\n\r\n" not in got:
        got += client.recv(65_536)
    head, _, body = got.partition(b"\r\n\r\n")
    length = int(head.split(b"Content-Length: ")[1].split(b"\r")[0])
    while len(body) < length:
        body += client.recv(65_536)
    return int(head.split(b" ")[1]), body


def test_the_server_answers_in_time_and_logs_each_request(tmp_path: Path) -> None:
    plan = Plan(5, 60, 0.0, skew=0.0)
    web = Web(plan)
    with serving(plan, tmp_path) as server, connected(server, 3) as client:
        before = time.monotonic()
        for path, status in (("/robots.txt", (200, 404)), ("/p/2", (200,)), ("/p/99", (404,))):
            ask(client, 3, path)
            assert answer(client)[0] in status
        after = time.monotonic()
        ask(client, 3, "/p/1")
        time.sleep(0.01)
    requests = read(server.log)
    assert requests["page"].tolist()[:2] == [ROBOTS, 2] and set(requests["host"].tolist()) == {3}
    assert requests["status"][-1] in (200, LEFT, OPEN) and len(requests) == 4
    took = (requests["end"] - requests["begin"]) / 1000
    planned = web.latencies[web.first[3] + np.array([0, 3])]
    assert (took[:2] >= planned - 1).all()
    assert before < requests["begin"][0] / 1e6 < requests["end"][1] / 1e6 < after


def test_pages_of_a_linked_web_have_its_links_and_no_others(tmp_path: Path) -> None:
    plan = Plan(5, 60, 0.0, skew=0.0, median=0.0, links=4)
    web = Web(plan)
    with serving(plan, tmp_path) as server, connected(server, 3) as client:
        ask(client, 3, "/p/2")
        _, body = answer(client)
        slot = int(web.first[3]) + 3
        links = [web.url(target, server.port) for target in web.targets[slot].tolist()]
    assert re.findall(r'href="(.*?)"', body.decode()) == links


@pytest.mark.parametrize("kind", few(["error", "busy", "loop", "trap", "bomb"]))
def test_hostile_hosts_with_whole_answers(tmp_path: Path, kind: str) -> None:
    plan = Plan(1, 4, 0.0, hostile=1.0, median=0.0, only=(kind,))
    with serving(plan, tmp_path) as server, connected(server, 0) as client:
        ask(client, 0, "/p/1")
        status, body = answer(client)
    expected = {"error": 500, "busy": 429, "loop": 302, "trap": 200, "bomb": 200}
    assert status == expected[kind]
    assert kind != "bomb" or (body[:2] == b"\x1f\x8b" and len(body) < 200_000)


@pytest.mark.parametrize("kind", few(["hang", "reset", "drip", "slowhead", "endless"]))
def test_hostile_hosts_without_an_end(tmp_path: Path, kind: str) -> None:
    plan = Plan(1, 4, 0.0, hostile=1.0, median=0.0, only=(kind,))
    with serving(plan, tmp_path) as server, connected(server, 0) as client:
        ask(client, 0, "/p/1")
        client.settimeout(1.3)
        got = b""
        end = time.monotonic() + 1.3
        try:
            while len(got) < 1_000_000 and (more := client.recv(65_536)):
                got += more
                client.settimeout(max(0.001, end - time.monotonic()))
        except TimeoutError:
            got += b"TIMEOUT"
        except ConnectionResetError:
            got += b"RESET"
    head = b"HTTP/1.1 200 OK\r\n"
    assert {
        "hang": got == b"TIMEOUT",
        "reset": got == b"RESET",
        "drip": got.startswith(head) and got.endswith(b"xTIMEOUT") and len(got) < 100,
        "slowhead": got.startswith(head) and got.endswith(b"xTIMEOUT") and len(got) < 100,
        "endless": got.startswith(head) and len(got) >= 1_000_000,
    }[kind]
    (request,) = read(server.log).tolist()
    assert request[4] < 0
