"""updatedb: merge the results of segments (fetches, parses, links) into the CrawlDb.

Every URL of the CrawlDb and of the segments' crawl_fetch and crawl_parse leaves through one counter: by the status of
its new entry, or by the reason why it has none. `transitions` decides which.
Source: org.apache.nutch.crawl.CrawlDb.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from minutch.arguments import Flag, parse
from minutch.crawldb.partitions import (
    FILTER_PROPERTY,
    NORMALIZE_PROPERTY,
    PURGE_GONE_PROPERTY,
    EntryFilter,
)
from minutch.crawldb.segmentfiles import merge_files
from minutch.crawldb.store import CrawlDb
from minutch.crawldb.transitions import ADDITIONS_PROPERTY, UpdateSettings
from minutch.errors import StoreError
from minutch.job import Counters, JobContext
from minutch.segment.store import Segment, segments_in
from minutch.stores import as_path
from minutch.tables.database import part_paths

log = logging.getLogger(__name__)

FETCH_PART: Final = "crawl_fetch"
PARSE_PART: Final = "crawl_parse"

USAGE: Final = """CrawlDb <crawldb> (-dir <segments> | <seg1> <seg2> ...) [-force] [-normalize] [-filter] [-noAdditions]
\tcrawldb\tthe CrawlDb to update; made if there is none
\t-dir segments\tthe directory of the segments to update from
\tseg1 seg2 ...\tthe segments to update from
\t-force\tgo past another's lock on the CrawlDb
\t-normalize\tnormalize the URLs of the CrawlDb and the segments (seldom needed)
\t-filter\tfilter the URLs of the CrawlDb and the segments
\t-noAdditions\tupdate known URLs only, add none"""

FLAGS: Final = (
    Flag("-dir", value="segments", repeats=True),
    *map(Flag, ("-force", "-normalize", "-filter", "-noAdditions")),
)


def run(args: list[str], context: JobContext) -> int:
    """The command: exit code 0, or 255 (and an error) where the CrawlDb stays as it was."""
    given, conf = parse(args, FLAGS, usage=USAGE, least=1), context.conf
    crawldb, *segments = map(as_path, given.positional)
    for directory in given.get("-dir", ()):
        segments += [segment.path for segment in segments_in(as_path(directory))]
    counters = updatedb(
        crawldb,
        list(dict.fromkeys(segments)),
        context,
        normalize=given["-normalize"] or conf.get_boolean(NORMALIZE_PROPERTY, False),
        filtering=given["-filter"] or conf.get_boolean(FILTER_PROPERTY, False),
        additions=not given["-noAdditions"] and conf.get_boolean(ADDITIONS_PROPERTY, True),
        force=given["-force"],
    )
    context.report("CrawlDb update", counters)
    return 0


def updatedb(
    crawldb: Path,
    segments: Sequence[Path],
    context: JobContext,
    *,
    normalize: bool = False,
    filtering: bool = False,
    additions: bool = True,
    force: bool = False,
) -> Counters:
    """Merge `segments` into the CrawlDb at `crawldb`, which is made if there is none.

    Returns what became of the URLs. Raises LockedError, StoreError (nothing to read at all), FormatError (damage);
    the CrawlDb is then as before.
    """
    conf = context.conf.with_values({ADDITIONS_PROPERTY: str(additions).lower()})
    log.info("CrawlDb update: starting")
    log.info("CrawlDb update: db: %s", crawldb)
    log.info("CrawlDb update: segments: %s", [str(segment) for segment in segments])
    log.info("CrawlDb update: additions allowed: %s", str(additions).lower())
    log.info("CrawlDb update: URL normalizing: %s", str(normalize).lower())
    log.info("CrawlDb update: URL filtering: %s", str(filtering).lower())
    log.info("CrawlDb update: 404 purging: %s", str(conf.get_boolean(PURGE_GONE_PROPERTY, False)).lower())
    db, settings, now = CrawlDb(crawldb), UpdateSettings.from_conf(conf), context.clock.now()
    entry_filter = EntryFilter(conf, normalize=normalize, filtering=filtering)
    inputs = [path for segment in segments for path in _inputs(segment)]
    if not inputs and not db.exists():
        raise StoreError(f"nothing to update: no CrawlDb in {crawldb}, and no segment with {FETCH_PART}")
    with db.lock(force):
        counters = merge_files(db, inputs, context, settings, entry_filter, now=now)
    log.info("CrawlDb update: finished")
    return counters


def _inputs(segment: Path) -> list[Path]:
    """The part files of a segment that an update reads; none, with a warning, if it has no crawl_fetch."""
    Segment(segment).check()
    if not (segment / FETCH_PART).is_dir():
        log.warning("CrawlDb update: skipping %s, which has no %s", segment, FETCH_PART)
        return []
    found = part_paths(segment / FETCH_PART)
    if (segment / PARSE_PART).is_dir():
        return found + part_paths(segment / PARSE_PART)
    log.info("CrawlDb update: %s is fetched but not parsed", segment)
    return found
