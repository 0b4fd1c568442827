"""readdb -topN: the URLs with the highest scores.

Of equal scores, Nutch's order is that in which two MapReduce jobs leave equal keys. For up to `FOLLOWED` scores that
order is followed; for more, equal scores come in the order of the URLs in their partition.
Matched: org.apache.nutch.crawl.CrawlDbReader (processTopNJob, CrawlDbTopNMapper, CrawlDbTopNReducer).
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Final

import numpy as np
import polars as pl

from minutch.crawldb.store import CrawlDb
from minutch.errors import StoreError
from minutch.formats.checksum import ChecksumWriter
from minutch.formats.javahash import float32, float_to_string
from minutch.formats.javaio import vlong_size
from minutch.job import JobContext
from minutch.tables.database import part_name
from minutch.tables.hadooporder import Ints, map_order, merge_order

FOLLOWED: Final = 40_000
_SCORE_BYTES: Final = 4


def write_top(db: CrawlDb, count: int, least: float, out: Path, context: JobContext) -> int:
    """Write `score TAB URL` of the `count` highest scores from `least` up into the new directory `out`.

    Returns how many there are. Raises StoreError if there is no CrawlDb or `out` exists.
    """
    if out.exists():
        raise StoreError(f"Output directory {out} already exists")
    with context.progress("readdb -topN", db.estimate) as progress:
        parts, sizes = [], []
        for part, path in enumerate(db.require_parts()):
            sizes.append((path / "data").stat().st_size)
            frames = []
            for frame in db.scan_part(part):
                chosen = frame.filter(~(pl.col("score") < float32(least))).select("score", "key")
                frames.append(chosen if len(chosen) <= FOLLOWED else _highest(chosen, max(count, FOLLOWED + 1)))
                progress.advance(len(frame))
            parts.append(pl.concat(frames))
    if sum(map(len, parts)) <= FOLLOWED:
        top = _as_hadoop(parts, sizes, max(1, context.conf.get_int("mapreduce.job.reduces", 1))).head(count)
    else:
        top = _highest(pl.concat(parts), count)
    out.mkdir(parents=True)
    writer = ChecksumWriter(out / part_name(0))
    for score, key in top.iter_rows():
        writer.write(b"%s\t%s\n" % (float_to_string(score).encode(), key))
    writer.close()
    return len(top)


def _highest(frame: pl.DataFrame, count: int) -> pl.DataFrame:
    return frame.sort("score", descending=True, nulls_last=True, maintain_order=True).head(count)


def _as_hadoop(parts: Sequence[pl.DataFrame], sizes: Sequence[int], reduces: int) -> pl.DataFrame:
    """All rows by descending score, equal ones as Hadoop's two jobs leave them."""
    sorted_once = _job(parts, sizes, reduces)
    return _job(sorted_once, list(map(_size, sorted_once)), 1)[0]


def _job(tables: Sequence[pl.DataFrame], sizes: Sequence[int], reduces: int) -> list[pl.DataFrame]:
    """A MapReduce job that only sorts: a map task per table, the largest (`sizes`) first; a table per reduce task."""
    by_size = sorted(range(len(tables)), key=lambda i: -sizes[i])
    tasks = [tables[i] for i in by_size if len(tables[i])]
    outputs: list[list[pl.DataFrame]] = [[] for _ in range(reduces)]
    for table in tasks:
        keys = _keys(table)
        homes = _partitions(table, reduces)
        order = map_order(keys, homes) if reduces == 1 else _by_home(keys, homes)
        in_order = table[order]
        for home in range(reduces):
            outputs[home].append(in_order.filter(pl.Series(homes[order] == home)))
    return [_reduce(segments) for segments in outputs]


def _by_home(keys: Ints, homes: Ints) -> Ints:
    """`map_order` for keys that need all their bits: ranks take their place."""
    _, ranks = np.unique(keys, return_inverse=True)
    return map_order(ranks.astype(np.int64), homes)


def _reduce(segments: Sequence[pl.DataFrame]) -> pl.DataFrame:
    if not segments:
        return pl.DataFrame(schema={"score": pl.Float32, "key": pl.Binary})
    merged = merge_order([_keys(segment) for segment in segments], [_size(segment) for segment in segments])
    starts = np.cumsum([0, *map(len, segments)])
    return pl.concat(segments)[[int(starts[segment] + at) for segment, at in merged]]


def _keys(table: pl.DataFrame) -> Ints:
    """Integers in the order of the negative scores, as Float.compare has it."""
    bits = (-table["score"].to_numpy()).view(np.int32).astype(np.int64)
    return np.where(bits < 0, bits ^ 0x7FFF_FFFF, bits)


def _partitions(table: pl.DataFrame, reduces: int) -> Ints:
    """HashPartitioner over FloatWritable, whose hash is its bits."""
    bits = (-table["score"].to_numpy()).view(np.int32).astype(np.int64)
    return (bits & 0x7FFF_FFFF) % reduces


def _size(table: pl.DataFrame) -> int:
    """The bytes of a map task's output."""
    sizes = table["key"].bin.size().to_list()
    return sum(_record_size(size + vlong_size(size)) for size in sizes)


def _record_size(value: int) -> int:
    return vlong_size(_SCORE_BYTES) + vlong_size(value) + _SCORE_BYTES + value
