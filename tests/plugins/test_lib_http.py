"""The parts of lib-http: headers, dates, addresses, codings, settings, names of failures."""

from __future__ import annotations

import gzip
import random
import tracemalloc
import zlib
from ipaddress import ip_address

import brotli  # type: ignore[import-untyped]
import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from minutch.conf import Configuration
from minutch.errors import ConfigError, UrlError
from minutch.hadoop.formats import zstd
from minutch.hadoop.formats.javahash import string_hash
from minutch.records.metadata import REQUEST_KEY, Metadata
from plugins.lib_http.addressrules import AddressRules, embedded, parse_rule, special_network
from plugins.lib_http.curltransport import _header_lines
from plugins.lib_http.decoding import MOST_MEMBERS, STEP, TURN, decode, decoding, offered
from plugins.lib_http.exchange import (
    SpellCheckedMetadata,
    format_date,
    parse_date,
    spell_check,
    unfold,
)
from plugins.lib_http.failures import (
    ForbiddenAddress,
    NoRoute,
    TlsFailure,
    TooLarge,
    UnknownHost,
    connect_error,
    java_text,
)
from plugins.lib_http.settings import HttpSettings, ProxySettings, agent_string
from tests.support.examples import tabled

DEFAULTS = Configuration.load([])

# -- headers ---------------------------------------------------------------------------------------


@tabled(
    ("name", "expected"),
    [
        ("content-type", "Content-Type"),
        ("CONTENT_TYPE", "Content-Type"),
        ("ConTnTtYpe", "Content-Type"),
        ("Contnt-Type", "Content-Type"),
        ("Last-Modifed", "Last-Modified"),
        ("Locaton", "Location"),
        ("X-Content-Type", "Content-Type"),
        ("Server", "Server"),
        ("ETag", "ETag"),
        ("", ""),
    ],
)
def test_well_known_names_are_spelled_right(name: str, expected: str) -> None:
    assert spell_check(name) == expected


def test_names_are_looked_up_without_case_and_the_last_value_wins_but_for_lists() -> None:
    metadata = SpellCheckedMetadata()
    lines = [
        "HTTP/1.1 200 a: b",
        "content-type: text/html",
        "X-A: one",
        "x-a: two",
        "no colon here",
        "Empty:",
    ]
    metadata.put_lines([f"{line}\r\n".encode() for line in lines], start=1)
    assert set(metadata) == {"Content-Type", "X-A", "Empty"}
    assert metadata.get("CONTENT-TYPE") == "text/html"
    assert metadata["X-A"] == ["two"] and metadata.get("x-A") == "two"
    assert metadata["Empty"] == [""] and "no colon here" not in str(metadata)
    metadata.put_lines([b"link: <a>", b"Link: <b>", b"X-ROBOTS-TAG: noindex", b"x-robots-tag: all"])
    assert metadata["link"] == ["<a>", "<b>"]
    assert metadata.field_values("X-Robots-Tag") == ["noindex", "all"]
    metadata.add("X-a", "three")
    assert metadata["X-a"] == ["two", "three"] and "X-A" not in metadata
    assert metadata.get("nothing", "else") == "else"


def test_a_server_cannot_say_what_the_crawler_notes() -> None:
    metadata = SpellCheckedMetadata()
    metadata.set(REQUEST_KEY, "GET / HTTP/1.1")
    metadata.put_lines(
        [
            b"HTTP.Content.Truncated: true",
            b"NUTCH.Segment.Name: mine",
            b"_request_: theirs",
            b"_protocol_versions_: h3",
            b"_TLS_verdict_: verified",
            b"_FST_: x",
            b"_x: kept",
            b"Cat: theirs",
        ]
    )
    metadata.set("cat", "ours")
    assert metadata == {REQUEST_KEY: ["GET / HTTP/1.1"], "_x": ["kept"], "cat": ["ours"]}


def test_continued_header_lines_are_joined() -> None:
    metadata = SpellCheckedMetadata()
    metadata.put_lines(
        [b"HTTP/1.1 200\r\n", b" odd: start\r\n", b"X: one,\r\n", b"\t two\n", b"Y: three\n"],
        start=1,
    )
    assert metadata == {"X": ["one, two"], "Y": ["three"]}


def test_names_are_written_in_nutchs_order() -> None:
    ordered = SpellCheckedMetadata()
    for name in ("b", "C", "a", "D"):
        ordered.set(name, "x")
    plain = Metadata({name: ["x"] for name in ("a", "b", "C", "D")})
    assert ordered.to_bytes() == plain.to_bytes()


