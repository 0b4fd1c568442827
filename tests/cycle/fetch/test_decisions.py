"""Decisions about robots.txt, Retry-After, throughput and bandwidth."""

from __future__ import annotations

import pytest

from minutch.cycle.fetch.decisions import Decision, Verdict, decide, host_failed, retry_after
from minutch.cycle.fetch.limits import (
    FIRST_LOAD,
    LEAST_LOAD,
    BandwidthGovernor,
    LoadGuard,
    TailGuard,
    ThroughputGuard,
)
from minutch.cycle.fetch.settings import PressureSettings, RobotsSettings
from minutch.records import protocol as codes
from minutch.records.protocol import ProtocolStatus
from tests.support.examples import tabled

ROBOTS = RobotsSettings(max_crawl_delay=30_000, min_crawl_delay=5000)
DAY = 86_400_000
NOW = 1_800_000_000_000


def test_allowed_without_a_delay() -> None:
    assert decide(True, -1, defer=False, unreachable=False, settings=ROBOTS) == Decision(
        Verdict.FETCH
    )


@pytest.mark.parametrize(
    ("allowed", "delay", "defer", "unreachable", "verdict"),
    [
        (False, 0, False, False, Verdict.DENIED),
        (True, 0, True, False, Verdict.DEFER),
        (False, 0, True, True, Verdict.DEFER),
        (False, 0, False, True, Verdict.UNREACHABLE),
        (True, 30_001, False, False, Verdict.DELAY_TOO_LONG),
        (True, 30_000, False, False, Verdict.FETCH),
    ],
)
def test_verdicts(
    allowed: bool, delay: int, defer: bool, unreachable: bool, verdict: Verdict
) -> None:
    assert (
        decide(allowed, delay, defer=defer, unreachable=unreachable, settings=ROBOTS).verdict
        is verdict
    )


def test_crawl_delay_is_kept_within_its_bounds() -> None:
    def delay(asked: float, settings: RobotsSettings = ROBOTS) -> int | None:
        return decide(True, asked, defer=False, unreachable=False, settings=settings).crawl_delay

    assert delay(50) == 5000
    assert delay(12_345.6) == 12_345
    assert delay(3_600_000, RobotsSettings(max_crawl_delay=-1000)) == 3_600_000
    assert delay(50, RobotsSettings(min_crawl_delay=10)) == 50


@tabled(
    ("value", "wait"),
    [
        ("120", 120_000),
        (" 3 ", 3000),
        ("0", None),
        ("-5", None),
        ("1.5", None),
        ("soon", None),
        ("", None),
        ("9" * 40, DAY),
        ("Fri, 15 Jan 2027 08:01:40 GMT", 100_000),
        ("Fri, 15 Jan 2027 07:00:00 GMT", None),
        ("Wed, 99 Foo 2027 99:99:99 GMT", None),
        ("Fri, 15 Jan 2199 08:01:40 GMT", DAY),
    ],
)
def test_retry_after(value: str, wait: int | None) -> None:
    assert retry_after(value, NOW, DAY) == (None if wait is None else NOW + wait)


def test_retry_after_can_be_switched_off() -> None:
    assert retry_after("120", NOW, 0) is None
    assert retry_after(None, NOW, DAY) is None


def test_throughput_threshold() -> None:
    guard = ThroughputGuard(PressureSettings(min_pages=10, retries=3, check_after=1000))
    assert not any(guard.too_slow(0, now) for now in (0, 500, 1000))
    assert not guard.too_slow(10, 2000)
    assert [guard.too_slow(9, 3000) for _ in range(5)] == [False, False, True, False, False]


def test_throughput_threshold_is_off_by_default() -> None:
    guard = ThroughputGuard(PressureSettings())
    assert not any(guard.too_slow(0, 1 << 50) for _ in range(20))


