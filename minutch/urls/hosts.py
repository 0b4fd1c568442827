"""Hosts and domains of columns of URLs: what fetch lists are partitioned and limited by.

Plain URLs, which nearly all are, are taken apart by one expression; the others, and each distinct host, by `urls.parts`
and `urls.domains`.

Source: java.net.URL.getHost, org.apache.nutch.util.URLUtil.getDomainName.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import polars as pl

from minutch.errors import UrlError
from minutch.urls.domains import domain_of
from minutch.urls.parts import parse

_PLAIN: Final = r"^https?://([A-Za-z0-9._-]+)(?::[0-9]{1,5})?(?:[/?#]|$)"


def hosts_of(urls: pl.Series) -> pl.Series:
    """The host of each URL (String) as it is spelled there; null for what is no URL, and for null."""
    hosts = urls.str.extract(_PLAIN).alias("host")
    others = (hosts.is_null() & urls.is_not_null()).arg_true()
    if not len(others):
        return hosts
    return hosts.scatter(others, map_distinct(urls.gather(others), _host, pl.String()))


def _host(url: str) -> str | None:
    try:
        return parse(url).host
    except UrlError:
        return None


def domains_of(hosts: pl.Series) -> pl.Series:
    """The registered domain of each host; null stays null."""
    return map_distinct(hosts, domain_of, pl.String()).alias("domain")


def map_distinct(values: pl.Series, function: Callable[[Any], object], dtype: pl.DataType) -> pl.Series:
    """`function` of each value, called once for each distinct one; null stays null."""
    distinct = values.drop_nulls().unique()
    results = pl.Series([function(value) for value in distinct], dtype=dtype)
    return values.replace_strict(distinct, results, default=None, return_dtype=dtype)
