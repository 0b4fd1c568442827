"""Writes fetch lists: the part `crawl_generate` of a new segment.

    <segments>/<yyyyMMddHHmmss>/crawl_generate/part-r-NNNNN     plain SequenceFile <Text,
    CrawlDatum>, uncompressed

A list is sorted by the hash of the URL (`select.url_hashes`), which scatters the pages of a host,
then by URL. The list of a segment appears whole or not at all.

Source: org.apache.nutch.crawl.Generator.partitionSegment, HashComparator.
"""

from __future__ import annotations

import socket
from collections.abc import Callable
from functools import lru_cache, partial
from pathlib import Path
from typing import Final

import numpy as np
import polars as pl
from numpy.typing import NDArray

from minutch.clock import Clock
from minutch.conf import Configuration
from minutch.cycle.fetchlist.partition import UrlPartitioner
from minutch.cycle.fetchlist.select import by_rank, ranks_of, url_hashes
from minutch.cycle.segment.store import CRAWL_GENERATE, Segment, new_segment
from minutch.hadoop.formats.checksum import crc_path
from minutch.hadoop.formats.writables import LongWritable, MapWritable, Text
from minutch.kernels.arrow import from_series
from minutch.kernels.distinct import numbered
from minutch.records.metadata import GENERATE_TIME_KEY
from minutch.records.metadata.rawmap import merge
from minutch.work.engine import engine_of, runs_here
from minutch.work.tables.compression import Compression, output_compression
from minutch.work.tables.crawldata import CrawlDataWriter, scan
from minutch.work.tables.database import part_name
from minutch.work.tables.frame import decode_keys
from minutch.work.tables.install import NEW, sync_path, sync_tree
from minutch.work.tables.success import mark_success
from minutch.work.tables.workfolders import work_folder

_AT_A_TIME: Final = 1 << 19
"""Entries that are put into the order of a list at a time."""


def stamp(entries: pl.DataFrame, time: int) -> pl.DataFrame:
    """Adds `_ngt_` (LongWritable, ms), the time of their selection, to the metadata of
    `entries`.
    """
    own = MapWritable({Text(GENERATE_TIME_KEY): LongWritable(time)}).to_bytes()
    values = entries["metadata"]
    rows, numbers = numbered(from_series(values).column)  # many pages have the same
    stamped = [own if data is None else merge(data, own) for data in values.gather(rows)]
    return entries.with_columns(metadata=pl.Series(stamped, dtype=pl.Binary).gather(numbers))


def listed_keys(segment: Segment) -> pl.Series:
    """Returns the keys of a segment's fetch list. Raises FormatError."""
    keys = [table["key"] for part in segment.data_files(CRAWL_GENERATE) for table in scan(part)]
    return pl.concat([pl.Series("key", [], pl.Binary), *keys])


def number_of_lists(conf: Configuration, asked: int | None) -> int:
    """Returns the number of parts of a fetch list: one for each process that fetches, so one in
    local mode.
    """
    is_here = runs_here(conf)
    if is_here and (conf.get("mapreduce.framework.name") or "local") == "local":
        return 1
    if asked is not None and asked > 0:
        return asked
    maps = conf.get_int("mapreduce.job.maps", 2 if is_here else 0)
    return maps if maps > 0 else engine_of(conf).tasks


@lru_cache(maxsize=100_000)
def address_of(host: str) -> str | None:
    """Returns the IPv4 address of a host; None if it has none."""
    try:
        return socket.gethostbyname(host)
    except (OSError, UnicodeError):
        return None


class FetchListWriter:
    """Writes segments into the directory `segments`, each list in `parts` parts by `partitioner`.

    `complete` is called with the folder of each list that is whole.
    """

    def __init__(
        self,
        segments: Path,
        parts: int,
        partitioner: UrlPartitioner,
        compression: Compression,
        complete: Callable[[Path], None],
    ) -> None:
        self._segments = segments
        self._parts = parts
        self._partitioner = partitioner
        self._compression = compression
        self._complete = complete

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
        )

    def write(self, entries: pl.DataFrame, clock: Clock) -> Path:
        """Makes a new segment with these entries, which may come in any order; returns its path."""
        with new_segment(self._segments, clock, CRAWL_GENERATE) as segment:
            self._fill(segment.path / CRAWL_GENERATE, entries, 0)
            self._complete(segment.path / CRAWL_GENERATE)
        return segment.path

    def add(self, entries: pl.DataFrame, segment: Path) -> list[Path]:
        """Adds parts with these entries to the list of a segment; returns their paths."""
        folder = segment / CRAWL_GENERATE
        begun = len(Segment(segment).data_files(CRAWL_GENERATE))
        with work_folder(segment, NEW) as fresh:
            self._fill(fresh, entries, begun)
            sync_tree(fresh)
            names = [part_name(begun + part) for part in range(self._parts)]
            for name in names:
                crc_path(fresh / name).rename(crc_path(folder / name))
                (fresh / name).rename(folder / name)
        sync_path(folder)
        return [folder / name for name in names]

    def _fill(self, folder: Path, entries: pl.DataFrame, begun: int) -> None:
        """Writes the parts, numbered from `begun`."""
        part_of = (
            self._partitioner.parts_of(decode_keys(entries["key"]), self._parts)
            .to_numpy()
            .astype(np.uint32)
        )
        order = by_rank(
            np.arange(len(entries)), ranks_of(part_of, url_hashes(entries["key"])), entries["key"]
        )
        shares = np.split(order, np.searchsorted(part_of[order], np.arange(1, self._parts)))
        for part, rows in enumerate(shares):
            _write_part(folder / part_name(begun + part), entries, rows, self._compression)


def _write_part(
    path: Path, entries: pl.DataFrame, rows: NDArray[np.int64], compression: Compression
) -> None:
    with CrawlDataWriter(path, mapfile=False, **compression.options) as writer:
        for start in range(0, max(1, len(rows)), _AT_A_TIME):
            writer.write(entries[rows[start : start + _AT_A_TIME]])
