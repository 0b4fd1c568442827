"""`minutch fetch`: fetches the pages of a fetch list (org.apache.nutch.fetcher.Fetcher)."""

from __future__ import annotations

from contextlib import ExitStack, closing

from minutch.commands.arguments import Flag, parse
from minutch.cycle.fetch.fetcher import fetch
from minutch.cycle.fetch.ledger import Outcome
from minutch.cycle.fetch.settings import FetchOptions
from minutch.cycle.fetch.watch import Watch
from minutch.errors import MinutchError
from minutch.hadoop.stores import as_path
from minutch.inspect.live.liveserver import LiveServer, LiveSettings
from minutch.job import JobContext

USAGE = """Fetcher <segment> [-threads n] [-metrics port]
\tsegment\tthe segment whose fetch list is fetched
\t-threads n\tpages fetched at the same time (fetcher.threads.fetch)
\t-metrics port\tserve a live page and figures for Prometheus (/metrics) at this port, 0: any"""
FLAGS = (Flag("-threads", value="n", convert=int), Flag("-metrics", value="port", convert=int))


def run(args: list[str], context: JobContext) -> int:
    """Fetches a segment. Exit code 0; every failure is 255 as in Nutch, and so is a list of which
    nothing may be asked for.
    """
    arguments = parse(args, FLAGS, usage=USAGE, least=1)
    segment, port = as_path(arguments.positional[0]), arguments["-metrics"]
    watch: Watch | None = None
    with ExitStack() as stack:
        server: LiveServer | None = None
        if port is not None and context.watch is None:
            watch = Watch(f"fetch {segment}", context.clock)
            server = stack.enter_context(
                closing(LiveServer(watch, LiveSettings.from_conf(context.conf), port, "-metrics"))
            )
            context.print(server.says)
            context.out.flush()
        counters = context.reports["Fetcher"] = fetch(
            segment,
            FetchOptions(threads=arguments["-threads"]),
            context=context,
            watch=watch,
            serving=None if server is None else server.running,
        )
    if 0 < counters["generated"] == counters.get(Outcome.SKIPPED_REFUSED.label, 0):
        raise MinutchError(
            "nothing was fetched: this crawler's own settings refuse all pages",
            hint="the log names the property for each, such as http.filter.ipaddress.include",
        )
    return 0
