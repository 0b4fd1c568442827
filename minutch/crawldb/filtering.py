"""Which entries of a CrawlDb go through a job, and under which URL.

Entries that are gone or orphaned are purged where db.update.purge.404 or db.update.purge.orphans say so; then URL
normalizers and filters apply. A plugin that fails on a URL (a bug, not a verdict) never removes an entry.
Source: org.apache.nutch.crawl.CrawlDbFilter.
"""

from __future__ import annotations

from typing import Final

import polars as pl

from minutch.conf import Configuration
from minutch.job import Counters
from minutch.plugin.chains import SCOPE_CRAWLDB
from minutch.plugin.urlrules import UrlRules
from minutch.records.crawldatum import STATUS_DB_GONE, STATUS_DB_ORPHAN
from minutch.tables.frame import decode_keys, encode_keys

FILTER_PROPERTY: Final = "crawldb.url.filters"
NORMALIZE_PROPERTY: Final = "crawldb.url.normalizers"
PURGE_GONE_PROPERTY: Final = "db.update.purge.404"
PURGE_ORPHANS_PROPERTY: Final = "db.update.purge.orphans"

PURGED_GONE: Final = "gone entries removed"
PURGED_ORPHANS: Final = "orphaned entries removed"


class EntryFilter:
    """What becomes of each entry that a job reads."""

    PURGES: Final = (PURGE_GONE_PROPERTY, PURGE_ORPHANS_PROPERTY)

    def __init__(self, conf: Configuration, *, normalize: bool = False, filtering: bool = False) -> None:
        self._purged = {
            status: reason
            for wanted, status, reason in (
                (conf.get_boolean(PURGE_GONE_PROPERTY, False), STATUS_DB_GONE, PURGED_GONE),
                (conf.get_boolean(PURGE_ORPHANS_PROPERTY, False), STATUS_DB_ORPHAN, PURGED_ORPHANS),
            )
            if wanted
        }
        self.rules = UrlRules(conf, normalize=normalize, filtering=filtering, scope=SCOPE_CRAWLDB, keep_on_error=True)

    @classmethod
    def from_conf(cls, conf: Configuration) -> EntryFilter:
        """With normalizers and filters where `crawldb.url.normalizers` and `crawldb.url.filters` ask for them."""
        return cls(
            conf,
            normalize=conf.get_boolean(NORMALIZE_PROPERTY, False),
            filtering=conf.get_boolean(FILTER_PROPERTY, False),
        )

    def apply(self, frame: pl.DataFrame, counters: Counters) -> pl.DataFrame:
        """The entries that go on, in their order, under the names under which they do."""
        for status, reason in self._purged.items():
            before = len(frame)
            frame = frame.filter(pl.col("status") != status)
            counters.add(reason, before - len(frame))
        return frame if self.rules.is_neutral else rename(frame, self.rules, counters)


def rename(frame: pl.DataFrame, rules: UrlRules, counters: Counters) -> pl.DataFrame:
    """The entries whose URLs the rules let pass, under their new names."""
    urls = rules.apply(decode_keys(frame["key"]), counters)
    keys = encode_keys(urls) if rules.normalizes else frame["key"]
    return frame.with_columns(key=keys).filter(urls.is_not_null())
