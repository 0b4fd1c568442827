"""Puts one process's share of a fetch together: settings and plugins in, a `FetchLoop` out.

With more than one process each has the queues whose name hashes to its number, its own log, and
nobody else's hosts.
"""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from minutch.clock import Clock
from minutch.cycle.fetch.closing import stored_codec
from minutch.cycle.fetch.components import FetchComponents
from minutch.cycle.fetch.decisions import RedirectRules
from minutch.cycle.fetch.fetchlog import FetchLog, Part, frames
from minutch.cycle.fetch.hooks import Hooks
from minutch.cycle.fetch.hostaddresses import AddressedList, HostAddresses, nothing_to_learn
from minutch.cycle.fetch.hoststate import FetchState
from minutch.cycle.fetch.ledger import Ledger, Outcome
from minutch.cycle.fetch.listindex import ListIndex, listed_urls
from minutch.cycle.fetch.listpass import Change
from minutch.cycle.fetch.loop import FetchLoop
from minutch.cycle.fetch.pagearchive import FOLDER, PageArchive, number_of
from minutch.cycle.fetch.protocols import ProtocolLookup
from minutch.cycle.fetch.queueitems import FetchItem, FetchList
from minutch.cycle.fetch.queuekey import QueueKey, host_key, queue_hash, queue_key
from minutch.cycle.fetch.queues import FetchQueues
from minutch.cycle.fetch.recorder import PageParser, Recorder
from minutch.cycle.fetch.redirectchain import ChainRunner, unpack_follow
from minutch.cycle.fetch.restlog import RestLog, read_rests
from minutch.cycle.fetch.settings import BY_IP, FetchSettings
from minutch.cycle.fetch.stats import FetchStats
from minutch.cycle.segment.store import Segment
from minutch.kernels.clibrary import trim

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Share:
    """The share of the queues that a process has: number `index` of `count`."""

    index: int = 0
    count: int = 1

    def owns(self, queue_id: str) -> bool:
        return self.count == 1 or self.owner(queue_id) == self.index

    def owner(self, queue_id: str) -> int:
        """Returns the number of the process that has a queue."""
        return queue_hash(queue_id) % self.count


@dataclass(slots=True)
class Resumed:
    """The contents of the logs of an earlier run of the same fetch."""

    settled: Counter[str] = field(default_factory=Counter)
    ledger: Ledger = field(default_factory=Ledger)
    follow: dict[str, bytes] = field(default_factory=dict)
    """URLs that were to be followed and are not done, with their FOLLOW entries."""
    parsed: bool = False
    """Whether pages were parsed."""


def resume(logs: Iterable[Path]) -> Resumed:
    """Reads the logs of a broken fetch; nothing if there are none."""
    result = Resumed()
    done: set[str] = set()
    for path in logs:
        for frame in frames(path):
            result.settled.update(frame.listed)
            if frame.listed:
                result.ledger.settle(frame.outcome, len(frame.listed))
            for entry in frame.entries:
                url = entry.key.decode("utf-8", "surrogateescape")
                if entry.part is Part.FOLLOW:
                    result.follow[url] = entry.value
                elif entry.part is Part.CRAWL_PARSE:
                    result.parsed = True
                elif entry.part is Part.FETCH and not frame.listed:
                    done.add(url)
    result.follow = {url: value for url, value in result.follow.items() if url not in done}
    return result


@dataclass(slots=True)
class FetchSession:
    """Everything that one process needs."""

    loop: FetchLoop
    protocols: ProtocolLookup
    log: FetchLog
    addresses: HostAddresses | None = None
    rests: RestLog | None = None
    index: ListIndex | None = None

    async def run(self) -> None:
        """Fetches; closes connections and the log whatever happens."""
        try:
            await self.loop.run()
        finally:
            if self.index is not None:
                self.index.close()
            self.loop.recorder.close()
            if self.addresses is not None:
                self.addresses.close()
            await self.protocols.close()
            if self.loop.archive is not None:
                await asyncio.get_running_loop().run_in_executor(None, self.loop.archive.close)
            if self.rests is not None:
                self.rests.close()
            await asyncio.get_running_loop().run_in_executor(None, self.log.close)
            await asyncio.get_running_loop().run_in_executor(None, self.loop.hooks.ended)


@dataclass(frozen=True, slots=True)
class RunState:
    """The state of one process of a fetch: its share, and the results of earlier runs."""

    share: Share = Share()
    resumed: Resumed = field(default_factory=Resumed)
    state: FetchState | None = None
    """What is remembered of hosts."""


