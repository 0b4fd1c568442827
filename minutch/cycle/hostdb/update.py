"""The updatehostdb job: updates the HostDb from a CrawlDb, and looks up hosts in the DNS.

The CrawlDb is read once: each batch of entries becomes a few rows per host (`statistics`), which
are sorted by host, partition by partition, and merged with the host's old record (`merged`). Hosts
that are due (`checks`) are looked up, many at a time (`lookups`). The new HostDb is installed at
the end.

Nutch ignores the hostdb.check.* of the configuration: only the command's flags count. Here they
count as well if they are set in a configuration file or by -D; the default `true` does nothing.

Source: org.apache.nutch.hostdb.UpdateHostDb, UpdateHostDbReducer.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import ExitStack, nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import polars as pl

from minutch.clock import Clock
from minutch.conf import Configuration
from minutch.cycle.crawldb.store import CrawlDb
from minutch.cycle.hostdb.checks import NEVER, PURGED_UNKNOWN, Checks
from minutch.cycle.hostdb.fields import VALUES_SCHEMA, Fields
from minutch.cycle.hostdb.hostrecords import SCORES_SCHEMA, HostRange, merged
from minutch.cycle.hostdb.lookups import Lookups
from minutch.cycle.hostdb.processors import processors
from minutch.cycle.hostdb.statistics import (
    FILTERED,
    HOMEPAGES_SCHEMA,
    HostRules,
    HostTables,
    Statistics,
)
from minutch.cycle.hostdb.store import HostDb
from minutch.cycle.hostdb.tophosts import read_scores, score_files
from minutch.errors import ConfigError, FormatError
from minutch.job import Counters, JobContext, Progress
from minutch.records.hostdatum import HOSTDB_SCHEMA
from minutch.work.tables.compression import PLAIN, Compression, output_compression
from minutch.work.tables.frame import aligned, decode_keys, encode_keys
from minutch.work.tables.parallel import for_each, memory_budget, number_of_parts, ordered
from minutch.work.tables.recordfiles import scan
from minutch.work.tables.shuffle import Shuffle
from minutch.work.tables.spannedfile import data_file

log = logging.getLogger(__name__)
WRITTEN: Final = "total_hosts_total"
TOO_FEW: Final = "url_limit_not_reached_total"
NOT_ELIGIBLE: Final = "skipped_not_eligible_total"
CHECKED: Final = "checked_hosts_total"
NO_LIMIT: Final = -1


@dataclass(frozen=True, slots=True)
class UpdateHostDbOptions:
    """Options of the updatehostdb job; hostdb.* apply to those that are False or None."""

    crawldb: Path | None = None
    """A CrawlDb, whose pages are counted by host and status."""
    tophosts: Path | None = None
    """Text files with scores of hosts."""
    check: frozenset[str] = frozenset()
    """The kinds of hosts that are looked up in the DNS: `new`, `known`, `failed`."""
    force: bool = False
    """Whether hosts that are not due yet are looked up as well."""
    filtering: bool = False
    """Whether hosts are dropped if the URL filters reject http://host/."""
    normalize: bool = False
    """Whether http://host/ is normalized for each host."""
    url_limit: int | None = None
    """Number of pages that a host needs to be kept."""


@dataclass(frozen=True, slots=True)
class HostDbSettings:
    """The options, completed by the configuration."""

    checks: Checks = field(default_factory=Checks)
    filtering: bool = False
    normalize: bool = False
    url_limit: int = NO_LIMIT
    parts: int = 1
    compression: Compression = PLAIN
    memory: int = 1 << 28
    """Bytes that rows may take before they are sorted on disk."""
    keep_old: bool = True

    @classmethod
    def from_conf(
        cls, conf: Configuration, options: UpdateHostDbOptions = UpdateHostDbOptions()
    ) -> HostDbSettings:
        """Completes the options by hostdb.*. Raises ConfigError."""

        def chosen(kind: str) -> bool:
            name = f"hostdb.check.{kind}"
            return kind in options.check or (conf.is_set(name) and conf.get_boolean(name, False))

        threshold = conf.get_int("hostdb.purge.failed.hosts.threshold")
        if threshold < NEVER:
            raise ConfigError(
                f"hostdb.purge.failed.hosts.threshold: expected -1 or more, found {threshold}"
            )
        return cls(
            Checks(
                new=chosen("new"),
                known=chosen("known"),
                failed=chosen("failed"),
                force=options.force or conf.get_boolean("hostdb.force.check"),
                interval=conf.get_long("hostdb.recheck.interval"),
                threshold=threshold,
            ),
            options.filtering or conf.get_boolean("hostdb.url.filter"),
            options.normalize or conf.get_boolean("hostdb.url.normalize"),
            conf.get_long("hostdb.url.limit", NO_LIMIT)
            if options.url_limit is None
            else options.url_limit,
            number_of_parts(conf),
            output_compression(conf),
            memory_budget(conf) // 2,
            conf.get_boolean("db.preserve.backup"),
        )


