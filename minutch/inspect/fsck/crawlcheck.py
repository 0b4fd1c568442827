"""fsck: checks whether the folders of a crawl are whole and agree with each other, and repairs
them.

Reads every record of the databases and segments: checksums, order and partition of keys, repeated
keys, indexes, and every file of a local index; then compares the segments with each other and with
the CrawlDb, and looks for unfinished rounds, locks and leftovers.
"""

from __future__ import annotations

import logging
import shutil
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Final

import polars as pl

from minutch.conf import Configuration
from minutch.cycle.crawl.rounds import at_work
from minutch.cycle.crawldb.store import CrawlDb
from minutch.cycle.fetchlist.lists import keys_in
from minutch.cycle.hostdb.store import HostDb
from minutch.cycle.linkdb.store import LinkDb
from minutch.cycle.segment.places import finish_others
from minutch.cycle.segment.store import CRAWL_GENERATE, LAYOUTS, Segment, segments_in
from minutch.cycle.webgraph.store import OUTLINKS, OutlinkDb, WebGraph
from minutch.errors import FormatError, StoreError
from minutch.hadoop.formats.javahash import partition
from minutch.hadoop.formats.javaio import DataInput
from minutch.hadoop.formats.mapfile import MapFileWriter, Record, rebuild_index, sort_records
from minutch.hadoop.formats.sequencefile import SequenceFileReader
from minutch.hadoop.formats.sequencewriter import TEXT, SequenceFileWriter
from minutch.inspect.fsck.partfiles import check_folder, check_linkdb
from minutch.inspect.fsck.problems import (
    Problem,
    Remedy,
    WithCrawlDb,
    checksums,
    in_crawl,
    in_database,
    in_segment,
    in_segments,
    locks,
    within,
)
from minutch.inspect.search.localindex import META, STAMP, LocalIndex
from minutch.inspect.search.searcher import Searcher
from minutch.job import Counters, JobContext
from minutch.records.webgraph import LinkDatum
from minutch.work.tables.database import Database, data_file, part_name, part_paths
from minutch.work.tables.install import WholeFile, sync_path

# Repairs a crawl without losing a record, or by dropping those that can't be read.
#
# Records are taken as they are stored, one by one, and sorted on disk: a repair is rare, and of
# any kind of record.

log = logging.getLogger(__name__)
CRAWLDB, LINKDB, SEGMENTS, HOSTDB = "crawldb", "linkdb", "segments", "hostdb"
INDEX: Final = "index"
"""Where indexer-local puts its index, unless its parameters name another place."""
PROBLEMS, REPAIRED, LEFT = "problems", "repaired", "left"


@dataclass
class Losses:
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


def rewrite(folder: Path, *, drop: bool) -> Losses:
    """Sorts and partitions the records of all parts in `folder` again; with `drop`, those that can
    be read.

    The new parts replace the old ones at once. Keys that come twice are kept, unless `drop`: then
    the last one stays. Raises FormatError for records that can't be read, LockedError.
    """
    dropped = Losses()
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


def _write_again(folder: Path, fresh: Path, drop: bool, dropped: Losses) -> None:
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
    paths: Sequence[Path], number: int, fresh: Path, distinct: bool, drop: bool, dropped: Losses
) -> Iterator[Record]:
    """Yields part `number`'s records, sorted on disk in `fresh`; `distinct`: a key's last one."""

    def mine() -> Iterator[Record]:
        for path in paths:
            notes = dropped if number == 0 else Losses()  # each part reads all files
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


def _records(path: Path, drop: bool, dropped: Losses) -> Iterator[Record]:
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


@dataclass(frozen=True, slots=True)
class FsckOptions:
    """Options of fsck."""

    repair: bool = False
    """Repairs what can be repaired without losing a record."""
    drop: bool = False
    """With `repair`: also drops unreadable records and older entries of a URL."""


@dataclass(frozen=True, slots=True)
class FsckResult:
    """The problems that fsck found, and those that are left after repairs."""

    found: list[Problem]
    left: list[Problem]

    @property
    def counters(self) -> Counters:
        """Numbers of problems found, repaired and left."""
        found, left = len(self.found), len(self.left)
        return Counters({PROBLEMS: found, REPAIRED: max(0, found - left), LEFT: left})


_DEFAULTS: Final = FsckOptions()


def fsck(crawl: Path, options: FsckOptions = _DEFAULTS, *, context: JobContext) -> FsckResult:
    """Checks a crawl and, if asked to, repairs it. Prints problems and repairs.

    Raises StoreError where there is no crawl, LockedError.
    """
    found = list(problems(crawl, context.conf))
    for problem in found:
        context.print(problem)
    if not options.repair:
        return FsckResult(found, found)
    left = repair(found, context.print, drop=options.drop)
    if len(left) < len(found):
        left = list(problems(crawl, context.conf))  # a repair may uncover others
    return FsckResult(found, left)


