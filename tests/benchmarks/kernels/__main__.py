"""Prints the table of kernels as Markdown: CPU time of each way, and the ratio.

With --jobs, a second one: CPU time of a whole job, and what it would be with the alternative
instead of a kernel.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

from minutch.kernels import library
from tests.benchmarks.kernels import jobs
from tests.benchmarks.kernels.made import Made
from tests.benchmarks.kernels.rows import assert_same, cpu_seconds
from tests.benchmarks.kernels.table import ROWS


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    options.add_argument("--count", type=int, default=100_000, help="URLs of the CrawlDb")
    options.add_argument("--pages", type=int, default=200, help="HTML pages")
    options.add_argument("--only", default="", help="rows with this in the task or a kernel")
    options.add_argument("--jobs", action="store_true", help="also measure whole jobs")
    given = options.parse_args()
    if library.is_interpreted():
        sys.exit("kernels are interpreted: unset MINUTCH_KERNELS")
    print("| task | kernels | alternative | ms | alternative, ms | ratio |")
    print("|---|---|---|--:|--:|--:|")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        made = Made(folder, given.count, given.pages)
        for row in ROWS:
            kernels = ", ".join(row.kernels)
            if given.only not in f"{row.task}, {kernels}":
                continue
            ways = row.ways(made)
            assert_same(row, ways)
            kernel, other = (cpu_seconds(way) for way in ways[:2])
            times = f"{kernel * 1000:.2f} | {other * 1000:.2f} | {other / kernel:.2f}"
            print(f"| {row.task} | {kernels} | {row.alternative} | {times} |", flush=True)
        if given.jobs:
            print("\n| job | CPU s | with the alternative, s | ratio |\n|---|--:|--:|--:|")
            for job, seconds, other in jobs.measured(given.count, folder / "jobs"):
                ratio = other / seconds
                print(f"| {job} | {seconds:.1f} | {other:.1f} | {ratio:.2f} |", flush=True)


if __name__ == "__main__":
    main()
