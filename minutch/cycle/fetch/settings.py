"""The fetcher's properties, read once: every `fetcher.*` property that the queues and the loop
obey.

Seconds in the configuration become whole milliseconds here by Java's 32-bit float arithmetic
(`0.01` s is 10 ms). A time of -1 means "none" throughout.

Where several processes share a fetch, `share_of` gives each its part of the settings that are
`divided` among them; the others hold for a host, a page or a thread, and so in each process alike.
"""

from __future__ import annotations

import logging
import resource
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field, fields, is_dataclass, replace
from typing import TYPE_CHECKING, Any, Final, TypeVar

from minutch.conf import Configuration, Settings, made_by, prop
from minutch.conf.settings import at_least
from minutch.cycle.parse.partwriters import PartSettings
from minutch.hadoop.formats.javahash import float32
from minutch.warc.warcfile import DEFAULT_LIMIT, CrawlerIdentity, level_of
from minutch.work.tables.parallel import memory_budget

if TYPE_CHECKING:
    from _typeshed import DataclassInstance


log = logging.getLogger(__name__)

BY_HOST: Final = "byHost"
BY_DOMAIN: Final = "byDomain"
BY_IP: Final = "byIP"

NEVER: Final = -1
UNLIMITED: Final = 0x7FFF_FFFF

_DIVIDED: Final = "divided"
"""Marks a field that is divided among the processes of a fetch: the least that each gets."""
T = TypeVar("T", bound="DataclassInstance")


def millis(seconds: float) -> int:
    """Seconds as a 32-bit float, times 1000 in 32 bits, cut to whole milliseconds as Java's
    `(long)` does.
    """
    return int(float32(float32(seconds) * 1000))


def milliseconds(conf: Configuration, name: str) -> int:
    """Reads a property in seconds, as `millis`."""
    return millis(conf.get_float(name))


def whole_seconds(conf: Configuration, name: str) -> int:
    """Reads a property in whole seconds; returns milliseconds."""
    return conf.get_int(name) * 1000


@dataclass(frozen=True, slots=True)
class QueueSettings(Settings):
    """The settings of the queues (FetchItemQueues); delays in ms, `time_limit` in ms since the
    epoch.
    """

    mode: str = prop("fetcher.queue.mode")
    max_threads: int = prop("fetcher.threads.per.queue")
    crawl_delay: int = prop("fetcher.server.delay", milliseconds)
    min_delay: int = prop("fetcher.server.min.delay", milliseconds)
    time_limit: int = NEVER
    max_exceptions: int = prop("fetcher.max.exceptions.per.queue")
    exceptions_delay: int = prop("fetcher.exceptions.per.queue.delay", milliseconds)
    exceptions_jitter: float = prop("fetcher.exceptions.per.queue.jitter", Configuration.get_double)
    failures_in_row: bool = prop("fetcher.exceptions.per.queue.in.row")
    clear_after: int = prop("fetcher.exceptions.per.queue.clear.after", milliseconds)
    patience: int = 300_000
    """A host that asks not to be called for longer than this is given up in this fetch."""
    depth: int = field(default=NEVER, metadata={_DIVIDED: 1})
    """No host of the fetch list is begun while so many URLs wait."""


@dataclass(frozen=True, slots=True)
class RobotsSettings(Settings):
    """The settings for the rules of a robots.txt and for Retry-After; delays in ms."""

    max_crawl_delay: int = prop("fetcher.max.crawl.delay", whole_seconds)
    min_crawl_delay: int = prop("fetcher.min.crawl.delay", milliseconds)
    defer_delay: int = prop("http.robots.503.defer.visits.delay", Configuration.get_long)
    defer_retries: int = prop("http.robots.503.defer.visits.retries")
    defer_wait: int = prop("http.robots.503.defer.visits.wait", Configuration.get_long)
    """How long a fetch that has nothing else to do waits for deferred hosts; negative: as long as
    it takes.
    """
    longest_retry_after: int = prop("http.retry.after.max.seconds", whole_seconds)


def _longest_url(conf: Configuration, name: str) -> int:
    length = conf.get_int(name)
    return UNLIMITED if length < 0 else length


def _of_redirects(conf: Configuration, name: str) -> bool:
    """Whether links are ignored, and redirects as links."""
    return conf.get_boolean("db.ignore.also.redirects") and conf.get_boolean(name)


def _by_domain(conf: Configuration, name: str) -> bool:
    return conf.get_text(name).lower() == "bydomain"


@dataclass(frozen=True, slots=True)
class RedirectSettings(Settings):
    """The settings that decide which redirects are followed, and which are left to a later
    round.
    """

    max_redirects: int = prop("http.redirect.max")
    exceeded_skip: bool = prop("http.redirect.max.exceeded.skip")
    max_length: int = prop("db.max.outlink.length", _longest_url)
    ignore_internal: bool = prop("db.ignore.internal.links", _of_redirects)
    ignore_external: bool = prop("db.ignore.external.links", _of_redirects)
    by_domain: bool = prop("db.ignore.external.links.mode", _by_domain)
    dedup_seconds: int = prop("fetcher.redirect.dedupcache.seconds")
    dedup_size: int = prop("fetcher.redirect.dedupcache.size")


