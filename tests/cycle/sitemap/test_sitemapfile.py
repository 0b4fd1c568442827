"""Sitemaps are read in all their kinds, with their dates and with elements in odd places."""

from __future__ import annotations

import gzip
import re
from datetime import UTC, datetime

import pytest

from minutch.cycle.sitemap.sitemapfile import MAX_LINES, read_sitemap
from minutch.cycle.sitemap.sitemapurls import (
    ListedUrls,
    Sitemap,
    SitemapIndex,
    base_of,
    checked_url,
    interval_of,
    iso_date,
    priority_of,
)
from minutch.errors import ParseError
from tests.support.examples import few, tabled

URL = "http://example.org/in/map.xml"


def read(
    text: str | bytes,
    content_type: str = "text/xml",
    *,
    strict: bool = False,
    most: int = 10_000_000,
) -> Sitemap:
    found = read_sitemap(
        content_type, _bytes(text), ListedUrls(URL, strict=strict), most_bytes=most
    )
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
    found = read_sitemap("text/xml", text.encode(), ListedUrls(URL, strict=True), most_bytes=1000)
    assert isinstance(found, SitemapIndex)
    return [url.removeprefix("http://example.org") for url in found.urls]


def ms(*date: int) -> int:
    return int(datetime(*date, tzinfo=UTC).timestamp() * 1000)  # type: ignore[arg-type]


def packed(data: bytes) -> bytes:
    return gzip.compress(data, mtime=0)


MAP = "<urlset><url><loc>http://example.org/a</loc></url></urlset>"


