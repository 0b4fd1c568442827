"""Fetches sitemaps: from their own URLs, or those that a host's robots.txt names, and what their
indexes list.

    URL ───────────────────────────────────┐                       ┌─ sitemap: its URLs
    host ─ robots.txt ─┬─ its sitemaps ────┼─ robots.txt ─ fetch ─┤
                       └─ /sitemap.xml ────┘  (redirects)          └─ index: sitemaps

One start after the other is followed to its end by each of some workers. A host is asked one thing
at a time, with the pauses of the fetcher, which begin with what a fetch has asked it, and hold for
the fetch that comes after. robots.txt holds for sitemaps, too, but for those that it names itself.

Source: org.apache.nutch.util.SitemapProcessor.SitemapMapper, which asks robots.txt for names of
sitemaps only, makes no pauses, and follows indexes without end.
"""

from __future__ import annotations

import asyncio
import logging
import math
import re
from collections.abc import AsyncIterator, Callable, Iterable, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from minutch.clock import Clock
from minutch.conf import Configuration, Settings, made_by, prop
from minutch.cycle.fetch.decisions import Verdict, decide, leads_in
from minutch.cycle.fetch.frontier.hostmemory import RestLog, read_rests
from minutch.cycle.fetch.frontier.queueitems import QueueNames
from minutch.cycle.fetch.frontier.queues import ON_ITS_WAY
from minutch.cycle.fetch.settings import RobotsSettings, milliseconds
from minutch.cycle.parse.mime import MimeUtil
from minutch.cycle.sitemap.sitemapfile import read_sitemap
from minutch.cycle.sitemap.sitemapurls import SCHEMES, ListedUrls, Sitemap, SitemapIndex
from minutch.errors import ConfigError, MinutchError, ParseError
from minutch.job import Counters
from minutch.plugin.points import Protocol
from minutch.plugin.protocolfactory import ProtocolFactory, output_of, rules_of
from minutch.records.crawldatum import CrawlDatum
from minutch.records.protocol import Content, is_truncated
from minutch.urls.hostname import canonical_host_of
from minutch.urls.resolve import WhatwgResolver, resolver_class
from minutch.urls.robots import RobotRules

log = logging.getLogger(__name__)

FROM_SEEDS: Final = "sitemaps from seed URLs"
FROM_HOSTS: Final = "sitemaps from host names"
FROM_INDEXES: Final = "sitemaps from indexes"
FILTERED_STARTS: Final = "seed URLs and host names rejected by filters"
FILTERED: Final = "sitemaps rejected by filters"
SEEN: Final = "sitemaps listed again"
FORBIDDEN: Final = "sitemaps that robots.txt forbids"
FAILED: Final = "failed sitemap fetches"
UNREADABLE: Final = "sitemaps that can't be read"
DAMAGED: Final = "sitemaps read up to their damage"
READ: Final = "sitemaps read"
INDEXES: Final = "sitemap indexes read"
TOO_DEEP: Final = "sitemaps in too many indexes within each other, or too many of one start"

_HOST: Final = re.compile(r"(?:(https?)://)?([^/?#]+)/?", re.IGNORECASE)
"""A host in a list of starts, of which only the root is known."""
MOST_NESTED: Final = 5
"""Indexes within indexes that are followed; sitemaps.org has none."""
MOST_SITEMAPS: Final = 50_000
"""Sitemaps that are fetched of one start, the number that sitemaps.org allows in an index."""
_FORGET: Final = 10_000
HELD_POLL: Final = 0.2
"""Seconds between two looks whether requests may begin again."""


def _is_whatwg(conf: Configuration) -> bool:
    # parser.html.outlinks.whatwg: sitemaps' URLs are read as links of pages are.
    return resolver_class(conf) is WhatwgResolver


@dataclass(frozen=True)
class SitemapSettings(Settings):
    """The properties of fetching sitemaps. Delays in ms."""

    strict: bool = prop("sitemap.strict.parsing")
    whatwg: bool = made_by(_is_whatwg)
    default_sitemap: bool = prop("sitemap.url.default.sitemap.xml")
    most_redirects: int = prop("sitemap.redir.max")
    most_bytes: int = prop("sitemap.size.max")
    partial: bool = prop("sitemap.allow.partial")
    """Whether what stands before damage counts."""
    delay: int = prop("fetcher.server.delay", milliseconds)
    mode: str = prop("fetcher.queue.mode")
    robots: RobotsSettings = made_by(RobotsSettings.from_conf)


