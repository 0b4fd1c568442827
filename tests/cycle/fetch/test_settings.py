"""Every fetcher property is read, with its default, its bounds and Java's arithmetic."""

from __future__ import annotations

from dataclasses import fields

import pytest

from minutch.conf import Configuration
from minutch.cycle.fetch.settings import (
    NEVER,
    FetchSettings,
    FollowSettings,
    QueueSettings,
    RedirectSettings,
    RobotsSettings,
    millis,
    places_in,
    share_of,
)
from minutch.work.tables.parallel import memory_budget

DEFAULTS = Configuration.load([])


def conf(**values: str) -> Configuration:
    return DEFAULTS.with_values(
        {name.replace("__", "-").replace("_", "."): value for name, value in values.items()}
    )


def test_shipped_defaults_are_nutchs() -> None:
    settings = FetchSettings.of(DEFAULTS, now=0)
    assert settings.queues == QueueSettings(
        crawl_delay=5000,
        max_exceptions=5,
        exceptions_delay=5000,
        clear_after=1_800_000,
        time_limit=NEVER,
    )
    assert settings.robots == RobotsSettings(max_crawl_delay=30_000, min_crawl_delay=5000)
    assert settings.redirects == RedirectSettings(max_redirects=0, max_length=4096)
    assert settings.follow == FollowSettings()
    assert settings.places == places_in(memory_budget(DEFAULTS)) and settings.start_delay == 0
    assert settings.hung_after == 300_000
    assert settings.store_content and not settings.parse and not settings.signature


def test_threads_of_the_command_line_win() -> None:
    settings = FetchSettings.of(conf(fetcher_threads_fetch="20"), 0, threads=3)
    assert settings.places == 3 and settings.start_delay == 10
    assert FetchSettings.of(conf(fetcher_threads_fetch="20"), 0).places == 20


def test_places_where_nobody_sets_threads() -> None:
    few = conf(minutch_memory="256m")
    assert FetchSettings.of(few, 0).places == 2048
    assert FetchSettings.of(few.with_values({"fetcher.bandwidth.target": "9"}), 0).places == 10


def test_queue_depth_multiplier() -> None:
    values = {"fetcher_queue_depth_multiplier": "7", "fetcher_threads_fetch": "10"}
    assert FetchSettings.of(conf(**values), 0).queues.depth == 70


def test_min_crawl_delay_follows_the_server_delay() -> None:
    assert RobotsSettings.from_conf(conf(fetcher_server_delay="0.5")).min_crawl_delay == 500
    assert RobotsSettings.from_conf(conf(fetcher_min_crawl_delay="2")).min_crawl_delay == 2000
    assert RobotsSettings.from_conf(conf(fetcher_max_crawl_delay="-1")).max_crawl_delay < 0


def test_deferral_properties() -> None:
    values = {
        "http.robots.503.defer.visits.delay": "1000",
        "http.robots.503.defer.visits.retries": "7",
    }
    settings = RobotsSettings.from_conf(DEFAULTS.with_values(values))
    assert (settings.defer_delay, settings.defer_retries) == (1000, 7)


def test_redirect_properties() -> None:
    values = {
        "http.redirect.max": "4",
        "http.redirect.max.exceeded.skip": "true",
        "db.max.outlink.length": "-1",
        "db.ignore.external.links": "true",
        "db.ignore.external.links.mode": "byDomain",
    }
    settings = RedirectSettings.from_conf(DEFAULTS.with_values(values))
    assert (
        settings.max_redirects == 4
        and settings.exceeded_skip
        and settings.ignore_external
        and settings.by_domain
    )
    assert settings.max_length > 1 << 30
    values["db.ignore.also.redirects"] = "false"
    assert not RedirectSettings.from_conf(DEFAULTS.with_values(values)).ignore_external


