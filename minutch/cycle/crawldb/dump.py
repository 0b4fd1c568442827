"""readdb -dump and -topN: the entries of a CrawlDb, or some of them, written to part files in a new
folder.

    -dump    one file per partition; a `Selection` says which entries, `dumpformats` how they look
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

from minutch.cycle.crawldb.dumpformats import FORMATS
from minutch.cycle.crawldb.partitions import Entries, EntryFilter
from minutch.cycle.crawldb.store import CrawlDb
from minutch.errors import UsageError
from minutch.expressions import compile_expression
from minutch.hadoop.formats.batch import own_column
from minutch.hadoop.formats.javahash import float32, float_to_string
from minutch.job import Counters, JobContext
from minutch.records.crawldatum import status_name
from minutch.work.engine import Partition, Task, engine_of
from minutch.work.tables.crawldata import scan
from minutch.work.tables.database import part_name
from minutch.work.tables.frame import decode_keys
from minutch.work.tables.matching import matching
from minutch.work.tables.merge import sort_by_key
from minutch.work.tables.shuffle import partition_of
from minutch.work.tables.spans import FileOrSplit
from minutch.work.tables.success import mark_success
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


@dataclass(frozen=True)
class Selection:
    """Which entries are written: those that meet all given conditions."""

    regex: str | None = None
    retry: int | None = None
    status: str | None = None
    expr: str | None = None
    sample: float | None = None

    def compiled(self) -> Callable[[pl.DataFrame], pl.DataFrame]:
        """The selection as a function of tables. Raises UsageError, ExpressionError for invalid
        conditions.
        """
        steps: list[Callable[[pl.DataFrame], pl.DataFrame]] = []
        if self.sample is not None and self.sample < 1:
            steps.append(_sampling(self.sample))
        if self.retry is not None and self.retry != -1:
            least = self.retry
            steps.append(lambda frame: frame.filter(pl.col("retries") >= least))
        if self.status is not None:
            codes = [code for code in range(0x100) if status_name(code) == self.status.lower()]
            steps.append(lambda frame: frame.filter(pl.col("status").is_in(codes)))
        if self.regex is not None:
            steps.append(_matching(self.regex))
        if self.expr is not None:
            steps.append(_satisfying(self.expr))

        def select(frame: pl.DataFrame) -> pl.DataFrame:
            for step in steps:
                frame = step(frame)
            return frame

        return select


def _sampling(fraction: float) -> Callable[[pl.DataFrame], pl.DataFrame]:
    """About `fraction` of the entries: a hash of the URL decides, so that a sample can be
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


def dump(db: CrawlDb, out: Path, context: JobContext, kind: str, selection: Selection) -> Counters:
    """Write the selected entries of `db` to part files in the new directory `out`; `kind` is a key
    of FORMATS.

    Raises StoreError if there is no CrawlDb or `out` exists, FormatError for damage.
    """
    require_absent(out)
    db.require_parts()
    conf = context.conf
    selection.compiled()  # before anything is read: it may be wrong
    if selection.expr is not None:
        log.info("CrawlDb db: expr: %s", selection.expr)
    counters = Counters()
    counters.add(WRITTEN, 0)

    def write_part(task: Task, partitions: Sequence[Partition]) -> None:
        select = selection.compiled()
        with FORMATS[kind](task.folder / part_name(task.part), conf) as writer:
            for frame in partitions[0].sorted():
                chosen = select(frame)
                writer.write(chosen)
                task.counters.add(WRITTEN, len(chosen))
                task.counters.add(LEFT_OUT, len(frame) - len(chosen))
                task.advance(len(frame))

    with (
        output_folder(out) as folder,
        Entries([db], conf, EntryFilter.neutral(conf), spill=folder) as entries,
        context.progress("readdb -dump", db.estimate) as progress,
    ):
        engine_of(conf).reduce(
            write_part, entries.sources, entries.parts, folder, counters, progress
        )
        mark_success(conf, folder)
    return counters


def write_top(db: CrawlDb, count: int, least: float, out: Path, context: JobContext) -> int:
    """Write `score TAB URL` of the `count` highest scores from `least` up to a file in the new
    directory `out`.

    Returns how many there are. Raises StoreError if there is no CrawlDb or `out` exists.
    """
    require_absent(out)
    db.require_parts()

    def highest_in(task: Task, place: FileOrSplit) -> pl.DataFrame:
        def wanted() -> Iterator[pl.DataFrame]:
            for frame in scan(place):
                task.advance(len(frame))
                yield frame.filter(~(pl.col("score") < float32(least))).select("key", "score")

        return _highest_of(wanted(), count)

    engine = engine_of(context.conf)
    with output_folder(out) as folder, context.progress("readdb -topN", db.estimate) as progress:
        top = _highest_of(
            engine.map(highest_in, engine.splits(db.parts()), Counters(), progress), count
        )
        with text_part(folder, 0, context.conf) as file:
            for key, score in top.iter_rows():
                file.write(b"%s\t%s\n" % (float_to_string(score).encode(), key))
        mark_success(context.conf, folder)
    return len(top)


def _highest_of(tables: Iterable[pl.DataFrame], count: int) -> pl.DataFrame:
    """The `count` highest scores of all tables (at least one), equal ones in the order of the
    keys.
    """
    held: list[pl.DataFrame] = []
    for table in tables:
        best = _highest(table, count)
        whole = len(best) == len(table)  # what they lie in stays mapped anyway
        held.append(best if whole else best.with_columns(own_column(best["key"])))
        if sum(map(len, held)) > 2 * count + _MORE:
            held = [_highest(sort_by_key(pl.concat(held)), count)]
    return _highest(sort_by_key(pl.concat(held)), count)


def _highest(frame: pl.DataFrame, count: int) -> pl.DataFrame:
    """The `count` highest scores, equal ones in the order of the table; NaN is above all."""
    order = frame.select(pl.arg_sort_by("score", descending=True, maintain_order=True)).to_series()
    return frame[order.head(count)]
