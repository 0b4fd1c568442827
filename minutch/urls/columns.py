"""Host and domain of a whole column of URLs: one regular expression for the plain ones, row by row for the others."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from minutch.errors import UrlError
from minutch.urls.domains import domain_of
from minutch.urls.parts import parse

if TYPE_CHECKING:
    import polars as pl

_PLAIN = r"^https?://([A-Za-z0-9._-]+)(?::[0-9]{1,5})?(?:[/?#]|$)"


def host_column(urls: pl.Series, *, lower: bool = True) -> pl.Series:
    """The host of each URL, lower-cased (URLUtil.getHost) or as written; null for null and where there is no URL."""
    import polars as pl

    hosts = urls.str.extract(_PLAIN, 1)
    odd = hosts.is_null() & urls.is_not_null()
    if odd.any():
        hosts = patch(hosts, odd, pl.Series([_host(url) for url in urls.filter(odd)], dtype=pl.String))
    return hosts.str.to_lowercase() if lower else hosts


def _host(url: str) -> str | None:
    try:
        return parse(url).host
    except UrlError:
        return None


def domain_column(hosts: pl.Series) -> pl.Series:
    """The registered domain of each host (see `domains.domain_of`), each distinct host looked up once."""
    return map_distinct(hosts, domain_of)


def map_distinct(values: pl.Series, function: Callable[[str], str | None]) -> pl.Series:
    """`function` of each string, called once per distinct one; null stays null."""
    import polars as pl

    distinct = values.drop_nulls().unique()
    results = pl.Series(values.name, [function(value) for value in distinct], dtype=pl.String)
    return values.replace_strict(distinct, results, default=None, return_dtype=pl.String)


def patch(column: pl.Series, where: pl.Series, values: pl.Series) -> pl.Series:
    """A copy of the column with `values`, in order, in the rows that the mask `where` marks."""
    return column.clone().scatter(where.arg_true(), values) if len(values) else column


def rewrite(column: pl.Series, where: pl.Series, change: Callable[[str], str | None]) -> pl.Series:
    """A copy of a column of strings with `change` applied where the mask says so; a UrlError makes a null."""
    import polars as pl

    def safe(value: str | None) -> str | None:
        try:
            return None if value is None else change(value)
        except UrlError:
            return None

    where = where.fill_null(False)
    return patch(column, where, pl.Series([safe(value) for value in column.filter(where)], dtype=pl.String))
