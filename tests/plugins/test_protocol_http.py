"""protocol-http: requests and answers over httpx.MockTransport, respx and the real transport."""

from __future__ import annotations

import asyncio
import gzip
import re
import ssl
import zlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from urllib.parse import unquote_to_bytes

import httpx
import pytest
import respx
import trustme
from hypothesis import given
from hypothesis import strategies as st

from minutch.conf import Configuration
from minutch.errors import ConfigError
from minutch.hadoop.formats.writables import Text
from minutch.plugin.points import Protocol, ProtocolOutput
from minutch.plugin.protocolfactory import ProtocolFactory, output_of
from minutch.records import validators
from minutch.records.crawldatum import STATUS_DB_DUPLICATE, STATUS_DB_GONE, CrawlDatum
from minutch.records.protocol import is_truncated
from plugins.lib_http.credentials import Credentials, Scope
from plugins.lib_http.exchange import request_target
from plugins.protocol_http.http import Http
from tests.support.misbehaving import MisbehavingServer, page
from tests.support.segments import conf_for
from tests.support.validated import holding

Handler = Callable[[httpx.Request], httpx.Response]


def made(handler: Handler | httpx.AsyncBaseTransport, **values: str) -> Http:
    transport = (
        handler if isinstance(handler, httpx.AsyncBaseTransport) else httpx.MockTransport(handler)
    )
    return Http(conf_for(**values).with_values({"http.agent.version": "1"}), {}, transport)


async def get(protocol: Protocol, url: str, datum: CrawlDatum | None = None) -> ProtocolOutput:
    return await protocol.get_protocol_output(url, CrawlDatum() if datum is None else datum)


async def status(handler: Handler, url: str = "http://a.example/x", **values: str) -> str:
    return str((await get(made(handler, **values), url)).status)


def answer(
    code: int = 200, headers: Mapping[str, str] | None = None, content: bytes = b"page"
) -> Handler:
    return lambda request: httpx.Response(code, headers=headers, content=content)


# -- the answer ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("code", "headers", "text"),
    [
        (200, {}, "success(1), lastModified=0"),
        (
            200,
            {"Last-Modified": "Wed, 01 Jan 2025 10:20:30 GMT"},
            "success(1), lastModified=1735726830000",
        ),
        (200, {"Last-Modified": "yesterday"}, "success(1), lastModified=0"),
        (300, {"Location": "/y"}, "moved(12), lastModified=0: http://a.example/y"),
        (301, {"Location": "http://b.example/"}, "moved(12), lastModified=0: http://b.example/"),
        (302, {"location": "y?z"}, "temp_moved(13), lastModified=0: http://a.example/y?z"),
        (303, {"Location": "//c.example"}, "temp_moved(13), lastModified=0: http://c.example"),
        (304, {}, "exception(16), lastModified=0: Http code=304, url=http://a.example/x"),
        (305, {"Location": "/y"}, "moved(12), lastModified=0: http://a.example/y"),
        (307, {"Location": "/y"}, "temp_moved(13), lastModified=0: http://a.example/y"),
        (308, {"Location": "/y"}, "moved(12), lastModified=0: http://a.example/y"),
        (302, {}, "temp_moved(13), lastModified=0: http://a.example/x"),
        (
            302,
            {"Location": "nosuch:x"},
            "exception(16), lastModified=0: java.net.MalformedURLException",
        ),
        (400, {}, "gone(11), lastModified=0: http://a.example/x"),
        (401, {}, "access_denied(17), lastModified=0: Authentication required: http://a.example/x"),
        (404, {}, "notfound(14), lastModified=0: http://a.example/x"),
        (410, {}, "gone(11), lastModified=0: Http: 410 url=http://a.example/x"),
        (403, {}, "exception(16), lastModified=0: Http code=403, url=http://a.example/x"),
        (204, {}, "exception(16), lastModified=0: Http code=204, url=http://a.example/x"),
        (503, {}, "exception(16), lastModified=0: Http code=503, url=http://a.example/x"),
    ],
)
async def test_codes(code: int, headers: dict[str, str], text: str) -> None:
    assert await status(answer(code, headers)) == text


async def test_codes_of_pages() -> None:
    """http.page.codes: RFC 9110, 15.3."""
    for code, is_page in ((200, True), (201, True), (203, True), (202, False), (206, False)):
        text = await status(answer(code), **{"http.page.codes": "200, 201,203"})
        assert text.startswith("success" if is_page else "exception"), code
    with pytest.raises(ConfigError, match=r"http\.page\.codes .*from 200 to 299, found '302'"):
        await status(answer(302), **{"http.page.codes": "200,302"})


