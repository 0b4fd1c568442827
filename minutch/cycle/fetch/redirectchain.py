"""Takes one URL through robots.txt and request, to its records and to what it redirects to.

    item ─ robots.txt ─ request ─┬─ page, gone, retry, …     recorded, the end
            │                    └─ redirect ─ target: an item of its own, first in its queue
            └─ denied, deferred, unreachable

At most http.redirect.max redirects are followed, each when the host of its target may be asked: a
target counts in the log as a URL to follow, as links do that are fetched in the same run. The loop
queues both when the chain has ended. `decisions` makes the decisions (`decide`, `ending`,
`RedirectRules`).
Source: the inner loop of org.apache.nutch.fetcher.FetcherThread.run.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

from minutch.clock import Clock
from minutch.cycle.fetch.decisions import (
    PERMANENT_REFRESH_SECONDS,
    REPR_KEY,
    Decision,
    RedirectMemory,
    RedirectRules,
    Verdict,
    decide,
    ending,
    host_failed,
    is_unmodified,
    reason,
    redirect_datum,
    retry_after,
)
from minutch.cycle.fetch.frontier.frontier import LinkFollower
from minutch.cycle.fetch.frontier.hostmemory import HostMemory
from minutch.cycle.fetch.frontier.queueitems import FetchItem, QueueNames, pack_follow
from minutch.cycle.fetch.frontier.queues import ROBOTS_DEFER, FetchQueues
from minutch.cycle.fetch.ledger import Outcome
from minutch.cycle.fetch.limits import Pause, Wakeup
from minutch.cycle.fetch.results.fetchlog import Frame, Part
from minutch.cycle.fetch.results.fetchresults import FetchResults
from minutch.cycle.fetch.results.recorder import FetchOutcome
from minutch.cycle.fetch.settings import FetchSettings
from minutch.cycle.fetch.stats import FetchStats, Publishers
from minutch.cycle.parse.pageparser import ParsedPage
from minutch.errors import ConfigError, PluginError, ProtocolError
from minutch.hadoop.formats.writables import Text
from minutch.plugin import points
from minutch.records import crawldatum as status
from minutch.records import parsedata
from minutch.records import protocol as statuses
from minutch.records.metadata import RESPONSE_CODE_KEY, TOO_SLOW, TRUNCATED_REASON_KEY
from minutch.records.protocol import Content, ProtocolStatus
from minutch.urls.domains import choose_representative
from minutch.urls.parts import parse
from minutch.urls.robots import TDM_FILE, RobotRules

log = logging.getLogger(__name__)

_DENIALS: Final = {
    Verdict.DENIED: "robots_denied_total",
    Verdict.DELAY_TOO_LONG: "robots_denied_maxcrawldelay_total",
}
UNASKED: Final = 30_000
"""Milliseconds until a host is tried again that could not be asked; twice as many each time. Five
minutes, as after a robots.txt that defers visits, held a round up for a few lost DNS answers.
"""
ROBOTS_DENIED: Final = ProtocolStatus(statuses.ROBOTS_DENIED)
FAILED: Final = ProtocolStatus(statuses.FAILED)
_CODE: Final = Text(RESPONSE_CODE_KEY)


@dataclass(slots=True)
class RedirectChain:
    """A URL, what it has led to so far, and the item that is being fetched now."""

    item: FetchItem
    results: FetchResults
    """Those of the list that the URL stands in."""
    frame: Frame
    representative: str
    put_back: bool = False
    """`item` waits in its queue again (robots.txt deferral)."""
    answered: bool = False
    """An answer has come: it ends in the list that it began in."""
    parsing: bool = False
    """The answer is there and being recorded; a parse has a time limit of its own."""
    parts: int = 0
    """The parts of the list that there were when it began."""
    targets: list[FetchItem] = field(default_factory=list)
    """What the URL leads to that is to be fetched in this run."""

    @classmethod
    def of(cls, item: FetchItem, results: FetchResults) -> RedirectChain:
        """Returns a chain that has recorded nothing yet of its page."""
        listed = [] if item.listed is None else [item.listed]
        known = item.datum.metadata.get(REPR_KEY)
        unlisted = Outcome.REDIRECTED if item.redirects else Outcome.FOLLOWED
        outcome = Outcome.RETRY if listed else unlisted  # unless something concludes the chain
        return cls(
            item,
            results,
            item.frame or Frame(outcome, listed),
            item.url if known is None else str(known),
        )

    def conclude(self, outcome: Outcome) -> None:
        """Sets the outcome of a listed URL; that of a redirect's target does not count."""
        if self.frame.listed:
            self.frame.outcome = outcome

    def lead_to(self, target: FetchItem) -> None:
        """Notes that the URL leads to another one, to be fetched in this run or the next."""
        target.parts = self.parts
        self.targets.append(target)
        # Beside the page: both or neither.
        self.frame.add(Part.FOLLOW, target.url, pack_follow(target))


