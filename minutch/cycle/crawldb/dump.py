"""readdb -dump and -topN: the entries of a CrawlDb, or some of them, written to part files in a new
folder.

    -dump    one file per partition; `ReaddbDumpOptions` says which entries, `dumpformats` how they
             look
    -topN    one file: score TAB URL, the highest score first, equal ones in the order of the URLs

Source: org.apache.nutch.crawl.CrawlDbReader (processDumpJob, CrawlDbDumpMapper, processTopNJob,
CrawlDbTopNMapper, CrawlDbTopNReducer).
"""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np
import polars as pl

from minutch.cycle.crawldb.dumpformats import FORMATS, DumpSettings
from minutch.cycle.crawldb.partitions import EntryFilter, EntrySources
from minutch.cycle.crawldb.store import CrawlDb
from minutch.errors import UsageError
from minutch.expressions import compile_expression
from minutch.hadoop.formats.batch import own_column
from minutch.hadoop.formats.javahash import float32, float_to_string
from minutch.job import Counters, JobContext
from minutch.records.crawldatum import status_name
from minutch.work.engine import Partition, Task, engine_of
from minutch.work.tables.compression import text_codec
from minutch.work.tables.database import part_name
from minutch.work.tables.frame import decode_keys, sort_by_key
from minutch.work.tables.install import mark_success
from minutch.work.tables.matching import matching
from minutch.work.tables.recordfiles import scan
from minutch.work.tables.shuffle import partition_of
from minutch.work.tables.spans import InputSplit
from minutch.work.tables.textparts import output_folder, require_absent, text_part

log = logging.getLogger(__name__)

WRITTEN: Final = "entries written"
LEFT_OUT: Final = "entries left out"

_MORE: Final = 500_000
"""Entries that may be held beside twice those that are asked for, until the highest of them are
looked for.
"""
_HASHES: Final = 1 << 30
_MIXER: Final = np.uint64(
    0x9E37_79B9_7F4A_7C15
)  # 2**64 divided by the golden ratio: spreads hashes that are close


@dataclass(frozen=True, slots=True)
class ReaddbDumpOptions:
    """The options of a dump; entries are written that meet all of its conditions."""

    kind: str = "normal"
    """A key of FORMATS."""
    regex: str | None = None
    """Python's regular expression for the whole URL."""
    retries: int | None = None
    """Number of retries, at least."""
    status: str | None = None
    """Name of the status, such as db_fetched."""
    expression: str | None = None
    """Jexl, true for the entries to write."""
    sample: float | None = None
    """Fraction of the entries to write."""

    def compiled(self) -> Callable[[pl.DataFrame], pl.DataFrame]:
        """Compiles the conditions to a function of tables. Raises UsageError, ExpressionError."""
        steps: list[Callable[[pl.DataFrame], pl.DataFrame]] = []
        if self.sample is not None and self.sample < 1:
            steps.append(_sampling(self.sample))
        if self.retries is not None and self.retries != -1:
            least = self.retries
            steps.append(lambda frame: frame.filter(pl.col("retries") >= least))
        if self.status is not None:
            codes = [code for code in range(0x100) if status_name(code) == self.status.lower()]
            steps.append(lambda frame: frame.filter(pl.col("status").is_in(codes)))
        if self.regex is not None:
            steps.append(_matching(self.regex))
        if self.expression is not None:
            steps.append(_satisfying(self.expression))

        def select(frame: pl.DataFrame) -> pl.DataFrame:
            for step in steps:
                frame = step(frame)
            return frame

        return select


def _sampling(fraction: float) -> Callable[[pl.DataFrame], pl.DataFrame]:
    """Returns about `fraction` of the entries: a hash of the URL decides, so that a sample can be
    repeated.
    """

    def select(frame: pl.DataFrame) -> pl.DataFrame:
        hashes = partition_of(frame["key"], _HASHES).to_numpy().astype(np.uint64) * _MIXER
        return frame.filter(pl.Series(hashes / 2.0**64 < fraction))

    return select


def _matching(regex: str) -> Callable[[pl.DataFrame], pl.DataFrame]:
    try:
        pattern = re.compile(regex)
    except re.error as exc:
        raise UsageError(f"-regex: can't use {regex!r}: {exc}") from exc

    def select(frame: pl.DataFrame) -> pl.DataFrame:
        return frame.filter(
            pl.Series(
                [bool(pattern.fullmatch(url)) for url in decode_keys(frame["key"])],
                dtype=pl.Boolean,
            )
        )

    return select


