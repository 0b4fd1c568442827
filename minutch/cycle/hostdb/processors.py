"""Computes custom statistics per host, by the classes that `hostdb.crawldatum.processors` names.

A processor returns a few numbers for each entry of the CrawlDb; their sums for each host go into
its metadata in the HostDb. The row method `count` is enough; a column method beside it is faster
and must give the same.

    class Slow(CrawlDatumProcessor):
        names = ("num.slow",)

        def count(self, url: str, datum: CrawlDatum) -> Sequence[int]:
            return (datum.retries_since_fetch > 2,)

Source: org.apache.nutch.hostdb.CrawlDatumProcessor, FetchOverdueCrawlDatumProcessor.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar, Final

import polars as pl

from minutch.conf import Configuration
from minutch.conf.properties import class_named
from minutch.hadoop.formats.writables import LongWritable, Writable
from minutch.records.crawldatum import STATUS_DB_UNFETCHED, CrawlDatum
from minutch.records.crawldatum_columns import records

PROCESSORS_PROPERTY: Final = "hostdb.crawldatum.processors"
OVERDUE_PROPERTY: Final = "crawl.datum.processor.overdue.time.limit"
_TWO_DAYS: Final = 172_800_000


class CrawlDatumProcessor:
    """The base of all processors; `names` are the keys in a host's metadata."""

    names: ClassVar[tuple[str, ...]] = ()

    def __init__(self, conf: Configuration) -> None:
        self.conf = conf

    def count(self, url: str, datum: CrawlDatum) -> Sequence[int]:
        """Returns a number for each of `names`, which are summed over the host's entries."""
        raise NotImplementedError

    def count_columns(self, entries: pl.DataFrame) -> pl.DataFrame:
        """Does the same for a table of entries (its columns: `minutch.plugin.columns`); returns an
        Int64 column per name.
        """
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
        "minutch.cycle.hostdb.processors:FetchOverdueProcessor"
    ),
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
