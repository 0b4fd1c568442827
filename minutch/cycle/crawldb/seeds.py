"""Seed lists: text files, read piece by piece, as tables of new entries.

    line       := blank* URL blank* (TAB extra)?       UTF-8; ended by LF, CR or CR LF
    extra      := name "=" value (TAB name "=" value)*
    comment    := "#" …                                blank lines and comments are skipped

    nutch.score=10                  the entry's score
    nutch.fetchInterval=86400       its fetch interval in seconds
    nutch.fetchInterval.fixed=3600  the same, kept by adaptive schedules (as `fixedInterval` in the
                                    metadata)
    any other name=value            goes into the metadata as text; what has no `=` is skipped

Files may be compressed (by suffix: .gz, .bz2, .zst, .deflate …). Blanks are what Java's String.trim
removes: everything up to U+0020. Bytes that are not UTF-8 become U+FFFD. An invalid number is
reported with file and line, and the rest of the line counts. Source: Hadoop's LineRecordReader,
org.apache.nutch.crawl.Injector.InjectMapper.
"""

from __future__ import annotations

import bz2
import gzip
import io
import logging
import re
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, Final, NamedTuple

import numpy as np
import polars as pl

from minutch.conf import Settings, made_by, prop
from minutch.errors import FormatError, StoreError
from minutch.hadoop.formats.batch import string_column
from minutch.hadoop.formats.compress import codec_for
from minutch.hadoop.formats.javahash import float32, parse_float
from minutch.hadoop.formats.writables import FloatWritable, MapWritable, Text
from minutch.kernels.urls import find_seeds
from minutch.plugin.chains import ScoringFilters
from minutch.records.crawldatum import STATUS_INJECTED
from minutch.records.metadata import FIXED_INTERVAL_KEY
from minutch.work.tables.frame import encode_keys
from minutch.work.tables.parallel import ordered

log = logging.getLogger(__name__)

CHUNK_BYTES: Final = 8 << 20  # read and decoded side by side

_BYTE_ORDER_MARK: Final = b"\xef\xbb\xbf"
_STREAMING: Final[dict[str, Callable[[Path], Any]]] = {".gz": gzip.open, ".bz2": bz2.open}

_INTEGER: Final = re.compile(r"[+-]?\d+")
_INT_RANGE: Final = range(-0x8000_0000, 0x8000_0000)


# -- files -----------------------------------------------------------------------------------------


class SeedText(NamedTuple):
    """Whole lines of a file; all end with LF but perhaps the file's last one."""

    number: int
    """Number of the first line, counted from 1."""
    data: bytes


def seed_files(path: Path) -> list[Path]:
    """Returns the seed files of a directory (or the file), by name. StoreError without any."""
    if path.is_file():
        return [path]
    if not path.is_dir():
        raise StoreError(f"{path}: no such seed file or directory")
    files = []
    for entry in sorted(path.iterdir()):
        if entry.is_file() and entry.name[0] not in "._":  # as Hadoop's FileInputFormat
            files.append(entry)
        else:
            log.warning(
                "Skipped %s in %s", "hidden file" if entry.is_file() else "non-file input", entry
            )
    if not files:
        raise StoreError(f"No seed files to inject found in {path}")
    return files


def read_seeds(path: Path) -> Iterator[pl.DataFrame]:
    """Returns the seeds of a file in tables (`seeds_in`). FormatError for damaged data."""
    return ordered(seeds_in, seed_texts(path))


def seed_texts(path: Path) -> Iterator[SeedText]:
    """Yields the pieces of a file without byte order mark. FormatError for damaged data."""
    number = 1
    try:
        with _open(path) as stream:
            for data in _whole_lines(stream):
                yield SeedText(number, data)
                number += data.count(b"\n")
    except (EOFError, zlib.error, gzip.BadGzipFile) as exc:
        raise FormatError(f"damaged compressed data: {exc}", path=path) from exc
    except FormatError as exc:
        raise exc.at(path) from exc


def _open(path: Path) -> BinaryIO:
    """Returns the text of a seed file, decompressed by the codec that its suffix names."""
    codec = codec_for(path.name)
    if codec is None:
        return path.open("rb")
    opener = _STREAMING.get(codec.extension)
    # Other codecs take a whole file.
    return opener(path) if opener else io.BytesIO(codec.decompress(path.read_bytes()))


def _whole_lines(stream: BinaryIO) -> Iterator[bytes]:
    rest, first = b"", True
    while data := stream.read(CHUNK_BYTES):
        data = rest + (data.removeprefix(_BYTE_ORDER_MARK) if first else data)
        first = False
        # A CR at the very end may belong to a CR LF.
        end = max(data.rfind(b"\n"), data.rfind(b"\r", 0, -1)) + 1
        rest = data[end:]
        if end:
            yield _with_line_feeds(data[:end])
    if rest:
        yield _with_line_feeds(rest)


