"""Finds the protocol plugin of a URL quickly, and brings entity tags to it.

A URL that has been fetched before (modified time set) gets the tag of its last version put into its datum under `ETag`
for the time of the request, where protocol-http finds it for If-None-Match; the segment's record does not show it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from minutch.clock import Clock
from minutch.conf import Configuration
from minutch.errors import ProtocolError
from minutch.formats.writables import Text
from minutch.plugin.points import Protocol, ProtocolOutput
from minutch.plugin.protocolfactory import ProtocolFactory

if TYPE_CHECKING:
    from minutch.fetch.state import FetchState
    from minutch.records.content import Content
    from minutch.records.crawldatum import CrawlDatum
    from minutch.urls.robots import RobotRules

ETAG: Final = Text("ETag")
FLUSH: Final = 500
"""Entity tags collected before they are written."""


class _Tagging(Protocol):
    """A protocol with entity tags brought to it and taken from it."""

    def __init__(self, inner: Protocol, state: FetchState, clock: Clock) -> None:
        self._inner = inner
        self._state = state
        self._clock = clock
        self._fresh: list[tuple[str, str]] = []

    async def get_protocol_output(self, url: str, datum: CrawlDatum) -> ProtocolOutput:
        added = False
        if datum.modified_time > 0 and ETAG not in datum.metadata:
            tag = self._state.etag(url)
            if tag is not None:
                datum.metadata[ETAG] = Text(tag)
                added = True
        try:
            output = await self._inner.get_protocol_output(url, datum)
        finally:
            if added:
                del datum.metadata[ETAG]
        if output.status.is_success and output.content is not None:
            self._take(url, output.content.metadata)
        return output

    def _take(self, url: str, metadata: Mapping[str, list[str]]) -> None:
        tag = metadata.get("ETag") or metadata.get("Etag") or metadata.get("etag")
        if tag:
            self._fresh.append((url, tag[0]))
            if len(self._fresh) >= FLUSH:
                self.flush()

    def flush(self) -> None:
        """Write the tags collected so far."""
        self._state.remember_etags(self._fresh, self._clock.now())
        self._fresh.clear()

    def look_ahead(self, url: str) -> None:
        self._inner.look_ahead(url)

    async def get_robot_rules(self, url: str, datum: CrawlDatum, robots_content: list[Content] | None) -> RobotRules:
        return await self._inner.get_robot_rules(url, datum, robots_content)


class ProtocolLookup:
    """Protocols by URL; those of a scheme are looked up once where no host has a protocol of its own."""

    def __init__(self, conf: Configuration, clock: Clock, state: FetchState | None = None) -> None:
        """With `state` entity tags are brought to requests, and kept."""
        self._factory = ProtocolFactory(conf)
        self._clock = clock
        self._state = state
        self._by_scheme: dict[str, Protocol] = {}
        self._tagging: dict[int, _Tagging] = {}

    def protocol_of(self, url: str) -> Protocol:
        """The protocol of a URL. Raises ProtocolError if none takes it."""
        scheme = url[: url.find(":")]
        known = self._by_scheme.get(scheme)
        if known is not None:
            return known
        protocol = self._tagged(self._factory.get_protocol(url))
        if not self._factory.mapping.hosts:
            self._by_scheme[scheme] = protocol
        return protocol

    def look_ahead(self, url: str) -> None:
        """Let the protocol of a URL prepare for its host."""
        try:
            self.protocol_of(url).look_ahead(url)
        except ProtocolError:
            return  # told when it is fetched

    def _tagged(self, protocol: Protocol) -> Protocol:
        if self._state is None:
            return protocol
        return self._tagging.setdefault(id(protocol), _Tagging(protocol, self._state, self._clock))

    async def close(self) -> None:
        """Close the protocols that were used."""
        for tagging in self._tagging.values():
            tagging.flush()
        await self._factory.close()
