"""Links made absolute: the short ways give what the full rules give, and the standard's way is a
browser's.
"""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from minutch.charsets import lookup
from minutch.errors import UrlError
from minutch.hadoop.formats.writables import MapWritable
from minutch.records.links import (
    Outlink,
    OutlinkRun,
    RelativeRun,
    joined,
    resolve_all,
    resolve_runs,
)
from minutch.urls.resolve import Resolver, WhatwgResolver, resolve
from tests.support.examples import examples, tabled
from tests.urls.strategies import odd_text, odd_urls, plain_urls

BASES = [
    "http://example.org/",
    "http://example.org",
    "http://example.org/a/b/c.html?q#f",
    "http://h/a/../b",
    "http://h?x",
    "https://u:p@h:80/x/",
    "ftp://h/",
    "file:/a/b",
    "file:a",
    "http://h/a//b/",
    "http://h/../../x/y",
    "http://h/a:b/c:d",
    "http://h/.a/b",
]


NOT_RESOLVED = [
    ("nothing", "x"),
    ("http://a/", "mailto:x"),
    ("http://a/b:c", "?x"),
    ("http://a/", "http://b:x/"),
]


def outcome(resolver: Resolver, target: str, *, slowly: bool) -> str | None:
    try:
        return resolver.resolve_slowly(target) if slowly else resolver.resolve(target)
    except UrlError:
        return None


@given(st.sampled_from(BASES), odd_text | plain_urls | odd_urls)
def test_short_ways_give_what_the_full_rules_give(base: str, target: str) -> None:
    resolver = Resolver(base)
    assert outcome(resolver, target, slowly=False) == outcome(resolver, target, slowly=True)


STEPS = [
    "",
    "../",
    "../../",
    "../../../../",
    "..",
    " ../",
    "./",
    "././",
    "./../",
    ".././",
    ".",
    "a//",
    "a/b/",
]
CLIMBING = st.tuples(
    st.sampled_from(STEPS), odd_text | st.sampled_from(["", "x", "x/y", "/x", "?q", "#f"])
).map("".join)
TARGETS = st.lists(odd_text | plain_urls | odd_urls | CLIMBING, max_size=6)


@given(st.sampled_from(BASES), CLIMBING)
def test_climbing_gives_what_the_full_rules_give(base: str, target: str) -> None:
    resolver = Resolver(base)
    assert outcome(resolver, target, slowly=False) == outcome(resolver, target, slowly=True)


@given(st.sampled_from(BASES), TARGETS)
def test_the_kernel_gives_what_single_links_give(base: str, targets: list[str]) -> None:
    resolver = Resolver(base)
    run = OutlinkRun.of(
        Outlink(target, f"anchor {target}" * (len(target) % 9)) for target in targets
    )
    assert run is not None
    assert list(resolve_all(resolver, run)) == resolve_all(resolver, list(run))


WHATWGS = st.lists(
    st.lists(
        st.sampled_from(
            [
                *(
                    "http://",
                    "https://",
                    "//",
                    "/",
                    "..",
                    ".",
                    "a",
                    "b.c",
                    "Ab",
                    "xn--",
                    "xn--a",
                    ":",
                    "80",
                ),
                *(
                    "?",
                    "#",
                    "%41",
                    "%2e",
                    "%",
                    "é",
                    "ü.de",
                    " ",
                    "'",
                    '"',
                    "@",
                    "|",
                    "[",
                    "^",
                    "\\",
                    "_",
                    "-",
                ),
                *("../", "./", "127.0.0.1", "1.2.3.256", "01.2.3.4", ":8080", ":60000", ":080"),
                *("1.2", "0x7f", "javascript:", "mailto:", "e.org/", "A.org", "~", "\t", "ß", "{"),
                *("data:", "data", "tel:", "tel", "mailto", "javascript", "Data:", "te", "l:"),
            ]
        ),
        max_size=6,
    ).map("".join),
    max_size=6,
)


