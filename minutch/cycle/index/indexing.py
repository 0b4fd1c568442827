"""index: make documents of the pages of segments, and send them to the index writers.

    crawldb, linkdb, segments → ranges of keys → threads or processes (`task`) → writers, in the
    order of the URLs

Ranges are cut by the indexes of the MapFiles, so that each holds some megabytes: memory does not
grow with the segments. Documents are identified by their URLs: a job that was killed can be run
again and leaves the same index. Source: org.apache.nutch.indexer.IndexingJob, IndexerMapReduce.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Final

from minutch.conf import Configuration
from minutch.cycle.crawldb.store import CrawlDb
from minutch.cycle.index.indexrules import INDEXED
from minutch.cycle.index.inputs import (
    CRAWL_DATUM,
    CRAWLDB,
    INLINKS,
    LINKS,
    Inputs,
    Source,
    segment_sources,
)
from minutch.cycle.index.misplaced import find_misplaced
from minutch.cycle.index.rangeindexer import IndexOptions, RangeIndexer, RangeTask
from minutch.cycle.index.writers import CRAWL_PROPERTY, REFUSED, WriterChain
from minutch.cycle.linkdb.store import LinkDb
from minutch.cycle.segment.store import Segment
from minutch.job import Counters, JobContext
from minutch.records.links import LAYOUT_METADATA
from minutch.work.engine import engine_of
from minutch.work.tables.database import Database
from minutch.work.tables.keyranges import cut
from minutch.work.tables.parallel import memory_budget, workers

log = logging.getLogger(__name__)
PARAMS_PROPERTY: Final = "indexer.additional.params"
RANGE_BYTES: Final = 1 << 23
"""Bytes of files that a range has, compressed as they are."""
SMALLEST_RANGE: Final = 1 << 20
BYTES_PER_RANGE_BYTE: Final = 24
"""Bytes of memory that a byte of a range may take, at its worst: texts inflate, and become lines of
a writer.
"""


def index(
    crawldb: Path | None,
    linkdb: Path | None,
    segments: Sequence[Segment],
    context: JobContext,
    options: IndexOptions,
    *,
    commit: bool = True,
    params: str | None = None,
) -> Counters:
    """Send the documents of `segments` to all index writers; returns what became of the URLs.

    Raises StoreError (something is not there), FormatError (damage), IndexWriterError; nothing is
    committed then.
    """
    conf = _configured(context.conf, options, params, commit=commit)
    conf = conf.with_values({CRAWL_PROPERTY: str(_crawl_folder(crawldb, segments))})
    _log_start(crawldb, linkdb, segments, options)
    inputs = find_inputs(crawldb, linkdb, segments, content=options.content)
    parts = [part for source in inputs.sources for part in source.parts]
    ranges = cut(parts, _range_bytes(conf))
    counters = Counters()
    counters.add(INDEXED, 0)
    with (
        WriterChain(conf) as chain,
        find_misplaced(inputs, segments, conf, normalize=options.normalize) as misplaced,
        context.progress("index", unit="documents") as progress,
    ):
        chain.open()
        tasks: Iterator[RangeTask] = (
            RangeTask(keys, rows) for keys, rows in misplaced.by_range(ranges)
        )
        for encoded, counted in engine_of(conf).stream(
            partial(RangeIndexer, conf, inputs, options), tasks
        ):
            chain.write(encoded)
            counters.merge(counted)
            progress.advance(counted.get(INDEXED, 0))
        chain.finish(commit=commit)
    counters.merge(chain.counters)
    if counters.get(REFUSED):
        counters[INDEXED] -= counters[REFUSED]
    return counters


def find_inputs(
    crawldb: Path | None, linkdb: Path | None, segments: Sequence[Segment], *, content: bool
) -> Inputs:
    """All that is read. A CrawlDb or LinkDb that is not there is left out, with a warning, as in
    Nutch.
    """
    sources = []
    if crawldb is not None and _is_there(CrawlDb(crawldb), "crawlDb"):
        sources.append(Source(CRAWLDB, CrawlDb(crawldb).parts(), CRAWL_DATUM))
    layout = LAYOUT_METADATA
    if linkdb is not None and _is_there(LinkDb(linkdb), "linkDb"):
        sources.append(Source(LINKS, LinkDb(linkdb).parts(), INLINKS))
        layout = LinkDb(linkdb).layout
    return Inputs(sources + segment_sources(segments, content=content), layout)


def _is_there(database: Database, name: str) -> bool:
    if not database.exists():
        log.warning("Ignoring %s for indexing, no %s found in path: %s", name, name, database.path)
    return database.exists()


def _range_bytes(conf: Configuration) -> int:
    fair = memory_budget(conf) // (workers() * BYTES_PER_RANGE_BYTE)
    return max(SMALLEST_RANGE, min(RANGE_BYTES, fair))


def _crawl_folder(crawldb: Path | None, segments: Sequence[Segment]) -> Path:
    """The folder of the crawl: that of the CrawlDb, else that of the folder of segments."""
    return (
        segments[0].path.absolute().parent.parent if crawldb is None else crawldb.absolute().parent
    )


def _configured(
    conf: Configuration, options: IndexOptions, params: str | None, *, commit: bool
) -> Configuration:
    """The configuration with the properties by which plugins know the command's options."""
    values = {
        "indexer.delete": options.delete_gone,
        "indexer.url.filters": options.filters,
        "indexer.url.normalizers": options.normalize,
        "indexer.binary.base64": options.as_base64,
        "indexer.nocommit": not commit,
    }
    texts = {name: "true" for name, value in values.items() if value}
    if params is not None:
        texts[PARAMS_PROPERTY] = params
    return conf.with_values(texts) if texts else conf


def _log_start(
    crawldb: Path | None, linkdb: Path | None, segments: Sequence[Segment], options: IndexOptions
) -> None:
    log.info("RangeIndexer: starting")
    log.info("RangeIndexer: deleting gone documents: %s", str(options.delete_gone).lower())
    log.info("RangeIndexer: URL filtering: %s", str(options.filters).lower())
    log.info("RangeIndexer: URL normalizing: %s", str(options.normalize).lower())
    if options.content:
        log.info("RangeIndexer: adding binary content%s", " as Base64" if options.as_base64 else "")
    if crawldb is None:
        log.info("IndexerMapReduce: no crawldb provided for indexing")
    else:
        log.info("IndexerMapReduce: crawldb: %s", crawldb)
    for segment in segments:
        log.info("IndexerMapReduces: adding segment: %s", segment.path)
    if linkdb is not None:
        log.info("IndexerMapReduce: linkdb: %s", linkdb)
