"""parse-html: text, title, links, meta tags; expectations are what Nutch's parser gave for the same
pages.
"""

from __future__ import annotations

from functools import cache
from html import escape

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from minutch.conf import Configuration
from minutch.records.metadata import CACHING_FORBIDDEN_KEY, CHAR_ENCODING_FOR_CONVERSION_KEY
from minutch.records.parsedata import FAILED, SUCCESS, SUCCESS_REDIRECT
from tests.support.examples import examples, tabled
from tests.support.pages import URL, configuration, content, links, parse, parse_all

CONF = configuration()


def text_of(body: str) -> str:
    return parse(f"<html><head></head><body>{body}</body></html>", CONF).text


@tabled(
    ("body", "text"),
    [
        ("one<br>two<hr>three<div>x</div>four", "one two\nthree\nx\nfour"),
        ("<span><p>a</p></span>b", "a b"),
        ("a<b>b</b>c", "a b c"),
        ("a <b> b </b>\n\n c", "a b c"),
        ("<p>a</p> <p>b</p>", "a\nb"),
        ("a<!-- hidden -->b", "a b"),
        ("a<script>var x = '<b>no</b>';</script>b<style>p{}</style>c", "a b c"),
        ("a&nbsp;b \xa0 c", "a\xa0b \xa0 c"),
        ("<select><option>o1<option>o2</select>", "o1 o2"),
        ("<textarea>t &amp; <b>a</textarea>", "t & <b>a"),
        ("<noscript>ns</noscript>", "ns"),
        ("<iframe src=f>if <b>x</b></iframe>y", "if x y"),
        ("<template><p>in a template</p></template>z", "in a template z"),
        ("<p>last</p>\n", "last\n"),
        ("", ""),
    ],
)
def test_text(body: str, text: str) -> None:
    assert text_of(body) == text


def test_the_title_is_part_of_the_text_and_folded_for_itself() -> None:
    found = parse("<html><head><title> A \n title </title></head><body>b</body></html>", CONF)
    assert found.data.title == "A title"
    assert found.text == "A title b"


def test_a_title_in_the_body_counts_where_the_head_has_none() -> None:
    """HTML Standard, 3.1.5: the title element is the first one in the document, of HTML."""
    assert parse("<body>x<title>late</title>", CONF).data.title == "late"
    assert parse("<body><svg><title>s</title></svg>x<title>late</title>", CONF).data.title == "late"
    assert parse("<body><svg><title>s</title></svg>", CONF).data.title == ""
    assert parse("<title>first</title><body><title>late</title>", CONF).data.title == "first"


@tabled(
    ("markup", "title", "text", "expected"),
    [
        ('<head><title>T</title><script src="s.js"/></head><body>b</body>', "T", "T b", ["s.js"]),
        ("<head><title/></head><body>b</body>", "", "b", []),
        ("<head><title>T</title><style/></head><body>b</body>", "T", "T b", []),
        ("<body><textarea/>b <i/>c</body>", "", "b c", []),
        ("<body><![CDATA[1 < 2 & <i>]]> x</body>", "", "1 < 2 & <i> x", []),
        ("<body>a<?php echo '<b>' ?>b</body>", "", "ab", []),
        ('<body><a name="x"/>b <a href="c">d</a><br/>e</body>', "", "b d e", ["c"]),
        ("<body><svg><g/><text>t</text></svg>b</body>", "", "t b", []),
        ("<body><!-- <script/> -->b & c < d</p></body>", "", "b & c < d\n", []),
    ],
)
def test_xhtml(markup: str, title: str, text: str, expected: list[str]) -> None:
    """XML 1.0, 2.6 (instructions), 2.7 (CDATA), 3.1 (empty elements); what is not well-formed is
    read as far as it makes sense.
    """
    start = '<?xml version="1.0"?><html xmlns="http://www.w3.org/1999/xhtml">'
    found = parse(f"{start}{markup}</html>", CONF, "application/xhtml+xml")
    assert (found.data.title, " ".join(found.text.split(" "))) == (title, text)
    assert [url for url, _ in links(found)] == [f"http://example.org/dir/{x}" for x in expected]


