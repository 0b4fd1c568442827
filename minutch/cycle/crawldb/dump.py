"""readdb -dump and -topN: the entries of a CrawlDb, or some of them, written to part files in a new
folder.

    -dump    one file per partition; `ReaddbDumpOptions` says which entries
    -topN    one file: score TAB URL, the highest score first, equal ones in the order of the URLs

    normal    URL TAB, then the lines of CrawlDatum.toString
    csv       a header line, then one line per entry; metadata as key:value||| in one column
    json      one object per line, keys in Nutch's order, non-ASCII characters escaped
    crawldb   MapFiles, as in `current`

Formats are written column by column; values that repeat are formatted once. Unlike Nutch, the first
column of CSV holds the URL alone: Nutch appends what a longer URL before it left in its buffer.
Source: org.apache.nutch.crawl.CrawlDbReader (processDumpJob, CrawlDbDumpMapper, processTopNJob,
CrawlDbTopNMapper, CrawlDbTopNReducer, CrawlDatumCsvOutputFormat, CrawlDatumJsonOutputFormat),
CrawlDatum.
"""

from __future__ import annotations

import logging
import re
from base64 import b64encode
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Protocol

import numpy as np
import polars as pl

from minutch.conf import Settings, made_by
from minutch.cycle.crawldb.partitions import EntryFilter, EntrySources
from minutch.cycle.crawldb.store import CrawlDb
from minutch.errors import UsageError
from minutch.expressions import compile_expression
from minutch.hadoop.formats import writables
from minutch.hadoop.formats.batch import own_column
from minutch.hadoop.formats.checksum import ChecksumWriter
from minutch.hadoop.formats.compress import Codec, CompressedWriter
from minutch.hadoop.formats.javahash import date_to_string, float32, float_to_string
from minutch.hadoop.formats.writables import MapWritable, Writable
from minutch.job import Counters, JobContext
from minutch.records.crawldatum import SECONDS_PER_DAY, status_name
from minutch.urls.hostcolumns import map_distinct
from minutch.work.engine import Partition, Task, engine_of
from minutch.work.tables.compression import Compression, output_compression, text_codec
from minutch.work.tables.database import part_name
from minutch.work.tables.frame import decode_keys, sort_by_key
from minutch.work.tables.install import mark_success
from minutch.work.tables.matching import matching
from minutch.work.tables.recordfiles import CrawlDataWriter, scan
from minutch.work.tables.shuffle import partition_of
from minutch.work.tables.spans import InputSplit
from minutch.work.tables.textparts import (
    float_texts,
    output_folder,
    require_absent,
    text_file,
    text_part,
)

CSV_HEADER: Final = (
    "Url,Status code,Status name,Fetch Time,Modified Time,Retries since fetch,"
    "Retry interval seconds,Retry interval days,Score,Signature,Metadata\n"
)
_PLAIN: Final = re.compile(r"[ !#-\[\]-\x7f]*")
_ESCAPES: Final = dict(
    zip(b'"\\\b\f\n\r\t', ('\\"', "\\\\", "\\b", "\\f", "\\n", "\\r", "\\t"), strict=True)
)
_NUMBERS: Final = (
    writables.ByteWritable,
    writables.IntWritable,
    writables.VIntWritable,
    writables.LongWritable,
    writables.VLongWritable,
)
log = logging.getLogger(__name__)

WRITTEN: Final = "entries written"
LEFT_OUT: Final = "entries left out"

_MORE: Final = 500_000
"""Entries that may be held beside twice those asked for, before the highest are chosen."""
_HASHES: Final = 1 << 30
_MIXER: Final = np.uint64(0x9E37_79B9_7F4A_7C15)
"""2**64 divided by the golden ratio: spreads hashes that are close."""


class Writer(Protocol):
    """Writes tables to one part file."""

    def write(self, frame: pl.DataFrame) -> None:
        """Appends the entries of a table."""
        ...


