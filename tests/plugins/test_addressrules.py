"""The inner network stays out of reach, however its addresses are written and whoever leads
there.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from minutch.conf import Configuration
from minutch.errors import UrlError
from minutch.records.crawldatum import CrawlDatum
from plugins.lib_http import addressrules
from plugins.lib_http.addressrules import AddressRules
from plugins.protocol_http.http import Http
from tests.support.misbehaving import MisbehavingServer
from tests.support.segments import conf_for, fetch_segment, make_segment

SPELLINGS = [
    "127.0.0.1",
    "127.1",
    "127.0.1",
    "2130706433",
    "0x7f000001",
    "0x7f.0x0.0x0.0x1",
    "0177.0.0.1",
    "017700000001",
    "127.0.0.1.",
    "0",
    "0.0.0.0",
    "[::1]",
    "[::]",
    "[0:0:0:0:0:0:0:1]",
    "[::ffff:127.0.0.1]",
    "[::ffff:7f00:1]",
    "[::127.0.0.1]",
    "[64:ff9b::7f00:1]",
    "[2002:7f00:1::]",
    "[fe80::1%25lo]",
    "[::1%25lo]",
    "localhost",
    "localhost.",
    "LOCALHOST",
    "a@127.0.0.1",
    "example.org:80@127.0.0.1",
    "１２７.0.0.1",
    "127。0。0。1",
    "①②⑦.0.0.1",
    "%31%32%37.0.0.1",
    "xn--127-1.0.0.1",
]


@pytest.fixture
def server() -> Iterator[MisbehavingServer]:
    with MisbehavingServer(address="0.0.0.0") as running:
        yield running


def guarded(**more: str) -> Configuration:
    return conf_for(http__filter__ipaddress__include="", http__timeout="2000", **more)


async def test_no_spelling_of_an_inner_address_is_connected_to(server: MisbehavingServer) -> None:
    protocol = Http(guarded(), {})
    try:
        for host in SPELLINGS:
            for address in (f"http://{host}:{server.port}/ok", f"https://{host}:{server.port}/ok"):
                output = await protocol.get_protocol_output(address, CrawlDatum())
                assert output.content is None, host
                assert not output.status.is_success, host
    finally:
        await protocol.close()
    assert server.connections == 0


async def test_robots_txt_is_not_asked_for_at_inner_addresses(server: MisbehavingServer) -> None:
    protocol = Http(guarded(), {})
    try:
        for host in SPELLINGS:
            try:
                rules = await protocol.get_robot_rules(
                    f"http://{host}:{server.port}/ok", CrawlDatum(), None
                )
            except UrlError:
                assert "%" in host  # a scope: no URL at all
                continue
            assert getattr(rules, "failure", None) is not None or not rules.is_allowed(
                f"http://{host}/x"
            ), host
    finally:
        await protocol.close()
    assert server.connections == 0


class Leads(BaseHTTPRequestHandler):
    """Sends who asks for `leading` on to 127.0.0.2; `reached` has the addresses connected to, and
    what was asked.
    """

    leading: str
    reached: list[tuple[str, str]]

    def do_GET(self) -> None:
        address, port = self.connection.getsockname()[:2]
        self.reached.append((address, self.path))
        robots = b"User-agent: *\nAllow: /\n"
        moves = self.path == self.leading
        self.send_response(302 if moves else 200)
        if moves:
            self.send_header("Location", f"http://127.0.0.2:{port}/inside")
        self.send_header("Content-Length", str(len(robots)))
        self.end_headers()
        self.wfile.write(robots)

    def log_message(self, *words: object) -> None:
        """Say nothing."""


@pytest.mark.parametrize("leading", ["/page", "/robots.txt"])
def test_redirects_lead_no_further_than_links(leading: str, tmp_path: Path) -> None:
    handler = type("Handler", (Leads,), {"reached": [], "leading": leading})
    with ThreadingHTTPServer(("0.0.0.0", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        url = f"http://127.0.0.1:{server.server_port}/page"
        conf = conf_for(
            http__filter__ipaddress__include="127.0.0.1",
            http__redirect__max="5",
        )
        fetch_segment(make_segment(tmp_path, [url]), conf)
        server.shutdown()
    assert ("127.0.0.1", leading) in handler.reached
    assert {address for address, _ in handler.reached} == {"127.0.0.1"}


def test_a_full_memory_takes_new_addresses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(addressrules, "REMEMBERED", 3)
    rules = AddressRules()
    assert all(rules.accepts(f"1.2.3.{number}") for number in range(10))
    assert list(rules._known) == ["1.2.3.9"]
