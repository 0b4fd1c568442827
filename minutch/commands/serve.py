"""`minutch serve`: serves a search page for the local index of a crawl, and what the crawl's files
hold of each hit.

It listens on loopback unless -host says otherwise, and shows a commit of the index as soon as there
is one.
"""

from __future__ import annotations

import asyncio
import socket
from typing import Final

from minutch.commands.arguments import Arguments
from minutch.errors import StoreError
from minutch.inspect.search.crawlfiles import CrawlFiles
from minutch.inspect.search.searcher import Searcher
from minutch.job import JobContext
from minutch.terminal import counted
from minutch.web.access import LOCAL, Access, is_local, listen

DEFAULT_PORT: Final = 8080


def run(arguments: Arguments, context: JobContext) -> int:
    """Runs until it is stopped. Exit code 0."""
    crawl, port = arguments["crawl"], arguments.get("-port", DEFAULT_PORT)
    if not crawl.is_dir():
        raise StoreError(f"Input path does not exist: {crawl}")
    host = arguments.get("-host", "localhost")
    searcher = Searcher(arguments["-index"] or crawl / "index")
    # A port that is taken is said before the index is opened for the first page.
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

    # Nobody needs a token to read; by any address, since 0.0.0.0 has no name of its own.
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
