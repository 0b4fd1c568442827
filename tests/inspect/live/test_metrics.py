"""Figures in Prometheus' format, read by its client library's parser, and by promtool where there
is one.
"""

from __future__ import annotations

import math
import re
import shutil
import subprocess
from collections import Counter
from dataclasses import replace

import pytest
from prometheus_client.core import Metric
from prometheus_client.parser import text_string_to_metric_families

from minutch.clock import FakeClock
from minutch.cycle.fetch.stats import FetchStats
from minutch.cycle.fetch.watch import Watch
from minutch.inspect.live.liveapp import metrics_text
from tests.cycle.fetch.test_seen import NOW

STATS = FetchStats(
    pages=100, bytes=5000, errors=7, requests=110, request_ms=2500, events=Counter(success=100)
)
ODD = re.compile(
    r"_(ms|millis|milliseconds|minutes|kilobytes|kb|mb|count|sum|bucket|gauge|counter)(_|$)"
)
"""What no name should have."""
HOSTILE = 'a"} 1\nminutch_fetch_pages_total 666\\'


def watch() -> Watch:
    found = Watch("crawl crawl", FakeClock(1_700_000_000_000), can_stop=True)
    found.fetched(STATS, 120)
    found.show(replace(NOW, requests=12_400, request_ms=620_000))
    found.ended({"db_fetched": 90, HOSTILE: 3})
    found.row("fetch", 12.5, "")
    found.row("fetch", 2.25, "")
    return found


def families(text: str) -> dict[str, Metric]:
    return {family.name: family for family in text_string_to_metric_families(text)}


def values(text: str) -> dict[tuple[str, str], float]:
    """Sample → value, by name and the value of its only label."""
    return {
        (sample.name, next(iter(sample.labels.values()), "")): sample.value
        for family in families(text).values()
        for sample in family.samples
    }


def test_the_client_librarys_parser_reads_all_of_it() -> None:
    text = metrics_text(watch())
    found = families(text)
    assert all(family.documentation and family.type != "unknown" for family in found.values())
    assert (
        found["minutch_fetch_pages"].type == "counter"
        and found["minutch_fetch_queues"].type == "gauge"
    )
    assert found["minutch_fetch_request_duration_seconds"].type == "summary"
    lines = [line for line in text.splitlines() if not line.startswith("#")]
    assert len(lines) == sum(len(family.samples) for family in found.values())
    assert text.endswith("\n")


def test_counts_go_on_from_fetch_to_fetch() -> None:
    seen = watch()
    found = values(metrics_text(seen))
    assert found["minutch_fetch_pages_total", ""] == NOW.pages + 100
    assert found["minutch_fetch_bytes_total", ""] == NOW.bytes + 5000
    assert found["minutch_fetch_urls_done_total", ""] == NOW.done + 120
    assert found["minutch_fetch_events_total", "success"] == 12_345 + 100
    assert found["minutch_fetch_request_duration_seconds_sum", ""] == 622.5
    assert found["minutch_fetch_request_duration_seconds_count", ""] == 12_510
    seen.fetched(FetchStats(pages=NOW.pages + 1), 5)
    after = values(metrics_text(seen))
    assert after["minutch_fetch_pages_total", ""] == NOW.pages + 101
    assert after["minutch_fetch_active_threads", ""] == 0


def test_figures_of_a_crawl() -> None:
    seen = watch()
    seen.pause(True)
    seen.stop(True)
    with seen.running("updatedb", "round 2"):
        found = values(metrics_text(seen))
    assert found["minutch_crawl_rounds_total", ""] == 1
    assert found["minutch_crawl_step_seconds_total", "fetch"] == 14.75
    assert found["minutch_crawl_step_running", "updatedb"] == 1
    assert found["minutch_crawl_urls", "db_fetched"] == 90
    assert (found["minutch_paused", ""], found["minutch_crawl_stopping", ""]) == (1, 1)
    assert found["minutch_start_time_seconds", ""] == 1_700_000_000
    alone = Watch("fetch segment", FakeClock())
    assert not any("crawl" in name for name, _ in values(metrics_text(alone)))


def test_labels_hold_whatever_they_are_given() -> None:
    found = values(metrics_text(watch()))
    assert found["minutch_crawl_urls", HOSTILE] == 3
    assert found["minutch_fetch_pages_total", ""] == NOW.pages + 100


def test_names_follow_the_conventions() -> None:
    """Of Prometheus' documentation (metric and label naming): prefix, base units, `_total` for
    counters alone.
    """
    for name, family in families(metrics_text(watch())).items():
        assert re.fullmatch(r"minutch_[a-z]+(_[a-z]+)*", name)
        assert not ODD.search(name)
        assert family.type == "counter" or not name.endswith("_total")
        for sample in family.samples:
            assert sample.name.endswith("_total") == (family.type == "counter")
            assert not math.isnan(sample.value)


def test_promtool_has_nothing_to_say() -> None:
    promtool = shutil.which("promtool")
    if promtool is None:
        pytest.skip("no promtool on PATH (it comes with Prometheus)")
    found = subprocess.run(
        [promtool, "check", "metrics"],
        input=metrics_text(watch()),
        capture_output=True,
        text=True,
        check=False,
    )
    assert (found.returncode, found.stdout, found.stderr) == (0, "", "")
