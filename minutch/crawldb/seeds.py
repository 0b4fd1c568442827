"""The lines of seed lists as a table of new entries: what stands after a URL, between tabs.

    nutch.score=10                  the entry's score
    nutch.fetchInterval=86400       its fetch interval in seconds
    nutch.fetchInterval.fixed=3600  the same, kept by adaptive schedules (as `fixedInterval` in the metadata)
    any other name=value            goes into the metadata as text; what has no `=` is skipped

A number that is none is reported with file and line, and the rest of the line counts.
Matched: org.apache.nutch.crawl.Injector.InjectMapper.
"""

from __future__ import annotations

import logging
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import polars as pl

from minutch.conf import Configuration
from minutch.crawldb.seeds_reading import BLANKS
from minutch.formats.javahash import float32
from minutch.formats.writables import FloatWritable, MapWritable, Text
from minutch.plugin.chains import ScoringFilters
from minutch.records.crawldatum import STATUS_INJECTED
from minutch.records.metadata import FIXED_INTERVAL_KEY
from minutch.tables.frame import encode_keys

log = logging.getLogger(__name__)

SCORE_NAME: Final = "nutch.score"
INTERVAL_NAME: Final = "nutch.fetchInterval"
FIXED_INTERVAL_NAME: Final = "nutch.fetchInterval.fixed"

_INTEGER: Final = re.compile(r"[+-]?\d+")
_FLOAT: Final = re.compile(
    r"[+-]?(?:NaN|Infinity|(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?[fFdD]?|0[xX][0-9a-fA-F.]+[pP][+-]?\d+)"
)
_INT_RANGE: Final = range(-0x8000_0000, 0x8000_0000)


@dataclass(frozen=True)
class Defaults:
    """What a seed has that its line does not give."""

    now: int
    interval: int
    score: float
    scoring: ScoringFilters

    @classmethod
    def from_conf(cls, conf: Configuration, now: int) -> Defaults:
        """As InjectMapper.setup reads them; `injector.current.time` stands for the clock where it is set."""
        return cls(
            conf.get_long("injector.current.time", now),
            conf.get_int("db.fetch.interval.default", 2592000),
            conf.get_float("db.score.injected", 1.0),
            ScoringFilters(conf),
        )


class SeedMetadata:
    """What the part of a line after the URL says; None where it says nothing of the kind."""

    __slots__ = ("interval", "metadata", "score")

    def __init__(self) -> None:
        self.score: float | None = None
        self.interval: int | None = None
        self.metadata = MapWritable()


def parse_metadata(extra: str, where: str) -> SeedMetadata:
    """Take apart what follows a URL; `where` names file and line in messages."""
    result = SeedMetadata()
    for part in extra.split("\t"):
        name, equals, value = part.partition("=")
        if not equals:
            continue
        try:
            _take(result, name, value)
        except ValueError:
            log.error("%s: invalid number %r in %s", where, value, name)
    return result


def _take(result: SeedMetadata, name: str, value: str) -> None:
    match name:
        case "nutch.score":
            result.score = _java_float(value)
        case "nutch.fetchInterval":
            result.interval = _java_int(value)
        case "nutch.fetchInterval.fixed":
            interval = _java_int(value)
            if interval >= 0:
                result.metadata[Text(FIXED_INTERVAL_KEY)] = FloatWritable(float(interval))
                result.interval = interval
        case _:
            result.metadata[Text(name)] = Text(value)


def new_entries(lines: pl.DataFrame, defaults: Defaults, path: Path) -> pl.DataFrame:
    """The entries of the seeds in `lines` (of `path`), with the status `injected`."""
    frame = lines.select(
        key=encode_keys(lines["url"]),
        status=pl.lit(STATUS_INJECTED, pl.UInt8),
        fetch_time=pl.lit(defaults.now, pl.Int64),
        modified_time=pl.lit(0, pl.Int64),
        retries=pl.lit(0, pl.Int8),
        fetch_interval=pl.lit(defaults.interval, pl.Int32),
        score=pl.lit(defaults.score, pl.Float32),
        signature=pl.lit(None, pl.Binary),
        metadata=pl.lit(None, pl.Binary),
    )
    special = lines.select((pl.col("extra").str.len_bytes() > 0).fill_null(False)).to_series().arg_true()
    return frame if special.is_empty() else _with_metadata(frame, lines, special, defaults, path)


def _with_metadata(
    frame: pl.DataFrame, lines: pl.DataFrame, special: pl.Series, defaults: Defaults, path: Path
) -> pl.DataFrame:
    """The entries, those at rows `special` with what stands after the URL in their lines; equal texts are read once."""
    extras = lines.select(pl.col("line", "extra").gather(special))
    texts = extras.unique("extra", keep="first", maintain_order=True)
    given = [parse_metadata(extra, f"{path}:{number}") for number, extra in texts.iter_rows()]
    read = pl.DataFrame(
        {
            "extra": texts["extra"],
            "score": _column(given, "score", defaults.score, pl.Float32),
            "fetch_interval": _column(given, "interval", defaults.interval, pl.Int32),
            "metadata": pl.Series([g.metadata.to_bytes() if g.metadata else None for g in given], dtype=pl.Binary),
        }
    )
    found = extras.join(read, on="extra", how="left", maintain_order="left")
    names = ("score", "fetch_interval", "metadata")
    return frame.with_columns(frame[name].scatter(special, found[name]) for name in names)


def _column(given: list[SeedMetadata], name: str, default: float, dtype: type[pl.DataType]) -> pl.Series:
    values = (getattr(metadata, name) for metadata in given)
    found = [default if value is None else value for value in values]
    return pl.Series([float32(value) for value in found] if dtype is pl.Float32 else found, dtype=dtype)


def _java_int(text: str) -> int:
    """Integer.parseInt. Raises ValueError."""
    if not _INTEGER.fullmatch(text) or int(text) not in _INT_RANGE:
        raise ValueError(text)
    return int(text)


def _java_float(text: str) -> float:
    """Float.parseFloat. Raises ValueError."""
    text = text.strip(BLANKS)
    if not _FLOAT.fullmatch(text):
        raise ValueError(text)
    if "x" in text.lower():
        return float.fromhex(text)
    return float(text.rstrip("fFdD") if text[-1] in "fFdD" else text)
