"""Simulates what a fetch schedule would do with the pages of a crawl, judged by how often these
were seen to change.

The schedule and its settings are those of the configuration, `-D` included; beside them stand the
settings of the configuration files alone, and for each the best that anybody could do with as many
fetches (`rates.best`). Pages are the entries of the CrawlDb with a copy; what is yet to be fetched,
gone or a redirect is left out.
"""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

import numpy as np
import polars as pl
from numpy.typing import NDArray

from minutch import strictjson
from minutch.annexes.simulate.forecast import DAY, ForecastOptions, ForecastPages, forecast
from minutch.annexes.simulate.simulated import ScheduleResult, Simulated, as_json, svg, text
from minutch.commands.arguments import Arguments
from minutch.conf import Configuration, Settings, made_by, prop
from minutch.cycle.crawldb.schedule import PROPERTY, AbstractFetchSchedule, fetch_schedule
from minutch.cycle.crawldb.store import CrawlDb
from minutch.cycle.fetchlist.select import descending, ranks_of, url_hashes
from minutch.cycle.fetchlist.select import mixed as mixed_32
from minutch.errors import MinutchError, StoreError
from minutch.inspect.query.crawl import CrawlFolder, open_crawl
from minutch.inspect.report.rates import (
    Bits,
    Floats,
    Ints,
    Observations,
    best,
    drawn_rates,
    mixed_bits,
    uniform,
)
from minutch.job import JobContext
from minutch.records.crawldatum import STORED
from minutch.work.engine.selection import Ranks
from minutch.work.tables.frame import decode_keys
from minutch.work.tables.install import WholeFile

# Samples the pages of a simulation from a CrawlDb, and reads what fetches saw of them from the
# segments.
#
# If there are more pages than requested, those with the lowest hashes are taken: the same at each
# run, and in bounded memory.

_SPARE: Final = 2
"""Multiple of the requested pages that is kept before some are dropped."""
_SEEN: Final = ("fetch_success", "fetch_notmodified")


@dataclass(frozen=True)
class Sample:
    """Entries of a CrawlDb (CRAWLDB_SCHEMA without signatures), and how many there are."""

    entries: pl.DataFrame
    hashes: Bits
    ranks: Ranks
    """The order in which generate takes them: ascending."""
    pages: int
    """All entries that have a copy."""
    others: int
    """Number of entries without a copy."""

    @property
    def share(self) -> float:
        """Share of all pages that the sample is."""
        return len(self.entries) / self.pages if self.pages else 1.0


def sample_pages(db: CrawlDb, most: int) -> Sample:
    """Returns at most so many pages of a CrawlDb. Raises StoreError, FormatError."""
    kept: list[pl.DataFrame] = []
    count = pages = others = 0
    for index in range(len(db.require_parts())):
        for frame in db.scan_part(index):
            held = frame.filter(pl.col("status").is_in(STORED))
            pages, others = pages + len(held), others + len(frame) - len(held)
            kept.append(_lean(held))
            count += len(held)
            if count > _SPARE * most:
                kept = [_lowest(pl.concat(kept), most)]
                count = len(kept[0])
    entries = _lowest(pl.concat(kept), most) if kept else _lean(pl.DataFrame())
    hashes = entries["hash"].to_numpy()
    ranks = ranks_of(descending(entries["score"]), mixed_32(url_hashes(entries["key"])))
    return Sample(entries.drop("hash"), hashes, ranks, pages, others)


def _lean(held: pl.DataFrame) -> pl.DataFrame:
    """Adds a hash, and drops what a simulation does not need."""
    java = url_hashes(held["key"]).astype(np.uint64)
    sizes = held["key"].bin.size().to_numpy().astype(np.uint64)
    hashes = mixed_bits(java | sizes << np.uint64(32))
    return held.with_columns(signature=pl.lit(None, pl.Binary), hash=pl.Series(hashes))


def _lowest(entries: pl.DataFrame, most: int) -> pl.DataFrame:
    """Returns the entries with the lowest hashes, in their order."""
    if len(entries) <= most:
        return entries
    rows = entries.with_row_index("row").sort("hash", "key").head(most).sort("row")
    return rows.drop("row")


@dataclass(frozen=True)
class PageHistory:
    """The segments' observations of the pages of a sample."""

    watched: Observations
    last: NDArray[np.int64]
    """The time each page was seen last (ms); 0 if the segments do not tell."""


