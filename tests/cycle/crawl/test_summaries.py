"""Counters in plain words."""

from __future__ import annotations

from minutch.cycle.crawl.screen import counters_of, result_of, size
from tests.support.examples import tabled


@tabled(
    ("step", "counts", "words"),
    [
        (
            "inject",
            {"seeds": 12, "seeds new": 10, "seeds rejected": 2},
            "12 seeds, 10 new, 2 rejected",
        ),
        ("generate", {"selected_total": 1, "schedule_rejected_total": 5}, "1 page to fetch"),
        ("generate", {"schedule_rejected_total": 5}, "nothing is due"),
        ("fetch", {"generated": 4, "fetched": 1, "retry": 1, "gone": 2}, "1 page, 1 error, 2 gone"),
        ("fetch", {"skipped (time limit)": 2, "skipped (filtered)": 1}, "3 not asked for"),
        (
            "updatedb",
            {"db_fetched": 1, "db_redir_temp": 1, "db_redir_perm": 1},
            "3 URLs known, 1 fetched, 2 redirects",
        ),
        ("dedup", {"other entries": 7}, "no duplicates"),
        ("dedup", {"documents marked as duplicates": 1}, "1 duplicate"),
        (
            "updatehostdb",
            {"total_hosts_total": 1, "new_unknown_host_total": 2},
            "1 host, 2 without an address",
        ),
        ("sitemap", {}, "nothing"),
        (
            "sitemap",
            {"sitemaps read": 1, "new URLs": 31, "failed sitemap fetches": 2},
            "1 sitemap, 31 new URLs, 2 not fetched",
        ),
    ],
)
def test_steps(step: str, counts: dict[str, int], words: str) -> None:
    assert result_of(step, counts) == words


def test_counters_by_their_own_names() -> None:
    assert counters_of({"fetched": 1200, "gone": 0, "x": 1}) == "fetched 1,200, x 1"
    assert counters_of({"gone": 0}) == "nothing"


def test_sizes() -> None:
    assert [size(0), size(999), size(1500), size(12_345_678)] == [
        "0 bytes",
        "999 bytes",
        "1.5 KB",
        "12 MB",
    ]
