"""Sitemaps are read in all their kinds, with their dates and with elements in odd places."""

from __future__ import annotations

import gzip
from datetime import UTC, datetime

import pytest

from minutch.cycle.sitemap.sitemapdates import feed_date, iso_date
from minutch.cycle.sitemap.sitemapfile import MAX_LINES, read_sitemap
from minutch.cycle.sitemap.sitemapurls import (
    Sitemap,
    SitemapIndex,
    base_of,
    checked_url,
    interval_of,
    priority_of,
)
from minutch.errors import ParseError

URL = "http://example.org/in/map.xml"


def read(
    text: str | bytes,
    content_type: str = "text/xml",
    *,
    strict: bool = False,
    most: int = 10_000_000,
) -> Sitemap:
    found = read_sitemap(content_type, _bytes(text), URL, strict=strict, most_bytes=most)
    assert isinstance(found, Sitemap)
    return found


def _bytes(text: str | bytes) -> bytes:
    return text.encode() if isinstance(text, str) else text


def urls(text: str | bytes, content_type: str = "text/xml", *, strict: bool = False) -> list[str]:
    return [
        page.url.removeprefix("http://example.org")
        for page in read(text, content_type, strict=strict).urls
    ]


def listed(text: str) -> list[str]:
    found = read_sitemap("text/xml", text.encode(), URL, strict=True, most_bytes=1000)
    assert isinstance(found, SitemapIndex)
    return [url.removeprefix("http://example.org") for url in found.urls]


def ms(*date: int) -> int:
    return int(datetime(*date, tzinfo=UTC).timestamp() * 1000)  # type: ignore[arg-type]


def packed(data: bytes) -> bytes:
    return gzip.compress(data, mtime=0)


MAP = "<urlset><url><loc>http://example.org/a</loc></url></urlset>"


@pytest.mark.parametrize(
    ("content_type", "text"),
    [
        ("application/xml", MAP),
        ("TEXT/XML", MAP),
        ("text/html", f" \n{MAP}"),
        ("", f"\ufeff\n<?xml version='1.0'?>{MAP}"),
        ("text/html; charset=x", f"<!-- c -->{MAP}"),
        ("text/plain", "http://example.org/a\n"),
        ("application/octet-stream", "  http://example.org/a"),
        ("application/x-gzip", packed(MAP.encode())),
        ("image/png", packed(b"http://example.org/a")),
        ("application/gzip", packed(MAP[:20].encode()) + packed(MAP[20:].encode())),
        (
            "application/gzip",
            packed(f"<?xml version='1.0' encoding='ISO-8859-1'?>{MAP}".encode("latin-1")),
        ),
    ],
)
def test_kinds(content_type: str, text: str | bytes) -> None:
    assert urls(text, content_type) == ["/a"]


@pytest.mark.parametrize(
    ("content_type", "content"),
    [
        ("text/html", b"<html/>"),
        ("text/xml", b"<html/>"),
        ("text/xml", b""),
        ("application/gzip", b"no gzip"),
        ("application/gzip", packed(MAP.encode())[:-9]),
        ("application/gzip", packed(b"\0" * 100)),
        ("application/gzip", packed(MAP.encode() + b" " * 10_000_000)),
        ("application/gzip", packed(MAP.encode())[:12] + b"\xff" * 20),
        ("text/xml", b"<urlset><url><loc>http://example.org/\x01</loc></url></urlset>"),
        ("text/xml", b"<x:urlset><x:url/></x:urlset>"),
    ],
)
def test_what_is_no_sitemap(content_type: str, content: bytes) -> None:
    with pytest.raises(ParseError, match=URL):
        read_sitemap(content_type, content, URL, strict=True, most_bytes=10_000_000)


@pytest.mark.parametrize(
    ("body", "found"),
    [
        (
            "<url><loc>http://example.org/a<url><loc>http://example.org/b</loc></url></loc></url>",
            ["/a"],
        ),
        ("<url><loc>http://example.org/a</loc><loc>http://example.org/b</loc></url>", ["/a", "/b"]),
        ("<url><loc> \u00a0http://example.org/a\u202f\n</loc></url>", ["/a"]),
        ("<url><loc>http://example.org/a b</loc></url><url><loc>mailto:x@y</loc></url>", []),
        ("<url><loc>//example.org/a</loc></url><url><loc>a</loc></url><url><loc/></url>", []),
        ("<x:url xmlns:x='u'><x:loc>http://example.org/a</x:loc></x:url>", ["/a"]),
        ("<url><loc><![CDATA[http://example.org/a?b&c]]></loc></url>", ["/a?b&c"]),
        ("<url><loc>http://EXAMPLE.org/a</loc></url>", ["http://EXAMPLE.org/a"]),
        ("<loc>http://example.org/a</loc>", []),
    ],
)
def test_elements_in_odd_places(body: str, found: list[str]) -> None:
    text = f"<urlset>{body}</urlset>"
    assert urls(text) == found


def test_what_is_said_of_a_url_ends_with_it() -> None:
    first = (
        "<loc>http://example.org/a</loc><lastmod>2020-01-02</lastmod><changefreq> Daily"
        " </changefreq>"
    )
    found = read(
        f"<urlset><url>{first}<priority>0.9</priority></url><url><loc>http://example.org/b</loc></url></urlset>"
    )
    assert [(page.modified, page.interval, page.priority) for page in found.urls] == [
        (ms(2020, 1, 2), 86400, 0.9),
        (None, None, 0.5),
    ]


