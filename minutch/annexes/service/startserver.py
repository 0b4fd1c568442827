"""startserver: runs Nutch's REST service (`minutch/annexes/service/`).

It listens on the loopback interface and requires a token, which is generated and printed at the
start unless minutch.service.token has one. Source: org.apache.nutch.service.NutchServer (until
Nutch 1.22), which accepts requests from anywhere without authentication.
"""

from __future__ import annotations

import asyncio
import socket
from pathlib import Path
from typing import Final

from minutch.annexes.service.configs import Configs
from minutch.annexes.service.confinedpaths import Root
from minutch.annexes.service.jobtable import JobTable
from minutch.annexes.service.openapi import OPEN
from minutch.commands.arguments import Arguments
from minutch.conf import Configuration
from minutch.errors import MinutchError
from minutch.job import JobContext
from minutch.version import __version__
from minutch.web.access import LOCAL, Access, is_local, is_made, listen, token_from

DEFAULT_PORT: Final = 8081
HOSTS_PROPERTY: Final = "minutch.service.hosts"


def run(arguments: Arguments, context: JobContext) -> int:
    """Runs the service until it is stopped; returns 0."""
    port = arguments.get("-port", DEFAULT_PORT)
    host, folder = arguments.get("-host", "localhost"), arguments.get("-root", Path())
    if not folder.is_dir():
        raise MinutchError(f"{folder}: no such folder", hint="-root is the folder of crawls")
    token = token_from(context.conf, host)
    listener = listen(host, port)
    try:
        asyncio.run(_serve(listener, host, folder, token, context))
    finally:
        listener.close()
    return 0


def _names(host: str, conf: Configuration) -> frozenset[str]:
    own = f"[{host.strip('[]')}]" if ":" in host else host
    names = {own.lower(), *(name.lower() for name in conf.get_trimmed_strings(HOSTS_PROPERTY))}
    return LOCAL | names if is_local(host) else frozenset(names)


async def _serve(
    listener: socket.socket, host: str, folder: Path, token: str | None, context: JobContext
) -> None:
    from minutch.annexes.service.app import Service, make
    from minutch.web.serving import server

    conf, port = context.conf, listener.getsockname()[1]
    jobs = JobTable(max(conf.get_int("minutch.service.jobs"), 1))
    configs = Configs(conf, may_change=token is not None)
    access = Access(token, _names(host, conf), OPEN, hosts_property=HOSTS_PROPERTY)
    service = Service(Root(folder), access, configs, jobs, __version__, lambda: None, port)
    running = server(make(service), patience=5)

    def stop() -> None:
        running.should_exit = True

    service.stop = stop
    context.print(f"http://{host}:{port}/")
    if token is not None and is_made(conf):
        context.print(f"token: {token}")
    context.out.flush()
    try:
        await running.serve(sockets=[listener])
    finally:
        await jobs.close()
