"""What commands on segments and archives do besides calling their job."""

from __future__ import annotations

import logging

from minutch.commands.arguments import Arguments
from minutch.errors import StoreError
from minutch.job import JobContext

log = logging.getLogger(__name__)


def mergesegs(arguments: Arguments, context: JobContext) -> int:
    """Merges segments into new ones, or with --tiers in place."""
    if arguments["--tiers"] is not None:
        return _compact(arguments, context)
    if arguments["output_dir"] is None:
        arguments.fail("too few arguments: no <output_dir>")
    if not arguments.parameters()[1]:
        arguments.fail("No input segments.")
    context.report("SegmentMerger", arguments.call(context))
    return 0


def _compact(arguments: Arguments, context: JobContext) -> int:
    from minutch.cycle.crawl.rounds import Round
    from minutch.cycle.crawldb.updatedb import known_urls
    from minutch.cycle.segment.compaction import CompactOptions, compact

    folder, databases = arguments["--tiers"], arguments.positional
    if len(databases) > 1:
        arguments.fail(f"--tiers: expected one crawldb, found {len(databases)}")
    crawl = folder.absolute().parent
    database = arguments["output_dir"] if databases else crawl / "crawldb"
    known = known_urls(database, context.conf)
    if databases and known is None:
        raise StoreError(f"there is no CrawlDb {database}")
    current = Round.load(crawl)
    leave = [] if current is None else [current.segment, *current.open]
    context.report("SegmentMerger", compact(folder, known, CompactOptions(leave), context=context))
    return 0


def warc(arguments: Arguments, context: JobContext) -> int:
    """Exports segments, of which there have to be some."""
    from minutch.archives.exporters import export_nutch_warc

    output, segments = arguments.parameters()
    if not segments:
        arguments.fail("no segments")
    log.info("WARCExporter: starting")
    counters = export_nutch_warc(segments, output, arguments.settings(), context=context)
    context.report("WARCExporter", counters)
    log.info("WARCExporter: finished")
    return 0


def dump(arguments: Arguments, context: JobContext) -> int:
    """Writes the pages, or prints the numbers of their media types."""
    from minutch.archives.filedumper import count_media_types

    if arguments["-mimeStats"]:
        types = count_media_types(arguments["-segment"], arguments.settings(), context=context)
        context.print(f"Dumper File Stats: {types.text()}")
        return 0
    context.report("FileDumper", arguments.call(context))
    return 0


def import_archives(arguments: Arguments, context: JobContext) -> int:
    """Imports the visits that are wanted."""
    from minutch.archives.replay.replayer import VisitFilter

    counters = arguments.call(context, wanted=arguments.made(VisitFilter))
    context.report("import", counters)
    return 0