@pytest.mark.parametrize(
    ("target", "whatwg", "url"),
    [
        ("///b.example/x", "true", "http://b.example/x"),
        ("\\\\b.example\\x", "true", "http://b.example/x"),
        ("/a\tb", "true", "http://a.example/ab"),
        ("?y", "false", "http://a.example/x?y"),
        ("mailto:x", "true", None),
        ("http://", "true", None),
        ("http://", "false", None),
        ("///b.example/x", "false", None),
    ],
)
async def test_where_redirects_lead(target: str, whatwg: str, url: str | None) -> None:
    """URL Standard, 4.4; RFC 3986, 5.2.2 (a query alone keeps the path); RFC 9110, 4.2.1 (a host
    must not be empty).
    """
    found = await status(
        answer(302, {"Location": target}), **{"parser.html.outlinks.whatwg": whatwg}
    )
    assert found.startswith("temp_moved" if url else "exception")
    assert url is None or found.endswith(f": {url}")


X = "http://a.example/x"
OLD, NEWER = "Wed, 01 Jan 2025 10:20:30 GMT", "Wed, 01 Jan 2025 10:20:31 GMT"


@pytest.mark.parametrize(
    ("tag", "date", "headers", "confirms"),
    [
        ('"1"', OLD, {}, True),
        ("", OLD, {}, True),
        ("", OLD, {"Last-Modified": OLD}, True),
        ("", OLD, {"Last-Modified": "Wed, 01 Jan 2025 10:20:30 UTC"}, True),
        ("", OLD, {"Last-Modified": NEWER}, False),
        ("", OLD, {"Last-Modified": "nonsense"}, True),
        ("", OLD, {"ETag": '"1"'}, True),
        ('"1"', OLD, {"ETag": '"1"', "Last-Modified": NEWER}, True),
        ('"1"', OLD, {"ETag": 'W/"1"'}, True),
        ('"1-gzip"', OLD, {"ETag": '"1"'}, True),
        ('"1"', OLD, {"ETag": '"2"', "Last-Modified": OLD}, False),
        ('"1"', "", {"ETag": '"2"'}, False),
        ('"1"', "", {"ETag": "*"}, True),
        ("", "", {}, False),
    ],
)
async def test_304_speaks_of_the_copy_that_is_held(
    tag: str, date: str, headers: dict[str, str], confirms: bool
) -> None:
    """RFC 9110, 15.4.5, and RFC 9111, 4.3.4; else it is a failure, and the validators go."""
    datum = holding(X, tag=tag, date=date) if tag or date else CrawlDatum(modified_time=1)
    output = await get(made(answer(304, headers)), X, datum)
    failure = f"exception(16), lastModified=0: Http code=304, url={X}"
    said = f"notmodified(21), lastModified=0: {X}" if confirms else failure
    assert str(output.status) == said
    assert (validators.held(X, datum) is not None) is confirms


async def test_a_page_and_its_metadata() -> None:
    protocol = made(answer(200, {"content-type": "text/html", "x-a": "1"}, b"<p>"))
    datum = CrawlDatum()
    output = await get(protocol, "http://a.example/x#f", datum)
    assert output.content is not None
    assert (output.content.url, output.content.base) == (
        "http://a.example/x#f",
        "http://a.example/x#f",
    )
    assert (output.content.content, output.content.content_type) == (b"<p>", "text/html")
    metadata = output.content.metadata
    assert metadata["Content-Type"] == ["text/html"] and metadata["x-a"] == ["1"]
    assert metadata.get("nutch.fetch.time", "").isdigit()  # type: ignore[union-attr]
    assert datum.metadata.get_text("nutch.protocol.code") == "200"
    assert int(datum.metadata.get_text("_rs_") or "") >= 0


async def test_what_is_stored_on_demand() -> None:
    handler = answer(200, {"Content-Type": "text/html"}, b"<p>")
    values = {
        "store.http.headers": "true",
        "store.http.request": "true",
        "store.protocol.versions": "true",
    }
    protocol = Http(
        conf_for().with_values(values | {"http.agent.version": "1"}),
        {},
        httpx.MockTransport(handler),
    )
    output = await get(protocol, "http://a.example:8080/x?y")
    assert output.content is not None
    metadata = output.content.metadata
    assert metadata["_response.headers_"] == [
        "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: 3\r\n\r\n"
    ]
    assert metadata["_request_"] == [
        "GET /x?y HTTP/1.1\r\nHost: a.example:8080\r\nAccept-Encoding: x-gzip, gzip, deflate\r\n"
        "User-Agent: minutch-test/1\r\nAccept-Language: en-us,en-gb,en;q=0.7,*;q=0.3\r\n"
        "Accept-Charset: utf-8,iso-8859-1;q=0.7,*;q=0.7\r\n"
        "Accept: text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8\r\n\r\n"
    ]
    assert metadata["_protocol_versions_"] == ["http/1.1"]


async def test_response_time_may_stay_out() -> None:
    datum = CrawlDatum()
    await get(made(answer(), http__store__responsetime="false"), "http://a.example/", datum)
    assert datum.metadata.get_text("_rs_") is None


