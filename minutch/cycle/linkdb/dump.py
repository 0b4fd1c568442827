"""readlinkdb: the links to one page, or all of a LinkDb as text.

    <url> TAB Inlinks: LF ( SP fromUrl: <url> SP anchor: <text> SP metadata: <metadata> LF )* LF

A dump has a part file for each reducer (mapreduce.job.reduces). Links are printed in the order in
which they are stored; what Nutch 1.20 wrote as 1.20 prints it, without metadata. Unlike in Nutch,
which forgets it, -regex restricts the dump.

Source: org.apache.nutch.crawl.LinkDbReader.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass
from pathlib import Path

import polars as pl

from minutch.cycle.linkdb.invertlinks import PAGES, WRITTEN
from minutch.cycle.linkdb.store import LinkDb
from minutch.errors import ConfigError, UsageError
from minutch.hadoop.formats.writables import MapWritable
from minutch.job import Counters, JobContext
from minutch.records.links import LAYOUT_METADATA, Inlink
from minutch.records.links_columns import INLINKS_SCHEMA
from minutch.urls.javaregex import JavaRegex
from minutch.work.tables.compression import text_codec
from minutch.work.tables.frame import decode_keys
from minutch.work.tables.install import mark_success
from minutch.work.tables.parallel import number_of_parts, sorting_memory
from minutch.work.tables.shuffle import Shuffle
from minutch.work.tables.textparts import output_folder, require_absent, text_part

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class LinkDumpOptions:
    """The options of readlinkdb -dump."""

    regex: str | None = None
    """Java's regular expression for the whole URL; None: all URLs."""


def readlinkdb_dump(
    linkdb: Path, output: Path, options: LinkDumpOptions = LinkDumpOptions(), *, context: JobContext
) -> Counters:
    """Writes the records of a LinkDb as text to part files in the new directory `output`.

    Raises StoreError (no LinkDb, `output` exists), UsageError (the expression), FormatError
    (damage).
    """
    pattern = None if options.regex is None else _compiled(options.regex)
    log.info("LinkDb dump: starting")
    log.info("LinkDb dump: db: %s", linkdb)
    require_absent(output)
    conf, db, counters = context.conf, LinkDb(linkdb), Counters()
    parts, codec = number_of_parts(conf), text_codec(conf)
    with (
        output_folder(output) as folder,
        Shuffle(parts, INLINKS_SCHEMA, budget=sorting_memory(conf), spill=folder) as shuffle,
    ):
        for index in range(len(db.require_parts())):
            for table in db.scan_part(index):
                shuffle.add(
                    table if pattern is None else table.filter(_matches(table["key"], pattern))
                )
        for part in range(parts):
            with text_part(folder, part, codec) as file:
                for table in shuffle.sorted(part):
                    file.write("".join(lines(table, db.layout)).encode())
                    counters.add(PAGES, table["key"].n_unique())
                    counters.add(WRITTEN, len(table) - table["from_url"].null_count())
        mark_success(conf, folder)
    log.info("LinkDb dump: finished")
    return counters


def _compiled(regex: str) -> JavaRegex:
    try:
        return JavaRegex(regex)
    except ConfigError as exc:
        raise UsageError(f"-regex: {exc}") from exc


def _matches(keys: pl.Series, pattern: JavaRegex) -> pl.Series:
    return pl.Series([pattern.matches(url) for url in decode_keys(keys)], dtype=pl.Boolean)


def lines(table: pl.DataFrame, layout: str) -> pl.Series:
    """Returns the text of each row of INLINKS_SCHEMA, in which the rows of a record lie together.

    The first row of a record has the URL before the link, the last one a blank line behind it.
    """
    key, from_url, anchor = (decode_keys(table[name]) for name in ("key", "from_url", "anchor"))
    end = " metadata: \n" if layout == LAYOUT_METADATA else "\n"
    text = pl.select(" fromUrl: " + from_url + " anchor: " + anchor + end).to_series()
    described = table["metadata"].is_not_null().arg_true()
    if len(described):
        text = text.scatter(
            described, pl.Series(_with_metadata(table[described], layout), dtype=pl.String)
        )
    first = key.ne_missing(key.shift())
    last = key.ne_missing(key.shift(-1))
    head, tail = key + "\tInlinks:\n", pl.lit("\n")
    shown = pl.when(first).then(head).otherwise(pl.lit("")) + text.fill_null("")
    return pl.select(shown + pl.when(last).then(tail).otherwise(pl.lit(""))).to_series()


def _with_metadata(table: pl.DataFrame, layout: str) -> list[str]:
    from_url, anchor = decode_keys(table["from_url"]), decode_keys(table["anchor"])
    links = zip(from_url, anchor, table["metadata"], strict=True)
    return [
        f" {Inlink(url, text, MapWritable.from_bytes(data)).to_string(layout)}\n"
        for url, text, data in links
    ]
