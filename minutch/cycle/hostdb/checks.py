"""Decides which hosts are looked up in the DNS, and how an answer changes their records. Pure: no
I/O.

    new      never looked up (no date of a last check)
    known    the last look-up found an address: due again after hostdb.recheck.interval
    failed   the last n look-ups found none: due again after n times that interval

A host that failed before and fails more often than hostdb.purge.failed.hosts.threshold is dropped.
Nutch has both comparisons reversed: it looks up hosts that are not due, and drops those below the
threshold.

Source: org.apache.nutch.hostdb.UpdateHostDbReducer.shouldCheck, isEligibleForCheck; ResolverThread.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import polars as pl

NEW_KNOWN: Final = "new_known_host"
REDISCOVERED: Final = "rediscovered_host"
EXISTING_KNOWN: Final = "existing_known_host"
NEW_UNKNOWN: Final = "new_unknown_host"
EXISTING_UNKNOWN: Final = "existing_unknown_host"
PURGED_UNKNOWN: Final = "purged_unknown_host"
OUTCOMES: Final = (
    NEW_KNOWN,
    REDISCOVERED,
    EXISTING_KNOWN,
    NEW_UNKNOWN,
    EXISTING_UNKNOWN,
    PURGED_UNKNOWN,
)
"""The results of a look-up, named as in Nutch."""
NEVER: Final = -1


@dataclass(frozen=True, slots=True)
class Checks:
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
            .when(is_new)
            .then(1)
            .otherwise(failures + 1)
            .cast(pl.Int64),
            last_check=pl.lit(now, pl.Int64),
        )
