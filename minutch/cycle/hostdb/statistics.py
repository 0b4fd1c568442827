"""Counts the entries of a CrawlDb by host and status, finds home pages, and computes custom
statistics. Pure: no I/O.

The host is that of the URL, in lower case, after URL filters and normalizers, which are applied to
`http://<host>/` if they are used at all. Its home page is the URL `protocol://host/`, or the target
of its redirect. Of several (http and https), one that was fetched is preferred to one that
redirects, and that to any other; then the last in the CrawlDb's order. Entries that are not fetched
yet are no home pages; duplicates and orphans are not counted.

A processor (`hostdb.crawldatum.processors` names their classes) returns a few numbers for each
entry of the CrawlDb; their sums for each host go into its metadata in the HostDb. The row method
`count` is enough; a column method beside it is faster and must give the same.

    class Slow(CrawlDatumProcessor):
        names = ("num.slow",)

        def count(self, url: str, datum: CrawlDatum) -> Sequence[int]:
            return (datum.retries_since_fetch > 2,)

Source: org.apache.nutch.hostdb.UpdateHostDbMapper, CrawlDatumProcessor,
FetchOverdueCrawlDatumProcessor, org.apache.nutch.util.URLUtil.isHomePageOf.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import ClassVar, Final, Self

import polars as pl

from minutch.conf import Configuration
from minutch.conf.properties import class_named
from minutch.cycle.hostdb.fields import VALUES_SCHEMA, Fields
from minutch.hadoop.formats.writables import LongWritable, Writable
from minutch.job import Counters
from minutch.plugin.chains import SCOPE_DEFAULT
from minutch.plugin.urlrules import SCOPE_PROPERTY, UrlRules
from minutch.records.crawldatum import (
    STATUS_DB_FETCHED,
    STATUS_DB_GONE,
    STATUS_DB_NOTMODIFIED,
    STATUS_DB_REDIR_PERM,
    STATUS_DB_REDIR_TEMP,
    STATUS_DB_UNFETCHED,
    CrawlDatum,
)
from minutch.records.crawldatum_columns import records
from minutch.records.metadata import PROTO_STATUS_KEY
from minutch.records.protocol import target_of
from minutch.records.rawmap import text_key, values_of
from minutch.urls.hostcolumns import host_names
from minutch.work.tables.frame import decode_keys, encode_keys

PROCESSORS_PROPERTY: Final = "hostdb.crawldatum.processors"
OVERDUE_PROPERTY: Final = "crawl.datum.processor.overdue.time.limit"
_TWO_DAYS: Final = 172_800_000
MALFORMED: Final = "malformed_urls_total"
FILTERED: Final = "filtered_records_total"
COUNTED: Final = "counted_urls_total"

STATUSES: Final = {
    "unfetched": STATUS_DB_UNFETCHED,
    "fetched": STATUS_DB_FETCHED,
    "not_modified": STATUS_DB_NOTMODIFIED,
    "redir_temp": STATUS_DB_REDIR_TEMP,
    "redir_perm": STATUS_DB_REDIR_PERM,
    "gone": STATUS_DB_GONE,
}
"""Column of the HostDb -> status that it counts."""
FAILURES: Final = "connection_failures"
HOMEPAGES_SCHEMA: Final = pl.Schema(
    {"key": pl.Binary(), "rank": pl.Int64(), "homepage_url": pl.Binary()}
)

_FETCHED: Final = (STATUS_DB_FETCHED, STATUS_DB_NOTMODIFIED)
_REDIRECTS: Final = (STATUS_DB_REDIR_TEMP, STATUS_DB_REDIR_PERM)
_SCHEME: Final = r"^([A-Za-z][A-Za-z0-9+.-]*)://"


class CrawlDatumProcessor:
    """The base of all processors; `names` are the keys in a host's metadata."""

    names: ClassVar[tuple[str, ...]] = ()

    def __init__(self, conf: Configuration) -> None:
        self.conf = conf

    def count(self, url: str, datum: CrawlDatum) -> Sequence[int]:
        """Returns a number for each of `names`, which are summed over the host's entries."""
        raise NotImplementedError

    def count_columns(self, entries: pl.DataFrame) -> pl.DataFrame:
        """Does the same for a table (columns: `minutch.plugin.columns`); an Int64 column a name."""
        rows = [tuple(map(int, self.count(url, datum))) for url, datum in records(entries)]
        return pl.DataFrame(rows, schema=dict.fromkeys(self.names, pl.Int64()), orient="row")

    def finalize(self, sums: Mapping[str, int]) -> Mapping[str, Writable]:
        """Returns a host's metadata for its sums: by default each as a LongWritable."""
        return {name: LongWritable(value) for name, value in sums.items()}


