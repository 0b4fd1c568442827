"""Takes one URL of the fetch list through robots.txt, request and redirects, step by step.

    listed URL ─ robots.txt ─ request ─┬─ page, gone, retry, …     recorded, the end
                  │                    └─ redirect ─ target ─ robots.txt ─ request ─ …
                  └─ denied, deferred, unreachable

At most http.redirect.max redirects are followed. `decisions` makes the decisions (`decide`,
`ending`, `RedirectRules`).
Source: the inner loop of org.apache.nutch.fetcher.FetcherThread.run.
"""

from __future__ import annotations

import logging
import struct
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass, field
from typing import Final, Protocol

from minutch.clock import Clock
from minutch.cycle.fetch.decisions import (
    PERMANENT_REFRESH_SECONDS,
    REPR_KEY,
    Decision,
    RedirectRules,
    Verdict,
    decide,
    ending,
    redirect_datum,
    retry_after,
)
from minutch.cycle.fetch.fetchlog import Frame, Part
from minutch.cycle.fetch.hostaddresses import nothing_to_learn
from minutch.cycle.fetch.ledger import Outcome
from minutch.cycle.fetch.pause import Pause
from minutch.cycle.fetch.queuekey import QueueKey
from minutch.cycle.fetch.queues import FetchItem, FetchQueues
from minutch.cycle.fetch.recorder import ParsedPage, Recorder
from minutch.cycle.fetch.settings import FetchSettings
from minutch.cycle.fetch.stats import FetchStats
from minutch.errors import ProtocolError
from minutch.plugin import points
from minutch.records import crawldatum as status
from minutch.records import parsestatus, protocolstatus
from minutch.records.content import Content
from minutch.records.protocolstatus import ProtocolStatus
from minutch.urls.domains import choose_representative

log = logging.getLogger(__name__)

_DENIALS: Final = {
    Verdict.DENIED: "robots_denied_total",
    Verdict.DELAY_TOO_LONG: "robots_denied_maxcrawldelay_total",
}
_FOLLOW: Final = struct.Struct(">II")
ROBOTS_DENIED: Final = ProtocolStatus(protocolstatus.ROBOTS_DENIED)
FAILED: Final = ProtocolStatus(protocolstatus.FAILED)
ROBOTS_DEFER: Final = "robots.txt defers visits"


@dataclass(slots=True)
class RedirectChain:
    """A URL, what it has led to so far, and the item that is being fetched now."""

    item: FetchItem
    frame: Frame
    representative: str
    redirects: int = 0
    entered: bool = True
    """`item` counts as in progress in its queue."""
    put_back: bool = False
    """`item` waits in its queue again (robots.txt deferral)."""
    parsing: bool = False
    """The answer is there and being recorded; a parse has a time limit of its own."""

    @classmethod
    def of(cls, item: FetchItem) -> RedirectChain:
        """Returns a chain that has recorded nothing yet."""
        listed = [] if item.listed is None else [item.listed]
        known = item.datum.metadata.get(REPR_KEY)
        return cls(
            item,
            Frame(Outcome.RETRY if listed else Outcome.FOLLOWED, listed),
            item.url if known is None else str(known),
            item.redirects,
        )

    def conclude(self, outcome: Outcome) -> None:
        """The listed URL's own outcome; that of a redirect's target does not count."""
        if not self.redirects and self.frame.listed:
            self.frame.outcome = outcome


class Handover(Protocol):
    """The callbacks through which a chain asks the loop that runs it."""

    pause: Pause

    def purged(self, items: list[FetchItem], outcome: Outcome, reason: str) -> None:
        """These items are given up."""
        ...

    def parsed(self, chain: RedirectChain, page: ParsedPage) -> None:
        """A page was parsed: follow its links if asked to, publish the event."""
        ...

    def publish(self, kind: str, url: str, data: dict[str, object]) -> None:
        """Passes an event to the publishers."""
        ...

    def hand_over(self, chain: RedirectChain, item: FetchItem) -> bool:
        """True if another process or the next run takes the redirect's target."""
        ...

    def busy_until(self, queue_id: str, time: int, now: int) -> None:
        """The host asked not to be called before `time`."""
        ...

    def wake(self) -> None:
        """A place may be free."""
        ...


