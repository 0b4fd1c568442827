"""Explains why a URL is rejected: by which normalizer or filter, and by which rule."""

from __future__ import annotations

import re

import polars as pl

from minutch.errors import UrlError
from minutch.plugin.chains import URLFilters, URLNormalizers
from minutch.urls.hostcolumns import lack_host
from minutch.urls.parts import parse

_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:")


def why_rejected(url: str, filters: URLFilters | None, normalizers: URLNormalizers | None) -> str:
    """Returns the reason as text; empty if normalizers and filters accept the URL."""
    if not _SCHEME.match(url) or ("://" not in url and re.search(r"^[^/?#]+\.[^/?#]*:\d", url)):
        return f"it has no scheme: did you mean https://{url}?"
    try:
        parse(url)
        normal = normalizers.normalize(url) if normalizers else url
    except UrlError as exc:
        return str(exc)
    if normal is None:
        return "a normalizer drops it"
    for url_filter in filters.filters if filters else ():
        passed = url_filter.filter(normal)
        if passed is None:
            return url_filter.explain(normal) or f"{type(url_filter).__name__} rejects it"
        normal = passed
    return f"no host: {normal}" if lack_host(pl.Series([normal]))[0] else ""
