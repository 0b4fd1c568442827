"""The protocol plugin of a URL: the factory is asked once for each scheme where no host has a protocol of its own."""

from __future__ import annotations

from minutch.conf import Configuration
from minutch.errors import ProtocolError
from minutch.plugin.points import Protocol
from minutch.plugin.protocolfactory import ProtocolFactory


class ProtocolLookup:
    """Protocols by URL."""

    def __init__(self, conf: Configuration) -> None:
        self._factory = ProtocolFactory(conf)
        self._by_scheme: dict[str, Protocol] = {}

    def protocol_of(self, url: str) -> Protocol:
        """The protocol of a URL. Raises ProtocolError if none takes it."""
        scheme = url[: url.find(":")]
        known = self._by_scheme.get(scheme)
        if known is not None:
            return known
        protocol = self._factory.get_protocol(url)
        if not self._factory.mapping.hosts:
            self._by_scheme[scheme] = protocol
        return protocol

    def look_ahead(self, url: str) -> None:
        """Let the protocol of a URL prepare for its host."""
        try:
            self.protocol_of(url).look_ahead(url)
        except ProtocolError:
            return  # reported when the URL is fetched

    async def close(self) -> None:
        """Close the protocols that were used."""
        await self._factory.close()
