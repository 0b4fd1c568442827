"""Metadata of HTML pages and feeds."""

from __future__ import annotations

from typing import Any

import pytest
from selectolax.lexbor import LexborHTMLParser

from minutch.annexes.dataset.pagedocs import description_of, feed_doc, html_doc, is_feed
from minutch.errors import ParseError

URL = "http://example.org/dir/page.html"

HTML = """<html><head><title>
 A title </title><meta charset=utf-8><meta name=description content="What it is">\
<meta property="og:title" content=T>
<link rel=stylesheet type=text/css href=/s.css media=screen><link rel=next href=p2.html>
<script src=a.js></script><script type=text/javascript src=b.js async></script>\
<script>var inline</script></head>
<body><a href="x.html#f" class=k TITLE=t>some <b>text</b></a><a name=here>no link</a>\
<a href="javascript:go()">x</a>
<a href=" MAILTO:a@b.org ">mail</a><map><area shape=rect coords=1,2 href=area.html></map>\
<img src=i.png alt="">
<iframe src=//other.org/f width=1>inner <i>text</i></iframe><a href="http://[">bad</a>\
<a type=t text=u href=?q=1>q</a>
</body></html>"""
LINKS = [
    {
        "type": "text/css",
        "rel": "stylesheet",
        "media": "screen",
        "text": "",
        "href": "http://example.org/s.css",
    },
    {"type": "link", "rel": "next", "text": "", "href": "http://example.org/dir/p2.html"},
    {"type": "script", "text": "", "href": "http://example.org/dir/a.js"},
    {"type": "text/javascript", "async": "", "text": "", "href": "http://example.org/dir/b.js"},
    {
        "type": "a",
        "class": "k",
        "title": "t",
        "text": "some text",
        "href": "http://example.org/dir/x.html#f",
    },
    {"type": "a", "text": "mail", "href": "MAILTO:a@b.org"},
    {
        "type": "area",
        "shape": "rect",
        "coords": "1,2",
        "text": "",
        "href": "http://example.org/dir/area.html",
    },
    {"type": "img", "alt": "", "text": "", "href": "http://example.org/dir/i.png"},
    {"type": "iframe", "width": "1", "text": "inner <i>text</i>", "href": "http://other.org/f"},
    {"type": "a", "text": "q", "href": "http://example.org/dir/page.html?q=1"},
]


def document(html: str) -> dict[str, Any]:
    return html_doc(LexborHTMLParser(html), URL)


def test_html() -> None:
    doc = document(HTML)
    assert list(doc) == ["type", "title", "meta_tags", "links"]
    assert doc["title"] == "\n A title "
    assert doc["meta_tags"] == [
        {"charset": "utf-8"},
        {"name": "description", "content": "What it is"},
        {"property": "og:title", "content": "T"},
    ]
    assert description_of(doc) == "What it is"
    assert doc["links"] == LINKS
    assert [list(link)[-2:] for link in doc["links"]] == [["text", "href"]] * len(LINKS)


def test_frames_and_a_base() -> None:
    doc = document("<base href=/up/><frameset><frame src=one.html name=f></frameset>")
    assert doc["links"] == [
        {"type": "frame", "name": "f", "text": "", "href": "http://example.org/up/one.html"}
    ]
    assert (
        document("<base href='http://['><a href=x>y</a>")["links"][0]["href"]
        == "http://example.org/dir/x"
    )


@pytest.mark.parametrize("html", ["", "<p>nothing", "<a>x</a>", "\0"])
def test_a_page_without_any_has_no_member(html: str) -> None:
    assert document(html) == {"type": "html-doc"}
    assert description_of(document(html)) == ""


RSS = """<?xml version="1.0"?><rss version="2.0" xmlns:dc="http://purl.org/dc/elements/1.1/"
 xmlns:content="http://purl.org/rss/1.0/modules/content/"><channel><title>News</title>\
<link>http://example.org/</link>
<description>All of it</description><pubDate>Fri, 23 Oct 2009 00:00:00 GMT</pubDate>
<lastBuildDate>Fri, 30 Oct 2009 00:00:16 +0000</lastBuildDate><category>World</category>\
<generator>G</generator>
<ttl>60</ttl><item><title>One</title><description>&lt;p&gt;first &lt;a href="/1#c" \
rel=x&gt;here&lt;/a&gt;&lt;/p&gt;
</description><link>http://example.org/1</link><author>a@example.org</author>\
<category>X</category><category>Y</category>
<comments>http://example.org/1#comments</comments><pubDate>Fri, 30 Oct 2009 12:00:16 EST</pubDate>\
<guid>g1</guid>
<content:encoded>&lt;a href="/2"&gt;two&lt;/a&gt;</content:encoded></item><item>\
<dc:creator>B</dc:creator></item>
</channel></rss>"""


