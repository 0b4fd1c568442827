"""Caches the addresses of hosts for the lifetime of their DNS records, and looks them up ahead of
requests.

    http.dns.resolver           cares (lifetimes are known) or system (libcurl asks the C library,
                                and knows none)
    http.dns.servers            servers to ask, `address[:port]`; empty: those of the system
    http.dns.cache.seconds      no answer is kept for longer
    http.dns.cache.min.seconds  none for shorter (a record of /etc/hosts has no lifetime at all)
    http.dns.negative.seconds   for so long a host without addresses is not asked for again, nor one
                                that no server could say anything of

A request goes to the addresses that were found here (they are handed to libcurl), and the address
rules judge the one that is connected to. Java and Nutch keep answers for a fixed 30 s.
"""

from __future__ import annotations

import asyncio
import logging
import re
import time
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Final

from minutch.conf import Configuration, Settings, made_by, prop

from .failures import NoNameServer, UnknownHost

log = logging.getLogger(__name__)

MOST_KEPT: Final = 50_000
"""Hosts in memory; of more, those that were asked for longest ago go."""
# A host whose last label is a number is an IPv4 address or wrong, but no name (URL Standard, "ends
# in a number").
_LITERAL: Final = re.compile(r"(?:^|\.)(?:[0-9]+|0[xX][0-9a-fA-F]*)\.?$|[:\[]")
_NOWHERE: Final = (".invalid", ".onion", ".alt")
"""Names that are in no DNS (RFC 6761, RFC 7686, RFC 9476): nobody is asked for them."""

Answer = tuple[list[str], float]
"""Addresses, and seconds for which they hold."""
_Found = list[str] | type[UnknownHost] | type[NoNameServer]
"""Addresses, or why there are none."""
Ask = Callable[[str], Awaitable[Answer]]
"""Asks for a host's addresses; UnknownHost if it has none, NoNameServer if nobody can say."""


@dataclass(frozen=True, slots=True)
class Lifetimes:
    """Bounds of what is kept, in seconds."""

    shortest: float = 30
    longest: float = 3600
    negative: float = 30

    def of(self, seconds: float) -> float:
        """Returns how long an answer is kept whose record says `seconds`."""
        return min(max(seconds, self.shortest), self.longest)


def _resolver(conf: Configuration, name: str) -> str:
    """Without pycares, the system is asked."""
    resolver = conf.get_word(name).lower()
    if resolver == "cares" and find_spec("pycares") is None:
        log.warning("http.dns.resolver: pycares is not installed, the system is asked")
        return "system"
    return resolver


def _lifetimes(conf: Configuration) -> Lifetimes:
    longest = conf.get_int("http.dns.cache.seconds")
    shortest = min(conf.get_int("http.dns.cache.min.seconds"), longest)
    return Lifetimes(shortest, longest, conf.get_int("http.dns.negative.seconds"))


def _part_of_timeout(conf: Configuration, name: str) -> float:
    return min(max(conf.get_int(name) / 2000, 0.5), 5.0)


@dataclass(frozen=True, slots=True)
class ResolverSettings(Settings):
    """http.dns.*; `timeout` in seconds is that of one question."""

    resolver: str = prop("http.dns.resolver", _resolver)
    servers: tuple[str, ...] = prop("http.dns.servers")
    lifetimes: Lifetimes = made_by(_lifetimes)
    timeout: float = prop("http.timeout", _part_of_timeout)


class ResolverCache:
    """Addresses of hosts in memory, each asked for once however many want it."""

    def __init__(
        self,
        ask: Ask,
        lifetimes: Lifetimes = Lifetimes(),
        *,
        now: Callable[[], float] = time.monotonic,
        close: Callable[[], None] = lambda: None,
    ) -> None:
        self._ask = ask
        self._lifetimes = lifetimes
        self._now = now
        self._known: OrderedDict[str, tuple[float, _Found]] = OrderedDict()
        self._asked: dict[str, asyncio.Task[_Found]] = {}
        self.close = close

    def known(self, host: str) -> list[str] | None:
        """Returns the addresses of `host` if they need not be asked for; none at all for what is an
        address itself.

        Raises UnknownHost if it was found to have none a short while ago, NoNameServer if nobody
        could say.
        """
        found = self._known.get(host)
        if found is None:
            return [] if _LITERAL.search(host) else None
        if found[0] <= self._now():
            del self._known[host]
            return None
        return _addresses(host, found[1])

    async def find(self, host: str) -> list[str]:
        """Returns the addresses of `host` (a name), asked for once however many want them. Raises
        UnknownHost or NoNameServer.
        """
        # Shielded, or the page that gives up would take the answer from all that wait for the same
        # host.
        return self.known(host) or _addresses(host, await asyncio.shield(self._begin(host)))

    def _begin(self, host: str) -> asyncio.Task[_Found]:
        task = self._asked.get(host)
        if task is None:
            task = self._asked[host] = asyncio.get_running_loop().create_task(self._look_up(host))
        return task

    async def _look_up(self, host: str) -> _Found:
        found: _Found
        try:
            if host.rstrip(".").lower().endswith(_NOWHERE):
                raise UnknownHost(host)
            found, seconds = await self._ask(host)
            life = self._lifetimes.of(seconds)
        except (UnknownHost, NoNameServer) as exc:
            log.debug("no address for %s: %s", host, type(exc).__name__)
            found, life = type(exc), self._lifetimes.negative
        finally:
            self._asked.pop(host, None)
        self._known[host] = (self._now() + life, found)
        # A key that is there already keeps its place when it is set, and would go as an old one.
        self._known.move_to_end(host)
        if len(self._known) > MOST_KEPT:
            self._known.popitem(last=False)
        return found


def _addresses(host: str, found: _Found) -> list[str]:
    if isinstance(found, type):
        raise found(host)
    if not found:
        raise UnknownHost(host)
    return found


def make_resolver(settings: ResolverSettings) -> ResolverCache | None:
    """Returns the cache for these settings; None if libcurl is to ask the system itself."""
    if settings.resolver == "system":
        return None
    from .dnsquery import DnsQuery

    query = DnsQuery(settings.servers, settings.timeout)
    return ResolverCache(query.ask, settings.lifetimes, close=query.close)