class _TextWriter(AbstractContextManager["_TextWriter"]):
    """A text file; `before` precedes what `urls` makes of a URL, `after` makes the rest."""

    def __init__(
        self,
        file: ChecksumWriter | CompressedWriter,
        header: str,
        before: bytes,
        after: Callable[[pl.DataFrame], pl.Series],
        urls: Callable[[pl.Series], pl.Series],
    ) -> None:
        self._file = file
        self._file.write(header.encode())
        self._before = before
        self._after = after
        self._urls = urls

    def write(self, frame: pl.DataFrame) -> None:
        """Appends the entries of a table."""
        parts: list[bytes] = []
        urls = self._urls(frame["key"]).cast(pl.Binary)
        for key, text in zip(urls, self._after(frame).cast(pl.Binary), strict=True):
            parts += (self._before, key, text)
        self._file.write(b"".join(parts))

    def __exit__(self, *_: object) -> None:
        self._file.close()


@dataclass(frozen=True, slots=True)
class DumpSettings(Settings):
    """The settings by which a dump is written."""

    compression: Compression = made_by(output_compression)
    """Compression of MapFiles."""
    codec: Codec | None = made_by(text_codec)
    """Codec of text files."""


def _crawldb_writer(path: Path, settings: DumpSettings) -> CrawlDataWriter:
    return CrawlDataWriter(path, mapfile=True, **settings.compression.options)


FORMATS: Final[dict[str, Callable[[Path, DumpSettings], AbstractContextManager[Writer]]]] = {
    "normal": lambda path, settings: _TextWriter(
        text_file(path, settings.codec), "", b"", _normal, lambda keys: keys
    ),
    "csv": lambda path, _: _TextWriter(ChecksumWriter(path), CSV_HEADER, b'"', _csv, decode_keys),
    "json": lambda path, _: _TextWriter(ChecksumWriter(path), "", b'{"url": ', _json, _json_urls),
    "crawldb": _crawldb_writer,
}
"""Format -> writer of a part. CSV and JSON are never compressed, as in Nutch. Bytes of a URL that
are not UTF-8 stay in normal, where Nutch writes the Text; in the others they are U+FFFD.
"""


def _json_urls(keys: pl.Series) -> pl.Series:
    return decode_keys(keys).map_elements(json_text, pl.String)


def _normal(frame: pl.DataFrame) -> pl.Series:
    text = _texts(frame, lambda key, value: f"\t{key}={value}\n", "")
    return frame.select(
        pl.format(
            "\tVersion: 7\nStatus: {} ({})\nFetch time: {}\nModified time: {}\nRetries since fetch:"
            " {}\nRetry interval: {} seconds ({} days)\nScore: {}\nSignature: {}\nMetadata: \n"
            " {}\n",
            *(
                text[name]
                for name in (
                    "status",
                    "name",
                    "fetch",
                    "modified",
                    "retries",
                    "seconds",
                    "days",
                    "score",
                )
            ),
            text["signature"],
            text["metadata"],
        )
    ).to_series()


def _csv(frame: pl.DataFrame) -> pl.Series:
    text = _texts(frame, lambda key, value: f"{key}:{value}|||", "")
    return frame.select(
        pl.format(
            '",{},"{}",{},{},{},{},{}.0,{},"{}","{}"\n',
            *(text[name] for name in ("status", "name", "fetch", "modified", "retries")),
            # a float here, unlike in the other formats
            map_distinct(frame["fetch_interval"], float_to_string, pl.String()),
            text["days"],
            text["score"],
            text["signature"],
            text["metadata"],
        )
    ).to_series()


def _json(frame: pl.DataFrame) -> pl.Series:
    text = _texts(frame, lambda key, value: f"{json_text(str(key))}: {_json_value(value)}", ", ")
    score = text["score"].replace(
        {"NaN": '"NaN"', "Infinity": '"Infinity"', "-Infinity": '"-Infinity"'}
    )
    return frame.select(
        pl.format(
            ', "statusCode": {}, "statusName": "{}", "fetchTime": "{}", "modifiedTime": "{}",'
            ' "retriesSinceFetch": {}, "retryIntervalSeconds": {}, "retryIntervalDays": {},'
            ' "score": {}, "signature": "{}", "metadata": {}\n',
            *(
                text[name]
                for name in ("status", "name", "fetch", "modified", "retries", "seconds", "days")
            ),
            score,
            text["signature"],
            "{" + text["metadata"] + "}}",
        )
    ).to_series()


