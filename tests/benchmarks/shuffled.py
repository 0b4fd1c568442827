"""Measures the bytes that jobs on Spark shuffle for each record; docs/cluster calculates with them.

    python -m tests.benchmarks.shuffled FOLDER [--urls 500000] [--pages 25000] [--master local[2]]

Makes a CrawlDb and a segment below FOLDER (once), runs each job with Spark's event log, and prints
a Markdown table: how much it read, how much went through the shuffle, and the seconds of all tasks
together.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tests.benchmarks import databases
from tests.benchmarks.jobs import Workspace

EVENTS: Final = {
    "spark.eventLog.enabled": "true",
    "spark.eventLog.compress": "false",
    "spark.eventLog.rolling.enabled": "false",
}
"""Properties with which Spark writes a log of its events, uncompressed, as one file in
`spark.eventLog.dir`.
"""


@dataclass
class Shuffled:
    """The cost of Spark's jobs, added up: bytes written by shuffles, `seconds` of tasks,
    `job_seconds` by the clock.
    """

    bytes: int = 0
    records: int = 0
    seconds: float = 0.0
    tasks: int = 0
    job_seconds: float = 0.0


def read_log(path: Path) -> Shuffled:
    """The sums of an event log."""
    found, begun = Shuffled(), dict[int, int]()
    with path.open(encoding="utf-8") as lines:
        for event in map(json.loads, lines):
            kind = event["Event"]
            if kind == "SparkListenerJobStart":
                begun[event["Job ID"]] = event["Submission Time"]
            elif kind == "SparkListenerJobEnd":
                found.job_seconds += (event["Completion Time"] - begun.pop(event["Job ID"])) / 1000
            elif kind == "SparkListenerTaskEnd" and "Task Metrics" in event:
                metrics = event["Task Metrics"]
                found.bytes += metrics["Shuffle Write Metrics"]["Shuffle Bytes Written"]
                found.records += metrics["Shuffle Write Metrics"]["Shuffle Records Written"]
                found.seconds += metrics["Executor Run Time"] / 1000
                found.tasks += 1
    return found


def size_of(*paths: Path) -> int:
    """Bytes of the files below some paths."""
    files = (path for top in paths for path in ([top] if top.is_file() else top.rglob("*")))
    return sum(
        path.stat().st_size for path in files if path.is_file() and not path.name.endswith(".crc")
    )


def jobs(work: Workspace) -> dict[str, tuple[list[str | Path], int, list[Path]]]:
    """Name → words of the command, records that count, and what is read; in an order in which they
    can run.
    """
    db = work.run / "crawldb"
    links = [f"-D{name}={value}" for name, value in databases.data.ALL_LINKS.items()]
    return {
        "inject": (
            ["inject", work.run / "new", work.inputs / "seeds"],
            work.urls,
            [work.inputs / "seeds"],
        ),
        "readdb -stats": (
            ["readdb", work.crawldb, "-stats"],
            work.urls,
            [work.crawldb / "current"],
        ),
        "updatedb": (
            ["updatedb", db, work.segment],
            work.pages * (databases.data.PARSED_LINKS_PER_PAGE + 2),
            [work.segment / "crawl_fetch", work.segment / "crawl_parse", work.crawldb / "current"],
        ),
        "dedup": (["dedup", db], work.urls, [work.crawldb / "current"]),
        "mergedb": (
            ["mergedb", work.run / "merged", work.crawldb, work.crawldb, "-normalize"],
            2 * work.urls,
            [work.crawldb / "current"],
        ),
        "invertlinks": (
            ["invertlinks", work.run / "linkdb", work.segment, *links],
            work.pages * databases.data.LINKS_PER_PAGE,
            [work.segment / "parse_data"],
        ),
        "invertlinks, once more": (
            ["invertlinks", work.run / "linkdb", work.segment, "-noNormalize", "-noFilter", *links],
            2 * work.pages * databases.data.LINKS_PER_PAGE,
            [work.segment / "parse_data", work.run / "linkdb" / "current"],
        ),
        "mergelinkdb": (
            ["mergelinkdb", work.run / "links", work.run / "linkdb"],
            work.pages * databases.data.LINKS_PER_PAGE,
            [work.run / "linkdb" / "current"],
        ),
    }


def main() -> None:
    """The command."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--urls", type=int, default=500_000)
    parser.add_argument("--pages", type=int, default=25_000)
    parser.add_argument("--master", default="local[2]")
    given = parser.parse_args()
    work = databases.make_inputs(given.folder, given.urls, given.pages)
    work.fresh()
    work.linked_crawldb()
    print(
        "| job | records | MB read | MB shuffled | bytes shuffled a record | rows' tables | tasks |"
        " task seconds |"
    )
    print("|---|--:|--:|--:|--:|--:|--:|--:|", flush=True)
    for name, (words, records, inputs) in jobs(work).items():
        found, read = measured(work, words, given.master), size_of(*inputs)
        print(
            f"| {name} | {records:,} | {read / 1e6:.1f} | {found.bytes / 1e6:.1f} |"
            f" {found.bytes / records:.1f} | {found.records:,} | {found.tasks} |"
            f" {found.seconds:.0f} |",
            flush=True,
        )
    shutil.rmtree(work.run)


def measured(work: Workspace, words: list[str | Path], master: str) -> Shuffled:
    """Run a job once, with an event log."""
    logs = work.run / "events"
    shutil.rmtree(logs, ignore_errors=True)
    logs.mkdir()
    properties = {
        "minutch.engine": "spark",
        "spark.master": master,
        "spark.eventLog.dir": f"file://{logs}",
        **EVENTS,
        **databases.PROPERTIES,
    }
    defined = [word for name, value in properties.items() for word in ("-D", f"{name}={value}")]
    command = [sys.executable, "-m", "minutch", str(words[0]), *defined, *map(str, words[1:])]
    subprocess.run(
        command, check=True, stdout=subprocess.DEVNULL, env={**os.environ, "LC_ALL": "C.UTF-8"}
    )
    (log,) = logs.iterdir()
    return read_log(log)


if __name__ == "__main__":
    main()
