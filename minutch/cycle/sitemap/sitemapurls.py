"""The URLs that sitemaps list, and what is said of them. Pure: no I/O.

Source: SiteMap, SiteMapURL and SiteMapIndex of crawler-commons 1.6; the WHATWG URL standard.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Final

from minutch.errors import UrlError
from minutch.urls import parts
from minutch.urls.resolve import WhatwgResolver
from minutch.urls.uri import parse_uri

DEFAULT_PRIORITY: Final = 0.5
FREQUENCIES: Final = {
    "ALWAYS": 1,
    "HOURLY": 3600,
    "DAILY": 86400,
    "WEEKLY": 604800,
    "MONTHLY": 2592000,
    "YEARLY": 31536000,
    "NEVER": 0x7FFF_FFFF,
}
"""Seconds between two fetches, by the names of `changefreq`, which may stand anywhere in its
text.
"""

_PLAIN_URL: Final = re.compile(
    r"https?://[A-Za-z0-9](?:[A-Za-z0-9.-]*[A-Za-z0-9])?(?::[0-9]{1,5})?/[A-Za-z0-9/._~?=&;,:+!()'@*$-]*"
)
SCHEMES: Final = ("http://", "https://", "ftp://", "file:/")
_BROWSERS: Final = WhatwgResolver("")
_NUMBER: Final = re.compile(
    r"[+-]?(?:NaN|Infinity|(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?)[dDfF]?"
)


@dataclass(frozen=True, slots=True)
class SitemapUrl:
    """A URL of a sitemap. `modified` in ms since the epoch, `interval` in seconds; None where the
    sitemap says none.
    """

    url: str
    modified: int | None = None
    interval: int | None = None
    priority: float = DEFAULT_PRIORITY


@dataclass(slots=True)
class Sitemap:
    """The URLs of a sitemap in its order; `strict` takes only those below the folder of the
    sitemap's own URL.
    """

    base: str
    strict: bool
    urls: list[SitemapUrl] = field(default_factory=list)
    left_out: int = 0
    """URLs that are none, or not below the folder."""
    damage: str = ""
    """What is wrong with the rest; empty if all was read."""

    @classmethod
    def at(cls, url: str, *, strict: bool) -> Sitemap:
        """Returns an empty sitemap at a URL."""
        return cls(base_of(url), strict)

    def add(
        self,
        text: str,
        modified: int | None = None,
        frequency: str | None = None,
        priority: str = "",
    ) -> None:
        """Adds a URL with what is said of it, as texts; one that is not valid only counts."""
        url = checked_url(text)
        if url is None or not self.allows(url):
            self.left_out += 1
        else:
            self.urls.append(
                SitemapUrl(url, modified, interval_of(frequency), priority_of(priority))
            )

    def allows(self, url: str) -> bool:
        """Tells whether a URL may stand here."""
        return not self.strict or url.startswith(self.base)


@dataclass(slots=True)
class SitemapIndex:
    """The URLs of the sitemaps of an index, in its order."""

    urls: list[str] = field(default_factory=list)
    left_out: int = 0
    damage: str = ""


def base_of(url: str) -> str:
    """Returns the folder of a sitemap's URL: up to the last slash of its path, without user and
    query.
    """
    parsed = parts.parse(url)
    port = "" if parsed.port == -1 else f":{parsed.port}"
    folder = parsed.path[: parsed.path.rfind("/") + 1] or "/"
    return str(parts.parse(f"{parsed.protocol}://{parsed.host}{port}{folder}"))


def checked_url(text: str) -> str | None:
    """Returns the URL as java.net.URI and URL see it, or, where they refuse it, as browsers do: `/a
    b` is `/a%20b`; None if it is none, not absolute, or has no host.
    """
    if _PLAIN_URL.fullmatch(text):
        return text
    try:
        url = parts.parse(text)
        if parse_uri(text).scheme:
            return str(url) if url.host or url.protocol == "file" else None
    except UrlError:
        pass
    try:
        standard = _BROWSERS.resolve(text)
    except UrlError:
        return None
    return standard if standard.startswith(SCHEMES) else None


def interval_of(frequency: str | None) -> int | None:
    """Seconds between two fetches, by the text of a `changefreq`."""
    name = (frequency or "").upper()
    return next((seconds for word, seconds in FREQUENCIES.items() if word in name), None)


def priority_of(text: str) -> float:
    """Returns the number of a `priority`; the default for none, or for one that is not from 0 to
    1.
    """
    number = text.strip()
    if not _NUMBER.fullmatch(number):
        return DEFAULT_PRIORITY
    value = float(number.rstrip("dDfF").replace("Infinity", "inf"))
    return value if 0.0 <= value <= 1.0 else DEFAULT_PRIORITY