def test_a_prefix_that_stands_for_xhtml() -> None:
    """Namespaces in XML 1.0, 3."""
    page = '<h:html xmlns:h="http://www.w3.org/1999/xhtml"><h:body><h:a href="x">y</h:a></h:body>'
    found = parse(page + "</h:html>", CONF, "application/xhtml+xml")
    assert links(found) == [("http://example.org/dir/x", "y")]


def test_line_separators_are_configured() -> None:
    conf = configuration(parser_html_line_separators="b")
    assert parse("<p>x</p><p>y <b>z</b> w</p>", conf).text == "x y\nz\nw"


@tabled(
    ("markup", "expected"),
    [
        ('<a href="b.html"><b>x</b> y</a>', [("http://example.org/dir/b.html", "x y")]),
        ('<a href="/r"></a>', []),
        ('<a href="z"><!-- c --></a>', [("http://example.org/dir/z", "")]),
        ('<a href=" w "> </a>', [("http://example.org/dir/w", "")]),
        ('<a href="?q=1">q</a>', [("http://example.org/dir/page.html?q=1", "q")]),
        ('<a href="#f">f</a>', [("http://example.org/dir/page.html#f", "f")]),
        ('<a href="">e</a>', [(URL, "e")]),
        ("<a>no target</a>", []),
        ('<a href="javascript:void(0)">js</a>', []),
        ('<a href="u"><div>x</div><div>y</div></a>', [("http://example.org/dir/u", "x\ny")]),
        ('<a rel="noopener NoFollow" href="n">n</a>', []),
        ('<a rel="nofollowing" href="n">n</a>', [("http://example.org/dir/n", "n")]),
        ('<map><area href="m" alt="not read"></map>', [("http://example.org/dir/m", "")]),
        ('<img src="i.png" alt=" an image ">', [("http://example.org/dir/i.png", "an image")]),
        (
            '<a href="x"><img src="i" alt="A b"> <img src="j" alt="c"></a>',
            [
                ("http://example.org/dir/x", "A b   c"),
                ("http://example.org/dir/i", "A b"),
                ("http://example.org/dir/j", "c"),
            ],
        ),
        ('<script src="s">body()</script>', [("http://example.org/dir/s", "body()")]),
        ('<iframe src="f"></iframe>', [("http://example.org/dir/f", "")]),
        ('<video><source src="v.mp4"></video>', [("http://example.org/dir/v.mp4", "")]),
        ('<form action="/find"><input></form>', []),
        (
            '<a href="a"><script>document.write(1)</script></a>',
            [("http://example.org/dir/a", "document.write(1)")],
        ),
    ],
)
def test_links(markup: str, expected: list[tuple[str, str]]) -> None:
    assert links(parse(f"<html><head></head><body>{markup}</body></html>", CONF)) == expected


def test_links_of_the_head_come_first() -> None:
    found = parse(
        "<head><link rel=stylesheet href=s.css><script src=h.js></script></head><body><a"
        " href=a>a</a>",
        CONF,
    )
    assert [url.rpartition("/")[2] for url, _ in links(found)] == ["s.css", "h.js", "a"]


def test_elements_to_ignore_and_form_actions() -> None:
    page = (
        '<body><img src=i><script src=s></script><form action="/f"><input></form><form action="/p"'
        " method=POST>x</form>"
    )
    assert (
        links(parse(page, configuration(**{"parser.html.outlinks.ignore_tags": "img,script"})))
        == []
    )
    conf = configuration(
        **{
            "parser.html.outlinks.ignore_tags": "img,script,form",
            "parser.html.form.use_action": "true",
        }
    )
    assert links(parse(page, conf)) == [("http://example.org/f", "")]


def test_the_element_of_a_link_as_metadata() -> None:
    conf = configuration(**{"parser.html.outlinks.htmlnode_metadata_name": "node"})
    [link] = parse("<body><iframe src=f>filled</iframe>", conf).data.outlinks
    assert [(str(key), str(value)) for key, value in (link.metadata or {}).items()] == [
        ("node", "iframe")
    ]


