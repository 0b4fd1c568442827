"""Every queue property acts, shown on times that the test gives (ms)."""

from __future__ import annotations

import tracemalloc
from dataclasses import replace

import pytest

from minutch.clock import FakeClock
from minutch.conf import Configuration
from minutch.cycle.fetch.decisions import RedirectMemory
from minutch.cycle.fetch.frontier.queueitems import VARIABLE_DELAY_KEY, FetchItem
from minutch.cycle.fetch.frontier.queues import ON_ITS_WAY, FetchQueues
from minutch.cycle.fetch.ledger import Outcome
from minutch.cycle.fetch.settings import NEVER, FetchSettings, QueueSettings, RedirectSettings
from minutch.errors import ConfigError
from minutch.hadoop.formats.writables import LongWritable
from minutch.records.crawldatum import CrawlDatum

PLAIN = QueueSettings(
    crawl_delay=5000, max_exceptions=NEVER, exceptions_delay=0, exceptions_jitter=0.0
)


def item(url: str, host: str = "a", **metadata: int) -> FetchItem:
    datum = CrawlDatum()
    if metadata:
        datum.metadata[VARIABLE_DELAY_KEY] = LongWritable(metadata["delay"])
    return FetchItem(url, datum, host, url)


class Driven:
    """Queues, and the items of theirs that are in progress."""

    def __init__(self, settings: QueueSettings, *urls: str, hosts: int = 1, seed: int = 0) -> None:
        self.queues = FetchQueues(settings, seed=seed)
        self.flying: dict[str, FetchItem] = {}
        for number, url in enumerate(urls):
            self.add(item(url, f"h{number % hosts}"))

    def add(self, one: FetchItem, now: int = 0) -> None:
        self.queues.add(one, now)

    def taken(self, now: int) -> list[str]:
        urls = []
        while (found := self.queues.take(now)) is not None:
            urls.append(found.url)
            self.flying[found.url] = found
        return urls

    def finish(self, url: str, now: int, **more: bool | int) -> None:
        self.queues.finish(self.flying.pop(url), now, **more)  # type: ignore[arg-type]

    def dropped(self) -> list[str]:
        return [dropped.item.url for dropped in self.queues.dropped(1000)]


def from_conf(now: int = 0, **properties: str) -> QueueSettings:
    values = {name.replace("_", "."): value for name, value in properties.items()}
    return FetchSettings.of(Configuration().with_values(values), now).queues


def test_server_delay_lies_between_two_items_of_a_queue() -> None:
    driven = Driven(from_conf(fetcher_server_delay="5.0"), "1", "2")
    assert driven.taken(0) == ["1"]
    driven.finish("1", 700)
    assert driven.taken(5699) == []
    assert driven.queues.next_ready(5699) == 5700
    assert driven.taken(5700) == ["2"]


def test_delays_are_cut_to_milliseconds_by_floats_of_32_bits() -> None:
    assert from_conf(fetcher_server_delay="0.01").crawl_delay == 10
    assert from_conf(fetcher_server_delay="0.0015").crawl_delay == 1


def test_min_delay_counts_with_several_threads_per_queue() -> None:
    driven = Driven(replace(PLAIN, max_threads=2, min_delay=100), "1", "2", "3")
    assert driven.taken(0) == ["1", "2"]
    driven.finish("1", 50)
    assert driven.taken(149) == []
    assert driven.taken(150) == ["3"]


def test_threads_per_queue_is_the_most_in_progress() -> None:
    driven = Driven(replace(PLAIN, max_threads=3), *"12345")
    assert driven.taken(0) == ["1", "2", "3"]
    driven.finish("2", 10)
    assert driven.taken(10) == ["4"]


def test_the_host_with_the_most_left_goes_first() -> None:
    driven = Driven(replace(PLAIN, crawl_delay=0))
    for url, host in (("a1", "a"), ("b1", "b"), ("b2", "b"), ("c1", "c"), ("c2", "c"), ("c3", "c")):
        driven.add(item(url, host))
    driven.taken(0)
    for url in ("a1", "b1", "c1"):
        driven.finish(url, 10)
    assert driven.taken(10) == ["c2", "b2"]


