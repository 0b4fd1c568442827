"""Runs `minutch crawl`, and writes as JSON what each step took of CPU and time, in seconds; where
rounds overlap, the fetch that goes on counts with the step.

python -m tests.benchmarks.crawls.cycle FILE ARGUMENT…
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections import defaultdict
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

from minutch.commands.cli import main
from minutch.cycle.crawl import crawler
from minutch.job import JobContext
from tests.benchmarks.measure import cpu_of


def used() -> float:
    """CPU seconds of this process and of all below it. Threads say which children they have: to
    look for these among all processes was a tenth of what the crawling process itself took.
    """
    found = [os.getpid()]
    for pid in found:
        for file in Path(f"/proc/{pid}/task").glob("*/children"):
            with suppress(OSError):
                found += map(int, file.read_text().split())
    return sum(map(cpu_of, found))


def run(file: Path, arguments: list[str]) -> int:
    """The command; returns its exit code."""
    taken: defaultdict[str, list[float]] = defaultdict(lambda: [0.0, 0.0])

    def perform(step: str, call: partial[Any], context: JobContext) -> Any:
        cpu, seconds = used(), time.monotonic()
        try:
            return call(context=context)
        finally:
            taken[step][0] += used() - cpu
            taken[step][1] += time.monotonic() - seconds

    crawler.Crawler = partial(crawler.Crawler, perform=perform)
    taken["start"] = [used(), 0.0]
    code = main(["crawl", *arguments])
    spent = sum(cpu for cpu, _ in taken.values())
    taken["between"] = [used() - spent, 0.0]
    file.write_text(json.dumps(taken), encoding="utf-8")
    return code


if __name__ == "__main__":
    sys.exit(run(Path(sys.argv[1]), sys.argv[2:]))