Found = Callable[[int, int, Sitemap], None]
"""Takes the sitemaps that are read: the number of the start, how many URLs came of it before, and
the sitemap.
"""


class SitemapFetcher:
    """Follows starts; `checked` normalizes and filters the URL of a sitemap (None: rejected).

    While `held` is true, no request begins.
    """

    def __init__(
        self,
        protocols: ProtocolFactory,
        mime: MimeUtil,
        settings: SitemapSettings,
        clock: Clock,
        checked: Callable[[str], str | None],
        turns: Turns,
        held: Callable[[], bool] = lambda: False,
    ) -> None:
        self._held = held
        self.counters = Counters()
        self._settings, self._clock, self._checked = settings, clock, checked
        self._protocols, self._mime, self._turns = protocols, mime, turns

    async def run(
        self, starts: Iterable[str], workers: int, found: Found, done: Callable[[], None]
    ) -> None:
        """Follows `starts`, URLs and host names; `done` is called after each. Errors of `starts`
        end it.
        """
        numbered = iter(enumerate(starts))

        async def work() -> None:
            for number, start in numbered:
                try:
                    await _Start(self, number, found).follow(start)
                except ConfigError:
                    raise  # none of the others could be read either
                except MinutchError as exc:
                    self.counters.add(FAILED)
                    log.warning("%s: %s", start, exc)
                done()

        try:
            async with asyncio.TaskGroup() as group:
                for _ in range(workers):
                    group.create_task(work())
        except ExceptionGroup as errors:  # the starts can't be read, or a bug
            # A caller waits for StoreError or ConfigError, not for a group of one.
            raise errors.exceptions[0] from None
        finally:
            await self._protocols.close()

    def sitemap_url(self, url: str) -> str | None:
        """Returns the URL of a sitemap as it is to be fetched, None if it is rejected. Filters that
        keep archives out mean pages: a gzipped sitemap goes by its name without `.gz`.
        """
        found = self._checked(url)
        # The suffixes of Nutch's regex-urlfilter.txt have gz in them.
        if found is None and url.lower().endswith(".gz"):
            plain = self._checked(url[: -len(".gz")])
            found = plain and plain + url[-len(".gz") :]
        return found

    async def named(self, host: str, scheme: str = "") -> list[str] | None:
        """Returns a host's sitemaps: of its robots.txt, else the usual one; None if rejected."""
        for start in (f"{scheme}://",) if scheme else SCHEMES:
            # generateSitemapsFromHostname: the first scheme that is not rejected in all filters.
            url = self._checked(f"{start}{host}/")
            if url is not None:
                break
        else:
            return None
        # No pause between robots.txt and what comes after it: the fetcher makes none either.
        async with self._turns.of(url):
            await self._go_ahead()
            rules = await self._rules(url, self._protocols.get_protocol(url))
        usual = [f"{url}sitemap.xml"] if self._settings.default_sitemap else []
        return list(rules.sitemaps) or usual

    async def read(self, url: str) -> Sitemap | SitemapIndex | None:
        """Returns a sitemap or an index, after redirects; None if there is none, which is counted
        and logged.
        """
        fetched = await self._fetch(url)
        if fetched is None:
            return None
        url, content = fetched
        try:
            # 50 MB at most (sitemap.size.max): other hosts' requests go on meanwhile.
            found = await asyncio.to_thread(self._parsed, url, content)
        except ParseError as exc:
            self.counters.add(UNREADABLE)
            log.warning("Error parsing sitemap: %s", exc)
            return None
        if found.damage:
            self.counters.add(DAMAGED)
            log.warning("%s: read up to its damage: %s", url, found.damage)
        return found

    def _parsed(self, url: str, content: Content) -> Sitemap | SitemapIndex:
        kind = self._mime.resolve(content.content_type or None, content.url, content.content)
        settings = self._settings
        log.info("Parsing sitemap file: %s", url)
        found = read_sitemap(
            kind,
            content.content,
            ListedUrls(url, strict=settings.strict, whatwg=settings.whatwg),
            most_bytes=settings.most_bytes,
            # The charset; the media type was looked at by `resolve`.
            header=content.metadata.field("Content-Type") or "",
            is_cut=is_truncated(content),
        )
        if found.damage and not settings.partial:
            raise ParseError(f"{url}: {found.damage}")
        return found

    async def _go_ahead(self) -> None:
        while self._held():
            await asyncio.sleep(HELD_POLL)

    async def _fetch(self, url: str) -> tuple[str, Content] | None:
        """Returns the page at a URL and where it is; redirects are followed."""
        for _ in range(self._settings.most_redirects + 1):
            protocol = self._protocols.get_protocol(url)
            # Each hop has its own robots.txt, pause and turn: it may lead to another host.
            async with self._turns.of(url) as begin:
                await self._go_ahead()
                delay = await self._delay(url, protocol)
                if delay is None:
                    return None
                begin(delay)
                datum = CrawlDatum(fetch_time=self._clock.now())
                output = await output_of(protocol, url, datum, delay / 1000)
            status = output.status
            if status.is_success and output.content is not None:
                return url, output.content
            # The message of a redirect is its target (ProtocolStatus.getArgs in Nutch).
            target = self.sitemap_url(status.message or "") if status.is_redirect else None
            # From the web to a file of this machine.
            if target is None or leads_in(url, target):
                break
            url = target
        self.counters.add(FAILED)
        log.error("Error while fetching the sitemap. Status code: %d for %s", status.code, url)
        return None

    async def _rules(self, url: str, protocol: Protocol) -> RobotRules:
        return await rules_of(protocol, url, CrawlDatum(), None, self._settings.delay / 1000)

    async def _delay(self, url: str, protocol: Protocol) -> int | None:
        """Returns the pause after this request, in ms; None if robots.txt, or its absence, forbids
        the request.
        """
        rules = await self._rules(url, protocol)
        decision = decide(
            # Who names a sitemap in robots.txt wants it read, though a rule forbids its folder.
            rules.failure is not None or url in rules.sitemaps or rules.is_allowed(url),
            rules.crawl_delay or 0,
            defer=rules.defer_visits,
            unreachable=rules.failure is not None,
            settings=self._settings.robots,
        )
        if decision.verdict is Verdict.FETCH:
            # A host's own Crawl-delay, also where it is shorter.
            return self._settings.delay if decision.crawl_delay is None else decision.crawl_delay
        is_forbidden = decision.verdict in (Verdict.DENIED, Verdict.DELAY_TOO_LONG)
        self.counters.add(FORBIDDEN if is_forbidden else FAILED)
        log.warning("%s: not fetched: %s", url, _reason(decision.verdict, rules))
        return None


