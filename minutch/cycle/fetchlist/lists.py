"""Writes fetch lists, the part `crawl_generate` of a new segment; and marks their entries in the
CrawlDb (generate.update.crawldb), so that the next run leaves them out.

    <segments>/<yyyyMMddHHmmss>/crawl_generate/part-r-NNNNN     plain SequenceFile <Text,
                                                                CrawlDatum>, uncompressed
    <crawldb>/.generated := JSON {"segments": their folder, seen from the CrawlDb, "time": ms}

A list is sorted by the hash of the URL (`select.url_hashes`), which scatters the pages of a host,
then by URL. The list of a segment appears whole or not at all.

Segments come first and their marks after: pages that are marked and in no list would wait for days
(crawl.gen.delay). `.generated` is there in between. Where a run was stopped then, the next one
makes the marks before it selects.

Source: org.apache.nutch.crawl.Generator.partitionSegment, HashComparator.
"""

from __future__ import annotations

import json
import logging
import os
import socket
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Final

import numpy as np
import polars as pl

from minutch import strictjson
from minutch.clock import Clock
from minutch.conf import Configuration
from minutch.cycle.crawldb.partitions import EntryFilter, EntrySources, rewrite
from minutch.cycle.crawldb.schedule import AbstractFetchSchedule
from minutch.cycle.crawldb.store import CrawlDb
from minutch.cycle.crawldb.updatedb import is_merged
from minutch.cycle.fetchlist.partition import UrlPartitioner
from minutch.cycle.fetchlist.select import url_hashes
from minutch.cycle.segment.store import (
    CRAWL_FETCH,
    CRAWL_GENERATE,
    Segment,
    new_segment,
    segments_in,
)
from minutch.errors import StoreError
from minutch.hadoop.formats.batch import string_column
from minutch.hadoop.formats.checksum import crc_path
from minutch.hadoop.formats.writables import LongWritable, MapWritable, Text
from minutch.job import Counters, Progress
from minutch.kernels.arrow import from_series
from minutch.kernels.keycolumns import numbered
from minutch.records.crawldatum_columns import CRAWLDB_SCHEMA
from minutch.records.metadata import GENERATE_TIME_KEY
from minutch.records.rawmap import merge
from minutch.terminal import counted
from minutch.work.engine import Engine, engine_of, runs_here
from minutch.work.tables.compression import Compression, output_compression
from minutch.work.tables.database import OutputSettings, part_name
from minutch.work.tables.frame import decode_keys, empty
from minutch.work.tables.install import NEW, mark_success, sync_path, sync_tree, work_folder
from minutch.work.tables.parallel import memory_budget
from minutch.work.tables.recordfiles import CrawlDataWriter, scan
from minutch.work.tables.shuffle import Shuffle

_PLACE: Final = 12
"""Bytes of an entry's place: segment, part and hash of the URL, each a big-endian int."""
log = logging.getLogger(__name__)

RECORD: Final = ".generated"


def stamp(entries: pl.DataFrame, time: int) -> pl.DataFrame:
    """Adds `_ngt_` (LongWritable, ms), the time of selection, to the metadata of `entries`."""
    own = MapWritable({Text(GENERATE_TIME_KEY): LongWritable(time)}).to_bytes()
    values = entries["metadata"]
    rows, numbers = numbered(from_series(values).column)  # many pages have the same
    stamped = [own if data is None else merge(data, own) for data in values.gather(rows)]
    return entries.with_columns(metadata=pl.Series(stamped, dtype=pl.Binary).gather(numbers))


def number_of_lists(conf: Configuration, asked: int | None) -> int:
    """Returns the parts of a fetch list: one for each process that fetches, so one if local."""
    is_here = runs_here(conf)
    if is_here and (conf.get("mapreduce.framework.name") or "local") == "local":
        # Generator: "running in local mode, generating exactly one partition".
        return 1
    if asked is not None and asked > 0:
        return asked
    # Hadoop's default is 2.
    maps = conf.get_int("mapreduce.job.maps", 2 if is_here else 0)
    return maps if maps > 0 else engine_of(conf).tasks


def address_of(host: str) -> str | None:
    """Returns the IPv4 address of a host; None if it has none."""
    try:
        return socket.gethostbyname(host)
    except (OSError, UnicodeError):
        return None