async def test_content_is_cut_at_the_limit_and_marked() -> None:
    protocol = made(answer(200, {}, b"x" * 100), http__content__limit="10")
    content = (await get(protocol, "http://a.example/")).content
    assert content is not None and content.content == b"x" * 10
    assert content.metadata["http.content.truncated"] == ["true"]
    assert content.metadata["http.content.truncated.reason"] == ["length"]
    unlimited = await get(
        made(answer(200, {}, b"x" * 100), http__content__limit="-1"), "http://a.example/"
    )
    assert unlimited.content is not None and len(unlimited.content.content) == 100
    exact = await get(
        made(answer(200, {}, b"x" * 10), http__content__limit="10"), "http://a.example/"
    )
    assert exact.content is not None and "http.content.truncated" not in exact.content.metadata


async def test_codings_are_undone() -> None:
    protocol = made(answer(200, {"Content-Encoding": "gzip"}, gzip.compress(b"page")))
    content = (await get(protocol, "http://a.example/")).content
    assert content is not None and content.content == b"page"


class Breaking(httpx.AsyncByteStream):
    def __init__(self, error: Exception) -> None:
        self.error = error

    async def __aiter__(self):  # type: ignore[no-untyped-def]
        yield b"begun"
        raise self.error


@pytest.mark.parametrize(
    ("code", "error", "partial", "expected"),
    [
        (200, httpx.ReadError("Connection reset"), "false", "exception(16)"),
        (200, httpx.ReadError("Connection reset"), "true", "success(1)"),
        (200, httpx.RemoteProtocolError("closed"), "false", "success(1)"),
        (404, httpx.ReadError("Connection reset"), "false", "notfound(14)"),
    ],
)
async def test_content_that_breaks_off(
    code: int, error: Exception, partial: str, expected: str
) -> None:
    def handler(request: httpx.Request) -> httpx.Response:
        return httpx.Response(code, stream=Breaking(error))

    protocol = made(handler, http__partial__truncated=partial)
    output = await get(protocol, "http://a.example/")
    assert str(output.status).startswith(expected)
    if partial == "true":
        assert output.content is not None and output.content.content == b"begun"
        assert output.content.metadata["http.content.truncated.reason"] == ["disconnect"]


async def test_failures_become_a_status() -> None:
    def handler(request: httpx.Request) -> httpx.Response:
        raise httpx.ConnectTimeout("slow")

    text = await status(handler)
    assert (
        text == "exception(16), lastModified=0: java.net.SocketTimeoutException: Connect timed out"
    )
    assert "UnknownHostException: -ü.example" in await status(answer(), "http://-ü.example/")
    assert "MalformedURLException" in await status(answer(), "nonsense")


# -- the request -----------------------------------------------------------------------------------


async def sent(
    url: str = "http://a.example/", datum: CrawlDatum | None = None, **values: str
) -> httpx.Request:
    requests: list[httpx.Request] = []

    def handler(request: httpx.Request) -> httpx.Response:
        requests.append(request)
        return httpx.Response(200)

    await get(made(handler, **values), url, datum)
    return requests[0]


async def test_headers_in_nutchs_order() -> None:
    request = await sent()
    assert [name.decode() for name, _ in request.headers.raw] == [
        "Host", "Accept-Encoding", "User-Agent", "Accept-Language", "Accept-Charset", "Accept",
    ]  # fmt: skip


@pytest.mark.parametrize(("tag", "date"), [('"v1"', OLD), ('W/"v\xe9"', ""), ("", OLD)])
async def test_validators(tag: str, date: str) -> None:
    url = "http://a.example/"
    datum = holding(url, tag=tag, date=date)

    async def conditions(datum: CrawlDatum, url: str = url, **values: str) -> tuple[str, str]:
        raw = dict((await sent(url, datum=datum, **values)).headers.raw)
        return tuple(  # type: ignore[return-value]
            raw.get(name, b"").decode("latin-1")
            for name in (b"If-None-Match", b"If-Modified-Since")
        )

    assert await conditions(datum) == (tag, date)
    none = ("", "")
    assert await conditions(datum, http__enable__if__modified__since__header="false") == none
    nutchs = CrawlDatum(modified_time=1_735_726_830_000)
    assert await conditions(nutchs) == none
    assert await conditions(nutchs, http__store__etag="false") == ("", OLD)
    assert await conditions(datum, "http://a.example/other") == none
    for changes in (
        {"status": STATUS_DB_DUPLICATE},
        {"status": STATUS_DB_GONE},
        {"fetch_time": datum.fetch_time + 1},
        {"signature": b"t" * 16},
        {"signature": None},
    ):
        assert await conditions(replace(datum, **changes)) == none  # type: ignore[arg-type]


async def test_cookies(tmp_path: Path) -> None:
    datum = CrawlDatum()
    datum.metadata[Text("Cookie")] = Text("k=datum")
    assert (await sent(datum=datum)).headers["Cookie"] == "k=datum"
    assert "Cookie" not in (await sent(datum=datum, http__enable__cookie__header="false")).headers