def test_continued_lines_are_joined() -> None:
    lines = [b"HTTP/1.1 200 OK\r\n", b"X: one\r\n", b"  two\r\n", b"\tthree\n", b"Y: \xe9\r\n"]
    assert list(unfold(lines)) == ["HTTP/1.1 200 OK", "X: one twothree", "Y: é"]
    assert list(unfold([])) == []


def test_the_first_value_is_found_by_each_way_of_asking() -> None:
    metadata = SpellCheckedMetadata()
    metadata.put_lines([b"Vary: one\r\n", b"vary: two\r\n", b"content-typ: text/html\r\n"])
    assert metadata.get("VARY") == metadata.get("vary") == "one"
    assert metadata.get_values("VARY") == ["one", "two"]
    assert metadata.get("Content-Type") == "text/html"
    assert metadata.get("Server", "none") == "none" and metadata.get_values("Server") == []


# -- dates -----------------------------------------------------------------------------------------


@tabled(
    ("text", "milliseconds"),
    [
        ("Wed, 01 Jan 2025 10:20:30 GMT", 1_735_726_830_000),
        ("Wed, 1 Jan 2025 10:20:30 GMT", 1_735_726_830_000),
        ("Wed, 01 Jan 2025 10:20:30 UTC", 1_735_726_830_000),
        ("Wed, 01 Jan 2025 10:20:30 EST", 1_735_744_830_000),
        ("Wed, 01 Jan 2025 10:20:30 GMT+01:00", 1_735_723_230_000),
        ("Thu, 01 Jan 1970 00:00:00 GMT", 0),
        ("Tue, 01 Jan 2025 10:20:30 GMT", None),
        ("Wed, 01 Jan 2025 24:00:00 GMT", None),
        ("Wed, 01 Jan 2025 10:20:60 GMT", None),
        ("Wed, 00 Jan 2025 10:20:30 GMT", None),
        ("wed, 01 jan 2025 10:20:30 gmt", None),
        ("Wednesday, 01-Jan-25 10:20:30 GMT", 1_735_726_830_000),
        ("Wed Jan  1 10:20:30 2025", 1_735_726_830_000),
        (" Wed, 1 Jan 2025 10:20:30 GMT ", 1_735_726_830_000),
        ("Wed Foo  1 10:20:30 2025", None),
        ("Wed, 01 Jan 0000 10:20:30 GMT", None),
        ("", None),
    ],
)
def test_dates(text: str, milliseconds: int | None) -> None:
    assert parse_date(text) == milliseconds


@given(st.integers(0, 4_102_444_800))
def test_dates_come_back(seconds: int) -> None:
    assert parse_date(format_date(seconds * 1000 + 999)) == seconds * 1000


# -- addresses -------------------------------------------------------------------------------------


@tabled(
    "address",
    [
        "127.0.0.1", "127.255.0.1", "10.1.2.3", "172.16.0.1", "172.31.255.255", "192.168.1.1", "169.254.169.254",  # noqa: E501
        "0.0.0.0", "100.64.0.1", "198.18.0.1", "224.0.0.1", "255.255.255.255", "192.0.0.192",
        "::1", "::", "fe80::1", "fe80::1%eth0", "fc00::1", "fd00:ec2::254", "ff02::1", "2001:db8::1",  # noqa: E501
        "::ffff:127.0.0.1", "::ffff:10.0.0.1", "64:ff9b::a00:1", "64:ff9b::7f00:1", "2002:7f00:1::1",  # noqa: E501
        "::127.0.0.1", "64:ff9b:1::1", "fec0::1", "2001:0:4136:e378:8000:63bf:f5ff:fffe", "no address", "",  # noqa: E501
    ],
)  # fmt: skip
def test_special_addresses_are_refused(address: str) -> None:
    assert not AddressRules().accepts(address)


@pytest.mark.parametrize(
    "address",
    [
        "8.8.8.8",
        "172.32.0.1",
        "100.128.0.1",
        "1.1.1.1",
        "2606:4700::1111",
        "::ffff:8.8.8.8",
        "64:ff9b::808:808",
    ],
)
def test_public_addresses_are_accepted(address: str) -> None:
    assert AddressRules().accepts(address)


