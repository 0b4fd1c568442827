"""Explains the entry that updatedb makes of a segment's records of one URL, step by step. Pure: no
I/O.

The entry comes from `transitions`, as in the job; `steps` put its date into words. The score that
links bring is left out where the records hold no links.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import polars as pl

from minutch.cycle.crawldb.schedule import (
    STATUS_MODIFIED,
    STATUS_NOTMODIFIED,
    STATUS_UNKNOWN,
    AbstractFetchSchedule,
    PlannedFetch,
    ScheduleStep,
)
from minutch.cycle.crawldb.transitions import (
    UpdateSettings,
    modification,
    update,
    with_old_metadata,
)
from minutch.cycle.crawldb.updates import FetchRecords, Updates
from minutch.records import crawldatum as status
from minutch.records import crawldatum_columns
from minutch.records.crawldatum import CrawlDatum
from minutch.work.tables.recordfiles import pack, take

_STATES = {
    STATUS_UNKNOWN: "nothing to compare it with",
    STATUS_MODIFIED: "another signature than before",
    STATUS_NOTMODIFIED: "the same as before",
}


@dataclass(frozen=True, slots=True)
class ExplainedUpdate:
    """The entry after updatedb, and the steps to its status and date."""

    entry: CrawlDatum
    steps: tuple[ScheduleStep, ...]

    def led_to(self, entry: CrawlDatum) -> bool:
        """Returns True if `entry` is this one by status and dates; dedup may have marked it."""
        mine = self.entry
        if (mine.fetch_time, mine.fetch_interval, mine.retries) != (
            entry.fetch_time,
            entry.fetch_interval,
            entry.retries,
        ):
            return False
        return mine.status == entry.status or entry.status in (
            status.STATUS_DB_DUPLICATE,
            status.STATUS_DB_ORPHAN,
        )


def explain_update(
    url: str,
    before: CrawlDatum | None,
    found: Iterable[CrawlDatum],
    settings: UpdateSettings,
    now: int,
) -> ExplainedUpdate | None:
    """Explains the entry that updatedb makes of `before` and the records `found` for `url`; None if
    it makes none.

    `found` are the records of crawl_fetch and crawl_parse, in this order. Raises FormatError for a
    status that no Nutch writes.
    """
    old = pack(crawldatum_columns.to_frame([] if before is None else [(url, before)]))
    segment = pack(crawldatum_columns.to_frame((url, datum) for datum in found))
    patched, _ = update(old, segment, settings, now)
    made = [datum for _, datum in crawldatum_columns.records(patched.changed)]
    if not made:
        return None
    return ExplainedUpdate(made[0], tuple(_steps(url, old, segment, made[0], settings)))


def _steps(
    url: str, old: pl.DataFrame, segment: pl.DataFrame, entry: CrawlDatum, settings: UpdateSettings
) -> Iterable[ScheduleStep]:
    updates = Updates(segment, old["key"], settings.max_inlinks)
    urls = np.flatnonzero(updates.fetched)
    if not len(urls):
        known = "the entry stays as it was" if len(old) else "found by a link: due at once"
        return [ScheduleStep(f"not fetched: {known}")]
    pages = updates.fetched_pages(urls, take(old, updates.at[urls]))
    (fetch,) = (datum for _, datum in crawldatum_columns.records(pages.new))
    if fetch.status == status.STATUS_FETCH_RETRY:
        return _after_failure(fetch, entry, settings)
    if fetch.status in (status.STATUS_FETCH_GONE, status.STATUS_PARSE_FAILED):
        return _gone(fetch, entry, settings)
    return _fetched(url, pages, fetch, entry, settings)


def _after_failure(
    fetch: CrawlDatum, entry: CrawlDatum, settings: UpdateSettings
) -> list[ScheduleStep]:
    again = f"failure number {entry.retries} in a row, of {settings.retry_max} (db.fetch.retry.max)"
    if entry.status == status.STATUS_DB_GONE:
        return [ScheduleStep(f"{again}: given up as db_gone"), *_gone(fetch, entry, settings)]
    return [
        ScheduleStep(f"{again}: tried again after", (entry.fetch_time - fetch.fetch_time) / 1000)
    ]


def _gone(fetch: CrawlDatum, entry: CrawlDatum, settings: UpdateSettings) -> list[ScheduleStep]:
    if not _is_own(settings.schedule, "set_page_gone_schedule"):
        return [
            ScheduleStep(
                f"{type(settings.schedule).__name__}: the interval of a page that is gone",
                entry.fetch_interval,
            )
        ]
    longer = "gone: half as long again"
    before = fetch.fetch_interval or settings.schedule.default_interval
    text = "the interval before"
    if not fetch.fetch_interval:
        text = "the page had none: db.fetch.interval.default"
    if entry.fetch_interval < int(1.5 * before):
        longer += ", but less than db.fetch.interval.max"
    return [ScheduleStep(text, before), ScheduleStep(longer, entry.fetch_interval)]


def _fetched(
    url: str, pages: FetchRecords, fetch: CrawlDatum, entry: CrawlDatum, settings: UpdateSettings
) -> Iterable[ScheduleStep]:
    state = int(modification(pages, settings.needs_parse)[0])
    ((_, merged),) = crawldatum_columns.records(with_old_metadata(pages, pages.parsed))
    plan = settings.schedule.plan(url, merged, fetch.fetch_time, fetch.modified_time, state)
    yield ScheduleStep(f"the page: {_STATES[state]}")
    if entry.status == status.STATUS_DB_UNFETCHED:
        yield ScheduleStep(
            "the interval was beyond db.fetch.interval.max: to be fetched as if for the first time"
        )
    if _holds(plan, entry):
        yield from plan.steps
    else:
        yield ScheduleStep(
            f"{type(settings.schedule).__name__}: the interval", entry.fetch_interval
        )


def _holds(plan: PlannedFetch, entry: CrawlDatum) -> bool:
    """Returns True if the plan explains this entry; a user's schedule may go on from there."""
    return (plan.interval, plan.fetch_time) == (entry.fetch_interval, entry.fetch_time)


def _is_own(schedule: AbstractFetchSchedule, method: str) -> bool:
    """Returns True if the schedule does this as all of Nutch's do."""
    return getattr(type(schedule), method) is getattr(AbstractFetchSchedule, method)
