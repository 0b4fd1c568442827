"""The updatehostdb job: updates the HostDb from a CrawlDb, and looks up hosts in the DNS.

The CrawlDb is read once: each batch of entries becomes a few rows per host (`statistics`), which
are sorted by host, partition by partition, and merged with the host's old record (`hostrecords`).
Hosts that are due are looked up, many at a time, by the protocol plugin of http://, as for fetching
(hostdb.num.resolvers.threads says how many; http.dns.* apply). The new HostDb is installed at the
end.

Scores of hosts come from text files, as `nodedumper -scores -group host` writes them:

    line := host TAB score

A URL instead of a host (nodedumper without -group) stands for its host. The first score of a host
counts, as nodedumper writes the highest first. A line whose score is no number is logged and
skipped; Nutch's job fails on it.

Nutch ignores the hostdb.check.* of the configuration: only the command's flags count. Here they
count as well if they are set in a configuration file or by -D; the default `true` does nothing.

Source: org.apache.nutch.hostdb.UpdateHostDb, UpdateHostDbMapper, UpdateHostDbReducer,
ResolverThread, Hadoop's KeyValueTextInputFormat.
"""

from __future__ import annotations

import asyncio
import logging
import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final, Self

import polars as pl

from minutch.clock import Clock
from minutch.conf import Configuration, Settings, made_by, prop
from minutch.cycle.crawldb.seeds import SeedText, seed_texts
from minutch.cycle.crawldb.store import CrawlDb
from minutch.cycle.hostdb.fields import VALUES_SCHEMA, Fields
from minutch.cycle.hostdb.hostrecords import (
    NEVER,
    PURGED_UNKNOWN,
    SCORES_SCHEMA,
    HostChecks,
    HostRange,
    merged,
)
from minutch.cycle.hostdb.statistics import (
    FILTERED,
    HOMEPAGES_SCHEMA,
    HostRules,
    HostStatistics,
    HostTables,
    processors,
)
from minutch.cycle.hostdb.store import HostDb
from minutch.errors import FormatError, StoreError, UrlError
from minutch.hadoop.formats.javahash import float32, parse_float
from minutch.job import Counters, JobContext, Progress
from minutch.plugin.protocolfactory import ProtocolFactory
from minutch.records.hostdatum_columns import HOSTDB_SCHEMA
from minutch.terminal import visible_line
from minutch.urls.hostcolumns import host_names, map_distinct
from minutch.urls.hostname import to_ascii_2008
from minutch.work.tables.compression import Compression, output_compression
from minutch.work.tables.database import data_file
from minutch.work.tables.frame import aligned, decode_keys, encode_keys
from minutch.work.tables.parallel import for_each, number_of_parts, ordered, sorting_memory
from minutch.work.tables.recordfiles import scan
from minutch.work.tables.shuffle import Shuffle

log = logging.getLogger(__name__)

BAD_SCORES: Final = "scores_that_are_no_numbers_total"
SCORES: Final = "host_scores_total"
WRITTEN: Final = "total_hosts_total"
TOO_FEW: Final = "url_limit_not_reached_total"
NOT_ELIGIBLE: Final = "skipped_not_eligible_total"
CHECKED: Final = "checked_hosts_total"
NO_LIMIT: Final = -1


def score_files(path: Path) -> list[Path]:
    """Returns the file itself, or a folder's visible files by name. StoreError if there is none."""
    if path.is_file():
        return [path]
    if not path.is_dir():
        raise StoreError(f"Input path does not exist: {path}")
    files = sorted(
        # FileInputFormat.hiddenFileFilter: _SUCCESS, .part-00000.crc.
        entry
        for entry in path.iterdir()
        if entry.is_file() and entry.name[0] not in "._"
    )
    if not files:
        raise StoreError(f"{path}: no files with scores of hosts")
    return files


def read_scores(path: Path, rules: HostRules, counters: Counters) -> Iterator[pl.DataFrame]:
    """Reads a file's scores as tables of SCORES_SCHEMA, in order. Raises FormatError."""
    for text in seed_texts(path):
        yield _scores(path, text, rules, counters)


def _scores(path: Path, text: SeedText, rules: HostRules, counters: Counters) -> pl.DataFrame:
    lines = decode_keys(
        pl.Series("line", text.data.removesuffix(b"\n").split(b"\n"), dtype=pl.Binary)
    )
    table = lines.to_frame().with_row_index("number", text.number).filter(pl.col("line") != "")
    fields = pl.col("line").str.splitn("\t", 2).struct
    table = table.select(
        "number", name=fields.field("field_0"), text=fields.field("field_1").fill_null("")
    )
    table = table.with_columns(score=map_distinct(table["text"], _score, pl.Float32()))
    bad = table.filter(pl.col("score").is_null())
    for number, value in bad.select("number", "text").iter_rows():
        log.warning(
            "%s, line %d: expected <host> TAB <score>, found %s for the score",
            path,
            number,
            f"'{visible_line(value[:100])}'" if value else "nothing",
        )
    table = table.filter(pl.col("score").is_not_null())
    is_url = table["name"].str.contains("://", literal=True)
    hosts = table["name"].zip_with(~is_url, host_names(table["name"]))
    named = rules.apply(hosts)
    counters.add(BAD_SCORES, len(bad))
    counters.add(FILTERED, named.null_count())
    counters.add(SCORES, len(named) - named.null_count())
    found = pl.DataFrame({"key": encode_keys(named), "score": table["score"]}, schema=SCORES_SCHEMA)
    return found.filter(pl.col("key").is_not_null())


