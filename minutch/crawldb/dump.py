"""readdb -dump: the entries of a CrawlDb, or some of them, written to one file per partition.

Which entries is decided by a `Selection`, how they look by `dumpformats`.
Matched: org.apache.nutch.crawl.CrawlDbReader (processDumpJob, CrawlDbDumpMapper).
"""

from __future__ import annotations

import logging
import random
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import polars as pl

from minutch.crawldb.dumpformats import FORMATS
from minutch.crawldb.filtering import EntryFilter
from minutch.crawldb.partitions import Entries
from minutch.crawldb.store import CrawlDb
from minutch.errors import StoreError, UsageError
from minutch.expressions import compile_expression
from minutch.job import Counters, JobContext
from minutch.records.crawldatum import status_name
from minutch.tables.database import part_name
from minutch.tables.frame import decode_keys
from minutch.tables.matching import matching

log = logging.getLogger(__name__)

WRITTEN: Final = "entries written"
LEFT_OUT: Final = "entries left out"


@dataclass(frozen=True)
class Selection:
    """Which entries are written: those that all given conditions let through."""

    regex: str | None = None
    retry: int | None = None
    status: str | None = None
    expr: str | None = None
    sample: float | None = None

    def compiled(self) -> Callable[[pl.DataFrame], pl.DataFrame]:
        """The selection as a function of tables. Raises UsageError, ExpressionError for what can't be understood."""
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
            log.info("CrawlDb db: expr: %s", self.expr)
            steps.append(_satisfying(self.expr))

        def select(frame: pl.DataFrame) -> pl.DataFrame:
            for step in steps:
                frame = step(frame)
            return frame

        return select


def _sampling(fraction: float) -> Callable[[pl.DataFrame], pl.DataFrame]:
    def select(frame: pl.DataFrame) -> pl.DataFrame:
        return frame.filter(pl.Series([random.random() <= fraction for _ in range(len(frame))], dtype=pl.Boolean))

    return select


def _matching(regex: str) -> Callable[[pl.DataFrame], pl.DataFrame]:
    try:
        pattern = re.compile(regex)
    except re.error as exc:
        raise UsageError(f"-regex: can't use {regex!r}: {exc}") from exc

    def select(frame: pl.DataFrame) -> pl.DataFrame:
        return frame.filter(
            pl.Series([bool(pattern.fullmatch(url)) for url in decode_keys(frame["key"])], dtype=pl.Boolean)
        )

    return select


def _satisfying(text: str) -> Callable[[pl.DataFrame], pl.DataFrame]:
    expression = compile_expression(text)
    return lambda frame: frame.filter(matching(frame, expression))


def dump(db: CrawlDb, out: Path, context: JobContext, kind: str, selection: Selection) -> Counters:
    """Write the selected entries of `db` to part files in the new directory `out`; `kind` is a key of FORMATS.

    Raises StoreError if there is no CrawlDb or `out` exists, FormatError for damage.
    """
    if out.exists():
        raise StoreError(f"Output directory {out} already exists")
    db.require_parts()
    select = selection.compiled()
    counters = Counters()
    counters.add(WRITTEN, 0)
    neutral = EntryFilter(context.conf.with_values(dict.fromkeys(EntryFilter.PURGES, "false")))
    with Entries([db], context.conf, neutral) as entries, context.progress("readdb -dump", db.estimate) as progress:
        out.mkdir(parents=True)
        for part in range(entries.parts):
            with FORMATS[kind](out / part_name(part)) as writer:
                for frame in entries.streams(part)[0]:
                    chosen = select(frame)
                    writer.write(chosen)
                    counters.add(WRITTEN, len(chosen))
                    counters.add(LEFT_OUT, len(frame) - len(chosen))
                    progress.advance(len(frame))
    return counters
