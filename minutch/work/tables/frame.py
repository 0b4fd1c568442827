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

CRAWLDB_SCHEMA = pl.Schema(
    {
        "key": pl.Binary(),  # the URL's bytes
        "status": pl.UInt8(),
        "fetch_time": pl.Int64(),  # ms since the epoch
        "modified_time": pl.Int64(),  # ms since the epoch, 0 = unknown
        "retries": pl.Int8(),
        "fetch_interval": pl.Int32(),  # seconds
        "score": pl.Float32(),
        "signature": pl.Binary(),  # null = none, else 1 to 127 bytes
        "metadata": pl.Binary(),  # null = none or empty, else Hadoop's MapWritable as it was stored
    }
)

PACKED_SCHEMA = pl.Schema(
    {
        "key": pl.Binary(),
        "status": pl.UInt8(),
        "fetch_time": pl.Int64(),
        "score": pl.Float32(),
        "value": pl.Binary(),  # the serialized CrawlDatum
    }
)

INLINKS_SCHEMA = pl.Schema(
    {
        "key": pl.Binary(),  # the URL that is linked to
        "from_url": pl.Binary(),  # null in the one row of a key whose Inlinks are empty
        "anchor": pl.Binary(),
        "metadata": pl.Binary(),  # null = none, else Hadoop's MapWritable as it was stored
    }
)

OUTLINKS_SCHEMA = pl.Schema(
    {
        "key": pl.Binary(),  # the page's URL
        "to_url": pl.Binary(),
        "anchor": pl.Binary(),
    }
)

GRAPH_LINKS_SCHEMA = pl.Schema(
    {
        "key": pl.Binary(),  # the page at one end
        "url": pl.Binary(),  # that at the other
        "anchor": pl.Binary(),
        "score": pl.Float32(),
        "timestamp": pl.Int64(),  # ms since the epoch
        "link_type": pl.Int8(),  # whether `key` is linked to or links
    }
)

NODES_SCHEMA = pl.Schema(
    {
        "key": pl.Binary(),
        "num_inlinks": pl.Int32(),
        "num_outlinks": pl.Int32(),
        "inlink_score": pl.Float32(),
        "metadata": pl.Binary(),  # null = none, else Nutch's Metadata as it was stored
    }
)


def empty(schema: pl.Schema) -> pl.DataFrame:
    """A table of `schema` without rows."""
    return pl.DataFrame(schema=schema)


def concat(frames: list[pl.DataFrame], schema: pl.Schema = CRAWLDB_SCHEMA) -> pl.DataFrame:
    """The rows of all `frames`, in order; a table of `schema` without rows where there are none."""
    return pl.concat(frames, rechunk=False) if frames else empty(schema)


def decode_keys(keys: pl.Series) -> pl.Series:
    """Keys as strings; bytes that are not UTF-8 become U+FFFD, as Text.toString makes them."""
    try:
        return keys.cast(pl.String)
    except pl.exceptions.ComputeError:
        replaced = [None if key is None else key.decode("utf-8", "replace") for key in keys]
        return pl.Series(keys.name, replaced, dtype=pl.String)


def encode_keys(urls: pl.Series) -> pl.Series:
    """Strings as keys."""
    return urls.cast(pl.Binary)