def test_rss() -> None:
    doc, text = feed_doc(RSS.encode(), URL)
    first, second = doc.pop("items")
    assert doc == {
        "type": "rss-feed",
        "title": "News",
        "link": {"href": "http://example.org/"},
        "description": "All of it",
        "updated": 1256860816000,
        "categories": ["World"],
        "generator": "G",
        "ttl": 60,
    }
    assert first.pop("content") == [
        {
            "type": "html-doc",
            "links": [{"type": "a", "text": "two", "href": "http://example.org/2"}],
        },
        {
            "type": "html-doc",
            "links": [{"type": "a", "rel": "x", "text": "here", "href": "http://example.org/1#c"}],
        },
    ]
    assert first == {
        "title": "One",
        "description": "first here",
        "link": {"href": "http://example.org/1"},
        "author": "a@example.org",
        "categories": ["X", "Y"],
        "comments": "http://example.org/1#comments",
        "published": 1256922016000,
        "guid": "g1",
    }
    assert second == {"author": "B"}
    assert text == "News\nAll of it\nOne\nfirst here"


ATOM = """<feed xmlns="http://www.w3.org/2005/Atom"><title type="html">A &lt;b&gt;feed&lt;/b&gt;\
</title>
<link href="http://example.org/" type="text/html"/><link rel="self" href="http://example.org/atom"/>
<updated>2009-10-30T00:00:16Z</updated><author><name>N</name><uri>http://example.org/n</uri>\
<email>n@x</email></author>
<generator>G</generator><entry><title>One</title><summary>S &amp;amp; T</summary>
<published>2009-10-30T00:00:16Z</published><updated>2009-10-31T00:00:16.5+01:00</updated>
<link rel="alternate" href="http://example.org/1" title="t"/>
<link rel="alternate" href="http://example.org/1b"/><link rel="self" href="http://example.org/s"/>
<link rel="replies" href="http://example.org/r"/><link rel="edit" href="http://example.org/e"/>\
<link rel="self"/>
<author><name>N</name></author><category term="c"/><content type="xhtml">\
<div xmlns="http://www.w3.org/1999/xhtml">
<a href="/in">in</a></div></content></entry></feed>"""


def test_atom() -> None:
    doc, text = feed_doc(ATOM.encode(), URL)
    (entry,) = doc.pop("items")
    assert doc == {
        "type": "atom-feed",
        "title": "A feed",
        "link": {"type": "text/html", "href": "http://example.org/", "rel": "alternate"},
        "authors": [{"name": "N", "url": "http://example.org/n", "email": "n@x"}],
        "generator": "G",
        "updated": 1256860816000,
        "categories": [],
    }
    assert entry == {
        "title": "One",
        "description": "S & T",
        "published": 1256860816000,
        "updated": 1256943616500,
        "link": [
            {"href": "http://example.org/1", "rel": "alternate", "title": "t"},
            {"href": "http://example.org/1b", "rel": "alternate"},
        ],
        "self": {"href": "http://example.org/s", "rel": "self"},
        "replies": {"href": "http://example.org/r", "rel": "replies"},
        "authors": [{"name": "N"}],
        "categories": ["c"],
        "content": {
            "type": "html-doc",
            "links": [{"type": "a", "text": "in", "href": "http://example.org/in"}],
        },
    }
    assert text == "A feed\nOne\nS & T"


def test_rdf() -> None:
    rdf = """<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#" \
xmlns="http://purl.org/rss/1.0/"
    xmlns:dc="http://purl.org/dc/elements/1.1/"><channel><title>C</title></channel>
    <item><title>I</title><dc:date>2009-10-30T00:00:16Z</dc:date><dc:subject>s</dc:subject></item>\
</rdf:RDF>"""
    doc, _ = feed_doc(rdf.encode(), URL)
    assert doc["items"] == [{"title": "I", "categories": ["s"], "published": 1256860816000}]


@pytest.mark.parametrize("data", [b"", b"<html></html>", b"no", b"<rss"])
def test_what_is_no_feed(data: bytes) -> None:
    if data == b"<rss":
        assert feed_doc(data, URL)[0]["items"] == []
        return
    with pytest.raises(ParseError):
        feed_doc(data, URL)


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (RSS.encode(), True),
        (ATOM.encode(), True),
        (b"\xef\xbb\xbf<?xml version='1.0'?>\n<!-- c --><!DOCTYPE rss><rss/>", True),
        (b"<rdf:RDF/>", True),
        (b"<svg/>", False),
        (b"", False),
    ],
)
def test_is_feed(data: bytes, expected: bool) -> None:
    assert is_feed(data) is expected


def test_entities_are_not_followed() -> None:
    bomb = (
        b"<!DOCTYPE rss [<!ENTITY a SYSTEM"
        b" 'file:///etc/passwd'>]><rss><channel><title>x&a;</title></channel></rss>"
    )
    assert "root" not in feed_doc(bomb, URL)[0].get("title", "")
