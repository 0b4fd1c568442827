"""Merges the old record of a host, its counts and its score into the new record. Pure: no I/O.

    before                        its record in the HostDb, if it has one
    counts, homepages, values     its statistics from the CrawlDb (see `statistics`), if one is read
    scores                        its first score in -tophosts, if that is above 0

Counts, failed connections and the metadata that this job writes are replaced if a CrawlDb is read,
and kept otherwise. A home page is kept until there is another. Nutch loses the counts if no CrawlDb
is read, adds up failed connections from run to run (if the old record happens to come first), keeps
values that no page has any longer, and never stores a home page, as HostDatum.hasHomepageUrl
returns the opposite.

Source: org.apache.nutch.hostdb.UpdateHostDbReducer.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import polars as pl

from minutch.cycle.hostdb.fields import NEW_SCHEMA
from minutch.cycle.hostdb.statistics import FAILURES, STATUSES, Statistics
from minutch.records.hostdatum import COUNTS, HOSTDB_SCHEMA
from minutch.records.metadata_columns import (
    FLOAT,
    INT,
    LONG,
    TEXT,
    entries,
    maps_of,
    stored,
    stored_value,
)
from minutch.records.rawmap import RawMap

SCORES_SCHEMA: Final = pl.Schema({"key": pl.Binary(), "score": pl.Float32()})

_PLAIN: Final = (TEXT, INT, LONG, FLOAT)
_FROM_CRAWLDB: Final = (*STATUSES, FAILURES)


@dataclass(frozen=True, slots=True)
class HostRange:
    """All rows about a range of hosts; a host may have several in each table."""

    before: pl.DataFrame
    counts: pl.DataFrame
    homepages: pl.DataFrame
    values: pl.DataFrame
    scores: pl.DataFrame


def merged(known: HostRange, statistics: Statistics, *, has_crawldb: bool) -> pl.DataFrame:
    """Returns one row of HOSTDB_SCHEMA for each host, sorted by key. Raises FormatError for damaged
    metadata.
    """
    before = known.before.unique("key", keep="last")
    counts = known.counts.group_by("key").agg(pl.all().sum())
    ranked = known.homepages.sort("rank", maintain_order=True)
    homepages = ranked.unique("key", keep="last", maintain_order=True).select("key", "homepage_url")
    scores = known.scores.unique("key", keep="first", maintain_order=True).rename(
        {"score": "new_score"}
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
            pl.when(pl.col("new_score") > 0)
            .then(pl.col("new_score"))
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
    """Merges the old metadata of each host with that from the CrawlDb."""
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
    other = found.filter(~pl.col("kind").is_in(_PLAIN))["row"].unique()
    kept = _kept(found.filter(~pl.col("row").is_in(other.implode())), statistics)
    together = (
        pl.concat([kept, *new])
        .group_by("row", "key", maintain_order=True)
        .agg(pl.col("value").last())
    )
    metadata = maps_of(together.sort("row", maintain_order=True), len(table)).alias("metadata")
    if len(other):
        updated = {
            row: _updated(old[row], together.filter(pl.col("row") == row), statistics)
            for row in other.sort()
        }
        metadata = metadata.scatter(
            other.sort(), pl.Series(list(updated.values()), dtype=pl.Binary)
        )
    return metadata


def _kept(found: pl.DataFrame, statistics: Statistics) -> pl.DataFrame:
    """Selects the entries that this job does not write, as NEW_SCHEMA."""
    names = found["name"].unique()
    others = names.filter(
        pl.Series([not statistics.fields.writes(name) for name in names], dtype=pl.Boolean)
    )
    found = found.filter(pl.col("name").is_in(others.implode()))
    values = [
        stored(value) if kind == TEXT else bytes((kind,)) + value
        for kind, value in found.select("kind", "value").iter_rows()
    ]
    keys = [stored(name) for name in found["name"]]
    return pl.DataFrame({"row": found["row"], "key": keys, "value": values}, schema=NEW_SCHEMA)


def _updated(old: bytes, new: pl.DataFrame, statistics: Statistics) -> bytes | None:
    """Updates the map `old`, which holds values of other classes, with new entries."""
    result = RawMap(old)
    for key in [
        key for key in result.entries if key[0] == TEXT and statistics.fields.writes(_name(key))
    ]:
        del result.entries[key]
    result.entries.update(new.select("key", "value").iter_rows())
    return result.to_bytes()


def _name(key: bytes) -> bytes:
    """Returns the name in a stored Text key, without its length of one or more bytes."""
    return key[2:] if key[1] < 0x80 else key[2 + 0x90 - key[1] :]


def _sums(table: pl.DataFrame, statistics: Statistics) -> list[pl.DataFrame]:
    """Makes the entries of the processors for the hosts of the CrawlDb."""
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
