"""mergesegs: merges segments into one, or into slices.

Of what the segments hold of a URL the newest stays, as `mergerules` decides; the folders that all
segments have are merged. Records that stay are copied as they are stored, but for ParseData, which
names its segment. The URLs that normalizers and filters reject go, as do those that a
SegmentMergeFilter drops (asked with -filter).

Different from Nutch on purpose: a folder that is merged is there even if nothing is left for it, so
that a slice without pages that could be parsed counts as parsed. Segments that are being fetched,
or are yet to be, are left out where there are others: Nutch merges what all have, which is next to
nothing then. The merged segment is called as the newest of those that it is made of, not after the
time of merging: what was fetched meanwhile, or is being fetched, has a greater name, and so is
newer for whoever goes by names, as Nutch does.

Source: org.apache.nutch.segment.SegmentMerger.
"""

from __future__ import annotations

import logging
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any, Final

import polars as pl

from minutch.conf import Configuration
from minutch.cycle.segment.mergerules import (
    RecordVerdicts,
    SegmentPiece,
    SegmentSlices,
    Tables,
    is_fetch,
    layered,
    newest,
    together,
)
from minutch.cycle.segment.mergestreams import (
    ENTRIES,
    SegmentsWriter,
    Streams,
    as_batch,
    inflated_values,
)
from minutch.cycle.segment.places import name_before, name_of, segment_name
from minutch.cycle.segment.store import (
    CONTENT,
    CRAWL_FETCH,
    CRAWL_GENERATE,
    CRAWL_PARSE,
    LAYOUTS,
    PARSE_DATA,
    PARSE_TEXT,
    Segment,
    compression_of,
    segments_at,
)
from minutch.cycle.segment.storedrecords import decode
from minutch.errors import StoreError
from minutch.hadoop.formats.batch import Batch
from minutch.hadoop.formats.javaio import decode_text
from minutch.hadoop.formats.sequencewriter import RECORD
from minutch.hadoop.formats.writables import Writable, lookup
from minutch.job import Counters, JobContext
from minutch.plugin.chains import SCOPE_DEFAULT, SegmentMergeFilters
from minutch.plugin.urlrules import UrlRules
from minutch.records import parsedata_columns
from minutch.records.crawldatum import STATUS_SIGNATURE, CrawlDatum
from minutch.records.crawldatum_columns import decode as decode_entries
from minutch.records.crawldatum_columns import decode_packed
from minutch.terminal import counted
from minutch.work.engine import Task, engine_of
from minutch.work.tables.database import record_estimate
from minutch.work.tables.install import mark_success
from minutch.work.tables.parallel import ordered
from minutch.work.tables.spans import Numbers, scan_numbered
from minutch.work.tables.textparts import output_folder, require_absent

log = logging.getLogger(__name__)
DROPPED: Final = "records of URLs that a merge filter drops"
OLDER: Final = "records that newer ones replace, or that are no results"
WRITTEN: Final = "records written"
URLS: Final = "URLs in the merged segment"
SEGMENTS: Final = "segments made"
PAGES: Final = "pages in the merged segment"
_IN_NUTCHS_ORDER = (CONTENT, CRAWL_GENERATE, CRAWL_FETCH, CRAWL_PARSE, PARSE_DATA, PARSE_TEXT)


@dataclass(frozen=True, slots=True)
class MergesegsOptions:
    """The options of mergesegs."""

    filtering: bool = False
    """Whether the URL filters and the merge filters apply."""
    normalize: bool = False
    """Whether the URL normalizers apply."""
    slice_size: int = 0
    """URLs in each of the segments that are made; 0: all in one."""


