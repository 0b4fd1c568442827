"""The URL normalizers, each with rules of its own; columns as rows."""

from __future__ import annotations

import logging
from functools import cache
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from minutch.errors import ConfigError, UrlError
from tests.plugins.urlplugins import normalized, url_normalizer
from tests.support.examples import examples, tabled
from tests.urls.strategies import odd_text, plain_urls, urls


@tabled(
    ("url", "expected"),
    [
        ("", ""),
        (" http://a.org/ \n", "http://a.org/"),
        ("HTTP://A.Org:80", "http://a.org/"),
        ("https://a.org:443/x#y", "https://a.org/x"),
        ("http://u:p@a.org:8080/", "http://a.org:8080/"),
        ("ftp://u:p@a.org:21/x/../y", "ftp://u:p@a.org/y"),
        ("http://a.org?x", "http://a.org/?x"),
        ("http://a.org/a/./b//../c/%2e%2E/d", "http://a.org/a/d"),
        ("http://a.org/../../x", "http://a.org/x"),
        ("http://a.org/../..x", "http://a.org/x"),
        ("http://a.org/a/../b?c/../d", "http://a.org/b?c/../d"),
        ("http://a.org/%7Ea%2f%zz%", "http://a.org/~a%2F%25zz%25"),
        (
            'http://a.org/ "<>^`{|}[]\\\u00e9',
            "http://a.org/%20%22%3C%3E%5E%60%7B%7C%7D%5B%5D\\%C3%A9",
        ),
        ("http://a.org/%25%34%31", "http://a.org/%2541"),
        ("http://%61.org/", "http://a.org/"),
        ("http://%zz.org/", None),
        ("http://a%20b.org/", "http://a b.org/"),
        ("http://a%2541.org/", "http://a%41.org/"),
        ("http://[fe80::1%25lo]/", None),
        ("http://B\u00dcCHER.example/", "http://b\u00fccher.example/"),
        ("http://a.org/a|b/../c", "http://a.org/c"),
        ("http://a.org:8080//a\\b#c", "http://a.org:8080//a\\b"),
        ("http://a.org//a/../b\\c", "http://a.org//a/../b\\c"),
        ("http://a b/x/../y", "http://a b/x/../y"),
        ("file:///a/../b%20c d", "file:/b%20c%20d"),
        ("http:/page", "http:/page"),
        ("http:page", "http:/page"),
        ("mailto:a@b", None),
        ("a.org", None),
    ],
)
def test_basic(url: str, expected: str | None) -> None:
    assert normalized(url_normalizer("urlnormalizer-basic"), [url]) == [expected]


@pytest.mark.parametrize(
    ("values", "url", "expected"),
    [
        ({"idn": "toAscii"}, "http://fa\u00df.de/", "http://fass.de/"),
        ({"idn": "TOASCII", "idna2008": "true"}, "http://fa\u00df.de/", "http://xn--fa-hia.de/"),
        ({"idn": "toUnicode"}, "http://xn--bcher-kva.example/", "http://b\u00fccher.example/"),
        ({"idn": "toUnicode", "idna2008": "true"}, "http://xn--fa-hia.de/", "http://fa\u00df.de/"),
        ({"idn": "toAscii"}, "http://" + "\u00e9" * 100 + ".org/", None),
        ({"trim-trailing-dot": "true"}, "http://a.org./", "http://a.org/"),
        ({"trim-trailing-dot": "false"}, "http://a.org./", "http://a.org./"),
    ],
)
def test_basic_hosts(values: dict[str, str], url: str, expected: str | None) -> None:
    named = {f"urlnormalizer__basic__host__{name}": value for name, value in values.items()}
    assert normalized(url_normalizer("urlnormalizer-basic", **named), [url]) == [expected]


made = cache(url_normalizer)
"""One for all examples: loading a plugin and its configuration is most of what an example costs."""
SOME = [*["basic", "regex", "pass", "querystring", "ajax"]]


@given(st.lists(urls, max_size=8))
@settings(max_examples=examples(80), suppress_health_check=[HealthCheck.too_slow])
@pytest.mark.parametrize("plugin", SOME)
def test_columns_are_rows(plugin: str, some: list[str]) -> None:
    for scope in ("default", "indexer"):
        normalized(made(f"urlnormalizer-{plugin}"), some, scope)


RULED = {
    "host": {"hosts__rules": "example.org a.org\n*.example.org b.org"},
    "slash": {"slashes__rules": "example.org +\na -"},
    "protocol": {"protocols__rules": "example.org https\n*.b https"},
}


