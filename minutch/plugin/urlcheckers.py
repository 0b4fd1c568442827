"""Checks single URLs by the active URL filters or normalizers.

Source: org.apache.nutch.net.URLFilterChecker, URLNormalizerChecker.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from minutch.conf import Configuration
from minutch.errors import UrlError
from minutch.plugin.chains import SCOPE_DEFAULT, URLFilters, URLNormalizers
from minutch.plugin.repository import only


@dataclass(frozen=True, slots=True)
class UrlChecker:
    """The plugins that check a URL, by class name, and the function that does."""

    plugins: tuple[str, ...]
    check: Callable[[str], str]


def filterchecker(conf: Configuration, name: str | None = None) -> UrlChecker:
    """Makes a checker that returns `+url` for a URL that passes the filters, else `-url`.

    `name` selects a filter by the id of its plugin (a pattern) or by its class.
    """
    filters = URLFilters(conf if name is None else only(conf, name, "urlfilter.order"))

    def check(url: str) -> str:
        passed = filters.filter(url)
        return f"-{url}" if passed is None else f"+{passed}"

    return UrlChecker(tuple(type(one).__name__ for one in filters.filters), check)


def normalizerchecker(
    conf: Configuration, name: str | None = None, scope: str = SCOPE_DEFAULT
) -> UrlChecker:
    """Makes a checker that returns the normalized URL, or nothing if it is malformed or dropped.

    `name` selects a normalizer by the id of its plugin (a pattern) or by its class.
    """
    used = conf if name is None else only(conf, name, "urlnormalizer.order")
    normalizers = URLNormalizers(used, scope)

    def check(url: str) -> str:
        try:
            return normalizers.normalize(url) or ""
        except UrlError:
            return ""

    return UrlChecker(tuple(type(one).__name__ for one in normalizers.normalizers), check)