def _reason(verdict: Verdict, rules: RobotRules) -> str:
    if verdict is Verdict.DENIED:
        return "robots.txt forbids it"
    if verdict is Verdict.DELAY_TOO_LONG:
        return f"robots.txt wants pauses of {rules.crawl_delay} ms"
    return "no robots.txt to be had" + (f": {rules.failure.message}" if rules.failure else "")


class _Start:
    """One start and all that comes of it."""

    def __init__(self, fetcher: SitemapFetcher, number: int, found: Found) -> None:
        self._fetcher, self._number, self._found = fetcher, number, found
        self._counters = fetcher.counters
        self._seen: set[str] = set()
        self._urls = 0

    async def follow(self, start: str) -> None:
        host = _HOST.fullmatch(start.strip())
        if host is None:
            url = self._fetcher.sitemap_url(start)
            if url is None:
                self._counters.add(FILTERED_STARTS)
            else:
                self._counters.add(FROM_SEEDS)
                await self._visit(url, 0)
            return
        log.info("generateSitemapsFromHostname: %s", start)
        sitemaps = await self._fetcher.named(host[2], (host[1] or "").lower())
        if sitemaps is None:
            self._counters.add(FILTERED_STARTS)
            return
        # robots.txt is of the web, whoever listed the host: it names no files of this machine.
        await self._visit_all(sitemaps, FROM_HOSTS, 0, f"{host[1] or 'http'}://{host[2]}/")

    async def _visit_all(
        self, sitemaps: Iterable[str], source: str, depth: int, named_at: str
    ) -> None:
        for sitemap in sitemaps:
            self._counters.add(source)
            url = self._fetcher.sitemap_url(sitemap)
            if url is None or leads_in(named_at, url):
                self._counters.add(FILTERED)
            else:
                await self._visit(url, depth)

    async def _visit(self, url: str, depth: int) -> None:
        if url in self._seen:
            self._counters.add(SEEN)
            return
        # Nutch calls itself for each index in an index, and for one that lists itself.
        if depth > MOST_NESTED or len(self._seen) >= MOST_SITEMAPS:
            self._counters.add(TOO_DEEP)
            return
        # Before it is read: an index may list itself.
        self._seen.add(url)
        try:
            sitemap = await self._fetcher.read(url)
        except ConfigError:
            raise
        except MinutchError as exc:
            self._counters.add(FAILED)
            log.warning("%s: %s", url, exc)
            return
        if isinstance(sitemap, Sitemap):
            self._counters.add(READ)
            # Normalizers and filters are asked for some 50,000 URLs.
            await asyncio.to_thread(self._found, self._number, self._urls, sitemap)
            # Also those that are filtered: places are counted by what is listed.
            self._urls += len(sitemap.urls)
        elif sitemap is not None:
            self._counters.add(INDEXES)
            await self._visit_all(sitemap.urls, FROM_INDEXES, depth + 1, url)