def problems(crawl: Path, conf: Configuration) -> Iterator[Problem]:
    """Yields all that is wrong in a crawl's folder. Raises StoreError, ConfigError."""
    names = (CRAWLDB, LINKDB, SEGMENTS, HOSTDB)
    graphs = [WebGraph(path) for path in sorted(crawl.glob("*/")) if (path / OUTLINKS).is_dir()]
    if not graphs and not any((crawl / name).is_dir() for name in names):
        raise StoreError(f"{crawl} is no crawl: there is no {', '.join(names)} or webgraph in it")
    yield from locks(crawl)
    yield from in_crawl(crawl)
    crawldb, linkdb = CrawlDb(crawl / CRAWLDB), LinkDb(crawl / LINKDB)
    whole = True
    listed = partial(_listed, crawl / SEGMENTS)
    for problem in _databases(crawldb, linkdb, HostDb(crawl / HOSTDB), listed):
        whole = whole and not problem.path.is_relative_to(crawldb.path)
        yield problem
    for graph in graphs:
        yield from _webgraph(graph, listed)
    yield from _index(LocalIndex(crawl / INDEX))
    if (crawl / SEGMENTS).is_dir():
        yield from in_segments(crawl / SEGMENTS)
        segments, busy = [], at_work(crawl)
        for segment in segments_in(crawl / SEGMENTS):
            if segment.name in busy:
                yield Problem(segment.path, busy[segment.name])
                continue
            if (yield from _segment(segment, crawldb if whole and crawldb.exists() else None)):
                segments.append(segment)
        if whole and crawldb.exists():
            agreed = WithCrawlDb(crawldb, segments, conf)
            for segment in segments:
                yield from agreed.problems(segment)


def _listed(folder: Path) -> Iterator[pl.Series]:
    """Yields the keys of all fetch lists, which have been in the CrawlDb. Raises FormatError."""
    for segment in segments_in(folder) if folder.is_dir() else ():
        if segment.has(CRAWL_GENERATE):
            yield from keys_in([segment])


def _databases(
    crawldb: CrawlDb, linkdb: LinkDb, hostdb: HostDb, listed: Callable[[], Iterator[pl.Series]]
) -> Iterator[Problem]:
    for database in (crawldb, linkdb, hostdb):
        if database.path.is_dir():
            yield from locks(database.path)
            yield from in_database(database.path)
            yield from checksums(database.path)
    if crawldb.exists():
        yield from check_folder(crawldb.current, map_files=True, distinct=True, known=listed)
    if linkdb.exists():
        yield from check_linkdb(linkdb, listed)
    if hostdb.exists():
        yield from check_folder(hostdb.current, map_files=False, distinct=True)


def _webgraph(graph: WebGraph, listed: Callable[[], Iterator[pl.Series]]) -> Iterator[Problem]:
    """Checks a WebGraph's databases, in one folder with one lock; only links repeat a page."""
    yield from locks(graph.path)
    yield from in_database(graph.outlinks.path)
    yield from checksums(graph.path)
    in_graph = (graph.inlinks, graph.nodes, graph.linkdump, graph.loops)
    yield from in_database(graph.path, [database.name for database in in_graph])
    for database in (graph.outlinks, *in_graph):
        if database.exists():
            yield from check_folder(
                database.current,
                map_files=True,
                distinct=not isinstance(database, OutlinkDb),
                known=listed,
            )


def _index(index: LocalIndex) -> Iterator[Problem]:
    """Checks the files of an index of this crawl; one that is elsewhere, `search` checks."""
    if not any((index.current / name).is_file() for name in (STAMP, META)):
        return
    yield from locks(index.path)
    yield from in_database(index.path)
    try:
        index.check()
        Searcher(index.path)
    except (FormatError, StoreError) as exc:
        at = Path(exc.path) if isinstance(exc, FormatError) else index.path
        what = exc.what if isinstance(exc, FormatError) else exc
        yield Problem(at, f"{what} ({exc.hint})")


def _segment(segment: Segment, crawldb: CrawlDb | None) -> Generator[Problem, None, bool]:
    """Checks a segment, and tells whether its folders are whole."""
    if not any(segment.path.iterdir()):
        return False
    yield from locks(segment.path / "_fetch")
    yield from in_segment(segment)
    yield from checksums(segment.path)
    whole = True
    for name, layout in LAYOUTS.items():
        if segment.has(name):
            for problem in check_folder(
                segment.path / name, map_files=layout.map_file, distinct=False
            ):
                whole = False
                yield problem
    if whole:
        yield from within(segment, crawldb)
    return whole


def repair(found: list[Problem], say: Callable[[str], None], *, drop: bool) -> list[Problem]:
    """Repairs what can be repaired, says so, and returns the problems that are left."""
    left, folders = [], dict[Path, bool]()
    for problem in found:
        if problem.remedy in REPAIRS:
            REPAIRS[problem.remedy](problem)
            say(f"repaired: {problem.path}: {problem.remedy.value}")
        elif problem.folder is not None and (problem.remedy is Remedy.REWRITE or drop):
            folders[problem.folder] = (
                folders.get(problem.folder, False) or problem.remedy.loses_records
            )
        else:
            left.append(problem)
    for folder, loses in folders.items():
        wrong = [problem for problem in found if problem.folder == folder]
        left += _rewritten(folder, loses, wrong, say)
    return left


def _rewritten(
    folder: Path, loses: bool, wrong: list[Problem], say: Callable[[str], None]
) -> list[Problem]:
    """Rewrites a folder and returns its problems that are left."""
    try:
        dropped = rewrite(folder, drop=loses)
    except FormatError as exc:
        log.warning("%s stays as it is: %s", folder, exc)
        return wrong
    say(f"repaired: {folder}: {(Remedy.DROP if loses else Remedy.REWRITE).value}")
    for line in dropped.lines:
        say(f"dropped: {line}")
    return []