def test_crawl_delay_of_robots_txt_replaces_the_queues() -> None:
    driven = Driven(PLAIN, "1", "2")
    driven.taken(0)
    driven.queues.set_crawl_delay(driven.flying["1"], 20_000)
    driven.finish("1", 0)
    assert driven.queues.next_ready(0) == 20_000


def test_of_several_hosts_in_a_queue_the_longest_crawl_delay_counts() -> None:
    driven = Driven(PLAIN)
    for url in "abc":
        driven.add(replace(item(url, "domain"), host=url))
    for url, delay in (("a", 20_000), ("b", 1000)):
        now = driven.queues.next_ready(0) or 0
        assert driven.taken(now) == [url]
        driven.queues.set_crawl_delay(driven.flying[url], delay)
        driven.finish(url, now)
        assert driven.queues.next_ready(now) == now + 20_000


def test_a_turn_over_forgets_no_crawl_delay() -> None:
    """Nor a failure: the first request of the next list is noted with it, if it is killed then."""
    driven = Driven(replace(PLAIN, max_exceptions=2), "1", "2")
    driven.taken(0)
    assert driven.queues.set_crawl_delay(driven.flying["1"], 25_000)
    assert not driven.queues.set_crawl_delay(driven.flying["1"], 25_000)
    driven.finish("1", 0, failed=True)
    driven.queues.turn(10)
    (left,) = driven.queues.dropped(9)
    driven.queues.go_on(10)
    driven.queues.add(left.item, 10)
    driven.queues.news(0)
    assert driven.taken(25_000) == ["2"]
    assert driven.queues.news(25_000) == [("h0", 25_000 + 25_000 + ON_ITS_WAY)]
    driven.add(item("3", "h0"), 25_000)
    driven.finish("2", 25_000, failed=True)
    assert driven.dropped() == ["3"]


def test_a_crawl_delay_that_robots_txt_takes_back_is_forgotten() -> None:
    driven = Driven(PLAIN, "1", "2")
    usual = driven.queues.settings.crawl_delay
    driven.taken(0)
    for delay, expected in ((20_000, 20_000), (None, usual)):
        driven.queues.set_crawl_delay(driven.flying["1"], delay)
        assert driven.queues.queues[driven.flying["1"].queue_id].delay == expected


def test_variable_delay_of_the_fetch_list_wins_once() -> None:
    driven = Driven(PLAIN)
    driven.add(item("1", delay=60_000))
    driven.add(item("2", delay=90_000))
    driven.taken(0)
    assert VARIABLE_DELAY_KEY not in driven.flying["1"].datum.metadata
    driven.finish("1", 0)
    assert driven.queues.next_ready(0) == 60_000


def test_time_limit_counts_from_the_start() -> None:
    settings = from_conf(now=1000, fetcher_timelimit_mins="3")
    driven = Driven(settings, "1", "2")
    assert not driven.queues.is_late(180_999)
    assert driven.queues.is_late(181_000)
    assert not FetchQueues(PLAIN).is_late(1 << 50)
    driven.queues.end(Outcome.SKIPPED_TIMELIMIT, 0)
    driven.add(item("3"))
    assert driven.dropped() == ["1", "2", "3"]
    assert driven.queues.waiting == 0 and driven.queues.next_ready(0) is None


def test_what_is_dropped_is_handed_back_in_slices_with_its_reason() -> None:
    driven = Driven(PLAIN, *"12345")
    driven.queues.end(Outcome.SKIPPED_THROUGHPUT, 0)
    slices = []
    while driven.queues.has_dropped:
        slices.append(driven.queues.dropped(2))
    assert [len(found) for found in slices] == [2, 2, 1]
    assert {found[0].outcome for found in slices} == {Outcome.SKIPPED_THROUGHPUT}
    assert slices[0][0].reason == Outcome.SKIPPED_THROUGHPUT.reason