def history(crawl: CrawlFolder, sample: Sample) -> PageHistory:
    """Returns the fetches of the pages of a sample, each compared with the one before. Raises
    FormatError.

    A fetch counts if it tells one version of a page from another: it was answered with 304, or its
    page was parsed and has a digest.
    """
    keys = pl.DataFrame({"url": decode_keys(sample.entries["key"])}).with_row_index("page")
    fetches = crawl.tables["pages"].scan().select("url", "status", "fetch_time", "digest")
    seen = fetches.filter(pl.col("status").is_in(_SEEN)).join(keys.lazy(), on="url", how="inner")
    same = (pl.col("status") == "fetch_notmodified").alias("same")
    digest = (
        pl.when(pl.col("digest").is_not_null()).then(pl.col("digest").hash()).alias("digest")
    )  # null has one, too
    columns = seen.select("page", pl.col("fetch_time").dt.epoch("ms").alias("time"), same, digest)
    table = columns.collect(engine="streaming").sort("page", "time", "same")
    return compared(table, len(sample.entries))


def compared(table: pl.DataFrame, count: int) -> PageHistory:
    """Compares fetches with those before. `table` has page, time (ms), same (if the server said so)
    and digest (a number, or null), sorted by page, time.
    """
    page, time = table["page"].to_numpy().astype(np.int64), table["time"].to_numpy()
    same, digest = table["same"].to_numpy(), table["digest"].fill_null(0).to_numpy()
    known = same | table["digest"].is_not_null().to_numpy()
    page, time, same, digest = page[known], time[known], same[known], digest[known]
    last = np.zeros(count, np.int64)
    last[page] = time  # the last one of each page stays
    rows = np.arange(len(page))
    starts = (
        np.maximum.accumulate(np.where(np.diff(page, prepend=-1) != 0, rows, 0))
        if len(page)
        else rows
    )
    version = (
        np.maximum.accumulate(np.where(same, -1, rows)) if len(page) else rows
    )  # whose digest it still has
    before = np.concatenate([[-1], version[:-1]]) if len(page) else rows
    days = np.diff(time, prepend=0) / DAY
    has_before = (rows > starts) & (days > 0)
    comparable = has_before & (same | (before >= starts))
    changed = ~same & (digest != digest[np.maximum(before, 0)])
    return PageHistory(Observations(page[comparable], days[comparable], changed[comparable]), last)


_LEAST_SHARE: Final = 1e-12
"""Of a page with a score of 0, for which no fetch would be worth anything."""
_RATE_TURN: Final = 0
"""The turn of chance in which rates are drawn; rounds come after it."""


@dataclass(frozen=True)
class Candidate(Settings):
    """A schedule to simulate."""

    name: str
    schedule: AbstractFetchSchedule = made_by(fetch_schedule)
    max_interval: int = prop("db.fetch.interval.max")  # s


def simulate(
    crawl: CrawlFolder,
    candidates: Iterable[Candidate],
    options: ForecastOptions,
    *,
    most: int,
    assumed: float | None,
    context: JobContext,
) -> Simulated:
    """Simulates each of the schedules. Raises StoreError, FormatError, and MinutchError without any
    history.
    """
    sample = sample_pages(CrawlDb(crawl.path / "crawldb"), most)
    if not len(sample.entries):
        raise MinutchError(
            f"{crawl.path}: no page of this crawl was fetched, so there is nothing to simulate"
        )
    seen = history(crawl, sample)
    rates = _rates(sample, seen.watched, assumed, options.seed, crawl.path)
    scaled = replace(
        options, budget=None if options.budget is None else options.budget * sample.share
    )
    outcomes = []
    for each in candidates:
        ages = _ages(each.schedule, sample, seen.last, options.now)
        pages = ForecastPages(sample.entries, rates, ages, sample.hashes, sample.ranks)
        with context.progress(f"simulate {each.name}", options.days, unit="days") as progress:
            came = forecast(each.schedule, pages, scaled, each.max_interval, progress.advance)
        bounds = (
            best(rates, pages.age, options.days, float(came.fetches.sum()), weight).fresh_days
            / options.days
            for weight in (1 / len(pages), np.maximum(pages.shares, _LEAST_SHARE))
        )
        outcomes.append(ScheduleResult(each.name, came, *bounds))
    watched = seen.watched
    return Simulated(
        options,
        sample.pages,
        len(sample.entries),
        sample.others,
        len(np.unique(watched.page)),
        len(watched),
        int(watched.changed.sum()),
        _always(watched),
        float(np.mean(rates)),
        float(np.median(rates)),
        outcomes,
    )


