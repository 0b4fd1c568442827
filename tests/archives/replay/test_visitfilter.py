"""Filters of visits: hosts, types, statuses, times."""

from __future__ import annotations

import pytest

from minutch.archives.replay.replayer import VisitFilter
from minutch.errors import UsageError
from minutch.warc.reading.visits import ArchivedResponse, Visit, VisitKind
from tests.support.commands import parsed
from tests.support.examples import tabled

TIME = 1_341_826_131_693  # 2012-07-09T09:28:51.693Z


def wanted(*words: str) -> VisitFilter:
    return parsed("import warc", "file", "segments", *words).made(VisitFilter)


@tabled(
    ("words", "found"),
    [
        ((), True),
        (("-host", "www.h.example"), True),
        (("-host", "WWW.H.example"), True),
        (("-host", "h.example"), False),
        (("-host", "*.h.example"), True),
        (("-host", "*.example", "-host", "x"), True),
        (("-host", "*.ww.h.example"), False),
        (("-from", "2012", "-to", "2012"), True),
        (("-from", "2012-07", "-to", "2012-07"), True),
        (("-from", "2012-07-09T09:28:51Z", "-to", "20120709092851"), True),
        (("-to", "2012-07-09 09:28:50"), False),
        (("-from", "20120709092852"), False),
        (("-to", "201206"), False),
        (("-from", "2012-08"), False),
        (("-to", "2012-12"), True),
        (("-to", "1970"), False),
    ],
)
def test_places(words: tuple[str, ...], found: bool) -> None:
    assert wanted(*words).matches_target("http://www.h.example:8080/", TIME) is found


@tabled(
    ("words", "found"),
    [
        (("-status", "200"), True),
        (("-status", "2XX"), True),
        (("-status", "404", "-status", "20x"), True),
        (("-status", "3xx"), False),
        (("-mime", "text/html"), True),
        (("-mime", "TEXT/*"), True),
        (("-mime", "text"), False),
        (("-mime", "text/htm"), False),
        (("-mime", "image/*", "-status", "200"), False),
    ],
)
def test_results(words: tuple[str, ...], found: bool) -> None:
    head = [b"HTTP/1.1 200 OK", b"content-TYPE:  Text/HTML ; charset=x"]
    visit = Visit("http://h/", TIME, VisitKind.ANSWER, ArchivedResponse(200, head, b""), b"")
    assert wanted(*words).matches(visit) is found


@pytest.mark.parametrize(
    "words", [("-from", "x"), ("-from", "201"), ("-to", "2012-13"), ("-from", "20121")]
)
def test_times_that_are_none(words: tuple[str, ...]) -> None:
    with pytest.raises(UsageError):
        wanted(*words)


@pytest.mark.parametrize("text", ["20", "2000", "abc"])
def test_statuses_that_are_none(text: str) -> None:
    with pytest.raises(UsageError, match="-status"):
        wanted("-status", text)
