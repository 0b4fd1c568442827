"""sitemap: puts the URLs of sitemaps into the CrawlDb, and keeps what they list beside it.

Sitemaps are those of a list of URLs, and those of hosts: in that list, or in a HostDb. See
`sitemapfetch` for how they are found and fetched, `sitemapfile` for what they may be,
`sitemapentries` for what becomes of their URLs.

The folder `sitemaps` beside the CrawlDb has Parquet files of sitemap, url, lastmod and priority. A
run replaces the rows of the sitemaps that it has read, and leaves those of others.

Source: org.apache.nutch.util.SitemapProcessor.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from threading import Lock
from typing import Final

import polars as pl

from minutch import eventloops
from minutch.clock import SteadyClock
from minutch.cycle.crawldb.partitions import EntryFilter, EntrySources, rewrite
from minutch.cycle.crawldb.seeds import read_seeds, seed_files
from minutch.cycle.crawldb.store import CrawlDb
from minutch.cycle.fetch.frontier.hostmemory import state_folder_of
from minutch.cycle.parse.mime import MimeUtil
from minutch.cycle.sitemap import sitemapfetch
from minutch.cycle.sitemap.sitemapentries import NEW, SITEMAP_SCHEMA, EntrySettings, entries, merge
from minutch.cycle.sitemap.sitemapfetch import SitemapFetcher, SitemapSettings, Turns
from minutch.cycle.sitemap.sitemapurls import Sitemap
from minutch.hadoop.formats.batch import Batch, string_column
from minutch.job import Counters, JobContext
from minutch.plugin.chains import SCOPE_DEFAULT
from minutch.plugin.protocolfactory import ProtocolFactory
from minutch.plugin.urlrules import UrlRules
from minutch.records.hostdatum import HostDatum
from minutch.work.engine import engine_of
from minutch.work.tables import spans
from minutch.work.tables.database import Database, OutputSettings, part_name
from minutch.work.tables.frame import decode_keys
from minutch.work.tables.parallel import number_of_parts, sorting_memory
from minutch.work.tables.recordfiles import CRAWL_DATUM
from minutch.work.tables.shuffle import Shuffle

LISTING_SCHEMA: Final = pl.Schema(
    {
        "sitemap": pl.String(),
        "url": pl.String(),
        "lastmod": pl.Datetime("ms", "UTC"),
        "priority": pl.Float32(),
    }
)
LISTINGS: Final = "sitemaps"
"""The folder beside the CrawlDb."""
_ROWS: Final = 500_000
"""Rows of a file, at least."""
log = logging.getLogger(__name__)
FILTER_PROPERTY: Final = "sitemap.url.filter"
NORMALIZE_PROPERTY: Final = "sitemap.url.normalize"
ALLOWLIST_PROPERTY: Final = "http.robot.rules.allowlist"
DEFAULT_THREADS: Final = 8
LISTED: Final = "URLs listed"
LEFT_OUT: Final = "URLs that are none, or not below the sitemap's folder"


class SitemapListing(Database):
    """The listings in a folder."""

    def parts(self) -> list[Path]:
        return sorted(self.current.glob("*.parquet"))

    def scan(self) -> pl.LazyFrame:
        """Returns all rows."""
        parts = self.parts()
        return pl.scan_parquet(parts) if parts else pl.LazyFrame(schema=LISTING_SCHEMA)


class ListingWriter:
    """Takes the sitemaps of a run, from several threads, into a new folder."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._files = 0
        self._rows: list[pl.DataFrame] = []
        self._count = 0
        self._read: set[str] = set()
        self._lock = Lock()

    def add(self, sitemap: Sitemap, urls: pl.Series) -> None:
        """Adds a sitemap; `urls` are its URLs as the CrawlDb has them, null where it has not."""
        listed = sitemap.urls
        raw = pl.Series([page.url for page in listed], dtype=pl.String)
        rows = pl.DataFrame(
            [
                pl.Series("sitemap", [sitemap.listed.url], pl.String).new_from_index(
                    0, len(listed)
                ),
                urls.zip_with(urls.is_not_null(), raw).alias("url"),
                pl.Series("lastmod", [page.modified for page in listed], pl.Int64).cast(
                    LISTING_SCHEMA["lastmod"]
                ),
                pl.Series("priority", [page.priority for page in listed], pl.Float32),
            ]
        )
        with self._lock:
            self._read.add(sitemap.listed.url)
            self._rows.append(rows)
            self._count += len(rows)
            if self._count >= _ROWS:
                self._flush()

    def finish(self, before: SitemapListing) -> None:
        """Writes what is left, and the rows of sitemaps that were not read now."""
        self._flush()
        # Also of sitemaps that failed now: what they listed is the last that is known.
        others = before.scan().filter(~pl.col("sitemap").is_in(list(self._read)))
        others.sink_parquet(self._next())

    def _flush(self) -> None:
        if self._rows:
            pl.concat(self._rows).write_parquet(self._next())
            self._rows, self._count = [], 0

    def _next(self) -> Path:
        self._files += 1
        return self._folder / f"{part_name(self._files - 1)}.parquet"


