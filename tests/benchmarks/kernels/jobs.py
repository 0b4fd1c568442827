"""Measures whole jobs: CPU time, and what it would be with the alternative instead of a kernel."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from isal import isal_zlib

from minutch.work.tables.zlibvalues import inflated
from tests.benchmarks import data
from tests.benchmarks.kernels.made import records_of
from tests.benchmarks.kernels.rows import cpu_seconds
from tests.benchmarks.parsing import cpu_of


def measured(count: int, folder: Path) -> Iterator[tuple[str, float, float]]:
    """Yields jobs: name, CPU seconds, and those with the alternative of one kernel; the rest is
    the same.
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
    batch = records_of(segment / read / "part-r-00000", stored=True)
    streams = [batch.value(row) for row in range(batch.size)]
    kernel = cpu_seconds(lambda: inflated(batch))
    alternative = cpu_seconds(lambda: [isal_zlib.decompress(stream) for stream in streams])
    return f"{name}, libdeflate → ISA-L", job, job - kernel + alternative
