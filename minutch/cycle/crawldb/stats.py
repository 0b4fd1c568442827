"""readdb -stats: counts the entries of a CrawlDb, and prints the counts.

The order of the lines is that of Nutch's keys: interval, fetch time, retries, score, status. Fetch
times are in whole minutes; with `-sort` each status is followed by its hosts. An entry whose URL
has an empty host counts as a second line of its status there (Nutch splits the key at blanks).

Quantiles of scores are values of the sorted scores themselves: quantile q of n scores is the one
with the index floor(q * n), counted from 0. Nutch keeps a t-digest (MergingDigest), which comes to
the same as long as it holds each score by itself, and to a value near it where it has merged
scores; which ones depends on their order. The average is that of the sum rounded to 32 bits; Nutch
adds up 32-bit floats, in an order that its sort leaves open. Source:
org.apache.nutch.crawl.CrawlDbReader (CrawlDbStatMapper, CrawlDbStatReducer, processStatJob),
TimingUtil.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final

import numpy as np
import polars as pl
from numpy.typing import NDArray

from minutch.conf import Configuration
from minutch.cycle.crawldb.store import CrawlDb
from minutch.hadoop.formats.javahash import date_to_string, double_to_string, float32
from minutch.job import Counters, JobContext
from minutch.records.crawldatum import SECONDS_PER_DAY, status_name
from minutch.terminal import counted
from minutch.urls.hostcolumns import hosts_of
from minutch.work.engine import Task, engine_of
from minutch.work.tables.frame import decode_keys
from minutch.work.tables.recordfiles import scan
from minutch.work.tables.spans import InputSplit

Floats = NDArray[np.float32]

log = logging.getLogger(__name__)

QUANTILES_PROPERTY: Final = "db.stats.score.quantiles"
QUANTILES: Final = (0.01, 0.05, 0.1, 0.2, 0.25, 0.3, 0.4, 0.5, 0.6, 0.7, 0.75, 0.8, 0.9, 0.95, 0.99)
_FLOAT_MIN: Final = 1.401298464324817e-45  # where Nutch starts to look for the largest score
_MINUTE: Final = 60_000


@dataclass(frozen=True, slots=True)
class StatsOptions:
    """The options of readdb -stats."""

    hosts: bool = False
    """Whether the hosts of each status are counted."""


def readdb_stats(
    crawldb: Path, options: StatsOptions = StatsOptions(), *, context: JobContext
) -> CrawlDbStatistics:
    """Counts the entries of a CrawlDb. Raises StoreError (there is none), FormatError (damage)."""
    log.info("CrawlDb statistics start: %s", crawldb)
    db, engine, hosts = CrawlDb(crawldb), engine_of(context.conf), options.hosts
    total = CrawlDbStatistics(hosts=hosts, quantiles=_wanted_quantiles(context.conf))

    def count(task: Task, piece: InputSplit) -> CrawlDbStatistics:
        found = CrawlDbStatistics(hosts=hosts)
        for frame in scan(piece):
            found.add(frame)
            task.advance(len(frame))
        return found

    with context.progress("readdb -stats", db.estimate) as progress:
        for found in engine.map(count, engine.splits(db.require_parts()), Counters(), progress):
            total.merge(found)
    log.info("CrawlDb statistics: done")
    return total


class CrawlDbStatistics:
    """Counts of the entries of a CrawlDb, added table by table."""

    def __init__(self, *, hosts: bool = False, quantiles: Sequence[float] = QUANTILES) -> None:
        self.total = 0
        self._quantiles = quantiles
        self._hosts = hosts
        self._statuses: Counter[int] = Counter()
        self._retries: Counter[int] = Counter()
        self._by_host: Counter[tuple[int, str]] = Counter()
        self._times = Range()
        self._intervals = Range()
        self._scores: list[Floats] = []

    def add(self, frame: pl.DataFrame) -> None:
        """Counts the entries of a table."""
        self.total += len(frame)
        self._statuses.update(dict(frame["status"].value_counts().iter_rows()))
        self._retries.update(dict(frame["retries"].value_counts().iter_rows()))
        times = frame["fetch_time"]
        # Java's division goes towards zero.
        self._times.add(times // _MINUTE + ((times < 0) & (times % _MINUTE != 0)).cast(pl.Int64))
        self._intervals.add(frame["fetch_interval"].cast(pl.Int64))
        self._scores.append(frame["score"].to_numpy())
        if self._hosts:
            pairs = pl.DataFrame(
                {"status": frame["status"], "host": _hosts(frame["key"])}
            ).drop_nulls()
            counts = pairs.group_by("status", "host").len()
            self._by_host.update({(code, host): n for code, host, n in counts.iter_rows()})

    def merge(self, other: CrawlDbStatistics) -> None:
        """Adds the counts of later entries."""
        self.total += other.total
        self._statuses.update(other._statuses)
        self._retries.update(other._retries)
        self._by_host.update(other._by_host)
        self._times.merge(other._times)
        self._intervals.merge(other._intervals)
        self._scores += other._scores

    def lines(self) -> Iterator[str]:
        """Returns the lines of the table."""
        yield f"TOTAL urls:\t{self.total}"
        if not self.total:
            return
        yield f"shortest fetch interval:\t{days_hms(self._intervals.least)}"
        yield f"avg fetch interval:\t{days_hms(_quotient(self._intervals.sum, self.total))}"
        yield f"longest fetch interval:\t{days_hms(self._intervals.most)}"
        yield f"earliest fetch time:\t{iso_date(self._times.least * _MINUTE)}"
        yield f"avg of fetch times:\t{iso_date(_quotient(self._times.sum, self.total) * _MINUTE)}"
        yield f"latest fetch time:\t{iso_date(self._times.most * _MINUTE)}"
        for retries in sorted(self._retries, key=str):  # Nutch's keys are texts
            yield f"retry {retries}:\t{self._retries[retries]}"
        yield from self._score_lines()
        for code in sorted(self._statuses, key=str):  # also by text
            yield f"status {code} ({status_name(code)}):\t{self._statuses[code]}"
            for host in sorted(host for status, host in self._by_host if status == code):
                count = self._by_host[code, host]
                yield (
                    f"   {host} :\t{count}"
                    if host
                    else f"status {code} ({status_name(code)}):\t{count}"
                )

    def facts(self) -> dict[str, object]:
        """Returns the counts as JSON, by the keys that Nutch's REST service has
        (CrawlDbReader.query).

        Fetch times are in minutes (`ftn` the earliest, `ftx` the latest, `ftt` their sum),
        intervals in seconds.
        """
        found: dict[str, object] = {"totalUrls": str(self.total)}
        if not self.total:
            return found | {"status": {}}
        for name, kept in (("ft", self._times), ("fi", self._intervals)):
            found |= {
                f"{name}n": str(kept.least),
                f"{name}x": str(kept.most),
                f"{name}t": str(kept.sum),
            }
        found |= {
            f"retry {retries}": str(count) for retries, count in sorted(self._retries.items())
        }
        scores = np.concatenate(self._scores)
        valid = scores[~np.isnan(scores)]
        if len(valid) < len(scores):
            found["scNaN"] = str(len(scores) - len(valid))
        if len(valid):
            names = ("minScore", "maxScore", "avgScore")
            with np.errstate(invalid="ignore"):  # of both infinities the sum is NaN
                total = float(valid.sum(dtype=np.float64))
            values = (float(valid.min()), float(valid.max()), total / self.total)
            found |= {
                name: double_to_string(value) for name, value in zip(names, values, strict=True)
            }
        return found | {
            "status": {str(code): self._status_facts(code) for code in sorted(self._statuses)}
        }

    def _status_facts(self, code: int) -> dict[str, object]:
        hosts = {
            host: str(count)
            for (status, host), count in sorted(self._by_host.items())
            if status == code
        }
        known: dict[str, object] = {
            "statusValue": status_name(code),
            "count": str(self._statuses[code]),
        }
        return known | ({"hostValues": hosts} if hosts else {})

    def _score_lines(self) -> Iterator[str]:
        # NaN comes last.
        scores = np.sort(np.concatenate(self._scores) + np.float32(0))  # makes all zeros positive
        valid = scores[: len(scores) - np.isnan(scores).sum()]
        if len(valid) < len(scores):
            yield f"score == NaN:\t{len(scores) - len(valid)}"
        if not len(valid):
            return
        with np.errstate(invalid="ignore"):  # infinities of both signs
            total = float32(float(valid.sum(dtype=np.float64)))
        for q, value in zip(self._quantiles, quantiles(valid, self._quantiles), strict=True):
            yield f"score quantile {double_to_string(q)}:\t{double_to_string(value)}"
        yield f"min score:\t{double_to_string(float(valid[0]))}"
        yield f"avg score:\t{double_to_string(total / self.total)}"
        yield f"max score:\t{double_to_string(max(float(valid[-1]), _FLOAT_MIN))}"


class Range:
    """Smallest, largest and sum of integers."""

    def __init__(self) -> None:
        self.least, self.most, self.sum = (1 << 63) - 1, -(1 << 63), 0

    def add(self, values: pl.Series) -> None:
        """Includes the values of a column."""
        if len(values):
            array = values.to_numpy()
            self.least = min(self.least, int(array.min()))
            self.most = max(self.most, int(array.max()))
            self.sum += int(array.sum())

    def merge(self, other: Range) -> None:
        """Includes another range."""
        self.least, self.most = min(self.least, other.least), max(self.most, other.most)
        self.sum += other.sum


def _hosts(keys: pl.Series) -> pl.Series:
    """Returns the host of each URL as java.net.URL has it, null where it is no URL."""
    hosts = hosts_of(decode_keys(keys))
    if hosts.null_count():
        log.error(
            "%s without a host: keys that are no URLs", counted(hosts.null_count(), "entries")
        )
    return hosts


def quantiles(ordered: Floats, wanted: Sequence[float]) -> list[float]:
    """Returns the quantiles `wanted` (0 to 1) of scores that ascend."""
    last = len(ordered) - 1
    return [float(ordered[min(int(q * len(ordered)), last)]) for q in wanted]


def _wanted_quantiles(conf: Configuration) -> Sequence[float]:
    """Reads `db.stats.score.quantiles`, sorted, else the usual ones."""
    if conf.get(QUANTILES_PROPERTY) is None:
        return QUANTILES
    found = []
    for text in conf.get_strings(QUANTILES_PROPERTY):
        try:
            value = float(text)
        except ValueError:
            value = -1.0
        if 0 <= value <= 1:
            found.append(value)
        else:
            log.warning("%s: expected numbers from 0 to 1; skipped %s", QUANTILES_PROPERTY, text)
    return sorted(found)


def _quotient(total: int, count: int) -> int:
    """Java's integer division, towards zero."""
    return -(-total // count) if total < 0 else total // count


def days_hms(seconds: int) -> str:
    """Returns a span of time as TimingUtil.secondsToDaysHMS prints it: `31 days, 00:44:02`."""
    days = _quotient(seconds, SECONDS_PER_DAY)
    rest = seconds - days * SECONDS_PER_DAY
    sign, rest = "-" if rest < 0 else "", abs(rest)
    numbers = rest // 3600, rest // 60 % 60, rest % 60
    hours, minutes, secs = (f"{sign if n else ''}{n:02d}" for n in numbers)
    return f"{days} days, {hours}:{minutes}:{secs}" if days else f"{hours}:{minutes}:{secs}"


def iso_date(ms: int) -> str:
    """Returns a time as Nutch's log prints a Date: `2026-11-21T06:44:00.000+0000`; years beyond
    four digits as Date does.
    """
    try:
        moment = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(milliseconds=ms)
    except OverflowError:
        return date_to_string(ms)
    return f"{moment:%Y-%m-%dT%H:%M:%S}.{moment.microsecond // 1000:03d}+0000"