@dataclass(slots=True)
class ChainRunner:
    """Takes chains through their steps."""

    settings: FetchSettings
    clock: Clock
    queues: FetchQueues
    queue_key: QueueKey
    protocol_of: Callable[[str], points.Protocol]
    rules: RedirectRules
    recorder: Recorder
    stats: FetchStats
    handover: Handover
    stopping: Callable[[], bool] = lambda: False
    learn: Callable[[Iterable[str]], Awaitable[None]] = nothing_to_learn
    """Waits until `queue_key` can name the queues of these URLs."""
    _no_robots: list[Content] | None = field(default=None, init=False)

    async def run(self, chain: RedirectChain) -> None:
        """Fetches the chain's URL and what it redirects to; records everything in the chain's
        frame.
        """
        following = True
        while following:
            protocol = self._protocol(chain)
            if protocol is None:
                return
            await self._go_ahead()
            if self.settings.publish:
                self.handover.publish("START", chain.item.url, {})
            if not await self._may_fetch(chain, protocol):
                return
            following = await self._fetch(chain, protocol)

    async def _go_ahead(self) -> None:
        """Before a request: not while the fetch is paused."""
        if self.handover.pause.is_on:
            await self.handover.pause.over()

    def _protocol(self, chain: RedirectChain) -> points.Protocol | None:
        try:
            return self.protocol_of(chain.item.url)
        except ProtocolError as exc:
            log.info("fetch of %s failed with: %s", chain.item.url, exc)
            self.fail(chain, FAILED)
            return None

    # -- robots.txt --------------------------------------------------------------------------------

    async def _may_fetch(self, chain: RedirectChain, protocol: points.Protocol) -> bool:
        item = chain.item
        robots: list[Content] | None = [] if self.settings.store_robots else None
        rules = await protocol.get_robot_rules(item.url, item.datum, robots)
        if robots:
            self.recorder.robots_txt(chain.frame, robots, self.clock.now())
        failure: ProtocolStatus | None = getattr(
            rules, "failure", None
        )  # protocols may say why there are none
        decision = decide(
            failure is not None or rules.is_allowed(item.url),
            rules.crawl_delay or 0,
            defer=rules.defer_visits,
            unreachable=failure is not None,
            settings=self.settings.robots,
        )
        if decision.verdict is Verdict.FETCH:
            if decision.crawl_delay is not None:
                self.queues.set_crawl_delay(item.queue_id, decision.crawl_delay, self.clock.now())
            return True
        self._refuse(chain, decision, failure)
        return False

    def _refuse(
        self, chain: RedirectChain, decision: Decision, failure: ProtocolStatus | None
    ) -> None:
        item, now = chain.item, self.clock.now()
        chain.entered = False
        if decision.verdict is Verdict.DEFER:
            self._defer(chain, now)
            return
        self.queues.finish(item.queue_id, now, at_once=failure is None)
        if failure is not None:
            self._unreachable(chain, failure, now)
            return
        log.debug("denied by robots.txt: %s", item.url)
        self.stats.events[_DENIALS[decision.verdict]] += 1
        if decision.crawl_delay is not None:
            seconds = decision.crawl_delay / 1000
            log.warning("%s: Crawl-Delay of %g s, above fetcher.max.crawl.delay", item.url, seconds)
        self.recorder.page(
            chain.frame, item.url, item.datum, None, ROBOTS_DENIED, status.STATUS_FETCH_GONE, now
        )
        chain.conclude(Outcome.DENIED)

    def _unreachable(self, chain: RedirectChain, failure: ProtocolStatus, now: int) -> None:
        """robots.txt could not be had: the page is not asked for now, and tried again another
        day.
        """
        item = chain.item
        log.info("fetch of %s failed with: robots.txt can't be had: %s", item.url, failure.message)
        self.stats.errors += 1
        self.stats.failed(now, item.url, f"robots.txt can't be had: {failure.message}")
        self.recorder.page(
            chain.frame, item.url, item.datum, None, failure, status.STATUS_FETCH_RETRY, now
        )
        chain.conclude(
            Outcome.DENIED if failure.code == protocolstatus.ROBOTS_DENIED else Outcome.RETRY
        )
        self._count_exception(item.queue_id, now)

    def _defer(self, chain: RedirectChain, now: int) -> None:
        item, robots = chain.item, self.settings.robots
        log.info("visits deferred by robots.txt of %s: %s", item.queue_id, item.url)
        if chain.redirects:
            item.listed = None
            item.redirects = chain.redirects
            chain.frame.add(Part.FOLLOW, item.url, pack_follow(item))
        if self.queues.time_limit_exceeded(now) or self.stopping():
            self.queues.finish(item.queue_id, now, at_once=True)
            given_up = [item]
        else:
            given_up = self.queues.defer(item, robots.defer_delay, robots.defer_retries, now)
        chain.put_back = True
        self.stats.events["robots_defer_visits_dropped_total"] += len(given_up)
        self.handover.purged(given_up, Outcome.DEFERRED, ROBOTS_DEFER)

    # -- request -----------------------------------------------------------------------------------

    async def _fetch(self, chain: RedirectChain, protocol: points.Protocol) -> bool:
        """One request and its records; True if `chain.item` is now a redirect's target to go on
        with.
        """
        item = chain.item
        await self._go_ahead()
        started = self.clock.monotonic()
        output = await protocol.get_protocol_output(item.url, item.datum)
        milliseconds = round((self.clock.monotonic() - started) * 1000)
        now = self.clock.now()
        self.queues.finish(item.queue_id, now)
        chain.entered = False
        end = ending(output.status.code)
        size = 0 if output.content is None else len(output.content.content)
        success = output.status.code == protocolstatus.SUCCESS
        self.stats.request(item.queue_id, milliseconds, size, success=success, failed=end.failed)
        self.stats.events[output.status.name or "unknown"] += 1
        chain.conclude(end.outcome)
        if self.settings.publish:
            self.handover.publish("END", item.url, {"status": output.status.name})
        self.recorder.visited(chain.frame, item.url, item.datum, output.content, output.status, now)
        content = output.content if end.keeps_content else None
        chain.parsing = True
        if self.recorder.parses:
            self.handover.wake()
        page = await self.recorder.fetched(
            chain.frame, item.url, item.datum, content, output.status, end.fetch_status, now
        )  # fmt: skip
        chain.parsing = False
        if end.failed:
            self._failed(chain, output, now)
            return False
        if page is not None:
            if self.settings.follow.depth > 0:
                await self.learn(link for _, links in page.outlinks for link in links)
            self.handover.parsed(chain, page)
        location = _location(output.status, page)
        return location is not None and await self._redirect(chain, *location, now)

    def _failed(self, chain: RedirectChain, output: points.ProtocolOutput, now: int) -> None:
        item = chain.item
        log.info("fetch of %s failed with: %s", item.url, output.status.message)
        self.stats.failed(now, item.url, str(output.status.message))
        back = retry_after(
            _header(output.content, "retry-after"), now, self.settings.robots.longest_retry_after
        )
        if back is not None:
            self.handover.busy_until(item.queue_id, back, now)
        self._count_exception(item.queue_id, now)

    def _count_exception(self, queue_id: str, now: int) -> None:
        purged = self.queues.exception(queue_id, now)
        self.stats.events["above_exception_threshold_total"] += len(purged)
        self.handover.purged(purged, Outcome.SKIPPED_EXCEPTIONS, "too many exceptions in the queue")

    def fail(self, chain: RedirectChain, protocol_status: ProtocolStatus) -> None:
        """Something went wrong on our side: the URL is tried again."""
        item, now = chain.item, self.clock.now()
        if chain.entered:
            self.queues.finish(item.queue_id, now)
            chain.entered = False
        self.stats.errors += 1
        self.stats.failed(now, item.url, str(protocol_status.message))
        self.recorder.page(
            chain.frame, item.url, item.datum, None, protocol_status, status.STATUS_FETCH_RETRY, now
        )
        chain.conclude(Outcome.RETRY)

    # -- redirects ---------------------------------------------------------------------------------

    async def _redirect(
        self, chain: RedirectChain, location: str, temporary: bool, now: int
    ) -> bool:
        """True if the target is `chain.item` now, to be fetched at once."""
        item, settings = chain.item, self.settings.redirects
        target = self.rules.target(item.url, location)
        if target is None:
            return False
        chain.representative = choose_representative(chain.representative, target, temporary)
        if settings.max_redirects <= 0:
            self._link(chain, item, target, now)
            return False
        if self.queues.met_lately(target, now):
            self.stats.events["redirect_deduplicated_total"] += 1
            return False
        if self.queues.time_limit_exceeded(now) or self.stopping():
            self.stats.events["hit_by_timelimit_total"] += 1
            self._link(chain, item, target, now)
            return False
        await self.learn([target])
        queue_id = self.queue_key(target)
        if queue_id is None:
            self.stats.events["redirect_not_created_total"] += 1
            return False
        return self._go_to(chain, target, queue_id, location, now)

    def _go_to(
        self, chain: RedirectChain, target: str, queue_id: str, location: str, now: int
    ) -> bool:
        settings = self.settings.redirects
        origin = chain.item
        datum = redirect_datum(
            origin.datum, status.STATUS_DB_UNFETCHED, chain.representative, origin.url, target
        )
        self.recorder.initial_score(target, datum)
        item = FetchItem(target, datum, queue_id, chain.item.listed, chain.item.depth)
        if chain.redirects >= settings.max_redirects:
            self.stats.events["redirect_count_exceeded_total"] += 1
            if not settings.exceeded_skip:
                self._link(chain, item, location, now)
            return False
        if self.handover.hand_over(chain, item):
            return False
        chain.redirects += 1
        chain.item = item
        chain.entered = True
        self.queues.enter(queue_id, now)
        return True

    def _link(self, chain: RedirectChain, origin: FetchItem, target: str, now: int) -> None:
        datum = redirect_datum(
            origin.datum, status.STATUS_LINKED, chain.representative, origin.url, target
        )
        self.recorder.linked(chain.frame, target, datum, now)


