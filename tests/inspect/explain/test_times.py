"""Dates and stretches of time in words."""

import pytest

from minutch.inspect.explain.facts import date, interval, iso, seen_from
from tests.support.crawldbs import DAY, NOW
from tests.support.examples import tabled


@tabled(
    ("seconds", "words"),
    [
        (0, "0 seconds"),
        (1, "1 second"),
        (90, "1 minute 30 seconds"),
        (3_600, "1 hour"),
        (86_400 + 7_300, "1 day 2 hours"),
        (2_592_000, "30 days"),
        (-60, "1 minute"),
        (0.4, "0 seconds"),
        (86_400_000, "1,000 days"),
    ],
)
def test_intervals(seconds: float, words: str) -> None:
    assert interval(seconds) == words


def test_dates() -> None:
    assert iso(NOW) == "2027-01-15T08:00:00.000Z"
    assert date(NOW) == "2027-01-15 08:00:00 UTC"
    assert seen_from(NOW + DAY, NOW) == "2027-01-16 08:00:00 UTC, in 1 day"
    assert seen_from(NOW - DAY, NOW) == "2027-01-14 08:00:00 UTC, 1 day ago"
    assert seen_from(NOW, NOW) == "2027-01-15 08:00:00 UTC, 0 seconds ago"


@pytest.mark.parametrize("ms", [1 << 62, -(1 << 62)])
def test_dates_that_no_calendar_has(ms: int) -> None:
    assert str(ms) in seen_from(ms, NOW)
