"""One URL filter or normalizer with rules of a test, and the check that its column twin agrees with
it.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import polars as pl

from minutch.conf import Configuration
from minutch.errors import UrlError
from minutch.plugin.chains import URLFilters, URLNormalizers
from minutch.plugin.points import URLFilter, URLNormalizer


def settings(plugin: str, values: dict[str, str], folder: Path | None = None) -> Configuration:
    conf = Configuration.load([folder] if folder is not None else [])
    return conf.with_values({"plugin.includes": plugin, **values})


def url_filter(plugin: str, folder: Path | None = None, **values: str) -> URLFilter:
    """The only filter of a plugin; dots of property names are written as two underscores."""
    conf = settings(
        plugin, {name.replace("__", "."): value for name, value in values.items()}, folder
    )
    (only,) = URLFilters(conf).filters
    return only


def url_normalizer(plugin: str, folder: Path | None = None, **values: str) -> URLNormalizer:
    """The same for a normalizer."""
    conf = settings(
        plugin, {name.replace("__", "."): value for name, value in values.items()}, folder
    )
    (only,) = URLNormalizers(conf).normalizers
    return only


def passed(chosen: URLFilter, urls: Iterable[str]) -> list[str]:
    """The URLs that pass, by row and by column alike."""
    given = list(urls)
    by_row = [chosen.filter(url) for url in given]
    column = pl.Series("u", [*given, None], dtype=pl.String)
    assert chosen.filter_column(column).to_list() == [*by_row, None]
    assert column.to_list() == [*given, None]
    assert chosen.filter_column(column).name == "u"
    return [url for url in by_row if url is not None]


def normalized(
    chosen: URLNormalizer, urls: Iterable[str], scope: str = "default"
) -> list[str | None]:
    """The normal forms, by row and by column alike; None for malformed."""
    given = list(urls)
    by_row = [_one(chosen, url, scope) for url in given]
    column = pl.Series("u", [*given, None], dtype=pl.String)
    assert chosen.normalize_column(column, scope).to_list() == [*by_row, None]
    assert column.to_list() == [*given, None]
    return by_row


def _one(chosen: URLNormalizer, url: str, scope: str) -> str | None:
    try:
        return chosen.normalize(url, scope)
    except UrlError:
        return None