def _satisfying(text: str) -> Callable[[pl.DataFrame], pl.DataFrame]:
    expression = compile_expression(text)
    return lambda frame: frame.filter(matching(frame, expression))


def readdb_dump(
    crawldb: Path,
    output: Path,
    options: ReaddbDumpOptions = ReaddbDumpOptions(),
    *,
    context: JobContext,
) -> Counters:
    """Writes the entries of a CrawlDb to part files in the new directory `output`.

    Raises StoreError if there is no CrawlDb or `output` exists, FormatError for damage, UsageError
    and ExpressionError for conditions that are wrong.
    """
    log.info("CrawlDb dump: starting")
    log.info("CrawlDb db: %s", crawldb)
    db = CrawlDb(crawldb)
    require_absent(output)
    db.require_parts()
    options.compiled()  # before anything is read: it may be wrong
    if options.expression is not None:
        log.info("CrawlDb db: expr: %s", options.expression)
    counters = Counters({WRITTEN: 0})
    settings, engine = DumpSettings.from_conf(context.conf), engine_of(context.conf)

    def write_part(task: Task, partitions: Sequence[Partition]) -> None:
        select = options.compiled()
        with FORMATS[options.kind](task.folder / part_name(task.part), settings) as writer:
            for frame in partitions[0].sorted():
                chosen = select(frame)
                writer.write(chosen)
                task.counters.add(WRITTEN, len(chosen))
                task.counters.add(LEFT_OUT, len(frame) - len(chosen))
                task.advance(len(frame))

    with (
        output_folder(output) as folder,
        EntrySources([db], engine, EntryFilter(), spill=folder) as entries,
        context.progress("readdb -dump", db.estimate) as progress,
    ):
        engine.reduce(write_part, entries.sources, engine.parts, folder, counters, progress)
        mark_success(context.conf, folder)
    log.info("CrawlDb dump: done")
    return counters


@dataclass(frozen=True, slots=True)
class TopOptions:
    """The options of readdb -topN."""

    count: int = 1000
    """Number of entries to write, at most."""
    least: float = 0.0
    """Lowest score to write."""


def readdb_top(
    crawldb: Path, output: Path, options: TopOptions = TopOptions(), *, context: JobContext
) -> int:
    """Writes `score TAB URL` of the highest scores to a file in the new directory `output`.

    Returns the number of lines. Raises StoreError if there is no CrawlDb or `output` exists.
    """
    count, least, db = options.count, options.least, CrawlDb(crawldb)
    log.info("CrawlDb topN: starting (topN=%d, min=%s)", count, least)
    log.info("CrawlDb db: %s", crawldb)
    require_absent(output)
    db.require_parts()

    def highest_in(task: Task, piece: InputSplit) -> pl.DataFrame:
        def wanted() -> Iterator[pl.DataFrame]:
            for frame in scan(piece):
                task.advance(len(frame))
                yield frame.filter(~(pl.col("score") < float32(least))).select("key", "score")

        return _highest_of(wanted(), count)

    engine = engine_of(context.conf)
    with output_folder(output) as folder, context.progress("readdb -topN", db.estimate) as progress:
        top = _highest_of(
            engine.map(highest_in, engine.splits(db.parts()), Counters(), progress), count
        )
        with text_part(folder, 0, text_codec(context.conf)) as file:
            for key, score in top.iter_rows():
                file.write(b"%s\t%s\n" % (float_to_string(score).encode(), key))
        mark_success(context.conf, folder)
    log.info("CrawlDb topN: done, %d URLs", len(top))
    return len(top)


def _highest_of(tables: Iterable[pl.DataFrame], count: int) -> pl.DataFrame:
    """Returns the `count` highest scores of all tables (at least one), equal ones in the order of
    the keys.
    """
    held: list[pl.DataFrame] = []
    for table in tables:
        best = _highest(sort_by_key(table), count)
        whole = len(best) == len(table)  # what they lie in stays mapped anyway
        held.append(best if whole else best.with_columns(own_column(best["key"])))
        if sum(map(len, held)) > 2 * count + _MORE:
            held = [_highest(sort_by_key(pl.concat(held)), count)]
    return _highest(sort_by_key(pl.concat(held)), count)


def _highest(frame: pl.DataFrame, count: int) -> pl.DataFrame:
    """Returns the `count` highest scores, equal ones in the order of the table; NaN is above
    all.
    """
    order = frame.select(pl.arg_sort_by("score", descending=True, maintain_order=True)).to_series()
    return frame[order.head(count)]