def rules(include: str = "", exclude: str = "") -> AddressRules:
    names = {"http.filter.ipaddress.include": include, "http.filter.ipaddress.exclude": exclude}
    return AddressRules.from_conf(
        Configuration().with_values({k: v for k, v in names.items() if v})
    )


@tabled(
    ("include", "exclude", "accepted", "refused"),
    [
        ("loopback", "", ["127.0.0.1", "::1", "127.1.2.3"], ["8.8.8.8", "10.0.0.1"]),
        ("LocalHost", "", ["127.0.0.1"], ["8.8.8.8"]),
        ("sitelocal", "", ["10.0.0.1", "192.168.0.1", "172.20.0.1"], ["127.0.0.1", "8.8.8.8"]),
        ("10.0.0.0/8, 8.8.8.8", "", ["10.1.1.1", "8.8.8.8"], ["8.8.4.4", "127.0.0.1"]),
        ("", "8.8.0.0/16", ["1.1.1.1"], ["8.8.8.8", "127.0.0.1"]),
        ("127.0.0.0/8", "127.0.0.2", ["127.0.0.1"], ["127.0.0.2"]),
        ("::ffff:8.8.8.0/120", "", ["8.8.8.8"], ["8.8.9.8"]),
        ("fd00::/8", "", ["fd12::1"], ["fc00::1", "1.1.1.1"]),
    ],
)
def test_address_rules(include: str, exclude: str, accepted: list[str], refused: list[str]) -> None:
    made = rules(include, exclude)
    assert [made.accepts(address) for address in accepted] == [True] * len(accepted)
    assert [made.accepts(address) for address in refused] == [False] * len(refused)


@pytest.mark.parametrize(
    ("include", "exclude", "address", "says"),
    [
        ("", "", "8.8.8.8", ""),
        (
            "",
            "",
            "10.1.2.3",
            (
                "10.1.2.3 is in 10.0.0.0/8, which is not the public net; see"
                " http.filter.ipaddress.include"
            ),
        ),
        (
            "",
            "",
            "::ffff:127.0.0.1",
            "::ffff:127.0.0.1 is in 127.0.0.0/8, which is not the public net; ",
        ),
        (
            "",
            "1.2.3.4, 8.8.0.0/16",
            "8.8.8.8",
            "8.8.8.8 is in 8.8.0.0/16 of http.filter.ipaddress.exclude",
        ),
        (
            "loopback",
            "",
            "8.8.8.8",
            "8.8.8.8 is in none of the networks of http.filter.ipaddress.include",
        ),
        (
            "loopback",
            "loopback",
            "127.0.0.1",
            "127.0.0.1 is in loopback of http.filter.ipaddress.exclude",
        ),
        ("", "", "nowhere", "nowhere is no address"),
    ],
)
def test_the_rule_that_refuses(include: str, exclude: str, address: str, says: str) -> None:
    said = rules(include, exclude).refusal(address)
    assert said.startswith(says) and bool(said) is bool(says)


def test_a_rule_that_is_none_is_an_error() -> None:
    with pytest.raises(ConfigError, match=r"http.filter.ipaddress.include .* found 'nonsense/99'"):
        rules("nonsense/99")
    with pytest.raises(ValueError, match="nonsense"):
        parse_rule("nonsense")


@given(st.ip_addresses())
def test_any_address_is_judged(address: object) -> None:
    parsed = ip_address(str(address))
    accepted = AddressRules().accepts(str(address))
    inner = embedded(parsed)
    special = any(one is not None and special_network(one) for one in (parsed, inner))
    assert accepted is not special


# -- codings ---------------------------------------------------------------------------------------

PAGE = b"<html>" + bytes(range(256)) * 40
CODED = {
    "gzip": gzip.compress(PAGE),
    "x-gzip": gzip.compress(PAGE),
    "deflate": zlib.compress(PAGE),
    "br": brotli.compress(PAGE),
    "zstd": zstd.compress(PAGE),
}


@pytest.mark.parametrize("coding", CODED)
def test_codings(coding: str) -> None:
    assert decode(CODED[coding], coding, -1) == (PAGE, True)
    assert decode(CODED[coding], f" {coding.upper()} ", 1 << 20) == (PAGE, True)


def test_raw_deflate_and_several_gzip_members() -> None:
    assert decode(zlib.compress(PAGE)[2:-4], "deflate", -1) == (PAGE, True)
    assert decode(gzip.compress(b"a") + gzip.compress(b"b"), "gzip", -1) == (b"ab", True)


