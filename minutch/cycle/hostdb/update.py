"""updatehostdb: bring what the CrawlDb knows of hosts into the HostDb, and look hosts up in the
DNS.

One walk over the CrawlDb: each stretch of it becomes a few rows per host (`statistics`), which are
sorted by host, partition by partition, and put together with the record that the host had
(`merged`). Hosts that are to be looked up (`checks`) are asked for many at a time (`lookups`).
Nothing is changed before all is done.

Nutch takes the hostdb.check.* of the configuration for nothing: only the switches count. Here they
count, too, where somebody has set them; the shipped `true` alone asks nobody.

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

from minutch.conf import Configuration
from minutch.cycle.crawldb.store import CrawlDb
from minutch.cycle.hostdb import checks
from minutch.cycle.hostdb.checks import Checks
from minutch.cycle.hostdb.fields import VALUES_SCHEMA, Fields
from minutch.cycle.hostdb.hostrecords import SCORES_SCHEMA, Known, merged
from minutch.cycle.hostdb.lookups import Lookups
from minutch.cycle.hostdb.processors import processors
from minutch.cycle.hostdb.statistics import FILTERED, HOMEPAGES_SCHEMA, Found, HostRules, Statistics
from minutch.cycle.hostdb.store import HostDb
from minutch.cycle.hostdb.tophosts import read_scores, score_files
from minutch.errors import ConfigError, FormatError
from minutch.job import Counters, JobContext, Progress
from minutch.records.hostdatum.columns import HOSTDB_SCHEMA
from minutch.work.tables.compression import output_compression
from minutch.work.tables.crawldata import scan
from minutch.work.tables.frame import decode_keys, encode_keys
from minutch.work.tables.merge import aligned
from minutch.work.tables.parallel import for_each, memory_budget, number_of_parts, ordered
from minutch.work.tables.shuffle import Shuffle
from minutch.work.tables.spans import data_file

log = logging.getLogger(__name__)
WRITTEN: Final = "total_hosts_total"
TOO_FEW: Final = "url_limit_not_reached_total"
NOT_ELIGIBLE: Final = "skipped_not_eligible_total"
CHECKED: Final = "checked_hosts_total"
NO_LIMIT: Final = -1


@dataclass(frozen=True, slots=True)
class UpdateHostDbOptions:
    """What updatehostdb is asked for; what is False or None is left to hostdb.*."""

    crawldb: Path | None = None
    """A CrawlDb, whose pages are counted by host and status."""
    tophosts: Path | None = None
    """Text files with scores of hosts."""
    check: frozenset[str] = frozenset()
    """Hosts to look up in the DNS: `new`, `known`, `failed`."""
    force: bool = False
    """Whether hosts are looked up that are not due yet, too."""
    filtering: bool = False
    """Whether hosts are left out whose http://host/ the URL filters reject."""
    normalize: bool = False
    """Whether http://host/ is normalized for each host."""
    url_limit: int | None = None
    """Pages that a host needs to be kept."""


@dataclass(frozen=True, slots=True)
class HostDbSettings:
    """What the options and hostdb.* say."""

    checks: Checks = field(default_factory=Checks)
    filtering: bool = False
    normalize: bool = False
    url_limit: int = NO_LIMIT

    @classmethod
    def from_conf(
        cls, conf: Configuration, options: UpdateHostDbOptions = UpdateHostDbOptions()
    ) -> HostDbSettings:
        """Adds the options to what hostdb.* say. Raises ConfigError."""

        def chosen(kind: str) -> bool:
            name = f"hostdb.check.{kind}"
            return kind in options.check or (_is_set(conf, name) and conf.get_boolean(name, False))

        threshold = conf.get_int("hostdb.purge.failed.hosts.threshold", checks.NEVER)
        if threshold < checks.NEVER:
            raise ConfigError(
                f"hostdb.purge.failed.hosts.threshold: expected -1 or more, found {threshold}"
            )
        return cls(
            Checks(
                new=chosen("new"),
                known=chosen("known"),
                failed=chosen("failed"),
                force=options.force or conf.get_boolean("hostdb.force.check", False),
                interval=conf.get_long("hostdb.recheck.interval", 86_400_000),
                threshold=threshold,
            ),
            options.filtering or conf.get_boolean("hostdb.url.filter", False),
            options.normalize or conf.get_boolean("hostdb.url.normalize", False),
            conf.get_long("hostdb.url.limit", NO_LIMIT)
            if options.url_limit is None
            else options.url_limit,
        )


