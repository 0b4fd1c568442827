"""A page gets the parser of its type; a parser that fails leaves it to the next."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from minutch.cycle.parse.dispatch import (
    MOST_TYPES,
    UNSUCCESSFUL,
    ParserFactory,
    ParserNotFound,
    ParseTimeout,
    ParseUtil,
    claims,
    read_parse_plugins,
    run_parsers,
)
from minutch.errors import ConfigError, ParseError
from minutch.plugin.points import Parse, Parser, ParseResult
from minutch.records.parsedata import FAILED, SUCCESS, ParseData, ParseStatus
from minutch.records.protocol import Content
from tests.support.examples import tabled
from tests.support.pages import URL, configuration, content

PLUGINS = """<parse-plugins>
<mimeType name="a/b"><plugin id="one"/><plugin id="two" order="1"/><plugin id="x.Three"/></mimeType>
<mimeType name="c/d"/>
<aliases><alias name="one" extension-id="x.One"/></aliases></parse-plugins>"""


def names(plugins: str, content_type: str) -> list[str]:
    return [
        type(parser).__name__
        for parser in ParserFactory(configuration(plugins)).parsers(content_type)
    ]


@tabled(
    ("plugins", "content_type", "expected"),
    [
        ("parse-(html|tika)", "text/html; charset=x", ["HtmlParser"]),
        ("parse-tika", "text/html", ["TikaParser"]),
        ("parse-(html|tika)", "image/png", ["TikaParser"]),
        ("parse-(text|tika)", "text/plain", ["TikaParser", "TextParser"]),
        ("parse-(html|text)", "text/plain", ["TextParser"]),
        ("parse-tika|feed", "application/rss+xml", ["TikaParser", "FeedParser"]),
        ("feed", "application/rss+xml", ["FeedParser"]),
        ("parse-(js|html)", "application/x-javascript", ["JSParser"]),
    ],
)
def test_parsers_of_a_type(plugins: str, content_type: str, expected: list[str]) -> None:
    assert names(plugins, content_type) == expected


@pytest.mark.parametrize("content_type", ["text/plain", "image/png", ""])
def test_no_parser(content_type: str) -> None:
    with pytest.raises(ParserNotFound):
        names("parse-html", content_type)


def test_types_that_servers_make_up_are_not_kept_for_ever() -> None:
    factory = ParserFactory(configuration("parse-(html|tika)"))
    for number in range(MOST_TYPES + 10):
        factory.parsers(f"application/x-{number}")
    assert len(factory._found) == 10


def test_the_file() -> None:
    plugins = read_parse_plugins(PLUGINS, "p.xml")
    assert plugins.by_type == {"a/b": ["two", "x.One", "x.Three"]}
    with pytest.raises(ConfigError, match=r"p\.xml"):
        read_parse_plugins("<parse-plugins>", "p.xml")


@pytest.mark.parametrize(
    ("pattern", "name", "expected"),
    [
        ("text/html|application/xhtml+xml", "application/xhtml+xml", True),
        ("text/html", "text/html2", False),
        ("*", "any/thing", True),
        ("(?:application/(?:x-)?|text/)javascript", "text/javascript", True),
    ],
)
def test_claims(pattern: str, name: str, expected: bool) -> None:
    assert claims({"contentType": pattern}, name) == expected
    assert not claims({}, name)


class Fixed(Parser):
    """A parser that always gives, or raises, the same."""

    def __init__(self, outcome: ParseResult | BaseException) -> None:
        self.outcome = outcome

    def get_parse(self, content: Content) -> ParseResult:
        if isinstance(self.outcome, BaseException):
            raise self.outcome
        return self.outcome


def outcome(status: ParseStatus) -> ParseResult:
    return ParseResult.of(URL, Parse("", ParseData(status)))


GOOD = outcome(ParseStatus(SUCCESS))
BAD = outcome(ParseStatus(FAILED, 0, ["bad"]))


@tabled(
    ("outcomes", "major", "message"),
    [
        ([GOOD, BAD], SUCCESS, None),
        ([BAD, GOOD], SUCCESS, None),
        ([ParseError("no"), GOOD], SUCCESS, None),
        ([BAD], FAILED, "bad"),
        ([ParseError("broken page")], FAILED, "broken page"),
        ([ValueError("a bug")], FAILED, "ValueError: a bug"),
        ([MemoryError()], FAILED, "out of memory"),
        ([ParseResult(URL)], FAILED, UNSUCCESSFUL),
    ],
)
def test_one_after_the_other(
    outcomes: Sequence[ParseResult | BaseException], major: int, message: str | None
) -> None:
    status = run_parsers([Fixed(one) for one in outcomes], content("x"))[URL].data.status
    assert (status.major, status.message) == (major, message)


def test_the_alarm_passes_through() -> None:
    with pytest.raises(ParseTimeout):
        run_parsers([Fixed(ParseTimeout()), Fixed(GOOD)], content("x"))


@pytest.mark.parametrize(
    ("plugins", "name", "value"),
    [
        ("parse-tika", "tika.extractor", "goose"),
        ("parse-html|parsefilter-naivebayes", "parsefilter.naivebayes.trainfile", "none"),
    ],
)
def test_settings_that_can_not_be_are_errors_before_the_first_page(
    plugins: str, name: str, value: str
) -> None:
    with pytest.raises(ConfigError, match=name):
        ParseUtil(configuration(plugins, **{name: value}))