@pytest.mark.parametrize(
    ("url", "target"),
    [
        ("http://a.example", b"/"),
        ("http://a.example?q", b"/?q"),
        ("http://a.example/a b|c\\d", b"/a%20b%7Cc%5Cd"),
        ("http://a.example/a\r\nX: y\t\x00\x7f", b"/a%0D%0AX:%20y%09%00%7F"),
        ("http://a.example/\u00e9", b"/%C3%A9"),
        ("http://a.example/a/../b/./c#f", b"/a/../b/./c"),
        ("http://a.example/%zz%", b"/%25zz%25"),
        ("http://a.example/%2f?[x]={y}&z='~", b"/%2f?%5Bx%5D=%7By%7D&z='~"),
        ("http://a.example/\udcff\ud800", b"/%FF%EF%BF%BD"),
    ],
)
async def test_targets_are_sent_as_they_are_where_they_may_be(url: str, target: bytes) -> None:
    assert (await sent(url)).extensions["target"] == target


@given(st.text(st.characters(exclude_categories=())))
def test_every_target_is_one(file: str) -> None:
    """RFC 9112, 3.2.1; and it means what the URL means."""
    target = request_target(file)
    assert re.fullmatch(r"/(?:[A-Za-z0-9\-._~!$&'()*+,;=:@/?]|%[0-9A-Fa-f]{2})*", target)
    meant = file if file.startswith("/") else f"/{file}"
    octets = meant.encode("utf-8", "surrogateescape") if _is_text(meant) else None
    assert octets is None or unquote_to_bytes(target) == unquote_to_bytes(octets)


def _is_text(text: str) -> bool:
    try:
        text.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        return False
    return True


async def test_respx_routes() -> None:
    router = respx.Router()
    router.get("http://a.example/robots.txt").respond(200, text="User-agent: *\nDisallow: /no")
    page_route = router.get("http://a.example/yes").respond(200, html="<p>yes</p>")
    protocol = made(httpx.MockTransport(router.async_handler))
    rules = await protocol.get_robot_rules("http://a.example/yes", CrawlDatum(), None)
    assert rules.is_allowed("http://a.example/yes") and not rules.is_allowed("http://a.example/no")
    output = await get(protocol, "http://a.example/yes")
    assert output.content is not None and output.content.content == b"<p>yes</p>"
    assert page_route.call_count == 1


async def test_proxy_goes_along() -> None:
    values = {"http__proxy__host": "proxy.example", "http__proxy__port": "3128"}
    assert (await sent(**values)).extensions["proxy"] == "http://proxy.example:3128"
    values["http__proxy__exception__list"] = "a.*"
    assert (await sent(**values)).extensions["proxy"] == ""


# -- the real transport ----------------------------------------------------------------------------


@pytest.fixture
def server() -> Iterator[MisbehavingServer]:
    with MisbehavingServer() as running:
        running.pages["/kept"] = b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nkept"
        yield running


async def serve_kept(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter, target: str
) -> None:
    while True:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nkept")


async def test_connections_are_kept(server: MisbehavingServer) -> None:
    server.answer_all = serve_kept
    protocol = Http(conf_for(), {})
    for _ in range(5):
        assert (await get(protocol, server.url("kept"))).status.is_success
    await protocol.close()
    assert server.connections == 1


async def test_a_kept_connection_that_was_closed_costs_no_page(server: MisbehavingServer) -> None:
    protocol = Http(conf_for(), {})
    outputs = [
        await output_of(protocol, server.url("kept"), CrawlDatum(), rest=0) for _ in range(5)
    ]
    await protocol.close()
    assert all(output.status.is_success for output in outputs)
    assert server.connections >= 5


async def test_loopback_is_out_of_bounds_by_default(server: MisbehavingServer) -> None:
    conf = conf_for().with_values({"http.filter.ipaddress.include": ""})
    protocol = Http(conf, {})
    for host in ("127.0.0.1", "localhost", "2130706433", "0x7f.1", "[::ffff:127.0.0.1]"):
        output = await get(protocol, f"http://{host}:{server.port}/ok")
        assert output.content is None, host
    output = await get(protocol, f"http://127.0.0.1:{server.port}/ok")
    assert "Forbidden connection to IP address 127.0.0.1" in str(output.status)
    await protocol.close()
    assert server.connections == 0


async def test_the_transport_keeps_bounds_and_names_failures(server: MisbehavingServer) -> None:
    protocol = Http(
        conf_for(http__content__limit="1000", store__ip__address="true"),
        {},
    )
    output = await get(protocol, server.url("chunked"))
    assert output.status.is_success
    assert output.content is not None and output.content.metadata["_ip_"] == ["127.0.0.1"]
    endless = await get(protocol, server.url("endless-body"))
    assert endless.content is not None and endless.content.content == b"x" * 1000
    refused = await get(protocol, "http://127.0.0.1:1/")
    assert "java.net.ConnectException" in str(refused.status)
    unknown = await get(protocol, "http://no-such-host.invalid/")
    assert "java.net.UnknownHostException: no-such-host.invalid" in str(unknown.status)
    await protocol.close()


