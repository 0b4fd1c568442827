"""Foretells what a fetch would do with a URL before it sends a request: protocol, queue,
robots.txt, resting host, address guard.

The answers come from what the fetch itself asks (`fetch/frontier/queues.py`, `fetch/decisions.py`,
the protocol plugin) and from what the crawl has kept; no host is asked. Names are looked up only
where `resolve` is given.
"""

from __future__ import annotations

import socket
from collections.abc import Sequence
from ipaddress import ip_address
from pathlib import Path
from typing import Final

from minutch.cycle.fetch.decisions import Verdict, decide
from minutch.cycle.fetch.frontier.hostmemory import FILE_NAME, BusyHosts
from minutch.cycle.fetch.frontier.queueitems import QueueNames
from minutch.cycle.hostdb.store import HostDb
from minutch.errors import ConfigError, ProtocolError, UrlError
from minutch.inspect.explain.facts import FetchVerdict, HostFacts, RobotsFacts
from minutch.inspect.explain.settings import ExplainSettings, Resolve
from minutch.plugin.chains import SCOPE_DEFAULT
from minutch.plugin.points import Protocol
from minutch.urls.hostname import canonical_host_of
from minutch.urls.parts import host_of, parse
from minutch.urls.robots import KnownRobots, normal_path
from minutch.urls.robotsfile import line_of

_WORDS: Final = {
    Verdict.FETCH: "fetch",
    Verdict.DENIED: "denied",
    Verdict.DELAY_TOO_LONG: "delay_too_long",
}


