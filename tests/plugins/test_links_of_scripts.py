"""Links in scripts, style sheets and texts: what is found in one pass is what patterns say."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st
from selectolax.lexbor import LexborHTMLParser

from minutch.urls.resolve import Resolver
from plugins.lib_html.elements import in_css, in_text
from plugins.lib_html.tree_reader import attribute_numbers
from plugins.parse_js.script import ScriptFinder, _scripts, links_of_scripts, script_links
from tests.support import plainscan
from tests.support.examples import examples

_FINDER = ScriptFinder(attribute_numbers() or {})
_BASE = "http://example.org/a/b"
_SCRIPTS = st.lists(
    st.sampled_from(
        [
            *(
                '"',
                "'",
                "\\",
                "/a",
                "/",
                "http://x.org/y",
                "https://z.de",
                "HTTP://q.q/",
                "+",
                " + ",
            ),
            *(
                "++",
                "+=",
                "=",
                "==",
                " = ",
                "name",
                "other",
                "ab",
                "a.b",
                "$x",
                ";",
                "\n",
                ",",
                "(",
                ")",
            ),
            *(".concat(", " ", "\u00a0", "é", "𠀀", "`", "{", "//c", "../d", "./e", "mailto:a@b"),
            *("x=http://u.v/w", ":", "%41", "#f", "größe", "[", "]", "'/p/'", '"/blog/"', '"new"'),
            *('name = "/base/";', "abc='de';"),
        ]
    ),
    max_size=16,
).map("".join)
_STYLES = st.lists(
    st.sampled_from(
        [
            *(
                "url(",
                "URL( ",
                ")",
                '"',
                "'",
                "/*",
                "*/",
                "@import ",
                "@IMPORT\t",
                "a",
                "\n",
                " ",
                "/",
            ),
            *("u", "@", "x.png", "url", "(", "*"),
        ]
    ),
    max_size=12,
).map("".join)


@settings(max_examples=examples(1000), deadline=None)
@given(_SCRIPTS)
def test_scripts(script: str) -> None:
    strings, urls = plainscan.in_script(script)
    resolver = Resolver(_BASE)
    found = [link.to_url for link in script_links(script, _BASE, only_urls=True)]
    expected = [resolver.resolve(text).replace("&amp;", "&") for text in strings]
    assert found == [*expected, *(url for url in dict.fromkeys(urls) if url not in expected)]


@settings(max_examples=examples(300), deadline=None)
@given(st.lists(_SCRIPTS, max_size=4))
def test_scripts_of_one_page_are_apart(scripts: list[str]) -> None:
    found = links_of_scripts(map(str.encode, scripts), _BASE, only_urls=True)
    apart = [script_links(script, _BASE, only_urls=True) for script in scripts]
    assert found == [link.to_url for links in apart for link in links]


@settings(max_examples=examples(1000), deadline=None)
@given(_SCRIPTS)
def test_texts(text: str) -> None:
    assert [*in_text(text.encode())] == plainscan.in_text(text)


@settings(max_examples=examples(1000), deadline=None)
@given(_STYLES)
def test_styles(style: str) -> None:
    assert [*in_css(style)] == plainscan.in_css(style)


_PAGES = st.lists(
    st.sampled_from(
        [
            *("<script>", "</script>", "<SCRIPT src=a>", "<svg>", "</svg>", "<p onclick='/a'>"),
            *("<p onlongeventname-of-all=b", ">", "<a href='JavaScript:c'>", " on=''", "<b>"),
            *("<a href='/javascript'>", "<a xlink:href=javascript:d on=e>", "x", "é&amp;"),
            *("<!-- f -->", "<template>", "</template>", "<p one=g ton=h>"),
        ]
    ),
    max_size=10,
).map("".join)


@settings(max_examples=examples(500), deadline=None)
@given(_PAGES)
def test_scripts_of_pages(page: str) -> None:
    document = LexborHTMLParser(page)
    assert _FINDER.scripts(document) == [*filter(None, _scripts(document))]


def test_large_scripts_of_pages() -> None:
    page = f"<script>{'x' * (1 << 19)}</script>" + "<script>y</script>" * 5000
    document = LexborHTMLParser(page)
    assert _FINDER.scripts(document) == [*_scripts(document)]
    assert _FINDER.scripts(LexborHTMLParser("<p onload=z>")) == [b"z"]


def test_urls_in_long_runs_of_their_characters() -> None:
    for text in ("x" * 1000 + ":http://a.de/b", "ftp://a.de/" + "b/" * 300 + "http://c.de/d"):
        assert [*in_text(text.encode())] == plainscan.in_text(text)


def test_lone_surrogates() -> None:
    assert [
        link.to_url for link in script_links("'/a' \ud800 'http://b.de/'", _BASE, only_urls=True)
    ]