async def test_target_bytes_reach_the_server(server: MisbehavingServer) -> None:
    protocol = Http(conf_for(), {})
    await get(protocol, server.url("a/../b?c=\u00e9|[]#f"))
    await protocol.close()
    assert list(server.requests) == ["/a/../b?c=%C3%A9%7C%5B%5D"]


async def test_trailers_are_no_metadata(server: MisbehavingServer) -> None:
    """RFC 9110, 6.5.1: a recipient must not merge a trailer that is not known to be safe."""
    server.pages["/t"] = (
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTrailer: X-Robots-Tag\r\n"
        b"X-Kept: 1\r\n\r\n1\r\na\r\n0\r\nX-Robots-Tag: noindex\r\nX-Kept: 2\r\n\r\n"
    )
    protocol = Http(conf_for(), {})
    output = await get(protocol, server.url("t"))
    await protocol.close()
    assert output.content is not None
    assert output.content.content == b"a"
    assert output.content.metadata.field_values("x-robots-tag") == []
    assert output.content.metadata.field_values("x-kept") == ["1"]


@pytest.mark.parametrize(
    ("location", "target"),
    [
        ("/caf\u00e9/\u65e5".encode(), "/caf\u00e9/\u65e5"),
        (b"/jos\xe9", "/jos%E9"),
        (b"/caf%C3%A9", "/caf%C3%A9"),
    ],
)
async def test_raw_bytes_in_a_redirect(
    server: MisbehavingServer, location: bytes, target: str
) -> None:
    """UTF-8, as browsers read it; bytes that are none are escaped one by one (RFC 3986, 2.1)."""
    server.pages["/from"] = (
        b"HTTP/1.1 302 Found\r\nLocation: " + location + b"\r\nContent-Length: 0\r\n\r\n"
    )
    protocol = Http(conf_for(), {})
    output = await get(protocol, server.url("from"))
    await protocol.close()
    assert output.status.args == [server.url("x").removesuffix("/x") + target]


@pytest.mark.parametrize(
    ("lines", "body"),
    [
        (("Content-Encoding: gzip",), gzip.compress(b"tiny")),
        (
            ("Content-Encoding: gzip", "Content-Encoding: gzip"),
            gzip.compress(gzip.compress(b"tiny")),
        ),
        (
            ("Content-Encoding: deflate", "content-encoding:gzip"),
            gzip.compress(zlib.compress(b"tiny")),
        ),
    ],
    ids=["one", "two", "mixed"],
)
async def test_a_page_that_is_smaller_than_its_gzip_is_not_cut_off(
    server: MisbehavingServer, lines: tuple[str, ...], body: bytes
) -> None:
    head = "".join(f"{line}\r\n" for line in lines)
    server.pages["/stub"] = (
        f"HTTP/1.1 200 OK\r\n{head}Content-Length: {len(body)}\r\n\r\n".encode() + body
    )
    protocol = Http(conf_for(), {})
    content = (await get(protocol, server.url("stub"))).content
    await protocol.close()
    assert content is not None and content.content == b"tiny"
    assert not is_truncated(content)


async def test_content_that_was_cut_off_is(server: MisbehavingServer) -> None:
    server.pages["/cut"] = b"HTTP/1.1 200 OK\r\nContent-Length: 400\r\n\r\nshort"
    protocol = Http(conf_for(), {})
    content = (await get(protocol, server.url("cut"))).content
    await protocol.close()
    assert content is not None and content.content == b"short" and is_truncated(content)


@pytest.mark.parametrize("start", ["a", "?q="])
async def test_a_url_is_one_request(server: MisbehavingServer, start: str) -> None:
    """Whatever filters let through: line breaks in it end no request line, and begin no second
    request.
    """
    heads: list[bytes] = []

    async def keeps(
        reader: asyncio.StreamReader, writer: asyncio.StreamWriter, target: str
    ) -> None:
        while True:
            heads.append(await reader.readuntil(b"\r\n\r\n"))
            writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nkept")

    server.answer_all = keeps
    url = server.url(
        f"{start} HTTP/1.1\r\nHost: x\r\n\r\nGET /smuggled HTTP/1.1\r\nHost: x\r\n\r\n"
    )
    datum = CrawlDatum()
    datum.metadata[Text("Cookie")] = Text("k=v\r\nX-Cookie: smuggled")
    protocol = Http(conf_for(), {})
    output = await get(protocol, url, datum)
    await protocol.close()
    assert output.status.is_success
    assert server.connections == len(heads) == 1
    assert not any(b"smuggled" in head.partition(b"\r\n")[2] and b"\nX-" in head for head in heads)


async def test_through_a_proxy(server: MisbehavingServer) -> None:
    server.pages["http://far.example/x"] = page(b"by proxy")
    conf = conf_for(http__proxy__host="127.0.0.1", http__proxy__port=str(server.port))
    protocol = Http(conf.with_values({"http.filter.ipaddress.include": ""}), {})
    output = await get(protocol, "http://far.example/x")
    await protocol.close()
    assert output.content is not None and output.content.content == b"by proxy"


