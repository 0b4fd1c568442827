"""Finds the protocol plugin of a URL.

The factory of protocols is asked once for each scheme, unless a host has a protocol of its own.
"""

from __future__ import annotations

from minutch.conf import Configuration
from minutch.errors import ProtocolError, UrlError
from minutch.plugin.points import Protocol
from minutch.plugin.protocolfactory import ProtocolFactory
from minutch.plugin.turns import Turn, at_once
from minutch.urls.idn import to_ascii_2008


class ProtocolLookup:
    """Protocols by URL."""

    def __init__(self, conf: Configuration) -> None:
        self._factory = ProtocolFactory(conf)
        self._by_scheme: dict[str, Protocol] = {}
        self.turn: Turn = at_once
        """Gives requests to hosts of other queues their turn."""

    def protocol_of(self, url: str) -> Protocol:
        """Returns the protocol of a URL. Raises ProtocolError if none takes it."""
        scheme = url[: url.find(":")]
        known = self._by_scheme.get(scheme)
        if known is not None:
            return known
        protocol = self._factory.get_protocol(url)
        protocol.turn = self.turn
        if not self._factory.mapping.hosts:
            self._by_scheme[scheme] = protocol
        return protocol

    async def addresses_of(self, url: str, host: str) -> list[str]:
        """Returns the addresses of a URL's host, as its protocol finds them; of an IPv6 address the
        brackets are no part.
        """
        try:
            name = host.strip("[]") if host.isascii() else to_ascii_2008(host)
            return await self.protocol_of(url).addresses_of(name)
        except UrlError:
            return []
        except ProtocolError:
            return [
                host
            ]  # which names a queue too; why the URL can't be fetched is said when it is its turn

    async def close(self) -> None:
        """Closes the protocols that were used."""
        await self._factory.close()