def _always(watched: Observations) -> int:
    """Returns the number of pages of which every fetch found a change."""
    steady = np.unique(watched.page[~watched.changed])
    return len(np.unique(watched.page)) - len(steady)


def _rates(
    sample: Sample, watched: Observations, assumed: float | None, seed: int, path: Path
) -> Floats:
    """Returns the changes a day of each page."""
    count = len(sample.entries)
    if not len(watched) and assumed is None:
        raise MinutchError(
            f"{path}: no page was fetched twice and parsed, so nothing is known of changes",
            hint="-assume 30 assumes that pages change every 30 days",
        )
    rates = np.full(count, 0.0 if assumed is None else 1 / assumed)
    if len(watched):
        found = drawn_rates(watched, count, sample.hashes, uniform(sample.hashes, seed, _RATE_TURN))
        known = np.full(count, assumed is None)
        known[watched.page] = True
        rates[known] = found[known]
    return rates


def _ages(schedule: AbstractFetchSchedule, sample: Sample, last: Ints, now: int) -> Floats:
    """Returns the days since pages were fetched: by the segments, or else by the schedule."""
    reckoned = schedule.calculate_last_fetch_time_columns(sample.entries).to_numpy()
    ages: Floats = np.maximum(now - np.where(last > 0, last, reckoned), 0) / DAY
    return ages


# -- the command ---------------------------------------------------------------------------------

SCHEDULES: Final = {
    "default": "org.apache.nutch.crawl.DefaultFetchSchedule",
    "adaptive": "org.apache.nutch.crawl.AdaptiveFetchSchedule",
    "mimeadaptive": "org.apache.nutch.crawl.MimeAdaptiveFetchSchedule",
    "fresh": "minutch.cycle.crawldb.fresh:FreshnessFetchSchedule",
}
DAYS: Final = 90
MOST_DAYS: Final = 3660
MOST_ROUNDS: Final = 24
SAMPLE: Final = 1_000_000


def run(arguments: Arguments, context: JobContext) -> int:
    """Runs the command; exit code 0."""
    options = ForecastOptions(
        context.clock.now(),
        arguments.get("-days", DAYS),
        arguments.get("-rounds", 1),
        arguments["-budget"],
        arguments.get("-seed", 0),
    )
    if options.days > MOST_DAYS or options.rounds > MOST_ROUNDS:
        arguments.fail(f"expected at most {MOST_DAYS} days and {MOST_ROUNDS} rounds a day")
    candidates = _candidates(context.conf, arguments["-schedule"])
    crawl = open_crawl(arguments["crawl"])
    most, assumed = arguments.get("-sample", SAMPLE), arguments["-assume"]
    with nullcontext() if arguments["-svg"] is None else _picture(arguments["-svg"]) as picture:
        found = simulate(crawl, candidates, options, most=most, assumed=assumed, context=context)
        if picture is not None:
            picture.write(svg(found).encode())
    if arguments["-json"]:
        context.print(strictjson.dumps(as_json(found), indent=2))
    else:
        context.print(text(found))
    return 0


def _picture(path: Path) -> WholeFile:
    """Opened before the work begins, so that a place that can't be written is known at once."""
    try:
        return WholeFile(path, sums=False)
    except OSError as exc:
        raise StoreError(f"can't write {path}: {exc.strerror or exc}") from exc


def _candidates(conf: Configuration, names: str | None) -> list[Candidate]:
    """Returns the settings of the files first, then those that the command line names."""
    current = conf.of_files()
    found = [Candidate.from_conf(current, name=f"now: {_short(current)}")]
    for name in (
        [] if names is None else [name.strip() for name in names.split(",") if name.strip()]
    ):
        chosen = conf.with_values({PROPERTY: SCHEDULES.get(name.lower(), name)})
        found.append(Candidate.from_conf(chosen, name=_short(chosen)))
    if names is None and any(conf.source(name) == "command line" for name in conf):
        found.append(Candidate.from_conf(conf, name=_short(conf)))
    return found


def _short(conf: Configuration) -> str:
    """Returns a schedule's short name."""
    name = conf.get_trimmed(PROPERTY) or SCHEDULES["default"]
    return next(
        (short for short, long in SCHEDULES.items() if long == name), name.rpartition(".")[2]
    )
