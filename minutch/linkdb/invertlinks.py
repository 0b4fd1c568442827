"""invertlinks: collect the links to each page from the parsed pages of segments, into the LinkDb.

The links of the segments are inverted (`mapreduce.invert`); where there is a LinkDb, its records and the new ones are
merged (`mapreduce.merge`), with all URLs of both normalized and filtered. Many links are sorted instead (`bulk`).
Matched: org.apache.nutch.crawl.LinkDb.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import polars as pl

from minutch.arguments import fail
from minutch.errors import StoreError
from minutch.job import Counters, JobContext
from minutch.linkdb.building import (
    layout_for,
    merge_parts,
    number_of_parts,
    stored,
    stored_parts,
    write,
    write_streams,
)
from minutch.linkdb.bulk import Gathered, is_small, united
from minutch.linkdb.linkrules import MAX_INLINKS_PROPERTY, LinkRules, UrlChain
from minutch.linkdb.mapreduce import invert
from minutch.linkdb.store import LinkDb
from minutch.segment.store import PARSE_DATA, Segment, segments_in
from minutch.tables.database import record_estimate
from minutch.tables.links import scan_outlinks
from minutch.tables.parallel import memory_budget

log = logging.getLogger(__name__)

USAGE: Final = """LinkDb <linkdb> (-dir <segmentsDir> | <seg1> <seg2> ...) [-force] [-noNormalize] [-noFilter]
\tlinkdb\tthe LinkDb to make or to add to
\t-dir segmentsDir\tthe directory of the segments
\tseg1 seg2 ...\tthe segments
\t-force\tgo past another's lock on the LinkDb
\t-noNormalize\tdon't normalize the URLs of links
\t-noFilter\tdon't filter the URLs of links"""


def run(args: list[str], context: JobContext) -> int:
    """The command: exit code 0, or 255 (and an error) where the LinkDb stays as it was."""
    switches = {"-nonormalize": False, "-nofilter": False, "-force": False}
    paths: list[Path] = []
    words = iter(args)
    for word in words:
        if paths and word.lower() in switches:
            switches[word.lower()] = True
        elif paths and word == "-dir":
            directory = next(words, "") or fail("-dir needs a directory", USAGE)
            paths += [segment.path for segment in segments_in(Path(directory))]
        elif word.startswith("-"):
            fail(f"unknown option {word}", USAGE)
        else:
            paths.append(Path(word))
    if len(args) < 2 or not paths:
        fail("", USAGE)
    counters = invertlinks(
        paths[0],
        paths[1:],
        context,
        normalize=not switches["-nonormalize"],
        filtering=not switches["-nofilter"],
        force=switches["-force"],
    )
    context.report("LinkDb", counters)
    return 0


def invertlinks(
    linkdb: Path,
    segments: Sequence[Path],
    context: JobContext,
    *,
    normalize: bool = True,
    filtering: bool = True,
    force: bool = False,
) -> Counters:
    """Add the links of `segments` to the LinkDb at `linkdb`, which is made if there is none.

    Returns what became of the links. Raises LockedError, StoreError (no segments, one that is not parsed), FormatError
    (damage, a LinkDb with both layouts of Inlinks); the LinkDb is then as before.
    """
    if not segments:
        raise StoreError("no segments to take links from")
    conf, db = context.conf, LinkDb(linkdb)
    chain = UrlChain(conf, normalize=normalize, filtering=filtering)
    rules = LinkRules(conf, UrlChain(conf, normalize=False, filtering=False) if db.exists() else chain)
    _log_start(linkdb, segments, rules, normalize=normalize, filtering=filtering)
    counters = Counters()
    if rules.ignore_internal and rules.ignore_external:
        log.warning("LinkDb: internal and external links are ignored, which leaves nothing to do")
        return counters
    parts, limit = number_of_parts(conf), conf.get_int(MAX_INLINKS_PROPERTY, 10_000)
    late = chain if db.exists() else UrlChain(conf, normalize=False, filtering=False)
    gathered = Gathered(
        parts, budget=memory_budget(conf) // 2, spill=linkdb, change=lambda links: late.apply(links, counters)
    )
    paths = [part for segment in segments for part in Segment(segment).parts(PARSE_DATA)]
    pages = 0

    def all_links() -> int:
        """About how many links there are: as many for each page as until now."""
        return progress.done * record_estimate(paths) // max(pages, 1)

    with db.lock(force), gathered, context.progress("invertlinks", all_links) as progress:
        layout = layout_for(conf, [db])
        for path in paths:
            gathered.begin_task()
            for outlinks in scan_outlinks(path):
                pages += _runs(outlinks["key"])
                gathered.add(rules.apply(outlinks, counters))
                progress.advance(len(outlinks))
        if db.exists():
            log.info("LinkDb: merging with existing linkdb: %s", linkdb)
        tasks = gathered.tasks
        if tasks is not None and is_small([db]):
            result = invert(tasks, parts, limit) if tasks else []
            if db.exists():
                result = merge_parts([*stored_parts(db), *result], chain, parts, limit, counters)
            write(db, result, parts, layout, counters)
        else:
            gathered.spread()
            with stored(db, parts, chain, conf, counters) as old:
                sources = [old, gathered.shuffle]
                progress.expect(lambda: sum(source.rows for source in sources))
                write_streams(db, lambda part: united(sources, part, limit), parts, layout, counters, progress)
    log.info("LinkDb: finished")
    return counters


def _runs(column: pl.Series) -> int:
    """How often the value changes, the first one included."""
    return int(column.ne_missing(column.shift()).sum()) if len(column) else 0


def _log_start(linkdb: Path, segments: Sequence[Path], rules: LinkRules, *, normalize: bool, filtering: bool) -> None:
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
