"""freegen: makes a segment from a list of URLs, without a CrawlDb; to fetch pages once, or to try
something out.

The list is in text files with a URL per line; blank lines and comments (`#`) are skipped. Entries
have the default interval and the score that the scoring filters give to a seed.

Source: org.apache.nutch.tools.FreeGenerator.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import polars as pl

from minutch.cycle.crawldb.scoring import injected_scores
from minutch.cycle.crawldb.seeds import read_seeds, seed_files
from minutch.cycle.fetchlist.lists import FetchListWriter
from minutch.job import Counters, JobContext
from minutch.plugin.chains import SCOPE_INJECT, ScoringFilters
from minutch.plugin.urlrules import UrlRules
from minutch.records.crawldatum_columns import CRAWLDB_SCHEMA
from minutch.work.tables.frame import encode_keys

log = logging.getLogger(__name__)
REPEATED: Final = "repeated URLs"
SELECTED: Final = "URLs in the fetch list"


@dataclass(frozen=True, slots=True)
class FreegenOptions:
    """The options of freegen."""

    normalize: bool = False
    """Whether the URL normalizers apply."""
    filtering: bool = False
    """Whether the URL filters apply."""
    fetchers: int | None = None
    """Parts of the fetch list, where it is not one process that fetches."""


def freegen(
    urls: Path,
    segments: Path,
    options: FreegenOptions = FreegenOptions(),
    *,
    context: JobContext,
) -> tuple[Path, Counters]:
    """Makes a segment in `segments` from the URLs in the files of `urls`. Raises StoreError if
    there are no files.
    """
    conf, counters = context.conf, Counters()
    log.info("FreeGenerator: starting")
    rules = UrlRules(
        conf,
        normalize=options.normalize,
        filtering=options.filtering,
        scope=SCOPE_INJECT,
        keep_on_error=False,
    )
    columns = []
    with context.progress("freegen") as progress:
        for path in seed_files(urls):
            for lines in read_seeds(path):
                columns.append(rules.apply(lines["url"], counters).drop_nulls())
                progress.advance(len(lines))
    found = pl.concat(columns) if columns else pl.Series(dtype=pl.String)
    distinct = found.unique(maintain_order=True)
    counters.add(REPEATED, len(found) - len(distinct))
    interval = conf.get_int("db.fetch.interval.default")
    entries = _entries(distinct, interval, context.clock.now())
    entries = injected_scores(entries, ScoringFilters(conf), counters)
    counters.add(SELECTED, len(entries))
    writer = FetchListWriter.from_conf(segments, conf, fetchers=options.fetchers, seed=None)
    with writer.collecting(segments) as lists:
        lists.add(entries.with_columns(segment=1))
        (segment,) = lists.write(context.clock)
    return segment, counters


def _entries(urls: pl.Series, interval: int, now: int) -> pl.DataFrame:
    """Returns new entries of CRAWLDB_SCHEMA: no status, due now."""
    values = {
        "status": 0,
        "fetch_time": now,
        "modified_time": 0,
        "retries": 0,
        "fetch_interval": interval,
        "score": 0.0,
    }
    constants = [
        pl.lit(values.get(name), dtype).alias(name)
        for name, dtype in CRAWLDB_SCHEMA.items()
        if name != "key"
    ]
    return pl.DataFrame({"key": encode_keys(urls)}).with_columns(constants)
