"""mergesegs: merges segments into one, or into slices.

Of what the segments hold of a URL the newest stays, as `mergerules` decides; the folders that all
segments have are merged. Records that stay are copied as they are stored, but for ParseData, which
names its segment. The URLs that normalizers and filters reject go, as do those that a
SegmentMergeFilter drops (asked with -filter).

Different from Nutch on purpose: a folder that is merged is there even if nothing is left for it, so
that a slice without pages that could be parsed counts as parsed.

Source: org.apache.nutch.segment.SegmentMerger.
"""

from __future__ import annotations

import logging
import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any, Final

import polars as pl

from minutch.conf import Configuration
from minutch.cycle.segment.mergerules import Piece, Slices, Tables, newest
from minutch.cycle.segment.mergestreams import Streams
from minutch.cycle.segment.mergewriter import SegmentsWriter
from minutch.cycle.segment.segmentnames import segment_name
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
)
from minutch.cycle.segment.storedrecords import decode
from minutch.errors import StoreError
from minutch.hadoop.formats.javaio import decode_text
from minutch.hadoop.formats.sequencefile import RECORD
from minutch.hadoop.formats.writables import Writable, lookup
from minutch.job import Counters, JobContext
from minutch.plugin.chains import SCOPE_DEFAULT, SegmentMergeFilters
from minutch.plugin.urlrules import UrlRules
from minutch.records.crawldatum import STATUS_SIGNATURE, CrawlDatum
from minutch.terminal import counted
from minutch.work.engine import Task, engine_of
from minutch.work.tables.database import record_estimate
from minutch.work.tables.parallel import ordered
from minutch.work.tables.success import mark_success
from minutch.work.tables.textparts import output_folder, require_absent

log = logging.getLogger(__name__)
DROPPED: Final = "records of URLs that a merge filter drops"
OLDER: Final = "records that newer ones replace, or that are no results"
WRITTEN: Final = "records written"
URLS: Final = "URLs in the merged segment"
SEGMENTS: Final = "segments made"
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
    name = segment_name(context.clock.now())
    log.info("Merging %s to %s/%s", counted(len(segments), "segments"), output, name)
    require_absent(output)
    found = _existing([Segment(path) for path in segments])
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
        name=name,
        compressions={folder: _compression(folder, conf) for folder in folders},
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
        context.progress("mergesegs", lambda: _estimate(found, folders)) as progress,
    ):
        written = engine.write(work.write, engine.parts, directory, counters, progress)
        with SegmentsWriter(directory, name, work.compressions) as writer:
            names = writer.write_missing(chain.from_iterable(written), engine.parts)
        mark_success(conf, directory)
    log.info("SegmentMerger: made %s", ", ".join(str(output / made) for made in names))
    counters.add(SEGMENTS, len(names))
    return counters


@dataclass(frozen=True)
class Merging:
    """A merge of segments into one, partition by partition: what stays of a URL depends on its own
    records alone.
    """

    segments: Sequence[Segment]
    name: str
    compressions: Mapping[str, str]
    rules: UrlRules
    filters: SegmentMergeFilters | None
    slice_size: int
    of: int
    """Number of partitions in all."""
    memory: int
    """Bytes that the tables may take together."""

    def write(self, task: Task, parts: range) -> list[tuple[int, int | None]]:
        """Writes some partitions; returns the parts that were written, with the numbers of their
        slices.
        """
        merge = Merge(self.compressions, self.filters)
        with (
            Streams(
                self.segments,
                self.compressions,
                self.rules,
                parts=parts,
                of=self.of,
                memory=self.memory,
                spill=task.spill,
            ) as streams,
            SegmentsWriter(task.folder, self.name, self.compressions) as writer,
        ):
            pieces = merge.pieces(streams, Slices(self.slice_size, self.of))
            for piece in ordered(writer.encode, pieces):
                count = writer.write(piece)
                merge.counters.add(WRITTEN, count)
                task.advance(count)
        task.counters.merge(streams.counters)
        task.counters.merge(merge.counters)
        return writer.written


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


def _common_folders(segments: Sequence[Segment]) -> list[str]:
    """Returns the folders that all segments have. StoreError where there is none."""
    common = list(_IN_NUTCHS_ORDER)
    for segment in segments:
        lacking = [folder for folder in common if not segment.has(folder)]
        if lacking:
            log.info("%s changed input dirs", segment.path)
            log.warning("not merged, since %s has none: %s", segment.path, ", ".join(lacking))
            common = [folder for folder in common if folder not in lacking]
    log.info(
        "SegmentMerger: using segment data from: %s", "".join(f" {folder}" for folder in common)
    )
    if not common:
        raise StoreError(
            f"nothing to merge: no folder ({', '.join(_IN_NUTCHS_ORDER)}) is in all of the segments"
        )
    return common


def _compression(folder: str, conf: Configuration) -> str:
    """Returns `compression_of` the folder; here the configuration decides about fetch lists,
    too.
    """
    return compression_of(CRAWL_FETCH if folder == CRAWL_GENERATE else folder, conf)


def _estimate(segments: Sequence[Segment], folders: Sequence[str]) -> int:
    return sum(record_estimate(segment.parts(folder)) for segment in segments for folder in folders)


class Merge:
    """The merge proper: ranges of keys from the streams, in pieces of what stays; `counters` has
    what was left out.
    """

    def __init__(
        self, compressions: Mapping[str, str], filters: SegmentMergeFilters | None
    ) -> None:
        self.counters = Counters({OLDER: 0, DROPPED: 0, WRITTEN: 0, URLS: 0})
        self._compressions = compressions
        self._filters = filters if filters and filters.filters else None

    def pieces(self, streams: Streams, slices: Slices) -> Iterator[Piece]:
        """Yields the records that stay, cut by `slices`."""
        for tables, keys, counters in ordered(self._merge_range, streams.ranges()):
            self.counters.merge(counters)
            yield from slices.cut(tables, keys)

    def _merge_range(
        self, frames: Mapping[str, list[pl.DataFrame]]
    ) -> tuple[Tables, pl.Series, Counters]:
        """Returns the records that stay of a range of keys, all its keys, and counts."""
        counters = Counters()
        keys = (
            pl.concat([frame["key"] for found in frames.values() for frame in found])
            .unique()
            .sort()
        )
        tables: Tables = {folder: newest(found, folder) for folder, found in frames.items()}
        count = sum(len(frame) for found in frames.values() for frame in found)
        stay = sum(map(len, tables.values()))
        counters.add(OLDER, count - stay)
        if self._filters is not None:
            kept = self._kept(keys, tables)
            keys = keys.filter(kept)
            tables = {
                folder: table.filter(table["key"].is_in(keys.implode()))
                for folder, table in tables.items()
            }
            counters.add(DROPPED, stay - sum(map(len, tables.values())))
        counters.add(URLS, len(keys))
        return tables, keys, counters

    def _kept(self, keys: pl.Series, tables: Tables) -> pl.Series:
        """Returns the mask of keys that all merge filters pass; they see the records that stay of
        each.
        """
        assert self._filters is not None
        records = {folder: self._records(folder, table) for folder, table in tables.items()}
        return pl.Series([self._is_kept(key, records) for key in keys], dtype=pl.Boolean)

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
        is_deflated = self._compressions[folder] == RECORD and value_type is not CrawlDatum
        found: dict[bytes, list[Writable]] = {}
        for key, value in table.select("key", "value").iter_rows():
            data = zlib.decompress(value) if is_deflated else value
            found.setdefault(key, []).append(decode(value_type, data, folder, None, key))
        return found
