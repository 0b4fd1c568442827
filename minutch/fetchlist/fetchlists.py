"""Fetch lists on disk: the part `crawl_generate` of a new segment.

    <segments>/<yyyyMMddHHmmss>/crawl_generate/part-r-NNNNN     plain SequenceFile <Text, CrawlDatum>, uncompressed

The list of a segment appears whole or not at all. Matched: org.apache.nutch.crawl.Generator.partitionSegment.
"""

from __future__ import annotations

import socket
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path

import numpy as np
import polars as pl

from minutch.clock import Clock
from minutch.conf import Configuration
from minutch.fetchlist.arrange import inverse_sizes, shuffle_order, url_hashes
from minutch.fetchlist.partitioner import Resolve, UrlPartitioner
from minutch.formats.writables import LongWritable, MapWritable, Text
from minutch.records.metadata import GENERATE_TIME_KEY
from minutch.records.rawmap import merge
from minutch.segment.store import CRAWL_GENERATE, Segment, new_segment_name
from minutch.tables.crawldata import CrawlDataWriter
from minutch.tables.database import part_name
from minutch.tables.frame import decode_keys
from minutch.tables.install import sync_path


def stamp(entries: pl.DataFrame, time: int) -> pl.DataFrame:
    """`entries` with `_ngt_` (LongWritable, ms) in their metadata: when they were selected."""
    own = MapWritable({Text(GENERATE_TIME_KEY): LongWritable(time)}).to_bytes()
    metadata = entries["metadata"].fill_null(own)
    others = entries["metadata"].is_not_null().arg_true()
    if len(others):
        merged = [merge(data, own) for data in metadata.gather(others)]
        metadata = metadata.scatter(others, pl.Series(merged, dtype=pl.Binary))
    return entries.with_columns(metadata=metadata)


def number_of_lists(conf: Configuration, asked: int | None) -> int:
    """Parts of a fetch list. In local mode there is one, as one process fetches it."""
    if (conf.get("mapreduce.framework.name") or "local") == "local":
        return 1
    return asked if asked is not None and asked > 0 else max(1, conf.get_int("mapreduce.job.maps", 2))


@lru_cache(maxsize=100_000)
def address_of(host: str) -> str | None:
    """The IPv4 address of a host; None if it has none."""
    try:
        return socket.gethostbyname(host)
    except (OSError, UnicodeError):
        return None


class FetchListWriter:
    """Writes segments into the directory `segments`, each list in `parts` parts; `seed` as in UrlPartitioner."""

    def __init__(self, segments: Path, parts: int, conf: Configuration, resolve: Resolve, seed: int | None) -> None:
        self._segments = segments
        self._parts = parts
        self._partitioner = UrlPartitioner(conf, resolve, seed) if parts > 1 else None

    def write(self, lists: Sequence[pl.DataFrame], clock: Clock) -> Path:
        """A new segment with the entries of `lists`, which are the outputs of the selecting reducers, in order."""
        entries = pl.concat(lists)
        sizes = inverse_sizes(entries)
        order = shuffle_order(
            url_hashes(entries["key"]) + (1 << 31), list(map(len, lists)), self._places(entries), self._parts, sizes
        )
        segment = Segment(self._segments / new_segment_name(clock, self._segments))
        try:
            with segment.writing([CRAWL_GENERATE]) as directory:
                for part, rows in enumerate(order):
                    path = directory / CRAWL_GENERATE / part_name(part)
                    with CrawlDataWriter(path, mapfile=False) as writer:
                        writer.write(entries[rows])
        except BaseException:
            segment.path.rmdir()
            raise
        sync_path(self._segments)
        return segment.path

    def _places(self, entries: pl.DataFrame) -> np.ndarray:
        if self._partitioner is None:
            return np.zeros(len(entries), dtype=np.int64)
        return self._partitioner.parts_of(decode_keys(entries["key"]), self._parts).to_numpy()