@settings(max_examples=examples(1000), deadline=None)
@given(
    st.sampled_from([*BASES, "http://A.org", "https://e.org:8/a/./b?c#d", "http://ü.de/x/"]),
    WHATWGS,
)
def test_the_kernel_gives_what_browsers_have(base: str, targets: list[str]) -> None:
    resolver = WhatwgResolver(base)
    run = run_of([Outlink(target, "anchor") for target in targets])
    assert list(resolve_all(resolver, run)) == resolve_all(resolver, list(run))


def test_links_that_grow_as_they_are_encoded() -> None:
    links = [Outlink(f"{number}/" + "\u6c34" * 400, "") for number in range(40)]
    resolver = WhatwgResolver("http://e.org/a/")
    assert list(resolve_all(resolver, run_of(links))) == resolve_all(resolver, links)


@given(st.sampled_from(BASES), TARGETS, st.lists(plain_urls, max_size=3))
def test_links_before_those_of_a_page(base: str, targets: list[str], urls: list[str]) -> None:
    links, more = [Outlink(target, "x") for target in targets], [Outlink(url) for url in urls]
    page = resolve_all(Resolver(base), run_of(links))
    first = joined(run_of(more), page)
    found = joined(run_of(more[:1]), first)
    assert list(found) == [*more[:1], *more, *resolve_all(Resolver(base), links)]
    assert len(found) == len(list(found))
    assert list(page) == resolve_all(Resolver(base), links)


@given(st.lists(st.tuples(st.sampled_from(BASES), TARGETS), max_size=5))
def test_pages_together_give_what_each_gives_alone(pages: list[tuple[str, list[str]]]) -> None:
    links = [[Outlink(target, "x") for target in targets] for _, targets in pages]
    runs = [RelativeRun(base, run_of(each)) for (base, _), each in zip(pages, links, strict=True)]
    resolve_runs(runs)
    expected = [
        resolve_all(Resolver(base), each) for (base, _), each in zip(pages, links, strict=True)
    ]
    assert [list(run) for run in runs] == expected
    assert [len(run) for run in runs] == [len(each) for each in expected]


def run_of(links: list[Outlink]) -> OutlinkRun:
    run = OutlinkRun.of(links)
    assert run is not None
    return run


def test_a_page_of_links_by_either_way() -> None:
    resolver = Resolver("http://e.org/a/b/c.html")
    targets = [
        "x",
        "../y",
        "../../z",
        "../../../up",
        "mailto:x",
        "?q",
        "#f",
        "//h/p",
        "/r",
        " ./s ",
        "t//u",
        ".",
        "x" * 300,
        "é",
    ]
    run = OutlinkRun.of(Outlink(target, "t" * 200) for target in targets)
    assert run is not None
    for links in (run, list(run)):
        assert [link.to_url for link in resolve_all(resolver, links)] == [
            "http://e.org/a/b/x",
            "http://e.org/a/y",
            "http://e.org/z",
            "http://e.org/../up",
            "http://e.org/a/b/c.html?q",
            "http://e.org/a/b/c.html#f",
            "http://h/p",
            "http://e.org/r",
            "http://e.org/a/b/s",
            "http://e.org/a/b/t//u",
            "http://e.org/a/b/",
            "http://e.org/a/b/" + "x" * 300,
            "http://e.org/a/b/é",
        ]


@tabled(
    ("target", "expected"),
    [
        ("", "http://a.org/b/c?d#z"),
        (" x.html ", "http://a.org/b/x.html"),
        ("/x y", "http://a.org/x y"),
        ("?e", "http://a.org/b/c?e"),
        ("#f", "http://a.org/b/c?d#f"),
        ("//b.org/x", "http://b.org/x"),
        ("../x", "http://a.org/x"),
        ("https://B.org:443", "https://B.org:443"),
        ("x/./y", "http://a.org/b/x/y"),
    ],
)
def test_nutchs_spelling(target: str, expected: str) -> None:
    assert resolve("http://a.org/b/c?d#z", target) == expected


