"""parse-pagedata: what a page says about itself, as metadata, SQL and a field."""

from __future__ import annotations

import json

import pytest
from selectolax.lexbor import LexborHTMLParser

from minutch.records.crawldatum import CrawlDatum
from minutch.records.document import NutchDocument
from minutch.urls.resolve import Resolver
from plugins.index_metadata.fields import MetadataIndexer
from plugins.parse_pagedata.pagedata import MOST_ITEMS, MOST_TEXT, top_items
from tests.support.examples import tabled
from tests.support.pages import URL, configuration, parse

PLUGINS = "parse-html|parse-pagedata"
PAGE = """<html lang=en-GB><head><title>Two  tides</title><base href=/docs/>
<meta name=author content="Ann Gale"><meta name=Description content=" About tides ">
<meta property="article:published_time" content="2024-05-01T10:00Z"><meta name=date content="1 May">
<meta property="og:updated_time" content=yesterday><meta property=og:title content="Two tides">
<meta property=og:image content=a.png><meta property=og:image content=b.png>
<link rel="x CANONICAL" href=tides><script type="application/ld+json; charset=utf-8">
[{"@type": "Article",
  "headline": "Zwei \\u00fc"}, {"@id": 1}, 3]</script>
<script type=application/ld+json>{"@type": </script>
<script type=application/ld+json>{"a":NaN}</script>
<script type=application/ld+json>{"a":"\\ud800"}</script></head>
<body itemscope itemtype="http://schema.org/Thing a:b" itemid=i><b itemprop="name alt">N</b>"""


def meta(page: str, **properties: str) -> dict[str, list[str]]:
    found = parse(page, configuration(PLUGINS, **properties)).data.parse_meta
    return {name: values for name, values in found.items() if name.startswith("pagedata.")}


def test_what_is_found_is_stored_as_it_is() -> None:
    assert meta(PAGE) == {
        "pagedata.title": ["Two tides"],
        "pagedata.language": ["en-GB"],
        "pagedata.description": ["About tides"],
        "pagedata.author": ["Ann Gale"],
        "pagedata.published": ["2024-05-01T10:00Z", "1 May"],
        "pagedata.modified": ["yesterday"],
        "pagedata.canonical": ["http://example.org/docs/tides"],
        "pagedata.article:published_time": ["2024-05-01T10:00Z"],
        "pagedata.og:updated_time": ["yesterday"],
        "pagedata.og:title": ["Two tides"],
        "pagedata.og:image": ["a.png", "b.png"],
        "pagedata.json-ld": ['{"@type":"Article","headline":"Zwei ü"}', '{"@id":1}'],
        "pagedata.json-ld.broken": ["3"],
        "pagedata.microdata": [
            '{"type":["http://schema.org/Thing","a:b"],"id":"http://example.org/docs/i",'
            '"properties":{"name":["N"],"alt":["N"]}}'
        ],
    }


def test_licences_are_links_of_any_kind() -> None:
    page = "<link rel=license href=/l><a rel='nofollow License' href=m>x</a><a href=n>license</a>"
    page += "<map><area rel=license href=/l><area rel=license href='http://['></map>"
    assert meta(page) == {"pagedata.license": ["http://example.org/l", "http://example.org/dir/m"]}


def test_nothing_is_stored_of_a_page_that_says_nothing_or_without_the_plugin() -> None:
    assert meta("<p>a") == {}
    found = parse(PAGE, configuration("parse-html")).data.parse_meta
    assert not [name for name in found if name.startswith("pagedata.")]


@pytest.mark.parametrize(("value", "kept"), [("65536", 2), ("100", 1), ("9", 0)])
def test_pagedata_bytes(value: str, kept: int) -> None:
    data = json.dumps({"a": "b" * 90})
    page = f"<title>tides</title><script type=application/ld+json>{data}</script>"
    found = meta(page, **{"pagedata.bytes": value})
    assert len(found.keys() - {"pagedata.cut"}) == kept
    assert found.get("pagedata.cut") == (None if kept == 2 else ["true"])