def mergesegs(
    output: Path,
    segments: Sequence[Path],
    options: MergesegsOptions = MergesegsOptions(),
    *,
    context: JobContext,
) -> Counters:
    """Merges segments into a new one in `output`, which must not exist, or into slices.

    Segments that do not exist are skipped with a message. Raises StoreError if none is left, or if
    no folder is in all of them; FormatError for damage.
    """
    require_absent(output)
    # Held: a compaction may replace them while they are read.
    given = _existing(segments_at(segments))
    found = _closed(given)
    name = _name(found, [segment.name for segment in given if segment not in found])
    # Where the merged segments' names are no times.
    name = name or segment_name(context.clock.now())
    log.info("Merging %s to %s/%s", counted(len(found), "segments"), output, name)
    folders = _common_folders(found)
    conf, engine = context.conf, engine_of(context.conf)
    rules = UrlRules(
        conf,
        normalize=options.normalize,
        filtering=options.filtering,
        scope=SCOPE_DEFAULT,
        keep_on_error=False,
    )
    work = Merging(
        segments=found,
        times=fetch_times(found),
        names=[name],
        compressions={folder: merged_compression(folder, conf) for folder in folders},
        rules=rules,
        filters=SegmentMergeFilters(conf) if options.filtering else None,
        slice_size=options.slice_size,
        of=engine.parts,
        memory=engine.memory,
    )
    if options.slice_size > 0:
        log.info("Slice size: %d URLs.", options.slice_size)
    counters = Counters()
    with (
        output_folder(output) as directory,
        context.progress(
            "mergesegs",
            lambda: sum(
                record_estimate(segment.parts(folder)) for segment in found for folder in folders
            ),
        ) as progress,
    ):
        written = engine.write(work.write, engine.parts, directory, counters, progress)
        names = work.complete(directory, chain.from_iterable(written))
        mark_success(conf, directory)
    log.info("SegmentMerger: made %s", ", ".join(str(output / made) for made in names))
    counters.add(SEGMENTS, len(names))
    return counters


Written = tuple[int, int, int | None]
"""A part that was written: the numbers of its layer, of itself, of its slice."""


@dataclass(frozen=True)
class Merging:
    """A merge of segments into one, partition by partition: what is kept of a URL depends on its
    own records alone.
    """

    segments: Sequence[Segment]
    times: Mapping[str, int]
    """When each was fetched, by its path (ms)."""
    names: Sequence[str]
    """The name of the merged segment; with LAYERS, it is made in these (`mergerules.layered`)."""
    compressions: Mapping[str, str]
    rules: UrlRules
    filters: SegmentMergeFilters | None
    slice_size: int
    of: int
    """Number of partitions in all."""
    memory: int
    """Bytes that the tables may take together."""
    entries: Sequence[Path] = ()
    """The part files of a CrawlDb whose word counts."""
    last_fetch: Callable[[pl.DataFrame], pl.Series] | None = None
    """Tells when the pages of its entries were fetched last (ms)."""
    limit: int = 0
    """When they must have been gone for their records to go (ms)."""

    def write(self, task: Task, parts: range) -> list[Written]:
        """Writes some partitions; returns the parts that were written."""
        # By time, then by name: the place there is the rank.
        order = sorted({(self.times[str(one.path)], one.name) for one in self.segments})
        ranked = [
            (order.index((self.times[str(one.path)], one.name)), one) for one in self.segments
        ]
        merge = Merge(self, [time for time, _ in order])
        with (
            Streams(
                ranked,
                self.compressions,
                self.rules,
                parts=parts,
                of=self.of,
                memory=self.memory,
                spill=task.spill,
                entries=self.entries,
            ) as streams,
            ExitStack() as stack,
        ):
            writers = [
                stack.enter_context(SegmentsWriter(task.folder, name, self.compressions))
                for name in self.names
            ]

            def encode(found: tuple[int, SegmentPiece]) -> tuple[int, SegmentPiece]:
                return found[0], writers[found[0]].encode(found[1])

            slices = [SegmentSlices(self.slice_size, self.of) for _ in self.names]
            # Encoded by threads, written by this one, in order.
            for layer, piece in ordered(encode, merge.pieces(streams, slices)):
                count = writers[layer].write(piece)
                merge.counters.add(WRITTEN, count)
                task.advance(count)
        task.counters.merge(streams.counters)
        task.counters.merge(merge.counters)
        return [(layer, *made) for layer, writer in enumerate(writers) for made in writer.written]

    def complete(self, directory: Path, written: Iterable[Written]) -> list[str]:
        """Writes the parts that are not among `written`, empty: a segment has all of them. Returns
        the names of the segments; a layer above the main one is only there if it has records.
        """
        found, names = list(written), []
        for layer, name in enumerate(self.names):
            mine = [(part, number) for at, part, number in found if at == layer]
            if mine or not layer:
                with SegmentsWriter(directory, name, self.compressions) as writer:
                    names += writer.write_missing(mine, self.of)
        return names


