"""Measures records of a WARC file read per second of CPU, beside fastwarc and warcio, with damage;
and an import.

    python -m tests.benchmarks.archivereading [--pages DIR] [--count 4000] [--rounds 5]

All read the same gzip file, a member a record, and the blocks of all its records, one after the
other in each round. `import` is the whole job, in a process of its own, its start not counted.
Prints a Markdown table and a line of JSON.
"""

from __future__ import annotations

import argparse
import json
import logging
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from itertools import cycle, islice
from pathlib import Path

from fastwarc.warc import ArchiveIterator as FastIterator
from warcio.archiveiterator import ArchiveIterator

from minutch.warc.reading.archivefiles import ArchiveFile, find_archives
from tests.benchmarks.htmlpages import corpus
from tests.support.archives import WarcMaker


def write_archive(path: Path, pages: list[bytes], count: int) -> None:
    """Pages with their requests."""
    with WarcMaker(path) as warc:
        for number, body in enumerate(islice(cycle(pages), count)):
            warc.page(f"http://127.0.1.{number % 200}/docs/{number // 200}/page.html", body)


def by_minutch(path: Path) -> int:
    (archive,) = find_archives([path])
    assert isinstance(archive, ArchiveFile)
    opened = archive.open()
    count = sum(1 for record in opened.reader if record.block is not None)
    opened.close()
    return count


def by_fastwarc(path: Path) -> int:
    with path.open("rb") as file:
        return sum(
            1 for record in FastIterator(file, parse_http=False) if record.reader.read() is not None
        )


def by_warcio(path: Path) -> int:
    with path.open("rb") as file:
        return sum(
            1
            for record in ArchiveIterator(file, no_record_parse=True)
            if record.raw_stream.read() is not None
        )


READERS: dict[str, Callable[[Path], int]] = {
    "minutch": by_minutch,
    "fastwarc": by_fastwarc,
    "warcio": by_warcio,
}


def damage(path: Path, every: int) -> Path:
    """A copy in which one byte of so many is wrong."""
    data = bytearray(path.read_bytes())
    for at in range(every // 2, len(data), every):
        data[at] ^= 0x55
    bad = path.with_name("damaged.warc.gz")
    bad.write_bytes(data)
    return bad


def cpu_of(function: Callable[[], int]) -> tuple[float, int]:
    """CPU seconds, and what it returned."""
    before = time.process_time()
    found = function()
    return time.process_time() - before, found


def import_cpu(path: Path, out: Path) -> float:
    """CPU seconds of the job in a process of its own."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(
        [sys.executable, "-m", "minutch", "import", "warc", str(path), str(out)],
        check=True,
        capture_output=True,
    )
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    options.add_argument("--pages", type=Path, help="folder with HTML files")
    options.add_argument("--count", type=int, default=4000)
    options.add_argument("--rounds", type=int, default=5)
    given = options.parse_args()
    logging.disable(logging.WARNING)
    pages = corpus(folder=given.pages).pages
    with tempfile.TemporaryDirectory() as folder:
        path, empty = Path(folder) / "pages.warc.gz", Path(folder) / "empty.warc.gz"
        write_archive(path, pages, given.count)
        write_archive(empty, pages, 1)
        bad = damage(path, 1 << 20)
        times: dict[str, list[float]] = {
            name: [] for name in (*READERS, "minutch, damaged", "import")
        }
        for number in range(given.rounds):
            for name, read in READERS.items():
                seconds, found = cpu_of(lambda read=read: read(path))
                assert found == 2 * given.count, (name, found)
                times[name].append(seconds)
            times["minutch, damaged"].append(cpu_of(lambda: by_minutch(bad))[0])
            start_up = import_cpu(empty, Path(folder) / f"empty-{number}")
            times["import"].append(import_cpu(path, Path(folder) / f"segments-{number}") - start_up)
    report(pages, given.count, times)


def report(pages: list[bytes], count: int, times: dict[str, list[float]]) -> None:
    """The table, and the same as JSON."""
    rates = {name: round(count / statistics.median(taken)) for name, taken in times.items()}
    ratio = {
        other: round(
            statistics.median(b / a for a, b in zip(times["minutch"], times[other], strict=True)), 2
        )
        for other in ("fastwarc", "warcio")
    }
    print("| | pages per CPU second |\n|---|---|")
    for name, rate in rates.items():
        print(f"| {name} | {rate} |")
    mean = round(statistics.mean(map(len, pages)))
    print(json.dumps({"pages": count, "mean_bytes": mean, "rates": rates, "minutch_by": ratio}))


if __name__ == "__main__":
    main()
