"""Measures pages of `minutch export commoncrawl` per second of CPU, beside `minutch parse`, and its
memory.

    python -m tests.benchmarks.dataset [--pages DIR] [--count 20000] [--rounds 3] [--memory 200000]

Both see the same segment, one after the other in each round; CPU time is that of a process and its
workers. Prints a Markdown table. With --memory also the peak memory of the job's process over so
many pages, and over a tenth of them.
"""

from __future__ import annotations

import argparse
import os
import shutil
import statistics
import sys
import tempfile
from pathlib import Path

from minutch.cycle.segment.store import (
    CONTENT,
    CRAWL_FETCH,
    CRAWL_PARSE,
    PARSE_DATA,
    PARSE_TEXT,
    Segment,
    part_writer,
)
from minutch.hadoop.formats.writables import MapWritable, Text
from minutch.records import protocol
from minutch.records.crawldatum import STATUS_FETCH_SUCCESS, CrawlDatum
from minutch.records.metadata import PROTO_STATUS_KEY
from minutch.records.protocol import ProtocolStatus
from tests.benchmarks.htmlpages import corpus
from tests.benchmarks.measure import run
from tests.benchmarks.parsing import PLUGINS, PROJECT, cpu_of, write_segment


def write_fetched(folder: Path, pages: list[bytes], count: int) -> Segment:
    """A segment of `count` fetched pages."""
    outcome = MapWritable({Text(PROTO_STATUS_KEY): ProtocolStatus(protocol.SUCCESS)})
    datum = CrawlDatum(STATUS_FETCH_SUCCESS, 86_400, 1.0, 1_700_000_000_000, metadata=outcome)
    segment = write_segment(folder, pages, count)
    with (
        segment.writing([CRAWL_FETCH]) as directory,
        part_writer(directory, CRAWL_FETCH, 0) as append,
    ):
        for url, _ in segment.records(CONTENT):
            append(url, datum)
    return segment


def words(command: str, *rest: Path) -> list[str]:
    """The arguments of Python for a command of ours."""
    return ["-m", "minutch", *command.split(), f"-Dplugin.includes={PLUGINS}", *map(str, rest)]


def measure(folder: Path, pages: list[bytes], count: int, rounds: int) -> tuple[float, float]:
    """Pages per CPU second of parse and of the export; medians."""
    segment, out = write_fetched(folder, pages, count), folder / "out"
    parses, exports = [], []
    for _ in range(rounds):
        for made in (CRAWL_PARSE, PARSE_DATA, PARSE_TEXT):
            shutil.rmtree(segment.path / made, ignore_errors=True)
        shutil.rmtree(out, ignore_errors=True)
        parses.append(count / cpu_of(words("parse", segment.path)))
        exports.append(count / cpu_of(words("export commoncrawl", segment.path, out)))
    return statistics.median(parses), statistics.median(exports)


def peak(folder: Path, pages: list[bytes], count: int) -> int:
    """The most memory that the export of so many pages takes, in bytes; its workers have limits of
    their own.
    """
    folder.mkdir()
    segment = write_fetched(folder, pages, count)
    cpu_of(words("parse", segment.path))
    command = [sys.executable, *words("export commoncrawl", segment.path, folder / "out")]
    cost = run(
        command,
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(PROJECT), "MINUTCH_HOME": str(PROJECT)},
    )
    shutil.rmtree(folder)
    return cost.peak_bytes


def main() -> None:
    """The command."""
    options = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    options.add_argument("--pages", type=Path, help="folder with HTML files")
    options.add_argument("--count", type=int, default=20_000)
    options.add_argument("--rounds", type=int, default=3)
    options.add_argument("--memory", type=int, default=0)
    given = options.parse_args()
    found = corpus(folder=given.pages)
    with tempfile.TemporaryDirectory() as folder:
        parse, export = measure(Path(folder), found.pages, given.count, given.rounds)
        print(f"{found}\n\n| | pages per CPU second |\n|---|--:|")
        print(f"| minutch parse | {parse:,.0f} |\n| minutch export commoncrawl | {export:,.0f} |")
        print(f"| ratio | {export / parse:.2f} |")
        for count in (given.memory // 10, given.memory) if given.memory else ():
            used = peak(Path(folder) / f"memory-{count}", found.pages, count)
            print(f"| peak memory, {count:,} pages | {used / 1e6:,.0f} MB |", flush=True)


if __name__ == "__main__":
    main()
