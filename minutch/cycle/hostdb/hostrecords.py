"""Decides what becomes of a host's record: its old one, counts and score are merged, and a look-up
in the DNS may be due. Pure: no I/O.

    before                        its record in the HostDb, if it has one
    counts, homepages, values     its statistics from the CrawlDb (see `statistics`), if one is read
    scores                        its first score in -tophosts, if that is above 0

Counts, failed connections and the metadata that this job writes are replaced if a CrawlDb is read,
and kept otherwise. A home page is kept until there is another. Nutch loses the counts if no CrawlDb
is read, adds up failed connections from run to run (if the old record happens to come first), keeps
values that no page has any longer, and never stores a home page, as HostDatum.hasHomepageUrl
returns the opposite.

Hosts are looked up

    new      never looked up (no date of a last check)
    known    the last look-up found an address: due again after hostdb.recheck.interval
    failed   the last n look-ups found none: due again after n times that interval

A host that failed before and fails more often than hostdb.purge.failed.hosts.threshold is dropped.
Nutch has both comparisons reversed: it looks up hosts that are not due, and drops those below the
threshold.

Source: org.apache.nutch.hostdb.UpdateHostDbReducer, its shouldCheck and isEligibleForCheck;
ResolverThread.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import polars as pl

from minutch.cycle.hostdb.fields import NEW_SCHEMA
from minutch.cycle.hostdb.statistics import FAILURES, STATUSES, HostStatistics
from minutch.records.hostdatum import COUNTS
from minutch.records.hostdatum_columns import HOSTDB_SCHEMA
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
NEW_KNOWN: Final = "new_known_host"
REDISCOVERED: Final = "rediscovered_host"
EXISTING_KNOWN: Final = "existing_known_host"
NEW_UNKNOWN: Final = "new_unknown_host"
EXISTING_UNKNOWN: Final = "existing_unknown_host"
PURGED_UNKNOWN: Final = "purged_unknown_host"
OUTCOMES: Final = (
    NEW_KNOWN, REDISCOVERED, EXISTING_KNOWN, NEW_UNKNOWN, EXISTING_UNKNOWN, PURGED_UNKNOWN,
)  # fmt: skip
"""The results of a look-up, named as in Nutch."""
NEVER: Final = -1


@dataclass(frozen=True, slots=True)
class HostRange:
    """All rows about a range of hosts; a host may have several in each table."""

    before: pl.DataFrame
    counts: pl.DataFrame
    homepages: pl.DataFrame
    values: pl.DataFrame
    scores: pl.DataFrame


def merged(known: HostRange, statistics: HostStatistics, *, has_crawldb: bool) -> pl.DataFrame:
    """Returns a row of HOSTDB_SCHEMA for each host, sorted by key. Raises FormatError."""
    # Several only where a normalizer gives two hosts one name.
    before = known.before.unique("key", keep="last")
    counts = known.counts.group_by("key").agg(pl.all().sum())
    ranked = known.homepages.sort("rank", maintain_order=True)
    homepages = ranked.unique("key", keep="last", maintain_order=True).select("key", "homepage_url")
    # nodedumper writes the highest first.
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
        # Also for hosts without a page now: their counts are null, and so 0 below.
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
    table: pl.DataFrame, values: pl.DataFrame, statistics: HostStatistics, *, has_crawldb: bool
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
    # Values of other classes are copied as they are, by the row: few hosts have any.
    other = found.filter(~pl.col("kind").is_in(_PLAIN))["row"].unique()
    kept = _kept(found.filter(~pl.col("row").is_in(other.implode())), statistics)
    together = (
        pl.concat([kept, *new])
        .group_by("row", "key", maintain_order=True)
        # The new value of a key, at the place that the old one had in the map.
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


def _kept(found: pl.DataFrame, statistics: HostStatistics) -> pl.DataFrame:
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


def _updated(old: bytes, new: pl.DataFrame, statistics: HostStatistics) -> bytes | None:
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
    # WritableUtils: a length below 128 is one byte, others say in the first how many follow.
    return key[2:] if key[1] < 0x80 else key[2 + 0x90 - key[1] :]


def _sums(table: pl.DataFrame, statistics: HostStatistics) -> list[pl.DataFrame]:
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


@dataclass(frozen=True, slots=True)
class HostChecks:
    """The kinds of hosts that are looked up; `interval` is in ms, `threshold` may be NEVER."""

    new: bool = False
    known: bool = False
    failed: bool = False
    force: bool = False
    interval: int = 86_400_000
    threshold: int = NEVER

    @property
    def any(self) -> bool:
        """True if any host may be looked up."""
        return self.new or self.known or self.failed

    def due(self, hosts: pl.DataFrame, now: int) -> pl.Series:
        """Decides for each host (HOSTDB_SCHEMA) whether it is looked up at `now` (ms)."""
        failures = pl.col("dns_failures")
        is_new = pl.col("last_check") == 0
        # UpdateHostDbReducer.isEligibleForCheck, which multiplies by the failures, too.
        again = pl.col("last_check") + self.interval * pl.max_horizontal(failures, 1) <= now
        wanted = pl.when(failures > 0).then(pl.lit(self.failed)).otherwise(pl.lit(self.known))
        return hosts.select(
            pl.when(is_new).then(pl.lit(self.new)).otherwise(wanted & (again | self.force))
        ).to_series()

    def after(self, hosts: pl.DataFrame, found: pl.Series, now: int) -> pl.DataFrame:
        """Updates the records of hosts that were looked up at `now`, with a column `outcome` (of
        OUTCOMES); hosts to be dropped are included.

        `found` is True for each host that has an address.
        """
        failures = pl.col("dns_failures")
        is_new, was_lost = pl.col("last_check") == 0, failures > 0
        is_over = pl.lit(self.threshold != NEVER) & (failures + 1 > self.threshold)
        known = pl.when(is_new).then(pl.lit(NEW_KNOWN)).when(was_lost).then(pl.lit(REDISCOVERED))
        lost = pl.when(is_new).then(pl.lit(NEW_UNKNOWN)).when(is_over).then(pl.lit(PURGED_UNKNOWN))
        return hosts.with_columns(
            outcome=pl.when(found)
            .then(known.otherwise(pl.lit(EXISTING_KNOWN)))
            .otherwise(lost.otherwise(pl.lit(EXISTING_UNKNOWN))),
            dns_failures=pl.when(found)
            .then(0)
            # 1 whatever was there: ResolverThread sets it for a host that it sees first.
            .when(is_new)
            .then(1)
            .otherwise(failures + 1)
            .cast(pl.Int64),
            last_check=pl.lit(now, pl.Int64),
        )
