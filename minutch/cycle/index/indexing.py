"""The index job: makes documents of the pages of segments and sends them to the index writers; and
the clean job: deletes documents that are db_gone or db_duplicate in the CrawlDb.

    crawldb, linkdb, segments → ranges of keys → threads or processes (`rangeindexer`)
                              → writers, in the order of the URLs

Ranges are cut by the indexes of the MapFiles so that each has some megabytes: memory does not grow
with the segments. Documents are identified by their URLs, so that a job that was killed can be run
again with the same result.

Redirects are deleted by `index -deleteGone` alone, as in Nutch. Deletions go out in the order of
the CrawlDb's files. Source: org.apache.nutch.indexer.IndexingJob, IndexerMapReduce, CleaningJob.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Final

import polars as pl

from minutch.conf import Configuration
from minutch.cycle.crawldb.store import CrawlDb
from minutch.cycle.index.indexrules import INDEXED
from minutch.cycle.index.inputs import (
    CRAWL_DATUM,
    CRAWLDB,
    INLINKS,
    LINKS,
    IndexSource,
    Inputs,
    find_misplaced,
    segment_sources,
)
from minutch.cycle.index.rangeindexer import RangeIndexer, RangeSettings
from minutch.cycle.index.writers import CRAWL_PROPERTY, REFUSED, WriterChain
from minutch.cycle.linkdb.store import LinkDb
from minutch.cycle.segment.store import Segment, segments_at
from minutch.job import Counters, JobContext
from minutch.plugin.chains import SCOPE_INDEXER, URLNormalizers
from minutch.records.crawldatum import STATUS_DB_DUPLICATE, STATUS_DB_GONE
from minutch.records.links import LAYOUT_METADATA
from minutch.work.engine import engine_of
from minutch.work.tables.database import Database
from minutch.work.tables.frame import decode_keys
from minutch.work.tables.keyranges import cut
from minutch.work.tables.parallel import memory_budget, workers

log = logging.getLogger(__name__)
PARAMS_PROPERTY: Final = "indexer.additional.params"
RANGE_BYTES: Final = 1 << 23
"""Bytes of a range in the files, which may be compressed."""
SMALLEST_RANGE: Final = 1 << 20
BYTES_PER_RANGE_BYTE: Final = 24
"""Memory that a byte of a range takes at most: texts are inflated and encoded for a writer."""
DELETED: Final = "deleted_documents_total"
_UNWANTED: Final = (STATUS_DB_GONE, STATUS_DB_DUPLICATE)


@dataclass(frozen=True, slots=True)
class IndexOptions:
    """Options of the index job, named as those of Nutch's IndexingJob."""

    linkdb: Path | None = None
    """The LinkDb whose anchors go into documents."""
    delete_gone: bool = False
    """Whether gone pages, redirects and duplicates are deleted from the index."""
    filtering: bool = False
    """Whether URLs must pass the URL filters."""
    normalize: bool = False
    """Whether URLs are normalized first."""
    add_binary_content: bool = False
    """Whether documents get the field `binaryContent`."""
    base64: bool = False
    """Whether that field is encoded in Base64."""
    no_commit: bool = False
    """Whether index writers are not told to commit."""
    params: str | None = None
    """Parameters for plugins, `k1=v1&k2=v2` (indexer.additional.params)."""


def index(
    crawldb: Path | None,
    segments: Sequence[Path],
    options: IndexOptions = IndexOptions(),
    *,
    context: JobContext,
) -> Counters:
    """Sends the documents of `segments` to all index writers; counts the outcomes of URLs.

    Raises StoreError (an input is missing), FormatError (damage), IndexWriterError; nothing is
    committed then.
    """
    conf = _configured(context.conf, options)
    # For writers whose index lies beside the crawl (indexer_local).
    conf = conf.with_values({CRAWL_PROPERTY: str(_crawl_folder(crawldb, segments))})
    memory = memory_budget(conf)
    normalizers = URLNormalizers(conf, SCOPE_INDEXER) if options.normalize else None
    _log_start(crawldb, segments, options)
    settings = RangeSettings(
        context.clock.now(),
        options.delete_gone,
        options.filtering,
        options.normalize,
        options.add_binary_content,
        options.base64,
    )
    stores = segments_at(segments)
    inputs = find_inputs(crawldb, options.linkdb, stores, content=options.add_binary_content)
    # Of all sources: a range must fit with what each has in it.
    parts = [part for source in inputs.sources for part in source.parts]
    ranges = cut(parts, _range_bytes(memory))
    counters = Counters()
    # A run without a document says so, in place of nothing.
    counters.add(INDEXED, 0)
    with (
        WriterChain.from_conf(conf) as chain,
        find_misplaced(inputs, stores, normalizers, memory) as misplaced,
        context.progress("index", unit="documents") as progress,
    ):
        # Before the first range: a server that is away is noticed before hours of work.
        chain.open()
        make = partial(RangeIndexer.from_conf, conf, inputs, settings)
        for encoded, counted in engine_of(conf).stream(make, misplaced.by_range(ranges)):
            chain.write(encoded)
            counters.merge(counted)
            progress.advance(counted.get(INDEXED, 0))
        chain.finish(commit=not options.no_commit)
    counters.merge(chain.counters)
    if counters.get(REFUSED):
        # Writers tell at the end which documents their servers did not take.
        counters[INDEXED] -= counters[REFUSED]
    return counters