@dataclass(frozen=True)
class FetchListWriter:
    """Writes segments into the directory `segments`, each list in `parts` parts by `partitioner`.

    `complete` is called with the folder of each list that is whole. Entries that do not fit into
    `memory` bytes are sorted on disk.
    """

    segments: Path
    parts: int
    partitioner: UrlPartitioner
    compression: Compression
    complete: Callable[[Path], None]
    memory: int

    @classmethod
    def from_conf(
        cls, segments: Path, conf: Configuration, *, fetchers: int | None, seed: int | None
    ) -> FetchListWriter:
        """Parts as `number_of_lists` says; `seed` as in UrlPartitioner."""
        return cls(
            segments,
            number_of_lists(conf, fetchers),
            UrlPartitioner.from_conf(conf, address_of, seed),
            output_compression(conf),
            partial(mark_success, conf),
            memory_budget(conf),
        )

    def begin(self, clock: Clock) -> Path:
        """Makes a segment whose list is empty until parts are added; returns its path."""
        with new_segment(self.segments, clock) as segment:
            self.write_part(segment.path / CRAWL_GENERATE / part_name(0), [empty(CRAWLDB_SCHEMA)])
        return segment.path

    def write_part(self, path: Path, tables: Iterable[pl.DataFrame]) -> None:
        """Writes a part of a list."""
        with CrawlDataWriter(path, mapfile=False, **self.compression.options) as file:
            for table in tables:
                file.write(table)

    @contextmanager
    def collecting(self, spill: Path) -> Iterator[FetchLists]:
        """Takes in the entries of new segments; what does not fit into memory goes to a folder in
        `spill`, which is gone at the end.
        """
        with Shuffle(1, CRAWLDB_SCHEMA, budget=self.memory // 4, spill=spill) as rows:
            yield FetchLists(self, rows)


@dataclass
class FetchLists:
    """Entries on their way into the lists of segments, in the order of these: the key of a row is
    its place there, and then the URL.
    """

    _writer: FetchListWriter
    _rows: Shuffle
    entries: int = 0
    """Number of entries."""
    _segments: set[int] = field(default_factory=set)

    def add(self, entries: pl.DataFrame) -> None:
        """Takes in entries (CRAWLDB_SCHEMA, more columns may follow), each with its `segment`."""
        self.entries += len(entries)
        keys, segment = entries["key"], entries["segment"].to_numpy()
        part = self._writer.partitioner.parts_of(decode_keys(keys), self._writer.parts).to_numpy()
        # Big-endian, so that bytes sort as numbers do; in front of the URL they make one key.
        place = np.column_stack([segment, part, url_hashes(keys)]).astype(">u4")
        places, at = np.frombuffer(place.tobytes(), np.uint8), np.arange(len(keys)) * _PLACE
        place_of = string_column("place", places, at, np.full(len(keys), _PLACE, np.int32))
        self._segments |= set(np.unique(segment).tolist())
        rows = entries.select(CRAWLDB_SCHEMA.names()).with_columns(place_of)
        self._rows.add(rows.with_columns(key=pl.col("place") + pl.col("key")).drop("place"))

    def write(
        self, clock: Clock, finish: Callable[[pl.DataFrame], pl.DataFrame] = lambda table: table
    ) -> Iterator[Path]:
        """Makes the segments, as `finish` leaves their entries, and yields the path of each."""
        cut = _Cut(self._rows.sorted(0))
        for number in sorted(self._segments):
            with new_segment(self._writer.segments, clock) as segment:
                folder = segment.path / CRAWL_GENERATE
                for part in range(self._writer.parts):
                    tables = map(finish, cut.up_to(number, part))
                    self._writer.write_part(folder / part_name(part), tables)
                self._writer.complete(folder)
            yield segment.path

    def add_to(
        self, segment: Segment, finish: Callable[[pl.DataFrame], pl.DataFrame] = lambda table: table
    ) -> list[Path]:
        """Adds parts to the list of a segment to which all entries belong; returns their paths."""
        folder, begun = segment.path / CRAWL_GENERATE, len(segment.data_files(CRAWL_GENERATE))
        names = [part_name(begun + part) for part in range(self._writer.parts)]
        cut, (number,) = _Cut(self._rows.sorted(0)), self._segments
        with work_folder(segment.path, NEW) as fresh:
            for part, name in enumerate(names):
                self._writer.write_part(fresh / name, map(finish, cut.up_to(number, part)))
            # On disk before it is part of the list, which a fetch is reading.
            sync_tree(fresh)
            for name in names:
                # The sums first: the part is never there without them.
                crc_path(fresh / name).rename(crc_path(folder / name))
                (fresh / name).rename(folder / name)
        sync_path(folder)
        return [folder / name for name in names]


class _Cut:
    """Sorted rows, to be taken part by part of one segment after the other."""

    def __init__(self, tables: Iterator[pl.DataFrame]) -> None:
        self._tables = tables
        self._rest = next(tables)

    def up_to(self, segment: int, part: int) -> Iterator[pl.DataFrame]:
        """Yields the rows up to the end of a part of a segment, by URL; at least one table."""
        # The first key of the next part.
        bound = segment.to_bytes(4, "big") + (part + 1).to_bytes(4, "big")
        while True:
            table = self._rest
            count = int(table["key"].search_sorted(bound))
            # An empty one, too: a part without entries needs a file.
            yield table[:count].with_columns(pl.col("key").bin.slice(_PLACE))
            self._rest = table[count:]
            # What is left of a table belongs to a later part.
            following = None if len(self._rest) else next(self._tables, None)
            if following is None:
                return
            self._rest = following


def mark(
    db: CrawlDb,
    selected: Iterable[pl.Series],
    time: int,
    *,
    engine: Engine,
    output: OutputSettings,
    progress: Progress,
) -> None:
    """Puts `_ngt_` (`time`, ms) into the CrawlDb's entries of these URLs, under the lock."""

    def step(frames: tuple[pl.DataFrame, ...]) -> tuple[pl.DataFrame, Counters]:
        entries, marked = frames
        mask = entries["key"].is_in(marked["key"].implode())
        stamped = stamp(entries.filter(mask), time)
        rows = mask.arg_true()
        metadata = (
            # scatter works in place, and the column is the engine's.
            entries["metadata"].clone().scatter(rows, stamped["metadata"])
            if len(rows)
            else entries["metadata"]
        )
        return entries.with_columns(metadata=metadata), Counters()

    schema, budget = pl.Schema({"key": pl.Binary()}), engine.memory // 4
    with (
        EntrySources([db], engine, EntryFilter(), spill=db.path) as old,
        Shuffle(engine.parts, schema, budget=budget, spill=db.path) as keys,
    ):
        for some in selected:
            keys.add(some.to_frame("key"))
        sources = [*old.sources, engine.local_source(keys)]
        rewrite(db, engine, output, sources, step, progress)


@contextmanager
def planned(db: CrawlDb, segments: Path, time: int) -> Iterator[None]:
    """Keeps the record while the block writes segments to `segments` and marks what is in them."""
    record = db.path / RECORD
    plan(db, segments, time)
    try:
        yield
    except BaseException:
        if not _lists(segments, time):  # nothing that would have to be marked
            record.unlink(missing_ok=True)
        raise
    record.unlink()


def plan(db: CrawlDb, segments: Path, time: int) -> None:
    """Writes the record; it is on disk, whole, when this returns."""
    record = db.path / RECORD
    fresh = record.with_name(f"{RECORD}.new")
    try:
        folder = os.path.relpath(str(segments), str(db.path))
        with fresh.open("w", encoding="utf-8") as stream:
            json.dump({"segments": folder, "time": time}, stream)
            stream.flush()
            os.fsync(stream.fileno())
        fresh.replace(record)
    except BaseException:
        fresh.unlink(missing_ok=True)
        raise
    sync_path(db.path)


def make_up(
    db: CrawlDb, schedule: AbstractFetchSchedule, mark: Callable[[Iterable[pl.Series], int], None]
) -> None:
    """Marks the entries of a run that was stopped before, under the lock. Raises StoreError."""
    record = db.path / RECORD
    record.with_name(f"{RECORD}.new").unlink(missing_ok=True)
    if not record.exists():
        return
    folder, time = _read(record)
    lists = [
        segment
        for segment in _lists(db.path / folder, time)
        # An update has put its results in the place of the mark.
        if not (segment.has(CRAWL_FETCH) and is_merged(segment, db, schedule))
    ]
    if lists:
        log.info(
            "Generator: marking the pages of %s, which a run that was stopped has left",
            counted(len(lists), "segments"),
        )
        mark(keys_in(lists), time)
    record.unlink()


def keys_in(lists: Iterable[Segment]) -> Iterator[pl.Series]:
    """Yields the keys of the entries in the fetch lists of some segments."""
    return (table["key"] for segment in lists for table in _entries(segment))


def _read(record: Path) -> tuple[str, int]:
    try:
        data = strictjson.loads(record.read_text(encoding="utf-8"))
        return str(data["segments"]), int(data["time"])
    except (ValueError, KeyError, TypeError) as exc:
        raise StoreError(
            f"{record}: expected JSON with segments and time, found something else ({exc}): remove"
            " the file, and fetch the newest segments before you generate others"
        ) from exc


def _lists(folder: Path, time: int) -> list[Segment]:
    """Returns the segments in a folder that were generated at `time`."""
    found = segments_in(folder) if folder.is_dir() else []
    return [
        segment for segment in found if segment.has(CRAWL_GENERATE) and _time_of(segment) == time
    ]


def _time_of(segment: Segment) -> int | None:
    """Returns the time a segment was generated, by the mark of its first entry."""
    for table in _entries(segment):
        # One entry is enough: a list is stamped as a whole.
        if len(table) and table["metadata"][0] is not None:
            mark = MapWritable.from_bytes(table["metadata"][0]).get(Text(GENERATE_TIME_KEY))
            return mark.value if isinstance(mark, LongWritable) else None
    return None


def _entries(segment: Segment) -> Iterator[pl.DataFrame]:
    return (table for part in segment.data_files(CRAWL_GENERATE) for table in scan(part))
