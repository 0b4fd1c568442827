"""Makes a graph of a crawl's links: of pages, or of hosts with the number of links between them."""

from __future__ import annotations

import polars as pl

from minutch.inspect.query.crawl import Crawl
from minutch.urls.hostcolumns import host_names


def edges(crawl: Crawl, *, by_host: bool) -> pl.LazyFrame:
    """Returns `source`, `target` and, of pages, `anchor`; of hosts `weight`, without links within a
    host.
    """
    links = crawl.tables["links"].scan().rename({"from_url": "source", "url": "target"})
    if not by_host:
        return links.select("source", "target", "anchor")
    hosts = links.select(pl.col("source", "target").map_batches(host_names, return_dtype=pl.String))
    between = hosts.filter((pl.col("source") != pl.col("target")).fill_null(False))
    return between.group_by("source", "target").agg(weight=pl.len()).sort("source", "target")
