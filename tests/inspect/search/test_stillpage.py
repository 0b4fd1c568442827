"""What of a stored page is left for a browser: nothing that connects anywhere, and its text."""

from __future__ import annotations

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from selectolax.lexbor import LexborHTMLParser

from minutch.inspect.search.crawlfiles import ATTRIBUTES, KEPT, still
from tests.support.examples import examples

CONNECTING = """<link rel=preconnect href=//x.example><link rel="dns-prefetch" href="//x.example">
<LINK REL=preload as=image href=http://x.example/p><link rel=manifest href=http://x.example/m>
<link rel=icon href=//x.example/i><meta http-equiv=refresh content='0;url=http://x.example/'>
<meta http-equiv=x-dns-prefetch-control content=on><base href=http://x.example/>
<script type=speculationrules>{"prerender":[{"urls":["http://x.example/"]}]}</script>
<noscript><link rel=preconnect href=//x.example></noscript>
<template><link rel=preconnect></template>
<svg><image href=//x.example/1 /><use xlink:href=//x.example/2 /></svg><img src=//x.example/3>
<img srcset="//x.example/4 2x"><body background=//x.example/5><a ping=//x.example/6>a</a>
<iframe src=//x.example/7></iframe><object data=//x.example/8></object><input type=image src=//x>
<video poster=//x.example/9></video><form action=//x.example/10><button formaction=//x>b</button>"""


@pytest.mark.parametrize(
    "before", ["", "<p title='", "<style>", "<title>", "<!--", "<svg>", "<xmp>"]
)
def test_nothing_that_connects_is_left(before: str) -> None:
    shown = still((before + CONNECTING + "-->'></title></style></xmp>" + CONNECTING).encode())
    assert _connecting(shown) == []


def _connecting(page: bytes) -> list[str]:
    """The elements and attributes of a page, as a browser reads it, that are not on the lists."""
    tree = LexborHTMLParser(page.decode())
    found = []
    for node in tree.root.traverse() if tree.root else ():
        if not node.is_element_node:
            continue
        if node.tag not in KEPT:
            found.append(node.tag or "")
        for name, value in node.attributes.items():
            is_own = (name == "href" and (value or "").startswith("#")) or (
                name == "src" and (value or "").lower().startswith("data:image/")
            )
            if name not in ATTRIBUTES and not is_own:
                found.append(f"{node.tag} {name}={value}")
    return found


PIECES = st.lists(
    st.one_of(
        st.sampled_from(CONNECTING.split("\n")),
        st.sampled_from(
            re.findall(
                r"\S+",
                """< </ <! <!-- --> > ' " = / a= <a <p <style> </style> <title> </title> <svg>
                <math> <mtext> <noscript> </noscript> <template> <select> <textarea> <plaintext>
                <table> <![CDATA[ ]]> <b/x=y> <img src=data:image/png,x> &lt;link&gt; &#60;link""",
            )
        ),
        st.text(max_size=5),
    ),
    max_size=12,
)


@settings(max_examples=examples(30))
@given(PIECES)
def test_any_page_is_still_in_any_reading(pieces: list[str]) -> None:
    """Also read from any tag on, as if what stands before were something else."""
    shown = still("".join(pieces).encode("utf-8", "replace"))
    assert _connecting(shown) == []
    for start in range(len(shown)):
        if shown[start : start + 1] == b"<":
            assert _connecting(shown[start:]) == []


def test_what_can_be_read_stays() -> None:
    page = """<!DOCTYPE html><html lang=de><title>a &amp; b</title><style>p > b {color: red}</style>
        <body onload=x()><!-- c --><p class="x y" style='color: red'>1 < 2 &amp; 3<b>bold</b>
        <x-new>new</x-new><a href=http://a.example/?b&amp;c>out</a><a href='#here'>in</a>
        <img alt="a dot" src="data:image/gif;base64,R0"><img src="data:image/svg+xml,<svg/>">"""
    shown = still(page.encode()).decode()
    assert shown.startswith('<!DOCTYPE html><html lang="de"><title>a &amp; b</title>')
    assert "<style>p > b {color: red}</style>" in shown and "<body>" in shown
    assert '<p class="x y" style="color: red">1 &lt; 2 &amp; 3<b>bold</b>' in shown
    assert '<a href="#" title="http://a.example/?b&amp;c">out</a><a href="#here">in</a>' in shown
    assert "new" in shown and "x-new" not in shown
    assert '<img alt="a dot" src="data:image/gif;base64,R0"><img>' in shown
