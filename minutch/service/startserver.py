"""startserver: Nutch's REST service. See `minutch/service/__init__.py`.

It listens on loopback and asks for a token, which is made and printed at the start unless minutch.service.token has
one.
Source: org.apache.nutch.service.NutchServer (until Nutch 1.22), which listens for everybody's requests without asking.
"""

from __future__ import annotations

import asyncio
import logging
import secrets
import socket
from ipaddress import ip_address
from pathlib import Path
from typing import Final

from minutch.arguments import Flag, fail, parse
from minutch.conf import Configuration
from minutch.errors import ConfigError, MinutchError
from minutch.job import JobContext
from minutch.service.access import LEAST_TOKEN, Access
from minutch.service.configs import Configs
from minutch.service.confined import Root
from minutch.service.jobtable import JobTable

log = logging.getLogger(__name__)

USAGE: Final = """NutchServer [-help] [-host <host>] [-port <port>] [-root <folder>]
\t-help\tshow this help
\t-host <host>\tthe host to listen on; localhost is the default
\t-port <port>\tthe port to listen on; 8081 is the default, 0 takes a free one
\t-root <folder>\twhere crawls lie; no path of a client leads outside; the working folder is the default"""

FLAGS: Final = (
    Flag("-host", value="host"),
    Flag("-port", value="port", convert=int),
    Flag("-root", value="folder"),
)

DEFAULT_PORT: Final = 8081
_LAST_PORT: Final = 65535
_CONNECTIONS: Final = 100
_LOCAL: Final = ("localhost", "127.0.0.1", "[::1]")


def run(args: list[str], context: JobContext) -> int:
    """The command: runs until it is stopped; exit code 0."""
    given = parse(args, FLAGS, usage=USAGE, most=0)
    port = DEFAULT_PORT if given["-port"] is None else given["-port"]
    if not 0 <= port <= _LAST_PORT:
        fail(f"-port: expected 0 to {_LAST_PORT}, found {port}", USAGE)
    host, folder = given.get("-host", "localhost"), Path(given.get("-root", "."))
    if not folder.is_dir():
        raise MinutchError(f"{folder}: no such folder", hint="-root names the folder that crawls lie in")
    token = token_from(context.conf, host)
    listener = _listener(host, port)
    try:
        asyncio.run(_serve(listener, host, folder, token, context))
    finally:
        listener.close()
    return 0


def token_from(conf: Configuration, host: str) -> str | None:
    """The token that is asked for; None if authentication is off, which is for loopback alone. Raises ConfigError."""
    if not conf.get_boolean("minutch.service.auth", True):
        if not _is_local(host):
            raise ConfigError(f"minutch.service.auth=false is for loopback alone, not for {host}")
        log.warning("whoever can connect to the service may start and stop jobs (minutch.service.auth=false)")
        return None
    token = conf.get("minutch.service.token", "").strip()
    if token and (len(token) < LEAST_TOKEN or not token.isascii() or not token.isprintable()):
        raise ConfigError(f"minutch.service.token: expected {LEAST_TOKEN} printable ASCII characters at least")
    return token or secrets.token_urlsafe(32)


def _is_local(host: str) -> bool:
    if host.lower() == "localhost":
        return True
    try:
        return ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


def _listener(host: str, port: int) -> socket.socket:
    name = "127.0.0.1" if host.lower() == "localhost" else host.strip("[]")
    family = socket.AF_INET6 if ":" in name else socket.AF_INET
    try:
        return socket.create_server((name, port), family=family)
    except (OSError, OverflowError) as exc:
        reason = getattr(exc, "strerror", None) or str(exc)
        raise MinutchError(f"can't listen on {host}:{port}: {reason}", hint="-port takes another port") from exc


def _names(host: str, conf: Configuration) -> frozenset[str]:
    own = f"[{host.strip('[]')}]" if ":" in host else host
    names = {own.lower(), *(name.lower() for name in conf.get_trimmed_strings("minutch.service.hosts"))}
    return frozenset(names | set(_LOCAL)) if _is_local(host) else frozenset(names)


async def _serve(listener: socket.socket, host: str, folder: Path, token: str | None, context: JobContext) -> None:
    import uvicorn

    from minutch import __version__
    from minutch.service.app import Service, make

    conf, port = context.conf, listener.getsockname()[1]
    jobs = JobTable(max(conf.get_int("minutch.service.jobs", 10), 1))
    configs = Configs(conf, may_change=token is not None)
    service = Service(Root(folder), Access(token, _names(host, conf)), configs, jobs, __version__, lambda: None, port)
    server = uvicorn.Server(
        uvicorn.Config(
            make(service),
            log_config=None,
            access_log=False,
            server_header=False,
            lifespan="off",
            ws="none",
            limit_concurrency=_CONNECTIONS,
            timeout_keep_alive=30,
            timeout_graceful_shutdown=5,
            h11_max_incomplete_event_size=1 << 16,
        )
    )

    def stop() -> None:
        server.should_exit = True

    service.stop = stop
    context.print(f"http://{host}:{port}/")
    if token is not None and not conf.get("minutch.service.token", "").strip():
        context.print(f"token: {token}")
    context.out.flush()
    try:
        await server.serve(sockets=[listener])
    finally:
        await jobs.close()
