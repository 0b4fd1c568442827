"""Writes dates and time spans in words. Pure: no I/O"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Final

from minutch.terminal import counted

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_UNITS: Final = ((86_400, "day"), (3600, "hour"), (60, "minute"), (1, "second"))
_MOST_UNITS: Final = 2


def iso(ms: int) -> str:
    """Returns ISO 8601 in UTC, to the millisecond; beyond the year 9999 the number of ms."""
    try:
        return (
            (_EPOCH + timedelta(milliseconds=ms))
            .isoformat(timespec="milliseconds")
            .replace("+00:00", "Z")
        )
    except OverflowError:
        return str(ms)


def date(ms: int) -> str:
    """Returns a date such as `2026-11-22 18:59:32 UTC`."""
    return (
        f"{iso(ms)[:19].replace('T', ' ')} UTC" if iso(ms).endswith("Z") else f"{ms} ms after 1970"
    )


def interval(seconds: float) -> str:
    """Returns `30 days`, `1 day 12 hours`, `90 seconds`: at most two units."""
    left, words = round(abs(seconds)), []
    for size, name in _UNITS:
        count, left = divmod(left, size)
        if count:
            words.append(counted(count, f"{name}s"))
        if len(words) == _MOST_UNITS:
            break
    return " ".join(words) or "0 seconds"


def seen_from(ms: int, now: int) -> str:
    """Returns the date and its distance from now: `2026-12-22 18:59:32 UTC, in 30 days`."""
    far = interval((ms - now) / 1000)
    return f"{date(ms)}, in {far}" if ms > now else f"{date(ms)}, {far} ago"