@dataclass(frozen=True, slots=True)
class FollowSettings(Settings):
    """fetcher.follow.outlinks.*: how far links of parsed pages are fetched in the same run."""

    depth: int = prop("fetcher.follow.outlinks.depth")
    per_page: int = prop("fetcher.follow.outlinks.num.links")
    divisor: int = prop("fetcher.follow.outlinks.depth.divisor")
    ignore_external: bool = prop("fetcher.follow.outlinks.ignore.external")
    interval: int = prop("db.fetch.interval.default")

    @property
    def most(self) -> int:
        """Links that one page may lead to over all depths, as Fetcher logs it (integer division
        included).
        """
        return sum(
            self.divisor // (level + 1) * self.per_page for level in range(max(0, self.depth))
        )


def _minutes(conf: Configuration, name: str) -> int:
    return conf.get_long(name) * 60_000


def _kilobits(conf: Configuration, name: str) -> int:
    kilobits = conf.get_int(name)
    return kilobits * 1000 if kilobits > 0 else NEVER


def _every(conf: Configuration, name: str) -> int:
    seconds = conf.get_int(name)
    if seconds < 1:
        log.info("%s=%d: taking 1", name, seconds)
    return max(seconds, 1)


@dataclass(frozen=True, slots=True)
class PressureSettings(Settings):
    """Throughput threshold, tail and bandwidth target: when the fetch ends, and how many requests
    it has in flight.
    """

    min_pages: int = prop("fetcher.throughput.threshold.pages", divided=0)
    retries: int = prop("fetcher.throughput.threshold.retries")
    check_after: int = prop("fetcher.throughput.threshold.check.after", _minutes)
    """In ms; of a fetch that runs, since the epoch."""
    tail_share: float = prop("fetcher.tail.share", Configuration.get_double)
    """The fetch ends when fewer than this share of its hosts have URLs left for long."""
    bits_per_second: int = prop("fetcher.bandwidth.target", _kilobits, divided=1)
    max_threads: int = prop("fetcher.maxNum.threads", divided=1)
    check_every: int = prop("fetcher.bandwidth.target.check.everyNSecs", _every)


def _warc_limit(conf: Configuration, name: str) -> int:
    limit = conf.get_int(name, DEFAULT_LIMIT)
    return limit if limit > 0 else DEFAULT_LIMIT


@dataclass(frozen=True, slots=True)
class WarcSettings(Settings):
    """The form of the WARC files that a fetch writes (fetcher.warc)."""

    limit: int = prop("warc.output.segment.size", _warc_limit)
    """Bytes beyond which a file is full."""
    level: int = made_by(level_of)
    """Level of compression, 0 to 3."""
    crawler: CrawlerIdentity = made_by(CrawlerIdentity.from_conf)


@dataclass(frozen=True, slots=True)
class FetchOptions:
    """Options of fetch."""

    threads: int | None = None
    """Pages fetched at the same time at most; None: fetcher.threads.fetch."""
    parse: bool = False
    """Whether the work of the parse step is done on the way, where one machine fetches; if
    fetcher.parse is true, pages are parsed in Nutch's way instead.
    """
    is_stopping: Callable[[], bool] = field(default=bool, compare=False)
    """Asked once a second: once it is True, hosts that rest or fail are left to a later fetch."""


def _time_limit(conf: Configuration, now: int) -> int:
    minutes = conf.get_long("fetcher.timelimit.mins")
    return conf.get_long("fetcher.timelimit", NEVER) if minutes == NEVER else now + minutes * 60_000


def _warc(conf: Configuration, name: str) -> WarcSettings | None:
    return WarcSettings.from_conf(conf) if conf.get_boolean(name) else None


def _stores(conf: Configuration, name: str) -> bool:
    stores = conf.get_boolean(name)
    content = conf.get_boolean("fetcher.store.content") or conf.get_boolean("fetcher.warc")
    if stores and not content:
        log.warning("%s has no effect without fetcher.store.content", name)
    return stores and content


