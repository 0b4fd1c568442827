"""Closes a fetched segment: sorts the fetch log into crawl_fetch, content and the parts of a parse;
brings them to where the segment is, if that is another store.

Only keys and places are sorted, values are copied from the log as they are (already compressed
where the part is). More than `RUN` entries of a part are sorted in runs on disk and merged, so
memory does not grow with the segment. The files of a parse are those that the parse job would write
(`minutch.cycle.parse.partwriters`).

The parts are moved into the segment when all are whole, crawl_fetch last (`Segment.writing`): a
segment with crawl_fetch and without a log is complete. Killed in between, the next `fetch` closes
it from the log again.
"""

from __future__ import annotations

import heapq
import os
import shutil
import struct
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field, replace
from hashlib import sha256
from itertools import count
from pathlib import Path
from typing import Final

from minutch.cycle.fetch.results.fetchlog import Part, let_go, log_codec, mapped, positions
from minutch.cycle.parse.pageparser import ParsedPage
from minutch.cycle.parse.partwriters import (
    REPEATED,
    PartSettings,
    PartWriters,
    merge_kept,
    write_page,
)
from minutch.cycle.segment.store import (
    CONTENT,
    CRAWL_FETCH,
    CRAWL_GENERATE,
    CRAWL_PARSE,
    FETCHED,
    LAYOUTS,
    WARC,
    Segment,
)
from minutch.cycle.segment.storedrecords import text_key
from minutch.errors import FormatError, StoreError, in_a_line
from minutch.hadoop.formats.compress import DEFAULT_CODEC, codec
from minutch.hadoop.formats.mapfile import MapFileWriter
from minutch.hadoop.formats.sequencewriter import RECORD, TEXT
from minutch.job import Counters
from minutch.paths import is_local
from minutch.work.tables.database import part_name
from minutch.work.tables.install import remove
from minutch.work.tables.lock import lock

RUN: Final = 50_000
"""Entries sorted in memory at a time: 45 MB instead of 116 for 200,000 pages, 3 µs a page more."""
_MAPPED: Final = 64 << 20
"""Bytes that are read of the logs before this process's memory lets go of them."""
_PLACE: Final = struct.Struct(">IQIQI")


_FOLDERS: Final = {Part.CONTENT: CONTENT, Part.FETCH: CRAWL_FETCH}
_ORDER: Final = (Part.CONTENT, Part.PARSE, Part.FETCH)
"""In which parts are moved into the segment."""

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
        self._data = [mapped(path) for path in paths]
        self._read = 0

    def value(self, row: _Row) -> bytes:
        _, _, log, offset, length = row
        self._read += length
        # Mapped pages that were read count as this process's memory until they are let go.
        if self._read > _MAPPED:
            self._read = 0
            for data in self._data:
                let_go(data, 0, len(data))
        return self._data[log][offset : offset + length]

    def close(self) -> None:
        for data in self._data:
            data.close()


def close_segment(
    segment: Segment,
    logs: list[Path],
    parts: Iterable[Part],
    form: PartSettings,
    listed: int,
    *,
    limit: int = RUN,
) -> Counters:
    """Writes `parts` from `logs` and moves them into `segment`, where they replace those of a
    broken closing. Returns the counters of the parse, if that is among them.

    Raises StoreError if the disk is full (the log stays, nothing is lost) and FormatError if the
    logs settle fewer than `listed` URLs.
    """
    with _collected(segment, logs, parts, listed, limit) as sorters:
        folders = [folder for part in sorters for folder in folders_of(part, form)]
        with segment.writing(folders, replace=True) as fresh:
            return _write_parts(fresh, sorters, logs, form)


def write_list(
    segment: Segment,
    folder: Path,
    number: int,
    logs: list[Path],
    parts: Iterable[Part],
    form: PartSettings,
    listed: int,
) -> None:
    """Writes `parts` of one of several lists of `segment` into `folder`: part `number` of each.

    Raises as `close_segment` does.
    """
    with _collected(segment, logs, parts, listed, RUN) as sorters:
        _write_parts(folder, sorters, logs, replace(form, count=1, first=number))


