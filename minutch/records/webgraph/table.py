"""The columns of tables of the WebGraph: one row per LinkDatum, one per Node."""

from __future__ import annotations

import polars as pl

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
