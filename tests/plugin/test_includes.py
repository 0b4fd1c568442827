"""The alternatives of plugin.includes: what is missing, what is misspelt."""

from __future__ import annotations

from minutch.plugin.manifest import (
    NUTCH_PLUGINS,
    expand,
    missing_plugins,
    misspelt_plugins,
    unmatched_alternatives,
)
from tests.support.examples import tabled


@tabled(
    ("pattern", "alternatives"),
    [
        ("a|b-(c|d)|e", ["a", "b-c", "b-d", "e"]),
        (
            "index-(basic|anchor)-(x|y)",
            ["index-basic-x", "index-basic-y", "index-anchor-x", "index-anchor-y"],
        ),
        ("a(?:b|c(d|e))", ["ab", "acd", "ace"]),
        ("urlfilter-.*", ["urlfilter-.*"]),
        (r"a\|b|[|(]c", [r"a\|b", "[|(]c"]),
        ("a(b|c)?|d", ["a(b|c)?", "d"]),
        ("(?i)a|b", ["(?i)a", "b"]),
        ("a(b", ["a(b"]),
        ("", [""]),
    ],
)
def test_expand(pattern: str, alternatives: list[str]) -> None:
    assert expand(pattern) == alternatives


def test_unmatched() -> None:
    names = ["protocol-http", "parse-html", "urlfilter-regex"]
    assert unmatched_alternatives(
        "protocol-http|parse-(html|tika)|urlfilter-.*|indexer-solr", names
    ) == [
        "parse-tika",
        "indexer-solr",
    ]


def test_what_cannot_be_taken_apart_says_nothing() -> None:
    assert unmatched_alternatives("(a|b)" * 40, ["x"]) == []
    assert unmatched_alternatives("a(b|*", ["x"]) == []
    assert unmatched_alternatives("", ["x"]) == []


def test_a_plugin_of_nutchs_is_missing_not_misspelt() -> None:
    names = ["protocol-http", "urlfilter-regex", "urlfilter-prefix"]
    includes = (
        "protocol-http|urlfilter-(regx|prefix)|indexer-solr|completely-other|parse-(html|tika)"
    )
    assert missing_plugins(includes, names) == ["indexer-solr", "parse-html", "parse-tika"]
    assert misspelt_plugins(includes, names) == [
        ("urlfilter-regx", ["urlfilter-regex", "urlfilter-prefix"]),
        ("completely-other", []),
    ]


def test_nutchs_plugins_are_known() -> None:
    assert len(NUTCH_PLUGINS) == 78
