"""Reads the arguments of `minutch mergesegs`; `cycle.segment.mergesegs` does the work, with --tiers
`cycle.segment.compaction`.
"""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Final

from minutch.commands.arguments import Flag, fail, parse
from minutch.cycle.crawl.rounds import Round
from minutch.cycle.crawldb.updatedb import known_urls
from minutch.cycle.segment.compaction import CompactOptions, compact
from minutch.cycle.segment.mergesegs import MergesegsOptions, mergesegs
from minutch.cycle.segment.store import segments_at
from minutch.errors import StoreError
from minutch.hadoop.stores import as_path
from minutch.job import JobContext

log = logging.getLogger(__name__)

USAGE: Final = """SegmentMerger output_dir (-dir segments | seg1 seg2 ...) [-filter] [-normalize] \
[-slice NNNN]
       SegmentMerger --tiers segments [crawldb]
\toutput_dir\tthe directory in which the merged segment, or its slices, are made; it may not exist \
yet
\t-dir segments\tall segments in this directory
\tseg1 seg2 ...\tthe segments to merge
\t-filter\t\tleave out URLs that the filters reject
\t-normalize\tnormalize the URLs
\t-slice NNNN\tmake several segments, each with NNNN URLs
\t--tiers segments\tin place, also beside a running crawl: merge what is worth it, without what \
the crawldb (by default the one beside it) has had as gone for crawl.compact.retention"""

FLAGS: Final = (
    Flag("-dir", "segments", repeats=True),
    Flag("-filter"),
    Flag("-normalize"),
    Flag("-slice", "NNNN", convert=int),
    Flag("--tiers", "segments"),
)


def run(args: list[str], context: JobContext) -> int:
    """The command: exit code 0, or 255 and an error; then there is no output."""
    arguments = parse(args, FLAGS, usage=USAGE)
    if arguments["--tiers"] is not None:
        return _compact(
            as_path(arguments["--tiers"]), list(map(as_path, arguments.positional)), context
        )
    if not arguments.positional:
        fail("too few arguments: no output_dir" if args else "", USAGE)
    output, *paths = map(as_path, arguments.positional)
    segments = segments_at(paths, map(as_path, arguments.get("-dir", [])))
    if not segments:
        fail("No input segments.", USAGE)
    counters = mergesegs(
        output,
        [segment.path for segment in segments],
        MergesegsOptions(
            filtering=arguments["-filter"],
            normalize=arguments["-normalize"],
            slice_size=arguments["-slice"] or 0,
        ),
        context=context,
    )
    context.report("SegmentMerger", counters)
    return 0


def _compact(folder: Path, databases: list[Path], context: JobContext) -> int:
    if len(databases) > 1:
        fail(f"--tiers: expected one crawldb, found {len(databases)}", USAGE)
    crawl = folder.absolute().parent
    known = known_urls(databases[0] if databases else crawl / "crawldb", context.conf)
    if databases and known is None:
        raise StoreError(f"there is no CrawlDb {databases[0]}")
    current = Round.load(crawl)
    leave = [] if current is None else [current.segment, *current.open]
    context.report("SegmentMerger", compact(folder, known, CompactOptions(leave), context=context))
    return 0
