"""Every queue property acts, shown on times that the test gives (ms)."""

from __future__ import annotations

from dataclasses import replace

import pytest

from minutch.clock import FakeClock
from minutch.conf import Configuration
from minutch.cycle.fetch.queues import (
    VARIABLE_DELAY_KEY,
    FetchItem,
    FetchQueues,
    QueuingStatus,
    RedirectMemory,
)
from minutch.cycle.fetch.settings import NEVER, QueueSettings
from minutch.errors import ConfigError
from minutch.hadoop.formats.writables import LongWritable
from minutch.records.crawldatum import CrawlDatum

PLAIN = QueueSettings(crawl_delay=5000, exceptions_jitter=0.0)


def item(url: str, host: str = "a", **metadata: int) -> FetchItem:
    datum = CrawlDatum()
    if metadata:
        datum.metadata[VARIABLE_DELAY_KEY] = LongWritable(metadata["delay"])
    return FetchItem(url, datum, host, url)


def filled(settings: QueueSettings, *urls: str, hosts: int = 1) -> FetchQueues:
    queues = FetchQueues(settings)
    for number, url in enumerate(urls):
        assert queues.add(item(url, f"h{number % hosts}"), 0) is QueuingStatus.SUCCESSFULLY_QUEUED
    return queues


def taken(queues: FetchQueues, now: int) -> list[str]:
    urls = []
    while (found := queues.take(now)) is not None:
        urls.append(found.url)
    return urls


def from_conf(now: int = 0, **properties: str) -> QueueSettings:
    values = {name.replace("_", "."): value for name, value in properties.items()}
    return QueueSettings.from_conf(Configuration().with_values(values), now)


def test_server_delay_lies_between_two_items_of_a_queue() -> None:
    settings = from_conf(fetcher_server_delay="5.0")
    queues = filled(settings, "1", "2")
    assert taken(queues, 0) == ["1"]
    queues.finish("h0", 700)
    assert taken(queues, 5699) == []
    assert queues.next_ready() == 5700
    assert taken(queues, 5700) == ["2"]


def test_delays_are_cut_to_milliseconds_by_floats_of_32_bits() -> None:
    assert from_conf(fetcher_server_delay="0.01").crawl_delay == 10
    assert from_conf(fetcher_server_delay="0.0015").crawl_delay == 1


def test_min_delay_counts_with_several_threads_per_queue() -> None:
    settings = replace(PLAIN, max_threads=2, min_delay=100)
    queues = filled(settings, "1", "2", "3")
    assert taken(queues, 0) == ["1", "2"]
    queues.finish("h0", 50)
    assert taken(queues, 149) == []
    assert taken(queues, 150) == ["3"]


def test_threads_per_queue_is_the_most_in_progress() -> None:
    queues = filled(replace(PLAIN, max_threads=3), *"12345")
    assert taken(queues, 0) == ["1", "2", "3"]
    queues.finish("h0", 10)
    assert taken(queues, 10) == ["4"]


def test_queues_take_turns() -> None:
    queues = filled(replace(PLAIN, crawl_delay=0), *"123456", hosts=3)
    first = taken(queues, 0)
    assert first == ["1", "2", "3"]
    for host in ("h1", "h0", "h2"):
        queues.finish(host, 10)
    assert taken(queues, 10) == ["5", "4", "6"]


def test_crawl_delay_of_robots_txt_replaces_the_queues() -> None:
    queues = filled(PLAIN, "1", "2")
    taken(queues, 0)
    queues.set_crawl_delay("h0", 20_000, 0)
    queues.finish("h0", 0)
    assert queues.next_ready() == 20_000


def test_variable_delay_of_the_fetch_list_wins_once() -> None:
    queues = FetchQueues(PLAIN)
    queues.add(item("1", delay=60_000), 0)
    queues.add(item("2", delay=90_000), 0)
    first = queues.take(0)
    assert first is not None and VARIABLE_DELAY_KEY not in first.datum.metadata
    queues.finish("a", 0)
    assert queues.next_ready() == 60_000


def test_time_limit_counts_from_the_start() -> None:
    settings = from_conf(now=1000, fetcher_timelimit_mins="3")
    queues = filled(settings, "1", "2")
    assert not queues.time_limit_exceeded(180_999)
    assert queues.time_limit_exceeded(181_000)
    assert not filled(PLAIN, "1").time_limit_exceeded(1 << 50)
    assert [i.url for i in queues.drop_all()] == ["1", "2"]
    assert queues.size == 0 and queues.next_ready() is None


def test_too_many_exceptions_purge_and_block_the_queue() -> None:
    queues = filled(replace(PLAIN, max_exceptions=2, crawl_delay=0), *"12345")
    taken(queues, 0)
    queues.finish("h0", 1)
    assert queues.exception("h0", 1) == []
    taken(queues, 1)
    queues.finish("h0", 2)
    assert [i.url for i in queues.exception("h0", 2)] == ["3", "4", "5"]
    assert queues.add(item("6", "h0"), 3) is QueuingStatus.ABOVE_EXCEPTION_THRESHOLD
    assert queues.add(item("6", "other"), 3) is QueuingStatus.SUCCESSFULLY_QUEUED


def test_exceptions_without_a_limit_never_purge() -> None:
    queues = filled(replace(PLAIN, max_exceptions=NEVER), "1", "2")
    assert all(queues.exception("h0", 0) == [] for _ in range(100))