async def test_a_cancelled_fetch_leaves_the_transport_whole(server: MisbehavingServer) -> None:
    server.hold = {"/held"}
    protocol = Http(conf_for(), {})
    task = asyncio.create_task(get(protocol, server.url("held")))
    await asyncio.to_thread(server.held.acquire, timeout=30)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert (await get(protocol, server.url("ok"))).status.is_success
    await protocol.close()


def test_the_plugin_is_found() -> None:
    factory = ProtocolFactory(conf_for())
    for url in ("http://a.example/", "https://a.example/"):
        assert type(factory.get_protocol(url)).__name__ == "Http"
    assert type(factory.get_protocol("file:/x")).__name__ == "File"


@pytest.mark.parametrize("name", ["http.Http", "okhttp.OkHttp", "httpclient.Http"])
def test_host_mappings_name_it_as_nutch_names_its_clients(tmp_path: Path, name: str) -> None:
    mapping = f"a.example\torg.apache.nutch.protocol.{name}\nprotocol:http\torg.apache.nutch.protocol.file.File\n"  # noqa: E501
    (tmp_path / "host-protocol-mapping.txt").write_text(mapping)
    includes = {"plugin.includes": "protocol-(http|file)", "http.agent.name": "x"}
    factory = ProtocolFactory(Configuration.load([tmp_path], overrides=includes))
    assert type(factory.get_protocol("http://a.example/")).__name__ == "Http"
    assert type(factory.get_protocol("http://b.example/")).__name__ == "File"


# -- TLS -------------------------------------------------------------------------------------------


def tls(ca: trustme.CA, *names: str, **more: object) -> ssl.SSLContext:
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    ca.issue_cert(*names, **more).configure_cert(context)  # type: ignore[arg-type]
    return context


async def over_tls(
    server: MisbehavingServer, ca: Path, name: str = "ok", **values: str
) -> ProtocolOutput:
    conf = conf_for(**values).with_values(
        {"http.tls.ca.file": str(ca), "store.protocol.versions": "true"}
    )
    protocol = Http(conf, {})
    try:
        return await get(protocol, server.url(name, "localhost"))
    finally:
        await protocol.close()


async def test_a_good_certificate(authority: tuple[trustme.CA, Path]) -> None:
    ca, path = authority
    with MisbehavingServer(tls=tls(ca, "localhost")) as server:
        output = await over_tls(server, path)
    assert output.status.is_success, str(output.status)
    assert output.content is not None
    metadata = output.content.metadata
    assert metadata["_protocol_versions_"][0] in ("http/1.1,TLSv1.3", "http/1.1,TLSv1.2")
    assert (
        metadata["_cipher_suites_"][0].startswith("TLS_") or "-" in metadata["_cipher_suites_"][0]
    )
    assert metadata["_tls_verdict_"] == ["verified"]


@pytest.mark.parametrize("fault", ["wrong name", "expired", "unknown authority"])
async def test_bad_certificates(authority: tuple[trustme.CA, Path], fault: str) -> None:
    import datetime

    ca, path = authority
    past = datetime.datetime(2020, 1, 1, tzinfo=datetime.UTC)
    context = {
        "wrong name": lambda: tls(ca, "other.example"),
        "expired": lambda: tls(
            ca, "localhost", not_before=past, not_after=past + datetime.timedelta(days=1)
        ),
        "unknown authority": lambda: tls(trustme.CA(), "localhost"),
    }[fault]()
    with MisbehavingServer(tls=context) as server:
        output = await over_tls(server, path)
        assert output.content is None
        assert "HttpException: SSL connect to https://localhost" in str(output.status)
        trusting = await over_tls(server, path, http__tls__certificates__check="false")
    assert trusting.status.is_success
    assert trusting.content is not None and trusting.content.metadata["_tls_verdict_"] == [
        "not checked"
    ]


@pytest.mark.parametrize(
    "greeting", [b"", b"\x15\x03\x01\x00\x02\x02\x28", b"HTTP/1.1 200 OK\r\n\r\n", b"\0" * 100]
)
async def test_no_tls_at_the_other_end(authority: tuple[trustme.CA, Path], greeting: bytes) -> None:
    async def greets(
        reader: asyncio.StreamReader, writer: asyncio.StreamWriter, target: str
    ) -> None:
        writer.write(greeting)

    with MisbehavingServer(answer_all=greets) as server:
        protocol = Http(conf_for(), {})
        output = await get(protocol, f"https://127.0.0.1:{server.port}/")
        await protocol.close()
    assert output.content is None
    assert str(output.status).startswith("exception(16)")


# -- names and passwords ---------------------------------------------------------------------------

AUTH = """<auth-configuration>
<credentials username="u" password="p"><authscope host="a.example" realm="r"/></credentials>
<credentials username="d" password="q"><default scheme="basic"/></credentials>
</auth-configuration>"""


