"""Finds the protocol plugin of a URL.

The factory of protocols is asked once for each scheme, unless a host has a protocol of its own.
"""

from __future__ import annotations

from minutch.errors import ProtocolError, UrlError
from minutch.plugin.points import Protocol
from minutch.plugin.protocolfactory import ProtocolFactory
from minutch.plugin.turns import Turn
from minutch.urls.idn import to_ascii_2008


class ProtocolLookup:
    """Protocols by URL."""

    def __init__(self, factory: ProtocolFactory, turn: Turn) -> None:
        """`turn` gives requests to hosts of other queues their turn."""
        self._factory = factory
        self._turn = turn
        self._by_scheme: dict[str, Protocol] = {}

    def protocol_of(self, url: str) -> Protocol:
        """Returns the protocol of a URL. Raises ProtocolError if none takes it."""
        scheme = url[: url.find(":")]
        known = self._by_scheme.get(scheme)
        if known is not None:
            return known
        protocol = self._factory.get_protocol(url)
        protocol.turn = self._turn
        if not self._factory.mapping.hosts:
            self._by_scheme[scheme] = protocol
        return protocol

    async def close(self) -> None:
        """Closes the protocols that were used."""
        await self._factory.close()


async def addresses_of(factory: ProtocolFactory, url: str, host: str) -> list[str]:
    """Returns the addresses of a URL's host, as its protocol finds them; of an IPv6 address the
    brackets are no part.
    """
    try:
        name = host.strip("[]") if host.isascii() else to_ascii_2008(host)
        return await factory.get_protocol(url).addresses_of(name)
    except UrlError:
        return []
    except ProtocolError:  # a name of a queue, too; what is wrong is said when it is its turn
        return [host]
