"""The automaton filter's patterns; the cases were put to dk.brics.automaton 1.12-4."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from minutch.errors import ConfigError
from minutch.urls.javaregex.derivative import Automaton
from plugins.urlfilter_automaton.automaton_filter import parse_pattern
from tests.plugins.urlplugins import passed, url_filter
from tests.support.examples import examples, tabled

MATCHES = [
    ("a", "a", True),
    ("a", "ab", False),
    ("", "", True),
    ("", "a", False),
    ("a|b", "b", True),
    ("ab|cd", "cd", True),
    ("a&b", "a", False),
    ("a.*&.*b", "axb", True),
    ("~a", "a", False),
    ("~a", "", True),
    ("~(a|b)c", "xc", True),
    ("~~a", "a", True),
    ("a?b*c+", "bbc", True),
    ("a{2}", "aa", True),
    ("a{2}", "aaa", False),
    ("a{2,}", "aaaa", True),
    ("a{1,2}", "aaa", False),
    ("a{2,1}", "a", False),
    ("[a-c]", "b", True),
    ("[^a-c]", "b", False),
    ("[^a-c]", "\n", True),
    ("[a-]", "-", True),
    ("[]-a]", "]", True),
    (".", "\n", True),
    (".", "\U0001f600", False),
    ("..", "\U0001f600", True),
    ("#", "", False),
    ("a#", "a", False),
    ("@", "anything", True),
    ('"a.b"', "a.b", True),
    ('"a.b"', "axb", False),
    ("()", "", True),
    ("(ab)*", "abab", True),
    ("\\.", ".", True),
    ("\\d", "d", True),
    ("<5-12>", "7", True),
    ("<5-12>", "13", False),
    ("<5-12>", "0012", True),
    ("<05-12>", "7", False),
    ("<05-12>", "07", True),
    ("<0-0>", "000", False),
    ("<0-12>", "000", True),
    ("<099-101>", "100", True),
    ("<12-5>", "6", True),
    ("^a$", "^a$", True),
    ("(a*)*b", "aaab", True),
    ("a}", "a}", True),
]
REFUSED = [
    *(
        "(",
        "a)",
        "[a",
        "a{",
        "a{x}",
        '"a',
        "<a",
        "<name>",
        "<1-2-3>",
        "\\",
        "(|",
        "a&",
        "~",
        "[]",
        "[a-",
    ),
]


@tabled(("pattern", "text", "matches"), MATCHES)
def test_matches(pattern: str, text: str, matches: bool) -> None:
    assert Automaton(parse_pattern(pattern)).matches(text) is matches


@tabled(("pattern", "text", "matches"), MATCHES)
def test_the_filter_by_row_and_by_column(pattern: str, text: str, matches: bool) -> None:
    chosen = url_filter("urlfilter-automaton", urlfilter__automaton__rules=f"+{pattern}")
    assert passed(chosen, [text]) == ([text] if matches else [])


@tabled("pattern", REFUSED)
def test_patterns_that_are_none(pattern: str) -> None:
    with pytest.raises(ConfigError, match="automaton pattern"):
        parse_pattern(pattern)


def test_states_grow_with_the_text_at_most() -> None:
    """A pattern that takes a backtracking matcher for ever: a step for each character, few
    states.
    """
    automaton = Automaton(parse_pattern("(a*)*(a*)*(a|aa)*b"))
    assert not automaton.matches("a" * 20_000)
    assert len(automaton._states) < 50


def test_states_are_forgotten_when_there_are_too_many(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("minutch.urls.javaregex.derivative._MAX_STATES", 10)
    automaton = Automaton(parse_pattern("(.*a......)&~(b.*)"))
    for text in ("xaxaxaaa", "aaaaaaa", "baxaxaxaxax", "xxxxxxx"):
        assert automaton.matches(text) is (len(text) >= 7 and text[-7] == "a" and text[0] != "b")
    assert automaton.matches("xa......")


@given(
    st.text(st.sampled_from('ab|&~?*+{}[]().#@"<>1-2\\^'), max_size=10),
    st.text(st.sampled_from("ab1-"), max_size=6),
)
@settings(max_examples=examples(300))
def test_any_pattern_is_read_or_refused(pattern: str, text: str) -> None:
    try:
        parsed = parse_pattern(pattern)
    except ConfigError as exc:
        assert "character" in str(exc)
        return
    Automaton(parsed).matches(text)