def with_file(tmp_path: Path, text: str, handler: Handler) -> Http:
    (tmp_path / "httpclient-auth.xml").write_text(text)
    conf = Configuration.load([tmp_path]).with_values(
        {"http.agent.name": "x", "http.agent.version": "1"}
    )
    return Http(conf, {}, httpx.MockTransport(handler))


def asking(challenge: str) -> tuple[Handler, list[str]]:
    seen: list[str] = []

    def handler(request: httpx.Request) -> httpx.Response:
        given = request.headers.get("Authorization", "")
        seen.append(given)
        return (
            httpx.Response(200)
            if given
            else httpx.Response(401, headers={b"WWW-Authenticate": challenge.encode()})
        )

    return handler, seen


async def test_basic_authentication(tmp_path: Path) -> None:
    handler, seen = asking('Basic realm="r"')
    protocol = with_file(tmp_path, AUTH, handler)
    assert (await get(protocol, "http://a.example/")).status.is_success
    assert (await get(protocol, "http://a.example/2")).status.is_success
    assert seen == ["", "Basic dTpw", "Basic dTpw"]


async def test_a_digest_is_of_the_target_that_is_sent() -> None:
    """RFC 7616, 3.4: servers refuse one of another; it was of "/" for each page."""
    challenge = 'WWW-Authenticate: Digest realm="r", nonce="n", qop="auth"'
    asked: list[tuple[str, str]] = []

    async def answer(
        reader: asyncio.StreamReader, writer: asyncio.StreamWriter, target: str
    ) -> None:
        request = (await reader.readuntil(b"\r\n\r\n")).decode()
        found = re.search('uri="(.*?)"', request)
        asked.append((request.split(" ")[1], "" if found is None else found[1]))
        writer.write(page(b"ok") if found else page(b"", challenge, status="401 No"))

    with MisbehavingServer(answer_all=answer) as server:
        protocol = Http(conf_for(), {})
        protocol.credentials = Credentials([Scope("u", "p", "127.0.0.1")])
        for name in ("a b?q='1'", "c[d]"):
            assert (await get(protocol, server.url(name))).status.is_success
        await protocol.close()
    first, second = "/a%20b?q='1'", "/c%5Bd%5D"
    assert asked == [(first, ""), (first, first), (second, second)]


async def test_digest_authentication(tmp_path: Path) -> None:
    handler, seen = asking(
        'Basic realm="x", Digest realm="r", nonce="n", qop="auth", algorithm=MD5'
    )
    assert (await get(with_file(tmp_path, AUTH, handler), "http://a.example/")).status.is_success
    assert seen[0] == "" and seen[1].startswith(
        'Digest username="u", realm="r", nonce="n", uri="/"'
    )


@pytest.mark.parametrize(
    ("url", "challenge", "given"),
    [
        ("http://a.example/", 'Basic realm="other"', None),
        ("http://b.example/", 'Basic realm="any"', "Basic ZDpx"),
        ("http://b.example/", 'Digest realm="any", nonce="n"', None),
        ("http://b.example/", "Negotiate", None),
    ],
)
async def test_scopes(tmp_path: Path, url: str, challenge: str, given: str | None) -> None:
    handler, seen = asking(challenge)
    output = await get(with_file(tmp_path, AUTH, handler), url)
    assert seen == ([""] if given is None else ["", given])
    assert output.status.is_success is (given is not None)


async def test_wrong_passwords_are_not_sent_without_end(tmp_path: Path) -> None:
    count = 0

    def handler(request: httpx.Request) -> httpx.Response:
        nonlocal count
        count += 1
        return httpx.Response(401, headers={"WWW-Authenticate": 'Basic realm="r"'})

    output = await get(with_file(tmp_path, AUTH, handler), "http://a.example/")
    assert output.status.name == "access_denied" and count == 2


