"""Decides what the URLs of sitemaps become in the CrawlDb; nothing else does. Pure: no I/O.

A new URL is unfetched and due now. Its score is the sitemap's priority (0 would mean never: it
counts as the default), its interval what the sitemap says about changes, within the limits of the
adaptive schedule, or 0 where it says nothing: the fetch schedule then sets its default. A URL that
is known stays as it is, unless sitemap.url.overwrite.existing is true. Of several in sitemaps the
last one counts, in the order of the input.

Source: org.apache.nutch.util.SitemapProcessor: SitemapMapper.generateSitemapUrlDatum,
SitemapReducer.reduce.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import polars as pl

from minutch.conf import Settings, prop
from minutch.cycle.crawldb.matching import last, last_of_key, match, put_rows
from minutch.cycle.sitemap.sitemapurls import DEFAULT_PRIORITY, SitemapUrl
from minutch.job import Counters
from minutch.records.crawldatum import STATUS_DB_UNFETCHED
from minutch.records.crawldatum_columns import CRAWLDB_SCHEMA
from minutch.work.tables.frame import encode_keys

NEW: Final = "new URLs"
KNOWN: Final = "URLs that the crawldb has"
REPEATED: Final = "repeated URLs"

SITEMAP_SCHEMA = pl.Schema({**CRAWLDB_SCHEMA, "place": pl.Int64()})
"""Entries, and the place in the order of the input."""


@dataclass(frozen=True)
class EntrySettings(Settings):
    """The settings of new entries; intervals in seconds."""

    now: int
    least_interval: float = prop("db.fetch.schedule.adaptive.min_interval")
    most_interval: float = prop("db.fetch.schedule.adaptive.max_interval")
    overwrite: bool = prop("sitemap.url.overwrite.existing")

    def interval(self, said: int | None) -> int:
        """Returns the interval of an entry."""
        return 0 if said is None else int(min(max(said, self.least_interval), self.most_interval))


def entries(
    urls: pl.Series, said: Sequence[SitemapUrl], place: int, rules: EntrySettings
) -> pl.DataFrame:
    """Returns `urls`, of which the sitemap has `said` this, in SITEMAP_SCHEMA, without nulls."""
    dates = [
        # generateSitemapUrlDatum takes no date in the future.
        page.modified if page.modified is not None and page.modified <= rules.now else 0
        for page in said
    ]
    constants = {"status": STATUS_DB_UNFETCHED, "fetch_time": rules.now, "retries": 0}
    nothing = {"signature": None, "metadata": None}
    table = pl.DataFrame(
        {
            "key": encode_keys(urls),
            "modified_time": pl.Series(dates, dtype=pl.Int64),
            "fetch_interval": pl.Series(
                [rules.interval(page.interval) for page in said], dtype=pl.Int32
            ),
            "score": pl.Series(
                [page.priority or DEFAULT_PRIORITY for page in said], dtype=pl.Float32
            ),
            "place": pl.Series(np.arange(place, place + len(said))),
        }
    ).with_columns(
        pl.lit(value, SITEMAP_SCHEMA[name]).alias(name)
        for name, value in {**constants, **nothing}.items()
    )
    return table.filter(pl.col("key").is_not_null()).select(SITEMAP_SCHEMA.names())


def merge(
    old: pl.DataFrame, found: pl.DataFrame, rules: EntrySettings
) -> tuple[pl.DataFrame, Counters]:
    """Returns the entries with those of sitemaps (SITEMAP_SCHEMA) put in; both are sorted."""
    old, counters = last_of_key(old), Counters()
    found = found.sort("key", "place")
    matched = match(found["key"], old["key"])
    # SitemapReducer keeps the last of a URL's values, in whatever order Hadoop has them.
    rows = last(np.arange(len(found)), matched.group)
    counters.add(REPEATED, len(found) - len(rows))
    unique = found[rows] if len(rows) < len(found) else found
    known = matched.at >= 0
    counters.add(KNOWN, int(known.sum()))
    counters.add(NEW, int((~known).sum()))
    if rules.overwrite and known.any():
        at, seen = pl.Series(matched.at[known]), unique.filter(known)
        # Status, fetch time and metadata stay, as in SitemapReducer.
        columns = ("score", "fetch_interval", "modified_time")
        old = old.with_columns(old[name].scatter(at, seen[name]) for name in columns)
    return put_rows(
        old, matched.at[~known], matched.before[~known], unique.filter(~known)
    ), counters
