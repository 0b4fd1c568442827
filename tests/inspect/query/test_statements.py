"""What words about use mean: each mechanism by its source, and hostile words."""

from __future__ import annotations

import json
import time

import pytest

from minutch.inspect.query.statements import (
    AGENTS,
    ALLOWED,
    ANY,
    INPUT,
    REFUSED,
    SEARCH,
    TRAINING,
    UNSAID,
    RobotsStatements,
    Statements,
    TdmFile,
    of_directives,
    of_link_header,
    of_linked_data,
    of_reservation,
    of_usage,
    verdict_of,
)
from minutch.urls.robots import normal_path

ROBOTS = "http://h/robots.txt"


def uses(statements: Statements) -> dict[str, str]:
    return {one.use: one.verdict for one in statements}


def robots(text: str, path: str = "/", agents: tuple[str, ...] = ()) -> Statements:
    return RobotsStatements(text.encode(), "text/plain", ROBOTS, agents).statements(path)


# -- Content-Usage: draft-ietf-aipref-vocab, 6, and -attach ----------------------------------------


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("train-ai=y, search=n", {TRAINING: ALLOWED, SEARCH: REFUSED}),  # 6: the example
        ('train-ai=y, train-ai, search=n, search="n"', {}),  # 6.5.1: only the last value applies
        ("train-ai;allow=n, train-ai=y", {TRAINING: ALLOWED}),  # 6.5.2
        ('train-ai;has;parameters="?";', {}),
        ("Train-AI=n", {}),  # case sensitive: parsing fails
        ("train-ai=no", {}),
        ("train-ai=N", {}),
        ("train-ai=n,", {}),  # no dictionary
        ("train-ai=n, ,search=n", {}),
        ('x=(1 2;a "b");c, train-ai=n, y=:YQ==:, z=?1, w=@12, v=1.5', {TRAINING: REFUSED}),
        ("x=(1 2, train-ai=n", {}),
        ("bots=n, search=y", {TRAINING: REFUSED, INPUT: REFUSED, SEARCH: ALLOWED}),  # -03
        ("search=y, bots=n", {TRAINING: REFUSED, INPUT: REFUSED, SEARCH: ALLOWED}),
        ("train-genai=n, train-ai=y", {TRAINING: REFUSED}),
        ("unknown=n", {}),
        ("", {}),
        ("a" * 100_000 + "=n", {}),
        ("train-ai=n" + ";a" * 1_000_000, {}),
    ],
)
def test_a_content_usage_is_a_dictionary(words: str, expected: dict[str, str]) -> None:
    assert uses(of_usage("content-usage", words, "header")) == expected


def test_the_longest_path_decides_which_content_usage_counts() -> None:
    """The example of -attach, 3.4; of equal paths the most restrictive counts (3.1)."""
    text = (
        "User-Agent: *\nAllow: /\nDisallow: /never/\nContent-Usage: train-ai=n\n"
        "Content-Usage: /ai-ok/ train-ai=y\n\n"
        "User-Agent: ExampleBot\nAllow: /\nContent-Usage: train-ai=y\n"
    )
    assert uses(robots(text, "/test")) == {TRAINING: REFUSED}
    assert uses(robots(text, "/ai-ok/test")) == {TRAINING: ALLOWED}
    (named,) = robots(text, "/test", ("examplebot",))
    assert named == (
        "content-usage",
        TRAINING,
        ALLOWED,
        "train-ai=y",
        f"{ROBOTS} line 9",
        "examplebot",
    )
    never = robots(text, "/never/test")
    assert {one.mechanism for one in never} == {"robots.txt"}
    both = "User-agent: *\nContent-Usage: /a train-ai=y\nContent-Usage:/a   train-ai=n # no"
    found = robots(both, "/a/b")
    assert [one.verdict for one in found] == [ALLOWED, REFUSED]
    assert verdict_of(found, TRAINING) == REFUSED
    assert robots(both, "/b") == ()
    escaped = "User-agent: *\nContent-Usage: /%C3%A9*x$ search=n"
    assert uses(robots(escaped, normal_path("http://h/é/x"))) == {SEARCH: REFUSED}
    assert robots(escaped, normal_path("http://h/é/xy")) == ()


# -- Content-Signal: contentsignals.org ------------------------------------------------------------


def test_a_content_signal_answers_for_three_uses() -> None:
    text = "User-Agent: *\nContent-Signal: ai-train=no, search=yes, ai-input=yes\nAllow: /"
    assert uses(robots(text)) == {TRAINING: REFUSED, INPUT: ALLOWED, SEARCH: ALLOWED}
    header = of_usage("content-signal", "AI-Train=No, search=maybe, search", "header")
    assert uses(header) == {TRAINING: REFUSED}