@pytest.mark.parametrize(
    ("base", "expected"),
    [
        ("http://base.example/d/", "http://base.example/d/x"),
        ("sub/", "http://example.org/dir/sub/x"),
        ("nosuch:base", "http://example.org/dir/x"),
    ],
)
def test_base(base: str, expected: str) -> None:
    assert links(parse(f'<head><base href="{base}"></head><body><a href=x>x</a>', CONF)) == [
        (expected, "x")
    ]


def test_a_base_that_is_a_query_only_is_one_of_the_directory() -> None:
    assert links(parse('<head><base href="?q=1"></head><body><a href="?z">x</a>', CONF)) == [
        ("http://example.org/dir/?z", "x")
    ]


def test_links_as_browsers_make_them() -> None:
    page = (
        '<head><base href="?q=1"></head><body><a href="?z">a</a><a'
        ' href="\\\\B\u00fccher.example\\\u00e9 x">b</a>'
    )
    found = links(parse(page, configuration(**{"parser.html.outlinks.whatwg": "true"})))
    assert found == [
        ("http://example.org/dir/page.html?z", "a"),
        ("http://xn--bcher-kva.example/%C3%A9%20x", "b"),
    ]


@pytest.mark.parametrize(
    ("page", "expected"),
    [
        ("<base href='data:,x'><a href=x>x</a>", "http://example.org/dir/x"),
        ("<body>y<base href='http://b.example/'><a href=x>x</a>", "http://b.example/x"),
        ("<body><base href='/1/'><base href='/2/'><a href=x>x</a>", "http://example.org/1/x"),
        ("<a href='///b.example/y'>x</a>", "http://b.example/y"),
        ("<a href='/a\tb'>x</a>", "http://example.org/ab"),
        ("<meta charset=windows-1251><a href='/?\u0445'>x</a>", "http://example.org/?%F5"),
    ],
)
def test_bases_and_queries_as_browsers_take_them(page: str, expected: str) -> None:
    """HTML Standard, 4.2.3 (base URLs), 2.4.2 (encoding-parse); URL Standard, 4.4."""
    conf = configuration(**{"parser.html.outlinks.whatwg": "true"})
    markup = page.encode("cp1251" if "windows" in page else "utf-8")
    assert links(parse(markup, conf)) == [(expected, "x")]


@pytest.mark.parametrize(
    ("target", "whatwg", "expected"),
    [
        ("///b.example/x", "true", "http://b.example/x"),
        ("\\\\b.example\\x", "true", "http://b.example/x"),
        ("/a\tb", "true", "http://example.org/ab"),
        ("mailto:x", "true", None),
        ("///b.example/x", "false", "http://example.org/dir/page.html"),
        ("?x", "false", "http://example.org/dir/page.html?x"),
        ("x", "false", "http://example.org/dir/x"),
    ],
)
def test_a_refresh_is_resolved_as_links_are(target: str, whatwg: str, expected: str | None) -> None:
    """HTML Standard, 4.2.5.3 (shared declarative refresh steps); RFC 3986, 5.2.2."""
    conf = configuration(**{"parser.html.outlinks.whatwg": whatwg})
    found = parse(f'<meta http-equiv=refresh content="0;url={target}">', conf)
    assert found.data.status.args == (expected and [expected, "0"])


def test_a_refresh_is_relative_to_the_base_element() -> None:
    """HTML Standard, 4.2.5.3, step 11.11: relative to the document."""
    page = '<base href="/b/"><meta http-equiv=refresh content="0;url=x">'
    assert parse(page, CONF).data.status.args == ["http://example.org/b/x", "0"]


def test_a_base_in_the_body_does_not_count() -> None:
    assert links(parse('<body>x<base href="http://b.example/"><a href=x>x</a>', CONF)) == [
        ("http://example.org/dir/x", "x")
    ]


