"""Fetches robots.txt, follows its redirects, and decides what its absence means (RFC 9309, section
2.3.1).

    2xx                     the rules in it
    4xx                     everything allowed; 403 nothing where http.robots.403.allow=false
    429, 5xx                visits deferred (http.robots.503.defer.visits), else nothing allowed
    no answer               nothing allowed
    too many redirects      everything allowed (http.robots.redirect.max)
    redirect to other host  its rules, asked for when that host may be asked

`http.robots.unreachable.allow=true` restores Nutch, which allows everything where "nothing allowed"
stands for a host that fails. Rules are kept in memory (`robotscache`) and, for
http.robots.cache.seconds, on disk, so that the next round does not ask again; failures are not
kept. Hosts of http.robot.rules.allowlist are not asked at all. What a file says of sitemaps and
uses (Content-Signal) is kept beside the rules and in the metadata of the Content that
fetcher.store.robotstxt stores. Source: HttpRobotRulesParser and RobotRulesParser.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from functools import lru_cache
from math import inf
from pathlib import Path
from typing import Final, Protocol

import httpx

from minutch.conf import Configuration, Settings, made_by, prop
from minutch.conf.settings import untrimmed
from minutch.errors import UrlError
from minutch.plugin.extension import Turn, at_once
from minutch.records import protocol as codes
from minutch.records.crawldatum import CrawlDatum
from minutch.records.metadata import RESPONSE_CODE_KEY, Metadata
from minutch.records.protocol import Content, ProtocolStatus
from minutch.urls.hostname import canonical_host
from minutch.urls.parts import Url, parse
from minutch.urls.robots import (
    ALLOW_ALL,
    ALLOW_NONE,
    KnownRobots,
    RobotRules,
    RobotsParser,
    robots_limit,
    robots_parser,
)
from minutch.urls.robotsfile import whole_lines

from .failures import PUT_OFF, failed, java_text, put_off
from .robotscache import FILE_NAME, RobotsDisk, RobotsMemory, StoredRobots

log = logging.getLogger(__name__)

SITEMAP_KEY: Final = "robotstxt.sitemap"
"""In the metadata of a robots.txt that is stored: the URL of each sitemap that it names, made
absolute.
"""
SIGNAL_KEY: Final = "robotstxt.content-signal"
"""And each use of the content that it speaks of to this crawler: `search=yes`, `ai-train=no`."""
_HTTP: Final = ("http://", "https://")
_AFTER_SCHEME: Final = 8
"""Index after the slashes before the authority in an http or https URL."""
_REDIRECTS: Final = frozenset({301, 302, 303, 307, 308})
_SUCCESSES: Final = range(200, 300)
_PRUNE_EVERY: Final = 3600
"""Seconds."""
_AHEAD: Final = 60
"""Seconds by which a file may have been fetched in the future; more is of a clock that was wrong,
and would be young for as long.
"""
_FORBIDDEN: Final = 403
_TOO_MANY: Final = 429
_SERVER_ERROR: Final = 500


class HttpAnswer(Protocol):
    """The part of base.Answer that is needed here."""

    code: int
    body: bytes
    metadata: Metadata
    whole: bool

    @property
    def location(self) -> str: ...

    def header(self, name: str) -> str | None: ...


Fetch = Callable[[Url, CrawlDatum, int], Awaitable[HttpAnswer]]


class Unreachable(RobotRules):
    """The host did not give its rules: nothing may be fetched now."""

    @classmethod
    def of(
        cls, failure: ProtocolStatus | None, *, defer: bool = False, retry_after: str | None = None
    ) -> Unreachable:
        rules = cls(defer_visits=defer)
        rules.failure, rules.retry_after = failure, retry_after
        return rules

    def is_allowed(self, url: str) -> bool:
        return False


@dataclass(frozen=True, slots=True)
class RobotsFileSettings(Settings):
    """The properties http.robots.*, which say how a robots.txt is fetched and understood."""

    max_redirects: int = prop("http.robots.redirect.max")
    allow_forbidden: bool = prop("http.robots.403.allow")
    """A 403 allows everything."""
    defer: bool = prop("http.robots.503.defer.visits")
    """A 429 or 5xx defers visits."""
    allow_unreachable: bool = prop("http.robots.unreachable.allow")
    """A host that fails allows everything."""
    limit: int = made_by(robots_limit)
    """Bytes of a file that are read."""
    allow_list: tuple[str, ...] = prop("http.robot.rules.allowlist", untrimmed)
    """Ends of names of hosts that are not asked."""
    life: float = prop("http.robots.cache.seconds", Configuration.get_int)
    """Seconds for which rules are kept."""
    memory: int = prop("http.robots.cache.memory", Configuration.get_size)
    """Bytes that rules may take in memory."""


class RobotsStore:
    """The rules of all hosts of a crawl."""

    def __init__(
        self,
        fetch: Fetch,
        parse_rules: RobotsParser,
        settings: RobotsFileSettings,
        *,
        turn: Turn = at_once,
        disk: RobotsDisk | None = None,
        now: Callable[[], float] = time.time,
    ) -> None:
        """`turn` waits until the target of a redirect may be asked; `now` in seconds since the
        epoch.
        """
        self._fetch = fetch
        self._parse = parse_rules
        self._settings = settings
        self._turn = turn
        self._disk = disk
        self._now = now
        self.memory = RobotsMemory(settings.memory)
        self._asked: dict[str, asyncio.Future[RobotRules]] = {}
        self._pruned = -inf
        self._prune()

    @classmethod
    def from_conf(cls, conf: Configuration, fetch: Fetch, turn: Turn = at_once) -> RobotsStore:
        """Reads the settings; the cache on disk is in `minutch.fetch.state`, if that is set."""
        folder = conf.get("minutch.fetch.state")
        settings = RobotsFileSettings.from_conf(conf)
        return cls(
            fetch,
            robots_parser(conf),
            settings,
            turn=turn,
            disk=RobotsDisk(Path(folder) / FILE_NAME) if folder and settings.life > 0 else None,
            now=lambda: conf.clock.now() / 1000,
        )

    def _prune(self) -> None:
        """Lets go of what is over on disk, once an hour: a fetch may last as long as its crawl."""
        now = self._now()
        if self._disk is not None and abs(now - self._pruned) > _PRUNE_EVERY:
            self._pruned = now
            self._disk.forget_old(now - self._settings.life)

    async def rules(self, url: str, contents: list[Content] | None = None) -> RobotRules:
        """Returns the rules that apply to `url`; what was fetched for them is appended to
        `contents`.
        """
        key = _key_of(
            url[: url.find("/", _AFTER_SCHEME) + 1] or url if url.startswith(_HTTP) else url
        )
        known = self._known(key)
        if known is not None:
            return known
        parsed = parse(url)
        if self._settings.allow_list and parsed.host.endswith(self._settings.allow_list):
            return self._keep(key, ALLOW_ALL)
        asked = self._asked.get(key)
        if asked is not None:
            # One who waits and is cancelled must not cancel the file of the others.
            return await asyncio.shield(asked)
        return await self._ask(key, parsed, contents)

    async def _ask(self, key: str, url: Url, contents: list[Content] | None) -> RobotRules:
        """Fetches a file once for all that wait for it."""
        future: asyncio.Future[RobotRules] = asyncio.get_running_loop().create_future()
        self._asked[key] = future
        try:
            rules = self._from_disk(key, url) or await self._from_host(key, url, contents)
            future.set_result(rules)
            return rules
        # CancelledError as well, or those who wait would wait for ever.
        except BaseException as exc:
            if not future.done():
                future.set_exception(exc)
                # A failure that nobody looks at is logged by asyncio ("never retrieved").
                future.exception()
            raise
        finally:
            del self._asked[key]

    def known(self, url: str, folder: Path) -> KnownRobots | None:
        """Returns what the cache in a state folder has for a URL, however old, without a request or
        a change.
        """
        parsed = parse(url)
        if self._settings.allow_list and parsed.host.endswith(self._settings.allow_list):
            return KnownRobots(ALLOW_ALL, exempt=True)
        with RobotsDisk(folder / FILE_NAME, read_only=True) as disk:
            found = disk.get(cache_key(parsed), 0)
        if found is None:
            return None
        rules = self._judge(found.code, found.content, found.content_type, found.url)
        fetched, expires = (
            round(time * 1000) for time in (found.fetched, found.fetched + self._settings.life)
        )
        return KnownRobots(rules, fetched, expires, found.code, found.url, found.content)

    def close(self) -> None:
        """Closes the cache on disk."""
        if self._disk is not None:
            self._disk.close()

    def _keep(self, key: str, rules: RobotRules, since: float | None = None) -> RobotRules:
        self.memory.keep(key, rules, self._now() if since is None else since)
        return rules

    def _from_disk(self, key: str, url: Url) -> RobotRules | None:
        if self._disk is None:
            return None
        self._prune()
        now = self._now()
        found = self._disk.get(key, now - self._settings.life, now + _AHEAD)
        if found is None:
            return None
        rules = self._judge(found.code, found.content, found.content_type, found.url)
        return self._keep(key, rules, found.fetched)

    async def _from_host(self, key: str, url: Url, contents: list[Content] | None) -> RobotRules:
        try:
            answer, location, keys = await self._get(url, contents)
        except PUT_OFF as exc:
            # This and the failures below are not kept, as in HttpRobotRulesParser (cacheRule): the
            # next page of the host asks again.
            return Unreachable.of(put_off(exc), defer=True)
        except (httpx.TransportError, httpx.InvalidURL, UrlError) as exc:
            log.info("can't get robots.txt for %s: %s", url, exc)
            return self._failed(failed(exc, java_text(exc, str(url))))
        if isinstance(answer, RobotRules):
            return self._keep(key, answer)
        if answer.code >= _SERVER_ERROR or answer.code == _TOO_MANY:
            if self._settings.defer:
                return Unreachable.of(None, defer=True, retry_after=answer.header("Retry-After"))
            return self._failed(
                ProtocolStatus(codes.ROBOTS_DENIED, [f"robots.txt: http code={answer.code}"])
            )
        content_type = answer.header("Content-Type") or ""
        # `Disallow: /private` that was cut behind its slash would forbid the whole host.
        body = answer.body if answer.whole else whole_lines(answer.body)
        rules = self._judge(answer.code, body, content_type, location)
        if contents:
            _describe(contents[-1].metadata, rules)
        found = StoredRobots(
            self._now(),
            answer.code,
            body,
            content_type,
            location,
            rules.sitemaps,
            rules.content_signals,
        )
        for name in (key, *keys):
            self._keep(name, rules)
            if self._disk is not None:
                self._disk.put(name, found)
        return rules

    def _failed(self, status: ProtocolStatus) -> RobotRules:
        return ALLOW_ALL if self._settings.allow_unreachable else Unreachable.of(status)

    def _judge(self, code: int, body: bytes, content_type: str, location: str) -> RobotRules:
        """Returns the rules in an answer that came from `location`."""
        if code in _SUCCESSES:
            return self._parse(body, content_type, location)
        return (
            ALLOW_NONE if code == _FORBIDDEN and not self._settings.allow_forbidden else ALLOW_ALL
        )

    async def _get(
        self, url: Url, contents: list[Content] | None
    ) -> tuple[HttpAnswer | RobotRules, str, list[str]]:
        """Returns the answer after redirects, where it came from, and the keys of other hosts that
        it is the robots.txt of; the rules themselves where they are known from there.
        """
        location = parse("/robots.txt", url)
        keys: list[str] = []
        answer = await self._one(location, contents)
        for _ in range(self._settings.max_redirects):
            target = answer.location
            if answer.code not in _REDIRECTS or not target.strip():
                break
            try:
                # A target that is no URL leaves the answer as it is, a redirect, which like 4xx
                # allows everything.
                location = parse(target, location)
            except UrlError as exc:
                log.info("robots.txt of %s redirects to what is no URL: %s", url.host, exc)
                break
            found = await self._redirected(url, location, keys, contents)
            if isinstance(found, RobotRules):
                return found, str(location), keys
            answer = found
        return answer, str(location), keys

    async def _redirected(
        self, origin: Url, url: Url, keys: list[str], contents: list[Content] | None
    ) -> HttpAnswer | RobotRules:
        """Returns the answer to a redirect's target, when its host may be asked; the rules where
        they are known by then. Adds to `keys` if it is a robots.txt.
        """
        key = cache_key(url) if url.file == "/robots.txt" else None
        known = self._known(key)
        if known is not None:
            return known
        async with self._turn(str(origin), str(url)) as visit:
            known = self._known(key)
            if known is not None:
                # No request was made, so the host's next one need not wait.
                visit.asked = False
                return known
            if key is not None:
                keys.append(key)
            return await self._one(url, contents)

    def _known(self, key: str | None) -> RobotRules | None:
        return None if key is None else self.memory.get(key, self._now() - self._settings.life)

    async def _one(self, url: Url, contents: list[Content] | None) -> HttpAnswer:
        answer = await self._fetch(url, CrawlDatum(), self._settings.limit)
        if contents is not None:
            text = str(url)
            answer.metadata.set(RESPONSE_CODE_KEY, str(answer.code))
            contents.append(
                Content(
                    text, text, answer.body, answer.header("Content-Type") or "", answer.metadata
                )
            )
        return answer


def _describe(metadata: Metadata, rules: RobotRules) -> None:
    """Logs the entries of a file besides its rules."""
    for sitemap in rules.sitemaps:
        metadata.add(SITEMAP_KEY, sitemap)
    for use, answer in rules.content_signals.items():
        metadata.add(SIGNAL_KEY, f"{use}={answer}")


@lru_cache(maxsize=4096)
def _key_of(start: str) -> str:
    """Returns the key of a URL's rules, by its beginning up to the slash behind the authority.
    Kept, since it recurs.
    """
    return cache_key(parse(start))


def cache_key(url: Url) -> str:
    """Rules belong to scheme, host and port."""
    port = url.default_port if url.port == -1 else url.port
    return f"{url.protocol}:{canonical_host(url.host)}:{port}"
