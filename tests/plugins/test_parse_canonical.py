"""parse-canonical: the canonical link of an element or a header, and the languages of versions."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from minutch.records.metadata import CANONICAL_KEY, HREFLANG_KEY, VERSIONS_KEY
from plugins.lib_html.tree import build_tree
from plugins.parse_canonical.canonical import CanonicalParseFilter
from tests.support.examples import examples
from tests.support.pages import URL, configuration, content, parse_all

PLUGINS = configuration("parse-html|parse-canonical")
LINK = "<link rel=alternate hreflang={} href={}>"


def meta(head: str, *headers: str) -> dict[str, list[str]]:
    """What is kept of the page at http://example.org/dir/page.html."""
    page = content(f"<head>{head}</head><p>text")
    for header in headers:
        page.metadata.add("Link", header)
    found = parse_all(page, PLUGINS)[URL].data.parse_meta
    keys = {CANONICAL_KEY: "canonical", HREFLANG_KEY: "own", VERSIONS_KEY: "versions"}
    return {keys[name]: values for name, values in found.items() if name in keys}


@pytest.mark.parametrize(
    ("head", "headers", "expected"),
    [
        ("<link rel=canonical href=other>", (), "http://example.org/dir/other"),
        (
            "<link rel='x CANONICAL' href=' /a?b '><link rel=canonical href=c>",
            (),
            "http://example.org/a?b",
        ),
        ("<base href=http://b.org/><link rel=canonical href=a>", (), "http://b.org/a"),
        ("<link rel=canonical href=a>", ("<b>; rel=canonical",), "http://example.org/dir/a"),
        (
            "<base href=http://b.org/>",
            ('<c>; rel=next, <b>; rel="canonical"',),
            "http://example.org/dir/b",
        ),
        (
            "<link rel=canonical href='http://['>",
            ("<b>; rel=canonical",),
            "http://example.org/dir/b",
        ),
    ],
)
def test_the_first_that_is_a_url(head: str, headers: tuple[str, ...], expected: str) -> None:
    assert meta(head, *headers) == {"canonical": [expected]}


def test_languages_of_the_page_and_of_the_one_that_it_names() -> None:
    versions = "".join(
        LINK.format(language, href)
        for language, href in {
            "de-AT": "page.html",
            "de": "HTTP://EXAMPLE.org/dir/page.html#top",
            "en": "/english",
            "fr": "/francais",
            "x-default": "/english",
            "'en us'": "page.html",
        }.items()
    )
    own = {"own": ["de de-at"]}
    assert meta(versions) == own
    named = {"canonical": ["http://example.org/english"]}
    assert meta(f"<link rel=canonical href=/english>{versions}") == own | named | {
        "versions": ["en"]
    }
    itself = {"canonical": ["http://example.org/dir/page.html"]}
    assert meta(f"<link rel=canonical href=page.html>{versions}") == own | itself
    header = '<page.html>; rel="alternate"; hreflang="nl", </x>; rel=alternate; hreflang=fr'
    assert meta("", header) == {"own": ["nl"]}


@settings(max_examples=examples(100), deadline=None)
@given(
    st.lists(
        st.sampled_from(
            (
                *("<link", "<meta", "<template>", "<svg>", "</svg>", "<noscript>", ">", "</head>"),
                *(" rel=canonical", " rel='a xALTERNATEs'", " rel", " rel=''", " rel=next"),
                *(" href=/b", " href=' '", " href", " hreflang=' DE\xa0'", "<body>"),
            )
        )
    ).map("".join)
)
def test_the_kernel_finds_what_selectors_do(page: str) -> None:
    ours, theirs = (CanonicalParseFilter(PLUGINS, {}) for _ in range(2))
    assert ours.finder.asked is not None
    theirs.finder.asked = None
    head = build_tree(page.encode()).head
    assert [*ours._elements(head)] == [*theirs._elements(head)]


def test_hostile_heads() -> None:
    many = LINK.format("de", "page.html") * 3000 + "<link rel=canonical href=/late>"
    assert meta(many) == {"own": ["de"]}
    assert meta("<link rel=canonical><link rel=canonical href=''><link hreflang=de href=x>") == {}
    assert meta(LINK.format("d" * 500, "page.html") + LINK.format("de", "http://[")) == {}