def _existing(segments: Sequence[Segment]) -> list[Segment]:
    found = []
    for segment in segments:
        if segment.path.exists():
            log.info("SegmentMerger:   adding %s", segment.path)
            segment.check()
            found.append(segment)
        else:
            log.warning("Input dir %s doesn't exist, skipping.", segment.path)
    if not found:
        raise StoreError(
            f"no segment to merge: {', '.join(str(segment.path) for segment in segments)} do not"
            " exist"
        )
    return found


def _closed(segments: Sequence[Segment]) -> list[Segment]:
    """Returns the segments that are fetched; all, if none is."""
    closed = [segment for segment in segments if segment.waits_for() != "fetch"]
    for segment in segments if closed else ():
        if segment not in closed:
            log.warning("%s is left out: it is being fetched, or is yet to be", segment.path)
    return closed or list(segments)


def _name(merged: Sequence[Segment], waiting: Sequence[str]) -> str:
    """Returns the name of the newest segment that is merged, of those that are older than the
    first that is `waiting`: what that brings is newer. Empty where the names are no times.
    """
    first = min(waiting, default=None)
    older = [one.name for one in merged if first is None or one.name < first]
    return name_of(max(older)) if older else name_before(str(first))


def fetch_times(segments: Sequence[Segment]) -> dict[str, int]:
    """Returns when each segment was fetched, by its path: the time of its last fetch (ms); 0
    without one.
    """
    found = {str(segment.path): 0 for segment in segments}
    parts = [
        (str(segment.path), part)
        for segment in segments
        if segment.has(CRAWL_FETCH)
        for part in segment.parts(CRAWL_FETCH)
    ]

    def times(batch: Batch, numbers: Numbers) -> pl.DataFrame:
        table = decode_packed(batch).with_columns(of=pl.Series(numbers))
        return table.filter(is_fetch()).group_by("of").agg(pl.col("fetch_time").max())

    for table in scan_numbered([part for _, part in parts], CrawlDatum.class_name, times):
        for number, time in table.iter_rows():
            path, _ = parts[number]
            found[path] = max(found[path], time)
    return found


def _common_folders(segments: Sequence[Segment]) -> list[str]:
    """Returns the folders that all segments have. StoreError where there is none."""
    common = list(_IN_NUTCHS_ORDER)
    for segment in segments:
        lacking = [folder for folder in common if not segment.has(folder)]
        if lacking:
            log.info("%s changed input dirs", segment.path)
            log.warning("not merged, since %s has none: %s", segment.path, ", ".join(lacking))
            # SegmentMerger.merge leaves a folder out for all where one segment lacks it.
            common = [folder for folder in common if folder not in lacking]
    log.info(
        "SegmentMerger: using segment data from: %s", "".join(f" {folder}" for folder in common)
    )
    if not common:
        raise StoreError(
            f"nothing to merge: no folder ({', '.join(_IN_NUTCHS_ORDER)}) is in all of the segments"
        )
    return common


def merged_compression(folder: str, conf: Configuration) -> str:
    """Returns `compression_of` the folder; here the configuration decides about fetch lists,
    too.
    """
    return compression_of(CRAWL_FETCH if folder == CRAWL_GENERATE else folder, conf)