def test_signals_above_the_first_group_hold_where_the_group_says_nothing_else() -> None:
    text = (
        "Content-Signal: search=yes, ai-train=no\n"
        "User-agent: *\nContent-Signal: search=no\nDisallow:"
    )
    found = robots(text)
    assert uses(found) == {TRAINING: REFUSED, SEARCH: REFUSED}
    assert {one.source for one in found} == {f"{ROBOTS} line 1", f"{ROBOTS} line 3"}
    assert uses(robots("Content-Signal: ai-train=no")) == {TRAINING: REFUSED}


# -- robots.txt by agent ---------------------------------------------------------------------------


def test_agents_of_ai_that_may_not_fetch_a_path_are_named_with_the_line() -> None:
    text = (
        "User-agent: GPTBot\nUser-agent: ccbot/2.0\nUser-agent: AI2Bot\nDisallow: /art\n"
        "Allow: /art/free\n\nUser-agent: PerplexityBot\nDisallow: /\n\nUser-agent: Googlebot\n"
        "Disallow: /\n\nUser-agent: *\nDisallow:"
    )
    training, answers = robots(text, "/art/1")
    assert training == (
        "robots.txt",
        TRAINING,
        REFUSED,
        "Disallow: /art",
        f"{ROBOTS} line 4",
        "GPTBot, CCBot, AI2Bot",
    )
    assert (answers.use, answers.agent) == (INPUT, "PerplexityBot")
    assert uses(robots(text, "/art/free")) == {INPUT: REFUSED}
    both = robots("User-agent: Google-Extended\nDisallow: /")
    assert uses(both) == {TRAINING: REFUSED, INPUT: REFUSED}


def test_what_is_said_to_an_agent_of_ai_alone_allows_nothing_to_others() -> None:
    text = "User-agent: GPTBot\nContent-Signal: ai-train=%s\nAllow: /"
    assert robots(text % "yes") == ()
    (found,) = robots(text % "no")
    assert (found.mechanism, found.agent) == ("content-signal", "GPTBot")


def test_a_path_that_our_own_group_forbids_is_refused_for_all_uses() -> None:
    """It was fetched under another robots.txt, or without asking."""
    text = "User-agent: me\nDisallow: /x\n\nUser-agent: *\nDisallow: /"
    found = robots(text, "/x", ("me",))
    assert verdict_of(found, ANY) == REFUSED
    assert {one.agent for one in found} == {"me"}
    assert robots(text, "/y", ("me",)) == ()


def test_all_agents_have_a_use_and_are_found_however_they_are_spelled() -> None:
    for name, refused in AGENTS.items():
        found = robots(f"User-agent: {name.upper()}\nDisallow: /")
        assert [(one.use, one.agent) for one in found] == [(use, name) for use in refused]


# -- TDM Reservation Protocol ----------------------------------------------------------------------


def test_of_a_tdmrep_file_the_first_rule_that_matches_counts() -> None:
    """The example of "TDM File on the Origin Server", with a rule that comes too late."""
    rules = [
        {"location": "/directory-a/", "tdm-reservation": 1},
        {
            "location": "/directory-b/html/",
            "tdm-reservation": 1,
            "tdm-policy": "https://provider.com/policies/policy.json",
        },
        {"location": "/directory-b/images/*.jpg", "tdm-reservation": 0},
        {"location": "/directory-b/images/a.jpg$", "tdm-reservation": 1},
    ]
    file = TdmFile(json.dumps(rules).encode(), "http://h/.well-known/tdmrep.json")
    assert uses(file.statements("/directory-a/x.pdf")) == {TRAINING: REFUSED, INPUT: REFUSED}
    found = file.statements("/directory-b/html/")
    assert found[0].statement == (
        "tdm-reservation: 1, tdm-policy: https://provider.com/policies/policy.json"
    )
    assert found[0].source.endswith("tdmrep.json rule 2")
    assert uses(file.statements("/directory-b/images/a.jpg")) == {TRAINING: ALLOWED, INPUT: ALLOWED}
    assert file.statements("/other") == ()
    assert file.statements("/DIRECTORY-A/") == ()


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"{",
        b"\xff\xfe",
        b'{"location": "/", "tdm-reservation": 1}',
        b'[1, null, {"location": 3}, {"location": "x", "tdm-reservation": 1}]',
        b'[{"location": "/", "tdm-reservation": true}]',
        b'[{"location": "/", "tdm-reservation": 2}, {"location": "/", "tdm-reservation": 1}]',
        b"[" * 1_000_000,
    ],
)
def test_a_file_that_is_none_reserves_nothing(content: bytes) -> None:
    """Other values are protocol errors, for which tdm-reservation is unset."""
    assert TdmFile(content, "u").statements("/") == ()


