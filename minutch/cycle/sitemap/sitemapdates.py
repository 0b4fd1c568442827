"""The dates of sitemaps: W3C's profile of ISO 8601, with what many write for it: blanks around it,
or in place of the T, and no zone, which make no date to crawler-commons.

Source: AbstractSiteMap.convertToZonedDateTime of crawler-commons 1.6.
"""

from __future__ import annotations

import re
from calendar import monthrange
from datetime import UTC, datetime, timedelta, timezone
from typing import Final

_DATE: Final = re.compile(r"([0-9]{4})(?:-([0-9]{2})(?:-([0-9]{2}))?)?")
_TIME: Final = re.compile(
    r"([0-9]{4}-[0-9]{2}-[0-9]{2})[T ]([0-9]{2}:[0-9]{2})(?::([0-9]{2})(?:\.([0-9]{1,9}))?)?"
    r" ?(Z|[+-][0-9]{2}(?::?[0-9]{2}(?::?[0-9]{2})?)?)?",
    re.IGNORECASE,
)
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


def iso_date(text: str | None) -> int | None:
    """Milliseconds of a `lastmod` or `updated`; None for anything else than a date. No time is
    midnight, no zone is UTC.
    """
    if text is None:
        return None
    text = text.strip()
    match = _TIME.fullmatch(text)
    try:
        if match is not None:
            day, minutes, seconds, fraction, zone = match.groups()
            time = datetime.fromisoformat(f"{day}T{minutes}:{seconds or '00'}")
            ms = int((fraction or "0").ljust(3, "0")[:3])
            return _ms(time, _zone(zone)) + ms
        match = _DATE.fullmatch(text)
        if match is None:
            return None
        year, month = int(match[1]), int(match[2] or 1)
        return _ms(datetime(year, month, _day(year, month, int(match[3] or 1))), UTC)
    except (ValueError, OverflowError):
        return None


def _day(year: int, month: int, day: int) -> int:
    """Limits a day up to 31 to the last one of its month."""
    return min(day, monthrange(year, month)[1]) if 1 <= day <= 31 else day


def _zone(text: str | None) -> timezone:
    if text is None or text in "Zz":
        return UTC
    digits = text[1:].replace(":", "").ljust(6, "0")
    hours, minutes, seconds = int(digits[:2]), int(digits[2:4]), int(digits[4:])
    if hours > 18 or minutes > 59 or seconds > 59:
        raise ValueError(text)
    offset = timedelta(hours=hours, minutes=minutes, seconds=seconds)
    return timezone(-offset if text[0] == "-" else offset)


def _ms(time: datetime, zone: timezone) -> int:
    return (time.replace(tzinfo=zone) - _EPOCH) // timedelta(milliseconds=1)