def _is_set(conf: Configuration, name: str) -> bool:
    """Whether somebody has set a property, beyond the shipped defaults."""
    return Path(conf.source(name) or "").name != "nutch-default.xml"


def updatehostdb(
    hostdb: Path, options: UpdateHostDbOptions = UpdateHostDbOptions(), *, context: JobContext
) -> Counters:
    """Update the HostDb at `hostdb`, which need not exist, from a CrawlDb and files with scores.

    The HostDb before stays as `old` unless db.preserve.backup is false; on an error nothing has
    changed. Raises StoreError (a source that does not exist), LockedError, FormatError (damage),
    ConfigError.
    """
    conf, counters = context.conf, Counters()
    settings, crawldb, tophosts = (
        HostDbSettings.from_conf(conf, options),
        options.crawldb,
        options.tophosts,
    )
    rules = HostRules(conf, normalize=settings.normalize, filtering=settings.filtering)
    statistics = Statistics(rules, Fields.from_conf(conf), processors(conf))
    _log_start(hostdb, crawldb, tophosts, settings)
    db = HostDb(hostdb)
    files = [] if tophosts is None else score_files(tophosts)
    source = None if crawldb is None else CrawlDb(crawldb)
    if source is not None:
        source.require_parts()
    with (
        db.lock(),
        Sorted(conf, statistics, db.path) as known,
        context.progress("updatehostdb", None if source is None else source.estimate) as progress,
    ):
        known.read_before(db, rules, counters)
        if source is not None:
            known.read_crawldb(source, counters, progress)
        for file in files:
            known.read_scores(file, rules, counters)
        counters.merge(
            _write(db, known, settings, context, progress, has_crawldb=source is not None)
        )
    log.info("UpdateHostDb: finished")
    return counters


def _log_start(
    hostdb: Path, crawldb: Path | None, scores: Path | None, options: HostDbSettings
) -> None:
    log.info("UpdateHostDb: hostdb: %s", hostdb)
    for name, path in (("crawldb", crawldb), ("tophosts", scores)):
        if path is not None:
            log.info("UpdateHostDb: %s: %s", name, path)
    chosen = options.checks
    for is_on, text in (
        (chosen.failed, "checking failed hosts"),
        (chosen.new, "checking new hosts"),
        (chosen.known, "checking known hosts"),
        (chosen.force, "forced check"),
        (options.filtering, "filtering enabled"),
        (options.normalize, "normalizing enabled"),
    ):
        if is_on:
            log.info("UpdateHostDb: %s", text)
    if options.url_limit != NO_LIMIT:
        log.info("UpdateHostDb: URL limit set to %d", options.url_limit)
    log.info("UpdateHostDb: starting")