@pytest.mark.parametrize("coding", CODED)
def test_limits_hold_within_a_bomb(coding: str) -> None:
    big = bytes(30 << 20)
    coded = {"gzip": gzip.compress, "x-gzip": gzip.compress, "deflate": zlib.compress, "br": lambda d: brotli.compress(d, quality=1), "zstd": zstd.compress}[coding](big)  # fmt: skip  # noqa: E501
    assert decode(coded, coding, 1000) == (bytes(1000), True)


@pytest.mark.parametrize("coding", CODED)
@given(cut=st.integers(0, 400))
def test_cut_off_data_gives_its_beginning(coding: str, cut: int) -> None:
    part = CODED[coding][:cut]
    result, whole = decode(part, coding, -1)
    assert PAGE.startswith(result) or result == part
    assert not whole or result in (PAGE, part)


@pytest.mark.parametrize("coding", CODED)
@given(data=st.binary(max_size=200))
def test_nonsense_raises_nothing(coding: str, data: bytes) -> None:
    assert isinstance(decode(data, coding, 100)[0], bytes)


def test_lists_of_codings() -> None:
    twice = gzip.compress(zlib.compress(PAGE))
    assert decode(twice, "deflate, gzip", -1) == (PAGE, True)
    assert decode(PAGE, "identity", -1) == (PAGE, True)
    assert decode(gzip.compress(PAGE), "rot13, gzip", -1) == (PAGE, True)
    assert decode(PAGE, None, -1)[0] == PAGE and decode(b"", "gzip", -1)[0] == b""


@pytest.mark.parametrize("coding", CODED)
def test_what_stands_behind_the_end_costs_nothing(coding: str) -> None:
    for page in (b"", b"hi", PAGE, bytes(200_000)):
        coded = {"deflate": zlib.compress, "br": brotli.compress, "zstd": zstd.compress}.get(
            coding, gzip.compress
        )(page)
        assert decode(coded, coding, -1) == (page, True)
        if page:
            assert decode(coded + b"<!-- served by -->", coding, -1) == (page, True)


@tabled("coding", CODED)
@tabled("start", [b"<!doctype html>", b"plain", b"\xef\xbb\xbf<html>", b"{}", b" "])
def test_what_only_claims_a_coding_is_passed_on(coding: str, start: bytes) -> None:
    page = start + b"<p>some words, and some more of them</p>" * 50
    assert decode(page, coding, -1) == (page, True)


EMPTY = zstd.compress(b"")
CHEAP = {
    "empty zstd frames": (EMPTY * 120_000, "zstd"),
    "skippable zstd frames": (b"\x50\x2a\x4d\x18\0\0\0\0" * 130_000, "zstd"),
    "empty gzip members": (gzip.compress(b"") * 50_000, "gzip"),
    "stacked": (
        gzip.compress(zstd.compress(zstd.compress(zstd.compress(bytes(64 << 20))))),
        "zstd, zstd, zstd, gzip",
    ),
    "stacked frames": (gzip.compress(zstd.compress(EMPTY * (1 << 21))), "zstd, zstd, gzip"),
    "a bomb in br": (brotli.compress(bytes(64 << 20), quality=1), "br"),
    "nothing in br": (b"\x0e\x00" * 500_000, "br"),
}


@pytest.mark.parametrize("name", CHEAP)
def test_work_is_bounded_by_what_came_and_by_the_limit(name: str) -> None:
    """Counted by turns of the event loop, each after TURN bytes at most."""
    data, coding = CHEAP[name]
    limit, turns = 1 << 20, 0
    work = decoding(data, coding, limit)
    while True:
        try:
            next(work)
        except StopIteration as done:
            result, _ = done.value
            break
        turns += 1
    stages = coding.count(",") + 1
    most = stages * (len(data) + limit) + MOST_MEMBERS * STEP + STEP * len(data) // 256
    assert len(result) <= limit and turns <= 2 * most // TURN


def test_nobody_decodes_what_was_not_offered() -> None:
    assert offered("x-gzip, gzip, deflate") == {"gzip", "x-gzip", "deflate"}
    assert offered("br;q=0.5, zstd;q=0, identity") == {"gzip", "x-gzip", "deflate", "br"}
    assert offered("*") == {"gzip", "x-gzip", "deflate", "br", "zstd"}
    assert decode(CODED["zstd"], "zstd", -1, offered("gzip")) == (CODED["zstd"], True)
    assert decode(gzip.compress(CODED["br"]), "br, gzip", -1, offered("")) == (CODED["br"], True)


