"""TLS versions and suites by Java's names, HTTP/2, and the pool of connections."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

import h2.connection
import h2.errors
import pytest
import trustme

from minutch.conf import Configuration
from minutch.errors import ConfigError
from minutch.plugin.points import ProtocolOutput
from minutch.records import crawldatum as status
from minutch.records.crawldatum import CrawlDatum
from minutch.records.protocol import is_truncated
from plugins.lib_http.curlslot import CurlSettings
from plugins.lib_http.curltransport import CurlTransport
from plugins.lib_http.exchange import Order
from plugins.lib_http.resolver import ResolverCache
from plugins.lib_http.settings import HttpSettings
from plugins.lib_http.tls import TlsSettings, java_name, openssl_name
from plugins.protocol_http.http import Http
from tests.support.examples import tabled
from tests.support.h2server import H2Server
from tests.support.misbehaving import MisbehavingServer
from tests.support.segments import conf_for, fetch_segment, fetched, make_segment


def server_side(ca: trustme.CA, **attributes: object) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    ca.issue_cert("localhost").configure_cert(context)
    for name, value in attributes.items():
        setattr(context, name, value)
    return context


async def fetch(url: str, ca: Path, **values: str) -> ProtocolOutput:
    protocol = Http(
        conf_for(store__protocol__versions="true", http__tls__ca__file=str(ca), **values), {}
    )
    try:
        return await protocol.get_protocol_output(url, CrawlDatum())
    finally:
        await protocol.close()


def versions(output: ProtocolOutput) -> tuple[str, str]:
    assert output.content is not None, str(output.status)
    metadata = output.content.metadata
    return metadata["_protocol_versions_"][0], metadata["_cipher_suites_"][0]


# -- names -----------------------------------------------------------------------------------------


@tabled(
    ("java", "openssl"),
    [
        ("TLS_AES_256_GCM_SHA384", "TLS_AES_256_GCM_SHA384"),
        ("TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256", "ECDHE-ECDSA-AES128-GCM-SHA256"),
        ("TLS_ECDHE_RSA_WITH_AES_256_CBC_SHA384", "ECDHE-RSA-AES256-SHA384"),
        ("TLS_RSA_WITH_AES_128_CBC_SHA", "AES128-SHA"),
        ("TLS_DHE_RSA_WITH_CHACHA20_POLY1305_SHA256", "DHE-RSA-CHACHA20-POLY1305"),
        ("TLS_RSA_WITH_3DES_EDE_CBC_SHA", "DES-CBC3-SHA"),
        ("TLS_DH_anon_WITH_AES_128_CBC_SHA", "ADH-AES128-SHA"),
        ("TLS_ECDHE_ECDSA_WITH_AES_128_CCM_8", "ECDHE-ECDSA-AES128-CCM8"),
    ],
)
def test_names_of_suites(java: str, openssl: str) -> None:
    assert openssl_name(java) == openssl
    assert java_name(openssl) == java


def test_older_and_foreign_names() -> None:
    assert openssl_name("SSL_RSA_WITH_RC4_128_MD5") == "RC4-MD5"
    assert openssl_name("ECDHE-RSA-AES128-SHA") == "ECDHE-RSA-AES128-SHA"
    assert java_name("PSK-AES128-CBC-SHA") == "PSK-AES128-CBC-SHA"


def test_every_name_of_this_openssl_is_read_back() -> None:
    context = ssl.create_default_context()
    context.set_ciphers("ALL:@SECLEVEL=0")
    names = [str(cipher["name"]) for cipher in context.get_ciphers()]
    assert [openssl_name(java_name(name)) for name in names] == names
    assert sum(java_name(name).startswith("TLS_") for name in names) > 30


# -- settings --------------------------------------------------------------------------------------


def settings(protocols: str = "", suites: str = "") -> TlsSettings:
    values = {"http.tls.supported.protocols": protocols, "http.tls.supported.cipher.suites": suites}
    return TlsSettings.from_conf(
        Configuration().with_values({k: v for k, v in values.items() if v})
    )


V1, V2, V3 = ssl.TLSVersion.TLSv1, ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3


@pytest.mark.parametrize(
    ("protocols", "suites", "oldest", "newest", "cipher_list", "ciphers13"),
    [
        ("", "", None, None, "", ()),
        ("TLSv1.3", "", V3, V3, "", ()),
        ("TLSv1.2,TLSv1.3,SSLv3", "", V2, V3, "", ()),
        ("TLSv1,TLSv1.2", "", V1, V2, "DEFAULT:@SECLEVEL=0", ()),
        ("", "TLS_AES_128_GCM_SHA256", V3, V3, "", ("TLS_AES_128_GCM_SHA256",)),
        (
            "",
            "TLS_RSA_WITH_AES_128_CBC_SHA,TLS_EMPTY_RENEGOTIATION_INFO_SCSV",
            V2,
            V2,
            "AES128-SHA",
            (),
        ),
        ("TLSv1", "TLS_RSA_WITH_AES_128_CBC_SHA", V1, V1, "AES128-SHA:@SECLEVEL=0", ()),
    ],
)
def test_settings(
    protocols: str,
    suites: str,
    oldest: ssl.TLSVersion | None,
    newest: ssl.TLSVersion | None,
    cipher_list: str,
    ciphers13: tuple[str, ...],
) -> None:
    found = settings(protocols, suites)
    assert (found.oldest, found.newest, found.cipher_list, found.ciphers13) == (
        oldest,
        newest,
        cipher_list,
        ciphers13,
    )


def test_settings_that_leave_nothing() -> None:
    with pytest.raises(ConfigError, match=r"expected some of .*TLSv1\.3, found SSLv3"):
        settings("SSLv3")
    with pytest.raises(ConfigError, match="none is of a version"):
        settings("TLSv1.3", "TLS_RSA_WITH_AES_128_CBC_SHA")


# -- on the wire -----------------------------------------------------------------------------------

SUITE = "TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256"


async def test_versions_and_suites_that_are_offered(authority: tuple[trustme.CA, Path]) -> None:
    ca, path = authority
    with MisbehavingServer(tls=server_side(ca)) as server:
        url = server.url("ok", "localhost")
        old = await fetch(url, path, http__tls__supported__protocols="TLSv1.2")
        chosen = await fetch(url, path, http__tls__supported__cipher__suites=SUITE)
        new = await fetch(url, path, http__tls__supported__protocols="TLSv1.3")
    assert all(output.status.is_success for output in (old, chosen, new)), str(old.status)
    assert versions(old)[0] == "http/1.1,TLSv1.2"
    assert versions(chosen) == ("http/1.1,TLSv1.2", SUITE)
    assert versions(new)[0] == "http/1.1,TLSv1.3"


async def test_a_version_that_is_not_offered_is_not_spoken(
    authority: tuple[trustme.CA, Path],
) -> None:
    ca, path = authority
    with MisbehavingServer(tls=server_side(ca, maximum_version=V2)) as server:
        output = await fetch(
            server.url("ok", "localhost"),
            path,
            http__tls__supported__protocols="TLSv1.3",
        )
    assert output.content is None


async def test_old_versions_are_spoken_if_asked_for(authority: tuple[trustme.CA, Path]) -> None:
    ca, path = authority
    context = server_side(ca)
    context.set_ciphers("ALL:@SECLEVEL=0")
    with pytest.warns(DeprecationWarning):
        context.minimum_version = context.maximum_version = V1
    with MisbehavingServer(tls=context) as server:
        refused = await fetch(server.url("ok", "localhost"), path)
        taken = await fetch(
            server.url("ok", "localhost"), path, http__tls__supported__protocols="TLSv1"
        )
    assert refused.content is None
    assert versions(taken)[0] == "http/1.1,TLSv1"


@pytest.mark.parametrize("head", [b"Content-Length: 4", b"no header at all"])
async def test_a_dot_behind_the_host_is_not_shown(
    authority: tuple[trustme.CA, Path], head: bytes
) -> None:
    """RFC 6066, 3: not in the handshake, where a server does not know itself by it, nor later; for
    heads that libcurl refuses, too.
    """
    ca, path = authority
    context, names, asked = server_side(ca), [], []
    context.sni_callback = lambda _, name, __: names.append(name)

    async def answer(
        reader: asyncio.StreamReader, writer: asyncio.StreamWriter, target: str
    ) -> None:
        asked.append(await reader.readuntil(b"\r\n\r\n"))
        writer.write(b"HTTP/1.1 200 OK\r\nConnection: close\r\n%s\r\n\r\npage" % head)

    with MisbehavingServer(tls=context, answer_all=answer) as server:
        protocol = Http(conf_for(http__tls__ca__file=str(path)), {})
        url = server.url("x", "LocalHost.")
        outputs = [await protocol.get_protocol_output(url, CrawlDatum()) for _ in range(2)]
        await protocol.close()
    assert outputs[1].status.is_success, str(outputs[1].status)
    assert outputs[1].content is not None and outputs[1].content.url == url
    assert set(names) == {"localhost"}
    assert all(b"Host: localhost:%d\r\n" % server.port in request for request in asked)


async def test_sessions_go_on(authority: tuple[trustme.CA, Path]) -> None:
    """One store of libcurl's knows 25 servers: of 30, asked in turn, none that it still knows."""
    ca, path = authority
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    ca.issue_cert("*.tls.example").configure_cert(context)
    went_on: list[bool] = []

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        went_on.append(writer.get_extra_info("ssl_object").session_reused)
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nok")
        await writer.drain()
        writer.close()

    async def look_up(host: str) -> tuple[list[str], float]:
        return ["127.0.0.1"], 60.0

    server = await asyncio.start_server(answer, "127.0.0.1", 0, ssl=context)
    port = server.sockets[0].getsockname()[1]
    settings = CurlSettings(ca_file=str(path))
    transport = CurlTransport(settings, lambda address: True, ResolverCache(look_up))
    for number in (*range(30), *range(30)):
        order = Order("https", f"h{number}.tls.example", port, b"/", [(b"Host", b"h")])
        assert (await transport.ask(order)).body == b"ok"
    await transport.aclose()
    server.close()
    assert went_on == [False] * 30 + [True] * 30