def test_index_metadata_makes_fields_of_it() -> None:
    conf = configuration(PLUGINS, **{"index.parse.md": "pagedata.author"})
    doc = MetadataIndexer(conf, {}).filter(
        NutchDocument(), parse(PAGE, conf), URL, CrawlDatum(), None
    )
    assert doc is not None
    assert doc.first("pagedata.author") == "Ann Gale"


def items(page: str) -> list[object]:
    return list(top_items(LexborHTMLParser(page), Resolver(URL).resolve))


def properties(*pairs: tuple[str, object]) -> dict[str, object]:
    return {"properties": {name: [value] for name, value in pairs}}


@tabled(
    ("page", "expected"),
    [
        ("<p itemprop=a>no item", []),
        (
            "<div itemscope><img itemprop=a src=i.png><a itemprop=b href=/x>t</a><meta itemprop=c"
            " content=m><time itemprop=d datetime=2024>t</time><data itemprop=e value=v>w</data>"
            "<object itemprop=f data=o></object><p itemprop=g>p <b>q</b></p>"
            "<time itemprop=h>t</time>",
            [
                properties(
                    ("a", "http://example.org/dir/i.png"),
                    ("b", "http://example.org/x"),
                    ("c", "m"),
                    ("d", "2024"),
                    ("e", "v"),
                    ("f", "http://example.org/dir/o"),
                    ("g", "p q"),
                    ("h", "t"),
                )
            ],
        ),
        (
            "<div itemscope><p itemprop=a itemscope itemtype=T><b itemprop=c>1</b></p>"
            "<b itemprop=b>2",
            [properties(("a", {"type": ["T"], **properties(("c", "1"))}), ("b", "2"))],
        ),
        (
            "<p id=x>a<b itemprop=n>1</b></p>"
            "<div itemscope itemref='x none x'><i itemprop=m>2</i></div>",
            [properties(("n", "1"), ("m", "2"))],
        ),
        (
            "<div itemscope><p id=A itemprop=a itemscope itemref=B></p></div>"
            "<p id=B itemprop=b itemscope itemref='A B'></p>",
            [properties(("a", properties(("b", properties(("a", "ERROR"))))))],
        ),
        (
            "<div itemscope><b itemprop=a>1</b><div itemscope><b itemprop=a>2</b></div>"
            "<b itemprop=a>3",
            [{"properties": {"a": ["1", "3"]}}, properties(("a", "2"))],
        ),
    ],
)
def test_microdata(page: str, expected: list[object]) -> None:
    assert items(page) == expected


@tabled(
    "page",
    [
        "<div itemscope itemprop=a>" * 1000 + "x",
        "<div itemscope>" * 1000 + "<p itemprop=a>b",
        "<div itemscope>" + "<div itemprop=a>" * 1000 + "x" * 10_000,
        "<div itemscope>" + "<p itemprop=a>b" * 5000,
        "".join(
            f"<div id=i{n} itemprop=a itemscope itemref='i{n + 1} j{n + 1}'></div>"
            f"<div id=j{n} itemprop=a itemscope itemref='i{n + 1} j{n + 1}'></div>"
            for n in range(200)
        )
        + "<p itemscope itemref='i0 j0'>",
        "<meta property=og:a content=b>" * 5000,
        "<script type=application/ld+json>" + "[" * 100_000 + "</script>",
        "<script type=application/ld+json>[" + "{}," * 5000 + "{}]</script>",
        "<script type=application/ld+json>{}</script>" * 3000,
    ],
)
def test_hostile_pages_are_bounded(page: str) -> None:
    found = items(page)
    is_bounded = len(found) <= MOST_ITEMS and len(json.dumps(found)) < 4 * MOST_TEXT + (1 << 22)
    assert is_bounded
    conf = {"parser.html.max.depth": "-1"}
    size = sum(len(n) + len(v) for n, values in meta(page, **conf).items() for v in values)
    assert size < 65536 + 100