class FetchProspects:
    """The way to the URLs of a crawl, as far as it is known; `now` is in ms, `state` the crawl's
    state folder.
    """

    def __init__(
        self,
        settings: ExplainSettings,
        state: Path,
        hostdb: HostDb | None,
        now: int,
        resolve: Resolve | None = None,
    ) -> None:
        self._plugins, self._settings = settings, settings.fetch
        self._state = state
        self._hostdb = hostdb
        self._now = now
        self._resolve = resolve

    def to(self, url: str) -> tuple[RobotsFacts, HostFacts, FetchVerdict]:
        """Returns the facts of robots.txt and the host, and what a fetch would do."""
        fetched = self._fetched_as(url)
        if fetched is None:
            text = (
                "the fetcher's filters and normalizers (fetcher.filter.urls,"
                " fetcher.normalize.urls) leave it out"
            )
            verdict = FetchVerdict(
                False, "filtered", text, "change the rules, or those two properties"
            )
            return RobotsFacts(None), self._host(url, None, RobotsFacts(None)), verdict
        protocol, missing = self._protocol(fetched)
        robots = self._robots(fetched, protocol)
        host = self._host(fetched, protocol, robots)
        return robots, host, self._verdict(robots, host, missing)

    def _fetched_as(self, url: str) -> str | None:
        """Returns the URL that a fetch would ask for; None if it would leave it out."""
        normal: str | None = url
        try:
            if self._settings.normalize_urls:
                normal = self._plugins.normalizers[SCOPE_DEFAULT].normalize(url)
            return self._plugins.filters.filter(normal) if self._settings.filter_urls else normal
        except UrlError:
            return None

    def _protocol(self, url: str) -> tuple[Protocol | None, FetchVerdict | None]:
        try:
            return self._plugins.protocols.get_protocol(url), None
        except ProtocolError as exc:
            remedy = "activate a protocol plugin for it (plugin.includes)"
            return None, FetchVerdict(False, "no_protocol", str(exc), remedy)
        except ConfigError as exc:
            return None, FetchVerdict(False, "no_protocol", str(exc), "mend the configuration")

    # -- robots.txt --------------------------------------------------------------------------------

    def _robots(self, url: str, protocol: Protocol | None) -> RobotsFacts:
        if protocol is None:
            return RobotsFacts(None, "no protocol plugin, no robots.txt")
        known = protocol.known_robots(url, self._state)
        if known is None:
            return RobotsFacts(
                None, "nothing is kept of it: the fetcher asks for it before the page"
            )
        if known.exempt:
            return RobotsFacts(
                _WORDS[Verdict.FETCH],
                "the host is on http.robot.rules.allowlist: its rules aren't asked for",
            )
        return self._judged(url, known)

    def _judged(self, url: str, known: KnownRobots) -> RobotsFacts:
        rules = known.rules
        decision = decide(
            rules.is_allowed(url),
            rules.crawl_delay or 0,
            defer=rules.defer_visits,
            unreachable=False,
            settings=self._settings.robots,
        )
        stale = known.expires <= self._now
        rule = None if rules.allow_all or rules.allow_none else rules.deciding(normal_path(url))
        return RobotsFacts(
            _WORDS.get(decision.verdict),
            "too old (http.robots.cache.seconds): the fetcher asks for it again" if stale else "",
            known.url,
            known.code,
            known.fetched,
            known.expires,
            0 if rule is None else rule.line,
            "" if rule is None else line_of(known.content, rule.line) or rule.path,
            rules.crawl_delay,
            self._plugins.agents,
        )

    # -- the host ----------------------------------------------------------------------------------

    def _host(self, url: str, protocol: Protocol | None, robots: RobotsFacts) -> HostFacts:
        settings = self._settings.queues
        asked_for = (
            max(robots.crawl_delay, self._settings.robots.min_crawl_delay)
            if robots.crawl_delay
            else None
        )
        addresses = self._addresses(url)
        queue = QueueNames(settings.mode, lambda host: next(iter(addresses), None)).of(url)
        refusals = (
            [] if protocol is None else [protocol.address_refusal(address) for address in addresses]
        )
        return HostFacts(
            queue=queue,
            queue_mode=settings.mode,
            protocol=None if protocol is None else type(protocol).__name__,
            delay=(
                settings.min_delay
                if settings.max_threads > 1
                else asked_for or settings.crawl_delay
            ),
            threads=settings.max_threads,
            busy_until=self._busy_until(canonical_host_of(url)),
            back_off=settings.exceptions_delay,
            max_exceptions=settings.max_exceptions,
            addresses=tuple(addresses),
            refused_address=refusals[0] if refusals and all(refusals) else "",
            max_count=self._plugins.max_count,
            known=self._known_host(url),
        )

    def _addresses(self, url: str) -> Sequence[str]:
        """Returns the host's addresses: the address that the URL names, or what `resolve` finds."""
        try:
            host = parse(url).host.strip("[]")
        except UrlError:
            return ()
        try:
            return (str(ip_address(host)),)
        except ValueError:
            return self._resolve(host) if self._resolve is not None and host else ()

    def _busy_until(self, host: str) -> int | None:
        if not (self._state / FILE_NAME).is_file():
            return None
        with BusyHosts(self._state, read_only=True) as state:
            return state.busy_hosts(self._now).get(host)

    def _known_host(self, url: str) -> str:
        if self._hostdb is None or not self._hostdb.exists():
            return ""
        if (host := host_of(url)) is None:
            return ""
        if (datum := self._hostdb.get(host)) is None:
            return "not in the HostDb"
        return (
            f"{datum.fetched} fetched, {datum.unfetched} unfetched, {datum.gone} gone; "
            f"{datum.dns_failures} failures of the DNS, {datum.connection_failures} of connections"
        )

    # -- the verdict -------------------------------------------------------------------------------

    def _verdict(  # noqa: PLR0911 - one return a case
        self, robots: RobotsFacts, host: HostFacts, missing: FetchVerdict | None
    ) -> FetchVerdict:
        if host.queue is None and not (host.queue_mode == "byIP" and self._resolve is None):
            text = f"it has no queue ({host.queue_mode}): not a URL, or a host without an address"
            return FetchVerdict(False, "no_queue", text)
        if missing is not None:
            return missing
        if host.busy_until is not None and host.busy_until - self._now > self._settings.hung_after:
            text = "the host asked (Retry-After) not to be called before"
            return FetchVerdict(
                False, "host_busy", text, "wait, or set http.retry.after.max.seconds"
            )
        if robots.verdict == _WORDS[Verdict.DENIED] and not robots.note:
            return FetchVerdict(
                False, "robots_denied", _denial(robots), "the owner of the host decides"
            )
        if robots.verdict == _WORDS[Verdict.DELAY_TOO_LONG] and not robots.note:
            text = f"robots.txt asks for {(robots.crawl_delay or 0) / 1000:g} s between requests"
            return FetchVerdict(
                False,
                "robots_delay",
                f"{text}, fetcher.max.crawl.delay allows less",
                "raise it, or -1",
            )
        if host.refused_address:
            text = f"the address guard refuses its host: {host.refused_address}"
            return FetchVerdict(
                False,
                "address_refused",
                text,
                "http.filter.ipaddress.include, http.filter.ipaddress.exclude",
            )
        return FetchVerdict(True, "asks", "the fetcher would ask for it")


def _denial(robots: RobotsFacts) -> str:
    if robots.line:
        return f"robots.txt denies it: line {robots.line}, {robots.rule}"
    return "robots.txt denies it" + (
        f" (HTTP {robots.code})" if robots.code not in (None, 200) else ""
    )


def addresses_of(host: str) -> list[str]:
    """Looks up the addresses of a host; none if it has none."""
    try:
        found = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError):
        return []
    return list(dict.fromkeys(str(address[0]) for *_, address in found))