def test_back_off_doubles() -> None:
    settings = from_conf(
        fetcher_exceptions_per_queue_delay="1", fetcher_exceptions_per_queue_jitter="0"
    )
    queues = filled(replace(settings, crawl_delay=0), "1", "2")
    assert [queues.back_off(n) for n in (1, 2, 3, 4)] == [1000, 2000, 4000, 8000]
    taken(queues, 0)
    queues.finish("h0", 0)
    queues.exception("h0", 0)
    assert queues.next_ready() == 1000
    queues.exception("h0", 0)
    assert queues.next_ready() == 3000


def test_back_off_jitters_within_its_bound() -> None:
    queues = FetchQueues(replace(PLAIN, exceptions_delay=1000, exceptions_jitter=0.1), seed=7)
    delays = {queues.back_off(1) for _ in range(50)}
    assert len(delays) > 10
    assert min(delays) >= 1000 and max(delays) < 1100


def test_back_off_beyond_the_time_limit_purges() -> None:
    queues = filled(
        replace(PLAIN, exceptions_delay=10_000, time_limit=12_000, crawl_delay=0), "1", "2", "3"
    )
    taken(queues, 0)
    queues.finish("h0", 0)
    assert queues.exception("h0", 0) == []
    assert [i.url for i in queues.exception("h0", 0)] == ["2", "3"]


def test_exceptions_are_forgotten_after_a_while() -> None:
    settings = from_conf(fetcher_exceptions_per_queue_clear_after="60")
    queues = filled(replace(settings, crawl_delay=0, max_exceptions=2), "1")
    taken(queues, 0)
    queues.finish("h0", 0)
    queues.exception("h0", 0)
    taken(queues, 59_999)
    assert queues.queues["h0"].exceptions == 1
    taken(queues, 60_001)
    assert "h0" not in queues.queues


def test_idle_queues_are_kept_while_they_rest() -> None:
    queues = filled(PLAIN, "1")
    taken(queues, 0)
    queues.finish("h0", 0)
    taken(queues, 5000)
    assert "h0" in queues.queues
    taken(queues, 5001)
    assert not queues.queues


def test_deferral_rests_and_gives_up_after_its_retries() -> None:
    queues = filled(replace(PLAIN, crawl_delay=0), "1", "2")
    now = 0
    for _ in range(3):
        found = queues.take(now)
        assert found is not None and found.url == "1"
        assert queues.defer(found, 300_000, 3, now) == []
        assert queues.resting_on_purpose()
        assert queues.in_progress == 0
        now += 300_000
        assert queues.next_ready() == now
    found = queues.take(now)
    assert found is not None
    assert [i.url for i in queues.defer(found, 300_000, 3, now)] == ["1", "2"]
    assert queues.size == 0


def test_deferral_of_several_at_once_counts_once() -> None:
    queues = filled(replace(PLAIN, max_threads=2), "1", "2")
    first, second = queues.take(0), queues.take(0)
    assert first is not None and second is not None
    assert queues.defer(first, 1000, 1, 0) == []
    assert queues.defer(second, 1000, 1, 0) == []
    assert queues.queues["h0"].deferrals == 1


def test_deferral_beyond_the_time_limit_gives_up() -> None:
    queues = filled(replace(PLAIN, time_limit=100_000), "1")
    found = queues.take(0)
    assert found is not None
    assert queues.defer(found, 300_000, 3, 0) == [found]


def test_retry_after_never_shortens_a_rest() -> None:
    queues = filled(PLAIN, "1", "2")
    taken(queues, 0)
    queues.finish("h0", 0)
    queues.rest_until("h0", 3000, 0)
    assert queues.next_ready() == 5000
    queues.rest_until("h0", 30_000, 0)
    assert queues.next_ready() == 30_000
    assert queues.oldest_rest(1000) == 29_000


def test_redirects_enter_a_queue_without_waiting() -> None:
    queues = filled(PLAIN, "1", "2")
    queues.enter("h0", 0)
    assert taken(queues, 0) == []
    queues.finish("h0", 100)
    assert queues.next_ready() == 5100


@pytest.mark.parametrize(
    ("seconds", "size", "again"), [(60, 10, True), (-1, 10, False), (60, 0, False)]
)
def test_redirects_met_lately(seconds: int, size: int, again: bool) -> None:
    memory = RedirectMemory(seconds, size)
    assert not memory.met_lately("x", 0)
    assert memory.met_lately("x", 59_999) is again
    assert not memory.met_lately("x", 60_000)


def test_redirect_memory_is_bounded() -> None:
    memory = RedirectMemory(60, 2)
    for url in "abc":
        memory.met_lately(url, 0)
    assert not memory.met_lately("a", 1)
    assert memory.met_lately("c", 1)


def test_an_unknown_queue_mode_is_an_error() -> None:
    with pytest.raises(
        ConfigError, match=r"fetcher.queue.mode \(program\): expected .*byIP, found 'byPlanet'"
    ):
        from_conf(fetcher_queue_mode="byPlanet")


def test_many_queues_stay_in_order_of_readiness() -> None:
    clock = FakeClock()
    queues = FetchQueues(replace(PLAIN, crawl_delay=100))
    for number in range(50):
        for host in range(20):
            queues.add(item(f"{host}/{number}", f"h{host}"), clock.now())
    seen: dict[str, int] = {}
    count = 0
    while queues.size:
        found = queues.take(clock.now())
        if found is None:
            ready = queues.next_ready()
            assert ready is not None and ready > clock.now()
            clock.advance((ready - clock.now()) / 1000)
            continue
        last = seen.get(found.queue_id)
        assert last is None or clock.now() - last >= 100
        seen[found.queue_id] = clock.now()
        queues.finish(found.queue_id, clock.now())
        count += 1
    assert count == 1000
    assert clock.now() == 49 * 100
