"""`minutch serve`: serves a search page for the local index of a crawl, and what the crawl's files
hold of each hit.

It listens on loopback unless -host says otherwise, and shows a commit of the index as soon as there
is one.
"""

from __future__ import annotations

import asyncio
import socket
from pathlib import Path
from typing import Final

from minutch.commands.arguments import Flag, fail, parse
from minutch.errors import StoreError
from minutch.inspect.search.crawlfiles import CrawlFiles
from minutch.inspect.search.searcher import Searcher
from minutch.job import JobContext
from minutch.terminal import counted
from minutch.web.access import LAST_PORT, LOCAL, Access, is_local, listen

USAGE: Final = """serve <crawl> [-port <port>] [-host <host>] [-index <index>]
\tcrawl\tthe folder of a crawl
\t-port <port>\tthe port to listen on; 8080 is the default, 0 takes a free one
\t-host <host>\tthe host to listen on; localhost is the default.
                Whoever can connect can read all of the crawl
\t-index <index>\tthe index, if it is not the folder `index` of the crawl"""
FLAGS: Final = (
    Flag("-port", value="port", convert=int, aliases=("--port",)),
    Flag("-host", value="host", aliases=("--host",)),
    Flag("-index", value="index", aliases=("--index",)),
)
DEFAULT_PORT: Final = 8080


def run(args: list[str], context: JobContext) -> int:
    """Runs until it is stopped. Exit code 0."""
    arguments = parse(args, FLAGS, usage=USAGE, least=1, most=1)
    crawl, port = Path(arguments.positional[0]), arguments.get("-port", DEFAULT_PORT)
    if not 0 <= port <= LAST_PORT:
        fail(f"-port: expected 0 to {LAST_PORT}, found {port}", USAGE)
    if not crawl.is_dir():
        raise StoreError(f"Input path does not exist: {crawl}")
    host = arguments.get("-host", "localhost")
    searcher = Searcher(Path(arguments["-index"]) if arguments["-index"] else crawl / "index")
    listener = listen(host, port)
    try:
        asyncio.run(_serve(listener, host, searcher, CrawlFiles(crawl), context))
    except KeyboardInterrupt:  # the usual end
        pass
    finally:
        listener.close()
    return 0


async def _serve(
    listener: socket.socket, host: str, searcher: Searcher, crawl: CrawlFiles, context: JobContext
) -> None:
    from anyio import to_thread

    from minutch.inspect.query.crawl import open_crawl
    from minutch.inspect.report.reportfile import gathered, to_html
    from minutch.inspect.search.app import make
    from minutch.web.serving import server

    shown = f"[{host.strip('[]')}]" if ":" in host else host
    hosts = {*LOCAL, shown.lower()} | (set() if is_local(host) else {socket.gethostname().lower()})

    access = Access(None, frozenset(hosts), any_address=True)

    def report() -> str:
        return to_html(gathered(open_crawl(crawl.folder), context))

    running = server(make(searcher, crawl, access, report), longest_head=1 << 17)
    await to_thread.run_sync(searcher.search, "*")  # what the first page would wait for
    context.print(
        f"{counted(searcher.count, 'documents')}: http://{shown}:{listener.getsockname()[1]}/"
        " (Ctrl-C ends it)"
    )
    context.out.flush()
    await running.serve(sockets=[listener])