def find_inputs(
    crawldb: Path | None, linkdb: Path | None, segments: Sequence[Segment], *, content: bool
) -> Inputs:
    """Finds the input. A missing CrawlDb or LinkDb is ignored with a warning, as in Nutch."""
    sources = []
    if crawldb is not None and _exists(CrawlDb(crawldb), "crawlDb"):
        sources.append(IndexSource(CRAWLDB, CrawlDb(crawldb).parts(), CRAWL_DATUM))
    layout = LAYOUT_METADATA
    if linkdb is not None and _exists(LinkDb(linkdb), "linkDb"):
        sources.append(IndexSource(LINKS, LinkDb(linkdb).parts(), INLINKS))
        layout = LinkDb(linkdb).layout
    return Inputs(sources + segment_sources(segments, content=content), layout)


def _exists(database: Database, name: str) -> bool:
    if not database.exists():
        log.warning("Ignoring %s for indexing, no %s found in path: %s", name, name, database.path)
    return database.exists()


def _range_bytes(memory: int) -> int:
    share = memory // (workers() * BYTES_PER_RANGE_BYTE)
    return max(SMALLEST_RANGE, min(RANGE_BYTES, share))


def _crawl_folder(crawldb: Path | None, segments: Sequence[Path]) -> Path:
    """Returns the crawl folder: the CrawlDb's parent, else that of the folder of segments."""
    return segments[0].absolute().parent.parent if crawldb is None else crawldb.absolute().parent


def _configured(conf: Configuration, options: IndexOptions) -> Configuration:
    """Returns the configuration with the properties that tell plugins the job's options."""
    values = {
        "indexer.delete": options.delete_gone,
        "indexer.url.filters": options.filtering,
        "indexer.url.normalizers": options.normalize,
        "indexer.binary.base64": options.base64,
        "indexer.nocommit": options.no_commit,
    }
    # A flag that is not given leaves what the configuration says.
    texts = {name: "true" for name, value in values.items() if value}
    if options.params is not None:
        texts[PARAMS_PROPERTY] = options.params
    return conf.with_values(texts) if texts else conf


def _log_start(crawldb: Path | None, segments: Sequence[Path], options: IndexOptions) -> None:
    log.info("Indexer: starting")
    log.info("Indexer: deleting gone documents: %s", str(options.delete_gone).lower())
    log.info("Indexer: URL filtering: %s", str(options.filtering).lower())
    log.info("Indexer: URL normalizing: %s", str(options.normalize).lower())
    if options.add_binary_content:
        log.info("Indexer: adding binary content%s", " as Base64" if options.base64 else "")
    if crawldb is None:
        log.info("IndexerMapReduce: no crawldb provided for indexing")
    else:
        log.info("IndexerMapReduce: crawldb: %s", crawldb)
    for segment in segments:
        log.info("IndexerMapReduces: adding segment: %s", segment)
    if options.linkdb is not None:
        log.info("IndexerMapReduce: linkdb: %s", options.linkdb)


@dataclass(frozen=True, slots=True)
class CleanOptions:
    """Options of the clean job."""

    no_commit: bool = False
    """Whether index writers are not told to commit."""


def clean(
    crawldb: Path, options: CleanOptions = CleanOptions(), *, context: JobContext
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
            # Keys and status are all that is needed: no metadata is decoded.
            for frame in db.scan_packed(number):
                keys = frame.filter(pl.col("status").is_in(_UNWANTED))["key"]
                chain.delete(decode_keys(keys).to_list())
                counters.add(DELETED, len(keys))
                progress.advance(len(frame))
        # CleaningJob commits where something was deleted.
        chain.finish(commit=not options.no_commit and counters[DELETED] > 0)
    counters.merge(chain.counters)
    return counters
