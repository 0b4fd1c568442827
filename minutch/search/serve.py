"""`minutch serve`: a search page for the local index of a crawl, and what the crawl's files hold of each hit.

It listens on loopback unless -host says otherwise, and shows a commit of the index as soon as there is one.
"""

from __future__ import annotations

import asyncio
import socket
from ipaddress import ip_address
from pathlib import Path
from typing import Final

from minutch.arguments import Flag, fail, parse
from minutch.errors import MinutchError, StoreError
from minutch.job import JobContext
from minutch.search.crawlfiles import CrawlFiles
from minutch.search.results import Searcher

USAGE: Final = """serve <crawl> [-port <port>] [-host <host>] [-index <index>]
\tcrawl\tthe folder of a crawl
\t-port <port>\tthe port to listen on; 8080 is the default, 0 takes a free one
\t-host <host>\tthe host to listen on; localhost is the default. Whoever can connect can read all of the crawl
\t-index <index>\tthe index, if it is not the folder `index` of the crawl"""
FLAGS: Final = (
    Flag("-port", value="port", convert=int, aliases=("--port",)),
    Flag("-host", value="host", aliases=("--host",)),
    Flag("-index", value="index", aliases=("--index",)),
)
DEFAULT_PORT: Final = 8080
_LAST_PORT: Final = 65535
_CONNECTIONS: Final = 100
_LOCAL: Final = ("localhost", "127.0.0.1", "[::1]")


def run(args: list[str], context: JobContext) -> int:
    """The command: runs until it is stopped; exit code 0."""
    given = parse(args, FLAGS, usage=USAGE, least=1, most=1)
    crawl, port = Path(given.positional[0]), given.get("-port", DEFAULT_PORT)
    if not 0 <= port <= _LAST_PORT:
        fail(f"-port: expected 0 to {_LAST_PORT}, found {port}", USAGE)
    if not crawl.is_dir():
        raise StoreError(f"Input path does not exist: {crawl}")
    host = given.get("-host", "localhost")
    searcher = Searcher(Path(given["-index"]) if given["-index"] else crawl / "index")
    listener = _listener(host, port)
    try:
        asyncio.run(_serve(listener, host, searcher, CrawlFiles(crawl), context))
    except KeyboardInterrupt:  # the usual end
        pass
    finally:
        listener.close()
    return 0


def is_local(host: str) -> bool:
    """Whether only this machine can connect to a host."""
    try:
        return host.lower() == "localhost" or ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


def _listener(host: str, port: int) -> socket.socket:
    name = "127.0.0.1" if host.lower() == "localhost" else host.strip("[]")
    family = socket.AF_INET6 if ":" in name else socket.AF_INET
    try:
        return socket.create_server((name, port), family=family)
    except OSError as exc:
        reason = exc.strerror or str(exc)
        raise MinutchError(f"can't listen on {host}:{port}: {reason}", hint="-port takes another port") from exc


async def _serve(
    listener: socket.socket, host: str, searcher: Searcher, crawl: CrawlFiles, context: JobContext
) -> None:
    import uvicorn
    from anyio import to_thread

    from minutch.search.app import make

    shown = f"[{host.strip('[]')}]" if ":" in host else host
    hosts = {*_LOCAL, shown.lower()} | (set() if is_local(host) else {socket.gethostname().lower()})
    server = uvicorn.Server(
        uvicorn.Config(
            make(searcher, crawl, frozenset(hosts)),
            log_config=None,
            log_level="warning",
            access_log=False,
            server_header=False,
            lifespan="off",
            ws="none",
            limit_concurrency=_CONNECTIONS,
            timeout_keep_alive=30,
            timeout_graceful_shutdown=2,
            h11_max_incomplete_event_size=1 << 17,
        )
    )
    await to_thread.run_sync(searcher.search, "*")  # what the first page would wait for
    context.print(f"{searcher.count:,} documents: http://{shown}:{listener.getsockname()[1]}/ (Ctrl-C ends it)")
    context.out.flush()
    await server.serve(sockets=[listener])