def _location(protocol_status: ProtocolStatus, page: ParsedPage | None) -> tuple[str, bool] | None:
    """Returns the target of the page's redirect, by its status or its meta refresh, and whether it
    is temporary.
    """
    if protocol_status.is_redirect:
        return protocol_status.message or "", protocol_status.code == protocolstatus.TEMP_MOVED
    parse_status = None if page is None else page.status
    if (
        parse_status is not None
        and parse_status.is_success
        and parse_status.minor == parsestatus.SUCCESS_REDIRECT
        and parse_status.args
    ):
        seconds = parse_status.args[1] if len(parse_status.args) > 1 else None
        wait = int(seconds) if seconds is not None and seconds.isdecimal() else 0
        return parse_status.args[0] or "", wait < PERMANENT_REFRESH_SECONDS
    return None


def _header(content: Content | None, name: str) -> str | None:
    """Returns a response header, whatever its case."""
    if content is None:
        return None
    return next(
        (values[0] for key, values in content.metadata.items() if key.lower() == name and values),
        None,
    )


def pack_follow(item: FetchItem) -> bytes:
    """Returns the value of a FOLLOW entry: depth, redirects so far and datum of an item that is
    still to be fetched.
    """
    return _FOLLOW.pack(item.depth, item.redirects) + item.datum.to_bytes()


def unpack_follow(url: str, value: bytes, queue_id: str) -> FetchItem:
    """Returns the item of a FOLLOW entry."""
    depth, redirects = _FOLLOW.unpack_from(value)
    datum = status.CrawlDatum.from_bytes(value[_FOLLOW.size :])
    return FetchItem(url, datum, queue_id, None, depth, redirects)