class Turns:
    """Lets requests to a queue's hosts take turns: one at a time, and a pause after each."""

    def __init__(self, settings: SitemapSettings, clock: Clock) -> None:
        self._names = QueueNames(settings.mode)
        longest = settings.robots.max_crawl_delay
        self._longest = math.inf if longest < 0 else max(longest, settings.delay)
        self._clock = clock
        self._locks: dict[str, tuple[asyncio.Lock, int]] = {}
        self._free_at: dict[str, int] = {}
        self._log: RestLog | None = None

    @contextmanager
    def remembered(self, folder: Path) -> Iterator[None]:
        """Goes on with the pauses in the state folder of a crawl, and writes its own there."""
        self._free_at = read_rests(folder, self._clock.now())
        self._log = RestLog(folder, "sitemap", self._clock.now)
        try:
            yield
        finally:
            self._log.close()

    @asynccontextmanager
    async def of(self, url: str) -> AsyncIterator[Callable[[int], None]]:
        """Waits for the turn of a URL's queue, which lasts until the block ends; what it yields is
        called before a request is sent, with the ms of pause that follow it. Raises MinutchError
        if the queue rests for longer than anybody may ask for, since it fails.
        """
        name = self._names.of(url) or canonical_host_of(url)
        # A host's lock is there while somebody holds it or waits for it: hosts are without number.
        lock, users = self._locks.get(name, (asyncio.Lock(), 0))
        self._locks[name] = lock, users + 1
        try:
            async with lock:
                rest = self._free_at.get(name, 0) - self._clock.now()
                if rest > self._longest:
                    raise MinutchError(f"{name} rests for another {rest / 1000:.0f} s")
                await asyncio.sleep(max(0, rest) / 1000)
                pause: int | None = None

                def begin(delay: int) -> None:
                    nonlocal pause
                    pause = delay
                    # Before it is sent: this process may be killed then.
                    self._rests(name, delay + ON_ITS_WAY)

                try:
                    yield begin
                finally:
                    if pause is not None:
                        self._rests(name, pause)
        finally:
            lock, users = self._locks.pop(name)
            if users > 1:
                self._locks[name] = lock, users - 1
            self._forget()

    def _rests(self, name: str, ms: int) -> None:
        until = self._clock.now() + ms
        self._free_at[name] = until
        if self._log is not None:
            self._log.add([(name, until)])

    def _forget(self) -> None:
        """Hosts whose pause is over, where there are many."""
        if len(self._free_at) > _FORGET:
            now = self._clock.now()
            self._free_at = {host: time for host, time in self._free_at.items() if time > now}
