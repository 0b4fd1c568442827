"""What commands do besides calling their job: `fetch` shows a live page, `generate` says by its
exit code that nothing is due, `index` leaves out segments that are not complete.

Each imports what it calls: a command loads nothing of the others'.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, closing, nullcontext
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from minutch.commands.arguments import Arguments
from minutch.errors import LockedError, MinutchError, StoreError
from minutch.job import Counters, JobContext
from minutch.paths import as_path
from minutch.terminal import counted
from minutch.work.tables.lock import LOCK_NAME, Owner

if TYPE_CHECKING:
    from minutch.inspect.report.reportfile import Report


log = logging.getLogger(__name__)


def generate(arguments: Arguments, context: JobContext) -> int:
    """Exit code 1 where nothing is due (no segment is made)."""
    from minutch.cycle.fetchlist.selector import HOSTDB_PROPERTY

    hostdb = arguments["-hostdb"] or context.conf.get_trimmed(HOSTDB_PROPERTY)
    result = arguments.call(context, hostdb=as_path(hostdb) if hostdb else None)
    context.report("Generator", result.counters)
    # Generator.run; bin/crawl ends its rounds by it.
    return 0 if result.segments else 1


def freegen(made: tuple[Path, Counters], arguments: Arguments, context: JobContext) -> int:
    """Says which segment was made."""
    segment, counters = made
    log.info("FreeGenerator: segment: %s", segment)
    context.report("FreeGenerator", counters)
    return 0


def fetch(arguments: Arguments, context: JobContext) -> int:
    """Exit code 0; any failure is 255 as in Nutch, as is a list that may not be asked for."""
    from minutch.cycle.fetch.fetcher import fetch as job
    from minutch.cycle.fetch.ledger import Outcome
    from minutch.cycle.fetch.watch import Watch
    from minutch.inspect.live.liveserver import LiveServer, LiveSettings

    segment, port = arguments["segment"], arguments["-metrics"]
    with ExitStack() as stack:
        serving: Callable[[], AbstractContextManager[None]] = nullcontext
        if port is not None and context.watch is None:
            watch = Watch(f"fetch {segment}", context.clock)
            settings = LiveSettings.from_conf(context.conf)
            server = stack.enter_context(closing(LiveServer(watch, settings, port, "-metrics")))
            serving, context = server.running, replace(context, watch=watch)
            context.print(server.says)
            # Scripts read the address of a port 0 from a pipe while the fetch goes on.
            context.out.flush()
        counters = context.reports["Fetcher"] = job(
            segment, arguments.settings(), context=context, serving=serving
        )
    # A seed on a private network: exit code 0 had told nobody that nothing was asked for.
    if 0 < counters["generated"] == counters.get(Outcome.SKIPPED_REFUSED.label, 0):
        raise MinutchError(
            "nothing was fetched: this crawler's own settings refuse all pages",
            hint="the log names the property for each, such as http.filter.ipaddress.include",
        )
    return 0


def sitemap(arguments: Arguments, context: JobContext) -> int:
    """Needs a source of sitemaps."""
    if arguments["-hostdb"] is None and arguments["-sitemapUrls"] is None:
        arguments.fail("neither -hostdb nor -sitemapUrls is given")
    context.report("SitemapProcessor", arguments.call(context))
    return 0


def nodedumper(arguments: Arguments, context: JobContext) -> int:
    """Checks the two words of -group."""
    group = arguments["-group"]
    if group and (group[0] not in ("host", "domain") or group[1] not in ("sum", "max")):
        arguments.fail(f"-group: expected host or domain, and sum or max, found {' '.join(group)}")
    context.report("NodeDumper", arguments.call(context))
    return 0


def index(arguments: Arguments, context: JobContext) -> int:
    """Indexes all complete segments."""
    from minutch.cycle.index.indexing import index as job
    from minutch.cycle.segment.store import segments_at

    if not arguments.words:
        arguments.fail("")
    words = [arguments["crawldb"], *arguments["segment"]] if arguments["crawldb"] else []
    # With -nocrawldb the first word is a segment (IndexingJob.run).
    crawldb = None if arguments["-nocrawldb"] or not words else words.pop(0)
    segments = segments_at(words, arguments["-dir"] or ())
    for segment in segments:
        segment.check()
        if not segment.path.is_dir():
            log.error("Input path does not exist: %s", segment.path)
    # SegmentChecker.isIndexable: others are logged and left out.
    paths = [one.path for one in segments if one.path.is_dir() and one.is_complete()]
    if not paths:
        arguments.fail(
            "No indexable segments passed as arguments. At least one segment is required!"
        )
    context.report("Indexer", job(crawldb, paths, arguments.settings(), context=context))
    return 0


def report(made: Report, arguments: Arguments, context: JobContext) -> int:
    """Says what the report is about."""
    urls, rounds = made.facts.total("urls") or 0, made.facts.total("rounds") or 0
    context.print(f"{made.file}: {counted(urls, 'URLs')}, {counted(rounds, 'rounds')}")
    return 0


def fsck(arguments: Arguments, context: JobContext) -> int:
    """Exit code 0 if nothing is wrong, or nothing any more; otherwise 1."""
    if arguments["-drop"] and not arguments["-repair"]:
        arguments.fail("-drop is for -repair")
    result = arguments.call(context)
    context.report("fsck", result.counters)
    return 1 if result.left else 0


def unlock(arguments: Arguments, context: JobContext) -> int:
    """Removes locks whose owners no longer run. A lock of a running process stays; one of another
    machine or without an owner (Nutch writes such) can't be judged from here: -force removes it,
    too. Raises LockedError if one is left.
    """
    left = []
    for folder in arguments["folder"]:
        if not folder.is_dir():
            raise StoreError(f"{folder}: no such folder")
        locks = list(_locks(folder))
        if not locks:
            context.print(f"{folder}: not locked")
        for path in locks:
            left += _unlock(path, context, force=arguments["-force"])
    if left:
        raise LockedError(
            "; ".join(left),
            hint="-force removes them all the same: make sure that no job is running",
        )
    return 0


def _locks(folder: Path) -> Iterator[Path]:
    """Yields the lock files of a folder and of those in it, three levels down: of a crawl's
    databases, its segments, and what a fetcher locks in them.
    """
    for pattern in ("", "*/", "*/*/", "*/*/*/"):
        yield from sorted(folder.glob(f"{pattern}{LOCK_NAME}"))


def _unlock(path: Path, context: JobContext, *, force: bool) -> list[str]:
    """Removes a lock; returns the reason if it has to stay."""
    owner = Owner.parse(path.read_text(encoding="utf-8", errors="replace"))
    if force or (owner is not None and owner.is_gone()):
        path.unlink(missing_ok=True)
        context.print(f"{path}: removed, it was held by {owner or 'an unknown owner'}")
        return []
    return [f"{path} is held by {owner or 'an unknown owner (perhaps Nutch)'}"]


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
    # The round that a crawl is in: its segments are still written to.
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