@given(st.lists(urls, max_size=8))
@settings(max_examples=examples(60), suppress_health_check=[HealthCheck.too_slow])
@pytest.mark.parametrize("plugin", RULED)
def test_columns_are_rows_with_rules(plugin: str, some: list[str]) -> None:
    named = {f"urlnormalizer__{name}": value for name, value in RULED[plugin].items()}
    normalized(
        made(f"urlnormalizer-{plugin}", **named),
        [*some, "http://example.org/x/", "http://a/b/"],
    )


CROWDED = st.lists(st.sampled_from(["/", "..", ".", "a", "b.c", "?", "#", "x/y"]), max_size=9).map(
    "".join
)


@given(urls | st.tuples(plain_urls, odd_text).map("#".join) | CROWDED.map("http://a.org/".__add__))
@settings(max_examples=examples(200))
def test_short_cuts_give_what_the_long_way_gives(url: str) -> None:
    basic = made("urlnormalizer-basic")
    try:
        expected = basic.rewrite(url)  # type: ignore[attr-defined]
    except UrlError:
        expected = None
    assert normalized(basic, [url]) == [expected]


@given(plain_urls)
def test_normal_urls_stay(url: str) -> None:
    basic = url_normalizer("urlnormalizer-basic")
    once = basic.normalize(url, "default")
    assert once is not None
    assert basic.normalize(once, "default") == once


XML = """<regex-normalize>
  <!-- one -->
  <regex><pattern>(a+)b</pattern><substitution>$1-</substitution></regex>
  <regex><pattern>(?&lt;!:)//</pattern><substitution>/</substitution></regex>
  <regex><pattern>c$</pattern><substitution/></regex>
  <regex><pattern>(</pattern><substitution>x</substitution></regex>
  <regex><pattern>d</pattern><substitution>$7</substitution></regex>
  <regex><pattern>only a pattern</pattern></regex>
</regex-normalize>"""


def test_regex_rules(caplog: pytest.LogCaptureFixture) -> None:
    chosen = url_normalizer("urlnormalizer-regex", urlnormalizer__regex__rules=XML)
    given_urls = ["http://aab//xc", "http://d", "", "ab\nc"]
    assert normalized(chosen, given_urls) == ["http://aa-/x", "http://d", "", "a-\n"]
    assert caplog.text.count("left out") == 2


def test_rules_that_change_a_url_are_named_by_their_lines() -> None:
    chosen = url_normalizer("urlnormalizer-regex", urlnormalizer__regex__rules=XML)
    assert chosen.explain("aab//c", "default").endswith(
        "urlnormalizer.regex.rules:3, urlnormalizer.regex.rules:4, urlnormalizer.regex.rules:5"
    )
    assert chosen.explain("x", "default") == ""