@tabled(
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


@tabled(
    ("content_type", "content"),
    [
        ("text/html", b"<html/>"),
        ("text/xml", b"<html/>"),
        ("text/xml", b""),
        ("application/gzip", b"no gzip"),
        ("application/gzip", packed(b"\0" * 100)),
        ("application/gzip", packed(MAP.encode())[:12] + b"\xff" * 20),
        ("text/xml", b"<urlset><url><loc>http://example.org/\x01</loc></url></urlset>"),
        ("text/xml", b"<urlset><url><loc>http://example.org/a"),
        ("text/xml", b"<!DOCTYPE u [<!ENTITY a 'b'>]>" + MAP.encode()),
    ],
)
def test_what_is_no_sitemap(content_type: str, content: bytes) -> None:
    with pytest.raises(ParseError, match=URL):
        read_sitemap(content_type, content, ListedUrls(URL, strict=True), most_bytes=10_000_000)


@tabled(
    ("body", "found"),
    [
        (
            "<url><loc>http://example.org/a<url><loc>http://example.org/b</loc></url></loc></url>",
            ["/a"],
        ),
        ("<url><loc>http://example.org/a</loc><loc>http://example.org/b</loc></url>", ["/a", "/b"]),
        ("<url><loc> \u00a0http://example.org/a\u202f\n</loc></url>", ["/a"]),
        ("<url><loc>mailto:x@y</loc></url><url><loc>http:/c</loc></url>", []),
        ("<url><loc>//example.org/a</loc></url><url><loc>a</loc></url><url><loc/></url>", []),
        (
            "<x:url xmlns:x='http://www.google.com/schemas/sitemap/0.84'>"
            "<x:loc>http://example.org/a</x:loc></x:url>",
            ["/a"],
        ),
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
    assert urls(text, "text/plain", strict=True) == ["/in/a", ":80/in/c"]
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
<entry><link/><link href="http://"/></entry></feed>"""


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


@tabled(
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
        (" 2024\n", ms(2024, 1, 1)),
        ("\t2024-05-06T07:08Z ", ms(2024, 5, 6, 7, 8)),
        ("2024-05-06T07:08", ms(2024, 5, 6, 7, 8)),
        ("2024-05-06 07:08:09", ms(2024, 5, 6, 7, 8, 9)),
        ("2024-05-06 07:08:09 +01:00", ms(2024, 5, 6, 6, 8, 9)),
        ("\u0662\u0660\u0662\u0664", None),
    ],
)
def test_dates(text: str | None, found: int | None) -> None:
    assert iso_date(text) == found


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


@tabled(
    "text",
    ["http://a b/", "nosuch://a/", "/a", "", "http://[x]/", "http:/c", "http://", "mailto:a@b"],
)
def test_what_is_no_url(text: str) -> None:
    assert checked_url(text) is None


@tabled(
    ("text", "found"),
    [
        ("http://a/b c", "http://a/b%20c"),
        ("http://a/?q=b c", "http://a/?q=b%20c"),
        ("http://a/b\tc", "http://a/bc"),
        ("http:\\\\a\\b", "http://a/b"),
        ("http://a/%zz", "http://a/%zz"),
        ("http://a/{b}|`", "http://a/%7Bb%7D|%60"),
        ("http://a/\u00a0", "http://a/%C2%A0"),
        ("http://a/\u00e9", "http://a/\u00e9"),
    ],
)
def test_urls_that_java_refuses_are_those_of_browsers(text: str, found: str) -> None:
    """WHATWG URL, 4.4 (blanks, tabs, backslashes) and the path percent-encode set of 1.3; what
    java.net.URI takes stays as Nutch spells it.
    """
    assert checked_url(text) == found


EXTENDED = """<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9"
xmlns:i="http://www.google.com/schemas/sitemap-image/1.1"
xmlns:x="http://www.w3.org/1999/xhtml"><url>{}</url></urlset>"""
PAGE = "<loc>http://example.org/a</loc>"


@pytest.mark.parametrize(
    "body",
    [
        "<i:image><i:loc>http://example.org/i.jpg</i:loc></i:image>",
        "<i:loc>http://example.org/i.jpg</i:loc>",
        "<undeclared:image><undeclared:loc>http://example.org/i.jpg</undeclared:loc>"
        "</undeclared:image>",
        "<undeclared:loc>http://example.org/i.jpg</undeclared:loc>",
        '<image xmlns="http://www.google.com/schemas/sitemap-image/1.1">'
        "<loc>http://example.org/i.jpg</loc></image>",
        '<x:link rel="alternate" hreflang="de" href="http://example.org/de"/>',
    ],
)
def test_images_and_other_languages_are_no_pages(body: str) -> None:
    """`loc` is a page's in the namespace of sitemaps (sitemaps.org, "XML tag definitions"); an
    image's has its own (Namespaces in XML 1.0, section 2.1).
    """
    assert urls(EXTENDED.format(body + PAGE)) == ["/a"]
    assert urls(EXTENDED.format(PAGE + body)) == ["/a"]


@pytest.mark.parametrize(
    "attributes",
    [
        '="http://www.sitemaps.org/schemas/sitemap/0.9"',
        '="http://www.google.com/schemas/sitemap/0.84"',
        '="http://wrong.example/"',
        ':sm="http://www.sitemaps.org/schemas/sitemap/0.9"',
        ':sm="http://wrong.example/"',
        ':other="http://no.prefix.declared/"',
    ],
)
def test_a_sitemap_in_any_namespace(attributes: str) -> None:
    """crawler-commons asks for no namespace (SiteMapParser.setStrictNamespace is off)."""
    prefix = "sm:" if not attributes.startswith("=") else ""
    text = re.sub("<(/?)", rf"<\1{prefix}", MAP).replace("urlset>", f"urlset xmlns{attributes}>", 1)
    assert urls(text) == ["/a"]


TWO = "<urlset><url>{}</url><url><loc>http://example.org/b</loc>"
DAMAGED = [
    (TWO.format(PAGE), ["/a", "/b"]),
    (TWO.format(PAGE) + "<priority>0.8</prior", ["/a", "/b"]),
    (TWO.format(PAGE)[:-6], ["/a"]),
    (TWO.format(PAGE)[:-9], ["/a"]),
    (
        TWO.format(PAGE) + "</url><url><loc>http://example.org/\x01c</loc></url></urlset>",
        ["/a", "/b"],
    ),
    (TWO.format(PAGE) + "</ur></urlset>", ["/a", "/b"]),
    (TWO.format(PAGE) + "</url></urlset><more/>", ["/a", "/b"]),
    (TWO.format("<loc>http://example.org/a<![CDATA[?x&y]]></loc>")[:-20], ["/a?x&y"]),
]


@tabled(("text", "found"), DAMAGED)
@tabled("gzipped", [False, True])
def test_what_stands_before_the_damage(text: str, found: list[str], gzipped: bool) -> None:
    """XML 1.0, 1.2: after a fatal error a processor may report what came before it; half a `loc`
    is none.
    """
    read_map = read(packed(text.encode()) if gzipped else text)
    assert [page.url.removeprefix("http://example.org") for page in read_map.urls] == found
    assert read_map.damage


def test_indexes_and_feeds_that_are_cut_off() -> None:
    index = "<sitemapindex><sitemap><loc>http://example.org/1</loc></sitemap><sitemap><loc>{}"
    assert listed(index.format("http://example.org/2</loc>")) == ["/1", "/2"]
    assert listed(index.format("http://example.org/2")) == ["/1"]
    rss = RSS.format("<link>/1</link>")
    assert urls(rss[: rss.index("</guid>")]) == ["/1"]
    assert urls(ATOM[: ATOM.rindex("</entry>")], strict=True) == ["/in/1", "/in/2"]


LONG = "<urlset>" + "".join(
    f"<url><loc>http://example.org/{number}{number**7}</loc></url>" for number in range(9000)
)


@pytest.mark.parametrize("end", few(["damaged", "limit", "cut", "wrong sum"], 2))
def test_gzipped_content_up_to_its_damage(end: str) -> None:
    """RFC 1952, 2.3: the sum comes after the content, which is there without it."""
    data = packed(f"{LONG}</urlset>".encode())
    half = len(data) // 2
    if end == "cut":
        data = data[:half]
    elif end == "damaged":
        data = data[:half] + b"\xff" * 50 + data[half:]
    elif end == "wrong sum":
        data = data[:-8] + b"\0" * 8
    most = 200_000 if end == "limit" else 10_000_000
    found = read(data, "application/gzip", most=most)
    assert found.damage
    if end == "wrong sum":
        assert len(found.urls) == 9000
    else:
        assert 3000 < len(found.urls) < 6500
    whole = [page.url for page in read(f"{LONG}</urlset>").urls]
    same = sum(a == page.url for a, page in zip(whole, found.urls, strict=False))
    assert same >= len(found.urls) - (end == "damaged") * len(found.urls) // 50


@pytest.mark.parametrize("gzipped", [False, True])
@pytest.mark.parametrize(
    ("data", "header"),
    [
        ("<?xml version='1.0' encoding='windows-1251'?>{}".encode("cp1251"), "text/xml"),
        (b"{}", "text/xml; charset=windows-1251"),
        (b"{}", "text/plain; charset=windows-1251"),
    ],
)
def test_encodings_that_are_declared(data: bytes, header: str, gzipped: bool) -> None:
    """RFC 7303, section 3; XML 1.0, 4.3.3."""
    text = "http://example.org/\u0434\u043e\u043c".encode("cp1251")
    text = text if "plain" in header else b"<urlset><url><loc>" + text + b"</loc></url></urlset>"
    data = data.replace(b"{}", text)
    found = read_sitemap(
        header.partition(";")[0],
        packed(data) if gzipped else data,
        ListedUrls(URL, strict=False),
        most_bytes=10_000,
        header=header,
    )
    assert [page.url for page in found.urls] == ["http://example.org/\u0434\u043e\u043c"]  # type: ignore[union-attr]


@tabled("codec", ["utf-8-sig", "utf-16", "utf-16-le", "utf-16-be"])
@tabled("gzipped", [False, True])
@tabled("text", [MAP, "\ufeffhttp://example.org/a\r\n\r\n \r\n"])
def test_unicode_in_all_its_forms(codec: str, gzipped: bool, text: str) -> None:
    """XML 1.0, appendix F: with a byte order mark or without; a list only with one."""
    data = text.removeprefix("\ufeff" if codec in ("utf-8-sig", "utf-16") else "").encode(codec)
    kind = "text/plain" if text.startswith("\ufeff") else "text/xml"
    assert urls(packed(data) if gzipped else data, kind) == ["/a"]


def test_bytes_that_are_not_utf8_reach_the_server_as_they_are() -> None:
    """A list is UTF-8 (sitemaps.org, "Text file"); of a URL in Latin-1 each odd byte is encoded
    (RFC 3986, 2.1).
    """
    assert urls(b"http://example.org/jos\xe9\nhttp://example.org/jos\xc3\xa9", "text/plain") == [
        "/jos%E9",
        "/jos\u00e9",
    ]


def test_half_a_line_is_no_url() -> None:
    text = b"http://example.org/a\nhttp://example.org/hal"
    for data, is_cut in ((text, True), (packed(text)[:-9], False)):
        found = read_sitemap(
            "", data, ListedUrls(URL, strict=False), most_bytes=1000, is_cut=is_cut
        )
        assert [page.url for page in found.urls] == ["http://example.org/a"]  # type: ignore[union-attr]
        assert found.damage


@pytest.mark.parametrize(
    ("content_type", "text"),
    [
        ("text/plain", f"<?xml version='1.0'?>{MAP}"),
        ("application/xml", "http://example.org/a"),
        ("application/xml", packed(MAP.encode())),
        ("text/plain", packed(b"http://example.org/a")),
        ("", f"<!DOCTYPE urlset SYSTEM 'http://example.org/no.dtd'>{MAP}"),
    ],
)
def test_wrong_media_types(content_type: str, text: str | bytes) -> None:
    """What the first bytes say is surer than the name (as MimeTypeDetector does for gzip)."""
    assert urls(text, content_type) == ["/a"]


def test_references_are_mended_as_those_of_feeds() -> None:
    body = "".join(
        f"<url><loc>http://example.org/{text}</loc></url>"
        for text in ("?a=1&b=2", "?a=1&amp;b=2", "&eacute;", "&#x41;&#66;")
    )
    assert urls(f"<urlset>{body}</urlset>") == ["/?a=1&b=2", "/?a=1&b=2", "/\u00e9", "/AB"]


def test_links_of_channels_images_and_extensions_are_no_items() -> None:
    """RSS 2.0: `link` of an item is its own; RFC 4287, 4.2.11: `source` has links of another
    feed; 4.2.7.2: `alternate` is what a link without `rel` is.
    """
    rss = (
        "<rss xmlns:m='http://search.yahoo.com/mrss/' xmlns:a='http://www.w3.org/2005/Atom'>"
        "<channel><link>http://example.org/home</link><image><link>http://example.org/i</link>"
        "</image><item><title>none</title></item><item><m:group><link>http://example.org/m</link>"
        "</m:group><link>http://example.org/1</link><a:link href='http://example.org/self'/>"
        "</item></channel></rss>"
    )
    assert urls(rss) == ["/1"]
    atom = (
        "<feed xmlns='http://www.w3.org/2005/Atom' xml:base='/x/'><entry xml:base='y/'>"
        "<source><link href='http://example.org/other'/></source>"
        "<link rel='edit' href='/edit'/><link rel='alternate' href='1'/></entry>"
        "<entry><link href='2'/></entry></feed>"
    )
    assert urls(atom) == ["/x/y/1", "/x/2"]
