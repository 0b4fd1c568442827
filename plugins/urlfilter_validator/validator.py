"""urlfilter-validator: accepts only URLs that are well-formed by a strict reading of RFC 2396.

    scheme     letters
    authority  IPv4 address, or a host of at least two labels whose last starts with a letter and
               has two characters; no user info; a port has one to five digits
    path       a limited set of characters; no more `..` than there are directories to climb
    all        visible ASCII

Source: org.apache.nutch.urlfilter.validator.UrlValidator.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from minutch.plugin.columns import rewrite
from minutch.plugin.points import URLFilter

if TYPE_CHECKING:
    import polars as pl

_URL = re.compile(r"(?:([^:/?#]+):)?(?://([^/?#]*))?([^?#]*)(?:\?([^#]*))?(?:#(.*))?")
_VISIBLE = re.compile(r"[\x21-\x7e]+")
_SCHEME = re.compile(r"[A-Za-z]+")
_AUTHORITY = re.compile(r"([A-Za-z0-9.-]*)(?::([0-9]*))?")
_PORT = re.compile(r"[0-9]{1,5}")
_IPV4 = re.compile(r"([0-9]{1,3})\.([0-9]{1,3})\.([0-9]{1,3})\.([0-9]{1,3})")
_PATH_CHARS = r"-A-Za-z0-9_:@&?=+,!/~*'%$;()"
_PATH = re.compile(rf"(?:/[{_PATH_CHARS}.]*)?")

_PLAINLY_VALID = (
    r"\A[A-Za-z]+://(?:[A-Za-z0-9-]+\.)+[A-Za-z][A-Za-z0-9-]+(?::[0-9]{1,5})?"
    rf"(?:/(?:\.?[{_PATH_CHARS.replace('?', '')}])*\.?)?(?:[?#][\x21-\x7e]*)?\z"
)
"""The pattern for Polars: a host by name, and no `..` in the path."""


class UrlValidator(URLFilter):
    """Rejects what is not a valid URL."""

    def filter(self, url: str) -> str | None:
        return None if fault(url) else url

    def explain(self, url: str) -> str:
        return fault(url)

    def filter_column(self, urls: pl.Series) -> pl.Series:
        """URLs that are plainly valid stay, the others go through the row method."""
        rest = ~urls.str.contains(_PLAINLY_VALID).fill_null(True)
        return rewrite(urls, rest, self.filter)


def fault(url: str) -> str:
    """Returns the first part of `url` that is not well-formed; empty if there is none."""
    match = _URL.fullmatch(url)
    if match is None or _VISIBLE.fullmatch(url) is None:
        return "characters outside of visible ASCII"
    scheme, authority, path, _, _ = match.groups()
    if scheme is None or _SCHEME.fullmatch(scheme) is None:
        return "no scheme of letters alone"
    if authority is None or not _is_authority(authority):
        return "no valid host (two labels or more, no user), address or port"
    return "" if _is_path(path) else "not a valid path"


def _is_authority(authority: str) -> bool:
    match = _AUTHORITY.fullmatch(authority)
    if match is None:
        return False
    host, port = match.groups()
    if port is not None and _PORT.fullmatch(port) is None:
        return False
    address = _IPV4.fullmatch(host)
    return (
        all(int(part) <= 255 for part in address.groups())
        if address is not None
        else _is_host(host)
    )


def _is_host(host: str) -> bool:
    labels = host.split(".")
    return len(labels) >= 2 and all(labels) and len(labels[-1]) >= 2 and labels[-1][0].isalpha()


def _is_path(path: str) -> bool:
    if _PATH.fullmatch(path) is None:
        return False
    climbs = _count(path, "..")
    # UrlValidator.isValidPath: as many names as are climbed, and one more.
    return climbs == 0 or path.count("/") - _count(path, "//") - 1 > climbs


def _count(text: str, token: str) -> int:
    """Occurrences, overlapping ones too."""
    # countToken goes on one character behind a find: /// has two.
    return sum(text.startswith(token, at) for at in range(len(text)))