def open_session(
    segment: Segment,
    files: Sequence[Path],
    log_path: Path,
    components: FetchComponents,
    settings: FetchSettings,
    clock: Clock,
    run: RunState,
    hooks: Hooks,
) -> FetchSession:
    """Puts the parts together; adds the session's own functions to `hooks`."""
    now = clock.now()
    share, resumed, state = run.share, run.resumed, run.state
    follow = settings.parse and settings.follow.depth > 0
    filters, protocols = components.filters, components.protocols
    addresses = HostAddresses(protocols.addresses_of) if settings.queues.mode == BY_IP else None
    key = queue_key(settings.queues.mode, _no_address if addresses is None else addresses.known)
    scratch = log_path.with_name(f"list-{log_path.name}")
    index = ListIndex(
        files,
        scratch,
        str if addresses is not None else host_key(settings.queues.mode, _no_address),
        mine=share.owns if addresses is None else _everybody,
        settled=resumed.settled,
        change=_change(settings, components),
    )
    trim()  # the pass takes more memory for a moment than the index in the end
    listed: FetchList = index if addresses is None else AddressedList(index, addresses, share.owns)
    queues = FetchQueues(settings.queues, listed, seed=now)
    recorder = make_recorder(segment.name, settings, components)
    fetch_log = FetchLog(log_path, stored_codec(settings.compression))
    ledger, stats = Ledger(), FetchStats()
    ledger.generated = index.records
    if follow:
        from minutch.cycle.fetch.fetchparser import LinkFollower

        follower = LinkFollower(settings.follow, key, stats, listed_urls(files))
        hooks.parsed, hooks.is_new = follower.follow, follower.is_new
    archive = (
        None
        if settings.warc is None
        else PageArchive(
            segment, log_path.parent / FOLDER, number_of(log_path), settings.warc, clock
        )
    )
    loop = FetchLoop(
        settings,
        clock,
        queues,
        recorder,
        fetch_log,
        ledger,
        stats,
        hooks,
        index.records - resumed.ledger.settled,
        archive=archive,
    )
    loop.runner = ChainRunner(
        settings,
        clock,
        queues,
        key,
        protocols.protocol_of,
        RedirectRules(settings.redirects, components.normalizers.normalize, filters.filter),
        recorder,
        stats,
        loop,
        lambda: loop.stopping,
        nothing_to_learn if addresses is None else addresses.learn,
    )
    loop.visits.key, loop.visits.learn = key, loop.runner.learn
    protocols.turn = loop.visits.of
    if addresses is not None:
        addresses.heard = loop.wake
    rests: RestLog | None = None
    if state is not None:
        state.forget_old(now)
        rests = RestLog(state.path.parent, share.index, clock)
        hooks.rested = rests.add

    async def begin() -> None:
        """Lets hosts rest that were asked a moment ago or asked for it; takes up what an earlier
        run was to follow.
        """
        if state is not None:
            _let_rest(queues, state, share, now)
        await loop.runner.learn(resumed.follow)
        for item in _followed(resumed, key, share):
            loop.add(item)

    hooks.begun = begin
    return FetchSession(loop, protocols, fetch_log, addresses, rests, index)


def _let_rest(queues: FetchQueues, state: FetchState, share: Share, now: int) -> None:
    """Lets queues rest that were asked a moment ago, by whatever process, and hosts that asked for
    it.
    """
    for queue_id, until in read_rests(state.path.parent, now).items():
        if share.owns(queue_id):
            queues.remember(queue_id, until, now)
    for host, until in state.busy_hosts(now).items():
        queues.rest(host, until, now)


def _change(settings: FetchSettings, components: FetchComponents) -> Change:
    """Returns what is done to the URLs of a fetch list."""
    steps: list[Callable[[str], str | None]] = []
    if settings.normalize_urls:
        steps.append(components.list_normalizers.normalize)
    if settings.filter_urls:
        steps.append(components.filters.filter)
    return Change(*steps)


def _everybody(queue_id: str) -> bool:
    """All hosts may be this process's, until their addresses are known."""
    return True


def _no_address(host: str) -> None:
    """Nobody asks for one."""


def _followed(resumed: Resumed, key: QueueKey, share: Share) -> Iterable[FetchItem]:
    for url, value in resumed.follow.items():
        queue_id = key(url)
        if queue_id is not None and share.owns(queue_id):
            yield unpack_follow(url, value, queue_id)


def make_recorder(
    segment_name: str, settings: FetchSettings, components: FetchComponents
) -> Recorder:
    """Makes the recorder of a segment."""
    mime, signature = components.mime, components.signature
    parser: PageParser | None = None
    if settings.parse:
        from minutch.cycle.fetch.fetchparser import FetchParser

        parser = FetchParser(components.parser_factory(segment_name), components.pool, settings)
    return Recorder(
        segment_name,
        settings,
        components.scoring,
        content_type=lambda declared, url, data: mime.resolve(declared or None, url, data),
        signature=lambda content: signature.calculate(content, None),
        parser=parser,
    )


def outcome_counts(ledger: Ledger) -> dict[int, int]:
    """Returns the ledger as plain numbers, for the way between processes."""
    return {
        int(outcome): count
        for outcome, count in ledger.outcomes.items()
        if outcome is not Outcome.FOLLOWED
    }
