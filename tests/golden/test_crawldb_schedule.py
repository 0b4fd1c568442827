"""The fetch schedules against a table of what Nutch's own classes computed, exact to the
millisecond, but for the shortest interval, which a page's next fetch keeps.
"""

import csv
import gzip
from collections.abc import Iterator
from functools import cache

import polars as pl

from minutch.conf import Configuration
from minutch.cycle.crawldb.adaptive import AdaptiveFetchSchedule
from minutch.cycle.crawldb.schedule import AbstractFetchSchedule, fetch_schedule
from minutch.hadoop.formats.writables import FloatWritable, MapWritable, Text
from minutch.records import crawldatum_columns
from minutch.records.crawldatum import CrawlDatum
from tests.support.examples import every, tabled
from tests.support.golden import GOLDEN, needs_golden

pytestmark = needs_golden("tables/schedule.csv.gz")

JAVA = "org.apache.nutch.crawl."
ADAPTIVE = "db.fetch.schedule.adaptive."
CLASS = "db.fetch.schedule.class"
# The settings under which each part of the table was computed.
SETTINGS = {
    "default": {},
    "default-short": {"db.fetch.interval.default": "3600", "db.fetch.interval.max": "86400"},
    "adaptive": {CLASS: JAVA + "AdaptiveFetchSchedule"},
    "mime": {CLASS: JAVA + "MimeAdaptiveFetchSchedule"},
    "adaptive-nosync": {CLASS: JAVA + "AdaptiveFetchSchedule", ADAPTIVE + "sync_delta": "false"},
    "adaptive-inc4dec1": {
        CLASS: JAVA + "AdaptiveFetchSchedule",
        ADAPTIVE + "inc_rate": "0.4",
        ADAPTIVE + "dec_rate": "0.1",
        ADAPTIVE + "sync_delta_rate": "0.35",
    },
    "adaptive-range": {
        CLASS: JAVA + "AdaptiveFetchSchedule",
        ADAPTIVE + "min_interval": "7200",
        ADAPTIVE + "max_interval": "604800",
        ADAPTIVE + "inc_rate": "0.4",
        ADAPTIVE + "dec_rate": "0.2",
        ADAPTIVE + "sync_delta": "false",
    },
    "adaptive-range-sync": {
        CLASS: JAVA + "AdaptiveFetchSchedule",
        "db.fetch.interval.default": "86400",
        "db.fetch.interval.max": "200000",
        ADAPTIVE + "min_interval": "600.5",
        ADAPTIVE + "max_interval": "100000.25",
        ADAPTIVE + "inc_rate": "0.33",
        ADAPTIVE + "dec_rate": "0.77",
        ADAPTIVE + "sync_delta_rate": "0.5",
    },
}
CONFIGS = tuple(SETTINGS)
Row = dict[str, str]


@cache
def _rows() -> list[Row]:
    with gzip.open(GOLDEN / "tables/schedule.csv.gz", "rt", encoding="utf-8") as lines:
        return list(csv.DictReader(lines))


def table(config: str) -> list[Row]:
    """The rows of a part, without pages that are gone and have no interval: Nutch lets them have
    none, and asks for them in every round.
    """
    rows_of_part = [row for row in _rows() if row["config"] == config]
    assert len(rows_of_part) == 600
    return [row for row in rows_of_part if (row["op"], row["in_interval"]) != ("gone", "0")]


def schedule(config: str) -> AbstractFetchSchedule:
    return fetch_schedule(Configuration.load([GOLDEN / "tables/conf"], overrides=SETTINGS[config]))


def datum(row: Row) -> CrawlDatum:
    metadata = MapWritable()
    fixed, _, mime = row["in_fixed"].partition("/")
    if fixed:
        metadata[Text("fixedInterval")] = FloatWritable(float(fixed))
    if mime:
        metadata.set_text("Content-Type", mime)
    return CrawlDatum(
        int(row["in_status"]),
        int(row["in_interval"]),
        1.0,
        int(row["in_fetchTime"]),
        int(row["in_modTime"]),
        int(row["in_retries"]),
        b"\1\2\3",
        metadata,
    )


