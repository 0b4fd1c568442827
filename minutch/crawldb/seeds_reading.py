"""The lines of seed lists: text files, read piece by piece, as tables of URLs and what follows them.

    line       := blank* URL blank* (TAB extra)?       UTF-8; ended by LF, CR or CR LF
    comment    := "#" …                                blank lines and comments are skipped

Files may be compressed (by suffix: .gz, .bz2, .zst, .deflate …). Blanks are what Java's String.trim removes: everything
up to U+0020. Bytes that are not UTF-8 become U+FFFD.
Matched: Hadoop's LineRecordReader, org.apache.nutch.crawl.Injector.InjectMapper.
"""

from __future__ import annotations

import bz2
import gzip
import io
import logging
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, BinaryIO, Final, NamedTuple

import polars as pl

from minutch.errors import FormatError, StoreError
from minutch.formats.compress import codec_for
from minutch.tables.parallel import ordered
from minutch.tables.spans import kernels_loaded

log = logging.getLogger(__name__)

CHUNK_BYTES: Final = 8 << 20
BULK_BYTES: Final = 4 << 20
"""Text from which loading the kernels takes less time than splitting it line by line."""
BLANKS: Final = "".join(map(chr, range(0x21)))
SEED_SCHEMA: Final = pl.Schema({"line": pl.UInt64(), "url": pl.String(), "extra": pl.String()})

_BYTE_ORDER_MARK: Final = b"\xef\xbb\xbf"
_STREAMING: Final[dict[str, Callable[[Path], Any]]] = {".gz": gzip.open, ".bz2": bz2.open}


class SeedText(NamedTuple):
    """A piece of a file: whole lines, all but a file's last one ended by LF."""

    number: int
    """Of the first line, counted from 1."""
    data: bytes


def seed_files(path: Path) -> list[Path]:
    """The seed files of a directory (or the one file), by name. Raises StoreError if there is none."""
    if path.is_file():
        return [path]
    if not path.is_dir():
        raise StoreError(f"{path}: no such seed file or directory")
    files = []
    for entry in sorted(path.iterdir()):
        if entry.is_file() and entry.name[0] not in "._":
            files.append(entry)
        else:
            log.warning("Skipped %s in %s", "hidden file" if entry.is_file() else "non-file input", entry)
    if not files:
        raise StoreError(f"No seed files to inject found in {path}")
    return files


def read_seeds(path: Path) -> Iterator[pl.DataFrame]:
    """The seeds of a file in tables of SEED_SCHEMA. Raises FormatError for damaged compressed data."""
    return ordered(seeds_in, seed_texts(path))


def seed_texts(path: Path) -> Iterator[SeedText]:
    """The pieces of a file, without a byte order mark. Raises FormatError for damaged compressed data."""
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
    """The text of a seed file, decompressed by the codec that its suffix names."""
    codec = codec_for(path.name)
    if codec is None:
        return path.open("rb")
    opener = _STREAMING.get(codec.extension)
    return opener(path) if opener else io.BytesIO(codec.decompress(path.read_bytes()))


def _whole_lines(stream: BinaryIO) -> Iterator[bytes]:
    rest, first = b"", True
    while data := stream.read(CHUNK_BYTES):
        data = rest + (data.removeprefix(_BYTE_ORDER_MARK) if first else data)
        first = False
        end = max(data.rfind(b"\n"), data.rfind(b"\r", 0, -1)) + 1  # a CR at the very end may belong to a CR LF
        rest = data[end:]
        if end:
            yield _with_line_feeds(data[:end])
    if rest:
        yield _with_line_feeds(rest)


def _with_line_feeds(data: bytes) -> bytes:
    return data.replace(b"\r\n", b"\n").replace(b"\r", b"\n") if b"\r" in data else data


def seeds_in(text: SeedText) -> pl.DataFrame:
    """The seeds of a piece as a table of SEED_SCHEMA: line number, URL and what follows it (null: no tab)."""
    find = _find_in_bulk if len(text.data) >= BULK_BYTES or kernels_loaded() else _find_by_line
    try:
        return find(text)
    except (UnicodeDecodeError, pl.exceptions.ComputeError, pl.exceptions.InvalidOperationError):
        return find(text._replace(data=text.data.decode("utf-8", "replace").encode()))


def _find_by_line(text: SeedText) -> pl.DataFrame:
    rows = []
    for number, line in enumerate(text.data.decode().split("\n"), text.number):
        url, tab, extra = line.partition("\t")
        url = url.strip(BLANKS)
        if url and url[0] != "#":
            rows.append((number, url, extra.strip(BLANKS) if tab else None))
    return pl.DataFrame(rows, SEED_SCHEMA, orient="row")


def _find_in_bulk(text: SeedText) -> pl.DataFrame:
    import numpy as np

    from minutch.kernels.seeds import find_seeds
    from minutch.records.batch import string_column

    data = np.frombuffer(text.data, np.uint8)
    lines = text.data.count(b"\n") + 1
    number = np.empty(lines, np.uint64)
    (url_at, extra_at), (url_len, extra_len) = np.empty((2, lines), np.int64), np.empty((2, lines), np.int32)
    count = find_seeds(data, text.number, number, url_at, url_len, extra_at, extra_len)
    url = string_column("url", data, url_at[:count], url_len[:count])
    extra = string_column("extra", data, extra_at[:count], extra_len[:count], least=0)
    return pl.DataFrame([pl.Series("line", number[:count]), url.cast(pl.String), extra.cast(pl.String)])
