"""lib-html: markup that browsers hide, or take for text, is the page's where Nutch reads it so."""

from __future__ import annotations

from plugins.lib_html.tree import rewrite
from tests.support.examples import tabled
from tests.support.pages import configuration, links, parse

CONF = configuration()
AT = "http://example.org/dir/"


@tabled(
    ("body", "text", "expected"),
    [
        ("<iframe src=f/>x <a href=y>z</a>", "x z", [("f/", ""), ("y", "z")]),
        ("<iframe src='f'/>x <a href=y>z</a>", "x z", [("f", ""), ("y", "z")]),
        ("<iframe src='f' />x <a href=y>z</a></iframe>", "x z", [("f", ""), ("y", "z")]),
        ("<iframe src=f>x <a href=y>z</a>", "x z", [("f", ""), ("y", "z")]),
        ("<IFrame src=f>x<iframe src=g>w</iframe>y", "x w y", [("f", ""), ("g", "w")]),
        ("<iframe src=f>x<iframe src=g></iframe>y", "x y", [("f", ""), ("g", "")]),
        ("<iframe src=f>in <b>it</b></iframe> y", "in it y", [("f", "in it")]),
        ("<iframe src=http://a.example/> </iframe>y", "y", [("http://a.example/", "")]),
        ("<iframe srcdoc='<p>\">' src=f>x</iframe>y", "x y", [("f", "x")]),
        ("<p title='<iframe src=f>'><iframe src=g>x", "x", [("g", "")]),
        ("<script>'<iframe src=f>'</script><iframe src=g>x</iframe>", "x", [("g", "x")]),
        ("<!-- <iframe src=f> --><iframe src=g>x", "x", [("g", "")]),
        ("<textarea><iframe src=f></textarea><template>x</template>", "<iframe src=f> x", []),
        ("<noembed>x<a href=y>z</a>", "x z", [("y", "z")]),
        ("<noframes>x<a href=y>z</a>", "x z", [("y", "z")]),
        ("<xmp>x<a href=y>z</a>", "x z", [("y", "z")]),
        ("<xmp>x<b>y</b></xmp><noembed>z<i>w</i>", "x<b>y</b> z w", []),
        ("<noframes>x<b>y</b></noframes>z", "x<b>y</b> z", []),
        ("<plaintext>x<a href=y>z</a>", "x<a href=y>z</a></body></html>", []),
        ("<textarea>x<a href=y>z</a>", "x<a href=y>z</a></body></html>", []),
    ],
)
def test_what_follows_is_the_pages(body: str, text: str, expected: list[tuple[str, str]]) -> None:
    found = parse(f"<html><head></head><body>{body}</body></html>", CONF)
    assert found.text.split() == text.split()
    resolved = [(url if ":" in url else AT + url, anchor) for url, anchor in expected]
    assert links(found) == resolved


@tabled(
    ("body", "default", "inert"),
    [
        ("<template>a</template>b", "a b", "b"),
        ("<template><template>a</template>b</template>c", "a b c", "c"),
        ("<template shadowrootmode=open>a</template>b", "a b", "a b"),
        ("<template a=b SHADOWROOTMODE='Closed'>a</template>b", "a b", "a b"),
        ("<template shadowrootmode=opened>a</template>b", "a b", "b"),
        ("<template xshadowrootmode=open>a</template>b", "a b", "b"),
        ("</template>a<template>b", "a b", "a"),
        ("<template><iframe>a</iframe></template><iframe>b</iframe>c", "a b c", "b c"),
        (
            "<template shadowrootmode=open>a<template>b</template>c</template>d",
            "a b c d",
            "a c d",
        ),
    ],
)
def test_what_templates_hold(body: str, default: str, inert: str) -> None:
    """HTML Standard, 4.12.3: it is no content of the document, but for declarative shadow roots."""
    for value, expected in (("true", default), ("false", inert)):
        conf = configuration(**{"parser.html.templates": value})
        assert parse(f"<body>{body}", conf).text == expected


@tabled(
    "page",
    [
        b"<p>text",
        b"<iframe src=f></iframe>",
        b"<iframe>\n </IFRAME >",
        b"<a title='</iframe>'",
        b'<p title="<template>',
        b"<!-- <template>",
        b"<style><template>",
        b"<xmp><template></xmp>",
        b"<",
    ],
)
def test_pages_that_stay_as_they_are(page: bytes) -> None:
    assert rewrite(page) == page


@tabled(
    "piece",
    [
        b"<iframe>",
        b"<iframe/>",
        b'<iframe a="',
        b"<iframe a='x>",
        b"<template a=",
        b"<!--",
        b"<xmp>",
        b"<script>",
        b"<textarea></",
        b"</iframe><iframe>x",
        b"<noembed><xmp></xmp>",
    ],
)
def test_all_of_a_long_page_is_there(piece: bytes) -> None:
    """No piece of the page is lost, or makes the pass slow, which would show in the test run."""
    page = piece * 10_000
    assert without_ends(rewrite(page)) == without_ends(page)


def without_ends(page: bytes) -> bytes:
    return page.replace(b"x-", b"").replace(b"</iframe>", b"")