def test_regex_rules_of_a_scope(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    rule = (
        "<regex-normalize><regex><pattern>a</pattern><substitution>{}</substitution></regex>"
        "</regex-normalize>"
    )
    (tmp_path / "default.xml").write_text(rule.format("b"))
    (tmp_path / "inject.xml").write_text(rule.format("c"))
    (tmp_path / "empty.xml").write_text("<regex-normalize/>")
    files = {
        "": "default.xml",
        "__inject": "inject.xml",
        "__fetcher": "none.xml",
        "__linkdb": "empty.xml",
    }
    named = {f"urlnormalizer__regex__file{scope}": name for scope, name in files.items()}
    chosen = url_normalizer("urlnormalizer-regex", tmp_path, **named)
    found = {
        scope: normalized(chosen, ["a"], scope)
        for scope in ("default", "inject", "fetcher", "linkdb")
    }
    assert found == {"default": ["b"], "inject": ["c"], "fetcher": ["b"], "linkdb": ["b"]}
    assert "none.xml" in caplog.text


@pytest.mark.parametrize("text", ["no XML", "<regex-normalize>"])
def test_regex_rules_that_are_none(text: str, caplog: pytest.LogCaptureFixture) -> None:
    assert normalized(
        url_normalizer("urlnormalizer-regex", urlnormalizer__regex__rules=text), ["a"]
    ) == ["a"]
    assert "not XML" in caplog.text


def test_a_rule_that_takes_for_ever_drops_the_url(caplog: pytest.LogCaptureFixture) -> None:
    rule = "<regex><pattern>((a|b)+)+c\\1c$</pattern><substitution/></regex>"
    values = {"urlnormalizer__regex__rules": f"<regex-normalize>{rule}</regex-normalize>"}
    chosen = url_normalizer("urlnormalizer-regex", **values, urlnormalizer__regex__seconds="0.01")
    with caplog.at_level(logging.WARNING):
        assert normalized(chosen, ["a" * 3000 + "cbc", "acac"]) == [None, ""]
    assert caplog.text.count("took too long") == 1


def test_hosts() -> None:
    rules = "# c\n\nwww.a.org   a.org\n*.b.org b.org\n*.c.b.org other\nhttp x"
    chosen = url_normalizer("urlnormalizer-host", urlnormalizer__hosts__rules=rules)
    given_urls = [
        "http://www.a.org:8/www.a.org",
        "http://a.b.org/",
        "http://d.c.b.org/",
        "http://b.org/",
        "http://http/",
        "http://x./",
        "nothing",
    ]
    expected = [
        "http://a.org:8/www.a.org",
        "http://b.org/",
        "http://b.org/",
        "http://b.org/",
        "x://http/",
        "http://x./",
        None,
    ]
    assert normalized(chosen, given_urls) == expected


def test_queries() -> None:
    given_urls = [
        "http://u@a:8/x?b&a&&c#d",
        "http://a/?",
        "http://a/?b&a&&",
        "http://a/x",
        "http://a/?\U0001f600&\uffff",
        "x?y",
    ]
    expected = [
        "http://a:8/x?&a&b&c#d",
        "http://a/?",
        "http://a/?a&b",
        "http://a/x",
        "http://a/?\U0001f600&\uffff",
        None,
    ]
    assert normalized(url_normalizer("urlnormalizer-querystring"), given_urls) == expected


def test_slashes() -> None:
    chosen = url_normalizer(
        "urlnormalizer-slash", urlnormalizer__slashes__rules="# c\nplus +\nminus\t-\n\nother x\n"
    )
    pairs = {
        "http://plus/a": "http://plus/a/",
        "http://plus/a?b": "http://plus/a/?b",
        "http://plus/a.html": "http://plus/a.html",
        "http://plus/a.b": "http://plus/a.b/",
        "http://plus/long.name/x": "http://plus/long.name/x/",
        "http://plus/": "http://plus/",
        "http://minus/a/": "http://minus/a",
        "http://minus/a/?b#c": "http://minus/a?b",
        "http://minus/": "http://minus/",
        "http://other/a/": "http://other/a",
        "http://third/a/": "http://third/a/",
    }
    assert normalized(chosen, pairs) == list(pairs.values())
    assert normalized(chosen, ["nothing"]) == [None]


def test_protocols(caplog: pytest.LogCaptureFixture) -> None:
    rules = "a.org https\n*.b.org\thttp\n*.c.b.org https\nbad\nworse 1x\nd foo"
    chosen = url_normalizer("urlnormalizer-protocol", urlnormalizer__protocols__rules=rules)
    pairs = {
        "http://a.org/x?y": "https://a.org/x?y",
        "https://a.org/": "https://a.org/",
        "http://a.org:80/": "http://a.org:80/",
        "https://b.org/": "http://b.org/",
        "https://x.b.org/": "http://x.b.org/",
        "http://x.c.b.org/": "https://x.c.b.org/",
        "https://xb.org/": "https://xb.org/",
        "http://d/": None,
    }
    assert normalized(chosen, pairs) == list(pairs.values())
    assert caplog.text.count("left out") == 2


@pytest.mark.parametrize(
    ("plugin", "rules"), [("host", "hosts__rules"), ("slash", "slashes__rules")]
)
def test_lines_without_a_second_column(plugin: str, rules: str) -> None:
    with pytest.raises(ConfigError, match=r"^urlnormalizer\.\w+\.rules \(.*\), line 1: expected"):
        url_normalizer(f"urlnormalizer-{plugin}", **{f"urlnormalizer__{rules}": "example.org"})


def test_ajax() -> None:
    chosen = url_normalizer("urlnormalizer-ajax")
    pairs = {
        "http://a/#!x=1&y%+ \u00e9": "http://a/?_escaped_fragment_=x=1%26y%25%2B%20%C3%A9",
        "http://a/?b#!c#d": "http://a/?b&_escaped_fragment_=c%23d",
        "http://a/#b": "http://a/#b",
        "a#!b": None,
    }
    assert normalized(chosen, pairs) == list(pairs.values())


def test_ajax_for_the_index() -> None:
    chosen = url_normalizer("urlnormalizer-ajax")
    pairs = {
        "http://a:8/p?_escaped_fragment_=x%26y": "http://a:8/p#!x&y",
        "http://a/?b=c&_escaped_fragment_=d+e": "http://a/?b=c&_escaped_fragment_=d+e#!d e",
        "http://a/?b=c&_escaped_fragment_=d": "http://a/?b=c#!d",
        "http://a/?_escaped_fragment_=%zz": "http://a/#!%zz",
        "http://a/_escaped_fragment_=": None,
        "http://a/?b&_escaped_fragment_=(": None,
        "http://a/#!b": "http://a/?_escaped_fragment_=b",
    }
    assert normalized(chosen, pairs, "indexer") == list(pairs.values())


def test_pass() -> None:
    assert normalized(url_normalizer("urlnormalizer-pass"), ["anything", ""]) == ["anything", ""]
