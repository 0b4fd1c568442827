"""Java's regular expressions: the cases were put to java.util.regex of JDK 17."""

from __future__ import annotations

import re

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from minutch.errors import ConfigError
from minutch.urls.javaregex import LINE_ENDS, JavaRegex
from minutch.urls.javaregex.syntax import parse_regex
from minutch.urls.javaregex.tree import is_tame, required_character, required_literal
from tests.support.examples import tabled

FINDS = [
    ("a", "ba", True),
    (".", "\n", False),
    (".", "\r", False),
    ("(?s).", "\n", True),
    ("a$", "a\n", True),
    ("a$", "a\r\n", True),
    ("a$", "a\n\n", False),
    ("a\\z", "a\n", False),
    ("a\\Z", "a\n", True),
    ("(?m)^b", "a\nb", True),
    ("(?m)a$", "a\rb", True),
    ("(?i)\u00e9", "\u00c9", False),
    ("(?iu)\u00e9", "\u00c9", True),
    ("x(?i)a|b", "B", True),
    ("x(?i:a)|b", "B", False),
    ("(x(?i)a)b", "xAB", False),
    ("\\d", "\u0663", False),
    ("(?U)\\d", "\u0663", True),
    ("\\w", "\u00e9", False),
    ("\\ba", "\u00e9a", False),
    ("\\B", "", True),
    ("[a-c&&[^b]]", "b", False),
    ("[a-z&&def]", "e", True),
    ("[^a-b[c-d]]", "c", False),
    ("[^a&&b]", "a", True),
    ("[]a]", "]", True),
    ("[a-]", "-", True),
    ("[\\d-a]", "-", True),
    ("[\\Qa]\\E]", "]", True),
    ("\\Qa.b\\E", "a.b", True),
    ("\\Qa.b", "axb", False),
    ("\\x41\\u0042\\x{43}\\0104", "ABCD", True),
    ("\\p{Lu}\\P{Lu}", "Aa", True),
    ("\\p{Alpha}", "\u00e9", False),
    ("\\p{IsLatin}", "\u00e9", True),
    ("\\h\\v\\R", " \n\r\n", True),
    ("a{2}", "aba", False),
    ("a{2,}", "baa", True),
    ("a{1,2}b", "aaab", True),
    ("a*+a", "aaa", False),
    ("(?>a|ab)c", "abc", False),
    ("(a)\\1", "aa", True),
    ("(a)\\11", "aa1", True),
    ("\\1(a)", "aa", False),
    ("(?<n>a)\\k<n>", "aa", True),
    ("(?i)(a)\\1", "aA", True),
    ("(?<=a)b", "ab", True),
    ("(?<!a)b", "ab", False),
    ("(?<=a{1,3})b", "ab", True),
    ("a(?=b)", "ab", True),
    ("a(?!b)", "ab", False),
    ("(?x) a b # c", "ab", True),
    ("(?d)a$", "a\r", False),
    ("\\cA", "\x01", True),
    ("a}", "a}", True),
    ("", "", True),
    ("a||b", "c", True),
]
REFUSED = [
    "[a-\\d]",
    "(",
    ")",
    "[",
    "a{",
    "*",
    "+a",
    "a{2,1}",
    "(?<n>a)(?<n>b)",
    "\\k<x>",
    "\\y",
    "[b-a]",
    "\\p{Foo}",
    "(?z)",
    "\\",
    "[a",
]


@tabled(("pattern", "text", "found"), FINDS)
def test_find(pattern: str, text: str, found: bool) -> None:
    assert JavaRegex(pattern).search(text) is found


@tabled(("pattern", "text", "found"), FINDS)
def test_the_columns_pattern_misses_nothing(pattern: str, text: str, found: bool) -> None:
    regex = JavaRegex(pattern)
    if re.search(LINE_ENDS, text) or regex.superset is None:
        return
    may = pl.Series([text]).str.contains(regex.superset)[0]
    assert may or not found
    assert may is found or not regex.is_exact


