"""The URLs that sitemaps list, and what is said of them. Pure: no I/O.

Dates are those of W3C's profile of ISO 8601, with what many write for it: blanks around it, or in
place of the T, and no zone, which make no date to crawler-commons.

Source: SiteMap, SiteMapURL, SiteMapIndex and AbstractSiteMap.convertToZonedDateTime of
crawler-commons 1.6; the WHATWG URL standard.
"""

from __future__ import annotations

import re
from calendar import monthrange
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta, timezone
from typing import Final

from minutch.errors import UrlError
from minutch.urls import parts
from minutch.urls.resolve import Resolver, WhatwgResolver
from minutch.urls.uri import parse_uri
from minutch.urls.urlkeys import url_key

_DATE: Final = re.compile(r"([0-9]{4})(?:-([0-9]{2})(?:-([0-9]{2}))?)?")
_TIME: Final = re.compile(
    r"([0-9]{4}-[0-9]{2}-[0-9]{2})[T ]([0-9]{2}:[0-9]{2})(?::([0-9]{2})(?:\.([0-9]{1,9}))?)?"
    r" ?(Z|[+-][0-9]{2}(?::?[0-9]{2}(?::?[0-9]{2})?)?)?",
    re.IGNORECASE,
)
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
DEFAULT_PRIORITY: Final = 0.5
FREQUENCIES: Final = {
    "ALWAYS": 1, "HOURLY": 3600, "DAILY": 86400, "WEEKLY": 604800, "MONTHLY": 2592000,
    "YEARLY": 31536000, "NEVER": 0x7FFF_FFFF,
}  # fmt: skip
"""Seconds between two fetches, by the names of `changefreq`, found anywhere in its text."""

_PLAIN_URL: Final = re.compile(
    r"https?://[A-Za-z0-9](?:[A-Za-z0-9.-]*[A-Za-z0-9])?(?::[0-9]{1,5})?/[A-Za-z0-9/._~?=&;,:+!()'@*$-]*"
)
_FILE: Final = "file:"
SCHEMES: Final = ("http://", "https://", "ftp://", f"{_FILE}/")
_BROWSERS: Final = WhatwgResolver("")
_WITH_HOST: Final = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:|[/\\][\t\n\r]*[/\\]")
"""How a URL begins that is one with a scheme, or with the host of one, to browsers."""
_NUMBER: Final = re.compile(
    r"[+-]?(?:NaN|Infinity|(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?)[dDfF]?"
)


def iso_date(text: str | None) -> int | None:
    """Returns a `lastmod` or `updated` in ms; None for anything but a date. A missing time is
    midnight, a missing zone UTC.
    """
    if text is None:
        return None
    text = text.strip()
    match = _TIME.fullmatch(text)
    try:
        if match is not None:
            day, minutes, seconds, fraction, zone = match.groups()
            time = datetime.fromisoformat(f"{day}T{minutes}:{seconds or '00'}")
            # Cut off as Instant.toEpochMilli does, not rounded.
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
    # java.time.format.ResolverStyle.SMART, for dates without a time.
    return min(day, monthrange(year, month)[1]) if 1 <= day <= 31 else day


def _zone(text: str | None) -> timezone:
    if text is None or text in "Zz":
        return UTC
    digits = text[1:].replace(":", "").ljust(6, "0")
    hours, minutes, seconds = int(digits[:2]), int(digits[2:4]), int(digits[4:])
    # java.time.ZoneOffset: 18 hours at most.
    if hours > 18 or minutes > 59 or seconds > 59:
        raise ValueError(text)
    offset = timedelta(hours=hours, minutes=minutes, seconds=seconds)
    return timezone(-offset if text[0] == "-" else offset)


def _ms(time: datetime, zone: timezone) -> int:
    return (time.replace(tzinfo=zone) - _EPOCH) // timedelta(milliseconds=1)


@dataclass(frozen=True, slots=True)
class SitemapUrl:
    """A URL of a sitemap: `modified` in ms since the epoch, `interval` in seconds, or None."""

    url: str
    modified: int | None = None
    interval: int | None = None
    priority: float = DEFAULT_PRIORITY