def test_too_many_failures_in_a_row_give_the_queue_up() -> None:
    driven = Driven(replace(PLAIN, max_exceptions=2, crawl_delay=0), *"12345")
    driven.taken(0)
    driven.finish("1", 1, failed=True)
    assert not driven.queues.has_dropped
    driven.taken(1)
    driven.finish("2", 2, failed=True)
    assert driven.dropped() == ["3", "4", "5"]
    driven.add(item("6", "h0"), 3)
    driven.add(item("7", "other"), 3)
    assert driven.dropped() == ["6"]
    assert driven.taken(3) == ["7"]


@pytest.mark.parametrize(("in_row", "left"), [(True, []), (False, ["4", "5"])])
def test_a_success_ends_a_row_of_failures(in_row: bool, left: list[str]) -> None:
    settings = replace(PLAIN, max_exceptions=2, crawl_delay=0, failures_in_row=in_row)
    driven = Driven(settings, *"12345")
    for url, failed in (("1", True), ("2", False), ("3", True)):
        driven.taken(0)
        driven.finish(url, 0, failed=failed)
    assert driven.dropped() == left


def test_what_says_nothing_of_the_host_changes_no_count() -> None:
    driven = Driven(replace(PLAIN, max_exceptions=2, crawl_delay=0), *"12345")
    for url, failed in (("1", True), ("2", None), ("3", True)):
        driven.taken(0)
        driven.finish(url, 0, failed=failed)  # type: ignore[arg-type]
    assert driven.dropped() == ["4", "5"]


def test_without_a_limit_failures_give_nothing_up() -> None:
    driven = Driven(replace(PLAIN, max_exceptions=NEVER, crawl_delay=0), *map(str, range(100)))
    for url in map(str, range(100)):
        driven.taken(0)
        driven.finish(url, 0, failed=True)
    assert driven.dropped() == []


def test_back_off_doubles_and_shrinks_with_successes() -> None:
    settings = from_conf(
        fetcher_exceptions_per_queue_delay="1", fetcher_exceptions_per_queue_jitter="0"
    )
    driven = Driven(replace(settings, crawl_delay=0), *"123456")
    assert [driven.queues.back_off(n) for n in (1, 2, 3, 4)] == [1000, 2000, 4000, 8000]
    now, waits = 0, []
    for url, failed in zip("12345", (True, True, False, True, True), strict=True):
        assert driven.taken(now) == [url]
        driven.finish(url, now, failed=failed)
        ready = driven.queues.next_ready(now)
        assert ready is not None
        waits.append(ready - now)
        now = ready
    assert waits == [1000, 2000, 0, 2000, 4000]


def test_back_off_jitters_within_its_bound() -> None:
    queues = FetchQueues(replace(PLAIN, exceptions_delay=1000, exceptions_jitter=0.1), seed=7)
    delays = {queues.back_off(1) for _ in range(50)}
    assert len(delays) > 10
    assert min(delays) >= 1000 and max(delays) < 1100


def test_back_off_beyond_the_time_limit_gives_the_queue_up() -> None:
    settings = replace(PLAIN, exceptions_delay=10_000, time_limit=12_000, crawl_delay=0)
    driven = Driven(settings, "1", "2", "3")
    driven.taken(0)
    driven.finish("1", 0, failed=True)
    assert driven.dropped() == []
    driven.taken(10_000)
    driven.finish("2", 10_000, failed=True)
    assert driven.dropped() == ["3"]


def test_failures_are_forgotten_after_a_while() -> None:
    settings = from_conf(
        fetcher_exceptions_per_queue_clear_after="60", fetcher_exceptions_per_queue_delay="0"
    )
    for wait, dropped in ((59_999, ["3"]), (60_001, [])):
        driven = Driven(replace(settings, crawl_delay=0, max_exceptions=2), "1")
        driven.taken(0)
        driven.finish("1", 0, failed=True)
        assert not driven.queues.queues
        driven.add(item("2", "h0"), wait)
        driven.add(item("3", "h0"), wait)
        driven.taken(wait)
        driven.finish("2", wait, failed=True)
        assert driven.dropped() == dropped