def test_most_followed_links_by_integer_division() -> None:
    values = {"fetcher.follow.outlinks.depth": "3", "fetcher.follow.outlinks.num.links": "4"}
    assert FollowSettings.from_conf(DEFAULTS.with_values(values)).most == 2 * 4 + 1 * 4 + 0


def test_pressure_bounds(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO")
    values = {
        "fetcher.maxNum.threads": "5",
        "fetcher.bandwidth.target": "1000",
        "fetcher.bandwidth.target.check.everyNSecs": "0",
    }
    settings = FetchSettings.of(DEFAULTS.with_values(values), 1000, 10).pressure
    assert settings.max_threads == 10 and settings.check_every == 1
    assert settings.check_after == 1000 + 5 * 60_000
    assert "fetcher.maxNum.threads=5" in caplog.text and "everyNSecs=0: taking 1" in caplog.text


def test_hung_after_is_the_task_timeout_divided() -> None:
    values = {"mapreduce.task.timeout": "90000", "fetcher.threads.timeout.divisor": "3"}
    assert FetchSettings.of(DEFAULTS.with_values(values), 0).hung_after == 30_000


def test_robotstxt_is_not_stored_without_content(caplog: pytest.LogCaptureFixture) -> None:
    values = {"fetcher.store.robotstxt": "true", "fetcher.store.content": "false"}
    assert not FetchSettings.of(DEFAULTS.with_values(values), 0).store_robots
    assert "fetcher.store.robotstxt" in caplog.text


@pytest.mark.parametrize(
    ("seconds", "expected"), [(0.01, 10), (5.0, 5000), (0.3, 300), (1e-4, 0), (2.5, 2500)]
)
def test_milliseconds(seconds: float, expected: int) -> None:
    assert millis(seconds) == expected


HOLDS_IN_EACH = {
    "queues": {field.name for field in fields(QueueSettings)} - {"depth"},
    "robots": {field.name for field in fields(RobotsSettings)},
    "redirects": {field.name for field in fields(RedirectSettings)},
    "follow": {field.name for field in fields(FollowSettings)},
    "pressure": {"retries", "check_after", "check_every", "tail_share"},
    "": {
        "start_delay",
        "hung_after",
        "parse",
        "for_step",
        "store_content",
        "store_robots",
        "signature",
        "filter_urls",
    }
    | {"normalize_urls", "publish", "record_skipped", "processes", "warc", "form"},
}
"""Settings about a host, a page, a thread or a point in time: they are the same in all processes of
a fetch.
"""


def flat(settings: FetchSettings) -> dict[tuple[str, str], int]:
    """All settings by group and name."""
    groups = {"": settings} | {group: getattr(settings, group) for group in HOLDS_IN_EACH if group}
    return {
        (group, field.name): getattr(values, field.name)
        for group, values in groups.items()
        for field in fields(values)
        if field.name not in groups
    }


def test_every_setting_is_divided_among_processes_or_holds_in_each() -> None:
    whole = FetchSettings.of(
        conf(
            fetcher_throughput_threshold_pages="10",
            fetcher_bandwidth_target="100",
            fetcher_maxNum_threads="40",
            fetcher_queue_depth_multiplier="2",
        ),
        0,
        7,
    )
    parts = [flat(share_of(whole, index, 3)) for index in range(3)]
    for (group, name), value in flat(whole).items():
        values = [part[group, name] for part in parts]
        if name in HOLDS_IN_EACH[group]:
            assert values == [value] * 3, name
        else:
            assert sum(values) == value and max(values) - min(values) <= 1, name


def test_no_process_is_without_a_thread_and_what_is_off_stays_off() -> None:
    settings = FetchSettings.of(
        conf(fetcher_queue_depth_multiplier="1", fetcher_maxNum_threads="2"), 0, 2
    )
    for part in (share_of(settings, index, 4) for index in range(4)):
        assert (part.places, part.queues.depth, part.pressure.max_threads) == (1, 1, 1)
        assert (part.pressure.min_pages, part.pressure.bits_per_second) == (NEVER, NEVER)