@dataclass(frozen=True, slots=True)
class SitemapOptions:
    """Options of sitemap."""

    hostdb: Path | None = None
    """A HostDb, whose hosts' sitemaps are read."""
    urls: Path | None = None
    """A file or folder with URLs of sitemaps, or host names, one per line."""
    threads: int = DEFAULT_THREADS
    """Sitemaps fetched at the same time."""
    force: bool = False
    """Whether another process's lock is passed over."""
    strict: bool = True
    """Whether only URLs below a sitemap's own folder count."""
    filtering: bool = True
    """Whether the URL filters apply (sitemap.url.filter can turn them off)."""
    normalize: bool = True
    """Whether the URL normalizers apply (sitemap.url.normalize can turn them off)."""


def sitemap(
    crawldb: Path, options: SitemapOptions = SitemapOptions(), *, context: JobContext
) -> Counters:
    """Puts the URLs of sitemaps into the CrawlDb at `crawldb`, which is made if there is none.

    Raises StoreError, LockedError, FormatError; a sitemap that can't be read is counted and logged.
    """
    conf, db = context.conf, CrawlDb(crawldb)
    log.info("SitemapProcessor: starting")
    hosts = [] if options.hostdb is None else Database(options.hostdb).require_parts()
    # Only robots.txt names the sitemaps of a HostDb's hosts.
    if hosts and conf.get_trimmed_strings(ALLOWLIST_PROPERTY):
        log.warning(
            "%s is set: of the hosts in it no robots.txt is read, and no sitemap found there",
            ALLOWLIST_PROPERTY,
        )
    # Before anything is fetched: another kind of database would be noticed after all fetches.
    db.require_class(CRAWL_DATUM)
    files = [] if options.urls is None else seed_files(options.urls)
    entry_settings = EntrySettings.from_conf(conf, now=context.clock.now())
    collected = _Collected(
        UrlRules(
            conf,
            normalize=options.normalize and conf.get_boolean(NORMALIZE_PROPERTY),
            filtering=options.filtering and conf.get_boolean(FILTER_PROPERTY),
            scope=SCOPE_DEFAULT,
            keep_on_error=False,
        ),
        entry_settings,
    )
    settings, watch = SitemapSettings.from_conf(conf), context.watch
    settings = replace(settings, strict=settings.strict and options.strict)
    held = (lambda: False) if watch is None else (lambda: watch.paused)
    limit = str(settings.most_bytes)
    # SitemapMapper.setup: pages are cut much earlier, at 1 MB, than sitemaps may be long.
    limited = conf.with_values({"http.content.limit": limit, "file.content.limit": limit})
    turns = Turns(settings, SteadyClock(context.clock))
    fetcher = SitemapFetcher(
        ProtocolFactory(limited),
        MimeUtil(conf),
        settings,
        context.clock,
        collected.checked,
        turns,
        held,
    )
    folder = state_folder_of(crawldb.absolute().parent, conf)
    with (
        nullcontext() if folder is None else turns.remembered(folder),
        db.lock(options.force),
        Shuffle(
            number_of_parts(conf), SITEMAP_SCHEMA, budget=sorting_memory(conf), spill=crawldb
        ) as found,
    ):
        collected.shuffle = found
        listing = SitemapListing(crawldb.parent / LISTINGS)
        with (
            # A crawl's folder may have several CrawlDbs beside it, each with a lock of its own.
            listing.lock(options.force),
            listing.replacement(keep_old=False) as fresh,
            context.progress("sitemap", unit="starts") as progress,
        ):
            collected.listing = ListingWriter(fresh)
            eventloops.run(
                fetcher.run(_starts(files, hosts), options.threads, collected.add, progress.advance)
            )
            collected.listing.finish(listing)
        engine, output = engine_of(conf), OutputSettings.from_conf(conf)
        with (
            EntrySources([db], engine, EntryFilter(), spill=crawldb) as old,
            context.progress("sitemap") as progress,
        ):
            # In this order, which `merge` tells them by.
            sources = [*old.sources, engine.local_source(found)]
            merged = rewrite(db, engine, output, sources, partial(_merge, entry_settings), progress)
        collected.counters.merge(merged)
    counters = Counters(fetcher.counters)
    counters.merge(collected.counters)
    for words, name in (  # in Nutch's words
        ("records rejected by filters", sitemapfetch.FILTERED_STARTS),
        ("sitemaps from host name", sitemapfetch.FROM_HOSTS),
        ("sitemaps from seed urls", sitemapfetch.FROM_SEEDS),
        ("failed sitemap fetches", sitemapfetch.FAILED),
        ("new sitemap entries added", NEW),
    ):
        log.info("SitemapProcessor: Total %s: %d", words, counters.get(name, 0))
    log.info("SitemapProcessor: finished")
    return counters


