"""A LinkDb as text, in part files; see `readlinkdb` for the form."""

from __future__ import annotations

from pathlib import Path

import polars as pl

from minutch.conf import Configuration
from minutch.formats.checksum import ChecksumWriter
from minutch.formats.writables import MapWritable
from minutch.job import Counters
from minutch.linkdb.building import PAGES, WRITTEN, number_of_parts, stored_parts
from minutch.linkdb.mapreduce import dumped
from minutch.linkdb.store import LinkDb
from minutch.records.links import LAYOUT_METADATA, Inlink
from minutch.tables.database import part_name
from minutch.tables.frame import decode_keys
from minutch.urls.javaregex import JavaRegex


def write_dump(db: LinkDb, out: Path, conf: Configuration, pattern: JavaRegex | None) -> Counters:
    """Write the records of `db` whose URLs match `pattern` (None: all) into the new directory `out`."""
    counters = Counters()
    tables = stored_parts(db)
    parts = dumped(tables, number_of_parts(conf)) if tables else []
    out.mkdir(parents=True)
    for index, table in enumerate(parts):
        if pattern is not None:
            table = table.filter(_matches(table["key"], pattern))
        with ChecksumWriter(out / part_name(index)) as file:
            for text in lines(table, db.layout):
                file.write(text.encode())
        counters.add(PAGES, table["key"].n_unique())
        counters.add(WRITTEN, len(table) - table["from_url"].null_count())
    return counters


def _matches(keys: pl.Series, pattern: JavaRegex) -> pl.Series:
    return pl.Series([pattern.matches(url) for url in decode_keys(keys)], dtype=pl.Boolean)


def lines(table: pl.DataFrame, layout: str) -> pl.Series:
    """The text of each row: of the link, after the URL if it is the record's first, before a blank line if its last."""
    key, from_url, anchor = (decode_keys(table[name]) for name in ("key", "from_url", "anchor"))
    end = " metadata: \n" if layout == LAYOUT_METADATA else "\n"
    text = pl.select(" fromUrl: " + from_url + " anchor: " + anchor + end).to_series()
    described = table["metadata"].is_not_null().arg_true()
    if len(described):
        text = text.scatter(described, pl.Series(_with_metadata(table[described], layout), dtype=pl.String))
    first = key.ne_missing(key.shift())
    last = key.ne_missing(key.shift(-1))
    head, tail = key + "\tInlinks:\n", pl.lit("\n")
    shown = pl.when(first).then(head).otherwise(pl.lit("")) + text.fill_null("")
    return pl.select(shown + pl.when(last).then(tail).otherwise(pl.lit(""))).to_series()


def _with_metadata(table: pl.DataFrame, layout: str) -> list[str]:
    from_url, anchor = decode_keys(table["from_url"]), decode_keys(table["anchor"])
    links = zip(from_url, anchor, table["metadata"], strict=True)
    return [f" {Inlink(url, text, MapWritable.from_bytes(data)).to_string(layout)}\n" for url, text, data in links]
