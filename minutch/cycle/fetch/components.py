"""Makes the plugins of a fetch, each when it is first asked for, and finds the protocol of a URL.

Below the job nothing else knows the configuration. Every process of a fetch makes its own.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property, partial
from pathlib import Path

from minutch.clock import Clock
from minutch.conf import Configuration
from minutch.cycle.fetch.frontier.hostmemory import STATE_PROPERTY
from minutch.cycle.fetch.results.recorder import LivePageParser, Recorder
from minutch.cycle.fetch.settings import FetchSettings
from minutch.cycle.fetch.stats import Publishers
from minutch.cycle.parse.mime import MimeUtil
from minutch.cycle.parse.pageparser import PageParser
from minutch.cycle.parse.partwriters import PartSettings
from minutch.cycle.parse.signature import Signature, make_signature
from minutch.cycle.parse.workerpool import PoolSettings
from minutch.errors import ProtocolError, UrlError
from minutch.plugin.chains import (
    SCOPE_DEFAULT,
    SCOPE_FETCHER,
    ScoringFilters,
    URLFilters,
    URLNormalizers,
)
from minutch.plugin.extension import Turn
from minutch.plugin.points import Protocol
from minutch.plugin.protocolfactory import ProtocolFactory
from minutch.urls.hostname import to_ascii_2008


class FetchComponents:
    """The plugins of one process of a fetch."""

    def __init__(self, conf: Configuration) -> None:
        self._conf = conf

    def with_state(self, folder: Path) -> FetchComponents:
        """Returns components that remember hosts in `folder`."""
        return FetchComponents(self._conf.with_values({STATE_PROPERTY: str(folder)}))

    @property
    def clock(self) -> Clock:
        """The job's clock."""
        return self._conf.clock

    @cached_property
    def filters(self) -> URLFilters:
        """The URL filters."""
        return URLFilters(self._conf)

    @cached_property
    def normalizers(self) -> URLNormalizers:
        """The normalizers of redirects."""
        return URLNormalizers(self._conf, SCOPE_FETCHER)

    @cached_property
    def list_normalizers(self) -> URLNormalizers:
        """The normalizers of fetch lists (fetcher.normalize.urls)."""
        return URLNormalizers(self._conf, SCOPE_DEFAULT)

    @cached_property
    def scoring(self) -> ScoringFilters:
        """The scoring filters."""
        return ScoringFilters(self._conf)

    @cached_property
    def protocol_factory(self) -> ProtocolFactory:
        """The protocols."""
        return ProtocolFactory(self._conf)

    def recorder(
        self,
        segment_name: str,
        settings: FetchSettings,
        parser: LivePageParser | None = None,
        date: Callable[[int], int] = int,
    ) -> Recorder:
        """Makes the recorder of a segment; `date` as there."""
        mime, signature = self._mime, self._signature
        return Recorder(
            segment_name,
            settings,
            self.scoring,
            content_type=lambda declared, url, data: mime.resolve(declared or None, url, data),
            signature=lambda content: signature.calculate(content, None),
            parser=parser,
            date=date,
        )

    @cached_property
    def _mime(self) -> MimeUtil:
        return MimeUtil(self._conf)

    @cached_property
    def _signature(self) -> Signature:
        """That of pages that are not parsed."""
        return make_signature(self._conf)

    def parser(self, settings: FetchSettings) -> LivePageParser | None:
        """Makes what parses pages as they come; None where they are not parsed."""
        if not settings.parse:
            return None
        from minutch.cycle.fetch.fetchparser import FetchParser

        factory = self.parser_factory(settings.form, for_step=settings.for_step)
        return FetchParser(factory, self.pool, settings)

    def publishers(self) -> Publishers:
        """Makes the publishers."""
        return Publishers(self._conf)

    def parser_factory(
        self, form: PartSettings, *, for_step: bool = False
    ) -> Callable[[], PageParser]:
        """Returns a function that makes the parser of fetched pages, in the worker that needs it;
        `form` is that of the part files, `for_step`: that of the parse step.
        """
        return partial(PageParser, self._conf, form, fetching=not for_step)

    @cached_property
    def pool(self) -> PoolSettings:
        """The limits of parse workers."""
        return PoolSettings.from_conf(self._conf)


class ProtocolLookup:
    """Protocols by URL: the factory is asked once for each scheme, unless a host has a protocol of
    its own.
    """

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
        # With protocols by host, a scheme says nothing of the next URL.
        if not self._factory.mapping.hosts:
            self._by_scheme[scheme] = protocol
        return protocol

    async def close(self) -> None:
        """Closes the protocols that were used."""
        await self._factory.close()


async def addresses_of(factory: ProtocolFactory, url: str, host: str) -> list[str]:
    """Returns the addresses of a URL's host, as its protocol finds them; an IPv6 address has no
    brackets.
    """
    try:
        name = host.strip("[]") if host.isascii() else to_ascii_2008(host)
        return await factory.get_protocol(url).addresses_of(name)
    except UrlError:
        return []
    except ProtocolError:  # a name of a queue, too; what is wrong is said when it is its turn
        return [host]