def _with_line_feeds(data: bytes) -> bytes:
    return data.replace(b"\r\n", b"\n").replace(b"\r", b"\n") if b"\r" in data else data


def seeds_in(text: SeedText) -> pl.DataFrame:
    """Returns `line`, `url` and `extra` (what follows; null: no tab) of a piece's seeds."""
    try:
        return _find(text)
    except pl.exceptions.ComputeError:  # not UTF-8
        return _find(text._replace(data=text.data.decode("utf-8", "replace").encode()))


def _find(text: SeedText) -> pl.DataFrame:
    data = np.frombuffer(text.data, np.uint8)
    lines = text.data.count(b"\n") + 1
    number = np.empty(lines, np.uint64)
    (url_at, extra_at), (url_len, extra_len) = (
        np.empty((2, lines), np.int64),
        np.empty((2, lines), np.int32),
    )
    count = find_seeds(data, text.number, number, url_at, url_len, extra_at, extra_len)
    url = string_column("url", data, url_at[:count], url_len[:count])
    extra = string_column("extra", data, extra_at[:count], extra_len[:count], least=0)
    return pl.DataFrame(
        [pl.Series("line", number[:count]), url.cast(pl.String), extra.cast(pl.String)]
    )


# -- entries ---------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Defaults(Settings):
    """Values of seeds whose lines do not give them."""

    now: int
    interval: int = prop("db.fetch.interval.default")
    score: float = prop("db.score.injected")
    scoring: ScoringFilters = made_by(ScoringFilters)


class SeedMetadata:
    """The part of a line after the URL; None for what it does not give."""

    __slots__ = ("interval", "metadata", "score")

    def __init__(self) -> None:
        self.score: float | None = None
        self.interval: int | None = None
        self.metadata = MapWritable()


def parse_metadata(extra: str, where: str) -> SeedMetadata:
    """Parses what follows a URL; `where` names file and line in messages."""
    result = SeedMetadata()
    for part in extra.split("\t"):
        name, equals, value = part.partition("=")
        if not equals:  # Nutch skips it, too
            continue
        try:
            match name:
                case "nutch.score":
                    result.score = parse_float(value)
                case "nutch.fetchInterval":
                    result.interval = _java_int(value)
                case "nutch.fetchInterval.fixed":
                    interval = _java_int(value)
                    if interval >= 0:  # Nutch ignores others
                        result.metadata[Text(FIXED_INTERVAL_KEY)] = FloatWritable(float(interval))
                        result.interval = interval
                case _:
                    result.metadata[Text(name)] = Text(value)
        except ValueError:
            log.error("%s: invalid number %r in %s", where, value, name)
    return result


def new_entries(lines: pl.DataFrame, defaults: Defaults, path: Path) -> pl.DataFrame:
    """Returns the entries of the seeds in `lines` (of `path`), with the status `injected`."""
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
    special = (
        lines.select((pl.col("extra").str.len_bytes() > 0).fill_null(False)).to_series().arg_true()
    )
    return frame if special.is_empty() else _with_metadata(frame, lines, special, defaults, path)


def _with_metadata(
    frame: pl.DataFrame, lines: pl.DataFrame, special: pl.Series, defaults: Defaults, path: Path
) -> pl.DataFrame:
    """Returns the entries, those at rows `special` with their line's values, each parsed once."""
    extras = lines.select(pl.col("line", "extra").gather(special))
    # Most lines of a list say the same.
    texts = extras.unique("extra", keep="first", maintain_order=True)
    parsed = [parse_metadata(extra, f"{path}:{number}") for number, extra in texts.iter_rows()]
    read = pl.DataFrame(
        {
            "extra": texts["extra"],
            "score": _column(parsed, "score", defaults.score, pl.Float32),
            "fetch_interval": _column(parsed, "interval", defaults.interval, pl.Int32),
            "metadata": pl.Series(
                [g.metadata.to_bytes() if g.metadata else None for g in parsed], dtype=pl.Binary
            ),
        }
    )
    found = extras.join(read, on="extra", how="left", maintain_order="left")
    names = ("score", "fetch_interval", "metadata")
    return frame.with_columns(frame[name].scatter(special, found[name]) for name in names)


def _column(
    parsed: list[SeedMetadata], name: str, default: float, dtype: type[pl.DataType]
) -> pl.Series:
    values = (getattr(metadata, name) for metadata in parsed)
    found = [default if value is None else value for value in values]
    return pl.Series(
        [float32(value) for value in found] if dtype is pl.Float32 else found, dtype=dtype
    )


def _java_int(text: str) -> int:
    """Integer.parseInt. Raises ValueError."""
    # Python takes `1_000` and blanks.
    if not _INTEGER.fullmatch(text) or int(text) not in _INT_RANGE:
        raise ValueError(text)
    return int(text)
