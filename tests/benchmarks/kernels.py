"""What kernels gain over the plain way of doing the same: NumPy, Polars, or a library.

    python -m tests.benchmarks.kernels [--count 100000] [--pages 2000] [--jobs]

Prints a Markdown table: CPU time of the alternative and of the kernel, and the ratio. With --jobs,
a second one: CPU time of a whole job, and what it would be with the alternative instead of the
kernel. A kernel that makes no job 1.5 times as fast has no reason to be there.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import polars as pl
from isal import isal_zlib

from minutch.cycle.crawldb.matching import match
from minutch.cycle.parse.simhash import simhash
from minutch.hadoop.formats.batch import Batch
from minutch.hadoop.formats.checksum import chunk_sums
from minutch.kernels import find, library
from minutch.plugin.distincturls import numbered
from minutch.records.crawldatum import CrawlDatum
from minutch.records.crawldatum import columns as crawldata
from minutch.urls.hostcolumns import hosts_of
from minutch.work.tables.merge import sort_by_key
from minutch.work.tables.shuffle import partition_of
from minutch.work.tables.zlibvalues import deflated, inflated
from tests.benchmarks import data
from tests.benchmarks.corpus import corpus
from tests.benchmarks.parsing import cpu_of

ROUNDS = 5
_HOST = r"(?i)^https?://([A-Za-z0-9._-]+)(?::[0-9]{1,5})?(?:[/?#]|$)"


class Row(NamedTuple):
    """Two ways of doing the same."""

    kernel: str
    alternative: str
    by_kernel: Callable[[], Any]
    by_alternative: Callable[[], Any]


def cpu_seconds(work: Callable[[], Any]) -> float:
    """The least CPU time of some goes, after one that counts for nothing."""
    work()
    times = []
    for _ in range(ROUNDS):
        start = time.process_time()
        work()
        times.append(time.process_time() - start)
    return min(times)


def of_columns(count: int) -> Iterator[Row]:
    """Kernels over columns, on a made-up CrawlDb of `count` rows."""
    rows = data.crawldb_rows(0, count, count)
    keys = rows["key"]
    table = rows.select("key", row=pl.int_range(pl.len(), dtype=pl.Int64))
    mixed = table.sample(fraction=1.0, shuffle=True, seed=1)
    ordered, some = table.sort("key")["key"], table.sample(fraction=0.5, seed=2).sort("key")["key"]
    texts = keys.cast(pl.String)
    twice = pl.concat([keys, keys])
    values, at, length = crawldata.encode(rows)
    records = [values[a : a + n].tobytes() for a, n in zip(at, length, strict=True)]
    batch = Batch.of(keys.to_list(), records)
    packed = deflated(batch)
    streams = [packed.value(row) for row in range(packed.size)]
    lengths, places = length.astype(np.int32), np.empty(count, np.int64)
    yield Row(
        "sort.sort_entries, pack_entries",
        "Polars: sort(maintain_order=True)",
        lambda: sort_by_key(mixed),
        lambda: mixed.sort("key", maintain_order=True),
    )
    yield Row(
        "match.meet",
        "Polars: join",
        lambda: match(some, ordered),
        lambda: some.to_frame().join(
            ordered.to_frame().with_row_index(), on="key", how="left", maintain_order="left"
        ),
    )
    yield Row(
        "distinct.number",
        "Polars: unique, join",
        lambda: numbered(twice),
        lambda: twice.to_frame().join(
            twice.to_frame().unique(maintain_order=True).with_row_index(), on="key", how="left"
        ),
    )
    yield Row(
        "hosts.find_hosts",
        "Polars: str.extract",
        lambda: hosts_of(texts),
        lambda: texts.str.extract(_HOST),
    )
    yield Row(
        "hash.partitions",
        "Python: a loop over the bytes",
        lambda: partition_of(keys, 16),
        lambda: [_java_hash(key) % 16 for key in keys],
    )
    yield Row(
        "crawldatum.decode",
        "Python: the codec for one record",
        lambda: crawldata.decode(batch),
        lambda: [CrawlDatum.from_bytes(record) for record in records],
    )
    yield Row(
        "crawldatum.encode",
        "NumPy: fields of a structured array, joined with the rest",
        lambda: crawldata.encode(rows),
        lambda: _encoded(rows),
    )
    yield Row(
        "deflate.deflate",
        "ISA-L, record by record",
        lambda: deflated(batch),
        lambda: [isal_zlib.compress(record, 1) for record in records],
    )
    yield Row(
        "inflate.inflate",
        "ISA-L, record by record",
        lambda: inflated(packed),
        lambda: [isal_zlib.decompress(stream) for stream in streams],
    )
    yield Row(
        "sums.make_sums",
        "ISA-L: crc32, chunk by chunk",
        lambda: chunk_sums(values.data),
        lambda: [isal_zlib.crc32(values[i : i + 512].data) for i in range(0, len(values), 512)],
    )
    yield Row(
        "find.running_sum",
        "NumPy: cumsum",
        lambda: find.running_sum(lengths, places),
        lambda: np.cumsum(lengths, dtype=np.int64, out=places),
    )


def of_pages(pages: list[bytes]) -> Iterator[Row]:
    """Kernels over pages."""
    texts = [page.decode("utf-8", "replace") for page in pages[:50]]
    yield Row(
        "simhash.word_hashes, simhash",
        "NumPy: hashes of words, bits unpacked and summed",
        lambda: [simhash(text) for text in texts],
        lambda: [_simhash(text) for text in texts],
    )


def _java_hash(key: bytes) -> int:
    code = 1
    for byte in key:
        code = 31 * code + byte - ((byte & 128) << 1) & 0xFFFF_FFFF
    return code & 0x7FFF_FFFF


def _encoded(rows: pl.DataFrame) -> bytes:
    head = np.empty(
        len(rows),
        "2u1,>i8,i1,>i4,>f4,>i8",
    )
    head["f0"][:, 0], head["f0"][:, 1] = 7, rows["status"]
    names = ("fetch_time", "retries", "fetch_interval", "score", "modified_time")
    for number, name in enumerate(names, 1):
        head[f"f{number}"] = rows[name]
    fixed, size = head.tobytes(), head.itemsize
    ends = zip(rows["signature"], rows["metadata"], strict=True)
    return b"".join(
        b"%b%c%b%c%b"
        % (fixed[i * size : (i + 1) * size], len(sign or b""), sign or b"", bool(meta), meta or b"")
        for i, (sign, meta) in enumerate(ends)
    )


def _simhash(text: str) -> int:
    words = np.array([hash(word) for word in text.split()], np.int64).view(np.uint64)
    factor = np.uint64(0x9E37_79B9_7F4A_7C15)
    runs = words[:-2] * factor ^ words[1:-1] * (factor + np.uint64(2)) ^ words[2:]
    bits = np.unpackbits(np.unique(runs).view(np.uint8).reshape(-1, 8), axis=1)
    return int.from_bytes(np.packbits(2 * bits.sum(axis=0) > len(bits)).tobytes(), "big")


def of_jobs(count: int, folder: Path) -> Iterator[tuple[str, float, float]]:
    """Jobs: name, CPU seconds, and those with the alternative of one kernel; the rest is the
    same.
    """
    data.write_segment(folder / data.SEGMENT, count // 20, count, 1)
    for name, read in (("invertlinks", "parse_data"), ("updatedb", "crawl_parse")):
        yield _without_libdeflate(folder, name, read, count)


def _without_libdeflate(folder: Path, name: str, read: str, count: int) -> tuple[str, float, float]:
    """A job that inflates a folder of a segment; alternatives: ISA-L through Python's calls."""
    segment = folder / data.SEGMENT
    if name == "updatedb":
        data.write_crawldb(folder / "crawldb", count, 1)
        words = ["updatedb", str(folder / "crawldb"), str(segment)]
    else:
        words = ["invertlinks", str(folder / "linkdb"), str(segment), "-noNormalize", "-noFilter"]
    job = cpu_of(["-m", "minutch", *words])
    batch = _values(segment / read / "part-r-00000")
    streams = [batch.value(row) for row in range(batch.size)]
    kernel = cpu_seconds(lambda: inflated(batch))
    alternative = cpu_seconds(lambda: [isal_zlib.decompress(stream) for stream in streams])
    return f"{name}, libdeflate → ISA-L", job, job - kernel + alternative