def test_a_reservation_is_one_or_zero() -> None:
    assert uses(of_reservation([" 1 "], [], "meta")) == {TRAINING: REFUSED, INPUT: REFUSED}
    assert uses(of_reservation(["0"], ["http://p/"], "meta")) == {TRAINING: ALLOWED, INPUT: ALLOWED}
    assert of_reservation(["yes", ""], [], "meta") == ()
    assert {one.verdict for one in of_reservation(["0", "1"], [], "meta")} == {REFUSED}


# -- noai, licences --------------------------------------------------------------------------------


def test_noai_and_noimageai_keep_a_page_out_of_training() -> None:
    none: frozenset[str] = frozenset()
    found = of_directives(["index, NoAI", "noimageai"], "meta robots", none)
    assert uses(found) == {TRAINING: REFUSED, INPUT: REFUSED}
    assert uses(of_directives(["noimageai"], "meta robots", none)) == {TRAINING: REFUSED}
    assert of_directives(["otherbot: noai"], "header", none) == ()
    assert of_directives(["otherbot: noai"], "header", frozenset({"otherbot"}))
    assert of_directives(["noaid, xnoai, max-snippet: noai"], "header", none) == ()


def test_licences_are_shown_and_decide_nothing() -> None:
    """RFC 4946 and 8288 (Link); schema.org (JSON-LD), wherever they are in an object."""
    url = "https://creativecommons.org/licenses/by-nc/4.0/"
    link = of_link_header(f'</a>; rel=next, <{url}>; title="a, b"; rel="x License"; x, <b>;rel=y')
    assert {(one.statement, one.verdict) for one in link} == {(url, UNSAID)}
    page = {
        "@type": "NewsArticle",
        "isAccessibleForFree": False,
        "image": [{"@type": "ImageObject", "license": {"@id": url}}],
        "@graph": [{"license": [url, {"url": "u"}], "usageInfo": "terms"}],
    }
    found = of_linked_data(json.dumps(page))
    assert {one.statement for one in found} == {
        "NewsArticle isAccessibleForFree: false",
        f"ImageObject license: {url}",
        f"license: {url}",
        "license: u",
        "usageInfo: terms",
    }
    assert verdict_of(found, ANY) == UNSAID
    assert of_linked_data('{"license": ') == of_linked_data("[]") == ()


def test_the_most_restrictive_of_all_statements_counts() -> None:
    """draft-ietf-aipref-vocab, 5.1."""
    yes = of_usage("content-usage", "train-ai=y, search=y", "header")
    no = of_usage("content-signal", "ai-train=no", "header")
    assert verdict_of(yes, TRAINING) == ALLOWED
    assert verdict_of(yes + no, TRAINING) == verdict_of(no + yes, ANY) == REFUSED
    assert (verdict_of(yes, INPUT), verdict_of(yes, ANY)) == (UNSAID, UNSAID)
    everything = of_usage("content-signal", "ai-train=yes, ai-input=yes, search=yes", "header")
    assert verdict_of(everything, ANY) == ALLOWED


def test_hostile_words_take_bounded_time_and_say_little() -> None:
    began = time.process_time()
    nested = '{"a":' * 500 + '{"license": "x"}' + "}" * 500
    assert uses(of_linked_data(nested)) == dict.fromkeys((TRAINING, INPUT, SEARCH), UNSAID)
    assert of_linked_data('{"license":' + "[" * 1_000_000) == ()
    wide = json.dumps({"a": [{"license": str(number)} for number in range(20_000)]})
    assert len(of_linked_data(wide)) == 3 * 100
    line = "User-agent: *\nContent-Usage: /" + "*a" * 5_000_000 + " train-ai=n"
    assert robots(line, "/" + "a" * 1000) == ()
    signal = "User-agent: *\nContent-Signal: " + "ai-train=no, " * 1000
    (found,) = robots(signal)
    assert (found.verdict, len(found.statement)) == (REFUSED, 500)
    wild = "User-agent: *\n" + "".join(
        f"Content-Usage: /*{'a*' * 20}{number} train-ai=n\n" for number in range(5000)
    )
    many = RobotsStatements(wild.encode(), "", ROBOTS, ())
    assert uses(many.statements("/" + "a" * 4000)) == {TRAINING: REFUSED}
    assert of_link_header("<" * 100_000 + "<a>;rel=" + " " * 100_000 + '"' * 100_000) == ()
    assert time.process_time() - began < 30  # minutes, were one of them not bounded
