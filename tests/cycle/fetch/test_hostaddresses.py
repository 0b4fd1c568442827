"""Queues named by addresses: hosts are asked for many at a time, and the fetch list keeps its
order.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest

from minutch.cycle.fetch import hostaddresses as module
from minutch.cycle.fetch.feeder import AHEAD, Feeder, Later
from minutch.cycle.fetch.hostaddresses import HostAddresses
from minutch.cycle.fetch.protocols import ProtocolLookup
from minutch.cycle.fetch.queueitems import FetchItem
from minutch.cycle.fetch.queuekey import queue_key
from minutch.records.crawldatum import CrawlDatum
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
    addresses = HostAddresses(names.ask)
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
    key = queue_key("byIP", addresses.known)
    assert [key(url) for url in urls] == [
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
    addresses = HostAddresses(names.ask)
    for host in "abc":
        await addresses.learn([f"http://{host}/"])
    assert [addresses.known(host) for host in "abc"] == [None, "2", "3"]


async def test_the_feeder_waits_for_nobody() -> None:
    """All hosts ahead are asked for at the same time; meanwhile there is nothing to fetch, and then
    all in order.
    """
    names = Names(*((f"h{number}", [f"10.0.0.{number % 7}"]) for number in range(150)))
    addresses = HostAddresses(names.ask)
    woken = asyncio.Event()
    addresses.heard = woken.set
    urls = [f"http://h{number}/" for number in range(150)]
    feeder = Feeder(
        [(url, CrawlDatum()) for url in urls],
        queue_key("byIP", addresses.known),
        addresses=addresses,
    )
    assert isinstance(feeder.next(), Later)
    await asyncio.sleep(0)
    assert names.asked == [f"h{number}" for number in range(AHEAD)]
    names.may_answer.set()
    await asyncio.wait_for(woken.wait(), 5)
    found: list[tuple[str, str]] = []
    while not feeder.done:
        item = feeder.next()
        if isinstance(item, FetchItem):
            found.append((item.url, item.queue_id))
        else:
            await asyncio.sleep(0)
    assert found == [(url, f"10.0.0.{number % 7}") for number, url in enumerate(urls)]


async def test_hosts_as_protocols_find_them() -> None:
    lookup = ProtocolLookup(conf_for())
    hosts = ("127.0.0.1", "[::1]", "no-such-host.invalid", "x" * 300, "b\u00fccher.invalid")
    found = {host: await lookup.addresses_of(f"http://{host}/", host) for host in hosts}
    assert await lookup.addresses_of("gopher://a/", "a") == ["a"]
    await lookup.close()
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