def updatehostdb(
    hostdb: Path, options: UpdateHostDbOptions = UpdateHostDbOptions(), *, context: JobContext
) -> Counters:
    """Updates the HostDb at `hostdb`, which need not exist, from a CrawlDb and files with scores.

    The previous HostDb is kept as `old` unless db.preserve.backup is false; after an error it is
    unchanged. Raises StoreError (a source that does not exist), LockedError, FormatError (damage),
    ConfigError.
    """
    conf, counters = context.conf, Counters()
    settings = HostDbSettings.from_conf(conf, options)
    rules = HostRules.from_conf(conf, normalize=settings.normalize, filtering=settings.filtering)
    statistics = Statistics(rules, Fields.from_conf(conf), processors(conf))
    _log_start(hostdb, options, settings)
    db = HostDb(hostdb)
    files = [] if options.tophosts is None else score_files(options.tophosts)
    source = None if options.crawldb is None else CrawlDb(options.crawldb)
    if source is not None:
        source.require_parts()
    with (
        db.lock(),
        SortedHosts(statistics, settings, spill=db.path) as hosts,
        context.progress("updatehostdb", None if source is None else source.estimate) as progress,
        Lookups.from_conf(conf) if settings.checks.any else nullcontext() as lookups,
    ):
        hosts.read_before(db, rules, counters)
        if source is not None:
            hosts.read_crawldb(source, counters, progress)
        for file in files:
            hosts.read_scores(file, rules, counters)
        checker = None
        if lookups is not None:
            checker = _Checker(settings.checks, lookups, context.clock, progress)
        has_crawldb = source is not None
        counters.merge(_write(db, hosts, settings, checker, has_crawldb=has_crawldb))
    log.info("UpdateHostDb: finished")
    return counters


def _log_start(hostdb: Path, options: UpdateHostDbOptions, settings: HostDbSettings) -> None:
    log.info("UpdateHostDb: hostdb: %s", hostdb)
    for name, path in (("crawldb", options.crawldb), ("tophosts", options.tophosts)):
        if path is not None:
            log.info("UpdateHostDb: %s: %s", name, path)
    chosen = settings.checks
    for is_on, text in (
        (chosen.failed, "checking failed hosts"),
        (chosen.new, "checking new hosts"),
        (chosen.known, "checking known hosts"),
        (chosen.force, "forced check"),
        (settings.filtering, "filtering enabled"),
        (settings.normalize, "normalizing enabled"),
    ):
        if is_on:
            log.info("UpdateHostDb: %s", text)
    if settings.url_limit != NO_LIMIT:
        log.info("UpdateHostDb: URL limit set to %d", settings.url_limit)
    log.info("UpdateHostDb: starting")


