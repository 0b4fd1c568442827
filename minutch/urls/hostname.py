"""Names the server that a host name means, in one form: `localhost.` is `localhost`, `127.1` is
`127.0.0.1`, `[::0001]` is `[::1]`, `bücher.example` is `xn--bcher-kva.example`.

Whatever belongs to a server goes by this form: queues, robots.txt, credentials, cookies, the
request itself. `urls.parts.host_of` is the host as Nutch's records and rules have it.
"""

from __future__ import annotations

import re
import socket
from functools import lru_cache
from ipaddress import IPv6Address

from minutch.errors import UrlError
from minutch.urls import idn

_MAPPED = bytes(10) + b"\xff\xff"
_ZEROS = re.compile(r"(?<![0-9a-f])0+(?=[0-9a-f])")


def canonical_host(host: str) -> str:
    """Returns the form in which a host is asked for and counted: in lower case and ASCII, without a
    dot at its end (RFC 6066, 3), IPv4 addresses by four numbers (inet_aton(3)), IPv6 ones as short
    as can be (URL Standard, 3.5); one that stands for an IPv4 address is that (InetAddress).

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
    if host.startswith("["):
        return _canonical_ipv6(host)
    if not host.endswith(".."):
        host = host.removesuffix(".")
    if not host.rpartition(".")[2][:1].isdigit():
        return host
    try:
        return socket.inet_ntoa(socket.inet_aton(host))
    except (OSError, ValueError):  # ValueError: NUL in it
        return host


def _canonical_ipv6(host: str) -> str:
    """Returns the form of `[IPv6]`; a group may have any number of leading zeros, as in the JDK."""
    try:
        packed = socket.inet_pton(socket.AF_INET6, _ZEROS.sub("", host.strip("[]")))
    except (OSError, ValueError):
        return host
    if packed.startswith(_MAPPED):
        return socket.inet_ntoa(packed[len(_MAPPED) :])
    return f"[{IPv6Address(packed).compressed}]"