@pytest.mark.parametrize(
    ("base", "target"),
    NOT_RESOLVED,
)
def test_what_can_not_be_resolved(base: str, target: str) -> None:
    with pytest.raises(UrlError):
        resolve(base, target)


def test_the_standards_way() -> None:
    links = [
        Outlink("../x", "a"),
        Outlink("http://[x", "b"),
        Outlink("tel:1", "d"),
        Outlink("\\\\B/y", "c", MapWritable()),
    ]
    found = [Outlink("http://a.org/x", "a"), Outlink("http://b/y", "c", MapWritable())]
    assert resolve_all(WhatwgResolver("http://A.org/b/c"), links) == found
    assert (
        WhatwgResolver("http://A.org/b").resolve("\\x/../y z?\u00e9") == "http://a.org/y%20z?%C3%A9"
    )
    with pytest.raises(UrlError, match="can't resolve"):
        WhatwgResolver("http://a.org/").resolve("http://[x")


@tabled("kind", [Resolver, WhatwgResolver])
@tabled("target", ["http://", "http:///", "https://?x", "http://#x", "http://:80/"])
def test_no_target_without_a_host(kind: type[Resolver] | type[WhatwgResolver], target: str) -> None:
    """RFC 9110, 4.2.1: "a sender MUST NOT generate an http URI with an empty host"; URL Standard:
    host-missing. (`http:///x` has the host x by the latter.)
    """
    with pytest.raises(UrlError):
        kind("https://example.org/a/b?c").resolve(target)


def test_no_target_without_a_host_of_a_page_of_its_scheme() -> None:
    """`http:` and nothing more would become the page's path behind no host."""
    for target in ("http://", "///x/y", "//", "http://a@b@c/"):
        with pytest.raises(UrlError, match="no host"):
            Resolver("http://example.org/a/c").resolve(target)
    assert Resolver("file:/a/c").resolve("///x") == "file:/x"


@tabled(
    ("label", "target", "url"),
    [
        ("windows-1251", "?q=\u0445\u0435", "?q=%F5%E5"),
        ("windows-1251", "p\u0445?q=\u0445#\u0445", "p%D1%85?q=%F5#%D1%85"),
        ("windows-1251", "?q=\u3042", "?q=%26%2312354%3B"),
        ("shift_jis", "?q=\u30bd", "?q=%83\\"),
        ("gbk", "?q=\u20ac", "?q=%80"),
        ("euc-jp", "?q=\u2460\u4e02", "?q=%AD%A1%26%2319970%3B"),
        ("big5", "?q=\u5341\u43f0", "?q=%A4Q%26%2317392%3B"),
        ("ibm850", "?q=\xe9", "?q=%82"),
        ("euc-kr", "?a=\uac00&b='", "?a=%B0%A1&b=%27"),
        ("iso-2022-jp", "?q=\u3042x", "?q=%1B$B$%22%1B(Bx"),
        ("iso-2022-jp", "?q=\u2460\u4e02x", "?q=%1B$B-!%1B(B%26%2319970%3Bx"),
        ("utf-16le", "?q=\u0445", "?q=%D1%85"),
        ("utf-8", "?q=\u0445", "?q=%D1%85"),
    ],
)
def test_queries_in_the_charset_of_the_page(label: str, target: str, url: str) -> None:
    """URL Standard, 1.3 (percent-encode after encoding) and 4.4 (query state); Encoding Standard,
    4.3 (output encodings).
    """
    charset = lookup(label)
    assert charset is not None
    resolver = WhatwgResolver("http://e.example/d/", charset)
    assert resolver.resolve(target) == f"http://e.example/d/{url}"


@pytest.mark.parametrize("base", ["data:text/html,x", "javascript:x", "http://"])
def test_base_elements_that_do_not_count(base: str) -> None:
    """HTML Standard, 4.2.3: set the frozen base URL, step 3."""
    with pytest.raises(UrlError):
        WhatwgResolver("http://e.example/d/").based(base)
