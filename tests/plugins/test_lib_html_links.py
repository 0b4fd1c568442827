"""lib-html: links that browsers find and Nutch does not, kind by kind, from markup, headers, style
sheets and text.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from html import escape
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from minutch.conf import Configuration
from minutch.errors import ConfigError
from minutch.kernels import html as kernels
from minutch.plugin.points import Parse
from plugins.lib_html import tree_reader
from plugins.lib_html.browserlinks import (
    DEEPEST,
    BrowserLinks,
    _for_programs,
    _with_drawings,
    may_have_links,
    run_of,
)
from plugins.lib_html.elements import (
    BROWSER_LINKS,
    KINDS,
    Elements,
    in_css,
    in_link_header,
    in_srcset,
    in_text,
    kinds_of,
)
from plugins.lib_html.tree import plain_tree
from tests.support.examples import every, examples, tabled
from tests.support.golden import PROJECT
from tests.support.interpreted import compared  # noqa: F401
from tests.support.pages import URL, configuration, content, links, parse, parse_all

NUTCHS = configuration()
ALL = configuration(**{"parser.html.outlinks.browser": "true"})
HOST = "http://example.org"

Read = Callable[[str], Iterator[Any]]


def only(*kinds: str) -> Configuration:
    return configuration(**{"parser.html.outlinks.kinds": ",".join(kinds)})


def targets(found: Parse) -> list[str]:
    """The links of a page on this host by their paths, others whole."""
    return [url.removeprefix(HOST) for url, _ in links(found)]


PAGES = [
    ("base", "<head><base href=/b/></head><body>x", ["/b/"]),
    (
        "background",
        "<body background=/a><table background=/b><td background=/c>x",
        ["/a", "/b", "/c"],
    ),
    (
        "cite",
        "<blockquote cite=/a>x</blockquote><q cite=/b>x</q><del cite=/c>x</del><p cite=/no>x",
        ["/a", "/b", "/c"],
    ),
    (
        "comment",
        (
            "<p>x<!--[if lt IE 9]><script src=/a></script><a href=/b>y</a><![endif]--><!-- <a"
            " href=/no>z -->"
        ),
        ["/a", "/b"],
    ),
    (
        "css",
        (
            "<style>@import '/a'; p {background: URL( \"/b\" )}</style><p style='list-style:"
            " url(/c)'>x"
        ),
        ["/a", "/b", "/c"],
    ),
    ("css", "<style>/* url(/no) */ q {content: 'url(/no)'} @import url(/a);</style>", ["/a"]),
    (
        "data",
        "<object data=\"data:image/svg+xml,<svg><image xlink:href='/a'/></svg>\"></object>",
        [],
    ),
    (
        "data,svg",
        "<object data=\"data:image/svg+xml,<svg><image xlink:hr%65f='/a'/></svg>\"></object>",
        ["/a"],
    ),
    ("data", "<embed src='data:text/html;charset=utf-8;base64,PGEgaHJlZj0vYT54PC9hPg=='>", ["/a"]),
    ("doctype", "<!DOCTYPE html SYSTEM '/a.dtd'><p>x", ["/a.dtd"]),
    ("doctype", "<!DOCTYPE html PUBLIC '-//W3C//DTD HTML 4.01//EN' '/no.dtd'><p>x", []),
    ("empty", "<a href=/a></a><a href=#x></a><a href=/b rel=nofollow></a><a>x</a>", ["/a"]),
    (
        "form",
        (
            "<form><button formaction=/a>x</button><input type=submit formaction=/b></form><isindex"
            " action=/c><form action=/d></form><form action=/e>y</form>"
        ),
        ["/a", "/b", "/c", "/d", "/e"],
    ),
    (
        "frame",
        "<p>x<frameset><frame src=/a></frame><FRAME name='>' src='/b'></frameset><framed src=/no>",
        ["/a", "/b"],
    ),
    ("frame", "<frameset><frame name=a></frameset>", []),
    ("longdesc", "<img longdesc=/a alt=x><iframe longdesc=/b>y</iframe>", ["/a", "/b"]),
    ("manifest", "<html manifest=/a><p>x", ["/a"]),
    (
        "media",
        "<audio src=/a></audio><video src=/b poster=/c><track src=/d></video><embed src=/e>",
        ["/a", "/b", "/c", "/d", "/e"],
    ),
    (
        "media",
        "<object data=/a codebase=/b archive='/c /d'><param value=/e><param value=no></object>",
        ["/a", "/b", "/c", "/d", "/e"],
    ),
    (
        "media",
        (
            "<input type=image src=/a><img dynsrc=/b lowsrc=/c><applet archive=/d,/e"
            " codebase=/f></applet>"
        ),
        ["/a", "/b", "/c", "/d", "/e", "/f"],
    ),
    (
        "meta",
        (
            "<head><meta property=og:image content=http://a.example/i.png><meta"
            " name=msapplication-config content=/a>"
        ),
        ["http://a.example/i.png", "/a"],
    ),
    (
        "meta",
        (
            "<head><meta http-equiv=Content-Security-Policy content=\"img-src 'self' /no;"
            ' report-uri /a /b">'
        ),
        ["/a", "/b"],
    ),
    (
        "meta",
        (
            "<head><meta name=copyright content=\"<img src='/a'>\"><meta name=x"
            " content=and/or><meta name=empty>"
        ),
        ["/a"],
    ),
    ("meta", "<head><meta http-equiv=refresh content=\"9; url='/a'\">", ["/a"]),
    ("ping", "<a href=x ping='/a /b'>x</a><area ping=/c>", ["/dir/x", "/a", "/b", "/c"]),
    ("post", "<form action=/a method=POST>x</form><form action=/no></form>", ["/a"]),
    ("profile", "<head profile='/a /b'></head><body>x", ["/a", "/b"]),
    ("srcdoc", "<iframe srcdoc='<a href=/a>x</a><p>y'></iframe>z", ["/a"]),
    ("srcdoc", "<iframe srcdoc='<a href=/a>x</a>'>fallback</iframe>", ["/a"]),
    (
        "srcset",
        "<img srcset='/a 1x,\n /b 2x'><source srcset='/c,/d'><link imagesrcset='/e 9w, /f,'>",
        ["/a", "/b", "/c,/d", "/e", "/f"],
    ),
    (
        "svg",
        "<svg><image xlink:href=/a /><use href=/b#c /><script xlink:href=/d></script></svg>",
        ["/a", "/b#c", "/d"],
    ),
    (
        "text",
        "<p>see http://a.example/x, or ../a/b.html. Not and/or a.b",
        ["http://a.example/x"],
    ),
]


@tabled(("kinds", "page", "expected"), PAGES)
def test_each_kind_alone(kinds: str, page: str, expected: list[str]) -> None:
    found = targets(parse(page, only(*kinds.split(","))))
    assert [target for target in found if target != "/iframe"] == expected
    everything = targets(parse(page, ALL))
    if kinds != "text":
        assert set(expected) <= set(everything)
    if kinds != "ping":
        assert targets(parse(page, NUTCHS)) == []


def test_every_kind_has_a_page() -> None:
    assert {kind for kinds, _, _ in PAGES for kind in kinds.split(",")} == (
        KINDS - {"header", "program"}
    )


def test_every_kind_is_described_in_the_defaults() -> None:
    text = (PROJECT / "conf" / "nutch-default.xml").read_text(encoding="utf-8")
    entry = text.split("<name>parser.html.outlinks.kinds</name>")[1].split("</property>")[0]
    assert sorted(KINDS - set(re.findall(r"\w+", entry))) == []


def test_kinds_are_added_and_taken_away() -> None:
    assert kinds_of(NUTCHS) == frozenset()
    assert kinds_of(ALL) == KINDS - {"program", "text"}  # no browser makes links of these
    some = {"parser.html.outlinks.browser": "true", "parser.html.outlinks.kinds": "-text, -ping"}
    assert kinds_of(configuration(**some)) == KINDS - {"program", "text", "ping"}
    with pytest.raises(ConfigError, match=r"expected some of .*srcset.*, found 'srcsets'"):
        kinds_of(only("srcsets"))


def test_nutchs_links_come_first_and_each_other_target_once() -> None:
    page = "<a href=/a ping='/p /p'></a><img srcset=/p src=/i><a href=/b>x</a>"
    assert targets(parse(page, ALL)) == ["/i", "/b", "/p", "/a"]


def test_the_rules_for_other_links_hold() -> None:
    page = (
        "<a rel=nofollow href=/a ping=/b></a><video src=/c></video><form action=/d"
        " method=post>x</form>"
    )
    some = {"parser.html.outlinks.browser": "true", "parser.html.outlinks.ignore_tags": "video"}
    assert targets(parse(page, configuration(**some))) == ["/d"]
    assert (
        targets(parse(f"<head><meta name=robots content=nofollow></head><body>{page}", ALL)) == []
    )
    assert targets(
        parse("<head><base href=/x/></head><body><video src=y></video>", only("media"))
    ) == ["/x/y"]


def test_for_programs_to_connect_to_are_no_pages() -> None:
    """But what is fetched beforehand is."""
    page = (
        "<link rel=preconnect href=//a.example>"
        "<link rel='DNS-Prefetch preconnect' href=//b.example>"
        "<link rel='preconnect stylesheet' href=/c><link rel=prefetch href=/d><link href=/e>"
        "<a href=//a.example>a</a>"
    )
    assert targets(parse(page, ALL)) == ["/c", "/d", "/e", "http://a.example"]
    nutchs = targets(parse(page, configuration()))
    assert nutchs[:2] == ["http://a.example", "http://b.example"] and len(nutchs) == 6
    hints = (
        '<//a.example>; rel="preconnect"; crossorigin, <//b>;rel=dns-prefetch, </c>; rel=preload'
    )
    assert header_targets(Link=hints) == ["/c"]


def test_what_links_name_for_programs_is_no_page() -> None:
    """As WordPress and MediaWiki do on each page."""
    programs = (
        "<link rel='https://api.w.org/' href=/api><link rel=EditURI href=/rsd>"
        "<link rel=alternate type=application/json href=/json>"
        "<link rel=alternate type='Application/JSON+oEmbed; a=b' href=/o>"
        "<link rel=alternate type=text/xml+oembed href=/p><link rel=shortlink href='/?p=1'>"
        "<link rel=search type=application/opensearchdescription+xml href=/osd>"
        "<link title=Edit rel=alternate type=application/x-wiki href=/edit>"
        "<link rel=alternate type=text/html title='Plain HTML' href=/export>"
        "<link rel=alternate type='text/markdown; charset=utf-8' href=/page.md>"
    )
    pages = (
        "<link rel=alternate type=application/rss+xml href=/rss><link rel=search href=/search>"
        "<link rel=alternate hreflang=de href=/de><link rel=alternate media=print href=/print>"
        "<link rel='shortlink next' href=/next><link rel=canonical href=/c><link rel='' href=/k>"
        "<link rel=alternate type=application/feed+json href=/feed><link type=text/css href=/css>"
        "<link rel=alternate type=application/pdf href=/pdf>"
        "<link rel=alternate type=text/html hreflang=fr href=/fr>"
        "<link rel=next type=text/html href=/2>"
    )
    linked = "<a href=/api>the API</a>"
    wanted = targets(parse(pages, ALL))
    assert len(wanted) == 12
    assert targets(parse(programs + pages + linked, ALL)) == [*wanted, "/api"]
    assert len(targets(parse(programs + pages, configuration()))) == 22
    taken = {"parser.html.outlinks.browser": "true", "parser.html.outlinks.kinds": "program"}
    assert len(targets(parse(programs + pages, configuration(**taken)))) == 22
    fields = (
        '</j>; rel=alternate; type="application/json", </?p=1>; rel=shortlink, </de>; rel=alternate'
    )
    assert header_targets(Link=fields) == ["/de"]


def header_targets(**headers: str) -> list[str]:
    page = content("<head><base href=/b/></head><body>x", **headers)
    return targets(parse_all(page, only("header"))[URL])


def test_links_in_headers_are_relative_to_the_page() -> None:
    assert header_targets(
        Link='</a>; rel="next, last", <b;c>;title="<no>", <http://c.example/d>'
    ) == [
        "/a",
        "/dir/b;c",
        "http://c.example/d",
    ]
    assert header_targets(link="</a>; rel=nofollow, </b>") == ["/b"]
    assert header_targets(Refresh="9; url=r", Content_Location="c.en.html") == [
        "/dir/r",
        "/dir/c.en.html",
    ]
    assert header_targets(Refresh="soon", Link="no link", Content_Location="") == []


def test_headers_and_style_sheets_of_other_types() -> None:
    conf = {"parser.html.outlinks.browser": "true"}
    page = content(
        "@font-face{font-family: a;src: url(/f.woff) format('woff'), url('g.woff')}",
        "text/css",
        Link="</l>",
    )
    [parsed] = parse_all(page, configuration("parse-(html|tika)", **conf)).values()
    assert targets(parsed) == ["/f.woff", "/dir/g.woff", "/l"]
    [parsed] = parse_all(page, configuration("parse-(html|tika)")).values()
    assert targets(parsed) == []


@tabled(
    ("value", "expected"),
    [
        ("a", ["a"]),
        ("a 1x, b 2x", ["a", "b"]),
        (" , a(1,2) 1x, b", ["a(1,2)", "b"]),
        ("a 1x (x,y), b", ["b"]),
        ("a, b,, c ,d", ["a", "b", "c", "d"]),
        ("data:,x 1x, b", ["data:,x", "b"]),
        (" ", []),
        ("a (", []),
    ],
)
def test_srcset(value: str, expected: list[str]) -> None:
    """HTML Standard, 4.8.4.2.1: a candidate with a wrong descriptor is none."""
    assert list(in_srcset(value)) == expected


@pytest.mark.parametrize(
    ("style", "expected"),
    [
        ("url(a) url( 'b' ) url(\"c d\")", ["a", "b", "c d"]),
        (r"url(a\)b) url('\61 b\'')", ["a)b", "ab'"]),
        ("@import 'a'; @IMPORT\t\"b\" print;@import url(c)", ["a", "b", "c"]),
        ("/* url(a) **/ url(b) /* url(c)", ["b"]),
        ("'url(a)' \"url(b)\" url(c", ["c"]),
        ("url() url('' url(", []),
    ],
)
def test_css(style: str, expected: list[str]) -> None:
    assert list(in_css(style)) == expected


def test_text_of_a_drawing() -> None:
    drawing = "<svg xmlns='http://a.org/x'><b c='ftp://d/'>http://e.org/f</b><i>http://g.org/h"
    page = f'<img src="data:image/svg+xml,{drawing}">'
    assert targets(parse(page, only("data", "text"))) == ["http://e.org/f", "http://g.org/h"]


def test_text() -> None:
    text = "at https://a.example/b?c=d#e. or mailto:a@b ./c/d ../e.html, a./f .. ../ (../g)"
    assert list(in_text(text.encode())) == ["https://a.example/b?c=d#e"]


def in_any_text(text: str) -> Iterator[str]:
    return in_text(text.encode())


@pytest.mark.parametrize("read", [in_css, in_srcset, in_any_text, in_link_header])
@settings(max_examples=examples(100))
@given(st.text(alphabet="url(@import'\"/*\\<>;, .:h)", max_size=60))
def test_any_value_is_read(read: Read, text: str) -> None:
    for found in read(text):
        assert found is not None


@tabled("read", [in_css, in_srcset, in_any_text, in_link_header])
@tabled(
    "piece",
    [
        "url(",
        "url('",
        "@import '",
        "/*",
        "*",
        "'\\",
        "a(",
        ",",
        "<",
        '<a>;"',
        "./",
        "../a",
        "http:",
        "a ",
        '"',
    ],
)
def test_long_values_take_no_longer_than_they_should(read: Read, piece: str) -> None:
    """A pass that is not linear would be seen here as a test that takes minutes."""
    count = 100_000 // every(10)
    assert sum(1 for _ in read(piece * count)) <= 3 * count


def test_pages_within_pages_end_somewhere() -> None:
    def nested(levels: int) -> str:
        inner = f"<a href=/{levels}>x</a>"
        return (
            f"{inner}<iframe srcdoc='{escape(nested(levels - 1))}'></iframe>" if levels else inner
        )

    assert targets(parse(nested(5), only("srcdoc"))) == [
        f"/{5 - level}" for level in range(DEEPEST)
    ]


FINDERS = [
    BrowserLinks(conf, Elements.from_conf(conf))
    for conf in (
        ALL,
        only("svg", "css", "meta"),
        configuration(
            **{
                "parser.html.outlinks.browser": "true",
                "parser.html.outlinks.ignore_tags": "img,style,video,form",
            }
        ),
    )
]
_ELEMENTS = sorted({tag for place in BROWSER_LINKS.values() for tag in place.elements})
_NAMES = [*BROWSER_LINKS, "id", "class", "data-src", "href", "content", "a-name-of-17-bytes"]
_MARKUP = st.lists(
    st.sampled_from(
        [
            *(f"<{tag}>" for tag in (*_ELEMENTS, "b", "p", "meta", "style", "template")),
            *(f"</{tag}>" for tag in ("a", "b", "head", "svg", "math", "style", "html")),
            *(f"<a {name}=x>" for name in _NAMES),
            *(f"<{tag} {name}='data:x'>" for tag in ("img", "object", "p") for name in _NAMES),
            *(
                f"<{tag} rel='{rel}' src=r srcset='a 1x' href=h action=i>"
                for tag in _ELEMENTS
                for rel in ("nofollow", "x")
            ),
            *(
                "<form action=/f>",
                "<form action=/g method=POST>",
                "<a href=/e></a>",
                "<base href=/b>",
            ),
            *("<meta content=/m>", "<meta content=no>", "<meta content='<a href=/c>x'>"),
            *("<meta http-equiv=refresh content='1;/r'>", "<meta content=http://x http-equiv=x>"),
            *(
                "<style>a{b:url(/s)}</style>",
                "<p style='a:url(/t)'>",
                "<p style=url>",
                "<feImage href=/v>",
            ),
            *(
                "<image xlink:href=/w>",
                "<p xlink:href=/y>",
                "<img srcset=z src='DATA:image/svg+xml,<a href=1>'>",
            ),
            *("<iframe srcdoc='<a href=/j>'></iframe>", "<param value=/k>", "<param value=no>"),
            *(
                f"<link rel='{rel}' href{to}>"
                for rel in (
                    "preconnect",
                    "x DNS-prefetch",
                    "\tPreconnect dns-prefetch",
                    "preconn&#101;ct",
                    "preconnec",
                )
                for to in ("", "=''", "=/h", "=//i")
            ),
            *(
                f"<link rel='{rel}' type{kind} href=/h{tongue}>"
                for tongue in ("", " hreflang=de", " hreflang")
                for rel in ("alternate", "stylesheet", "Stylesheet edit", "edit", "")
                for kind in (
                    "",
                    "=''",
                    "=application/json",
                    "=text/html",
                    "='application/a+j&#115;on'",
                )
            ),
            *("<svg>", "<math>", "<form>", "<base>", "<frameset>", "<body>", "<html manifest=x>"),
            *("<a><!--c--></a>", "<a> </a>", "<a>\x01</a>", "<a><b></b></a>", " ", "x", "<!--c-->"),
        ]
    ),
    max_size=20,
)


def both(of: BrowserLinks, markup: str) -> list[tuple[list[str], list[bytes], set[bytes]]]:
    """Links, pages within a page and hosts to connect to by the kernel and by selectors; neither
    if it can't be sure.
    """
    document = plain_tree(markup.encode())
    assert of._finder is not None
    values = of._finder.find(document)
    if values is None:
        return []
    inside: list[bytes] = []
    hosts: set[bytes] = set()
    run = run_of(*values, of._is_target, of._of_values(*values, inside, hosts))
    by_kernel = [link.to_url for link in run], inside, hosts
    inside = []
    nodes = _with_drawings(document.css(of._selectors))
    found = dict.fromkeys(link for node in nodes for link in of._of_element(node, inside))
    targets = [link for link in found if link and not link.startswith("#")]
    return [by_kernel, (targets, inside, {*_for_programs(document)})]


@given(st.text(alphabet=" \t\v\x1c\x7f,aé(0300wwx", max_size=24))
@example("a 1x,b 300w , c 2x")
@example("a 1x, b 0w")
@example("a 1x,")
@settings(max_examples=examples(1000))
def test_the_kernel_takes_plain_candidates_apart(value: str) -> None:
    by_kernel, by_pattern = both(FINDERS[0], f'<img srcset="{value}">')
    assert by_kernel == by_pattern


@given(_MARKUP)
@settings(max_examples=examples(300))
def test_the_kernel_finds_what_selectors_do(parts: list[str]) -> None:
    """Links and pages within the page, in the same order, with all kinds and with some."""
    for of in FINDERS:
        found = both(of, "".join(parts))
        assert found[:1] == found[1:]


@tabled("page", [page for _, page, _ in PAGES])
def test_links_of_each_kind_are_found_by_the_kernel(page: str) -> None:
    by_kernel, by_selectors = both(FINDERS[0], page)
    assert by_kernel == by_selectors


def test_nofollow_beside_other_letters_is_left_to_python() -> None:
    assert both(FINDERS[0], "<a rel=nofollowé ping=/a>x</a>") == []
    page = parse("<a rel=nofollowé ping=/a>x</a><a rel='é nofollow' ping=/b>x</a>", only("ping"))
    assert targets(page) == ["/a"]


def test_more_values_than_there_is_room_for() -> None:
    page = "".join(f"<video src=/{number}></video>" for number in range(9000))
    page += f"<video src=/{'x' * 200_000}></video>"
    by_kernel, by_selectors = both(FINDERS[0], page)
    assert by_kernel == by_selectors and len(by_kernel[0]) == 9001


@given(_MARKUP)
@settings(max_examples=examples(200))
def test_pages_that_are_not_read_have_no_links(parts: list[str]) -> None:
    page = "".join(parts)
    if not may_have_links(page.encode()):
        assert targets(parse(page, ALL)) == []


def test_the_walk_in_python_gives_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    pages = [page for _, page, _ in PAGES]
    by_kernel = [links(parse(page, ALL)) for page in pages]
    tree_reader.attribute_numbers.cache_clear()
    with monkeypatch.context() as patch:
        patch.setattr(kernels, "NEXT", kernels.NEXT + 8)
        conf = configuration(
            **{"parser.html.outlinks.browser": "true", "parser.html.outlinks.kinds": ""}
        )
        assert [links(parse(page, conf)) for page in pages] == by_kernel
        assert tree_reader.attribute_numbers() is None
    tree_reader.attribute_numbers.cache_clear()


def test_places_are_lower_case_and_of_known_kinds() -> None:
    for name, attribute in BROWSER_LINKS.items():
        assert name == name.lower()
        assert {tag.lower() for tag in attribute.elements} == attribute.elements