class FetchOverdueProcessor(CrawlDatumProcessor):
    """Counts as num.overdue the entries whose first fetch is overdue by more than
    `crawl.datum.processor.overdue.time.limit`.

    Nutch's does not start at zero for each host.
    """

    names = ("num.overdue",)

    def __init__(self, conf: Configuration) -> None:
        super().__init__(conf)
        self._before = conf.clock.now() - conf.get_long(OVERDUE_PROPERTY, _TWO_DAYS)

    def count(self, url: str, datum: CrawlDatum) -> Sequence[int]:
        return (datum.status == STATUS_DB_UNFETCHED and datum.fetch_time < self._before,)

    def count_columns(self, entries: pl.DataFrame) -> pl.DataFrame:
        overdue = (pl.col("status") == STATUS_DB_UNFETCHED) & (pl.col("fetch_time") < self._before)
        return entries.select(overdue.cast(pl.Int64).alias(self.names[0]))


_BUILT_IN: Final = {
    "org.apache.nutch.hostdb.FetchOverdueCrawlDatumProcessor": (
        "minutch.cycle.hostdb.statistics:FetchOverdueProcessor"
    )
}


def processors(conf: Configuration) -> list[CrawlDatumProcessor]:
    """Makes the configured processors, named by Nutch's Java class, `module:Class` or
    `module.Class`.

    Raises ConfigError for a class that can't be found or is no processor.
    """
    return [
        class_named(conf, PROCESSORS_PROPERTY, name, _BUILT_IN, CrawlDatumProcessor)(conf)
        for name in conf.get_trimmed_strings(PROCESSORS_PROPERTY)
    ]


class HostRules:
    """The URL filters and normalizers, applied to hosts."""

    def __init__(self, rules: UrlRules) -> None:
        self._rules = rules

    @classmethod
    def from_conf(cls, conf: Configuration, *, normalize: bool, filtering: bool) -> Self:
        """Loads the configured filters and normalizers that are used."""
        rules = UrlRules(
            # UpdateHostDbMapper has the scope `default` whatever a property says.
            conf.with_values({SCOPE_PROPERTY: ""}),
            normalize=normalize,
            filtering=filtering,
            scope=SCOPE_DEFAULT,
            keep_on_error=False,
        )
        return cls(rules)

    def apply(self, hosts: pl.Series) -> pl.Series:
        """Returns the normalized name of each host (String), null if it is rejected or null."""
        if self._rules.is_neutral:
            return hosts
        distinct = hosts.drop_nulls().unique(maintain_order=True)
        names = host_names(self._rules.apply("http://" + distinct + "/", Counters()))
        return hosts.replace_strict(distinct, names, default=None, return_dtype=pl.String)


@dataclass(slots=True)
class HostTables:
    """The statistics of entries: `counts` has a row per host, `homepages`, `values` any number."""

    counts: pl.DataFrame
    homepages: pl.DataFrame
    values: pl.DataFrame
    counters: Counters = field(default_factory=Counters)


