"""The adapter for reppy, judged by the same cases as our parser; what it gets wrong is listed."""

from __future__ import annotations

from collections import Counter

import pytest

from minutch.conf import Configuration
from minutch.urls.robots import RobotsParser, reppy_parser, robots_parser
from tests.urls.robotscases import GOOGLE, GOOGLE_SPEC, HOST, RFC_9309, Case

pytest.importorskip("reppy.robots", reason="the extra `reppy` is not installed")

NAMES = "names count as they stand, versions and all"
GROUPS = "groups end at other lines, and rules outside of any count"
ENCODING = "reserved characters are decoded before comparing, also `*` and `$`"
RFC_FAILURES = {
    "2.2.1 a version behind the name": NAMES,
    "2.2.1 a group without rules counts": GROUPS,
    "2.2.1 no group at all": GROUPS,
    "2.2.1 other lines end no group": GROUPS,
    "2.2.2 allow wins a tie": "the rule that comes first wins",
    "2.2.2 a reserved character is not its encoding": ENCODING,
    "2.2.3 and nothing else": ENCODING,
    "2.2.3 an encoded dollar": ENCODING,
    "2.2.3 a dollar in the middle": ENCODING,
    "2.2.3 a star before the end": "`*$` matches nothing more",
    "2.2 carriage returns": "a carriage return alone ends no line",
}
GOOGLE_FAILURES = {
    "ID_LineSyntax_Line": 1,
    "ID_LineSyntax_Groups": 1,
    "ID_LineSyntax_Groups_OtherRules": 2,
    "ID_UserAgentValueCaseInsensitive": 6,
    "GoogleOnly_AcceptUserAgentUpToFirstSpace": 2,
    "ID_LongestMatch": 2,
    "ID_Encoding": 3,
    "GoogleOnly_IndexHTMLisDirectory": 1,
    "GoogleOnly_DocumentationChecks": 1,
    "long lines": 3,
}
SPEC_FAILURES = {
    "BOM-characters": 1,
    "accepted-mistakes": 1,
    "different-line-endings": 1,
    "groups": 1,
    "index-page": 1,
    "matching-path-values-2": 1,
    "most-specific-match": 2,
    "non-ascii-paths": 3,
    "user-agent-name": 8,
    "327748": 1,
    "369883": 5,
    "701159": 1,
    "860237": 1,
}
"""How many assertions of each case fail: the same weaknesses, and robots.txt itself (see
test_robots.py).
"""


def parser(agent: str) -> RobotsParser:
    return reppy_parser([agent.lower()])


def failures(cases: list[Case], host: str = "") -> list[str]:
    return [
        name
        for name, body, agent, url, allowed in cases
        if parser(agent)(body, "text/plain", "http://example.org/robots.txt").is_allowed(host + url)
        is not allowed
    ]


def test_rfc_9309() -> None:
    assert set(failures(RFC_9309, HOST)) == RFC_FAILURES.keys()


def test_googles_cases() -> None:
    assert Counter(failures(GOOGLE)) == GOOGLE_FAILURES
    assert Counter(failures(GOOGLE_SPEC)) == SPEC_FAILURES


def test_the_rest_of_the_record() -> None:
    rules = parser("b")(
        b"User-agent: a\nDisallow: /\n\nUser-agent: *\nCrawl-delay: 2.5\nDisallow: /x\nSitemap:"
        b" /s\n",
        "",
        "http://h/robots.txt",
    )
    assert rules.crawl_delay == 2500
    assert rules.sitemaps == ("http://h/s",)
    assert not rules.is_allowed("http://h/x")
    assert rules.is_allowed("http://h/y")


def test_the_first_name_that_the_file_has() -> None:
    conf = Configuration().with_values(
        {"http.agent.name": "a", "http.robots.agents": "b", "http.robots.parser": "reppy"}
    )
    rules = robots_parser(conf)(
        b"User-agent: b\nDisallow: /b\n\nUser-agent: *\nDisallow: /\n", "", "http://h/robots.txt"
    )
    assert rules.is_allowed("http://h/x")
    assert not rules.is_allowed("http://h/b")


def test_html_allows_everything() -> None:
    assert parser("a")(b"<html></html>", "text/html").allow_all