def test_a_queue_without_items_still_rests() -> None:
    driven = Driven(PLAIN, "1")
    driven.taken(0)
    driven.finish("1", 0)
    assert not driven.queues.queues
    driven.add(item("2", "h0"), 100)
    assert driven.queues.next_ready(100) == 5000


def test_a_dead_host_is_a_few_numbers() -> None:
    driven = Driven(replace(PLAIN, max_exceptions=1))
    tracemalloc.start()
    for number in range(5_000):
        driven.add(item(str(number), f"www.example-{number}.org"))
        driven.taken(0)
        driven.finish(str(number), 0, failed=True)
    used, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert driven.queues.given_up == 5_000
    assert used / 5_000 < 700  # rest, failures and refusal, each with its key


def test_a_deferred_host_rests_and_is_given_up_after_its_retries() -> None:
    driven = Driven(replace(PLAIN, crawl_delay=0), "1", "2")
    now = 0
    for _ in range(3):
        assert driven.taken(now) == ["1"]
        driven.queues.put_back(driven.flying.pop("1"), 300_000, 3, now)
        assert driven.queues.defers_all(299_000, now)
        assert driven.queues.in_progress == 0
        now += 300_000
        assert driven.queues.next_ready(now - 300_000) == now
    driven.taken(now)
    driven.queues.put_back(driven.flying.pop("1"), 300_000, 3, now)
    assert driven.dropped() == ["1", "2"]
    assert driven.queues.waiting == 0


def test_a_host_with_one_url_is_given_up_after_its_retries() -> None:
    driven = Driven(replace(PLAIN, crawl_delay=0), "1")
    for now in (0, 1000, 2000):
        assert driven.taken(now) == ["1"]
        driven.queues.put_back(driven.flying.pop("1"), 1000, 2, now)
    assert driven.dropped() == ["1"]


def test_deferral_of_several_at_once_counts_once() -> None:
    driven = Driven(replace(PLAIN, max_threads=2), "1", "2")
    driven.taken(0)
    driven.queues.put_back(driven.flying["1"], 1000, 1, 0)
    driven.queues.put_back(driven.flying["2"], 1000, 1, 0)
    assert driven.queues.queues["h0"].hosts[0].deferrals == 1


def test_deferral_beyond_the_time_limit_gives_up() -> None:
    driven = Driven(replace(PLAIN, time_limit=100_000), "1")
    driven.taken(0)
    driven.queues.put_back(driven.flying["1"], 300_000, 3, 0)
    assert driven.dropped() == ["1"]


def test_retry_after_never_shortens_a_rest() -> None:
    driven = Driven(PLAIN, "1", "2", "3")
    driven.taken(0)
    driven.finish("1", 0, busy_until=3000)
    assert driven.queues.next_ready(0) == 5000
    driven.queues.rest("h0", 30_000, 0)
    assert driven.queues.next_ready(0) == 30_000
    assert max(queue.yields_at - 1000 for queue in driven.queues.with_items()) == 29_000


def test_a_host_that_is_away_for_too_long_is_given_up() -> None:
    driven = Driven(replace(PLAIN, patience=60_000), "1", "2")
    driven.taken(0)
    driven.finish("1", 0, busy_until=60_001)
    driven.add(item("3", "h0"), 1)
    assert driven.dropped() == ["2", "3"]


