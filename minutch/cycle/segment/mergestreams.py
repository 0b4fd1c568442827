"""The records of several segments on their way into one: sorted streams, side by side, values as
they are stored; and what writes them, a part of a slice at a time, each with all folders that are
merged.

Values that need not be looked at stay compressed, as they lie in the file. MapFiles are read in
their order; what is not sorted (crawl_generate, crawl_parse), or no longer where normalizing
changes the URLs, is sorted first, on disk if need be.

Source: org.apache.nutch.segment.SegmentMerger.SegmentOutputFormat.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from threading import Lock
from types import TracebackType
from typing import Final, Self

import numpy as np
import polars as pl

from minutch.cycle.segment.mergerules import MERGE_SCHEMA, SegmentPiece, together
from minutch.cycle.segment.store import LAYOUTS, PARSE_DATA, Segment
from minutch.errors import FormatError
from minutch.hadoop.formats.batch import Batch, Lengths, Offsets, Places, places, string_column
from minutch.hadoop.formats.sequencewriter import RECORD
from minutch.job import Counters
from minutch.kernels import sort
from minutch.kernels.arrow import Bytes, from_series
from minutch.plugin.urlrules import UrlRules
from minutch.records import crawldatum_columns
from minutch.records.crawldatum import CrawlDatum
from minutch.records.metadata import SEGMENT_NAME_KEY
from minutch.records.parsedata_columns import with_content_meta
from minutch.work.tables import spans
from minutch.work.tables.database import are_partitions, data_file, part_name
from minutch.work.tables.frame import aligned, decode_keys, empty, encode_keys
from minutch.work.tables.parallel import workers
from minutch.work.tables.shuffle import Shuffle, partition_of
from minutch.work.tables.spannedfile import SPAN_SIZE
from minutch.work.tables.writer import TableWriter
from minutch.work.tables.zlibvalues import MOST, deflated, inflated

READ: Final = "records read"
ENTRIES: Final = "crawldb"
"""What `Streams.ranges` has the entries of a CrawlDb under."""
LEAST_SPAN: Final = 1 << 18
RankedFile = tuple[int, Path]
"""The rank of a segment, and a part of it."""


class Streams:
    """The records of some segments in `compressions` (folder → compression of the merged one). A
    context manager.

    `counters` has what was read and what `rules` removed, once the ranges have been walked.
    """

    def __init__(
        self,
        segments: Sequence[tuple[int, Segment]],
        compressions: Mapping[str, str],
        rules: UrlRules,
        *,
        parts: range,
        of: int,
        memory: int,
        spill: Path,
        entries: Sequence[Path] = (),
    ) -> None:
        """`segments` have their ranks, `parts` are the partitions, of `of`, whose records are
        wanted; `entries` are the part files of a CrawlDb.
        """
        self.counters = Counters({READ: 0})
        self._parts, self._of = parts, of
        # Newest first: the first record of a key is then the one that stays.
        self._segments = sorted(segments, key=lambda ranked: -ranked[0])
        self._entries = entries
        self._compressions = compressions
        self._rules = rules
        self._budget = memory
        self._spill = spill
        self._lock = Lock()
        files = len(entries) + sum(
            len(segment.parts(folder)) for _, segment in segments for folder in compressions
        )
        # Each file has a batch in memory at a time, several threads each.
        room = self._budget // max(1, 4 * files * workers())
        self._span = min(SPAN_SIZE, max(LEAST_SPAN, room))

    def __enter__(self) -> Self:
        with ExitStack() as stack:
            self._sorted = {
                folder: self._shuffled(folder, stack)
                for folder in self._compressions
                # A normalized URL may be out of order, and of another partition.
                if self._rules.normalizes or not LAYOUTS[folder].map_file
            }
            self._stack = stack.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def ranges(self) -> Iterator[dict[str, list[pl.DataFrame]]]:
        """Range of keys by range, the records of each folder: frames of MERGE_SCHEMA, those of the
        newest segment first; and, if wanted, ENTRIES.
        """
        names, streams = [], []
        for folder in self._compressions:
            for stream in self._streams(folder):
                names.append(folder)
                streams.append(stream)
        for path in self._entries:
            names.append(ENTRIES)
            streams.append(self._read_entries(path))
        for frames in aligned(*streams):
            found: dict[str, list[pl.DataFrame]] = {name: [] for name in names}
            for folder, frame in zip(names, frames, strict=True):
                found[folder].append(frame)
            yield found

    def _streams(self, folder: str) -> list[Iterator[pl.DataFrame]]:
        if folder in self._sorted:
            return [self._sorted[folder].sorted(0)]
        found = [self._side_by_side(files, folder) for files in self._ranked_files(folder)]
        # A folder without parts is there all the same.
        return found or [iter([empty(MERGE_SCHEMA)])]

    def _side_by_side(self, files: Sequence[RankedFile], folder: str) -> Iterator[pl.DataFrame]:
        """Returns sorted files as one stream: small ones together are one table."""
        frames = self._read(files, folder)
        return frames if len(files) == 1 else iter([together([*frames])])

    def _shuffled(self, folder: str, stack: ExitStack) -> Shuffle:
        budget = self._budget // len(self._compressions)
        shuffle = stack.enter_context(Shuffle(1, MERGE_SCHEMA, budget=budget, spill=self._spill))
        for files in self._ranked_files(folder):
            for frame in self._read(files, folder):
                shuffle.add(frame)
        return shuffle

    def _ranked_files(self, folder: str) -> Iterator[list[RankedFile]]:
        """Yields the parts of a folder, newest first, small ones together: as many as are in memory
        at a time of a large one.
        """
        found = (
            ((rank, part), data_file(part).stat().st_size)
            for rank, segment in self._segments
            for part in self._files(segment, folder)
        )
        for group in spans.combined(found, self._span):
            yield [file for file, _ in group]

    def _files(self, segment: Segment, folder: str) -> list[Path]:
        """Returns the parts of a folder that have wanted records."""
        found = segment.parts(folder)
        if len(self._parts) == self._of or self._rules.normalizes or not LAYOUTS[folder].map_file:
            return found
        is_ours = are_partitions([data_file(path) for path in found], self._of)
        # Parts by the same hash: only the wanted ones are opened.
        return found[self._parts.start : self._parts.stop] if is_ours else found

    def _read(self, files: Sequence[RankedFile], folder: str) -> Iterator[pl.DataFrame]:
        value_class = LAYOUTS[folder].value_class
        is_datum = value_class == CrawlDatum.class_name
        decode_values = crawldatum_columns.decode_packed if is_datum else _decode
        ranks = np.array([rank for rank, _ in files], np.uint32)

        def decode(batch: Batch, numbers: spans.Numbers) -> pl.DataFrame:
            return _ranked(decode_values(batch), ranks[numbers])

        frames = spans.scan_numbered(
            [path for _, path in files],
            value_class,
            decode,
            span_size=self._span,
            stored=not is_datum and self._compressions[folder] == RECORD,
        )
        for frame in frames:
            counters = Counters({READ: 0})
            yield self._ruled(frame, counters)
            with self._lock:
                self.counters.merge(counters)

    def _read_entries(self, path: Path) -> Iterator[pl.DataFrame]:
        decode = crawldatum_columns.decode_packed
        for frame in spans.scan(path, CrawlDatum.class_name, decode, span_size=self._span):
            mine = frame.filter(self._are_wanted(frame["key"]))
            yield _ranked(mine, np.zeros(len(mine), np.uint32))

    def _ruled(self, frame: pl.DataFrame, counters: Counters) -> pl.DataFrame:
        """Returns the wanted records of a table under their URLs, counted under the old ones."""
        # Each record is counted by the partition of its old URL, so by one task.
        mine = self._are_wanted(frame["key"])
        own = frame if mine.all() else frame.filter(mine)
        counters.add(READ, len(own))
        own = self._renamed(own, counters)
        if not self._rules.normalizes or len(self._parts) == self._of:
            return own
        # What is wanted is the new URL's partition.
        frame = self._renamed(frame, Counters())
        return frame.filter(self._are_wanted(frame["key"]))

    def _are_wanted(self, keys: pl.Series) -> pl.Series:
        if len(self._parts) == self._of:
            return pl.repeat(True, len(keys), eager=True)
        return partition_of(keys, self._of).is_between(self._parts.start, self._parts.stop - 1)

    def _renamed(self, frame: pl.DataFrame, counters: Counters) -> pl.DataFrame:
        if self._rules.is_neutral:
            return frame
        urls = self._rules.apply(decode_keys(frame["key"]), counters)
        keys = encode_keys(urls) if self._rules.normalizes else frame["key"]
        return frame.with_columns(key=keys).filter(urls.is_not_null())


def _ranked(frame: pl.DataFrame, ranks: spans.Numbers) -> pl.DataFrame:
    return frame.select("key", pl.Series("rank", ranks), "status", time="fetch_time", value="value")


def _decode(batch: Batch) -> pl.DataFrame:
    return pl.DataFrame(
        [
            string_column("key", batch.keys, batch.key_at, batch.key_len),
            pl.Series("status", np.zeros(batch.size, np.uint8)),
            pl.Series("fetch_time", np.zeros(batch.size, np.int64)),
            string_column("value", batch.values, batch.value_at, batch.value_len),
        ]
    )


def as_batch(frame: pl.DataFrame) -> Batch:
    """Returns the records of a frame, copied: keys and values one after the other."""
    return Batch(*_packed(frame["key"]), *_packed(frame["value"]))


def _packed(column: pl.Series) -> tuple[Bytes, Offsets, Lengths]:
    strings = from_series(column)
    every = np.arange(len(column), dtype=np.uint32)
    out = np.empty(int(strings.views[:, 0].sum(dtype=np.int64)), np.uint8)
    at, length = np.empty(len(column), np.int64), np.empty(len(column), np.int32)
    sort.pack(strings.views, strings.addresses, every, out, at, length)
    return out, at, length


def as_places(frame: pl.DataFrame) -> Iterator[Places]:
    """Yields the records of a frame as they go into a file."""
    keys, values = from_series(frame["key"]), from_series(frame["value"])
    yield Places(*places(keys), *places(values), (keys, values))


class SegmentsWriter:
    """Writes pieces below `directory`: the segment `name`, or its slices `name-0`, `name-1`, ...; a
    context manager.

    `compressions` tells how each folder is to be compressed. Pieces of one part come in order.
    """

    def __init__(self, directory: Path, name: str, compressions: Mapping[str, str]) -> None:
        self._directory, self._name = directory, name
        self._compressions = compressions
        self._open: dict[
            int, tuple[int | None, ExitStack, dict[str, TableWriter[pl.DataFrame]]]
        ] = {}
        self.written: list[tuple[int, int | None]] = []
        """Parts, with the numbers of their slices."""

    def write_missing(self, written: Iterable[tuple[int, int | None]], parts: int) -> list[str]:
        """Writes the parts that are not among `written`, empty: a slice has all of them. Returns
        the names of the segments.
        """
        found = set(written)
        slices = {number for _, number in found} or {None}
        for number in slices:
            for part in range(parts):
                if (part, number) not in found:
                    self._writers(part, number)
        return [
            self.segment_name(number) for number in sorted(slices, key=lambda number: number or 0)
        ]

    def segment_name(self, number: int | None) -> str:
        """Returns the name of a slice's segment."""
        return self._name if number is None else f"{self._name}-{number}"

    def encode(self, piece: SegmentPiece) -> SegmentPiece:
        """Returns the piece with its values as they go into the files. Raises FormatError."""
        name = self.segment_name(piece.slice)
        return replace(
            piece,
            tables={
                folder: self._encode(folder, table, name) for folder, table in piece.tables.items()
            },
        )

    def _encode(self, folder: str, table: pl.DataFrame, name: str) -> pl.DataFrame:
        compressed = self._compressions[folder] == RECORD
        if folder != PARSE_DATA and (
            LAYOUTS[folder].value_class != CrawlDatum.class_name or not compressed
        ):
            return table
        batch = as_batch(table)
        if folder == PARSE_DATA:
            plain = inflated_values(batch, folder) if compressed else batch
            batch = with_content_meta(plain, SEGMENT_NAME_KEY, name)
        if compressed:
            batch = deflated(batch)
        return table.with_columns(
            string_column("value", batch.values, batch.value_at, batch.value_len)
        )

    def write(self, piece: SegmentPiece) -> int:
        """Appends an encoded piece; returns how many records that are."""
        for folder, table in piece.tables.items():
            self._writers(piece.part, piece.slice)[folder].write(table)
        return sum(map(len, piece.tables.values()))

    def _writers(self, part: int, number: int | None) -> dict[str, TableWriter[pl.DataFrame]]:
        """Returns the files of a part; those of the slice before are finished."""
        current = self._open.get(part)
        if current is not None and current[0] == number:
            return current[2]
        if current is not None:
            current[1].close()
        stack = ExitStack()
        writers: dict[str, TableWriter[pl.DataFrame]] = {}
        self._open[part] = number, stack, writers
        for folder, compression in self._compressions.items():
            path = self._directory / self.segment_name(number) / folder / part_name(part)
            path.parent.mkdir(parents=True, exist_ok=True)
            writer: TableWriter[pl.DataFrame] = TableWriter(
                path,
                LAYOUTS[folder].value_class,
                as_places,
                mapfile=LAYOUTS[folder].map_file,
                compression=compression,
                deflated=compression == RECORD,
            )
            writers[folder] = stack.enter_context(writer)
        self.written.append((part, number))
        return writers

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        for _, stack, _ in self._open.values():
            stack.__exit__(kind, error, trace)


def inflated_values(batch: Batch, folder: str) -> Batch:
    """Returns records of a folder with what their streams hold. Raises FormatError."""
    plain = inflated(batch)
    if plain is None:
        raise FormatError(
            "damaged record", path=folder, expected=f"a zlib stream of at most {MOST} bytes"
        )
    return plain
