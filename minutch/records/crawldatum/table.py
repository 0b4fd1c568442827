"""The columns of tables of CrawlDatums: one row per record, taken apart or packed."""

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