def _score(text: str) -> float | None:
    try:
        score = float32(parse_float(text))
    except ValueError:
        return None
    return None if math.isnan(score) else score


THREADS_PROPERTY = "hostdb.num.resolvers.threads"


class Lookups:
    """A resolver of hosts; a context manager, which closes the protocol plugin."""

    def __init__(self, protocols: ProtocolFactory, at_a_time: int = 25) -> None:
        """Raises ProtocolError if no active plugin fetches http://."""
        self._at_a_time = at_a_time
        self._protocols = protocols
        # Before a CrawlDb is read for hours: without such a plugin nobody can be looked up.
        self._protocol = protocols.get_protocol("http://localhost/")
        self._runner = asyncio.Runner()

    @classmethod
    def from_conf(cls, conf: Configuration) -> Self:
        """Makes a resolver with the active protocol plugins."""
        return cls(ProtocolFactory(conf), max(1, conf.get_int(THREADS_PROPERTY)))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        with self._runner:
            self._runner.run(self._protocols.close())

    def resolve(self, hosts: Sequence[str], on_answer: Callable[[int], object] = int) -> list[bool]:
        """Returns True for each host that has an address; so does an address, and the empty host,
        which is this machine.

        Calls `on_answer` with 1 after each.
        """
        return self._runner.run(self._resolve(hosts, on_answer))

    async def _resolve(
        self, hosts: Sequence[str], on_answer: Callable[[int], object]
    ) -> list[bool]:
        # In the order of hosts, whoever answers first.
        found = [False] * len(hosts)
        waiting = iter(enumerate(hosts))

        async def work() -> None:
            for row, host in waiting:
                # InetAddress.getByName("") is the loopback address.
                found[row] = not host or bool(await self._addresses_of(host))
                on_answer(1)

        await asyncio.gather(*(work() for _ in range(min(self._at_a_time, len(hosts)))))
        return found

    async def _addresses_of(self, host: str) -> list[str]:
        """Looks up a host: an IPv6 address without its brackets, a name in its ASCII form."""
        try:
            name = host.strip("[]") if host.isascii() else to_ascii_2008(host)
            return await self._protocol.addresses_of(name)
        except UrlError:
            return []


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
class HostDbSettings(Settings):
    """The options, completed by the configuration."""

    checks: HostChecks
    filtering: bool = prop("hostdb.url.filter")
    normalize: bool = prop("hostdb.url.normalize")
    url_limit: int = prop("hostdb.url.limit", Configuration.get_long, default=NO_LIMIT)
    parts: int = made_by(number_of_parts)
    compression: Compression = made_by(output_compression)
    memory: int = made_by(sorting_memory)
    """Bytes that rows may take before they are sorted on disk."""
    keep_old: bool = prop("db.preserve.backup")

    @classmethod
    def of(cls, conf: Configuration, options: UpdateHostDbOptions) -> HostDbSettings:
        """Completes the options by hostdb.*. Raises ConfigError."""

        def chosen(kind: str) -> bool:
            name = f"hostdb.check.{kind}"
            # hostdb.check.* are true in nutch-default.xml, and never read by Nutch.
            return kind in options.check or (conf.is_set(name) and conf.get_boolean(name, False))

        threshold = conf.get_int("hostdb.purge.failed.hosts.threshold")
        if threshold < NEVER:
            raise conf.wrong("hostdb.purge.failed.hosts.threshold", "-1 or more", str(threshold))
        checks = HostChecks(
            new=chosen("new"),
            known=chosen("known"),
            failed=chosen("failed"),
            force=options.force or conf.get_boolean("hostdb.force.check"),
            interval=conf.get_long("hostdb.recheck.interval"),
            threshold=threshold,
        )
        found = cls.from_conf(conf, checks=checks)
        return replace(
            found,
            filtering=found.filtering or options.filtering,
            normalize=found.normalize or options.normalize,
            url_limit=found.url_limit if options.url_limit is None else options.url_limit,
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
    settings = HostDbSettings.of(conf, options)
    rules = HostRules.from_conf(conf, normalize=settings.normalize, filtering=settings.filtering)
    statistics = HostStatistics(rules, Fields.from_conf(conf), processors(conf))
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
    db = HostDb(hostdb)
    files = [] if options.tophosts is None else score_files(options.tophosts)
    source = None if options.crawldb is None else CrawlDb(options.crawldb)
    if source is not None:
        source.require_parts()
    # Sources are looked for before the lock makes a folder for a HostDb that can't be.
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


class SortedHosts(ExitStack):
    """All rows about hosts, sorted by host within each partition, in memory or on disk."""

    def __init__(
        self, statistics: HostStatistics, settings: HostDbSettings, *, spill: Path
    ) -> None:
        super().__init__()
        self.statistics = statistics
        schemas = (
            HOSTDB_SCHEMA,
            statistics.counts_schema,
            HOMEPAGES_SCHEMA,
            VALUES_SCHEMA,
            SCORES_SCHEMA,
        )
        # All of them are filled before the first is read.
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

    checks: HostChecks
    lookups: Lookups
    clock: Clock
    progress: Progress

    def check(self, hosts: pl.DataFrame, counters: Counters) -> pl.DataFrame:
        """Looks up the hosts that are due; updates their records, or drops those often failing."""
        # One time for a range: whether a host is due does not hang on how long others took.
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

        # hostdb.num.resolvers.threads is a limit for the job, not for each partition.
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