def _values(path: Path) -> Batch:
    """The records of a part file, their values as they are stored."""
    from minutch.work.tables.spans import SpannedFile, data_file

    file = SpannedFile(data_file(path), stored=True)
    batches = [batch for span in file.spans() for batch in file.batches(span)]
    keys = [batch.key(row) for batch in batches for row in range(batch.size)]
    return Batch.of(keys, [batch.value(row) for batch in batches for row in range(batch.size)])


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    options.add_argument("--count", type=int, default=100_000, help="rows of the CrawlDb")
    options.add_argument("--pages", type=int, default=2000)
    options.add_argument("--jobs", action="store_true", help="also measure whole jobs")
    given = options.parse_args()
    if library.is_interpreted():
        sys.exit("kernels are interpreted: unset MINUTCH_KERNELS")
    pages = corpus(given.pages).pages
    print("| kernel | alternative | ms | alternative, ms | ratio |\n|---|---|--:|--:|--:|")
    for rows in (of_columns(given.count), of_pages(pages)):
        for row in rows:
            kernel, other = cpu_seconds(row.by_kernel), cpu_seconds(row.by_alternative)
            ratio = other / kernel
            print(
                f"| {row.kernel} | {row.alternative} | {kernel * 1000:.1f} | {other * 1000:.1f} |"
                f" {ratio:.2f} |",
                flush=True,
            )
    if given.jobs:
        print("\n| job | CPU s | with the alternative, s | ratio |\n|---|--:|--:|--:|")
        with tempfile.TemporaryDirectory() as folder:
            for name, job, other in of_jobs(given.count, Path(folder)):
                print(f"| {name} | {job:.1f} | {other:.1f} | {other / job:.2f} |", flush=True)


if __name__ == "__main__":
    main()