@dataclass(frozen=True)
class HostStatistics:
    """The statistics that are computed: counts, fields, and those of processors."""

    rules: HostRules
    fields: Fields
    processors: Sequence[CrawlDatumProcessor] = ()

    @property
    def counts_schema(self) -> pl.Schema:
        """Columns of `HostTables.counts`: those of the HostDb, then those of the processors."""
        names = [*STATUSES, FAILURES, *self.sums]
        return pl.Schema({"key": pl.Binary(), **dict.fromkeys(names, pl.Int64())})

    @property
    def sums(self) -> list[str]:
        """Names of the processors' columns: the processor's index and its own name."""
        return [
            f"{number}:{name}" for number, one in enumerate(self.processors) for name in one.names
        ]

    def of(self, entries: pl.DataFrame) -> HostTables:
        """Computes the statistics of `entries` (CRAWLDB_SCHEMA). Raises FormatError."""
        counters = Counters()
        urls = decode_keys(entries["key"])
        hosts = host_names(urls)
        named = self.rules.apply(hosts)
        counters.add(MALFORMED, hosts.null_count())
        # Those without a host are null in both.
        counters.add(FILTERED, named.null_count() - hosts.null_count())
        counters.add(COUNTED, len(named) - named.null_count())
        if named.null_count():
            keep = named.is_not_null()
            entries, urls, named = entries.filter(keep), urls.filter(keep), named.filter(keep)
        keys = encode_keys(named).alias("host")
        homepages = _homepages(entries, urls, named)
        return HostTables(
            self._counts(entries, keys), homepages, self._values(entries, keys), counters
        )

    def _counts(self, entries: pl.DataFrame, hosts: pl.Series) -> pl.DataFrame:
        columns = [hosts.alias("key"), entries["status"], entries["retries"]]
        for number, processor in enumerate(self.processors):
            sums = processor.count_columns(entries)
            columns += [
                sums[name].cast(pl.Int64).alias(f"{number}:{name}") for name in processor.names
            ]
        counted = [
            (pl.col("status") == code).sum().cast(pl.Int64).alias(name)
            for name, code in STATUSES.items()
        ]
        # Pages with failures, not failures: reduce adds one for each.
        failures = (pl.col("retries") != 0).sum().cast(pl.Int64).alias(FAILURES)
        sums_of = [pl.col(name).sum() for name in self.sums]
        return pl.DataFrame(columns).group_by("key").agg(*counted, failures, *sums_of)

    def _values(self, entries: pl.DataFrame, hosts: pl.Series) -> pl.DataFrame:
        # UpdateHostDbReducer gathers metadata of proper fetched pages alone.
        pages = entries["status"].is_in(_FETCHED) & entries["metadata"].is_not_null()
        if not pages.any() or not (self.fields.strings or self.fields.numbers):
            return VALUES_SCHEMA.to_frame()
        return self.fields.values(hosts.filter(pages), entries.filter(pages))


def _homepages(entries: pl.DataFrame, urls: pl.Series, hosts: pl.Series) -> pl.DataFrame:
    """Finds the home pages among entries, in their order."""
    # Before the regular expression below: of a large site one entry in thousands is left.
    likely = urls.str.ends_with("/") & (entries["status"] != STATUS_DB_UNFETCHED)
    table = entries.select("status", "metadata").with_columns(url=urls, host=hosts).filter(likely)
    scheme = pl.col("url").str.extract(_SCHEME)
    # By the host under its new name, as URLUtil.isHomePageOf is asked for it.
    table = table.filter(pl.col("url") == scheme + "://" + pl.col("host") + "/")
    rank = (
        pl.when(pl.col("status").is_in(_FETCHED))
        .then(2)
        .when(pl.col("status").is_in(_REDIRECTS))
        .then(1)
    )
    table = table.with_columns(
        rank=rank.otherwise(0).cast(pl.Int64),
        homepage_url=scheme.str.to_lowercase() + "://" + pl.col("host") + "/",
    )
    # Nutch fails with a NullPointerException on a redirect without a protocol status.
    if table["rank"].eq(1).any():
        redirects = table["rank"] == 1
        targets = values_of(table["metadata"], text_key(PROTO_STATUS_KEY))
        table = table.with_columns(
            homepage_url=pl.Series(
                [
                    target_of(targets.get(row)) if redirect else url
                    for row, (redirect, url) in enumerate(
                        zip(redirects, table["homepage_url"], strict=True)
                    )
                ],
                dtype=pl.String,
            )
        )
    found = table.filter(pl.col("homepage_url").is_not_null())
    return found.select(
        key=encode_keys(found["host"]), rank="rank", homepage_url=encode_keys(found["homepage_url"])
    )