def test_one_host_of_a_queue_rests_and_the_others_go_on() -> None:
    driven = Driven(replace(PLAIN, crawl_delay=0))
    for url in ("a1", "a2", "b1", "b2"):
        driven.add(replace(item(url, "address"), host=url[0]))
    assert driven.taken(0) == ["a1"]
    driven.finish("a1", 0, busy_until=9000)
    for url in ("b1", "b2"):
        assert driven.taken(1) == [url]
        driven.finish(url, 1)
    assert driven.queues.next_ready(1) == 9000
    assert driven.taken(9000) == ["a2"]


def test_a_redirects_target_is_first_in_its_queue_and_waits() -> None:
    driven = Driven(PLAIN, "1", "2", "3")
    driven.taken(0)
    driven.queues.add(item("target", "h0"), 0, first=True)
    driven.finish("1", 100)
    assert driven.taken(5099) == []
    assert driven.taken(5100) == ["target"]


@pytest.mark.parametrize(
    ("seconds", "size", "again"), [(60, 10, True), (-1, 10, False), (60, 0, False)]
)
def test_redirects_met_lately(seconds: int, size: int, again: bool) -> None:
    memory = RedirectMemory(RedirectSettings(dedup_seconds=seconds, dedup_size=size))
    assert not memory.met("x", 0)
    assert memory.met("x", 59_999) is again
    assert not memory.met("x", 60_000)


def test_redirect_memory_is_bounded() -> None:
    memory = RedirectMemory(RedirectSettings(dedup_seconds=60, dedup_size=2))
    for url in "abc":
        memory.met(url, 0)
    assert not memory.met("a", 1)
    assert memory.met("c", 1)


def test_an_unknown_queue_mode_is_an_error() -> None:
    with pytest.raises(
        ConfigError, match=r"fetcher.queue.mode \(program\): expected .*byIP, found 'byPlanet'"
    ):
        from_conf(fetcher_queue_mode="byPlanet")


def test_many_queues_stay_in_order_of_readiness() -> None:
    clock = FakeClock()
    driven = Driven(replace(PLAIN, crawl_delay=100))
    for number in range(50):
        for host in range(20):
            driven.add(item(f"{host}/{number}", f"h{host}"), clock.now())
    seen: dict[str, int] = {}
    count = 0
    while driven.queues.waiting:
        found = driven.queues.take(clock.now())
        if found is None:
            ready = driven.queues.next_ready(clock.now())
            assert ready is not None and ready > clock.now()
            clock.advance((ready - clock.now()) / 1000)
            continue
        last = seen.get(found.queue_id)
        assert last is None or clock.now() - last >= 100
        seen[found.queue_id] = clock.now()
        driven.queues.finish(found, clock.now())
        count += 1
    assert count == 1000
    assert clock.now() == 49 * 100


def test_what_was_asked_is_news_when_it_is_taken_and_when_it_has_ended() -> None:
    driven = Driven(PLAIN, "1", "2", hosts=2)
    driven.taken(1000)
    resting = 6000 + ON_ITS_WAY  # as long as nothing has answered
    assert sorted(driven.queues.news(1000)) == [("h0", resting), ("h1", resting)]
    assert driven.queues.news(1000) == []
    driven.finish("1", 3000)
    assert driven.queues.news(3000) == [("h0", 8000)]
    driven.finish("2", 3000)
    assert driven.queues.news(8000) == []  # over


def test_a_queue_that_an_earlier_fetch_asked_rests() -> None:
    driven = Driven(PLAIN)
    driven.queues.remember("h0", 4000, 0)
    driven.add(item("1", "h0"))
    assert driven.taken(3999) == []
    assert driven.queues.next_ready(0) == 4000
    assert not driven.queues.rests_on_request()  # the host did not ask for it
    assert driven.taken(4000) == ["1"]


def test_a_queue_that_comes_back_rests_but_not_on_request() -> None:
    driven = Driven(replace(PLAIN, crawl_delay=60_000), "1")
    driven.taken(0)
    driven.finish("1", 0)
    driven.add(item("2", "h0"), 10)
    assert driven.taken(59_999) == []
    assert not driven.queues.defers_all(30_000, 10)
    assert driven.taken(60_000) == ["2"]
