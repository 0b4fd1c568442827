"""Closes a fetched segment: sorts the fetch log into crawl_fetch, content and the parts of a parse.

Only keys and places are sorted, values are copied from the log as they are (already compressed where the part is).
More than `RUN` entries of a part are sorted in runs on disk and merged, so memory does not grow with the segment.

Everything is written under `_fetch/closing` and moved into the segment when it is whole, crawl_fetch last: a segment
with crawl_fetch and without a log is complete. Killed in between, the next `fetch` closes it anew from the log.
"""

from __future__ import annotations

import heapq
import os
import shutil
import struct
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from types import TracebackType
from typing import Final, Self

from minutch.errors import StoreError
from minutch.fetch.log import EntryPlace, Part, log_codec, places, unpack_records
from minutch.formats.compress import DEFAULT_CODEC, codec
from minutch.formats.javaio import DataOutput
from minutch.formats.mapfile import MapFileWriter
from minutch.formats.sequencefile import RECORD, SequenceFileWriter

RUN: Final = 500_000
"""Entries sorted in memory at a time."""
TEXT: Final = "org.apache.hadoop.io.Text"
_PLACE: Final = struct.Struct(">IQIQI")


@dataclass(frozen=True, slots=True)
class _PartShape:
    """Name and value class of one part of a segment, and whether it is a MapFile."""

    name: str
    value_class: str
    is_map: bool = True


_SHAPES: Final = {
    Part.CONTENT: _PartShape("content", "org.apache.nutch.protocol.Content"),
    Part.PARSE_TEXT: _PartShape("parse_text", "org.apache.nutch.parse.ParseText"),
    Part.PARSE_DATA: _PartShape("parse_data", "org.apache.nutch.parse.ParseData"),
    Part.CRAWL_PARSE: _PartShape("crawl_parse", "org.apache.nutch.crawl.CrawlDatum", is_map=False),
    Part.FETCH: _PartShape("crawl_fetch", "org.apache.nutch.crawl.CrawlDatum"),
}
"""In the order in which the parts are moved into the segment."""

_Row = tuple[bytes, int, int, int, int]
"""Key, running number, log, offset, length."""


@dataclass(slots=True)
class _Sorter:
    """Rows of one part in order of key, equal keys in the order in which they came."""

    folder: Path
    limit: int
    rows: list[_Row] = field(default_factory=list)
    runs: list[Path] = field(default_factory=list)

    def add(self, row: _Row) -> None:
        self.rows.append(row)
        if len(self.rows) >= self.limit:
            self._spill()

    def _spill(self) -> None:
        self.rows.sort()
        self.folder.mkdir(parents=True, exist_ok=True)
        path = self.folder / f"run-{len(self.runs)}"
        with path.open("wb", buffering=1 << 20) as out:
            for key, number, log, offset, length in self.rows:
                out.write(_PLACE.pack(len(key), number, log, offset, length) + key)
        self.runs.append(path)
        self.rows = []

    def sorted(self) -> Iterator[_Row]:
        """All rows in order."""
        self.rows.sort()
        if not self.runs:
            return iter(self.rows)
        return heapq.merge(*map(_read_run, self.runs), self.rows)


def _read_run(path: Path) -> Iterator[_Row]:
    with path.open("rb", buffering=1 << 18) as file:
        while head := file.read(_PLACE.size):
            size, number, log, offset, length = _PLACE.unpack(head)
            yield file.read(size), number, log, offset, length


class _Logs:
    """Values of the logs by place."""

    def __init__(self, paths: list[Path]) -> None:
        self._files = [path.open("rb", buffering=0) for path in paths]
        self._descriptors = [file.fileno() for file in self._files]

    def value(self, row: _Row) -> bytes:
        return os.pread(self._descriptors[row[2]], row[4], row[3])

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        for file in self._files:
            file.close()


def close_segment(
    segment: Path, logs: list[Path], parts: Iterable[Part], *, compression: str = RECORD, limit: int = RUN
) -> None:
    """Write `parts` from `logs` and move them into `segment`; parts that are there from a broken closing are replaced.

    Raises StoreError if the disk is full (the log stays, nothing is lost) and FormatError for a damaged log.
    """
    work = segment / "_fetch" / "closing"
    shutil.rmtree(work, ignore_errors=True)
    wanted = [part for part in _SHAPES if part in set(parts)]
    try:
        work.mkdir(parents=True)
        sorters = _collect(logs, wanted, work, limit)
        with _Logs(logs) as values:
            for part in wanted:
                _write_part(work, part, sorters[part], values, log_codec(logs[0]), compression)
        _sync_tree(work)
    except OSError as exc:
        raise StoreError(
            f"{segment}: can't close the segment: {exc.strerror}; the fetch log is kept, "
            "make room and run fetch on the same segment again"
        ) from exc
    for part in wanted:
        name = _SHAPES[part].name
        shutil.rmtree(segment / name, ignore_errors=True)
        (work / name).rename(segment / name)
    _sync(segment)


def _collect(logs: list[Path], wanted: list[Part], work: Path, limit: int) -> dict[Part, _Sorter]:
    sorters = {part: _Sorter(work / f"sort-{part.value}", limit) for part in wanted}
    numbers = count()
    for number, path in enumerate(logs):
        place: EntryPlace
        for place in places(path):
            sorter = sorters.get(place.part)
            if sorter is not None:
                sorter.add((place.key, next(numbers), number, place.offset, place.length))
    return sorters


def _write_part(work: Path, part: Part, sorter: _Sorter, values: _Logs, stored: str, compression: str) -> None:
    shape = _SHAPES[part]
    folder = work / shape.name
    folder.mkdir()
    out = folder / "part-r-00000"
    writer: MapFileWriter | SequenceFileWriter
    if shape.is_map:
        writer = MapFileWriter(out, TEXT, shape.value_class, compression=compression)
    else:
        writer = SequenceFileWriter(out, TEXT, shape.value_class, compression=compression)
    as_stored = compression == RECORD and stored == DEFAULT_CODEC and shape.is_map
    decompress = codec(stored).decompress if stored else bytes
    with writer:
        for row in sorter.sorted():
            data = values.value(row)
            if not shape.is_map:
                for key, value in unpack_records(data):
                    writer.append_raw(_text(key), value)
            elif as_stored:
                writer.append_raw(_text(row[0]), data, compressed=True)
            else:
                writer.append_raw(_text(row[0]), decompress(data))
    shutil.rmtree(sorter.folder, ignore_errors=True)


def _text(key: bytes) -> bytes:
    out = DataOutput()
    out.write_vint(len(key))
    out.write_bytes(key)
    return out.getvalue()


def _sync_tree(folder: Path) -> None:
    for path in sorted(folder.rglob("*")):
        _sync(path)
    _sync(folder)


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def stored_codec(compression: str) -> str:
    """The codec that the log should compress values by, so that closing can copy them."""
    return DEFAULT_CODEC if compression == RECORD else ""
