"""Hosts and domains of columns of URLs: what fetch lists are partitioned and limited by.

Plain URLs, which nearly all are, are taken apart by one expression; the others, and each distinct host, by `urls.parts`
and `urls.domains`.

Source: java.net.URL.getHost, org.apache.nutch.util.URLUtil.getDomainName.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np
import polars as pl

from minutch.errors import UrlError
from minutch.kernels.arrow import Bytes
from minutch.kernels.hosts import find_hosts
from minutch.records.batch import Lengths, Offsets, string_column
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


def hosts_at(keys: Bytes, at: Offsets, length: Lengths) -> pl.Series:
    """As `hosts_of`, of URLs that lie at offsets of a buffer; nothing is copied."""
    host_at, host_len = np.empty(len(at), np.int64), np.empty(len(at), np.int32)
    unusual = find_hosts(keys, at, length, host_at, host_len)
    hosts = string_column("host", keys, host_at, host_len, least=0).cast(pl.String)
    if not unusual:
        return hosts
    others = np.flatnonzero(host_len < 0)
    urls = [keys[at[row] : at[row] + length[row]].tobytes().decode("utf-8", "replace") for row in others]
    return hosts.scatter(others, pl.Series([_host(url) for url in urls], dtype=pl.String))


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
