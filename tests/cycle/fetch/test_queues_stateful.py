"""Whatever is done to the queues in whatever order: no item is lost, none comes too early, none
waits for ever.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field, replace

from hypothesis import Phase
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from minutch.cycle.fetch.frontier.queueitems import Dropped, FetchItem
from minutch.cycle.fetch.frontier.queues import FetchQueues
from minutch.cycle.fetch.ledger import Outcome
from minutch.cycle.fetch.settings import NEVER, QueueSettings
from minutch.records.crawldatum import CrawlDatum
from tests.support.examples import examples

HOSTS = [f"h{number}" for number in range(6)]
LAST = 1 << 50
SETTINGS = st.builds(
    QueueSettings,
    max_threads=st.sampled_from([1, 1, 2, 8]),
    crawl_delay=st.sampled_from([0, 200, 1000]),
    max_exceptions=st.sampled_from([NEVER, 1, 3]),
    exceptions_delay=st.sampled_from([0, 500]),
    exceptions_jitter=st.just(0.5),
    failures_in_row=st.booleans(),
    time_limit=st.sampled_from([NEVER, 20_000]),
    depth=st.sampled_from([NEVER, NEVER, 4]),
    patience=st.just(50_000),
)


def queue_of(host: str, *, shared: bool) -> str:
    """Hosts in a queue of their own, or three in one, as domains and addresses have them."""
    return f"q{int(host[1:]) // 3}" if shared else host


@dataclass
class Hosts:
    """A fetch list: hosts and their items."""

    items: dict[str, list[FetchItem]]
    closed: bool = False
    """The next host's address is being looked up."""
    bad: list[FetchItem] = field(default_factory=list)
    """URLs that can't be fetched."""

    @property
    def hosts(self) -> int:
        return len(self.items)

    @property
    def has_refused(self) -> bool:
        return bool(self.bad)

    def refused(self, most: int) -> list[Dropped]:
        found, self.bad = self.bad[:most], self.bad[most:]
        return [Dropped(item, Outcome.SKIPPED_INVALID, "no queue") for item in found]

    @property
    def left(self) -> int:
        return sum(map(len, self.items.values()))

    def most(self) -> int:
        return 0 if self.closed else max(map(len, self.items.values()), default=0)

    def begin(self) -> One:
        host = max(self.items, key=lambda host: len(self.items[host]))
        found = self.items.pop(host)
        return One(host, found[0].queue_id, found)


@dataclass
class One:
    host: str
    queue_id: str
    items: list[FetchItem] = field(default_factory=list)

    @property
    def left(self) -> int:
        return len(self.items)

    def next(self) -> FetchItem:
        return self.items.pop(0)


