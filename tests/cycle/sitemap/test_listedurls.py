"""The URLs of sitemaps as browsers see them (parser.html.outlinks.whatwg)."""

from __future__ import annotations

import pytest

from minutch.cycle.sitemap.sitemapfile import read_sitemap
from minutch.cycle.sitemap.sitemapurls import ListedUrls, Sitemap
from tests.support.examples import tabled

URL = "http://Example.org:80/in/map.xml"
BROWSERS = {
    "http://example.org/in/a": "http://example.org/in/a",
    "///example.org/in/b": "http://example.org/in/b",
    "\\\\example.org\\in\\c": "http://example.org/in/c",
    "//example.org/in/d": "http://example.org/in/d",
    "HTTP:\\\\EXAMPLE.org/in/../in/e": "http://example.org/in/e",
    "http://example.org/in/f\tg": "http://example.org/in/fg",
    "http://example.org:80/in/'h'": "http://example.org/in/'h'",
    "http:///example.org/in/\u00e9 i": "http://example.org/in/%C3%A9%20i",
    "http://example.org/other/j": None,
    "http://elsewhere.org/in/k": None,
    "in/l": None,
    "/in/m": None,
    "Pages of this site": None,
    "http://": None,
    "javascript:n()": None,
}


@pytest.mark.parametrize("kind", ["xml", "plain", "rss"])
def test_urls_of_the_standard(kind: str) -> None:
    """WHATWG URL, 4.4 (slashes, backslashes, tabs, default ports); sitemaps.org: `loc` begins with
    the protocol, so what names no host is none. Feeds may have relative links (RFC 4287, 2).
    """
    form = {
        "xml": ("<urlset>{}</urlset>", "<url><loc>{}</loc></url>"),
        "plain": ("{}", "{}\n"),
        "rss": ("<rss><channel>{}</channel></rss>", "<item><link>{}</link></item>"),
    }[kind]
    body = form[0].format("".join(map(form[1].format, BROWSERS))).encode()
    listed = ListedUrls(URL, strict=True, whatwg=True)
    found = read_sitemap(f"text/{kind}", body, listed, most_bytes=1000)
    assert isinstance(found, Sitemap)
    expected = [url for url in BROWSERS.values() if url is not None]
    if kind == "rss":
        more = ["in/l", "Pages%20of%20this%20site"]
        expected += [f"http://example.org/in/{more[0]}", "http://example.org/in/m"]
        expected += [f"http://example.org/in/{more[1]}"]
    assert [page.url for page in found.urls] == expected


@tabled(
    ("url", "is_listed"),
    [
        ("http://example.org/in/a", True),
        ("http://EXAMPLE.org/in/a?b", True),
        ("http://example.org:80/in/a", True),
        ("http://example.org:8080/in/a", False),
        ("https://example.org/in/a", False),
        ("http://user@example.org/in/a", False),
        ("http://example.org/IN/a", False),
        ("http://example.org.evil.example/in/a", False),
        ("http://example.org/out/../%69n/a", True),
        ("no URL", False),
    ],
)
def test_the_folder_of_a_sitemap_however_its_host_is_spelled(url: str, is_listed: bool) -> None:
    """RFC 3986, 6.2.2.1 (case of hosts, not of paths) and 6.2.3 (default ports)."""
    assert ListedUrls(URL, strict=True).allows(url) == is_listed


def test_a_host_alone_is_in_its_root() -> None:
    listed = ListedUrls("http://example.org/sitemap.xml", strict=True)
    for url in ("http://example.org", "http://example.org?q", "HTTP://example.org.:80#top"):
        assert listed.allows(url)


@pytest.mark.parametrize("text", ["///example.org/a", "\\\\example.org\\b", "//example.org/c"])
def test_by_default_they_are_none(text: str) -> None:
    """RFC 3986, 3: they have no scheme."""
    assert ListedUrls(URL, strict=False).read(text) is None
