"""Facts of an HTML page in WAT records."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from minutch.archives.web.htmlfacts import LONGEST_TEXT, html_facts
from tests.support.examples import every, tabled

PAGE = """<!DOCTYPE html><html lang=de xml:lang=de-AT>
<head><title> A  page
of links </title><base href="/base/"><meta name=description content="What &amp; why">\
<meta http-equiv=refresh content=5>
<meta charset=utf-8><meta property=og:title content=x><link rel=stylesheet href=style.css \
type=text/css>
<link rel=nothing><script src="a.js" type=module></script><script>var x = "<a href=no>";</script>
<style>@import "more.css"; body { background: url('back.png') }</style></head>
<body background=back.gif><a href="one?a=1&amp;b=2" rel=nofollow title=t onclick=x>one <b>two</b>\
<br>three</a>
<a name=here>no link</a><svg><title>drawing</title></svg>
<img src=i.png alt="a picture" longdesc=long.html><iframe src=frame.html></iframe>
<form action=/send method=post target=_top><input src=button.png formaction=/other>\
<button formaction=/third></form>
<video src=v.mp4 poster=p.png><source src=w.mp4><track src=t.vtt></video>\
<object data=o.swf></object>
<div data-href=/card onclick="window.open('/popup', 'x')">x</div>\
<input onclick="location.href='/there'">
<q cite=/q></q><blockquote cite=/bq></blockquote><area href=/map rel=x><embed src=e.swf>
"""


def test_a_page() -> None:
    facts: Any = html_facts(PAGE.encode())
    assert list(facts) == ["Head", "Links"]
    assert facts["Head"] == {
        "Metas": [
            {"name": "HTML@/lang", "content": "de"},
            {"name": "HTML@/xml:lang", "content": "de-AT"},
            {"name": "description", "content": "What & why"},
            {"content": "5", "http-equiv": "refresh"},
            {"content": "x", "property": "og:title"},
        ],
        "Title": "A page of links",
        "Base": "/base/",
        "Link": [
            {"path": "LINK@/href", "url": "style.css", "rel": "stylesheet", "type": "text/css"}
        ],
        "Scripts": [{"path": "SCRIPT@/src", "url": "a.js", "type": "module"}],
    }
    assert [(link["path"], link.get("url", link.get("href"))) for link in facts["Links"]] == [
        ("STYLE/#text", "back.png"),
        ("STYLE/#text", "more.css"),
        ("BODY@/background", "back.gif"),
        ("A@/href", "one?a=1&b=2"),
        ("IMG@/src", "i.png"),
        ("IMG@/longdesc", "long.html"),
        ("IFRAME@/src", "frame.html"),
        ("FORM@/action", "/send"),
        ("INPUT@/src", "button.png"),
        ("INPUT@/formaction", "/other"),
        ("BUTTON@/formaction", "/third"),
        ("VIDEO@/src", "v.mp4"),
        ("VIDEO@/poster", "p.png"),
        ("SOURCE@/src", "w.mp4"),
        ("TRACK@/src", "t.vtt"),
        ("OBJECT@/data", "o.swf"),
        ("DIV@/data-href", "/card"),
        ("DIV@/onclick", "/popup"),
        ("INPUT@/onclick", "/there"),
        ("Q@/cite", "/q"),
        ("BLOCKQUOTE@/cite", "/bq"),
        ("AREA@/href", "/map"),
        ("EMBED@/src", "e.swf"),
    ]
    anchor = facts["Links"][3]
    assert list(anchor) == ["path", "url", "title", "rel", "text"]
    assert anchor["text"] == "one two three"


def test_long_texts_and_what_is_not_closed() -> None:
    facts: Any = html_facts(
        b"<title>" + b"t" * 500 + b"</title><a href=x>" + b"word " * 1000 + b"<p>"
    )
    assert facts["Head"]["Title"] == "t" * LONGEST_TEXT
    assert facts["Links"] == [
        {"path": "A@/href", "url": "x", "text": ("word " * 26)[:LONGEST_TEXT].strip()}
    ]
    assert html_facts(b"") == html_facts(b" \n") == {}


@given(st.text("<>/= \"'&;aAbh!-\0é\n", max_size=300))
def test_nothing_is_an_error(text: str) -> None:
    html_facts(text.encode())


_MANY = 1000 // every(4)
HOSTILE = (
    b"<a href=x>" * 40 * _MANY,
    b"<a href=x>t<p>" * 40 * _MANY,
    b"<div>" * 200 * _MANY,
    b"<a " + b"x y z=1 " * 120 * _MANY + b">",
    b"".join(b"<a a%d" % n for n in range(90 * _MANY)),
    b"<!--" * 250 * _MANY,
    b"<style>" + b"url(" * 200 * _MANY,
    b"<table>" * 100 * _MANY,
)


@tabled("page", HOSTILE)
def test_hostile_pages_come_to_an_end(page: bytes) -> None:
    assert set(html_facts(page)) <= {"Head", "Links"}
