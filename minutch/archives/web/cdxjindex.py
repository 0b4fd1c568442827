"""Writes CDXJ, the index by which replay tools find a page in WARC files.

    index  :=  line*, sorted as bytes
    line   :=  SURT of the URL " " time (yyyyMMddHHmmss, UTC) " " JSON "\n"
    JSON   :=  url, mime ("warc/revisit" for a revisit), status, digest,
               length, offset, filename: all of them strings

The index covers pages (response, revisit, resource) and metadata records, except those with a
crawler's own fields.

Source: the lines of cdxj-indexer, byte for byte; pywb's documentation of the format (`CDXJ index
format`).
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryFile
from types import TracebackType
from typing import Final, Self

from minutch.archives.web.surt import surt
from minutch.archives.web.webarchive import ArchiveListener
from minutch.hadoop.formats.mapfile import sort_records
from minutch.warc.pagewriter import status_of
from minutch.warc.warcfile import FIELDS, PAYLOAD_DIGEST, WrittenRecord

KINDS: Final = frozenset({"response", "revisit", "resource", "metadata"})
REVISIT_TYPE: Final = "warc/revisit"
_LONGEST_STATUS: Final = 64
_OF_HTTP: Final = frozenset({"response", "revisit"})
_RUN: Final = 1 << 24
"""Bytes of lines that are sorted in memory at a time."""
_END_OF_TYPE: Final = re.compile(r"[;\s]")
_DIGITS: Final = re.compile(r"[^0-9]")


@dataclass(frozen=True, slots=True)
class IndexEntry:
    """A line of an index; None stands for members that it lacks."""

    url: str
    date: str
    """WARC-Date."""
    mime: str | None
    status: str | None
    digest: str | None
    length: int
    offset: int
    file: str
    method: str | None = None
    """Method of the request, unless it was GET."""

    def line(self) -> str:
        """Returns the line of the index."""
        values = {
            "url": self.url,
            "mime": self.mime,
            "status": self.status,
            "digest": self.digest,
            "length": str(self.length),
            "offset": str(self.offset),
            "filename": self.file,
            "method": self.method,
        }
        known = {name: value for name, value in values.items() if value is not None}
        return f"{surt(self.url)} {timestamp(self.date)} {json.dumps(known)}\n"


def timestamp(date: str) -> str:
    """Returns the 14 digits of a WARC-Date."""
    return _DIGITS.sub("", date)[:14].ljust(14, "0")


def field(header: bytes, name: str) -> str | None:
    """Returns the first value of a field in the header of a record or HTTP message; names are
    compared case-insensitively.
    """
    match = re.search(
        rb"\r?\n" + re.escape(name.encode()) + rb"[ \t]*:[ \t]*([^\r\n]*)", header, re.IGNORECASE
    )
    return None if match is None else match[1].rstrip().decode("utf-8", "replace")


def is_indexed(kind: str, content_type: str | None) -> bool:
    """Returns whether an index covers a record."""
    return kind in KINDS and (kind in _OF_HTTP or content_type != FIELDS)


def media_type(kind: str, header: bytes, head: bytes) -> str | None:
    """Returns the media type that an index states: for a response, the value of its HTTP header,
    unchanged.
    """
    if kind == "revisit":
        return REVISIT_TYPE
    value = field(head, "Content-Type") if kind == "response" else field(header, "Content-Type")
    return _END_OF_TYPE.split(value, maxsplit=1)[0] if value else value


def entry_of(record: WrittenRecord) -> IndexEntry | None:
    """Returns the entry of a record that was written; None for one that is not indexed."""
    content_type = field(record.header, "Content-Type")
    if not is_indexed(record.kind, content_type):
        return None
    code = status_of(record.head[:_LONGEST_STATUS].decode("latin-1"))
    return IndexEntry(
        record.target,
        field(record.header, "WARC-Date") or "",
        media_type(record.kind, record.header, record.head),
        None if code is None or record.kind not in _OF_HTTP else str(code),
        field(record.header, PAYLOAD_DIGEST),
        record.length,
        record.offset,
        record.file,
    )


class SortedLines:
    """A collection of index lines, kept on disk and sorted at the end."""

    def __init__(self, folder: Path) -> None:
        """`folder` takes temporary files."""
        self._folder = folder
        self._file = TemporaryFile(dir=folder, buffering=1 << 18)  # noqa: SIM115 - closed by __exit__

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        tb: TracebackType | None,
    ) -> None:
        self._file.close()

    def add(self, entry: IndexEntry) -> None:
        """Adds an entry."""
        self._file.write(entry.line().encode())

    def sorted(self) -> Iterator[bytes]:
        """Returns all lines in order, without repetitions."""
        self._file.seek(0)
        last = b""
        lines = ((line, b"") for line in self._file)
        for line, _ in sort_records(lines, directory=self._folder, run_bytes=_RUN):
            if line != last:
                yield line
            last = line


class IndexWriter(SortedLines, ArchiveListener):
    """A collector of the index of an archive while its files are written."""

    def record(self, record: WrittenRecord) -> None:
        entry = entry_of(record)
        if entry is not None:
            self.add(entry)


def write_index(path: Path, lines: Iterable[bytes]) -> None:
    """Writes an index to a file."""
    with path.open("wb", buffering=1 << 18) as file:
        file.writelines(lines)