async def test_a_server_that_asks_for_what_is_not_spoken(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO")
    handler, seen = asking("NTLM")
    output = await get(with_file(tmp_path, AUTH, handler), "http://a.example/")
    assert output.status.name == "access_denied" and seen == [""]
    assert (
        "a.example asks for ntlm, which no credentials answer (spoken: digest, basic)"
        in caplog.text
    )


async def test_credentials_of_a_realm_as_properties(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO")
    values = {
        "http.auth.basic.my realm.user": "u",
        "http.auth.basic.my realm.password": "p",
        "http.auth.basic.my realm.host": "A.example, c.example",
    }
    for verbose in ("true", "false"):
        caplog.clear()
        handler, seen = asking('Basic realm="my realm"')
        conf = conf_for(http__auth__verbose=verbose).with_values(values)
        assert (
            await get(Http(conf, {}, httpx.MockTransport(handler)), "http://a.example/")
        ).status.is_success
        assert seen == ["", "Basic dTpw"]
        assert ("a.example, realm 'my realm': basic as u" in caplog.text) is (verbose == "true")
    handler, seen = asking('Basic realm="other"')
    await get(Http(conf, {}, httpx.MockTransport(handler)), "http://a.example/")
    assert seen == [""]


@pytest.mark.parametrize(("host", "given"), [("", None), ("a.example", None), ("*", "Basic dTpw")])
async def test_the_password_of_a_realm_is_for_its_hosts(
    host: str, given: str | None, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """A server that merely claims the realm is not told it."""
    properties = {"user": "u", "password": "p", "host": host}
    values = {f"http.auth.basic.r.{name}": value for name, value in properties.items()}
    handler, seen = asking('Basic realm="r"')
    conf = conf_for().with_values(values)
    await get(Http(conf, {}, httpx.MockTransport(handler)), "http://evil.example/")
    text = AUTH.replace('host="a.example"', f'host="{host}"' if host else "").replace(
        "default", "x"
    )
    handler, also = asking('Basic realm="r"')
    await get(with_file(tmp_path, text, handler), "http://evil.example/")
    assert seen == also == (["", given] if given else [""])
    words = {"": "is sent to nobody", "*": "goes to any server that asks"}.get(host, "")
    assert caplog.text.count(words) >= 2


@pytest.mark.parametrize(
    ("asked", "given"),
    [
        ("", None),
        ("=", None),
        (",", None),
        ('Digest realm="r", nonce="n", algorithm=SHA-512-256', None),
        ('Digest realm="r", nonce="n", algorithm=X, Basic realm="r"', "Basic dTpw"),
        ('Digest realm="r", nonce="n", qop="auth-int", Basic realm="r"', "Basic dTpw"),
        ('Basic realm="r", Digest realm="r", nonce="n", algorithm=X', "Basic dTpw"),
        ('Digest realm="r", Basic realm="r"', "Basic dTpw"),
        ('Digest realm="r" nonce="\u00e9", Basic realm="r"', "Basic dTpw"),
        ('Digest realm="r", nonce="n", qop="auth,auth-int", Basic realm="r"', "Digest username"),
        ('Digest realm="r", Nonce="n" , ALGORITHM="md5"', "Digest username"),
    ],
)
async def test_the_best_challenge_that_can_be_answered(
    asked: str, given: str | None, tmp_path: Path
) -> None:
    handler, seen = asking(asked)
    await get(with_file(tmp_path, AUTH, handler), "http://a.example/")
    assert [text[:15] for text in seen] == ["", *([given[:15]] if given else [])]


async def test_a_login_form(tmp_path: Path) -> None:
    requests: list[tuple[str, str, str, str]] = []

    def handler(request: httpx.Request) -> httpx.Response:
        requests.append(
            (
                request.method,
                request.url.path,
                request.headers.get("Cookie", ""),
                request.content.decode(),
            )
        )
        if request.url.path == "/login" and request.method == "GET":
            form = (
                "<form id=f action=/do><input name=user><input name=csrf value=t><input name=keep"
                " value=1></form>"
            )
            return httpx.Response(200, html=form, headers={"Set-Cookie": "s=1; Path=/"})
        if request.url.path == "/do":
            return httpx.Response(302, headers={"Location": "/home", "Set-Cookie": "s=2; HttpOnly"})
        return httpx.Response(200)

    text = """<auth-configuration><credentials authMethod="formAuth" loginUrl="http://a.example/login" loginFormId="f"
      loginRedirect="true"><loginPostData><field name="user" value="me &amp; you"/></loginPostData>
      <additionalPostHeaders><field name="User-Agent" value="browser"/></additionalPostHeaders>
      <removedFormFields><field name="keep"/></removedFormFields></credentials></auth-configuration>"""  # noqa: E501
    protocol = with_file(tmp_path, text, handler)
    await get(protocol, "http://b.example/")
    await get(protocol, "http://a.example/page")
    await get(protocol, "http://a.example/page2")
    assert requests == [
        ("GET", "/", "", ""),
        ("GET", "/login", "", ""),
        ("POST", "/do", "s=1", "user=me+%26+you&csrf=t"),
        ("GET", "/home", "s=2", ""),
        ("GET", "/page", "s=2", ""),
        ("GET", "/page2", "s=2", ""),
    ]


@pytest.mark.parametrize(
    "text",
    [
        "<auth-configuration",
        "<a><credentials authMethod='pigeon'/></a>",
        "<a><credentials username='u'><authscope port='x'/></credentials></a>",
        "<a><credentials authMethod='formAuth' loginUrl='no url'/></a>",
    ],
)
def test_a_broken_file_is_an_error_that_names_it(tmp_path: Path, text: str) -> None:
    with pytest.raises(ConfigError, match=r"httpclient-auth\.xml"):
        with_file(tmp_path, text, answer())


@pytest.mark.parametrize(
    ("suppressed", "traced"), [("java.net.UnknownHostException", False), ("", True)]
)
async def test_tracebacks_of_usual_failures_are_left_out(
    suppressed: str, traced: bool, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("DEBUG")
    conf = conf_for().with_values({"http.log.exceptions.suppress.stack": suppressed})
    await get(Http(conf, {}, httpx.MockTransport(answer())), "http://-ü.example/")
    assert "UnknownHostException" in caplog.text
    assert ("Traceback" in caplog.text) is traced