@tabled("pattern", REFUSED)
def test_what_java_refuses(pattern: str) -> None:
    with pytest.raises(ConfigError, match="character"):
        JavaRegex(pattern)


@tabled(
    ("pattern", "replacement", "text", "result"),
    [
        ("(a)(b)?", "[$1$2]", "aab", "[a][ab]"),
        ("(?<n>a)", "${n}${n}", "ab", "aab"),
        ("a", "\\$1\\\\", "a", "$1\\"),
        ("(a)", "$12", "a", "a2"),
        ("a*", "-", "baac", "-b--c-"),
        ("(?<!:)/{2,}", "/", "http://a//b///c", "http://a/b/c"),
        ("(?<=a)b{1,2}", "x", "abbb", "axb"),
        ("x", "y", "abc", "abc"),
        ("(a)\\1", "b", "aaa", "ba"),
    ],
)
def test_replace_all(pattern: str, replacement: str, text: str, result: str) -> None:
    regex = JavaRegex(pattern)
    assert regex.replace_all(text, regex.replacement(replacement)) == result


def test_replace_first() -> None:
    assert JavaRegex("a").replace_first("aa", "b") == "ba"


@pytest.mark.parametrize("replacement", ["$1", "$", "\\", "${x}"])
def test_replacements_that_are_none(replacement: str) -> None:
    with pytest.raises(ConfigError, match="replacement"):
        JavaRegex("a").replacement(replacement)


def test_whole_strings() -> None:
    assert JavaRegex("a+").matches("aaa")
    assert not JavaRegex("a+").matches("aab")
    assert JavaRegex("(a)\\1").matches("aa")


@pytest.mark.parametrize("pattern", ["(a+)+b\\1$", "((a|a)*)*c", "(.*)(.*)(.*)(.*)(.*)x\\1"])
def test_a_pattern_that_takes_for_ever_is_stopped(pattern: str) -> None:
    regex = JavaRegex(pattern, seconds=0.01)
    hostile = "a" * 5000 + "bcx"
    with pytest.raises(TimeoutError):
        while True:
            regex.search(hostile)
            hostile = "a" * len(hostile) + hostile
            assert len(hostile) < 1 << 22, "never stopped"


@tabled(
    ("pattern", "tame", "character", "literal"),
    [
        ("abc", True, ("a", 1), "abc"),
        (".*x.*", True, ("x", 1), "x"),
        (".*.*.*x", False, ("x", 1), "x"),
        ("(a+)+", False, ("a", 1), ""),
        ("([a-z]+\\.)*b", False, ("b", 1), "b"),
        ("(a)\\1b", False, ("a", 2), "b"),
        ("a|b", True, None, ""),
        ("(?:ab|ac)a", True, ("a", 2), "a"),
        ("^file://+", True, ("/", 2), "file://"),
        ("(?i)a", True, None, ""),
        ("a?b{2,3}c", True, ("b", 2), "bb"),
        ("(?=a)b", True, ("b", 1), "b"),
        ("(/[^/]+)/[^/]+\\1/[^/]+\\1/", False, ("/", 6), "/"),
    ],
)
def test_what_is_known_beforehand(
    pattern: str, tame: bool, character: tuple[str, int] | None, literal: str
) -> None:
    tree = parse_regex(pattern)
    assert (is_tame(tree), required_character(tree), required_literal(tree)) == (
        tame,
        character,
        literal,
    )


@given(
    st.text(st.sampled_from("ab/()[]{}*+?|^$\\.-&!<>=:1,ix"), max_size=14),
    st.text(st.sampled_from("ab/1-"), max_size=8),
)
def test_any_pattern_is_read_or_refused(pattern: str, text: str) -> None:
    try:
        regex = JavaRegex(pattern, seconds=0.05)
        regex.search(text)
    except (ConfigError, TimeoutError) as exc:
        assert type(exc) in (ConfigError, TimeoutError)