def outcome(d: CrawlDatum, result: object = "") -> tuple[object, ...]:
    signature = "null" if d.signature is None else d.signature.hex()
    return (
        d.status,
        d.fetch_time,
        d.fetch_interval,
        d.retries,
        d.modified_time,
        signature,
        str(result).lower(),
    )


def expected(row: Row, sched: AbstractFetchSchedule) -> tuple[object, ...]:
    """What Nutch computed; sync_delta lets its fetches be nearer than the shortest interval."""
    numbers = [
        int(row["out_" + name])
        for name in ("status", "fetchTime", "interval", "retries", "modTime")
    ]
    if row["op"] == "set":
        fetched, wait = int(row["fetchTime"]), numbers[1] - int(row["fetchTime"])
        if isinstance(sched, AdaptiveFetchSchedule) and not row["in_fixed"].partition("/")[0]:
            wait = max(wait, round(sched.bounds(row["url"])[0] * 1000))
        numbers[1] = fetched + wait
    return *numbers, row["out_sig"], row["result"]


def run_row(sched: AbstractFetchSchedule, row: Row) -> tuple[object, ...]:
    d, url = datum(row), row["url"]
    previous = int(row["prevFetchTime"]), int(row["prevModTime"])
    fetched, last = int(row["fetchTime"]), row["state_or_cur"]
    match row["op"]:
        case "set":
            sched.set_fetch_schedule(url, d, *previous, fetched, int(row["modTime"]), int(last))
        case "gone":
            sched.set_page_gone_schedule(url, d, *previous, fetched)
        case "retry":
            sched.set_page_retry_schedule(url, d, *previous, fetched)
        case "should":
            return outcome(d, sched.should_fetch(url, d, int(last)))
        case "lastfetch":
            return outcome(d, sched.calculate_last_fetch_time(d))
        case "force":
            sched.force_refetch(url, d, False, 0)
    return outcome(d)


def run_columns(
    sched: AbstractFetchSchedule, row_list: list[Row], op: str
) -> Iterator[tuple[object, ...]]:
    frame = crawldatum_columns.to_frame((row["url"], datum(row)) for row in row_list)

    def column(name: str) -> pl.Series:
        return pl.Series([int(row[name]) for row in row_list], dtype=pl.Int64)

    previous = column("prevFetchTime"), column("prevModTime"), column("fetchTime")
    results: list[object] = [""] * len(row_list)
    match op:
        case "set":
            frame = sched.set_fetch_schedule_columns(
                frame, *previous, column("modTime"), column("state_or_cur")
            )
        case "gone":
            frame = sched.set_page_gone_schedule_columns(frame, *previous)
        case "retry":
            frame = sched.set_page_retry_schedule_columns(frame, *previous)
        case "lastfetch":
            results = sched.calculate_last_fetch_time_columns(frame).to_list()
        case "force":
            frame = sched.force_refetch_columns(frame, False, 0)
    return (
        outcome(d, result)
        for (_, d), result in zip(crawldatum_columns.records(frame), results, strict=True)
    )


@tabled("config", CONFIGS)
def test_each_record(config: str) -> None:
    sched = schedule(config)
    table_rows = table(config)
    wrong = [
        (row, found) for row in table_rows if (found := run_row(sched, row)) != expected(row, sched)
    ]
    assert not wrong


@tabled("config", CONFIGS)
@tabled("op", ["set", "gone", "retry", "lastfetch", "force"])
def test_as_columns(config: str, op: str) -> None:
    table_rows = [row for row in table(config) if row["op"] == op][:: every(4)]
    sched = schedule(config)
    found = run_columns(sched, table_rows, op)
    wrong = [
        (row, f) for row, f in zip(table_rows, found, strict=True) if f != expected(row, sched)
    ]
    assert table_rows
    assert not wrong


@tabled("config", CONFIGS)
def test_due_pages_as_columns(config: str) -> None:
    sched = schedule(config)
    for row in [row for row in table(config) if row["op"] == "should"][:: every(4)]:
        frame = crawldatum_columns.to_frame([(row["url"], datum(row))])
        frame, due = sched.should_fetch_columns(frame, int(row["state_or_cur"]))
        ((_, d),) = crawldatum_columns.records(frame)
        assert outcome(d, due[0]) == expected(row, sched)
