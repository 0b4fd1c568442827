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

from minutch.conf import Configuration
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

_LEAST: Final = "least"
T = TypeVar("T", bound="DataclassInstance")


def divided(default: int | None = None, *, least: int = 0) -> Any:
    """A field that is divided among the processes of a fetch, of which each gets `least` at
    least.
    """
    metadata = {_LEAST: least}
    return (
        field(metadata=metadata) if default is None else field(default=default, metadata=metadata)
    )


def millis(seconds: float) -> int:
    """Seconds as a 32-bit float, times 1000 in 32 bits, cut to whole milliseconds as Java's
    `(long)` does.
    """
    return int(float32(float32(seconds) * 1000))


@dataclass(frozen=True, slots=True)
class QueueSettings:
    """The settings of the queues; delays in ms, `time_limit` in ms since the epoch."""

    mode: str = BY_HOST
    max_threads: int = 1
    crawl_delay: int = 5000
    min_delay: int = 0
    time_limit: int = NEVER
    max_exceptions: int = NEVER
    exceptions_delay: int = 0
    exceptions_jitter: float = 0.1
    failures_in_row: bool = True
    clear_after: int = 1_800_000
    patience: int = 300_000
    """A host that asks not to be called for longer than this is given up in this fetch."""
    depth: int = divided(NEVER, least=1)
    """No host of the fetch list is begun while so many URLs wait."""

    @classmethod
    def from_conf(
        cls, conf: Configuration, now: int, places: int = 10, patience: int = 300_000
    ) -> QueueSettings:
        """FetchItemQueues' constructor; `now` (ms) is when the job started, where the time limit
        counts from.
        """
        multiplier = conf.get_int("fetcher.queue.depth.multiplier")
        minutes = conf.get_long("fetcher.timelimit.mins")
        return cls(
            mode=conf.get_word("fetcher.queue.mode"),
            max_threads=conf.get_int("fetcher.threads.per.queue"),
            crawl_delay=millis(conf.get_float("fetcher.server.delay")),
            min_delay=millis(conf.get_float("fetcher.server.min.delay")),
            time_limit=conf.get_long("fetcher.timelimit", NEVER)
            if minutes == NEVER
            else now + minutes * 60_000,
            max_exceptions=conf.get_int("fetcher.max.exceptions.per.queue"),
            exceptions_delay=millis(conf.get_float("fetcher.exceptions.per.queue.delay")),
            exceptions_jitter=conf.get_double("fetcher.exceptions.per.queue.jitter"),
            clear_after=millis(conf.get_float("fetcher.exceptions.per.queue.clear.after")),
            failures_in_row=conf.get_boolean("fetcher.exceptions.per.queue.in.row"),
            patience=patience,
            depth=NEVER if multiplier <= 0 else places * multiplier,
        )


@dataclass(frozen=True, slots=True)
class RobotsSettings:
    """The settings for the rules of a robots.txt and for Retry-After; delays in ms."""

    max_crawl_delay: int = 30_000
    min_crawl_delay: int = 5000
    defer_delay: int = 300_000
    defer_retries: int = 3
    defer_wait: int = 30_000
    """How long a fetch that has nothing else to do waits for deferred hosts; negative: as long as
    it takes.
    """
    longest_retry_after: int = 86_400_000

    @classmethod
    def from_conf(cls, conf: Configuration) -> RobotsSettings:
        """Reads the part of FetcherThread's constructor that concerns robots.txt."""
        return cls(
            max_crawl_delay=conf.get_int("fetcher.max.crawl.delay") * 1000,
            min_crawl_delay=millis(conf.get_float("fetcher.min.crawl.delay")),
            defer_delay=conf.get_long("http.robots.503.defer.visits.delay"),
            defer_wait=conf.get_long("http.robots.503.defer.visits.wait"),
            defer_retries=conf.get_int("http.robots.503.defer.visits.retries"),
            longest_retry_after=conf.get_int("http.retry.after.max.seconds") * 1000,
        )


