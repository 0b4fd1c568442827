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
from minutch.records import crawldatum as status
from minutch.records.crawldatum import CrawlDatum
from minutch.records.protocol import Content
from plugins.lib_http.failures import refusal_of_proxy
from plugins.protocol_http.http import Http
from tests.support.misbehaving import MisbehavingServer, page
from tests.support.proxyserver import ProxyServer
from tests.support.segments import conf_for, fetch_segment, fetched, make_segment


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


ERROR = "Proxy-Status: cdn; received-status=200, ours; error=connection_refused"


@pytest.mark.parametrize("url", ["http://far.example/ok", "https://far.example/ok"])
@pytest.mark.parametrize(
    ("own", "says"),
    [
        (page(b"p", status="407 Login"), "notfetching(20), lastModified=0: HTTP 407 of the proxy"),
        (page(b"p", status="511 Login"), "notfetching(20), lastModified=0: HTTP 511"),
        (page(b"p", ERROR, status="502 Bad"), "ConnectException: HTTP 502 of the proxy"),
        (page(b"p", ERROR, status="504 Slow"), "ConnectException: HTTP 504 of the proxy"),
        (page(b"p", "X-Squid-Error: ERR 1", status="503 No"), "HTTP 503 of the proxy"),
        (page(b"p", "X-Squid-Error: ERR 0", status="403 No"), "HTTP 403 of the proxy"),
        (
            page(b"p", "Proxy-Status: us; error=proxy_loop", status="404 No"),
            "HTTP 404 of the proxy",
        ),
    ],
)
async def test_what_the_proxy_says_itself_is_no_answer_of_the_server(
    url: str, own: bytes, says: str
) -> None:
    """It is not stored, nor taken for a robots.txt."""
    with ProxyServer(0, own=own) as proxy:
        conf = conf_for(
            http__proxy__host="localhost",
            http__proxy__port=str(proxy.port),
            http__robots__unreachable__allow="false",
        )
        protocol = Http(conf, {})
        output = await protocol.get_protocol_output(url, CrawlDatum())
        contents: list[Content] = []
        rules = await protocol.get_robot_rules(url, CrawlDatum(), contents)
        await protocol.close()
    assert output.content is None and says in str(output.status)
    assert says in str(getattr(rules, "failure", None)) and not contents
    assert not rules.is_allowed(url) and rules.defer_visits is ("notfetching" in says)


@pytest.mark.parametrize(
    ("code", "line", "is_own"),
    [
        (502, "Via: 1.1 us", False),
        (502, 'Proxy-Status: cdn; error=dns_error, us; details="; error=x, y"', False),
        (502, "Proxy-Status: us;error=dns_error", True),
        (403, "Proxy-Status: us; error=http_request_denied", True),
        (404, "Proxy-Status: us; received-status=404", False),
        (200, "Proxy-Status: us; error=http_response_incomplete", False),
    ],
)
def test_what_shows_that_a_proxy_has_not_reached_the_server(
    code: int, line: str, is_own: bool
) -> None:
    assert (refusal_of_proxy(code, [line.encode()], True) is not None) is is_own
    assert refusal_of_proxy(code, [line.encode()], False) is None


@pytest.mark.parametrize("url", ["http://far.example/x", "https://far.example/ok"])
def test_forbidden_pages_are_not_fetched_when_the_password_is_right_again(
    authority: tuple[trustme.CA, Path], tmp_path: Path, url: str
) -> None:
    """A 407 was taken for "no robots.txt", for a day; and no step is made towards gone."""
    ca, path = authority
    tls = certified(ca, "far.example") if url.startswith("https") else None
    with MisbehavingServer(tls=tls) as server, ProxyServer(server.port) as proxy:
        for name in ("/robots.txt", "http://far.example/robots.txt"):
            server.pages[name] = page(b"User-agent: *\nDisallow: /", "Content-Type: text/plain")
        conf = conf_for(
            http__proxy__host="localhost",
            http__proxy__port=str(proxy.port),
            http__tls__ca__file=str(path),
            http__robots__503__defer__visits__wait="0",
        )
        state = tmp_path / "state"
        proxy.own = page(b"", status="407 Proxy Authentication Required")
        locked = make_segment(tmp_path / "locked", [url])
        fetch_segment(locked, conf.with_values({"minutch.fetch.state": str(state)}))
        before = dict(server.requests)
        assert Http(conf, {}).known_robots(url, state) is None
        proxy.own = b""
        opened = make_segment(tmp_path / "opened", [url])
        fetch_segment(opened, conf)
    assert before == {} and len(server.requests) == 1  # the robots.txt alone
    assert fetched(locked)[url][-1].status == status.STATUS_LINKED
    assert "HTTP 407 of the proxy" in str(fetched(locked)[url][-1].metadata)
    assert fetched(opened)[url][-1].status == status.STATUS_FETCH_GONE


async def test_a_tunnel_that_is_refused(server: MisbehavingServer) -> None:
    with ProxyServer(server.port, own=page(b"", status="403 No")) as proxy:
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


@pytest.mark.parametrize("host", ["a b.example", 'a"b', "a\\b", "a|b", "<a>", "a^", "\x80.example"])
async def test_a_host_that_no_request_can_name_is_not_asked_for(host: str) -> None:
    with ProxyServer(0) as proxy:
        output = await through(proxy, f"http://{host}/")
    assert "UnknownHostException" in str(output.status) and proxy.asked == []
