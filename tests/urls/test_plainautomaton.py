"""The sieve beside the normalizers and filters that it speaks for, on any URLs and with any
rules.
"""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from minutch.conf import Configuration
from minutch.cycle.parse import linkverdicts
from minutch.cycle.parse.outlinks import OutlinkRules
from minutch.kernels.sieve import DEAD, UNKNOWN, WIDTH
from minutch.plugin.chains import SCOPE_OUTLINK
from minutch.records.links import Outlink, OutlinkRun
from minutch.urls.javaregex import JavaRegex
from minutch.urls.javaregex.derivative import END, START, Automaton
from tests.support.examples import examples, few
from tests.urls.strategies import plain_urls, urls

RULES = [
    "-^(?:file|ftp):\n-(?i)\\.(?:gif|js)$\n-[*!=?@]\n-(/[^/]+)/[^/]+\\1/[^/]+\\1/\n+.",
    "+^https?://a\n-\\bgif\n+(?:b|c$)",
    "> e.org\n-/x/\n<\n+^http://[a-f]++\n-(?=c)\n+.",
    "-/$\n-^$\n+(?i)[^#]{3,40}$",
]
NORMALIZERS = [
    "(pass|regex|basic)",
    "regex",
    "basic",
    "(regex|slash)",
    "pass",
]
PLUGINS = "urlnormalizer-%s|urlfilter-regex"
TAILS = [
    "",
    "#",
    "#a",
    "#a//b",
    "#a?b",
    "#&",
    "#sid=1&x",
    "//x",
    "/../y",
    "?a//b",
    "?&",
    "&&c",
    ".",
]
NEARLY_NORMAL = st.tuples(plain_urls, st.sampled_from(TAILS)).map("".join)
STARTS = ["http://h", "http://h:8080", "https://h.org", "http://H", "http://h:80", "http:/"]
STEPS = ["/..", "//", "/", "/a", "/a:", "/.", ".html", "///b", "/a.", "?", "%41", "/a/b/a/b/a/"]
CLIMBING = st.tuples(
    st.sampled_from(STARTS), st.lists(st.sampled_from(STEPS), max_size=6).map("".join)
).map("".join)


def rules(normalizers: str, filters: str) -> OutlinkRules:
    values = {"plugin.includes": PLUGINS % normalizers, "urlfilter.regex.rules": filters}
    return OutlinkRules(Configuration.load([], overrides=values))


@pytest.fixture(scope="module")
def pairs() -> list[OutlinkRules]:
    """Rules of all kinds; each remembers what it has told before."""
    return [rules(normalizers, filters) for normalizers in NORMALIZERS for filters in RULES]


@pytest.mark.parametrize("filters", RULES)
def test_a_step_learnt_for_one_character_holds_for_all_that_it_is_noted_for(filters: str) -> None:
    automaton = rules("(pass|regex|basic)", filters)._plain_automaton()
    assert automaton is not None
    for url in (b"http://a.org/x/b.gif", b"https://b7.net/(c)?d=1&e", b"http://f/x//y/z.js#top"):
        automaton.learn(url)
    steps, noted = automaton._steps, 0
    for number, state in enumerate(automaton._states[1:], 1):
        for code in range(0x21, 0x7F):
            following = int(automaton.table[number * WIDTH + code])
            if following != UNKNOWN:
                noted += 1
                found = automaton._step(state, code)
                is_dead = found[2] is automaton._anything
                assert following == (DEAD if is_dead else automaton._numbers[found]), chr(code)
    assert noted > 5 * steps  # most characters are told apart in few states


@given(st.lists(NEARLY_NORMAL | CLIMBING | urls, max_size=25))
@settings(max_examples=examples(15))
def test_links_at_once_are_kept_as_one_by_one(pairs: list[OutlinkRules], found: list[str]) -> None:
    links = [Outlink(url, "") for url in found]
    run = OutlinkRun.of(links)
    assert run is not None
    for rules in pairs:
        kept = [rules.accept("http://page/", url, None, SCOPE_OUTLINK) for url in found]
        [(together, *_)] = rules.keep([("http://page/", run)], 1 << 20, 1 << 20)
        assert [link.to_url for link in together] == [url for url in kept if url is not None]


def test_ordinary_links_are_not_asked_about(monkeypatch: pytest.MonkeyPatch) -> None:
    ordinary = [
        f"https://www.e{n}.org/a/b-{n}/c.html{tail}"
        for n in range(50)
        for tail in ("", "#part", "?q=1")
    ]
    ordinary += ["http://h/../a//b.html", "http://h/x.gif", "http://h/"]
    some = rules(NORMALIZERS[0], RULES[0])
    expected = [some.accept("", url, None) for url in ordinary]
    for way in ("_normalize_and_filter", "_judge_column"):
        monkeypatch.setattr(OutlinkRules, way, lambda *_: pytest.fail("asked"))
    monkeypatch.setattr(linkverdicts, "_ALONE", 0)
    run = OutlinkRun.of([Outlink(url, "") for url in ordinary])
    assert run is not None
    [(kept, *_)] = some.keep([("", run)], 1000, 1000)
    assert [link.to_url for link in kept] == [url for url in expected if url is not None]


@pytest.mark.parametrize(
    "pattern",
    [r"^a|b$", r"(?i)x(y|$)", r"(?<!:)/{2,}", r"\ba", r"a*+b", r"(?>ab|a)b", r"[^#]{2,3}$"],
)
@given(text=st.text("abxyXY:/# ", max_size=8))
@settings(max_examples=examples(100))
def test_strict_patterns_miss_nothing(pattern: str, text: str) -> None:
    regex = JavaRegex(pattern)
    found = regex.found_in
    assert found is not None
    strict, is_exact = found
    automaton = Automaton(strict)
    matches = automaton.matches_codes([START, *map(ord, text), END])
    assert matches or not regex.search(text)
    assert not is_exact or matches == regex.search(text)


@pytest.mark.parametrize(
    "pattern", [r"(a)\1", r"a(?=b)", r"a(?<=a)", r"a^b", r"($|a)b", r"(?:a$)*"]
)
def test_what_is_not_strict_is_left_alone(pattern: str) -> None:
    assert JavaRegex(pattern).found_in is None


LARGE = {
    "repeated": "-(((a?){100}){100}){50}z\n+.",
    "many rules": "\n".join(f"-^https?://host{number}\\.org/" for number in range(3000)) + "\n+.",
    "a long chain": "-^" + "[ab]?" * 2000 + "z\n+.",
    "many states": "-[ab]*a[ab]{40}c\n-[xa]*x[xa]{30}a\n+.",
}


@pytest.mark.parametrize("filters", few(LARGE.values()), ids=[*LARGE])
def test_rules_of_any_size(filters: str) -> None:
    """URLs that are too much for the sieve are put to the plugins."""
    found = [f"http://host{number}.org/{'ab' * number}c" for number in range(60)] + [
        "http://host1/" + "aabx" * 60
    ]
    run = OutlinkRun.of([Outlink(url, "") for url in found])
    assert run is not None
    large = rules("(pass|regex|basic)", filters)
    [(kept, *_)] = large.keep([("http://page/", run)], 100, 4096)
    single = [large.accept("http://page/", url, None, SCOPE_OUTLINK) for url in found]
    assert [link.to_url for link in kept] == [url for url in single if url is not None]