@dataclass(frozen=True, slots=True)
class RedirectSettings:
    """The settings that decide which redirects are followed, and which are left to a later
    round.
    """

    max_redirects: int = 0
    exceeded_skip: bool = False
    max_length: int = UNLIMITED
    ignore_internal: bool = False
    ignore_external: bool = False
    by_domain: bool = False
    dedup_seconds: int = NEVER
    dedup_size: int = 1000

    @classmethod
    def from_conf(cls, conf: Configuration) -> RedirectSettings:
        """Reads the part of FetcherThread's constructor that concerns redirects."""
        also = conf.get_boolean("db.ignore.also.redirects")
        length = conf.get_int("db.max.outlink.length")
        return cls(
            max_redirects=conf.get_int("http.redirect.max"),
            exceeded_skip=conf.get_boolean("http.redirect.max.exceeded.skip"),
            max_length=UNLIMITED if length < 0 else length,
            ignore_internal=also and conf.get_boolean("db.ignore.internal.links"),
            ignore_external=also and conf.get_boolean("db.ignore.external.links"),
            by_domain=conf.get_text("db.ignore.external.links.mode").lower() == "bydomain",
            dedup_seconds=conf.get_int("fetcher.redirect.dedupcache.seconds"),
            dedup_size=conf.get_int("fetcher.redirect.dedupcache.size"),
        )


@dataclass(frozen=True, slots=True)
class FollowSettings:
    """fetcher.follow.outlinks.*: how far links of parsed pages are fetched in the same run."""

    depth: int = NEVER
    per_page: int = 4
    divisor: int = 2
    ignore_external: bool = True
    interval: int = 2_592_000

    @classmethod
    def from_conf(cls, conf: Configuration) -> FollowSettings:
        """Reads the properties of FetcherThread.output that concern followed outlinks."""
        return cls(
            depth=conf.get_int("fetcher.follow.outlinks.depth"),
            per_page=conf.get_int("fetcher.follow.outlinks.num.links"),
            divisor=conf.get_int("fetcher.follow.outlinks.depth.divisor"),
            ignore_external=conf.get_boolean("fetcher.follow.outlinks.ignore.external"),
            interval=conf.get_int("db.fetch.interval.default"),
        )

    @property
    def most(self) -> int:
        """Links that one page may lead to over all depths, as Fetcher logs it (integer division
        included).
        """
        return sum(
            self.divisor // (level + 1) * self.per_page for level in range(max(0, self.depth))
        )


@dataclass(frozen=True, slots=True)
class PressureSettings:
    """Throughput threshold, tail and bandwidth target: when the fetch ends, and how many requests
    it has in flight.
    """

    min_pages: int = divided(NEVER)
    retries: int = 5
    check_after: int = 0
    tail_share: float = 0.0
    """The fetch ends when fewer than this share of its hosts have URLs left for long."""
    bits_per_second: int = divided(NEVER, least=1)
    max_threads: int = divided(10, least=1)
    check_every: int = 30

    @classmethod
    def from_conf(cls, conf: Configuration, threads: int, now: int) -> PressureSettings:
        """Fetcher.FetcherRun.run's properties; `check_after` is in ms since the epoch, as `now`."""
        most = conf.get_int("fetcher.maxNum.threads")
        every = conf.get_int("fetcher.bandwidth.target.check.everyNSecs")
        target = conf.get_int("fetcher.bandwidth.target")
        if target > 0 and most < threads:
            log.info(
                "fetcher.maxNum.threads=%d is below the %d threads asked for: taking %d",
                most,
                threads,
                threads,
            )
        if every < 1:
            log.info("fetcher.bandwidth.target.check.everyNSecs=%d: taking 1", every)
        return cls(
            min_pages=conf.get_int("fetcher.throughput.threshold.pages"),
            retries=conf.get_int("fetcher.throughput.threshold.retries"),
            tail_share=conf.get_double("fetcher.tail.share"),
            check_after=now + conf.get_long("fetcher.throughput.threshold.check.after") * 60_000,
            bits_per_second=target * 1000 if target > 0 else NEVER,
            max_threads=max(most, threads),
            check_every=max(every, 1),
        )


