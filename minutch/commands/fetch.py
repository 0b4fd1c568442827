"""`fetch <segment> [-threads n] [-metrics port]`: fetch the pages of a segment's fetch list, here
or by tasks.

Reads crawl_generate, writes content and crawl_fetch (and with fetcher.parse=true the parts of a
parse). While it runs, finished pages lie in `<segment>/_fetch/log-N`; run again on the same segment
it goes on where it was stopped, by whatever. SIGINT, SIGTERM and SIGHUP finish what is in flight, a
second one stops at once; either way the URLs left are fetched by the next run. Source:
org.apache.nutch.fetcher.Fetcher.
"""

from __future__ import annotations

import logging
from contextlib import ExitStack, closing
from typing import TYPE_CHECKING

from minutch.commands.arguments import Flag, parse
from minutch.cycle.fetch.watch import Watch
from minutch.hadoop.stores import as_path
from minutch.inspect.live.liveserver import LiveServer
from minutch.job import JobContext

if TYPE_CHECKING:
    pass
from minutch.cycle.fetch.fetcher import fetch

log = logging.getLogger(__name__)

USAGE = """Fetcher <segment> [-threads n] [-metrics port]
\tsegment\tthe segment whose fetch list is fetched
\t-threads n\tpages fetched at the same time (fetcher.threads.fetch)
\t-metrics port\tserve a live page and figures for Prometheus (/metrics) at this port, 0: any"""
FLAGS = (Flag("-threads", value="n", convert=int), Flag("-metrics", value="port", convert=int))


def run(args: list[str], context: JobContext) -> int:
    """The command. Exit code 0; every failure is 255 as in Nutch."""
    given = parse(args, FLAGS, usage=USAGE, least=1)
    segment, watch = as_path(given.positional[0]), context.watch
    with ExitStack() as stack:
        server: LiveServer | None = None
        if given["-metrics"] is not None and watch is None:
            watch = Watch(f"fetch {segment}", context.clock)
            server = stack.enter_context(
                closing(LiveServer(watch, context.conf, given["-metrics"], "-metrics"))
            )
            context.print(server.says)
            context.out.flush()
        context.reports["Fetcher"] = fetch(
            segment,
            context.conf,
            clock=context.clock,
            err=context.err,
            label=context.label,
            threads=given["-threads"],
            watch=watch,
            serving=None if server is None else server.running,
        )
    return 0
