"""Statistics of one's own per host: what `hostdb.crawldatum.processors` names.

A processor says a few numbers about each entry of the CrawlDb; the HostDb gets their sum for each
host, as metadata. The row method is enough (`count`); a column method beside it is faster and gives
the same.

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
from minutch.conf.classes import class_named
from minutch.hadoop.formats.writables import LongWritable, Writable
from minutch.records.crawldatum import STATUS_DB_UNFETCHED, CrawlDatum
from minutch.records.crawldatum.rows import records

PROPERTY: Final = "hostdb.crawldatum.processors"
OVERDUE_PROPERTY: Final = "crawl.datum.processor.overdue.time.limit"
_TWO_DAYS: Final = 172_800_000


class CrawlDatumProcessor:
    """Base of all processors. `names` are the keys that a host's metadata gets."""

    names: ClassVar[tuple[str, ...]] = ()

    def __init__(self, conf: Configuration) -> None:
        self.conf = conf

    def count(self, url: str, datum: CrawlDatum) -> Sequence[int]:
        """A number for each of `names`, to be added to those of the host's other entries."""
        raise NotImplementedError

    def count_columns(self, entries: pl.DataFrame) -> pl.DataFrame:
        """The same for a table of entries (`minutch.plugin.columns` has its columns): an Int64
        column per name.
        """
        rows = [tuple(map(int, self.count(url, datum))) for url, datum in records(entries)]
        return pl.DataFrame(rows, schema=dict.fromkeys(self.names, pl.Int64()), orient="row")

    def finalize(self, sums: Mapping[str, int]) -> Mapping[str, Writable]:
        """What a host's metadata gets for its sums: by default each as a LongWritable."""
        return {name: LongWritable(value) for name, value in sums.items()}


class FetchOverdueProcessor(CrawlDatumProcessor):
    """num.overdue: entries that wait for their first fetch for longer than
    `crawl.datum.processor.overdue.time.limit`.

    Nutch's goes on counting from host to host.
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
    """The processors that the configuration names: by Nutch's Java name, `module:Class` or
    `module.Class`.

    Raises ConfigError for a class that can't be found or is no processor.
    """
    names = conf.get_trimmed_strings(PROPERTY)
    return [
        class_named(conf, PROPERTY, name, _BUILT_IN, CrawlDatumProcessor)(conf) for name in names
    ]