class Sorted(ExitStack):
    """All that is known of hosts, sorted by host, partition by partition, within a bound of
    memory.
    """

    def __init__(self, conf: Configuration, statistics: Statistics, spill: Path) -> None:
        super().__init__()
        self.parts = number_of_parts(conf)
        self.statistics = statistics
        schemas = (
            HOSTDB_SCHEMA,
            statistics.counts_schema,
            HOMEPAGES_SCHEMA,
            VALUES_SCHEMA,
            SCORES_SCHEMA,
        )
        budget = memory_budget(conf) // 2 // len(schemas)
        self._shuffles = [
            self.enter_context(Shuffle(self.parts, schema, budget=budget, spill=spill))
            for schema in schemas
        ]

    def read_before(self, db: HostDb, rules: HostRules, counters: Counters) -> None:
        """Take in the HostDb."""
        for index in range(len(db.parts())):
            for frame in db.scan_part(index):
                names = rules.apply(decode_keys(frame["key"]))
                counters.add(FILTERED, names.null_count())
                renamed = frame.with_columns(key=encode_keys(names))
                self._shuffles[0].add(renamed.filter(pl.col("key").is_not_null()))

    def read_crawldb(self, source: CrawlDb, counters: Counters, progress: Progress) -> None:
        """Take in what a CrawlDb says of hosts."""
        for part in source.require_parts():

            def count(entries: pl.DataFrame, part: Path = part) -> Found:
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
        """Take in scores of hosts."""
        for table in read_scores(file, rules, counters):
            self._shuffles[-1].add(table)

    def known(self, part: int) -> Iterator[Known]:
        """What is known of the hosts of a partition, by ranges of hosts; each part once."""
        for tables in aligned(*(shuffle.sorted(part) for shuffle in self._shuffles)):
            yield Known(*tables)


def _write(
    db: HostDb,
    known: Sorted,
    options: HostDbSettings,
    context: JobContext,
    progress: Progress,
    *,
    has_crawldb: bool,
) -> Counters:
    """Write the new HostDb. Hosts are looked up one partition after the other."""
    total = Counters({WRITTEN: 0})
    asking = Lookups(context.conf) if options.checks.any else nullcontext()
    keep_old, compression = (
        context.conf.get_boolean("db.preserve.backup", True),
        output_compression(context.conf),
    )
    with asking as lookups, db.replacement(keep_old=keep_old) as directory:

        def write_part(part: int) -> Counters:
            counters = Counters()
            with db.part_writer(directory, part, compression) as writer:
                for range_of_hosts in known.known(part):
                    hosts = merged(range_of_hosts, known.statistics, has_crawldb=has_crawldb)
                    hosts = _large_enough(hosts, options.url_limit, counters)
                    if lookups is not None:
                        now = context.clock.now()
                        hosts = _checked(hosts, options.checks, lookups, now, counters, progress)
                    writer.write(hosts)
                    counters.add(WRITTEN, len(hosts))
            return counters

        for counted in for_each(
            write_part, range(known.parts), threads=0 if lookups is None else 1
        ):
            total.merge(counted)
    return total


def _large_enough(hosts: pl.DataFrame, limit: int, counters: Counters) -> pl.DataFrame:
    """The hosts with at least `limit` pages."""
    if limit == NO_LIMIT:
        return hosts
    pages = pl.sum_horizontal(
        "unfetched", "fetched", "gone", "redir_perm", "redir_temp", "not_modified"
    )
    kept = hosts.filter(pages >= limit)
    counters.add(TOO_FEW, len(hosts) - len(kept))
    return kept


def _checked(
    hosts: pl.DataFrame,
    wanted: Checks,
    lookups: Lookups,
    now: int,
    counters: Counters,
    progress: Progress,
) -> pl.DataFrame:
    """The hosts after those that are due were looked up, without those that are dropped."""
    due = wanted.due(hosts, now)
    counters.add(NOT_ELIGIBLE, len(hosts) - int(due.sum()))
    asked = hosts.filter(due)
    if asked.is_empty():
        return hosts
    progress.expect(lambda: len(asked))
    found = pl.Series(
        lookups.resolve(decode_keys(asked["key"]).to_list(), progress.advance), dtype=pl.Boolean
    )
    after = wanted.after(asked, found, now)
    counters.add(CHECKED, len(after))
    for outcome, count in after["outcome"].value_counts().iter_rows():
        counters.add(f"{outcome}_total", count)
    for host, outcome in zip(decode_keys(after["key"]), after["outcome"], strict=True):
        log.debug("%s: %s", host, outcome)
    kept = after.filter(pl.col("outcome") != checks.PURGED_UNKNOWN).drop("outcome")
    return pl.concat([hosts.filter(~due), kept]).sort("key")
