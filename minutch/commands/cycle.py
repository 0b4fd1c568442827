"""What steps of the cycle do besides calling their job: `fetch` shows a live page, `generate` says
by its exit code that nothing is due, `index` leaves out segments that are not complete.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from contextlib import AbstractContextManager, ExitStack, closing, nullcontext
from dataclasses import replace
from pathlib import Path

from minutch.commands.arguments import Arguments
from minutch.errors import MinutchError
from minutch.job import Counters, JobContext
from minutch.paths import as_path

log = logging.getLogger(__name__)


def generate(arguments: Arguments, context: JobContext) -> int:
    """Exit code 1 where nothing is due (no segment is made)."""
    from minutch.cycle.fetchlist.selector import HOSTDB_PROPERTY

    hostdb = arguments["-hostdb"] or context.conf.get_trimmed(HOSTDB_PROPERTY)
    result = arguments.call(context, hostdb=as_path(hostdb) if hostdb else None)
    context.report("Generator", result.counters)
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
            context.out.flush()
        counters = context.reports["Fetcher"] = job(
            segment, arguments.settings(), context=context, serving=serving
        )
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
    crawldb = None if arguments["-nocrawldb"] or not words else words.pop(0)
    segments = segments_at(words, arguments["-dir"] or ())
    for segment in segments:
        segment.check()
        if not segment.path.is_dir():
            log.error("Input path does not exist: %s", segment.path)
    paths = [one.path for one in segments if one.path.is_dir() and one.is_complete()]
    if not paths:
        arguments.fail(
            "No indexable segments passed as arguments. At least one segment is required!"
        )
    context.report("Indexer", job(crawldb, paths, arguments.settings(), context=context))
    return 0