@dataclass(slots=True)
class ChainRunner:
    """Takes chains through their steps."""

    settings: FetchSettings
    clock: Clock
    queues: FetchQueues
    names: QueueNames
    protocol_of: Callable[[str], points.Protocol]
    rules: RedirectRules
    stats: FetchStats
    memory: HostMemory
    publishers: Publishers | None
    """None where nothing is published."""
    pause: Pause
    wakeup: Wakeup
    follower: LinkFollower | None = None
    """Chooses the links that are fetched in the same run; None: none are."""
    lately: RedirectMemory = field(init=False)

    def __post_init__(self) -> None:
        self.lately = RedirectMemory(self.settings.redirects)

    async def run(self, chain: RedirectChain) -> None:
        """Fetches the chain's URL; records everything in the chain's frame."""
        try:
            protocol = self.protocol_of(chain.item.url)
        except ProtocolError as exc:
            log.info("fetch of %s failed with: %s", chain.item.url, exc)
            self._not_asked(chain, FAILED)
            return
        except PluginError as exc:  # it can't be made, for any page
            raise ConfigError(str(exc)) from exc
        await self._go_ahead()
        if self.publishers is not None:
            self.publishers.publish("START", chain.item.url, {})
        if await self._may_fetch(chain, protocol):
            await self._fetch(chain, protocol)

    def tell_rests(self, now: int) -> None:
        """Reports which queues are asked, before a request is sent: the process may be killed
        then.
        """
        rests = self.queues.news(now)
        if rests:
            self.memory.rested(rests)

    async def _go_ahead(self) -> None:
        """Before a request: not while the fetch is paused."""
        if self.pause.is_on:
            await self.pause.over()

    # -- robots.txt --------------------------------------------------------------------------------

    async def _may_fetch(self, chain: RedirectChain, protocol: points.Protocol) -> bool:
        item = chain.item
        settings = self.settings
        robots: list[Content] | None = None
        if settings.store_robots or settings.asks_for_tdmrep:
            robots = []
        rules = await protocol.get_robot_rules(item.url, item.datum, robots)
        if robots and settings.store_robots:
            chain.results.recorder.host_files(chain.frame, robots, self.clock.now())
        if robots and settings.asks_for_tdmrep and await self._tdm_file(chain, protocol, rules):
            return False
        failure = rules.failure
        decision = decide(
            failure is not None or rules.is_allowed(item.url),
            rules.crawl_delay or 0,
            defer=rules.defer_visits,
            unreachable=failure is not None,
            settings=self.settings.robots,
        )
        if decision.verdict is Verdict.FETCH:
            if self.queues.set_crawl_delay(item, decision.crawl_delay):
                now = self.clock.now()
                self.queues.ask(self.queues.queues[item.queue_id], now)
                self.tell_rests(now)
            return True
        if failure is not None and failure.code == statuses.WOULDBLOCK:  # robots.txt took the turn
            self._ask_again(chain, failure)
        elif failure is not None and failure.code == statuses.BLOCKED:
            self._not_asked(chain, failure)
        elif decision.verdict is Verdict.DEFER:
            if failure is None:
                now, robots_settings = self.clock.now(), self.settings.robots
                longest = robots_settings.longest_retry_after
                until = retry_after(rules.retry_after, now, longest)
                until = until or now + robots_settings.defer_delay
                self._defer(chain, ROBOTS_DEFER, until)
            else:
                self._defer(chain, failure.message, self._later(item))
        else:
            self._refuse(chain, decision, failure)
        return False

    async def _tdm_file(
        self, chain: RedirectChain, protocol: points.Protocol, rules: RobotRules
    ) -> bool:
        """Asks for a host's tdmrep.json, each time that its robots.txt was had from the host, in
        place of the page, which waits for its turn; False if it did already, or robots.txt is
        against it.
        """
        item = chain.item
        if item.frame is not None:  # that of the chain which asked for it
            return False
        url = str(parse(TDM_FILE, parse(item.url)))
        decision = decide(
            rules.is_allowed(url),
            rules.crawl_delay or 0,
            defer=rules.defer_visits,
            unreachable=rules.failure is not None,
            settings=self.settings.robots,
        )
        if decision.verdict is not Verdict.FETCH:
            return False
        self.queues.set_crawl_delay(item, decision.crawl_delay)
        datum = status.CrawlDatum()
        output = await protocol.get_protocol_output(url, datum)
        if output.content is not None:
            metadata = output.content.metadata
            metadata.set(RESPONSE_CODE_KEY, str(datum.metadata.get(_CODE, "")))
            chain.results.recorder.host_files(chain.frame, [output.content], self.clock.now())
        item.frame = chain.frame  # page and file go into the log together
        self._ask_again(chain, ProtocolStatus(statuses.WOULDBLOCK, [f"{TDM_FILE} came first"]))
        return True

    def _refuse(
        self, chain: RedirectChain, decision: Decision, failure: ProtocolStatus | None
    ) -> None:
        item, now = chain.item, self.clock.now()
        if failure is not None:
            if item.host == item.queue_id:
                self.queues.finish(item, now, failed=True)
            else:  # which says nothing of the others at that address, or of that domain
                self.queues.finish(item, now)
                until = now + self.settings.robots.defer_delay
                self.queues.rest(item.host, until, now)
            # the page is not asked for now, and tried again another day
            denied = failure.code == statuses.ROBOTS_DENIED
            why = f"robots.txt can't be had: {failure.message}"
            log.info("fetch of %s failed with: %s", item.url, why)
            self._error(chain, failure, why, Outcome.DENIED if denied else Outcome.RETRY)
            return
        self.queues.finish(item, now, asked=False)
        log.debug("denied by robots.txt: %s", item.url)
        self.stats.events[_DENIALS[decision.verdict]] += 1
        if decision.crawl_delay is not None:
            seconds = decision.crawl_delay / 1000
            log.warning("%s: Crawl-Delay of %g s, above fetcher.max.crawl.delay", item.url, seconds)
        answer = FetchOutcome(item.url, item.datum, status.STATUS_FETCH_GONE, now, ROBOTS_DENIED)
        chain.results.recorder.page(chain.frame, answer)
        chain.conclude(Outcome.DENIED)

    def _not_asked(self, chain: RedirectChain, why: ProtocolStatus) -> None:
        """It is this crawler that refuses, by its settings: nothing is known of the page, and what
        is in the CrawlDb stays. What a redirect or link led to does not come into it.
        """
        item, now = chain.item, self.clock.now()
        log.info("%s is not asked for: %s", item.url, reason(why))
        self.queues.finish(item, now, asked=False)
        if item.listed is not None:
            chain.results.recorder.skipped(chain.frame, item.listed, item.datum, reason(why), now)
        chain.conclude(Outcome.SKIPPED_REFUSED)

    def _later(self, item: FetchItem) -> int:
        """Returns when (ms) a host is tried again that could not be asked, as no name server
        answered, say: later each time.
        """
        return self.clock.now() + min(UNASKED << item.deferrals, self.settings.robots.defer_delay)

    def _defer(self, chain: RedirectChain, reason: str | None, until: int) -> None:
        """Puts the item back: its host rests until then, and is asked again by this fetch or a
        later one.
        """
        item, now = chain.item, self.clock.now()
        reason = reason or Outcome.DEFERRED.reason
        log.info("%s is deferred: %s", item.url, reason)
        chain.put_back = True
        retries = self.settings.robots.defer_retries
        self.queues.put_back(item, until - now, retries, now, reason=reason)
        self.memory.busy_until(item.host, until)
        self.wakeup()

    def _ask_again(self, chain: RedirectChain, why: ProtocolStatus) -> None:
        """Puts the item back: a second request is needed, which is sent when its queue has rested,
        as any other.
        """
        log.debug("%s is asked for once more: %s", chain.item.url, why.message)
        chain.put_back = True
        self.queues.ask_again(chain.item, self.clock.now())
        self.wakeup()

    # -- request -----------------------------------------------------------------------------------

    async def _fetch(self, chain: RedirectChain, protocol: points.Protocol) -> None:
        """Makes one request and its records."""
        item = chain.item
        await self._go_ahead()
        started = self.clock.monotonic()
        output = await protocol.get_protocol_output(item.url, item.datum)
        milliseconds = round((self.clock.monotonic() - started) * 1000)
        now = self.clock.now()
        of_another = is_unmodified(output.status) and not item.asked_whole
        if output.status.code == statuses.WOULDBLOCK or of_another:
            self.stats.request(item.queue_id, milliseconds, 0, success=False, failed=False)
            item.frame, item.asked_whole = chain.frame, item.asked_whole or of_another
            self._ask_again(chain, output.status)
            return
        if output.status.code == statuses.NOTFETCHING:
            self._defer(chain, output.status.message, self._later(item))
            return
        if output.status.code == statuses.BLOCKED:
            self._not_asked(chain, output.status)
            return
        end = ending(output.status.code)
        self._finish(chain, output, now)  # before the parse, which is no rest of the host's
        size = 0 if output.content is None else len(output.content.content)
        success = output.status.code == statuses.SUCCESS
        self.stats.request(item.queue_id, milliseconds, size, success=success, failed=end.failed)
        self.stats.events[output.status.name or "unknown"] += 1
        chain.conclude(end.outcome)
        if self.publishers is not None:
            self.publishers.publish("END", item.url, {"status": output.status.name})
        chain.answered = chain.parsing = True  # from here on a turn-over or a time limit leaves it
        recorder = chain.results.recorder
        if recorder.parses:  # a parse takes no place: another may begin
            self.wakeup()
        page = await recorder.fetched(
            chain.frame,
            FetchOutcome(
                item.url, item.datum, end.fetch_status, now, output.status, output.content
            ),
        )
        chain.parsing = False
        if end.failed:
            log.info("fetch of %s failed with: %s", item.url, output.status.message)
            self.stats.failed(now, item.url, str(output.status.message))
            return
        if page is not None:
            await self._parsed(chain, page)
        location = _location(output.status, page)
        if location is not None:
            await self._redirect(chain, *location, now, output.content)

    def _finish(self, chain: RedirectChain, output: points.ProtocolOutput, now: int) -> None:
        """Lets the host rest after an answer, as long as it asks to."""
        item, content = chain.item, output.content
        failed = host_failed(
            output.status,
            in_row=self.settings.queues.failures_in_row,
            too_slow=content is not None and content.metadata.get(TRUNCATED_REASON_KEY) == TOO_SLOW,
        )
        busy_until = None
        if ending(output.status.code).failed:
            values = [] if content is None else content.metadata.field_values("Retry-After")
            longest = self.settings.robots.longest_retry_after
            busy_until = retry_after(values[0] if values else None, now, longest)
        self.queues.finish(item, now, failed=failed, busy_until=busy_until)
        if busy_until is not None:
            self.memory.busy_until(item.host, busy_until)

    async def _parsed(self, chain: RedirectChain, page: ParsedPage) -> None:
        """Publishes a parsed page, and takes its links that are to be followed now."""
        if self.publishers is not None:
            for url, data in page.events:
                self.publishers.publish("REPORT", url, dict[str, object](data))
        if self.follower is None:
            return
        await self.names.learn(link for _, links in page.outlinks for link in links)
        if not self.queues.is_over(self.clock.now()):
            for item in self.follower.follow(page, chain.item.depth):
                chain.lead_to(item)

    def fail(
        self, chain: RedirectChain, protocol_status: ProtocolStatus, *, hung: bool = False
    ) -> None:
        """Records a URL for another try: something went wrong on our side, or the host did not
        answer in time (`hung`).
        """
        item, now = chain.item, self.clock.now()
        if item.in_progress:  # not so behind `_finish`
            self.queues.finish(item, now, failed=True if hung else None)
        self._error(chain, protocol_status, str(protocol_status.message), Outcome.RETRY)

    def _error(
        self, chain: RedirectChain, protocol_status: ProtocolStatus, why: str, outcome: Outcome
    ) -> None:
        """Records a URL that was not asked for, or had no answer."""
        item, now = chain.item, self.clock.now()
        self.stats.errors += 1
        self.stats.failed(now, item.url, why)
        answer = FetchOutcome(item.url, item.datum, status.STATUS_FETCH_RETRY, now, protocol_status)
        chain.results.recorder.page(chain.frame, answer)
        chain.conclude(outcome)

    # -- redirects ---------------------------------------------------------------------------------

    async def _redirect(
        self,
        chain: RedirectChain,
        location: str,
        temporary: bool,
        now: int,
        content: Content | None,
    ) -> None:
        item, settings = chain.item, self.settings.redirects
        target = self.rules.target(item.url, location)
        if target is None:
            if self.rules.leads_nowhere(item.url, location):
                # what it wants is a cookie
                wants = content is not None and content.metadata.field_values("Set-Cookie")
                cookie = " with a cookie (http.agent.host.cookie.file)" if wants else ""
                log.warning("%s: redirects to itself%s", item.url, cookie)
            return
        chain.representative = choose_representative(chain.representative, target, temporary)
        if settings.max_redirects <= 0:  # Nutch's default: a later round follows it
            self._link(chain, item, target, now)
            return
        if self.lately.met(target, now):
            self.stats.events["redirect_deduplicated_total"] += 1
            return
        if self.queues.is_over(now):  # the next round finds it
            self.stats.events["hit_by_timelimit_total"] += 1
            self._link(chain, item, target, now)
            return
        await self.names.learn([target])
        queue_id = self.names.of(target)
        if queue_id is None:  # no host that could be asked
            self.stats.events["redirect_not_created_total"] += 1
            return
        self._go_to(chain, target, queue_id, now)

    def _go_to(self, chain: RedirectChain, target: str, queue_id: str, now: int) -> None:
        settings = self.settings.redirects
        origin = chain.item
        if origin.redirects >= settings.max_redirects:
            self.stats.events["redirect_count_exceeded_total"] += 1
            if not settings.exceeded_skip:
                self._link(chain, origin, target, now)
            return
        datum = redirect_datum(
            origin.datum, status.STATUS_DB_UNFETCHED, chain.representative, origin.url, target
        )
        chain.results.recorder.initial_score(target, datum)
        chain.lead_to(FetchItem(target, datum, queue_id, None, origin.depth, origin.redirects + 1))

    def _link(self, chain: RedirectChain, origin: FetchItem, target: str, now: int) -> None:
        datum = redirect_datum(
            origin.datum, status.STATUS_LINKED, chain.representative, origin.url, target
        )
        chain.results.recorder.linked(chain.frame, target, datum, now)


def _location(protocol_status: ProtocolStatus, page: ParsedPage | None) -> tuple[str, bool] | None:
    """Returns the target of the page's redirect, by its status or its meta refresh, and whether it
    is temporary.
    """
    if protocol_status.is_redirect:
        return protocol_status.message or "", protocol_status.code == statuses.TEMP_MOVED
    parse_status = None if page is None else page.status
    if (
        parse_status is not None
        and parse_status.is_success
        and parse_status.minor == parsedata.SUCCESS_REDIRECT
        and parse_status.args
    ):
        seconds = parse_status.args[1] if len(parse_status.args) > 1 else None
        wait = int(seconds[:18]) if seconds is not None and seconds.isdecimal() else 0
        return parse_status.args[0] or "", wait < PERMANENT_REFRESH_SECONDS
    return None


def timed_out(milliseconds: int) -> ProtocolStatus:
    """Returns the status of a request that had no answer for `milliseconds`."""
    return ProtocolStatus(
        statuses.EXCEPTION, [f"java.net.SocketTimeoutException: no answer within {milliseconds} ms"]
    )
