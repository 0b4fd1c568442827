"""MimeAdaptiveFetchSchedule: simulates the schedule for an HTML page that changes every 30 days."""

from __future__ import annotations

from typing import Final

from minutch.commands.arguments import Flag, parse
from minutch.cycle.crawldb.adaptive import MimeAdaptiveFetchSchedule, simulate
from minutch.hadoop.formats.writables import MapWritable, Text
from minutch.job import JobContext
from minutch.records.crawldatum import SECONDS_PER_DAY, STATUS_DB_UNFETCHED, CrawlDatum

USAGE: Final = "MimeAdaptiveFetchSchedule"
FLAGS: Final[tuple[Flag, ...]] = ()


def run(args: list[str], context: JobContext) -> int:
    """Runs the command; returns 0."""
    parse(args, FLAGS, usage=USAGE, most=0)
    page = CrawlDatum(STATUS_DB_UNFETCHED, 30 * SECONDS_PER_DAY, 1.0)
    page.metadata = MapWritable({Text("Content-Type"): Text("text/html; charset=utf-8")})
    simulate(
        MimeAdaptiveFetchSchedule(context.conf),
        "http://www.example.com",
        page,
        context.print,
        missed="\t missed",
    )
    return 0
