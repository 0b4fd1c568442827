"""Simulates an adaptive schedule on a page that changes every 30 days: day by day, for 10,000 days.

Source: the main methods of org.apache.nutch.crawl.AdaptiveFetchSchedule and
MimeAdaptiveFetchSchedule.
"""

from __future__ import annotations

from collections.abc import Callable

from minutch.cycle.crawldb.schedule import (
    STATUS_MODIFIED,
    STATUS_NOTMODIFIED,
    AbstractFetchSchedule,
)
from minutch.records.crawldatum import SECONDS_PER_DAY, CrawlDatum

_DAY = SECONDS_PER_DAY * 1000
_CHANGES_EVERY = 30 * _DAY
_DAYS = 10_000


def simulate(
    schedule: AbstractFetchSchedule,
    url: str,
    page: CrawlDatum,
    show: Callable[[object], None],
    missed: str = "\tmissed",
) -> None:
    """Prints when the page is fetched, and how many days a change waits for the next fetch."""
    show(page)
    changed = True
    last_modified = miss = total_miss = max_miss = fetches = changes = 0
    for day in range(_DAYS):
        now = day * _DAY
        if last_modified + _CHANGES_EVERY < now:
            changed, last_modified = True, now
            changes += 1
        show(f"{day}. {str(changed).lower()}\twill fetch at {_plan(page)}{missed} {miss}")
        if page.fetch_time <= now:
            fetches += 1
            state = STATUS_MODIFIED if changed else STATUS_NOTMODIFIED
            schedule.set_fetch_schedule(
                url, page, page.fetch_time, page.modified_time, now, last_modified, state
            )
            show(f"\tfetched and adjusted:\twill fetch at {_plan(page)}")
            miss += not changed
            max_miss = max(max_miss, miss)
            total_miss += miss
            changed, miss = False, 0
        miss += changed
    show(f"Total missed: {total_miss}, max miss: {max_miss}")
    show(f"Page changed {changes} times, fetched {fetches} times.")


def _plan(page: CrawlDatum) -> str:
    return f"{page.fetch_time // _DAY}\tinterval {page.fetch_interval // SECONDS_PER_DAY} days"
