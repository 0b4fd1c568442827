"""Hosts and domains of columns of URLs: what fetch lists are partitioned and limited by.

`hostnumbers` finds the hosts. Source: org.apache.nutch.util.URLUtil.getDomainName.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import polars as pl

from minutch.hadoop.formats.batch import Lengths, Offsets, places
from minutch.kernels.arrow import Bytes, from_series, to_series
from minutch.kernels.patterns import unsure_of_host
from minutch.urls.domains import domain_of
from minutch.urls.hostnumbers import Numbers, plain_hosts
from minutch.urls.parts import lacks_host, spelled_host


def lack_host(urls: pl.Series) -> pl.Series:
    """Returns the mask of the URLs (String, or Binary as keys are) that `lacks_host` is true of."""
    found = pl.repeat(False, len(urls), dtype=pl.Boolean, eager=True)
    strings, others = from_series(urls), np.empty(len(urls), np.int64)
    # Nearly all have one for sure.
    others = others[: unsure_of_host(strings.views, strings.addresses, others)]
    if not len(others):
        return found
    strange = urls.gather(others).cast(pl.Binary).to_list()
    lacking = [url is not None and lacks_host(url.decode("utf-8", "replace")) for url in strange]
    return found.scatter(others, pl.Series(lacking, dtype=pl.Boolean))


def hosts_of(urls: pl.Series) -> pl.Series:
    """Returns the host of each URL (String) as spelled there; null for what is no URL, or null."""
    strings = from_series(urls)
    hosts, others = _plain_hosts(0, *places(strings))
    return (
        hosts.scatter(others, map_distinct(urls.gather(others), spelled_host, pl.String()))
        if len(others)
        else hosts
    )


def host_names(urls: pl.Series) -> pl.Series:
    """Returns the name of each URL's host, in lower case, for counts: however it is spelled, it is
    one host (RFC 3986, section 3.2.2).
    """
    return hosts_of(urls).str.to_lowercase()


def hosts_at(keys: Bytes, at: Offsets, length: Lengths) -> pl.Series:
    """Returns the hosts, like `hosts_of`, of URLs at offsets of a buffer."""
    hosts, others = _plain_hosts(keys.ctypes.data, at, length)
    if not len(others):
        return hosts
    strange = [
        keys[at[row] : at[row] + length[row]].tobytes().decode("utf-8", "replace") for row in others
    ]
    return hosts.scatter(others, pl.Series([spelled_host(url) for url in strange], dtype=pl.String))


def _plain_hosts(base: int, at: Offsets, length: Lengths) -> tuple[pl.Series, Numbers]:
    """Returns the hosts of the plain ones among URLs at distances from an address, and the rows of
    the others.
    """
    views, text, valid, others = plain_hosts(base, at, length)
    hosts = to_series("host", views, [text], valid if len(others) else None, is_text=True)
    return hosts, others


def domains_of(hosts: pl.Series) -> pl.Series:
    """Returns the registered domain of each host; null stays null."""
    return map_distinct(hosts, domain_of, pl.String()).alias("domain")


def map_distinct(
    values: pl.Series, function: Callable[[Any], object], dtype: pl.DataType
) -> pl.Series:
    """`function` of each value, called once for each distinct one; null stays null."""
    # Hosts of a column are few: a Python call for each, not for each row.
    distinct = values.drop_nulls().unique()
    results = pl.Series([function(value) for value in distinct], dtype=dtype)
    return values.replace_strict(distinct, results, default=None, return_dtype=dtype)
