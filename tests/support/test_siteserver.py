"""The demo site's server."""

from __future__ import annotations

import gzip
import http.client
from collections.abc import Iterator

import pytest

from tests.support.siteserver import HOSTS, SiteServer


@pytest.fixture(scope="module")
def server() -> Iterator[SiteServer]:
    with SiteServer() as running:
        yield running


def get(
    server: SiteServer, host: str, path: str, **headers: str
) -> tuple[int, dict[str, str], bytes]:
    connection = http.client.HTTPConnection("127.0.0.1", server.site.port)
    sent = {
        "Host": f"{HOSTS[host]}:{server.site.port}",
        **{k.replace("_", "-"): v for k, v in headers.items()},
    }
    connection.request("GET", path, headers=sent)
    response = connection.getresponse()
    result = response.status, dict(response.getheaders()), response.read()
    connection.close()
    return result


def test_two_hosts_on_one_port(server: SiteServer) -> None:
    assert b"Tidewater Library" in get(server, "one", "/")[2]
    status, headers, body = get(server, "two", "/")
    assert (status, headers["Content-Type"]) == (200, "text/html")
    assert b"Harbour Museum" in body


def test_addresses_are_put_in(server: SiteServer) -> None:
    assert f'href="{server.site.url("two")}"'.encode() in get(server, "one", "/")[2]
    assert get(server, "two", "/library")[1]["Location"] == server.site.url("one", "/about.html")


@pytest.mark.parametrize(
    ("path", "status"),
    [("/opening-hours", 301), ("/news", 302), ("/closed.html", 410), ("/broken", 500), ("/x", 404)],
)
def test_answers_without_a_file(server: SiteServer, path: str, status: int) -> None:
    assert get(server, "one", path)[0] == status


@pytest.mark.parametrize(
    ("path", "charset", "word"),
    [
        ("/fr.html", "iso-8859-1", "marées"),
        ("/ru.html", "koi8-r", "приливов"),
        ("/ja.html", "shift_jis", "図書館"),
        ("/el.html", "utf-16", "Βιβλία"),
    ],
)
def test_charsets(server: SiteServer, path: str, charset: str, word: str) -> None:
    assert word in get(server, "one", path)[2].decode(charset)


def test_compression_and_conditional_requests(server: SiteServer) -> None:
    _, headers, body = get(server, "one", "/news.html")
    assert headers["Content-Encoding"] == "gzip"
    assert b"The cat is well." in gzip.decompress(body)
    modified = get(server, "one", "/books/knots.html")[1]["Last-Modified"]
    assert get(server, "one", "/books/knots.html", If_Modified_Since=modified)[0] == 304


def test_requests_are_noted(server: SiteServer) -> None:
    get(server, "two", "/nothing")
    assert server.requests[-1] == (f"localhost:{server.site.port}", "/nothing")