async def test_the_first_message_fits_into_a_packet(authority: tuple[trustme.CA, Path]) -> None:
    """A key of ML-KEM alone has 1,184 bytes."""
    hello: list[bytes] = []

    async def listen(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        hello.append(await reader.read(4096))
        writer.close()

    server = await asyncio.start_server(listen, "127.0.0.1", 0)
    output = await fetch(
        f"https://127.0.0.1:{server.sockets[0].getsockname()[1]}/", authority[1],
        http__filter__ipaddress__include="loopback",
    )  # fmt: skip
    server.close()
    assert output.content is None
    assert hello[0][:1] == b"\x16" and len(hello[0]) < 1000


# -- HTTP/2 ----------------------------------------------------------------------------------------


async def test_http2(authority: tuple[trustme.CA, Path]) -> None:
    ca, path = authority
    with H2Server(server_side(ca), b"<p>" + b"x" * 5000) as server:
        conf = {"http.useHttp2": "true", "store.http.headers": "true", "store.http.request": "true"}
        more = {name.replace(".", "__"): value for name, value in conf.items()}
        output = await fetch(server.url("a?b"), path, **more)
    assert output.status.is_success and output.status.last_modified == 1_735_726_830_000
    assert output.content is not None
    metadata = output.content.metadata
    assert output.content.content == server.body and output.content.content_type == "text/html"
    assert metadata["_protocol_versions_"] == ["h2,TLSv1.3"]
    assert metadata["_response.headers_"][0].startswith("HTTP/2 200")
    assert metadata["_request_"][0].startswith("GET /a?b HTTP/2\r\nHost: localhost:")
    assert server.requests == {"/a?b": 1}


async def test_http2_limits_and_connections(authority: tuple[trustme.CA, Path]) -> None:
    ca, path = authority
    with H2Server(server_side(ca), b"y" * 12_000) as server:
        conf = conf_for(
            http__useHttp2="true", http__tls__ca__file=str(path), http__content__limit="1000"
        )
        protocol = Http(conf, {})
        try:
            first = await protocol.get_protocol_output(server.url("first"), CrawlDatum())
            others = await asyncio.gather(
                *(protocol.get_protocol_output(server.url(str(n)), CrawlDatum()) for n in range(5))
            )
        finally:
            await protocol.close()
    for output in (first, *others):
        assert output.content is not None
        assert output.content.content == b"y" * 1000
        assert output.content.metadata["http.content.truncated"] == ["true"]
    assert len(server.requests) == 6


def reset(state: h2.connection.H2Connection, stream: int) -> None:
    state.reset_stream(stream, h2.errors.ErrorCodes.INTERNAL_ERROR)


def go_away(state: h2.connection.H2Connection, stream: int) -> None:
    state.close_connection()


@pytest.mark.parametrize("end", [reset, go_away])
@pytest.mark.parametrize("is_kept", [False, True])
async def test_half_of_an_http2_page_is_no_page(
    authority: tuple[trustme.CA, Path],
    end: Callable[[h2.connection.H2Connection, int], None],
    is_kept: bool,
) -> None:
    """As in Nutch's okhttp: a failure, or content that is marked as truncated; not a whole page."""
    ca, path = authority
    conf = {"http__useHttp2": "true", "http__partial__truncated": str(is_kept).lower()}
    with H2Server(server_side(ca), b"<p>" + b"x" * 4997, ends={"/half": end}) as server:
        output = await fetch(server.url("half"), path, **conf)
    assert output.status.is_success is is_kept, str(output.status)
    assert server.requests == {"/half": 1}
    if is_kept:
        assert output.content is not None and output.content.content == server.body[:2500]
        assert is_truncated(output.content)
        assert output.content.metadata["http.content.truncated.reason"] == ["disconnect"]


def test_a_refused_stream_is_asked_for_once_more_when_its_host_has_rested(
    authority: tuple[trustme.CA, Path], tmp_path: Path
) -> None:
    """RFC 9113, 8.7: it may be; libcurl does so five times, at once."""
    ca, path = authority
    delay = 0.2
    with H2Server(server_side(ca), refuse=True) as server:
        conf = conf_for(
            http__useHttp2="true",
            http__tls__ca__file=str(path),
            http__robot__rules__allowlist="localhost",
            fetcher__server__delay=str(delay),
        )
        segment = make_segment(tmp_path, [server.url("a"), server.url("b")])
        fetch_segment(segment, conf)
        assert server.requests == {"/a": 2, "/b": 1}  # the server is known by then
        assert min(after - before for before, after in pairwise(server.times)) > delay - 0.05
    assert {data[-1].status for data in fetched(segment).values()} == {status.STATUS_FETCH_RETRY}


async def test_http2_gives_way_to_what_the_server_speaks(
    authority: tuple[trustme.CA, Path],
) -> None:
    ca, path = authority
    context = server_side(ca)
    context.set_alpn_protocols(["http/1.1"])
    with MisbehavingServer(tls=context) as server:
        output = await fetch(
            server.url("ok", "localhost"), path, http__useHttp2="true", store__http__request="true"
        )
    with MisbehavingServer() as server:
        plain = await fetch(server.url("ok"), path, http__useHttp2="true")
    assert versions(output)[0].startswith("http/1.1,")
    assert output.content is not None
    assert output.content.metadata["_request_"][0].startswith("GET /ok HTTP/1.1\r\n")
    assert plain.status.is_success


async def test_without_the_property_nobody_offers_http2(authority: tuple[trustme.CA, Path]) -> None:
    ca, path = authority
    context = server_side(ca)
    context.set_alpn_protocols(["h2", "http/1.1"])
    with MisbehavingServer(tls=context) as server:
        output = await fetch(server.url("ok", "localhost"), path)
    assert versions(output)[0].startswith("http/1.1,")


# -- connections -----------------------------------------------------------------------------------


def test_the_pool_of_connections(caplog: pytest.LogCaptureFixture) -> None:
    def curl(pool: str) -> tuple[int, int]:
        made = HttpSettings.from_conf(conf_for(http__connection__pool__okhttp=pool)).curl()
        return made.max_connections, made.max_idle_seconds

    assert curl("") == (1000, 118)
    assert curl("4, 50, 300") == (200, 300)
    for bad in ("4,50", "0,1,1", "a,b,c"):
        assert curl(bad) == (1000, 118)
        assert f"expected pools, size and seconds, found {bad}" in caplog.text