class SortedHosts(ExitStack):
    """All rows about hosts, sorted by host within each partition, in memory or on disk."""

    def __init__(self, statistics: Statistics, settings: HostDbSettings, *, spill: Path) -> None:
        super().__init__()
        self.statistics = statistics
        schemas = (
            HOSTDB_SCHEMA,
            statistics.counts_schema,
            HOMEPAGES_SCHEMA,
            VALUES_SCHEMA,
            SCORES_SCHEMA,
        )
        budget = settings.memory // len(schemas)
        self._shuffles = [
            self.enter_context(Shuffle(settings.parts, schema, budget=budget, spill=spill))
            for schema in schemas
        ]

    def read_before(self, db: HostDb, rules: HostRules, counters: Counters) -> None:
        """Adds the records of the HostDb."""
        for index in range(len(db.parts())):
            for frame in db.scan_part(index):
                names = rules.apply(decode_keys(frame["key"]))
                counters.add(FILTERED, names.null_count())
                renamed = frame.with_columns(key=encode_keys(names))
                self._shuffles[0].add(renamed.filter(pl.col("key").is_not_null()))

    def read_crawldb(self, source: CrawlDb, counters: Counters, progress: Progress) -> None:
        """Adds the statistics of a CrawlDb."""
        for part in source.require_parts():

            def count(entries: pl.DataFrame, part: Path = part) -> HostTables:
                try:
                    return self.statistics.of(entries)
                except FormatError as exc:
                    raise exc.within(data_file(part)) from exc

            for found in ordered(count, scan(part)):
                tables = (found.counts, found.homepages, found.values)
                for shuffle, table in zip(self._shuffles[1:4], tables, strict=True):
                    shuffle.add(table)
                counters.merge(found.counters)
                progress.advance(sum(found.counters.values()))

    def read_scores(self, file: Path, rules: HostRules, counters: Counters) -> None:
        """Adds the scores in a file."""
        for table in read_scores(file, rules, counters):
            self._shuffles[-1].add(table)

    def ranges(self, part: int) -> Iterator[HostRange]:
        """Reads a partition by ranges of hosts; each partition can be read once."""
        for tables in aligned(*(shuffle.sorted(part) for shuffle in self._shuffles)):
            yield HostRange(*tables)


@dataclass(frozen=True, slots=True)
class _Checker:
    """The look-ups of hosts that are due."""

    checks: Checks
    lookups: Lookups
    clock: Clock
    progress: Progress

    def check(self, hosts: pl.DataFrame, counters: Counters) -> pl.DataFrame:
        """Looks up the hosts that are due and updates their records; drops those that have failed
        too often.
        """
        now = self.clock.now()
        due = self.checks.due(hosts, now)
        counters.add(NOT_ELIGIBLE, len(hosts) - int(due.sum()))
        asked = hosts.filter(due)
        if asked.is_empty():
            return hosts
        self.progress.expect(lambda: len(asked))
        names = decode_keys(asked["key"]).to_list()
        found = pl.Series(self.lookups.resolve(names, self.progress.advance), dtype=pl.Boolean)
        after = self.checks.after(asked, found, now)
        counters.add(CHECKED, len(after))
        for outcome, count in after["outcome"].value_counts().iter_rows():
            counters.add(f"{outcome}_total", count)
        for host, outcome in zip(decode_keys(after["key"]), after["outcome"], strict=True):
            log.debug("%s: %s", host, outcome)
        kept = after.filter(pl.col("outcome") != PURGED_UNKNOWN).drop("outcome")
        return pl.concat([hosts.filter(~due), kept]).sort("key")


def _write(
    db: HostDb,
    sources: SortedHosts,
    settings: HostDbSettings,
    checker: _Checker | None,
    *,
    has_crawldb: bool,
) -> Counters:
    """Writes the new HostDb; partitions one after the other if hosts are looked up."""
    total = Counters({WRITTEN: 0})
    with db.replacement(keep_old=settings.keep_old) as directory:

        def write_part(part: int) -> Counters:
            counters = Counters()
            with db.part_writer(directory, part, settings.compression) as writer:
                for known in sources.ranges(part):
                    hosts = merged(known, sources.statistics, has_crawldb=has_crawldb)
                    hosts = _large_enough(hosts, settings.url_limit, counters)
                    if checker is not None:
                        hosts = checker.check(hosts, counters)
                    writer.write(hosts)
                    counters.add(WRITTEN, len(hosts))
            return counters

        threads = 0 if checker is None else 1
        for counted in for_each(write_part, range(settings.parts), threads=threads):
            total.merge(counted)
    return total


def _large_enough(hosts: pl.DataFrame, limit: int, counters: Counters) -> pl.DataFrame:
    """Drops the hosts with fewer than `limit` pages."""
    if limit == NO_LIMIT:
        return hosts
    pages = pl.sum_horizontal(
        "unfetched", "fetched", "gone", "redir_perm", "redir_temp", "not_modified"
    )
    kept = hosts.filter(pages >= limit)
    counters.add(TOO_FEW, len(hosts) - len(kept))
    return kept