# -- failures --------------------------------------------------------------------------------------


@tabled(
    ("error", "text"),
    [
        (UnknownHost("no.such"), "java.net.UnknownHostException: no.such"),
        (
            ForbiddenAddress("10.0.0.1"),
            "java.io.IOException: Forbidden connection to IP address 10.0.0.1",
        ),
        (NoRoute(""), "java.net.NoRouteToHostException: No route to host"),
        (connect_error(111, "x"), "java.net.ConnectException: Connection refused"),
        (connect_error(113, "x"), "java.net.NoRouteToHostException: No route to host"),
        (connect_error(0, "odd"), "java.net.ConnectException: odd"),
        (httpx.ConnectTimeout("x"), "java.net.SocketTimeoutException: Connect timed out"),
        (httpx.ReadTimeout("x"), "java.net.SocketTimeoutException: Read timed out"),
        (httpx.ReadError("Connection reset"), "java.net.SocketException: Connection reset"),
        (TooLarge("headers"), "org.apache.nutch.protocol.http.api.HttpException: headers"),
        (
            TlsFailure("expired"),
            (
                "org.apache.nutch.protocol.http.api.HttpException: SSL connect to http://u/ failed"
                " with: expired"
            ),
        ),
        (UrlError("bad"), "java.net.MalformedURLException: bad"),
        (ValueError("odd"), "java.io.IOException: ValueError: odd"),
    ],
)
def test_failures_are_worded_as_javas(error: Exception, text: str) -> None:
    assert java_text(error, "http://u/") == text


# -- settings --------------------------------------------------------------------------------------


@tabled(
    ("parts", "text"),
    [
        (("a", None, None, None, None), "a"),
        (("a", "1", None, None, None), "a/1"),
        (("a", " ", None, None, None), "a"),
        (("a", "1", "d", None, None), "a/1 (d)"),
        (("a", "1", "d", "u", "e"), "a/1 (d; u; e)"),
        (("a", "1", None, "u", None), "a/1 (u)"),
        (("a", "1", None, "u", "e"), "a/1 (u; e)"),
        (("a", "1", "d", "", ""), "a/1 (d; )"),
        (("a", "1", "", "", "e"), "a/1 (e)"),
    ],
)
def test_agent_string(parts: tuple[str | None, ...], text: str) -> None:
    assert agent_string(*parts) == text


def test_defaults() -> None:
    settings = HttpSettings.from_conf(
        DEFAULTS.with_values({"http.agent.name": "x", "http.agent.version": "1"})
    )
    assert settings.user_agents == ["x/1"]
    assert (
        settings.timeout == 10_000
        and settings.time_limit == 60_000
        and settings.content_limit == 1_048_576
    )
    assert settings.check_certificates and settings.http_version == "1.1"
    assert settings.store_response_time and not settings.store_headers
    assert settings.proxy == ProxySettings()
    assert settings.curl().ca_file.endswith("cacert.pem")


def test_versions_and_limits() -> None:
    def version(**values: str) -> str:
        return HttpSettings.from_conf(
            Configuration().with_values({f"http.{k}": v for k, v in values.items()})
        ).http_version

    assert version(useHttp11="false") == "1.0"
    assert version(useHttp2="true", useHttp11="false") == "2"
    limited = HttpSettings.from_conf(Configuration().with_values({"http.time.limit": "7"}))
    assert limited.time_limit == 7000


def test_agents_take_turns(tmp_path: object) -> None:
    conf = Configuration.load([tmp_path]).with_values({"http.agent.rotate": "true"})  # type: ignore[list-item]
    (tmp_path / "agents.txt").write_text("one\n\n two \n")  # type: ignore[operator]
    settings = HttpSettings.from_conf(conf)
    assert {settings.user_agent() for _ in range(100)} == {"one", "two"}


def test_a_missing_or_empty_list_of_agents(
    tmp_path: object, caplog: pytest.LogCaptureFixture
) -> None:
    values = {"http.agent.rotate": "true", "http.agent.name": "own", "http.agent.version": ""}
    empty = Configuration.load([tmp_path]).with_values(values)  # type: ignore[list-item]
    (tmp_path / "agents.txt").write_text("\n")  # type: ignore[operator]
    assert HttpSettings.from_conf(empty).user_agents == ["own"]
    values["http.agent.rotate.file"] = "no-such-file"
    assert HttpSettings.from_conf(DEFAULTS.with_values(values)).user_agents == ["own"]
    assert caplog.text.count("the agent stays own") == 2


