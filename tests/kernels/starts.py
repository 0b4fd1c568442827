"""Starts parse workers, each of which loads the kernels and runs some, and counts those that end
before they answer.

    python -m tests.kernels.starts [--count 5000] [--at-once 2]

A worker is started as `parse` does it, with its limits and its sandbox, and answers one item.
"""

from __future__ import annotations

import argparse
import time
from collections import Counter
from multiprocessing.connection import wait
from typing import Any

import numpy as np

from minutch.cycle.parse.workerpool import PoolSettings, WorkerPool
from minutch.kernels import library, sequencefile, simhash, sort


class RunKernels:
    """A task that runs kernels, of both variants where the processor has them."""

    result_type = str

    def accepts(self, result: str) -> bool:
        return True

    def run(self, item: bytes) -> str:
        lengths, places = np.arange(20, dtype=np.int32), np.zeros(20, np.int64)
        total = sequencefile.running_sum(lengths, places)
        views, order = np.zeros((3, 4), np.int32), np.arange(3, dtype=np.uint32)
        sort.sort_order(views, np.zeros(1, np.uint64), order)
        words, result = np.arange(9, dtype=np.uint64), np.zeros(1, np.uint64)
        simhash.simhash(words, 9, 3, 1, np.zeros(32, np.uint64), result)
        return f"{total} {order.tolist()} {result[0] > 0}"

    def finish(self, results: Any) -> list[str]:
        return list(results)

    def fail(self, item: bytes, reason: str) -> str:
        return f"failed: {reason}"


def start(count: int, at_once: int) -> Counter[str]:
    """Returns the answers of `count` workers, and how often each was given."""
    found: Counter[str] = Counter()
    while found.total() < count:
        with WorkerPool(RunKernels, PoolSettings(at_once, timeout=60, memory=1 << 30)) as pool:
            running = [pool.begin([b"item"]) for _ in range(min(at_once, count - found.total()))]
            for batch in running:
                while (results := pool.collect(batch)) is None:
                    wait([batch.connection], timeout=0.5)
                found.update(results)
    return found


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    options.add_argument("--count", type=int, default=5000)
    options.add_argument("--at-once", type=int, default=2)
    given = options.parse_args()
    begun = time.monotonic()
    found = start(given.count, given.at_once)
    bad = sum(times for answer, times in found.items() if not answer.startswith("190 [0, 1, 2]"))
    print(
        f"{given.count} workers in {time.monotonic() - begun:.0f} s, {bad} of them aborted or"
        f" answered wrong; kernels {'newer' if library.is_newer() else 'baseline'}; {dict(found)}"
    )
    raise SystemExit(bool(bad))


if __name__ == "__main__":
    main()
