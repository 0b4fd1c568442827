"""Names the server that a host name means, in one form: `localhost.` is `localhost`, `127.1` is
`127.0.0.1`, `bücher.example` is `xn--bcher-kva.example`.
"""

from __future__ import annotations

import socket
from functools import lru_cache

from minutch.errors import UrlError
from minutch.urls import idn


def canonical_host(host: str) -> str:
    """Returns the form in which a host is asked for and counted: in lower case and ASCII, without a
    dot at its end, IPv4 addresses by four numbers (inet_aton(3)).

    A name that has no such form is returned in lower case.
    """
    host = host.lower()
    if host.isascii() and host.rpartition(".")[2][:1].isalpha():
        return host
    return _canonical(host)


@lru_cache(maxsize=4096)
def _canonical(host: str) -> str:
    if not host.isascii():
        try:
            host = idn.to_ascii_2008(host).lower()
        except UrlError:
            return host
    if not host.endswith(".."):
        host = host.removesuffix(".")
    if not host.rpartition(".")[2][:1].isdigit():
        return host
    try:
        return socket.inet_ntoa(socket.inet_aton(host))
    except OSError:
        return host