class Queues(RuleBasedStateMachine):
    """Drives queues as a fetch does, and remembers what was promised to each host."""

    @initialize(data=st.data(), settings=SETTINGS, shared=st.booleans(), refused=st.integers(0, 3))
    def begin(
        self, data: st.DataObject, settings: QueueSettings, shared: bool, refused: int
    ) -> None:
        self.now = 1000
        self.shared = shared
        self.number = 0
        sizes = data.draw(st.dictionaries(st.sampled_from(HOSTS), st.integers(1, 6)))
        listed = Hosts(
            {host: [self.item(host) for _ in range(size)] for host, size in sizes.items()}
        )
        self.listed = listed
        self.settings = replace(settings, min_delay=settings.crawl_delay // 2)
        listed.bad = [self.item("h0") for _ in range(refused)]
        self.queues = FetchQueues(self.settings, listed)
        self.expected = {
            item.url for items in [*listed.items.values(), listed.bad] for item in items
        }
        self.flying: list[FetchItem] = []
        self.ended: Counter[str] = Counter()
        self.not_before: dict[str, int] = {}
        """Of queues and hosts, the time before which none may be asked."""
        self.stopped = False
        self.parts: list[Hosts] = []
        """More parts of the list."""

    def item(self, host: str) -> FetchItem:
        self.number += 1
        queue_id = queue_of(host, shared=self.shared)
        return FetchItem(str(self.number), CrawlDatum(), queue_id, None, host=host)

    def rests(self, name: str, until: int) -> None:
        self.not_before[name] = max(until, self.not_before.get(name, 0))

    def delay(self, item: FetchItem) -> int:
        return self.queues.queues[item.queue_id].delay

    @rule(host=st.sampled_from(HOSTS), first=st.booleans())
    def add(self, host: str, first: bool) -> None:
        item = self.item(host)
        self.expected.add(item.url)
        self.queues.add(item, self.now, first=first)

    @rule(count=st.integers(1, 4))
    def take(self, count: int) -> None:
        for _ in range(count):
            item = self.queues.take(self.now)
            if item is None:
                ready = self.queues.next_ready(self.now)
                assert ready is None or ready > self.now
                return
            assert not self.stopped
            for name in (item.queue_id, item.host):
                assert self.not_before.get(name, 0) <= self.now, name
            self.flying.append(item)
            alike = sum(other.queue_id == item.queue_id for other in self.flying)
            assert alike <= self.settings.max_threads

    def land(self, data: st.DataObject) -> FetchItem:
        return self.flying.pop(data.draw(st.integers(0, len(self.flying) - 1)))

    @precondition(lambda self: self.flying)
    @rule(
        data=st.data(),
        asked=st.booleans(),
        failed=st.sampled_from([None, False, False, True]),
        busy=st.sampled_from([None, None, None, 3000, 100_000]),
    )
    def finish(
        self, data: st.DataObject, asked: bool, failed: bool | None, busy: int | None
    ) -> None:
        item = self.land(data)
        if asked:
            self.rests(item.queue_id, self.now + self.delay(item))
        if busy is not None:
            self.rests(item.host, self.now + busy)
        until = None if busy is None else self.now + busy
        self.queues.finish(item, self.now, asked=asked, failed=failed, busy_until=until)
        self.ended[item.url] += 1

    @precondition(lambda self: self.flying)
    @rule(data=st.data())
    def put_back(self, data: st.DataObject) -> None:
        item = self.land(data)
        rested = self.not_before.get(item.host, 0) <= self.now
        self.rests(item.queue_id, self.now + self.delay(item))
        self.queues.put_back(item, 5000, 2, self.now)
        if rested:
            self.rests(item.host, self.now + 5000)

    @precondition(lambda self: self.flying)
    @rule(data=st.data(), delay=st.sampled_from([100, 3000, None]))
    def crawl_delay(self, data: st.DataObject, delay: int | None) -> None:
        item = self.flying[data.draw(st.integers(0, len(self.flying) - 1))]
        self.queues.set_crawl_delay(item, delay)

    @rule(host=st.sampled_from(HOSTS), wait=st.sampled_from([-5, 700, 60_000]))
    def rest(self, host: str, wait: int) -> None:
        self.queues.rest(host, self.now + wait, self.now)
        self.rests(host, self.now + wait)

    @rule(wait=st.sampled_from([0, 1, 99, 1000, 30_000]))
    def pass_time(self, wait: int) -> None:
        self.now += wait

    @rule()
    def pass_time_until_ready(self) -> None:
        self.now = max(self.now, self.queues.next_ready(self.now) or 0)

    @rule(closed=st.booleans())
    def look_up_addresses(self, closed: bool) -> None:
        self.listed.closed = closed

    @precondition(lambda self: not self.stopped)
    @rule(stops=st.integers(0, 9))
    def stop(self, stops: int) -> None:
        if stops == 0:
            self.stopped = True
            self.queues.end(Outcome.SKIPPED_TIMELIMIT, self.now)
        elif stops == 1:
            self.queues.leave_deferred(self.now)
        elif stops == 2:
            left = self.queues.leave_resting(self.now)
            assert left >= 0
            for queue in self.queues.with_items():
                assert not queue.failures and not queue.is_resting(self.now)

    @precondition(lambda self: not self.stopped)
    @rule(hosts=st.dictionaries(st.sampled_from(HOSTS), st.integers(1, 3)))
    def turn_over(self, hosts: dict[str, int]) -> None:
        """All that waits, and nothing else, goes into the next list; politeness goes on."""
        self.listed.closed = False
        waiting = self.queues.waiting
        self.queues.turn(self.now)
        assert self.queues.is_over(self.now) == self.queues.is_late(self.now)
        assert self.queues.take(self.now) is None
        left: dict[str, list[FetchItem]] = {}
        while not self.queues.is_empty:
            for dropped in self.queues.dropped(3):
                if dropped.outcome is Outcome.SKIPPED_TAIL:
                    waiting -= 1
                    left.setdefault(dropped.item.host, []).append(dropped.item)
                else:
                    self.ended[dropped.item.url] += 1
        assert waiting == 0
        for host, size in hosts.items():
            new = [self.item(host) for _ in range(size)]
            self.expected |= {item.url for item in new}
            left.setdefault(host, []).extend(new)
        self.listed = Hosts(left)
        self.parts = []
        self.queues.listed.clear()
        self.queues.go_on(self.now)
        self.queues.listed.add(self.listed)

    @precondition(lambda self: not self.stopped)
    @rule(hosts=st.dictionaries(st.sampled_from(HOSTS), st.integers(1, 3), min_size=1))
    def more(self, hosts: dict[str, int]) -> None:
        """A list gets another part, with hosts that it has, and others."""
        part = Hosts({host: [self.item(host) for _ in range(size)] for host, size in hosts.items()})
        self.expected |= {item.url for items in part.items.values() for item in items}
        self.queues.listed.add(part)
        self.parts.append(part)

    @rule(most=st.integers(1, 5))
    def collect_dropped(self, most: int) -> None:
        found = self.queues.dropped(most)
        assert len(found) <= most
        for dropped in found:
            assert dropped.reason
            self.ended[dropped.item.url] += 1

    @invariant()
    def counts_add_up(self) -> None:
        if not hasattr(self, "queues"):
            return
        queues = self.queues
        alive = queues.queues.values()
        assert queues.in_progress == len(self.flying) == sum(q.in_progress for q in alive)
        for queue in alive:
            assert queue.waiting == sum(items.left for items in queue.hosts)
            assert queue.waiting or queue.in_progress
            assert len(queue.hosts) == len(queue.awake) + len(queue.asleep)
            assert all(items.left for items in queue.hosts)
        parts = [self.listed, *self.parts]
        listed = 0 if self.stopped else sum(part.left for part in parts)
        assert queues.waiting == listed + sum(queue.waiting for queue in alive)
        assert max(self.ended.values(), default=1) == 1

    def teardown(self) -> None:
        """Everything comes to its end, in finite time."""
        if not hasattr(self, "queues"):
            return
        self.listed.closed = False
        for _ in range(10_000):
            for item in self.flying:
                self.queues.finish(item, self.now)
                self.ended[item.url] += 1
            self.flying.clear()
            for dropped in self.queues.dropped(100):
                self.ended[dropped.item.url] += 1
            item = self.queues.take(self.now)
            if item is not None:
                self.flying.append(item)
                continue
            ready = self.queues.next_ready(self.now)
            if ready is None and not self.queues.has_dropped:
                break
            assert ready is None or self.now < ready < LAST
            self.now = ready or self.now
        assert not self.queues.has_dropped
        assert self.queues.waiting == 0 and self.queues.is_empty and not self.queues.queues
        assert set(self.ended) == self.expected
        assert set(self.ended.values()) <= {1}


TestQueues = Queues.TestCase
TestQueues.settings = hypothesis_settings(
    max_examples=examples(100),
    stateful_step_count=50,
    deadline=None,
    phases=[Phase.explicit, Phase.generate],
)