def test_cookies_by_host(tmp_path: object, caplog: pytest.LogCaptureFixture) -> None:
    (tmp_path / "cookies.txt").write_text("# comment\na.example\tk=v; l=w\nbroken line\n")  # type: ignore[operator]
    conf = Configuration.load([tmp_path])  # type: ignore[list-item]
    assert HttpSettings.from_conf(conf).cookies == {"a.example": "k=v; l=w"}
    assert "cookies.txt, line 3" in caplog.text
    assert (
        HttpSettings.from_conf(conf.with_values({"http.enable.cookie.header": "false"})).cookies
        == {}
    )


def test_proxy() -> None:
    values = {
        "http.proxy.host": "proxy.example",
        "http.proxy.port": "3128",
        "http.proxy.type": "socks",
        "http.proxy.username": "us er",
        "http.proxy.password": "p@ss",
        "http.proxy.exception.list": "a.example,*.b.example,10.*",
    }
    proxy = ProxySettings.from_conf(Configuration().with_values(values))
    assert proxy.proxy_for("www.example") == "socks5h://us%20er:p%40ss@proxy.example:3128"
    assert [proxy.proxy_for(host) for host in ("a.example", "x.b.example", "10.1.1.1")] == [
        "",
        "",
        "",
    ]
    assert proxy.proxy_for("xa.example") != ""
    with pytest.raises(ConfigError, match=r"http\.proxy\.type"):
        ProxySettings.from_conf(
            Configuration().with_values(values | {"http.proxy.type": "carrier-pigeon"})
        )


def test_long_header_lines_are_not_kept() -> None:
    """Servers choose them: 300 answers took 143 MB when all lines were."""
    string_hash("x" * 101_000)  # makes its table of powers
    tracemalloc.start()
    try:
        for number in range(3):
            metadata = SpellCheckedMetadata()
            long = b"x" * 100_000
            metadata.put_lines(
                [b"X-%d: " % number + long, b"Y-%d-%s: v" % (number, long), b"Server: s"]
            )
            assert len(list(metadata.java_names())) == 3 and metadata.get("server") == "s"
            metadata.get("z" * 100_000 + str(number))
        del metadata, long
        assert tracemalloc.get_traced_memory()[0] < 1 << 18
    finally:
        tracemalloc.stop()


def test_hardly_any_lines_are_kept_that_are_a_pages_own() -> None:
    """Of pages with an ETag requests differ as answers do: their lines took 8 MB for ever."""
    names = [b"Host", b"User-Agent", b"Accept-Encoding", b"Accept", b"If-None-Match"]
    tracemalloc.start()
    try:
        for number in range(2000):
            tag = b'"%d"' % number
            values = [b"www.example", b"minutch/1.0 (a crawler)", b"gzip", b"text/html", tag]
            lines = _header_lines([*zip(names, values, strict=True)])
            assert lines[-2:] == [b"If-None-Match: " + tag, b"Expect:"]
            metadata = SpellCheckedMetadata()
            metadata.put_lines([b"Server: s", b"ETag: " + tag])
            assert metadata.get("etag") == tag.decode()
        del lines, metadata
        assert tracemalloc.get_traced_memory()[0] < 1 << 20
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("coding", ["gzip", "deflate"])
@pytest.mark.parametrize("size", [5, 3000, 300_000])
def test_content_with_a_wrong_checksum_is_kept(coding: str, size: int) -> None:
    text = bytes(range(256)) * (size // 256) + b"x" * (size % 256)
    packed = bytearray(gzip.compress(text) if coding == "gzip" else zlib.compress(text))
    packed[-5 if coding == "gzip" else -1] ^= 0xFF
    assert decode(bytes(packed), coding, -1) == (text, False)
    assert decode(bytes(packed), coding, 4) == (text[:4], True)


def test_content_is_kept_up_to_damage_in_the_middle() -> None:
    text = random.Random(1).randbytes(50_000)
    packed = bytearray(gzip.compress(text, 1))
    middle = len(packed) // 2
    packed[middle : middle + 2000] = b"\xff" * 2000
    found, whole = decode(bytes(packed), "gzip", -1)
    assert not whole and len(found) > 10_000 and text.startswith(found[:10_000])
