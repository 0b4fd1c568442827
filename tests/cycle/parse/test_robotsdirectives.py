"""Directives that depend on the time: unavailable_after of headers and elements."""

from __future__ import annotations

import time
from datetime import UTC, datetime

import pytest

from minutch.clock import FakeClock
from minutch.cycle.parse.robotsdirectives import Directives, forbids_index, words_for
from minutch.records.metadata import CACHING_FORBIDDEN_KEY
from tests.support.pages import URL, configuration, content, parse, parse_all

EXPIRY = "2030-06-25T23:00:00+00:00"


@pytest.mark.parametrize(
    "date",
    [
        "25 Jun 2030 15:00:00 PST",
        "Tue, 25 Jun 2030 15:00:00 PST",
        "tuesday, 25-jun-30 15:00:00 pst",
        "Tue, 25 Jun 2030 23:00:00 GMT, noarchive",
        "26 Jun 2030 01:00:00 +0200; noarchive",
        "25 Jun 2030 23:00",
        "2030-06-25T23:00:00Z",
        "2030-06-25T23:00:00",
        "2030-06-26T01:00:00+02:00",
        "20300625T230000Z",
    ],
)
@pytest.mark.parametrize("where", ["header", "robots", "ours"])
def test_pages_that_are_for_the_index_up_to_a_time(date: str, where: str) -> None:
    """developers.google.com, "Robots meta tag … specifications": unavailable_after takes the date
    formats of RFC 822, RFC 850 and ISO 8601. What says so is left for the index job.
    """
    end = int(datetime.fromisoformat(EXPIRY).timestamp() * 1000)
    directive = f"unavailable_after: {date}"
    meta = "" if where == "header" else f'<meta name={where} content="{directive}">'
    page = content(f"<head>{meta}<title>T</title></head><body>text")
    if where == "header":
        page.metadata["x-robots-tag"] = [directive]
    for now, is_there in ((end - 1, True), (end, False)):
        conf = configuration(http_agent_name="Ours")
        conf.clock = FakeClock(now)
        parsed = parse_all(page, conf)[URL]
        assert (bool(parsed.text), bool(parsed.data.title)) == (is_there, is_there)
        noted = parsed.data.parse_meta["robots"]
        assert ("noindex" in noted) == (not is_there and where != "robots")
        if is_there:
            assert [forbids_index(noted[0], frozenset(), at) for at in (end - 1, end)] == [
                False,
                True,
            ]


@pytest.mark.parametrize(
    "date", ["", "soon", "25", "31 Jun 2010", "2010-13-01", "99 Jan 2010 25:00:00", "otherbot: 1"]
)
def test_a_date_that_cannot_be_read_forbids_nothing(date: str) -> None:
    page = f'<meta name=robots content="unavailable_after: {date}, noarchive"><title>T</title>text'
    parsed = parse(page, configuration())
    assert (parsed.text, parsed.data.title) == ("T text", "T")
    assert parsed.data.parse_meta.get(CACHING_FORBIDDEN_KEY) == "content"


def test_of_many_dates_the_next_one_counts() -> None:
    """A page may say as many as it likes: no more than one is kept of them, and in linear time."""
    dates = [f"unavailable_after: {year}-01-01" for year in range(2000, 9999)] * 5
    words = words_for(", ".join([*dates, f"unavailable_after: {'1' * 999_999}"]), frozenset())
    found = Directives.of(words, int(datetime(1999, 1, 1, tzinfo=UTC).timestamp() * 1000))
    assert found.noted == ["unavailable_after: 2000-01-01"]


@pytest.mark.parametrize(
    ("date", "end"),
    [("25 Jun 2030", "2030-06-25T00:00:00+00:00"), ("2030-06-25", "2030-06-25T00:00:00+00:00")],
)
def test_a_day_is_over_from_its_beginning_wherever_the_machine_is(
    date: str, end: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    at = int(datetime.fromisoformat(end).timestamp() * 1000)
    with monkeypatch.context() as patch:
        patch.setenv("TZ", "XYZ-9")
        time.tzset()
        found = [
            forbids_index(f"unavailable_after: {date}", frozenset(), now) for now in (at - 1, at)
        ]
    time.tzset()
    assert found == [False, True]