def governed(settings: PressureSettings, total: int, active: int, places: int) -> int:
    governor = BandwidthGovernor(settings)
    results = [
        governor.adjust(total, active, active, places) for _ in range(settings.check_every + 1)
    ]
    assert not any(results[:-1])
    return results[-1]


@pytest.mark.parametrize(
    ("share", "hosts", "seconds", "over"),
    [
        (0.1, 9, 21, True),
        (0.1, 10, 500, False),
        (0.1, 9, 20, False),
        (0.1, 0, 0, False),
        (0.0, 1, 9999, False),
    ],
)
def test_a_tail_is_few_hosts_for_long(share: float, hosts: int, seconds: int, over: bool) -> None:
    guard = TailGuard(PressureSettings(tail_share=share))
    assert not guard.is_over(100, 0)
    assert guard.is_over(hosts, seconds) is over


def test_one_host_alone_is_no_tail() -> None:
    guard = TailGuard(PressureSettings(tail_share=0.1))
    assert not any(guard.is_over(1, 1000) for _ in range(3))


def test_bandwidth_target_adds_threads_while_there_is_room() -> None:
    settings = PressureSettings(bits_per_second=1_000_000, max_threads=25, check_every=10)
    assert governed(settings, 250_000, active=10, places=100) == 15
    assert governed(settings, 1_000_000, active=10, places=100) == 2
    assert governed(settings, 250_000, active=10, places=10) == 0


def test_bandwidth_target_takes_threads_away_but_not_all() -> None:
    settings = PressureSettings(bits_per_second=1_000_000, max_threads=25, check_every=10)
    assert governed(settings, 2_500_000, active=10, places=100) == -5
    assert governed(settings, 1_000_000_000, active=1, places=100) == 0


def test_bandwidth_target_is_off_by_default() -> None:
    assert governed(PressureSettings(), 1 << 40, active=10, places=100) == 0


def answered(code: int, message: str = "") -> ProtocolStatus:
    return ProtocolStatus(code, [message])


@tabled(
    ("answer", "in_row", "failed"),
    [
        (answered(codes.SUCCESS), True, False),
        (answered(codes.NOTFOUND), True, False),
        (answered(codes.EXCEPTION, "java.net.ConnectException: Connection refused"), True, True),
        (answered(codes.EXCEPTION, "Http code=403, url=http://a.example/"), True, None),
        (answered(codes.EXCEPTION, "Http code=451, url=http://a.example/"), True, None),
        (answered(codes.EXCEPTION, "Http code=408, url=http://a.example/"), True, True),
        (answered(codes.EXCEPTION, "Http code=429, url=http://a.example/"), True, True),
        (answered(codes.EXCEPTION, "Http code=500, url=http://a.example/"), True, True),
        (answered(codes.EXCEPTION, "Http code=403, url=http://a.example/"), False, True),
    ],
)
def test_hosts_fail_by_what_speaks_of_them(
    answer: ProtocolStatus, in_row: bool, failed: bool | None
) -> None:
    assert host_failed(answer, in_row=in_row) is failed


def test_a_page_that_did_not_end_in_time_is_a_failure_of_its_host() -> None:
    assert host_failed(answered(codes.SUCCESS), in_row=True, too_slow=True) is True
    assert host_failed(answered(codes.SUCCESS), in_row=False, too_slow=True) is False


def test_a_machine_that_is_late_has_less_in_flight() -> None:
    guard = LoadGuard()
    guard.adjust(0.01, 10)
    assert guard.bearable == FIRST_LOAD  # it was not tried
    guard.adjust(0.01, FIRST_LOAD)
    assert guard.bearable == FIRST_LOAD * 3 // 2
    guard.adjust(1.0, 800)
    assert guard.bearable == 600
    for _ in range(20):
        guard.adjust(1.0, 800)
    assert guard.bearable == LEAST_LOAD
    for _ in range(20):
        guard.adjust(0.0, guard.bearable)
    assert guard.bearable > 10_000
