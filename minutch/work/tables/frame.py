"""The columns of the tables that whole-database jobs work on, and the few shapes that every job
needs of them.

A key is a URL's bytes as they stand in a Text, not decoded: invalid UTF-8 survives, and byte order
is Nutch's order.

    CRAWLDB_SCHEMA   one row per CrawlDatum
    PACKED_SCHEMA    the same, not taken apart; see `packed`
    INLINKS_SCHEMA   one row per Inlink; the rows of one key lie together, in the order of the
                     record
    OUTLINKS_SCHEMA  one row per Outlink of a ParseData, in the order of the record
    GRAPH_LINKS_SCHEMA, NODES_SCHEMA   one row per LinkDatum, one per Node of a WebGraph

Source: org.apache.nutch.crawl.CrawlDatum, Inlinks, Inlink; org.apache.nutch.parse.ParseData,
Outlink; org.apache.nutch.scoring.webgraph.LinkDatum, Node.
"""

from __future__ import annotations

import polars as pl

from minutch.records.crawldatum_columns import CRAWLDB_SCHEMA


def empty(schema: pl.Schema) -> pl.DataFrame:
    """Returns a table of `schema` without rows."""
    return pl.DataFrame(schema=schema)


def concat(frames: list[pl.DataFrame], schema: pl.Schema = CRAWLDB_SCHEMA) -> pl.DataFrame:
    """Returns the rows of all `frames`, in order; a table of `schema` without rows where there are
    none.
    """
    return pl.concat(frames, rechunk=False) if frames else empty(schema)


def decode_keys(keys: pl.Series) -> pl.Series:
    """Returns keys as strings; bytes that are not UTF-8 become U+FFFD, as Text.toString makes
    them.
    """
    try:
        return keys.cast(pl.String)
    except pl.exceptions.ComputeError:
        replaced = [None if key is None else key.decode("utf-8", "replace") for key in keys]
        return pl.Series(keys.name, replaced, dtype=pl.String)


def encode_keys(urls: pl.Series) -> pl.Series:
    """Returns strings as keys."""
    return urls.cast(pl.Binary)
