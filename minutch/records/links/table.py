"""The columns of tables of links: one row per Inlink or Outlink, in the order of the record."""

from __future__ import annotations

import polars as pl

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
