"""Opens a server's socket, finds its token and configures uvicorn."""

from __future__ import annotations

import logging
import secrets
import socket
from ipaddress import ip_address
from typing import TYPE_CHECKING, Final

from minutch.conf import Configuration
from minutch.errors import ConfigError, MinutchError
from minutch.web.access import LEAST_TOKEN

if TYPE_CHECKING:
    import uvicorn
    from starlette.types import ASGIApp

log = logging.getLogger(__name__)

LAST_PORT: Final = 65535
TOKEN_PROPERTY: Final = "minutch.service.token"
AUTH_PROPERTY: Final = "minutch.service.auth"


def is_local(host: str) -> bool:
    """Returns whether only this machine can connect to a host."""
    try:
        return host.lower() == "localhost" or ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


def listen(host: str, port: int, option: str = "-port") -> socket.socket:
    """Returns a socket that listens; port 0 takes a free one. Raises MinutchError; `option` is what
    chooses the port.
    """
    name = "127.0.0.1" if host.lower() == "localhost" else host.strip("[]")
    family = socket.AF_INET6 if ":" in name else socket.AF_INET
    try:
        return socket.create_server((name, port), family=family)
    except (OSError, OverflowError) as exc:
        reason = getattr(exc, "strerror", None) or str(exc)
        raise MinutchError(
            f"can't listen on {host}:{port}: {reason}", hint=f"{option} takes another port"
        ) from exc


def token_from(conf: Configuration, host: str) -> str | None:
    """Returns the token that is asked for; None if authentication is off, which is for loopback
    alone. Raises ConfigError.
    """
    if not conf.get_boolean(AUTH_PROPERTY):
        if not is_local(host):
            raise ConfigError(f"{AUTH_PROPERTY}=false is for loopback alone, not for {host}")
        log.warning("anybody who can connect may start and stop jobs (%s=false)", AUTH_PROPERTY)
        return None
    token = conf.get(TOKEN_PROPERTY, "").strip()
    if token and (len(token) < LEAST_TOKEN or not token.isascii() or not token.isprintable()):
        raise ConfigError(
            f"{TOKEN_PROPERTY}: expected {LEAST_TOKEN} printable ASCII characters at least"
        )
    return token or secrets.token_urlsafe(32)


def is_made(conf: Configuration) -> bool:
    """Returns whether the token was made at the start, so that it has to be shown."""
    return not conf.get(TOKEN_PROPERTY, "").strip()


def server(app: ASGIApp, *, patience: int = 2, longest_head: int = 1 << 16) -> uvicorn.Server:
    """Returns a server of `app`: it logs through us, says nothing of itself, and waits `patience` s
    for answers at its end.
    """
    import uvicorn

    from minutch.web.connections import MOST, PATIENCE, Connection

    return uvicorn.Server(
        uvicorn.Config(
            app,
            log_config=None,
            log_level="warning",
            access_log=False,
            server_header=False,
            lifespan="off",
            ws="none",
            http=Connection,
            limit_concurrency=2
            * MOST,  # answers to clients that have gone, besides the connections
            timeout_keep_alive=int(PATIENCE),
            timeout_graceful_shutdown=patience,
            h11_max_incomplete_event_size=longest_head,
        )
    )