class Merge:
    """The merge proper: ranges of keys from the streams, in pieces of what stays; `counters` has
    what was left out.
    """

    def __init__(self, work: Merging, times: Sequence[int]) -> None:
        """`times` are those of the segments, by rank."""
        self.counters = Counters({OLDER: 0, DROPPED: 0, WRITTEN: 0, URLS: 0})
        self._work, self._times = work, times
        self._filters = work.filters if work.filters and work.filters.filters else None

    def pieces(
        self, streams: Streams, slices: Sequence[SegmentSlices]
    ) -> Iterator[tuple[int, SegmentPiece]]:
        """Yields the records that stay, with the number of their layer, cut by its `slices`."""
        for layers, keys, counters in ordered(self._merge_range, streams.ranges()):
            self.counters.merge(counters)
            for layer, tables in enumerate(layers):
                for piece in slices[layer].cut(tables, keys):
                    yield layer, piece

    def _merge_range(
        self, frames: dict[str, list[pl.DataFrame]]
    ) -> tuple[list[Tables], pl.Series, Counters]:
        """Returns the records that stay of a range of keys, all its keys, and counts."""
        counters, verdicts = Counters(), None
        if self._work.entries:
            verdicts = self._verdicts(frames.pop(ENTRIES))
        before = {folder: together(found) for folder, found in frames.items()}
        keys = pl.concat([table["key"] for table in before.values()]).unique().sort()
        layers = (
            [newest(before, self._times)]
            if len(self._work.names) == 1
            else layered(before, self._times, self._is_parsed, verdicts)
        )
        count = sum(map(len, before.values()))
        stay = sum(len(table) for tables in layers for table in tables.values())
        # Before the merge filters, whose records are counted apart.
        counters.add(OLDER, count - stay)
        if self._filters is not None:
            # Merge filters are mergesegs' alone, which has one layer.
            [tables] = layers
            assert self._filters is not None
            records = {folder: self._records(folder, table) for folder, table in tables.items()}
            keys = keys.filter(
                pl.Series([self._is_kept(key, records) for key in keys], dtype=pl.Boolean)
            )
            tables = {
                folder: table.filter(table["key"].is_in(keys.implode()))
                for folder, table in tables.items()
            }
            counters.add(DROPPED, stay - sum(map(len, tables.values())))
            layers = [tables]
        counters.add(URLS, len(keys))
        if len(layers) > 1 and CRAWL_FETCH in layers[0]:
            counters.add(PAGES, len(layers[0][CRAWL_FETCH]))
        return layers, keys, counters

    def _verdicts(self, found: list[pl.DataFrame]) -> RecordVerdicts:
        """Returns what the CrawlDb says, of its entries in a range."""
        assert self._work.last_fetch is not None
        table = decode_entries(as_batch(pl.concat(found)))
        last = self._work.last_fetch(table)
        return RecordVerdicts(table.select("key", "status", last=last), self._work.limit)

    def _is_parsed(self, table: pl.DataFrame) -> pl.Series:
        """Tells which parses in records of parse_data succeeded. Raises FormatError."""
        batch = as_batch(table)
        # Values of a RECORD folder go through a merge deflated.
        if self._work.compressions[PARSE_DATA] == RECORD:
            batch = inflated_values(batch, PARSE_DATA)
        return parsedata_columns.decode(batch).is_success

    def _is_kept(self, key: bytes, records: Mapping[str, Mapping[bytes, list[Any]]]) -> bool:
        assert self._filters is not None
        found = {folder: records.get(folder, {}).get(key, []) for folder in LAYOUTS}
        first = {folder: values[0] if values else None for folder, values in found.items()}
        parsed: list[CrawlDatum] = found[CRAWL_PARSE]
        return self._filters.filter(
            decode_text(key),
            first[CRAWL_GENERATE],
            first[CRAWL_FETCH],
            next((datum for datum in parsed if datum.status == STATUS_SIGNATURE), None),
            first[CONTENT],
            first[PARSE_DATA],
            first[PARSE_TEXT],
            [datum for datum in parsed if datum.status != STATUS_SIGNATURE],
        )

    def _records(self, folder: str, table: pl.DataFrame) -> dict[bytes, list[Writable]]:
        value_type = lookup(LAYOUTS[folder].value_class)
        # CrawlDatums come decoded (`Streams._read`).
        is_deflated = self._work.compressions[folder] == RECORD and value_type is not CrawlDatum
        found: dict[bytes, list[Writable]] = {}
        for key, value in table.select("key", "value").iter_rows():
            data = zlib.decompress(value) if is_deflated else value
            found.setdefault(key, []).append(decode(value_type, data, folder, None, key))
        return found
