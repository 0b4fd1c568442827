"""AdaptiveFetchSchedule: simulates the schedule for a page that changes every 30 days."""

from __future__ import annotations

from typing import Final

from minutch.commands.arguments import Flag, parse
from minutch.cycle.crawldb.adaptive import AdaptiveFetchSchedule, simulate
from minutch.job import JobContext
from minutch.records.crawldatum import SECONDS_PER_DAY, STATUS_DB_UNFETCHED, CrawlDatum

USAGE: Final = "AdaptiveFetchSchedule"
FLAGS: Final[tuple[Flag, ...]] = ()


def run(args: list[str], context: JobContext) -> int:
    """Runs the command; returns 0."""
    parse(args, FLAGS, usage=USAGE, most=0)
    page = CrawlDatum(STATUS_DB_UNFETCHED, 30 * SECONDS_PER_DAY, 1.0)
    simulate(AdaptiveFetchSchedule(context.conf), "", page, context.print)
    return 0
