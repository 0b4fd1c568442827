"""Repairs a crawl without losing a record, or by dropping those that can't be read.

Records are taken as they are stored, one by one, and sorted on disk: a repair is rare, and of any
kind of record.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path

from minutch.cycle.segment.places import finish_others
from minutch.cycle.segment.store import LAYOUTS, Segment
from minutch.cycle.webgraph.store import WebGraph
from minutch.errors import FormatError
from minutch.hadoop.formats.javahash import partition
from minutch.hadoop.formats.javaio import DataInput
from minutch.hadoop.formats.mapfile import TEXT, MapFileWriter, Record, rebuild_index, sort_records
from minutch.hadoop.formats.sequencefile import SequenceFileReader
from minutch.hadoop.formats.sequencewriter import SequenceFileWriter
from minutch.inspect.fsck.problems import Problem, Remedy
from minutch.records.webgraph import LinkDatum
from minutch.work.tables.database import Database, part_name, part_paths
from minutch.work.tables.install import WholeFile, sync_path
from minutch.work.tables.spannedfile import data_file


@dataclass
class Dropped:
    """Descriptions of what a repair could not keep."""

    lines: list[str] = field(default_factory=list)


def remove(problem: Problem) -> None:
    """Removes a leftover."""
    if problem.path.is_dir():
        shutil.rmtree(problem.path)
    else:
        problem.path.unlink(missing_ok=True)


def put_in_place(problem: Problem) -> None:
    """Moves segments into their places."""
    finish_others(problem.path.parent)


def make_index(problem: Problem) -> None:
    """Makes the index of a MapFile from its data."""
    rebuild_index(problem.path.parent)
    sync_path(problem.path.parent)


def write_checksums(problem: Problem) -> None:
    """Rewrites a file as it is, with its checksums."""
    with problem.path.open("rb") as source, WholeFile(problem.path, sums=True) as target:
        while piece := source.read(1 << 20):
            target.write(piece)


def rewrite(folder: Path, *, drop: bool) -> Dropped:
    """Sorts and partitions the records of all parts in `folder` again; with `drop`, those that can
    be read.

    The new parts replace the old ones at once. Keys that come twice are kept, unless `drop`: then
    the last one stays. Raises FormatError for records that can't be read, LockedError.
    """
    dropped = Dropped()
    if folder.name in LAYOUTS:
        with Segment(folder.parent).writing([folder.name], replace=True) as fresh:
            _write_again(folder, fresh / folder.name, drop, dropped)
        return dropped
    database = Database(folder.parent)
    database.name = folder.name
    with _lock_of(database), database.replacement(keep_old=True) as fresh:
        _write_again(folder, fresh, drop, dropped)
    return dropped


def _lock_of(database: Database) -> AbstractContextManager[object]:
    """Returns the lock of a database; of a WebGraph's links that of the whole graph."""
    graph = WebGraph(database.path.parent)
    return graph.lock() if graph.outlinks.path == database.path else database.lock()


def _write_again(folder: Path, fresh: Path, drop: bool, dropped: Dropped) -> None:
    paths = part_paths(folder)
    if not any(path.is_dir() for path in paths):
        for path in paths:
            with _like(path, fresh / path.name, SequenceFileWriter) as writer:
                for key, value in _records(path, drop, dropped):
                    writer.append_raw(key, value)
        return
    with SequenceFileReader(data_file(paths[0]), verify=False) as reader:
        several = (
            folder.name in LAYOUTS or reader.value_class == LinkDatum.class_name
        )  # records of one key
    for number in range(len(paths)):
        with _like(paths[0], fresh / part_name(number), MapFileWriter) as writer:
            distinct = drop and not several
            for key, value in _sorted(paths, number, fresh, distinct, drop, dropped):
                writer.append_raw(key, value)


def _like(
    old: Path, new: Path, kind: Callable[..., MapFileWriter | SequenceFileWriter]
) -> MapFileWriter | SequenceFileWriter:
    with SequenceFileReader(data_file(old), verify=False) as reader:
        options = {"compression": reader.compression} | (
            {"codec": reader.codec} if reader.codec else {}
        )
        return kind(new, TEXT, reader.value_class, **options)


def _sorted(
    paths: Sequence[Path],
    number: int,
    fresh: Path,
    distinct: bool,
    drop: bool,
    dropped: Dropped,
) -> Iterator[Record]:
    """Yields the records of part `number` in order, sorted on disk in `fresh`; with `distinct`, the
    last one of each key.
    """

    def mine() -> Iterator[Record]:
        for path in paths:
            notes = dropped if number == 0 else Dropped()  # each part reads all files
            for key, value in _records(path, drop, notes):
                if partition(_url(key), len(paths)) == number:
                    yield key, value

    waiting: Record | None = None
    for record in sort_records(mine(), key=_url, directory=fresh):
        if waiting is not None and not (distinct and waiting[0] == record[0]):
            yield waiting
        elif waiting is not None:
            dropped.lines.append(f"an older entry of {_url(record[0]).decode('utf-8', 'replace')}")
        waiting = record
    if waiting is not None:
        yield waiting


def _url(key: bytes) -> bytes:
    return DataInput(key).read_text_bytes()


def _records(path: Path, drop: bool, dropped: Dropped) -> Iterator[Record]:
    """Yields the records of a part; with `drop`, whatever the checksums say, and after damage those
    behind the next sync marker.
    """
    data = data_file(path)
    with SequenceFileReader(data, verify=not drop) as reader:
        value_type = reader.value_type
        while True:
            try:
                for key, value in reader:
                    value_type.from_bytes(value)
                    _url(key)
                    yield key, value
                return
            except FormatError as exc:
                if not drop:
                    raise
                at = reader.position
                reader.sync_to(max(at, exc.offset or 0) + 1)
                dropped.lines.append(f"{data}: bytes {at} to {reader.position}: {exc.what}")


REPAIRS: dict[Remedy, Callable[[Problem], None]] = {
    Remedy.REMOVE: remove,
    Remedy.PLACE: put_in_place,
    Remedy.INDEX: make_index,
    Remedy.CHECKSUMS: write_checksums,
}
"""Repairs of one file; `rewrite` takes a whole folder."""
