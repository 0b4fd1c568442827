"""invertlinks: collects the links to each page, from the parsed pages of segments, in the LinkDb.

Where there is a LinkDb, its links and the new ones are merged; the URLs of both are normalized and
filtered. Which links count is decided in `rules`; `build` says in which order they stand.

Source: org.apache.nutch.crawl.LinkDb.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import polars as pl

from minutch.cycle.linkdb.build import LinkDbSettings, NewLinks, build
from minutch.cycle.linkdb.outlinks import scan_links
from minutch.cycle.linkdb.rules import LinkRules, UrlChain
from minutch.cycle.linkdb.store import LinkDb
from minutch.cycle.segment.store import PARSE_DATA, segments_at
from minutch.errors import StoreError
from minutch.job import Counters, JobContext
from minutch.work.engine import Task, engine_of
from minutch.work.tables.database import record_estimate
from minutch.work.tables.install import mark_success
from minutch.work.tables.spans import InputSplit

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class InvertOptions:
    """The options of invertlinks."""

    normalize: bool = True
    """Whether the URL normalizers apply."""
    filtering: bool = True
    """Whether the URL filters apply."""
    force: bool = False
    """Whether another process's lock is passed over."""


def invertlinks(
    linkdb: Path,
    segments: Sequence[Path],
    options: InvertOptions = InvertOptions(),
    *,
    context: JobContext,
) -> Counters:
    """Adds the links of `segments` to the LinkDb at `linkdb`, which is made if there is none.

    Returns what became of the links. Raises LockedError, StoreError (no segments, one that is not
    parsed), FormatError (damage, a LinkDb with both layouts of Inlinks); the LinkDb is then as
    before.
    """
    if not segments:
        raise StoreError("no segments to take links from")
    given = segments_at(segments)
    for segment in given:
        segment.check()
    conf, db = context.conf, LinkDb(linkdb)
    chain = UrlChain.from_conf(conf, normalize=options.normalize, filtering=options.filtering)
    rules = LinkRules.from_conf(conf, chain)
    _log_start(linkdb, segments, rules, normalize=options.normalize, filtering=options.filtering)
    if rules.ignore_internal and rules.ignore_external:
        log.warning("LinkDb: internal and external links are ignored, which leaves nothing to do")
        return Counters()
    paths = [part for segment in given for part in segment.parts(PARSE_DATA)]

    def read(task: Task, piece: InputSplit) -> Iterator[pl.DataFrame]:
        for found in scan_links(piece, rules):
            task.counters.merge(found.counters)
            yield found.links
            task.advance(found.pages)

    settings, engine = LinkDbSettings.from_conf(conf), engine_of(conf)
    with (
        db.lock(options.force),
        context.progress("invertlinks", lambda: record_estimate(paths)) as progress,
    ):
        stored = [db] if db.exists() else []
        if stored:
            log.info("LinkDb: merging with existing linkdb: %s", linkdb)
        counters = build(
            db,
            stored,
            NewLinks(read, engine.splits(paths)),
            chain=chain,
            settings=settings,
            engine=engine,
            progress=progress,
        )
        mark_success(conf, db.current)
    log.info("LinkDb: finished")
    return counters


def _log_start(
    linkdb: Path, segments: Sequence[Path], rules: LinkRules, *, normalize: bool, filtering: bool
) -> None:
    log.info("LinkDb: starting")
    log.info("LinkDb: linkdb: %s", linkdb)
    log.info("LinkDb: URL normalize: %s", str(normalize).lower())
    log.info("LinkDb: URL filter: %s", str(filtering).lower())
    if rules.ignore_internal:
        log.info("LinkDb: internal links will be ignored.")
    if rules.ignore_external:
        log.info("LinkDb: external links will be ignored.")
    for segment in segments:
        log.info("LinkDb: adding segment: %s", segment)