def _texts(
    frame: pl.DataFrame, entry: Callable[[Writable, Writable], str], separator: str
) -> dict[str, pl.Series]:
    """Returns each column as text."""

    def metadata(data: bytes) -> str:
        return separator.join(
            entry(key, value) for key, value in MapWritable.from_bytes(data).java_items()
        )

    interval = frame["fetch_interval"]
    days = interval.cast(pl.Float64) / SECONDS_PER_DAY  # CrawlDatum.toString divides ints as floats
    return {
        "status": frame["status"].cast(pl.String),
        "name": map_distinct(frame["status"], status_name, pl.String()),
        "fetch": map_distinct(frame["fetch_time"], date_to_string, pl.String()),
        "modified": map_distinct(frame["modified_time"], date_to_string, pl.String()),
        "retries": frame["retries"].cast(pl.String),
        "seconds": interval.cast(pl.String),
        "days": days.cast(pl.Int64).cast(pl.String),
        "score": float_texts(frame["score"]),
        "signature": frame["signature"].bin.encode("hex").fill_null("null"),
        "metadata": map_distinct(frame["metadata"], metadata, pl.String()).fill_null(""),
    }


def json_text(value: str) -> str:
    """Returns a string as Jackson writes it with ESCAPE_NON_ASCII."""
    if _PLAIN.fullmatch(value):
        return f'"{value}"'
    units = value.encode("utf-16-be", "surrogatepass")
    codes = (units[i] << 8 | units[i + 1] for i in range(0, len(units), 2))
    return f'"{"".join(_ESCAPES.get(code) or _unit(code) for code in codes)}"'


def _unit(code: int) -> str:
    return chr(code) if 0x20 <= code < 0x80 else f"\\u{code:04X}"


def _json_value(value: Writable) -> str:
    """Returns a metadata value as CrawlDatumJsonOutputFormat.WritableSerializer writes it."""
    if isinstance(value, writables.NullWritable):
        return "null"
    if isinstance(value, writables.BooleanWritable):
        return str(value).lower()
    if isinstance(value, _NUMBERS):
        return str(value.value)
    if isinstance(value, writables.FloatWritable | writables.DoubleWritable):
        text = str(value)
        return text if text[-1].isdigit() else f'"{text}"'  # NaN and Infinity are no JSON
    if isinstance(value, writables.BytesWritable):
        return f'"{b64encode(value.value).decode()}"'
    return json_text(str(value))


@dataclass(frozen=True, slots=True)
class ReaddbDumpOptions:
    """The options of a dump; an entry is written if it meets all conditions."""

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
        if self.retries is not None and self.retries != -1:  # -1 is Nutch's "not given"
            least = self.retries
            steps.append(lambda frame: frame.filter(pl.col("retries") >= least))
        if self.status is not None:
            # `unknown` names many codes.
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
    """Returns about `fraction` of the entries, by a hash of the URL: a sample can be repeated."""

    def select(frame: pl.DataFrame) -> pl.DataFrame:
        # The same sample on every run.
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
                # NaN is below nothing, and stays.
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
    """Returns the `count` highest scores of all tables (at least one), equal ones by key."""
    held: list[pl.DataFrame] = []
    for table in tables:
        best = _highest(sort_by_key(table), count)
        whole = len(best) == len(table)  # what they lie in stays mapped anyway
        held.append(best if whole else best.with_columns(own_column(best["key"])))
        if sum(map(len, held)) > 2 * count + _MORE:  # each sort then throws half away
            held = [_highest(sort_by_key(pl.concat(held)), count)]
    return _highest(sort_by_key(pl.concat(held)), count)


def _highest(frame: pl.DataFrame, count: int) -> pl.DataFrame:
    """Returns the `count` highest scores, equal ones in the table's order; NaN comes first."""
    # Polars has NaN above all numbers.
    order = frame.select(pl.arg_sort_by("score", descending=True, maintain_order=True)).to_series()
    return frame[order.head(count)]