@contextmanager
def _collected(
    segment: Segment, logs: list[Path], parts: Iterable[Part], listed: int, limit: int
) -> Iterator[dict[Part, _Sorter]]:
    """Sorts the entries of the logs by part, in the order of _ORDER."""
    chosen = set(parts)
    work = logs[0].parent / "sorting"
    remove(work)
    try:
        yield _collect(logs, [part for part in _ORDER if part in chosen], work, listed, limit)
    except OSError as exc:
        raise StoreError(
            f"{segment.path}: can't close the segment; the fetch log is kept: {in_a_line(exc)}"
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
    # Before a file is written: a segment that looks whole would never be fetched again.
    if settled < listed:
        raise FormatError(
            f"{listed - settled} URLs are missing in the fetch log;"
            " run fetch on the same segment again to fetch them",
            path=logs[0].parent,
            expected=listed,
            found=settled,
        )
    return sorters


def folders_of(part: Part, form: PartSettings) -> Sequence[str]:
    """Returns the folders of a segment that a part of the log ends up in, in the order in which
    they are moved there.
    """
    return (*form.map_folders, CRAWL_PARSE) if part is Part.PARSE else (_FOLDERS[part],)


def _write_parts(
    fresh: Path, sorters: dict[Part, _Sorter], logs: list[Path], form: PartSettings
) -> Counters:
    counters, codec_name = Counters(), log_codec(logs[0])
    with closing(_Logs(logs)) as values:
        for part, sorter in sorters.items():
            if part is Part.PARSE:
                with PartWriters(fresh, form) as writers:
                    for row in sorter.sorted():
                        page = ParsedPage.from_bytes(values.value(row))
                        write_page(row[0], page.outcomes, page.documents, writers, counters)
                counters.add(REPEATED, merge_kept(fresh, form))
            else:
                folder = fresh / _FOLDERS[part]
                folder.mkdir(exist_ok=True)
                _write_part(folder / part_name(form.first), sorter, values, codec_name, form)
    return counters


def _write_part(
    path: Path, sorter: _Sorter, values: _Logs, codec_name: str, form: PartSettings
) -> None:
    folder = path.parent.name
    compression = form.compression_of(folder)
    # Values are copied without being unpacked.
    as_stored = compression == RECORD and codec_name == DEFAULT_CODEC
    decompress = codec(codec_name).decompress if codec_name and not as_stored else bytes
    value_class = LAYOUTS[folder].value_class
    with MapFileWriter(path, TEXT, value_class, compression=compression) as writer:
        for row in sorter.sorted():
            value = decompress(values.value(row))
            writer.append_raw(text_key(row[0]), value, compressed=as_stored)


def stored_codec(compression: str) -> str:
    """Returns the codec of the log's values with which closing can copy them as they are."""
    return DEFAULT_CODEC if compression == RECORD else ""


# -- a segment on a file system of Hadoop ----------------------------------------------------------
#
# It is fetched on this machine: its fetch list comes here, what is fetched goes there. The fetch's
# log needs a disk that keeps what was written when the machine dies; so the work lies in a folder
# of this machine, whose name is made of the segment's. A fetch that was interrupted is gone on with
# by the same user on the same machine. Meanwhile the segment there has a lock.

_PIECE: Final = 1 << 24


@contextmanager
def fetched_here(path: Path) -> Iterator[Path]:
    """Yields the folder to fetch a segment in; when the block ends its new parts are in the
    segment. On an error it stays.
    """
    if is_local(path):
        yield path
        return
    there = Segment(path)
    there.check()
    there.parts(CRAWL_GENERATE)
    with lock(path):
        here = folder_of(path) / path.name
        here.mkdir(parents=True, exist_ok=True)
        if not (here / CRAWL_GENERATE).is_dir():
            fresh = here / f".{CRAWL_GENERATE}"
            shutil.rmtree(fresh, ignore_errors=True)
            copy_folder(path / CRAWL_GENERATE, fresh)
            # Half a copy would be a list with fewer URLs.
            fresh.rename(here / CRAWL_GENERATE)
        for folder in FETCHED:
            if there.has(folder):
                (here / folder).mkdir(
                    exist_ok=True
                )  # which says that the segment is fetched already
        yield here
        if (here / WARC).is_dir():  # first: a segment that has its records is done
            copy_folder(here / WARC, path / WARC)
        made = [
            folder
            for folder in reversed(LAYOUTS)
            if folder != CRAWL_GENERATE and (here / folder).is_dir()
        ]
        # Those by which a segment counts as fetched come last.
        with there.writing(sorted(made, key=FETCHED.__contains__)) as fresh_there:
            for folder in made:
                copy_folder(here / folder, fresh_there / folder)
    shutil.rmtree(here.parent)


def own_folder() -> Path:
    """Returns this user's folder for fetches on this machine. Raises StoreError if it is another
    user's.
    """
    own = Path(tempfile.gettempdir(), f"minutch-fetch-{os.getuid()}")
    own.mkdir(mode=0o700, exist_ok=True)
    # The folder for temporary files is everybody's: somebody may have made it before.
    if own.stat().st_uid != os.getuid() or own.is_symlink():
        raise StoreError(f"{own} belongs to another user: nothing can be fetched in it")
    return own


def folder_of(path: Path, what: str = "") -> Path:
    """Returns the folder for a segment in `own_folder`, named by the segment's whole path, with
    `what` appended.
    """
    return own_folder() / f"{path.name}-{sha256(str(path).encode()).hexdigest()[:16]}{what}"


def copy_folder(source: Path, target: Path) -> None:
    """Copies a folder to or from another file system, without checksum siblings."""
    target.mkdir(exist_ok=True)
    for path in source.iterdir():
        if path.is_dir():
            copy_folder(path, target / path.name)
        elif not path.name.endswith(".crc"):
            with path.open("rb") as file, (target / path.name).open("wb") as copy:
                shutil.copyfileobj(file, copy, _PIECE)
