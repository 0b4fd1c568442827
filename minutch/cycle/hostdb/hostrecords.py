"""One record for each host, of all that is known of it: the one home of that decision. Pure: no
I/O.

    before      its record in the HostDb, if it has one
    counts, homepages, values     what the CrawlDb says of it (see `statistics`), if one is read
    scores      -tophosts: the first score that is given for it, if that is above 0

What the CrawlDb says replaces what it said before: counts, failed connections, and the metadata
that this job writes. Without a CrawlDb all of it stays. A home page stays until there is another.
Nutch loses the counts where no CrawlDb is read, adds up failed connections from run to run (if the
old record happens to come first), keeps values that no page has any more, and never stores a home
page, since HostDatum.hasHomepageUrl says the opposite.

Source: org.apache.nutch.hostdb.UpdateHostDbReducer.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import polars as pl

from minutch.cycle.hostdb.fields import NEW_SCHEMA
from minutch.cycle.hostdb.statistics import FAILURES, STATUSES, Statistics
from minutch.records.hostdatum.columns import COUNTS, HOSTDB_SCHEMA
from minutch.records.metadata.columns import (
    FLOAT,
    INT,
    LONG,
    TEXT,
    entries,
    maps_of,
    stored,
    stored_value,
)
from minutch.records.metadata.rawmap import RawMap

SCORES_SCHEMA: Final = pl.Schema({"key": pl.Binary(), "score": pl.Float32()})

_PLAIN: Final = (TEXT, INT, LONG, FLOAT)
_FROM_CRAWLDB: Final = (*STATUSES, FAILURES)


@dataclass(frozen=True, slots=True)
class Known:
    """What is known of some hosts; a host may have several rows in each table."""

    before: pl.DataFrame
    counts: pl.DataFrame
    homepages: pl.DataFrame
    values: pl.DataFrame
    scores: pl.DataFrame


def merged(known: Known, statistics: Statistics, *, has_crawldb: bool) -> pl.DataFrame:
    """One row of HOSTDB_SCHEMA for each host, by its bytes. Raises FormatError for damaged
    metadata.
    """
    before = known.before.unique("key", keep="last")
    counts = known.counts.group_by("key").agg(pl.all().sum())
    ranked = known.homepages.sort("rank", maintain_order=True)
    homepages = ranked.unique("key", keep="last", maintain_order=True).select("key", "homepage_url")
    scores = known.scores.unique("key", keep="first", maintain_order=True).rename(
        {"score": "given"}
    )
    keys = (
        pl.concat([before.select("key"), counts.select("key"), scores.select("key")])
        .unique()
        .sort("key")
    )
    table = keys.join(before, on="key", how="left", maintain_order="left")
    table = table.join(counts, on="key", how="left", maintain_order="left", suffix="_now")
    table = table.join(homepages, on="key", how="left", maintain_order="left", suffix="_now")
    table = table.join(scores, on="key", how="left", maintain_order="left")
    metadata = _metadata(table, known.values, statistics, has_crawldb=has_crawldb)
    from_crawldb = (
        [pl.col(f"{name}_now").alias(name) for name in _FROM_CRAWLDB] if has_crawldb else []
    )
    return (
        table.with_columns(*from_crawldb)
        .with_columns(
            pl.when(pl.col("given") > 0)
            .then(pl.col("given"))
            .otherwise(pl.col("score").fill_null(0))
            .alias("score"),
            pl.col("last_check").fill_null(0),
            pl.coalesce("homepage_url_now", "homepage_url", pl.lit(b"")).alias("homepage_url"),
            *(pl.col(name).fill_null(0) for name in COUNTS),
            metadata,
        )
        .select(HOSTDB_SCHEMA.names())
        .cast(HOSTDB_SCHEMA)
    )


def _metadata(
    table: pl.DataFrame, values: pl.DataFrame, statistics: Statistics, *, has_crawldb: bool
) -> pl.Series:
    """The metadata of each host: what it was, and what the CrawlDb says now."""
    old = table["metadata"]
    if not has_crawldb:
        return old
    rows = table.select("key").with_row_index("row")
    once = values.group_by("key", "field", "text", "number", maintain_order=True).agg(
        pl.col("count").sum()
    )
    owners = once.join(rows, on="key", how="left", maintain_order="left")["row"]
    new = [statistics.fields.summaries(owners, once), *_sums(table, statistics)]
    found = entries(old, table["key"])
    odd = found.filter(~pl.col("kind").is_in(_PLAIN))["row"].unique()
    kept = _kept(found.filter(~pl.col("row").is_in(odd.implode())), statistics)
    together = (
        pl.concat([kept, *new])
        .group_by("row", "key", maintain_order=True)
        .agg(pl.col("value").last())
    )
    metadata = maps_of(together.sort("row", maintain_order=True), len(table)).alias("metadata")
    if len(odd):
        put = {
            row: _put(old[row], together.filter(pl.col("row") == row), statistics)
            for row in odd.sort()
        }
        metadata = metadata.scatter(odd.sort(), pl.Series(list(put.values()), dtype=pl.Binary))
    return metadata


def _kept(found: pl.DataFrame, statistics: Statistics) -> pl.DataFrame:
    """The entries that this job does not write, as NEW_SCHEMA."""
    names = found["name"].unique()
    others = names.filter(
        pl.Series([not statistics.fields.own(name) for name in names], dtype=pl.Boolean)
    )
    found = found.filter(pl.col("name").is_in(others.implode()))
    values = [
        stored(value) if kind == TEXT else bytes((kind,)) + value
        for kind, value in found.select("kind", "value").iter_rows()
    ]
    keys = [stored(name) for name in found["name"]]
    return pl.DataFrame({"row": found["row"], "key": keys, "value": values}, schema=NEW_SCHEMA)


def _put(old: bytes, new: pl.DataFrame, statistics: Statistics) -> bytes | None:
    """The map `old`, which holds values of other classes, with new entries put into it."""
    result = RawMap(old)
    for key in [
        key for key in result.entries if key[0] == TEXT and statistics.fields.own(_name(key))
    ]:
        del result.entries[key]
    result.entries.update(new.select("key", "value").iter_rows())
    return result.to_bytes()


def _name(key: bytes) -> bytes:
    """The name in a Text key as stored; the length takes a byte, or says how many."""
    return key[2:] if key[1] < 0x80 else key[2 + 0x90 - key[1] :]


def _sums(table: pl.DataFrame, statistics: Statistics) -> list[pl.DataFrame]:
    """What processors add to the metadata of the hosts that the CrawlDb knows."""
    if not statistics.processors:
        return []
    rows, keys, values = [], [], []
    counted = table.with_row_index("row").filter(pl.col("unfetched_now").is_not_null())
    for number, processor in enumerate(statistics.processors):
        columns = [f"{number}:{name}" for name in processor.names]
        for row, *sums in counted.select("row", *columns).iter_rows():
            for name, value in processor.finalize(
                dict(zip(processor.names, sums, strict=True))
            ).items():
                rows.append(row)
                keys.append(stored(name.encode()))
                values.append(stored_value(value))
    return [pl.DataFrame({"row": rows, "key": keys, "value": values}, schema=NEW_SCHEMA)]
