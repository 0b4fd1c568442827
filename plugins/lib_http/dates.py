"""Reads and writes HTTP dates as Nutch does (org.apache.nutch.net.protocols.HttpDateFormat)."""

from __future__ import annotations

import calendar
import re
from datetime import UTC, date, datetime
from functools import lru_cache
from typing import Final

from minutch.clock import http_time

_DAYS: Final = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
_MONTHS: Final = (
    "Jan",
    "Feb",
    "Mar",
    "Apr",
    "May",
    "Jun",
    "Jul",
    "Aug",
    "Sep",
    "Oct",
    "Nov",
    "Dec",
)
_PATTERN: Final = re.compile(
    r"([A-Z][a-z]{2}), ([0-9]{1,2}) ([A-Z][a-z]{2}) ([0-9]{4}) ([0-9]{2}):([0-9]{2}):([0-9]{2})"
    r" ([A-Z]{1,4})"
    r"(?:([+-])([0-9]{1,2})(?::?([0-9]{2}))?)?"
)
_OBSOLETE: Final = re.compile(
    r"[A-Z][a-z]{5,8}, [0-9]{2}-[A-Z][a-z]{2}-[0-9]{2} "  # RFC 850
    r"|[A-Z][a-z]{2} [A-Z][a-z]{2} [ 0-9][0-9] "  # asctime
)
_ZONES: Final = {
    "GMT": 0,
    "UTC": 0,
    "UT": 0,
    "Z": 0,
    "EST": -5,
    "EDT": -4,
    "CST": -6,
    "CDT": -5,
    "MST": -7,
    "MDT": -6,
    "PST": -8,
    "PDT": -7,
}
"""Hours from UTC."""


def format_date(milliseconds: int) -> str:
    """Formats a time such as `Sun, 06 Nov 1994 08:49:37 GMT`."""
    when = datetime.fromtimestamp(milliseconds // 1000, UTC)
    return (
        f"{_DAYS[when.weekday()]}, {when.day:02} {_MONTHS[when.month - 1]} {when.year:04} "
        f"{when.hour:02}:{when.minute:02}:{when.second:02} GMT"
    )


@lru_cache(maxsize=1024)
def parse_date(text: str) -> int | None:
    """ms since the epoch, None if `text` is not a date of that form (a wrong day of the week
    included), nor of one of the two that servers may still send (RFC 9110, 5.6.7; Nutch reads none
    of them).
    """
    text = text.strip()
    if _OBSOLETE.match(text) is not None:
        return http_time(text)
    match = _PATTERN.fullmatch(text)
    if match is None or match[1] not in _DAYS or match[3] not in _MONTHS or match[8] not in _ZONES:
        return None
    year, month = int(match[4]), _MONTHS.index(match[3]) + 1
    hour, minute, second = int(match[5]), int(match[6]), int(match[7])
    day = int(match[2])
    if not (1 <= day <= 31 and year and hour < 24 and minute < 60 and second < 60):
        return None
    when = date(year, month, min(day, calendar.monthrange(year, month)[1]))
    if when.weekday() != _DAYS.index(match[1]):
        return None
    seconds = calendar.timegm((when.year, when.month, when.day, hour, minute, second)) - _offset(
        match
    )
    return seconds * 1000


def _offset(match: re.Match[str]) -> int:
    """Seconds east of UTC."""
    seconds = _ZONES[match[8]] * 3600
    if match[9]:
        own = int(match[10]) * 3600 + int(match[11] or 0) * 60
        seconds += own if match[9] == "+" else -own
    return seconds
