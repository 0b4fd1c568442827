"""Requests through proxies: HTTP, HTTPS and SOCKS, with names and passwords; and those that go
straight.
"""

from __future__ import annotations

import ssl
from collections.abc import Iterator
from pathlib import Path

import pytest
import trustme

from minutch.plugin.points import ProtocolOutput
from minutch.records.crawldatum import CrawlDatum
from plugins.protocol_http.http import Http
from tests.support.misbehaving import MisbehavingServer, page
from tests.support.proxyserver import ProxyServer
from tests.support.segments import conf_for


def certified(ca: trustme.CA, name: str) -> ssl.SSLContext:
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    ca.issue_cert(name).configure_cert(context)
    return context


@pytest.fixture
def server() -> Iterator[MisbehavingServer]:
    with MisbehavingServer() as running:
        running.pages["/x"] = running.pages["http://far.example/x"] = page(
            b"far away", "X-From: server"
        )
        yield running


async def through(proxy: ProxyServer, url: str, **values: str) -> ProtocolOutput:
    own = {"http__proxy__host": "localhost", "http__proxy__port": str(proxy.port)}
    protocol = Http(conf_for(**own | values), {})
    try:
        return await protocol.get_protocol_output(url, CrawlDatum())
    finally:
        await protocol.close()


LOGIN = {"http__proxy__username": "me", "http__proxy__password": "p:w/ @"}


@pytest.mark.parametrize("login", [{}, LOGIN])
@pytest.mark.parametrize(
    ("kind", "way"),
    [("HTTP", "http"), ("SOCKS", "socks5"), ("SOCKS5", "socks5"), ("SOCKS4", "socks4a")],
)
async def test_a_page_comes_through_a_proxy(
    server: MisbehavingServer, kind: str, way: str, login: dict[str, str]
) -> None:
    with ProxyServer(server.port) as proxy:
        output = await through(proxy, "http://far.example/x", http__proxy__type=kind, **login)
    assert output.content is not None, str(output.status)
    assert output.content.content == b"far away"
    shown = {"socks4a": "me"}.get(way, "me:p:w/ @") if login else ""
    assert proxy.asked == [(way, "far.example", 80, shown)]


async def test_a_proxy_with_tls(
    server: MisbehavingServer, authority: tuple[trustme.CA, Path]
) -> None:
    ca, path = authority
    for name, checked, reached in (
        ("localhost", "true", True),
        ("other", "true", False),
        ("other", "false", True),
    ):
        with ProxyServer(server.port, certified(ca, name)) as proxy:
            values = {"http__tls__ca__file": str(path), "http__tls__certificates__check": checked}
            output = await through(
                proxy, "http://far.example/x", http__proxy__type="HTTPS", **values
            )
        assert output.status.is_success is reached, str(output.status)


@pytest.mark.parametrize("kind", ["HTTP", "SOCKS5"])
async def test_https_through_a_proxy(authority: tuple[trustme.CA, Path], kind: str) -> None:
    ca, path = authority
    with (
        MisbehavingServer(tls=certified(ca, "far.example")) as server,
        ProxyServer(server.port) as proxy,
    ):
        values = {
            "http__tls__ca__file": str(path),
            "http__proxy__type": kind,
            "store__http__headers": "true",
        }
        output = await through(proxy, "https://far.example/ok", **values)
        wrong = await through(proxy, "https://elsewhere.example/ok", **values)
    assert output.content is not None, str(output.status)
    assert "X-Proxy" not in output.content.metadata["_response.headers_"][0]
    assert [asked[1:3] for asked in proxy.asked] == [
        ("far.example", 443),
        ("elsewhere.example", 443),
    ]
    assert wrong.content is None and "SSL connect to https://elsewhere.example/ok failed" in str(
        wrong.status
    )


async def test_a_tunnel_that_is_refused(server: MisbehavingServer) -> None:
    with ProxyServer(server.port, refuse=True) as proxy:
        output = await through(proxy, "https://far.example/ok")
    assert output.content is None
    assert str(output.status).startswith("exception(16)") and "403" in str(output.status)


async def test_a_proxy_that_is_not_there(server: MisbehavingServer) -> None:
    with ProxyServer(server.port) as proxy:
        pass
    output = await through(proxy, "http://far.example/x")
    assert "java.net.ConnectException" in str(output.status)


async def test_hosts_that_are_excepted_go_straight(server: MisbehavingServer) -> None:
    with ProxyServer(server.port) as proxy:
        output = await through(
            proxy, server.url("x"), http__proxy__exception__list="*.example,127.*"
        )
    assert output.status.is_success
    assert proxy.asked == []
