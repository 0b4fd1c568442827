"""Closes a fetched segment: sorts the fetch log into crawl_fetch, content and the parts of a parse.

Only keys and places are sorted, values are copied from the log as they are (already compressed
where the part is). More than `RUN` entries of a part are sorted in runs on disk and merged, so
memory does not grow with the segment.

The parts are moved into the segment when all are whole, crawl_fetch last (`Segment.writing`): a
segment with crawl_fetch and without a log is complete. Killed in between, the next `fetch` closes
it from the log again.
"""

from __future__ import annotations

import heapq
import os
import struct
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from types import TracebackType
from typing import Final, Self

from minutch.cycle.fetch.results.fetchlog import Part, log_codec, positions
from minutch.cycle.parse.packing import unpack_records
from minutch.cycle.segment.store import (
    CONTENT,
    CRAWL_FETCH,
    CRAWL_PARSE,
    LAYOUTS,
    PARSE_DATA,
    PARSE_TEXT,
    Segment,
)
from minutch.cycle.segment.storedrecords import text_key
from minutch.errors import FormatError, StoreError
from minutch.hadoop.formats.compress import DEFAULT_CODEC, codec
from minutch.hadoop.formats.mapfile import TEXT, MapFileWriter
from minutch.hadoop.formats.sequencefile import RECORD, SequenceFileWriter
from minutch.work.tables.database import part_name
from minutch.work.tables.workfolders import remove

RUN: Final = 50_000
"""Entries sorted in memory at a time."""
_PLACE: Final = struct.Struct(">IQIQI")


FOLDERS: Final = {
    Part.CONTENT: CONTENT,
    Part.PARSE_TEXT: PARSE_TEXT,
    Part.PARSE_DATA: PARSE_DATA,
    Part.CRAWL_PARSE: CRAWL_PARSE,
    Part.FETCH: CRAWL_FETCH,
}
"""In the order in which they are moved into the segment."""

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
        """Yields all rows in order."""
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

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        tb: TracebackType | None,
    ) -> None:
        for file in self._files:
            file.close()


def close_segment(
    segment: Segment,
    logs: list[Path],
    parts: Iterable[Part],
    compression: str,
    listed: int,
    *,
    limit: int = RUN,
) -> None:
    """Writes `parts` from `logs` and moves them into `segment`, where they replace those of a
    broken closing.

    `compression` is that of folders which have none of their own.
    Raises StoreError if the disk is full (the log stays, nothing is lost) and FormatError if the
    logs settle fewer than `listed` URLs.
    """
    with (
        _collected(segment, logs, parts, listed, limit) as sorters,
        segment.writing([FOLDERS[part] for part in sorters], replace=True) as fresh,
    ):
        _write_parts(fresh, 0, sorters, logs, compression)


def write_list(
    segment: Segment,
    folder: Path,
    number: int,
    logs: list[Path],
    parts: Iterable[Part],
    compression: str,
    listed: int,
) -> None:
    """Writes `parts` of one of several lists of `segment` into `folder`: part `number` of each.

    Raises as `close_segment` does.
    """
    with _collected(segment, logs, parts, listed, RUN) as sorters:
        for part in sorters:
            (folder / FOLDERS[part]).mkdir(parents=True)
        _write_parts(folder, number, sorters, logs, compression)


@contextmanager
def _collected(
    segment: Segment, logs: list[Path], parts: Iterable[Part], listed: int, limit: int
) -> Iterator[dict[Part, _Sorter]]:
    """Sorts the entries of the logs by part, in the order of FOLDERS."""
    chosen = set(parts)
    work = logs[0].parent / "sorting"
    remove(work)
    try:
        yield _collect(logs, [part for part in FOLDERS if part in chosen], work, listed, limit)
    except OSError as exc:
        raise StoreError(
            f"{segment.path}: can't close the segment: {exc.strerror}; the fetch log is kept, "
            "make room and run fetch on the same segment again"
        ) from exc
    finally:
        remove(work)


def _collect(
    logs: list[Path], wanted: list[Part], work: Path, listed: int, limit: int
) -> dict[Part, _Sorter]:
    sorters = {part: _Sorter(work / f"sort-{part.value}", limit) for part in wanted}
    numbers = count()
    settled = 0
    for number, path in enumerate(logs):
        for count_listed, found, _ in positions(path):
            settled += count_listed
            for place in found:
                sorter = sorters.get(place.part)
                if sorter is not None:
                    sorter.add((place.key, next(numbers), number, place.offset, place.length))
    if settled < listed:
        raise FormatError(
            f"{listed - settled} URLs are missing in the fetch log;"
            " run fetch on the same segment again to fetch them",
            path=logs[0].parent,
            expected=listed,
            found=settled,
        )
    return sorters


def _write_parts(
    fresh: Path, number: int, sorters: dict[Part, _Sorter], logs: list[Path], compression: str
) -> None:
    stored = log_codec(logs[0])
    with _Logs(logs) as values:
        for part, sorter in sorters.items():
            path = fresh / FOLDERS[part] / part_name(number)
            _write_part(path, sorter, values, stored, compression)


def _write_part(path: Path, sorter: _Sorter, values: _Logs, stored: str, compression: str) -> None:
    folder = path.parent.name
    layout = LAYOUTS[folder]
    compression = layout.compression or compression
    kind = MapFileWriter if layout.map_file else SequenceFileWriter
    as_stored = compression == RECORD and stored == DEFAULT_CODEC
    decompress = codec(stored).decompress if stored and not as_stored else bytes
    with kind(path, TEXT, layout.value_class, compression=compression) as writer:
        for row in sorter.sorted():
            data = values.value(row)
            if isinstance(writer, MapFileWriter):
                writer.append_raw(text_key(row[0]), decompress(data), compressed=as_stored)
            elif as_stored:
                writer.append_records(data)
            else:
                for key, value in unpack_records(data):
                    writer.append_raw(key, decompress(value))


def stored_codec(compression: str) -> str:
    """Returns the codec of the log's values with which closing can copy them as they are."""
    return DEFAULT_CODEC if compression == RECORD else ""