@dataclass(frozen=True, slots=True)
class WarcSettings:
    """The form of the WARC files that a fetch writes (fetcher.warc)."""

    limit: int
    """Bytes beyond which a file is full."""
    level: int
    """Level of compression, 0 to 3."""
    crawler: CrawlerIdentity

    @classmethod
    def from_conf(cls, conf: Configuration) -> WarcSettings:
        """Reads the configuration. Raises ConfigError."""
        limit = conf.get_int("warc.output.segment.size", DEFAULT_LIMIT)
        return cls(
            limit if limit > 0 else DEFAULT_LIMIT,
            level_of(conf),
            CrawlerIdentity.from_conf(conf),
        )


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


@dataclass(frozen=True, slots=True, kw_only=True)
class FetchSettings:
    """All of it, and what belongs to none of the groups. `hung_after` in ms, `start_delay` in ms
    per place.
    """

    queues: QueueSettings
    robots: RobotsSettings
    redirects: RedirectSettings
    follow: FollowSettings
    pressure: PressureSettings
    places: int = divided(least=1)
    """Requests in flight at most."""
    start_delay: int
    hung_after: int
    parse: bool
    """Whether pages are parsed as they come (fetcher.parse, or for the parse step)."""
    for_step: bool = False
    """Whether that is the work of the parse step: what comes of it is what that would write, and
    nothing to the fetch.
    """
    store_content: bool
    store_robots: bool
    warc: WarcSettings | None
    """None: no WARC files are written."""
    signature: bool
    filter_urls: bool
    normalize_urls: bool
    publish: bool
    record_skipped: bool
    processes: int
    """0: as many as are worth it."""
    since: int = 0
    """When the fetch began (ms since the epoch), where times that it may take count from."""
    form: PartSettings
    """The form of the segment's part files."""

    @classmethod
    def from_conf(cls, conf: Configuration, now: int, threads: int | None = None) -> FetchSettings:
        """Reads all fetcher properties; `threads` overrides fetcher.threads.fetch (`-threads`).

        Where neither is set, there are as many places as memory has room for; with a bandwidth
        target, which adds and takes places, there are 10 in the beginning.
        """
        threads = conf.get_int("fetcher.threads.fetch") if threads is None else threads
        has_target = conf.get_int("fetcher.bandwidth.target") > 0
        free = 10 if has_target else places_in(memory_budget(conf))
        places = threads if threads > 0 else free
        store_content = conf.get_boolean("fetcher.store.content")
        store_robots = conf.get_boolean("fetcher.store.robotstxt")
        warc = conf.get_boolean("fetcher.warc")
        if store_robots and not (store_content or warc):
            log.warning("fetcher.store.robotstxt has no effect without fetcher.store.content")
        hung_after = conf.get_int("mapreduce.task.timeout", 600_000) // max(
            1, conf.get_int("fetcher.threads.timeout.divisor")
        )
        return cls(
            queues=QueueSettings.from_conf(conf, now, places, hung_after),
            robots=RobotsSettings.from_conf(conf),
            redirects=RedirectSettings.from_conf(conf),
            follow=FollowSettings.from_conf(conf),
            pressure=PressureSettings.from_conf(conf, places, now),
            places=places,
            start_delay=conf.get_int("fetcher.threads.start.delay") if threads > 0 else 0,
            hung_after=hung_after,
            parse=conf.get_boolean("fetcher.parse"),
            store_content=store_content,
            store_robots=store_robots and (store_content or warc),
            warc=WarcSettings.from_conf(conf) if warc else None,
            signature=conf.get_boolean("fetcher.signature"),
            filter_urls=conf.get_boolean("fetcher.filter.urls"),
            normalize_urls=conf.get_boolean("fetcher.normalize.urls"),
            publish=conf.get_boolean("fetcher.publisher"),
            record_skipped=conf.get_boolean("fetcher.record.skipped"),
            processes=max(0, conf.get_int("minutch.fetch.processes")),
            form=PartSettings.from_conf(conf),
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
        elif _LEAST in item.metadata and value > 0:
            changes[item.name] = max(
                item.metadata[_LEAST], value // count + (index < value % count)
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