@tabled(
    ("robots", "has_text", "has_links", "caching"),
    [
        ("noindex", False, True, None),
        ("NOFOLLOW", True, False, None),
        ("none", False, False, None),
        ("noarchive", True, True, "content"),
        ("index,follow,all", True, True, None),
        ("max-snippet:-1, max-image-preview:none", True, True, None),
        ("max-image-preview: none; noarchive", True, True, "content"),
        ("noindexed, nofollowing", True, True, None),
        ("max-snippet:20 noindex nofollow", False, False, None),
        ("unavailable_after: 25 Jun 2030, nofollow", True, False, None),
        ("noarchive, unavailable_after: Saturday, 25-Jun-11 15:00:00 PST", False, True, "content"),
    ],
)
def test_robots(robots: str, has_text: bool, has_links: bool, caching: str | None) -> None:
    found = parse(
        f'<head><meta name=Robots content="{robots}"><title>T</title></head><body><a href=a>x</a>',
        CONF,
    )
    assert bool(found.text) == has_text == bool(found.data.title)
    assert bool(found.data.outlinks) == has_links
    assert found.data.parse_meta.get(CACHING_FORBIDDEN_KEY) == caching
    assert found.data.parse_meta["robots"] == [robots]


@cache
def for_us(plugins: str, counts: str) -> Configuration:
    return configuration(plugins, http_agent_name="Ours", parser_x_robots_tag=counts)


@tabled(
    ("header", "has_text"),
    [
        (["noindex"], False),
        (["otherbot: noindex"], True),
        (["*: noindex"], False),
        (["googlebot: nofollow, ours: noindex"], False),
        (["ours: nofollow, googlebot: noindex"], True),
        (["other name: x", "Ours: none"], False),
        (["unavailable_after: Sat, 25 Jun 2030 15:00:00 PST, noindex"], False),
        (["unavailable_after: 1 Jan 2010"], False),
        (["otherbot: unavailable_after: 1 Jan 2010"], True),
        (["Ours: unavailable_after: Fri, 1 Jan 2010 00:00:00 GMT"], False),
        (["noindex", "otherbot: nofollow"], False),
        (["max-image-preview: none"], True),
    ],
)
@tabled("name", ["X-Robots-Tag", "x-robots-tag"])
@tabled(("plugins", "kind"), [("parse-html", "html"), ("parse-text", "plain")])
def test_x_robots_tag(
    header: list[str], has_text: bool, name: str, plugins: str, kind: str
) -> None:
    """Names of fields have no case (RFC 9110, 5.1), lines add up (5.3); an agent's name holds up to
    the next one (developers.google.com, "Robots meta tag … specifications", X-Robots-Tag).
    """
    page = content("<body>text</body>", f"text/{kind}")
    page.metadata[name] = header
    parsed = parse_all(page, for_us(plugins, "true"))[URL]
    assert bool(parsed.text) == has_text
    assert (parsed.data.parse_meta.get("robots") is None) == has_text
    assert parse_all(page, for_us(plugins, "false"))[URL].text


def test_a_robots_element_may_name_this_crawler() -> None:
    page = '<meta name="OURS" content="noindex"><meta name=other content=nofollow><a href=a>x</a>'
    found = parse(page, configuration(http_agent_name="ours"))
    assert not found.text and found.data.outlinks
    assert found.data.parse_meta["robots"] == ["noindex"]
    assert parse(page, CONF).text


def test_pragma_no_cache_and_the_policy() -> None:
    conf = configuration(parser_caching_forbidden_policy="all")
    found = parse('<head><meta http-equiv="Pragma" content="No-Cache"></head><body>x', conf)
    assert found.data.parse_meta.get(CACHING_FORBIDDEN_KEY) == "all"