@dataclass(frozen=True, slots=True, kw_only=True)
class FetchSettings(Settings):
    """All of it, and what belongs to none of the groups. `hung_after` in ms, `start_delay` in ms
    per place.
    """

    queues: QueueSettings
    robots: RobotsSettings = made_by(RobotsSettings.from_conf)
    redirects: RedirectSettings = made_by(RedirectSettings.from_conf)
    follow: FollowSettings = made_by(FollowSettings.from_conf)
    pressure: PressureSettings
    places: int = field(metadata={_DIVIDED: 1})
    """Requests in flight at most."""
    start_delay: int
    hung_after: int
    parse: bool = prop("fetcher.parse")
    """Whether pages are parsed as they come (fetcher.parse, or for the parse step)."""
    for_step: bool = False
    """Whether that is the work of the parse step: what comes of it is what that would write, and
    nothing to the fetch.
    """
    store_content: bool = prop("fetcher.store.content")
    store_robots: bool = prop("fetcher.store.robotstxt", _stores)
    asks_for_tdmrep: bool = prop("fetcher.tdmrep", _stores)
    warc: WarcSettings | None = prop("fetcher.warc", _warc)
    """None: no WARC files are written."""
    signature: bool = prop("fetcher.signature")
    filter_urls: bool = prop("fetcher.filter.urls")
    normalize_urls: bool = prop("fetcher.normalize.urls")
    publish: bool = prop("fetcher.publisher")
    record_skipped: bool = prop("fetcher.record.skipped")
    processes: int = prop("minutch.fetch.processes", at_least(0))
    """0: as many as are worth it."""
    since: int = 0
    """When the fetch began (ms since the epoch), where times that it may take count from."""
    form: PartSettings = made_by(PartSettings.from_conf)
    """The form of the segment's part files."""

    @classmethod
    def of(cls, conf: Configuration, now: int, threads: int | None = None) -> FetchSettings:
        """Reads all fetcher properties; `threads` overrides fetcher.threads.fetch (`-threads`).

        Where neither is set, there are as many places as memory has room for; with a bandwidth
        target, which adds and takes places, there are 10 in the beginning.
        """
        threads = conf.get_int("fetcher.threads.fetch") if threads is None else threads
        pressure = PressureSettings.from_conf(conf)
        has_target = pressure.bits_per_second > 0
        free = 10 if has_target else places_in(memory_budget(conf))
        places = threads if threads > 0 else free
        if has_target and pressure.max_threads < places:
            log.info(
                "fetcher.maxNum.threads=%d is below the %d threads asked for: taking %d",
                pressure.max_threads,
                places,
                places,
            )
        hung_after = conf.get_int("mapreduce.task.timeout", 600_000) // max(
            1, conf.get_int("fetcher.threads.timeout.divisor")
        )
        multiplier = conf.get_int("fetcher.queue.depth.multiplier")
        return cls.from_conf(
            conf,
            queues=QueueSettings.from_conf(
                conf,
                time_limit=_time_limit(conf, now),
                patience=hung_after,
                depth=NEVER if multiplier <= 0 else places * multiplier,
            ),
            pressure=replace(
                pressure,
                check_after=now + pressure.check_after,
                # As Fetcher: never fewer than there are in the beginning.
                max_threads=max(pressure.max_threads, places),
            ),
            places=places,
            # Of thousands of places that nobody asked for, each would open 10 ms after the other.
            start_delay=conf.get_int("fetcher.threads.start.delay") if threads > 0 else 0,
            hung_after=hung_after,
            since=now,
        )

    def beginning(self, now: int) -> FetchSettings:
        """Returns the settings of a list that begins now: times that it may take count from now."""
        queues, later = self.queues, now - self.since
        if queues.time_limit != NEVER:
            queues = replace(queues, time_limit=queues.time_limit + later)
        pressure = replace(self.pressure, check_after=self.pressure.check_after + later)
        return replace(self, queues=queues, pressure=pressure, since=now)


def share_of(settings: T, index: int, count: int) -> T:
    """Returns the settings of process `index` of `count`."""
    changes: dict[str, Any] = {}
    for item in fields(settings):
        value = getattr(settings, item.name)
        if is_dataclass(value) and not isinstance(value, type):
            changes[item.name] = share_of(value, index, count)
        elif _DIVIDED in item.metadata and value > 0:
            # The remainder goes to the first ones: all shares add up to the value.
            changes[item.name] = max(
                item.metadata[_DIVIDED], value // count + (index < value % count)
            )
    return replace(settings, **changes)


# -- places ----------------------------------------------------------------------------------------
#
# What bounds the requests in flight where nobody does (fetcher.threads.fetch, `fetch -threads`): a
# place for each host that may be asked, within memory and file descriptors.

PLACE: Final = 1 << 17
"""Bytes that are reckoned for a request in flight: 16 KB for itself, and a page as it comes."""
_OTHERS: Final = 256
"""Descriptors that are left to logs, pipes, name servers and idle connections."""
_LEAST_PLACES: Final = 16


def places_in(memory: int) -> int:
    """Returns the number of places that so many bytes have room for."""
    return max(_LEAST_PLACES, memory // PLACE)


def places_here(wanted: int) -> int:
    """Returns `wanted`, or fewer where this process may not open so many connections; lifts the
    limit as far as the system lets it (RLIMIT_NOFILE).
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard != resource.RLIM_INFINITY and soft < hard:
        with suppress(ValueError, OSError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
            soft = hard
    most = max(_LEAST_PLACES, soft - _OTHERS) if soft != resource.RLIM_INFINITY else wanted
    if most < wanted:
        log.info("%d requests at a time: this process may open %d files (ulimit -n)", most, soft)
    return min(wanted, most)
