"""Measures queries over a crawl's own files beside the same queries over the same data as Parquet.

    python -m tests.benchmarks.querying [--urls 1000000] [--folder DIR] [--repeat 3] [--json FILE]

Prints a Markdown table: seconds of each query in both, the ratio, and the peak of the process's own
memory. Every query runs in a process of its own, by `minutch.inspect.query.session` or by DuckDB
over the Parquet file that the same tables were written to; of --repeat runs the fastest counts, and
both take turns. The goal is a ratio of at most 3, and less than 1 GB. Without --folder the data are
in a temporary folder that goes away.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
import time
from dataclasses import asdict, dataclass
from pathlib import Path

import polars as pl
import polars.selectors as cs

from tests.benchmarks import data
from tests.benchmarks.measure import run

PROJECT = Path(__file__).parents[2]
QUERIES = {
    "pages by status": "select status, count(*) as n from crawldb group by status order by n desc",
    "the 20 largest hosts": (
        """select host, count(*) as n, avg(score) as score from crawldb
        group by host order by n desc, host limit 20"""
    ),
    "five columns of a host": (
        """select url, status, fetch_time, retries, score from crawldb
        where host = 'www.site57-example.de' order by url"""
    ),
    "what is due, by day": (
        """select date_trunc('day', fetch_time) as day, status, count(*) as n from crawldb
        where score > 0.5 group by 1, 2 order by 1, 2"""
    ),
    "the largest groups of equal pages": (
        """select signature, count(*) as n from crawldb where signature is not null
        group by signature order by n desc, signature limit 10"""
    ),
}
"""What people ask: two aggregates over all rows, one host, conditions and times, strings with many
values.
"""


@dataclass
class Result:
    """A query: seconds and bytes, of both."""

    query: str
    seconds: float
    parquet_seconds: float
    ratio: float
    peak_bytes: int
    parquet_peak_bytes: int


def make(folder: Path, urls: int) -> None:
    """The CrawlDb, and the Parquet file with the same rows in the same order."""
    import minutch
    from minutch.inspect.query.exports import write_parquet

    if not (folder / "crawldb").exists():
        data.write_crawldb(folder / "crawldb", urls)
    if not (folder / "crawldb.parquet").exists():
        write_parquet(minutch.open(folder).crawldb.scan(), folder / "crawldb.parquet")


def answer(folder: Path, source: str, query: str) -> None:
    """Run a query three times and print its fastest time and its rows; what a process of its own
    does.
    """
    import duckdb

    import minutch
    from minutch.inspect.query.columns import TIME
    from minutch.inspect.query.session import Session

    if source == "crawl":
        ask = Session(minutch.open(folder), data.NOW).query
    else:
        duck = duckdb.connect()
        duck.execute(f"create view crawldb as from '{folder / 'crawldb.parquet'}'")

        def ask(statement: str) -> pl.LazyFrame:
            rows = pl.scan_arrow_c_stream(duck.sql(statement))
            return rows.cast({cs.float(): pl.Float64, cs.datetime(): TIME})

    best = float("inf")
    for _ in range(3):
        start = time.perf_counter()
        rows = ask(QUERIES[query]).collect(engine="streaming")
        best = min(best, time.perf_counter() - start)
    print(json.dumps({"seconds": best, "rows": json.loads(rows.write_json())}))


def ask(folder: Path, source: str, query: str) -> tuple[float, int, object]:
    """Seconds, peak of private memory and rows of a query in a new process."""
    command = [
        sys.executable,
        "-m",
        "tests.benchmarks.querying",
        "--answer",
        source,
        query,
        "--folder",
        str(folder),
    ]
    with tempfile.TemporaryDirectory() as scratch:
        cost = run(command, cwd=Path(scratch), env={**os.environ, "PYTHONPATH": str(PROJECT)})
        said = json.loads((Path(scratch) / "command.log").read_text().splitlines()[-1])
    return said["seconds"], cost.private_bytes, said["rows"]


def measure(folder: Path, query: str, repeat: int) -> Result:
    """A query over both, in turns. Raises ValueError where the rows differ."""
    best: dict[str, tuple[float, int]] = {}
    for _ in range(repeat):
        found = {}
        for source in ("crawl", "parquet"):
            seconds, peak, found[source] = ask(folder, source, query)
            before = best.get(source, (seconds, 0))
            best[source] = min(seconds, before[0]), max(peak, before[1])
        if found["crawl"] != found["parquet"]:
            raise ValueError(f"{query}: the rows differ")
    (seconds, peak), (other_seconds, other_peak) = best["crawl"], best["parquet"]
    return Result(query, seconds, other_seconds, seconds / other_seconds, peak, other_peak)


def markdown(results: list[Result], urls: int) -> str:
    """The table."""
    lines = [
        f"{urls:,} URLs",
        "",
        "| query | crawl s | Parquet s | ratio | crawl MB | Parquet MB |",
        "|---|--:|--:|--:|--:|--:|",
    ]
    for one in results:
        times = f"{one.seconds:.3f} | {one.parquet_seconds:.3f} | {one.ratio:.1f}"
        lines.append(
            f"| {one.query} | {times} | {one.peak_bytes / 1e6:.0f} |"
            f" {one.parquet_peak_bytes / 1e6:.0f} |"
        )
    return "\n".join(lines)


def main() -> int:
    """The command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--urls", type=int, default=1_000_000)
    parser.add_argument("--folder", type=Path)
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--json", type=Path)
    parser.add_argument("--answer", nargs=2, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.answer:
        answer(given.folder, *given.answer)
        return 0
    with tempfile.TemporaryDirectory() as scratch:
        folder = (given.folder or Path(scratch)) / str(given.urls)
        folder.mkdir(parents=True, exist_ok=True)
        make(folder, given.urls)
        results = [measure(folder, query, given.repeat) for query in QUERIES]
    print(markdown(results, given.urls))
    if given.json:
        given.json.write_text(
            json.dumps([asdict(result) for result in results], indent=2), encoding="utf-8"
        )
    return 0


if __name__ == "__main__":
    sys.exit(main())