def test_strict_sitemaps_list_what_lies_below_them() -> None:
    text = "http://example.org/in/a\nhttp://example.org/a\nhttps://example.org/in/b\nhttp://example.org:80/in/c"
    assert urls(text, "text/plain", strict=True) == ["/in/a"]
    assert len(urls(text, "text/plain")) == 4
    assert base_of("http://user@example.org:8080/index.php?route=a/b") == "http://example.org:8080/"
    assert base_of("http://example.org") == "http://example.org/"
    assert base_of("file:/tmp/x/map.xml") == base_of("file:///tmp/x/map.xml") == "file:/tmp/x/"


def test_long_lists_end_somewhere() -> None:
    found = read(
        "\n".join(f"http://example.org/{number}" for number in range(MAX_LINES + 10)), "text/plain"
    )
    assert len(found.urls) == MAX_LINES


RSS = """<rss><channel><link>http://example.org/</link><item>{}<pubDate>Tue, 02 Jan 2024 10:00:00 \
+0100</pubDate></item>
<item><guid>http://example.org/2</guid></item><item><link>relative</link></item></channel></rss>"""


def test_rss() -> None:
    found = read(RSS.format("<link>/1</link><guid>http://example.org/no</guid>"))
    pages = [(page.url.removeprefix("http://example.org"), page.modified) for page in found.urls]
    assert pages == [("/1", ms(2024, 1, 2, 9)), ("/2", None), ("/in/relative", None)]


ATOM = """<feed xmlns="http://www.w3.org/2005/Atom"><link href="http://example.org/home"/>
<entry><link rel="edit" href="http://example.org/in/e"/><link href="http://example.org/in/1"/>
<updated>2024-03-02T01:02:03Z</updated></entry>
<entry><link href="http://other.example/"/><link rel="alternate" href="http://example.org/in/2"/>\
</entry>
<entry><link/><link href="not absolute"/></entry></feed>"""


def test_atom() -> None:
    found = read(ATOM, strict=True)
    assert [(page.url[-2:], page.modified) for page in found.urls] == [
        ("/1", ms(2024, 3, 2, 1, 2, 3)),
        ("/2", None),
    ]


@pytest.mark.parametrize(
    ("body", "found"),
    [
        ("<sitemap><loc>http://example.org/1</loc><lastmod>2020-01-01</lastmod></sitemap>", ["/1"]),
        (
            (
                "<sitemap>http://example.org/1</sitemap><sitemap><loc> http://example.org/2"
                " </loc></sitemap>"
            ),
            ["/1", "/2"],
        ),
        (
            "<sitemap><loc>http://example.org/1</loc><loc>http://example.org/2</loc></sitemap>",
            ["/1", "/2"],
        ),
        ("<sitemap><loc>no url</loc></sitemap><sitemap/>", []),
    ],
)
def test_indexes(body: str, found: list[str]) -> None:
    assert listed(f"<sitemapindex>{body}</sitemapindex>") == found


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("2024", ms(2024, 1, 1)),
        ("2024-05", ms(2024, 5, 1)),
        ("2024-05-06", ms(2024, 5, 6)),
        ("2023-02-31", ms(2023, 2, 28)),
        ("2024-05-06T07:08Z", ms(2024, 5, 6, 7, 8)),
        ("2024-05-06t07:08:09.1239+02:00", ms(2024, 5, 6, 5, 8, 9) + 123),
        ("2024-05-06T07:08:09-0730", ms(2024, 5, 6, 14, 38, 9)),
        ("2024-05-06T07:08:09+01", ms(2024, 5, 6, 6, 8, 9)),
        *(
            (text, None)
            for text in (
                "",
                "yesterday",
                "2024-13",
                "2024-05-32",
                " 2024",
                "2024-05-06T07:08",
                "20240506",
            )
        ),
        *(
            (text, None)
            for text in (
                "2023-02-30T00:00Z",
                "2024-05-06T24:00Z",
                "2024-05-06T07:08+19:00",
                "0000-01-01",
            )
        ),
        (None, None),
    ],
)
def test_dates(text: str | None, found: int | None) -> None:
    assert iso_date(text) == found


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("Mon, 01 Jan 2024 10:00:00 GMT", ms(2024, 1, 1, 10)),
        ("1 jan 2024 10:00 -0100", ms(2024, 1, 1, 11)),
        *(
            (text, None)
            for text in ("Tue, 01 Jan 2024 10:00:00 GMT", "01 Foo 2024 10:00 GMT", "2024-01-01", "")
        ),
        *(
            (text, None)
            for text in (
                "31 Feb 2024 10:00 GMT",
                "1 Jan 2024 10:00 EST",
                "Mon, 1 Jan 2024 25:00 GMT",
            )
        ),
    ],
)
def test_dates_of_feeds(text: str, found: int | None) -> None:
    assert feed_date(text) == found


def test_numbers_and_words() -> None:
    assert [priority_of(text) for text in ("0", "1.0", " 0.25 ", ".5", "5e-1", "0.3f")] == [
        0,
        1,
        0.25,
        0.5,
        0.5,
        0.3,
    ]
    assert {
        priority_of(text) for text in ("", "1.1", "-1", "NaN", "high", "1,0", "Infinity", "0x1p-1")
    } == {0.5}
    assert [interval_of(text) for text in (None, "never", " weekly", "sometimes")] == [
        None,
        2**31 - 1,
        604800,
        None,
    ]


@pytest.mark.parametrize(
    "text",
    ["http://a b/", "http://a/%zz", "nosuch://a/", "/a", "", "http://[x]/", "http://a/\u00a0"],
)
def test_what_is_no_url(text: str) -> None:
    assert checked_url(text) is None
