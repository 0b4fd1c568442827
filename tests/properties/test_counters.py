"""Every URL leaves every step through exactly one counter, in a random web that misbehaves.

    python -m tests.properties.test_counters [--urls 5000] [--hosts 100] [--rounds 10] [--seed 1]

makes the large crawl, as `bin/test --faults` does; the usual test is a small one. After each step
its counters are added up against what went in, and the CrawlDb against what it was: no URL twice,
none lost.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from minutch import jobs
from minutch.clock import SystemClock
from minutch.conf import Configuration
from minutch.cycle.fetch.ledger import Outcome
from minutch.cycle.parse.parsesegment import REPEATED
from minutch.cycle.segment.store import (
    CRAWL_FETCH,
    CRAWL_GENERATE,
    CRAWL_PARSE,
    Segment,
    segments_in,
)
from minutch.job import Counters
from tests.support.crawldbs import read_db
from tests.support.randomweb import Plan, RandomWeb, crawl_by_command
from tests.support.segments import LOOPBACK

SEEDS = 20
SETTINGS = {
    **LOOPBACK,
    "plugin.includes": "protocol-http|urlnormalizer-(pass|basic)|parse-html|scoring-opic",
    "db.fetch.interval.default": str(3 * 86_400),
    "db.fetch.retry.max": "2",
    "http.timeout": "700",
    "http.redirect.max": "2",
    "fetcher.queue.mode": "byHost",
    "fetcher.threads.per.queue": "8",
    "http.robots.503.defer.visits.retries": "0",
}
_ENDED = {outcome.label for outcome in Outcome} - {Outcome.FOLLOWED.label}
_DAY = 86_400_000


class LaterClock(SystemClock):
    """The system's clock, so many days ahead: pages become due from round to round."""

    def __init__(self, days: int) -> None:
        self._ahead = days * _DAY

    def now(self) -> int:
        return super().now() + self._ahead


def crawl(folder: Path, web: RandomWeb, rounds: int) -> Counters:
    """Crawl a web and check the sums after each step; returns the counts of all fetches."""
    conf = Configuration.load([], overrides=SETTINGS)
    crawldb, segments, seeds = folder / "crawldb", folder / "segments", folder / "seeds.txt"
    seeds.write_text("\n".join(web.url(page) for page in range(SEEDS)))
    injected = jobs.run("inject", crawldb, seeds, conf=conf)
    assert injected["seeds new"] == len(read_db(crawldb)) == SEEDS
    total = Counters()
    for number in range(rounds):
        clock = LaterClock(4 * number)
        before = read_db(crawldb)
        generated = jobs.run("generate", crawldb, segments, "-noFilter", conf=conf, clock=clock)
        assert sum(generated.values()) == len(before), generated
        segment = segments_in(segments)[-1]
        total.merge(
            _check_fetch(
                segment, jobs.run("fetch", segment.path, "-threads", 50, conf=conf, clock=clock)
            )
        )
        _check_parse(jobs.run("parse", segment.path, conf=conf, clock=clock))
        _check_update(
            segment,
            before,
            crawldb,
            jobs.run("updatedb", crawldb, segment.path, conf=conf, clock=clock),
        )
    return total


def _check_fetch(segment: Segment, counters: Counters) -> Counters:
    listed = [url for url, _ in segment.raw(CRAWL_GENERATE)]
    fetched = [url for url, _ in segment.raw(CRAWL_FETCH)]
    assert len(set(listed)) == len(listed) == counters["generated"]
    assert sum(count for name, count in counters.items() if name in _ENDED) == len(listed), counters
    assert set(listed) <= set(fetched)
    return counters


def _check_parse(counters: Counters) -> None:
    pages, repeated = (
        counters.pop("pages", 0),
        counters.pop(REPEATED, 0),
    )  # the second one counts pages that parsed
    assert sum(counters.values()) == pages and repeated <= counters.get("success", 0), counters


def _check_update(
    segment: Segment, before: dict[str, object], crawldb: Path, counters: Counters
) -> None:
    after = read_db(crawldb)
    touched = {
        url.decode() for folder in (CRAWL_FETCH, CRAWL_PARSE) for url, _ in segment.raw(folder)
    }
    assert sum(counters.values()) == len(touched | before.keys()), counters
    assert before.keys() <= after.keys() <= before.keys() | touched
    by_status = Counters()
    for datum in after.values():
        by_status.add(datum.status_name)
    assert by_status == {
        name: count for name, count in counters.items() if name.startswith("db_") and count
    }


@pytest.mark.parametrize("seed", [1])
def test_every_url_through_one_counter(tmp_path: Path, seed: int) -> None:
    with RandomWeb(Plan(seed, pages=150, hosts=12)) as web:
        total = crawl(tmp_path, web, rounds=3)
    assert total["generated"] > 100
    assert all(total.get(name) for name in ("fetched", "redirected", "gone", "retry", "denied")), (
        total
    )


@pytest.mark.faults
def test_every_url_of_a_large_web_through_one_counter(tmp_path: Path) -> None:
    with RandomWeb(Plan(seed=1, pages=5000, hosts=100)) as web:
        total = crawl(tmp_path, web, rounds=10)
    assert total["generated"] > 20_000
    assert all(total.get(name) for name in ("fetched", "redirected", "gone", "retry", "denied")), (
        total
    )


def main() -> None:
    """The large crawl."""
    crawl_by_command(
        "tests.properties.test_counters", crawl, Plan(seed=1, pages=5000, hosts=100), rounds=10
    )


if __name__ == "__main__":
    main()
