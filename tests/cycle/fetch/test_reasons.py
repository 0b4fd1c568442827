"""Why pages did not come, in words for people."""

from __future__ import annotations

import pytest

from minutch.cycle.fetch.decisions import fate, http_code, reason
from minutch.hadoop.formats.writables import MapWritable, Text
from minutch.records import crawldatum as status
from minutch.records import protocol as codes
from minutch.records.crawldatum import CrawlDatum
from minutch.records.protocol import ProtocolStatus
from tests.support.examples import tabled

_TLS = (
    "org.apache.nutch.protocol.http.api.HttpException: SSL connect to https://e.org/ failed with: "
)


@tabled(
    ("code", "message", "http", "words"),
    [
        (codes.EXCEPTION, "Http code=403, url=http://e.org/", "403", "HTTP 403"),
        (codes.NOTFOUND, "http://e.org/", "404", "HTTP 404"),
        (
            codes.EXCEPTION,
            "java.net.ConnectException: Connection refused",
            "",
            "connection refused",
        ),
        (codes.EXCEPTION, "java.net.UnknownHostException: e.invalid", "", "no such host"),
        (
            codes.EXCEPTION,
            "java.net.SocketTimeoutException: Read timed out",
            "",
            "timeout (http.timeout)",
        ),
        (
            codes.EXCEPTION,
            "java.net.SocketTimeoutException: Connect timed out",
            "",
            "timeout while connecting (http.timeout)",
        ),
        (
            codes.EXCEPTION,
            f"{_TLS}SSL certificate problem: self-signed certificate",
            "",
            "certificate: self-signed (http.tls.certificates.check)",
        ),
        (
            codes.EXCEPTION,
            f"{_TLS}SSL certificate problem: certificate has expired",
            "",
            "certificate: expired (http.tls.certificates.check)",
        ),
        (
            codes.EXCEPTION,
            "java.io.IOException: Forbidden connection to IP address 127.0.0.1",
            "",
            "this machine's own address not allowed (http.filter.ipaddress.include)",
        ),
        (
            codes.EXCEPTION,
            "java.io.IOException: Forbidden connection to IP address 192.168.1.7",
            "",
            "private address not allowed (http.filter.ipaddress.include)",
        ),
        (
            codes.EXCEPTION,
            "java.net.ConnectException: CONNECT tunnel failed, response 407",
            "",
            "HTTP 407 of the proxy (http.proxy.host)",
        ),
        (codes.ROBOTS_DENIED, None, "", "robots.txt"),
        (codes.ROBOTS_DENIED, "robots.txt: http code=503", "", "robots.txt (http code=503)"),
        (codes.NOTFETCHING, "the time limit was reached", "", "the time limit was reached"),
        (codes.FAILED, None, "", "no protocol plugin for its scheme (plugin.includes)"),
        (
            codes.EXCEPTION,
            "java.io.IOException: Odd: http://e.org/x happened",
            "",
            "Odd: … happened",
        ),
        (codes.WOULDBLOCK, None, "", "wouldblock"),
    ],
)
def test_reasons(code: int, message: str | None, http: str, words: str) -> None:
    assert reason(ProtocolStatus.of(code, message), http) == words


def test_a_proxy_that_can_not_be_reached() -> None:
    refused = ProtocolStatus.of(codes.EXCEPTION, "java.net.ConnectException: Connection refused")
    assert reason(refused, proxy="p.org") == "proxy p.org: connection refused (http.proxy.host)"
    assert reason(ProtocolStatus.of(codes.NOTFOUND, "x"), "404", proxy="p.org") == "HTTP 404"


@pytest.mark.parametrize(
    ("fetch", "code", "word"),
    [
        (status.STATUS_FETCH_RETRY, codes.EXCEPTION, "retry"),
        (status.STATUS_FETCH_GONE, codes.NOTFOUND, "gone"),
        (status.STATUS_FETCH_GONE, codes.ROBOTS_DENIED, "denied"),
        (status.STATUS_LINKED, codes.NOTFETCHING, "not asked for"),
    ],
)
def test_fates(fetch: int, code: int, word: str) -> None:
    assert fate(fetch, ProtocolStatus(code)) == word


@pytest.mark.parametrize(
    ("code", "message", "known"),
    [
        (codes.SUCCESS, None, "500"),
        (codes.NOTFOUND, "http://e.org/", "500"),
        (codes.EXCEPTION, "Http code=500, url=http://e.org/", "500"),
        (codes.EXCEPTION, "java.net.ConnectException: Connection refused", ""),
        (codes.ROBOTS_DENIED, None, ""),
        (codes.NOTFETCHING, "the time limit was reached", ""),
    ],
)
def test_a_code_counts_where_there_was_an_answer(
    code: int, message: str | None, known: str
) -> None:
    metadata = {
        Text("nutch.protocol.code"): Text("500"),
        Text("_pst_"): ProtocolStatus.of(code, message),
    }
    assert http_code(CrawlDatum(metadata=MapWritable(metadata))) == known
