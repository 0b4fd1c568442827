"""What robots.txt and a busy server ask for, turned into decisions. Pure: no I/O, times are arguments.

Matches the part of org.apache.nutch.fetcher.FetcherThread.run between getting the rules and the request, except that
rules which could not be had because the host failed (`rules.unreachable`, RFC 9309 2.3.1.4) let no request through.
`Retry-After` (RFC 9110 10.2.3) is minutch's own: Nutch pays it no attention.
"""

from __future__ import annotations

from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from enum import Enum, auto
from typing import Final

from minutch.fetch.settings import RobotsSettings

_MAX_DIGITS: Final = 12


class Verdict(Enum):
    """What to do with one URL."""

    FETCH = auto()
    DENIED = auto()
    DELAY_TOO_LONG = auto()
    DEFER = auto()
    UNREACHABLE = auto()


@dataclass(frozen=True, slots=True)
class Decision:
    """A verdict and, if robots.txt names one, the delay in ms: the queue takes it over, or it is too long."""

    verdict: Verdict
    crawl_delay: int | None = None


_FETCH: Final = Decision(Verdict.FETCH)


def decide(allowed: bool, crawl_delay: float, *, defer: bool, unreachable: bool, settings: RobotsSettings) -> Decision:
    """The verdict on one URL. `crawl_delay` in ms, not positive if robots.txt names none."""
    if defer:
        return Decision(Verdict.DEFER)
    if unreachable:
        return Decision(Verdict.UNREACHABLE)
    if not allowed:
        return Decision(Verdict.DENIED)
    if crawl_delay <= 0:
        return _FETCH
    if 0 <= settings.max_crawl_delay < crawl_delay:
        return Decision(Verdict.DELAY_TOO_LONG, int(crawl_delay))
    return Decision(Verdict.FETCH, max(int(crawl_delay), settings.min_crawl_delay))


def retry_after(value: str | None, now: int, longest: int) -> int | None:
    """When to come back, in ms since the epoch, by a Retry-After header: seconds or a date; None for nonsense.

    More than `longest` ms are taken as `longest`; with 0 the header counts for nothing.
    """
    if value is None or longest <= 0:
        return None
    text = value.strip()
    if text.isascii() and text.isdigit():
        wait = int(text) * 1000 if len(text) <= _MAX_DIGITS else longest
    else:
        try:
            date = parsedate_to_datetime(text)
            wait = round(date.timestamp() * 1000) - now
        except (ValueError, TypeError, OverflowError, OSError, IndexError):
            return None
    return now + min(wait, longest) if wait > 0 else None
