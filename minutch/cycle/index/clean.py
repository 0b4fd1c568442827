"""The clean job: deletes documents from the index that are db_gone or db_duplicate in the CrawlDb.

Redirects are deleted by `index -deleteGone` alone, as in Nutch. Deletions go out in the order of
the CrawlDb's files. Source: org.apache.nutch.indexer.CleaningJob.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import polars as pl

from minutch.cycle.crawldb.store import CrawlDb
from minutch.cycle.index.writers import CRAWL_PROPERTY, WriterChain
from minutch.job import Counters, JobContext
from minutch.records.crawldatum import STATUS_DB_DUPLICATE, STATUS_DB_GONE
from minutch.work.tables.frame import decode_keys

log = logging.getLogger(__name__)
DELETED: Final = "deleted_documents_total"
_UNWANTED: Final = (STATUS_DB_GONE, STATUS_DB_DUPLICATE)


@dataclass(frozen=True, slots=True)
class CleanOptions:
    """Options of the clean job."""

    no_commit: bool = False
    """Whether index writers are not told to commit."""


def clean(
    crawldb: Path,
    options: CleanOptions = CleanOptions(),
    *,
    context: JobContext,
) -> Counters:
    """Sends the deletions to all index writers, and a commit if there was any.

    Raises StoreError (no CrawlDb), FormatError (damage), IndexWriterError.
    """
    db, counters = CrawlDb(crawldb), Counters()
    parts = db.require_parts()
    counters.add(DELETED, 0)
    conf = context.conf.with_values(
        {"indexer.delete": "true", CRAWL_PROPERTY: str(crawldb.absolute().parent)}
    )
    with WriterChain.from_conf(conf) as chain, context.progress("clean", db.estimate) as progress:
        chain.open()
        for number in range(len(parts)):
            for frame in db.scan_packed(number):
                keys = frame.filter(pl.col("status").is_in(_UNWANTED))["key"]
                chain.delete(decode_keys(keys).to_list())
                counters.add(DELETED, len(keys))
                progress.advance(len(frame))
        chain.finish(commit=not options.no_commit and counters[DELETED] > 0)
    counters.merge(chain.counters)
    return counters