def _starts(files: list[Path], hosts: list[Path]) -> Iterator[str]:
    """Yields the lines of seed files, then the hosts of a HostDb."""
    for path in files:
        for lines in read_seeds(path):
            yield from lines["url"]
    for part in hosts:
        for table in spans.scan(part, HostDatum.class_name, _hosts):
            yield from decode_keys(table["key"])


def _hosts(batch: Batch) -> pl.DataFrame:
    return pl.DataFrame([string_column("key", batch.keys, batch.key_at, batch.key_len)])


def _merge(
    settings: EntrySettings, frames: Sequence[pl.DataFrame]
) -> tuple[pl.DataFrame, Counters]:
    """Merges entries of the CrawlDb with those of sitemaps."""
    return merge(frames[0], frames[1], settings)


class _Collected:
    """Takes sitemaps, from several threads; puts their filtered URLs into `shuffle`."""

    def __init__(self, rules: UrlRules, settings: EntrySettings) -> None:
        self.shuffle: Shuffle | None = None
        self.listing: ListingWriter | None = None
        self.counters = Counters({LISTED: 0, LEFT_OUT: 0})
        self._settings = settings
        self._rules = rules
        self._lock = Lock()

    def checked(self, url: str) -> str | None:
        """Returns the URL of a sitemap, normalized and filtered."""
        found: str | None = self._rules.apply(pl.Series([url]), Counters())[0]
        return found

    def add(self, number: int, before: int, sitemap: Sitemap) -> None:
        """Adds a sitemap of start `number`, of which `before` URLs have come already."""
        counters = Counters(
            {LISTED: len(sitemap.urls) + sitemap.left_out, LEFT_OUT: sitemap.left_out}
        )
        urls = self._rules.apply(
            pl.Series([page.url for page in sitemap.urls], dtype=pl.String), counters
        )
        # Starts are followed side by side: the order of the input is told by their numbers.
        table = entries(urls, sitemap.urls, (number << 32) + before, self._settings)
        assert self.shuffle is not None and self.listing is not None, "set before any fetch"
        self.listing.add(sitemap, urls)
        with self._lock:
            self.counters.merge(counters)
            self.shuffle.add(table)