@tabled(
    ("value", "args"),
    [
        ("0; URL=target.html", ["http://example.org/dir/target.html", "0"]),
        ("5;url='/q'", ["http://example.org/q", "5"]),
        ('0;URL="/q"; more', ["http://example.org/q", "0"]),
        ("0 , url = 'a b", ["http://example.org/dir/a b", "0"]),
        ("7 u", ["http://example.org/dir/u", "7"]),
        ("7;url", ["http://example.org/dir/url", "7"]),
        ("1.5.2; url=x", ["http://example.org/dir/x", "1"]),
        (".5;x", ["http://example.org/dir/x", "0"]),
        ("99999999999", [URL, "2147483647"]),
        ("9" * 5000 + ";x", ["http://example.org/dir/x", "2147483647"]),
        ("0;'/q'x", ["http://example.org/q", "0"]),
        ("5;", [URL, "5"]),
        ("5;url=''", [URL, "5"]),
        ("3; http://other.example/", ["http://other.example/", "3"]),
        ("10", [URL, "10"]),
        ("soon; url=x", None),
        ("-1; url=x", None),
        ("5x; url=y", None),
        ("\xa05; url=y", None),
    ],
)
def test_meta_refresh(value: str, args: list[str] | None) -> None:
    status = parse(
        f'<head><meta http-equiv=refresh content="{escape(value)}"></head><body>x', CONF
    ).data.status
    assert status.major == SUCCESS
    assert (status.minor, status.args) == ((SUCCESS_REDIRECT, args) if args else (0, None))


def test_meta_tags_are_parse_metadata() -> None:
    found = parse(
        '<head><meta name="Author" content="A"><meta name=author content="B"><meta'
        " name=empty></head>",
        CONF,
    )
    assert found.data.parse_meta["author"] == ["A", "B"]
    assert "empty" not in found.data.parse_meta


def test_no_meta_tags_from_the_body() -> None:
    assert "author" not in parse("<body>x<meta name=author content=A>", CONF).data.parse_meta


@pytest.mark.parametrize(
    ("page", "text"),
    [
        ("<html><head><title>ü</title></head><body>x", "\ufeff ü x"),
        ("<html>\n<head>\n<title>t", "\ufeff\nt"),
        ("<p>x", "\ufeff\nx"),
        (" <b>x", "\ufeff x"),
        ("<!DOCTYPE html>\n<html><head><title>t", "\ufeff t"),
    ],
)
def test_a_byte_order_mark_of_utf8_is_a_text_before_the_page_as_in_nutch(
    page: str, text: str
) -> None:
    found = parse(f"\ufeff{page}", CONF)
    assert found.text == text
    assert "\ufeff" not in found.data.title
    assert found.data.parse_meta.get(CHAR_ENCODING_FOR_CONVERSION_KEY) == "utf-8"


def test_a_base_url_that_is_none_is_a_failure() -> None:
    page = content("x")
    page.base = "no url"
    assert parse_all(page, CONF)[URL].data.status.major == FAILED


@tabled(
    "page",
    [
        b"",
        b"\0\0\0",
        b"\xff\xfe",
        b"<" * 5000,
        b"<a href=" * 500,
        b"<table><a href=x><tr><td><a href=y>" * 50,
        b"&#0;&#xD800;&#x110000;",
        "\ufdd0\ufdd1<p>\ufdd1".encode(),
        b"<frameset><frame src=x><noframes><a href=y>z</a></noframes></frameset>",
        b"<title>" * 100,
        b"<!--" + b"-" * 1000,
        b"<svg><script>x</script><style>y</style><title>t</title><a href=z>l</a></svg>",
    ],
)
def test_hostile_pages_have_a_parse(page: bytes) -> None:
    assert parse(page, CONF).data.status.is_success


SOUP = """<a href=x> </a> <p> </p> <div> </div> <table> <td> t <b> </b> <img alt=q> \
<script>s </script> <title>
</title> <body> <base href=/b/> <!-- --> <iframe> </iframe> <template> & &amp; <select> \
<option> é"""


@settings(max_examples=examples(150))
@given(st.lists(st.sampled_from([*SOUP.split(), " ", "\n", "\x00", "\ufdd1"]), max_size=60))
def test_no_soup_breaks_the_walk(tokens: list[str]) -> None:
    found = parse("".join(tokens), CONF)
    assert found.data.status.is_success
    assert "\0" not in found.text
    assert "  " not in found.text
    assert "\n\n" not in found.text