class ListedUrls:
    """Decides which URLs a sitemap at `url` lists, and whether it may list them.

    With `whatwg` (`parser.html.outlinks.whatwg`) they are those of the URL standard, relative to
    the sitemap's; but each names a host, as sitemaps.org wants it: a line of prose is no URL.
    `strict` takes only those below the folder of the sitemap's own URL, however they are spelled
    (`urls.urlkeys`; crawler-commons compares letters): `http://host` is in the folder
    `http://host/`.
    """

    def __init__(self, url: str, *, strict: bool, whatwg: bool = False) -> None:
        """Raises UrlError if `url` is none."""
        self.url, self._strict = url, strict
        self._resolver = WhatwgResolver(url) if whatwg else None
        self._folder = base_of(url if self._resolver is None else self._resolver.resolve(url))

    def allows(self, url: str) -> bool:
        """Tells whether a URL may stand in the sitemap: a file of this machine in one of files."""
        # With protocol-file on, the web would have files of this machine crawled.
        if url.startswith(_FILE) and not self.url.startswith(_FILE):
            return False
        return (
            not self._strict
            or url.startswith(self._folder)
            or url_key(url).startswith(url_key(self._folder))
        )

    def read(self, text: str) -> str | None:
        """Returns `text` as a URL; None if it is not one."""
        if self._resolver is None:
            return checked_url(text)
        return _of_browsers(self._resolver, text) if _WITH_HOST.match(text) else None

    def joined(self, base: str, link: str) -> str:
        """Returns a link of a feed made absolute; empty if it can't be."""
        try:
            resolver = Resolver(base) if self._resolver is None else WhatwgResolver(base)
            return resolver.resolve(link)
        except UrlError:
            return ""


@dataclass(slots=True)
class Sitemap:
    """The URLs of a sitemap in its order."""

    listed: ListedUrls
    urls: list[SitemapUrl] = field(default_factory=list)
    left_out: int = 0
    """URLs that are none, or not below the folder."""
    damage: str = ""
    """What is wrong with the rest; empty if all was read."""

    def add(
        self,
        text: str,
        modified: int | None = None,
        frequency: str | None = None,
        priority: str = "",
    ) -> None:
        """Adds a URL with what is said of it, as texts; one that is not valid only counts."""
        url = self.listed.read(text)
        if url is None or not self.listed.allows(url):
            self.left_out += 1
        else:
            self.urls.append(
                SitemapUrl(url, modified, interval_of(frequency), priority_of(priority))
            )


@dataclass(slots=True)
class SitemapIndex:
    """The URLs of the sitemaps of an index, in its order."""

    urls: list[str] = field(default_factory=list)
    left_out: int = 0
    damage: str = ""


def base_of(url: str) -> str:
    """Returns the folder of a sitemap's URL: up to its path's last slash, without user, query."""
    parsed = parts.parse(url)
    port = "" if parsed.port == -1 else f":{parsed.port}"
    folder = parsed.path[: parsed.path.rfind("/") + 1] or "/"
    # SiteMap.setBaseUrl.
    return str(parts.parse(f"{parsed.protocol}://{parsed.host}{port}{folder}"))


def checked_url(text: str) -> str | None:
    """Returns the URL as java.net.URI and URL see it, or, where they refuse it, as browsers do: `/a
    b` is `/a%20b`; None if it is none, not absolute, or has no host.
    """
    # Nearly all are such, which both parsers print as they are.
    if _PLAIN_URL.fullmatch(text):
        return text
    try:
        url = parts.parse(text)
        if parse_uri(text).scheme:
            return str(url) if url.host or url.protocol == "file" else None
    except UrlError:
        pass
    return _of_browsers(_BROWSERS, text)


def _of_browsers(resolver: WhatwgResolver, text: str) -> str | None:
    try:
        url = resolver.resolve(text)
    except UrlError:
        return None
    return url if url.startswith(SCHEMES) else None


def interval_of(frequency: str | None) -> int | None:
    """Seconds between two fetches, by the text of a `changefreq`."""
    name = (frequency or "").upper()
    # SiteMapURL.setChangeFrequency asks for `contains`, in this order.
    return next((seconds for word, seconds in FREQUENCIES.items() if word in name), None)


def priority_of(text: str) -> float:
    """Returns the number of a `priority`; the default if there is none from 0 to 1."""
    number = text.strip()
    if not _NUMBER.fullmatch(number):
        return DEFAULT_PRIORITY
    # Double.parseDouble takes Java's suffixes.
    value = float(number.rstrip("dDfF").replace("Infinity", "inf"))
    return value if 0.0 <= value <= 1.0 else DEFAULT_PRIORITY
