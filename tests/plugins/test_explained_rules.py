"""The very rule by which each URL filter lets a URL pass or not: file, line, text."""

from __future__ import annotations

from pathlib import Path

import pytest

from minutch.conf import Configuration
from minutch.inspect.explain.settings import filter_answers
from minutch.plugin.chains import URLFilters

REGEX = "# comment\n-[.]gif$\n> example.org\n-secret\n<\n+^http://\n"
FAST = (
    "Host a.example\n  DenyPath ^/private/\nDomain .\n  DenyPathQuery session=\nHost b.example\n "
    " DenyPath .*\n"
)


@pytest.mark.parametrize(
    ("plugin", "file", "rules", "url", "passed", "rule"),
    [
        ("regex", "regex-urlfilter.txt", REGEX, "http://a/x.gif", False, ":2: -[.]gif$"),
        (
            "regex",
            "regex-urlfilter.txt",
            REGEX,
            "http://www.example.org/secret",
            False,
            ":4: -secret",
        ),
        ("regex", "regex-urlfilter.txt", REGEX, "http://a/secret", True, ":6: +^http://"),
        ("regex", "regex-urlfilter.txt", REGEX, "ftp://a/", False, ": no rule takes it"),
        (
            "automaton",
            "automaton-urlfilter.txt",
            "-.*gif\n+.*\n",
            "http://a/x.gif",
            False,
            ":1: -.*gif",
        ),
        (
            "prefix",
            "prefix-urlfilter.txt",
            "# x\nhttp://a/\nhttp://b/\n",
            "http://b/1",
            True,
            ":3: http://b/",
        ),
        ("prefix", "prefix-urlfilter.txt", "http://a/\n", "http://b/1", False, ": no prefix fits"),
        (
            "suffix",
            "suffix-urlfilter.txt",
            "+P\n\n.gif\n.PNG\n",
            "http://a/x.gif?y",
            False,
            ":3: rejects .gif",
        ),
        (
            "suffix",
            "suffix-urlfilter.txt",
            "+I\n.gif\n.PNG\n",
            "http://a/x.png",
            False,
            ":3: rejects .png",
        ),
        (
            "suffix",
            "suffix-urlfilter.txt",
            "+\n.gif\n",
            "http://a/x",
            True,
            ": none of the suffixes that it rejects",
        ),
        (
            "suffix",
            "suffix-urlfilter.txt",
            "-\n.html\n",
            "http://a/x.html",
            True,
            ":2: takes .html",
        ),
        (
            "domain",
            "domain-urlfilter.txt",
            "# x\nexample.org\n",
            "http://www.example.org/",
            True,
            ":2: example.org",
        ),
        ("domain", "domain-urlfilter.txt", "example.org\n", "http://a.de/", False, ": not listed"),
        ("domain", "domain-urlfilter.txt", "", "http://a.de/", True, ": no names, all pass"),
        (
            "domaindenylist",
            "domaindenylist-urlfilter.txt",
            "a.de\n",
            "http://www.a.de/",
            False,
            ":1: a.de",
        ),
        (
            "domaindenylist",
            "domaindenylist-urlfilter.txt",
            "a.de\n",
            "http://b.de/",
            True,
            ": not listed",
        ),
        (
            "fast",
            "fast-urlfilter.txt",
            FAST,
            "http://a.example/private/x",
            False,
            ":2: DenyPath ^/private/",
        ),
        (
            "fast",
            "fast-urlfilter.txt",
            FAST,
            "http://c.example/?session=1",
            False,
            ":4: DenyPathQuery session=",
        ),
        ("fast", "fast-urlfilter.txt", FAST, "http://b.example/", False, ":6: DenyPath .*"),
        ("fast", "fast-urlfilter.txt", FAST, "http://c.example/", True, ": no rule denies it"),
    ],
)
def test_the_rule(
    tmp_path: Path, plugin: str, file: str, rules: str, url: str, passed: bool, rule: str
) -> None:
    (tmp_path / file).write_text(rules)
    conf = Configuration.load(
        [tmp_path], overrides={"plugin.includes": f"urlfilter-{plugin}"}
    ).freeze()
    (found,) = filter_answers(URLFilters(conf), url)
    assert (found.passed, found.rule) == (passed, f"{tmp_path / file}{rule}")


@pytest.mark.parametrize(
    ("url", "rule"),
    [
        ("http://www.example.org/ü", "characters outside of visible ASCII"),
        ("h2tp://www.example.org/", "no scheme of letters alone"),
        ("http://nodots/", "no valid host (two labels or more, no user), address or port"),
        ("http://www.example.org/../x", "not a valid path"),
        ("http://www.example.org/x", ""),
    ],
)
def test_the_validator(url: str, rule: str) -> None:
    conf = Configuration.load([], overrides={"plugin.includes": "urlfilter-validator"}).freeze()
    (found,) = filter_answers(URLFilters(conf), url)
    assert (found.passed, found.rule) == (not rule, rule)


@pytest.mark.parametrize(
    ("length", "url", "rule"),
    [
        ("url.max.length", "http://a.example/xxxx", "longer than urlfilter.fast.url.max.length"),
        (
            "url.path.max.length",
            "http://a/" + "x" * 20,
            "a path longer than urlfilter.fast.url.path.max.length",
        ),
        (
            "url.query.max.length",
            "http://a/?" + "x" * 20,
            "a query longer than urlfilter.fast.url.query.max.length",
        ),
    ],
)
def test_lengths(length: str, url: str, rule: str) -> None:
    settings = {"plugin.includes": "urlfilter-fast", f"urlfilter.fast.{length}": "15"}
    (found,) = filter_answers(URLFilters(Configuration.load([], overrides=settings).freeze()), url)
    assert (found.passed, found.rule) == (False, rule)


def test_filters_are_asked_up_to_the_one_that_rejects() -> None:
    settings = {
        "plugin.includes": "urlfilter-(prefix|suffix|validator)",
        "urlfilter.prefix.rules": "http://\n",
        "urlfilter.suffix.rules": "+\n.gif\n",
        "urlfilter.order": (
            "org.apache.nutch.urlfilter.prefix.PrefixURLFilter "
            "org.apache.nutch.urlfilter.suffix.SuffixURLFilter"
        ),
    }
    found = filter_answers(
        URLFilters(Configuration.load([], overrides=settings).freeze()),
        "http://www.example.org/x.gif",
    )
    assert [(each.filter, each.passed) for each in found] == [
        ("PrefixURLFilter", True),
        ("SuffixURLFilter", False),
    ]
    assert found[0].rule == "urlfilter.prefix.rules (command line):1: http://"
