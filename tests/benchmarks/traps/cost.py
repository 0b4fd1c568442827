"""What generate.pattern.budget costs: generate with and without it, in turns, over a made-up
CrawlDb with a LinkDb of one link to each URL beside it.

    python -m tests.benchmarks.traps.cost [--urls 1000000] [--repeat 3]
"""

from __future__ import annotations

import argparse
import os
import shutil
import sys
import tempfile
from pathlib import Path
from statistics import median
from typing import Final

import numpy as np
import polars as pl

from minutch.cycle.crawldb.store import CrawlDb
from minutch.cycle.linkdb.store import LinkDb
from minutch.records.links import LAYOUT_METADATA
from minutch.records.links_columns import INLINKS_SCHEMA, LinkSets
from tests.benchmarks import data
from tests.benchmarks.measure import Cost, run

WAYS: Final = {"without": "-1", "with": "20"}


def write_linkdb(folder: Path, total: int) -> None:
    """Writes a link to each URL of the CrawlDb there, from another URL of it."""
    db = CrawlDb(folder / "crawldb")
    for index in range(len(db.parts())):
        with LinkDb.part_writer(folder / "linkdb/current", index, LAYOUT_METADATA) as writer:
            for table in db.scan_part(index):
                numbers = np.random.default_rng(index).integers(0, total, len(table), np.uint64)
                links = table.select("key", from_url=data.urls(numbers).cast(pl.Binary))
                links = links.with_columns(anchor=pl.lit(b"more"), metadata=pl.lit(None, pl.Binary))
                writer.write(LinkSets.of(links.select(INLINKS_SCHEMA.names())))


def generate(folder: Path, budget: str) -> Cost:
    """Runs it, for 100,000 pages at most."""
    shutil.rmtree(folder / "segments", ignore_errors=True)
    words = [sys.executable, "-m", "minutch", "generate", f"-Dgenerate.pattern.budget={budget}"]
    words += [str(folder / "crawldb"), str(folder / "segments"), "-topN", "100000"]
    return run([*words, "-noFilter", "-noNorm"], cwd=folder, env=dict(os.environ))


def main() -> None:
    """Prints the medians, and their ratio."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--urls", type=int, default=1_000_000)
    parser.add_argument("--repeat", type=int, default=3)
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        data.write_crawldb(folder / "crawldb", asked.urls)
        write_linkdb(folder, asked.urls)
        costs = [
            {way: generate(folder, budget) for way, budget in WAYS.items()}
            for _ in range(asked.repeat)
        ]
    found = {way: [cost[way] for cost in costs] for way in WAYS}
    for way, mine in found.items():
        seconds, cpu = median(one.seconds for one in mine), median(one.cpu_seconds for one in mine)
        peak = max(one.peak_bytes for one in mine)
        print(f"{way}: {seconds:.2f} s, {cpu:.2f} s of CPU, {peak >> 20} MB at most")
    ratios = [cost["with"].cpu_seconds / cost["without"].cpu_seconds for cost in costs]
    print(
        f"with / without: {median(ratios):.2f} of the CPU, {min(ratios):.2f} to {max(ratios):.2f}"
    )


if __name__ == "__main__":
    main()
