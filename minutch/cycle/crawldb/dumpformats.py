"""The formats of readdb -dump, written column by column.

    normal    URL TAB, then the lines of CrawlDatum.toString
    csv       a header line, then one line per entry; metadata as key:value||| in one column
    json      one object per line, keys in Nutch's order, non-ASCII characters escaped
    crawldb   MapFiles, as in `current`

Values that repeat are formatted once. Unlike Nutch, the first column of CSV holds the URL alone:
Nutch appends what a longer URL before it left in its buffer. Source:
org.apache.nutch.crawl.CrawlDbReader (CrawlDatumCsvOutputFormat, CrawlDatumJsonOutputFormat),
CrawlDatum.
"""

from __future__ import annotations

import re
from base64 import b64encode
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Protocol

import polars as pl

from minutch.conf import Configuration
from minutch.hadoop.formats import writables
from minutch.hadoop.formats.checksum import ChecksumWriter
from minutch.hadoop.formats.compress import Codec, CompressedWriter
from minutch.hadoop.formats.javahash import date_to_string, float_to_string
from minutch.hadoop.formats.writables import MapWritable, Writable
from minutch.records.crawldatum import SECONDS_PER_DAY, status_name
from minutch.urls.hostcolumns import map_distinct
from minutch.work.tables.compression import Compression, output_compression, text_codec
from minutch.work.tables.frame import decode_keys
from minutch.work.tables.recordfiles import CrawlDataWriter
from minutch.work.tables.textparts import float_texts, text_file

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


class Writer(Protocol):
    """Writes tables to one part file."""

    def write(self, frame: pl.DataFrame) -> None:
        """Appends the entries of a table."""
        ...


class _TextWriter(AbstractContextManager["_TextWriter"]):
    """A text file; `before` precedes what `urls` makes of the URL of each entry, `after` makes what
    follows it.
    """

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
class DumpSettings:
    """The settings by which a dump is written."""

    compression: Compression
    """Compression of MapFiles."""
    codec: Codec | None
    """Codec of text files."""

    @classmethod
    def from_conf(cls, conf: Configuration) -> DumpSettings:
        """Reads Hadoop's properties of compression. Raises ConfigError."""
        return cls(output_compression(conf), text_codec(conf))


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
    days = interval.cast(pl.Float64) / SECONDS_PER_DAY
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
        return text if text[-1].isdigit() else f'"{text}"'
    if isinstance(value, writables.BytesWritable):
        return f'"{b64encode(value.value).decode()}"'
    return json_text(str(value))
