"""Queues named by addresses: hosts are asked for many at a time, and the fetch list keeps its
order.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest

from minutch.cycle.fetch.components import addresses_of
from minutch.cycle.fetch.frontier import frontier as module
from minutch.cycle.fetch.frontier.frontier import AHEAD, AddressedList, HostAddresses
from minutch.cycle.fetch.frontier.queueitems import QueueNames
from minutch.cycle.fetch.ledger import Outcome
from minutch.plugin.protocolfactory import ProtocolFactory
from tests.support.fetchlists import index_of
from tests.support.misbehaving import MisbehavingServer, page
from tests.support.segments import conf_for, contents, fetch_segment, make_segment


class Names:
    """A resolver that answers when it is told to."""

    def __init__(self, *known: tuple[str, list[str]]) -> None:
        self.known = dict(known)
        self.asked: list[str] = []
        self.may_answer = asyncio.Event()

    async def ask(self, url: str, host: str) -> list[str]:
        self.asked.append(host)
        await self.may_answer.wait()
        return self.known[host]


async def test_addresses_are_asked_for_once() -> None:
    names = Names(("a", ["::1", "10.0.0.1", "10.0.0.2"]), ("six", ["::2", "::3"]), ("none", []))
    names.may_answer.set()
    addresses = HostAddresses(names.ask, lambda: None)
    urls = [
        "http://a/",
        "http://A:80/x",
        "http://six/",
        "http://none/",
        "http://broken/",
        "file:/x",
        "no url",
    ]
    await asyncio.gather(addresses.learn(urls), addresses.learn(urls))
    await addresses.learn(urls)
    assert sorted(names.asked) == ["a", "broken", "none", "six"]
    queues = QueueNames("byIP", addresses.known)
    assert [queues.of(url) for url in urls] == [
        "10.0.0.1",
        "10.0.0.1",
        "::2",
        None,
        None,
        "127.0.0.1",
        None,
    ]


async def test_so_many_are_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "REMEMBERED", 2)
    names = Names(("a", ["1"]), ("b", ["2"]), ("c", ["3"]))
    names.may_answer.set()
    addresses = HostAddresses(names.ask, lambda: None)
    for host in "abc":
        await addresses.learn([f"http://{host}/"])
    assert [addresses.known(host) for host in "abc"] == [None, "2", "3"]


async def test_the_fetch_list_waits_for_nobody(tmp_path: Path) -> None:
    """All hosts ahead are asked for at the same time; meanwhile there is nothing to fetch, and then
    all in order.
    """
    names = Names(*((f"h{number}", [f"10.0.0.{number % 7}"]) for number in range(150)))
    woken = asyncio.Event()
    addresses = HostAddresses(names.ask, woken.set)
    urls = [f"http://h{number}/" for number in range(150)]
    listed = AddressedList(index_of(tmp_path, urls), addresses, lambda queue_id: True)
    assert (listed.most(), listed.left) == (0, 150)
    await asyncio.sleep(0)
    assert names.asked == [f"h{number}" for number in range(AHEAD)]
    names.may_answer.set()
    await asyncio.wait_for(woken.wait(), 5)
    found: list[tuple[str, str]] = []
    while listed.left:
        if listed.most():
            item = listed.begin().next()
            found.append((item.url, item.queue_id))
        else:
            await asyncio.sleep(0)
    assert found == [(url, f"10.0.0.{number % 7}") for number, url in enumerate(urls)]
    assert not listed.has_refused


async def test_hosts_without_an_address_or_of_others(tmp_path: Path) -> None:
    """Of those without an address, the process that a URL hashes to gives it up."""
    names = Names(("a", ["10.0.0.1"]), ("b", []), ("c", ["10.0.0.3"]))
    names.may_answer.set()
    addresses = HostAddresses(names.ask, lambda: None)
    urls = ["http://a/", "http://b/1", "http://b/2", "http://c/"]
    mine = {"10.0.0.1", "http://b/2"}
    listed = AddressedList(index_of(tmp_path, urls), addresses, mine.__contains__)
    assert not listed.most()
    await addresses.learn(urls)
    assert listed.most() == 1
    assert listed.begin().next().url == "http://a/"
    assert [(found.item.url, found.outcome) for found in listed.refused(10)] == [
        ("http://b/2", Outcome.SKIPPED_INVALID)
    ]
    assert (listed.most(), listed.left, listed.has_refused) == (0, 0, False)


async def test_hosts_as_protocols_find_them() -> None:
    factory = ProtocolFactory(conf_for())
    hosts = ("127.0.0.1", "[::1]", "no-such-host.invalid", "x" * 300, "b\u00fccher.invalid")
    found = {host: await addresses_of(factory, f"http://{host}/", host) for host in hosts}
    assert await addresses_of(factory, "gopher://a/", "a") == ["a"]
    await factory.close()
    assert found == {"127.0.0.1": ["127.0.0.1"], "[::1]": ["::1"]} | {
        host: [] for host in hosts[2:]
    }


@pytest.fixture
def server() -> Iterator[MisbehavingServer]:
    with MisbehavingServer() as running:
        yield running


def test_a_fetch_by_address(server: MisbehavingServer, tmp_path: Path) -> None:
    """Redirects and followed links get their queues, too; what has no address is said to be no URL
    to fetch.
    """
    html = b"<html><a href='/linked'>one</a> <a href='http://no-such-host.invalid/'>two</a></html>"
    server.pages["/p"] = page(html, "Content-Type: text/html")
    server.pages["/linked"] = page(b"<html>linked</html>", "Content-Type: text/html")
    server.pages["/moved"] = page(b"", f"Location: {server.url('target')}", status="302 Found")
    server.pages["/target"] = page(b"<html>target</html>", "Content-Type: text/html")
    segment = make_segment(
        tmp_path, [server.url("p"), server.url("moved"), "http://no-such-host.invalid/x"]
    )
    conf = conf_for(
        **{
            "plugin.includes": "protocol-http|parse-html|urlnormalizer-basic|scoring-opic",
            "fetcher.queue.mode": "byIP",
            "fetcher.parse": "true",
            "fetcher.follow.outlinks.depth": "2",
            "http.redirect.max": "2",
        }
    )
    counters = fetch_segment(segment, conf)
    assert set(contents(segment)) == {
        server.url(name) for name in ("p", "linked", "moved", "target")
    }
    assert (counters["fetched"], counters["redirected"], counters["generated"]) == (1, 1, 3)
