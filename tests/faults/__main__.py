"""Fault injection by command:

    python -m tests.faults [job ...] [--kind kill] [--points 20] [--seed 1] [--only TEXT]

Runs each job undisturbed, then disturbed at the first N points (all of them without --points) of each kind in the order
that the seed sets; prints figures and failures. --only takes the points whose names contain a text: a failure's line
gives the command that repeats it. Exit code 1 if there is a failure.
"""

from __future__ import annotations

import argparse
import importlib
import shlex
import sys
import tempfile
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

from tests.faults.campaign import KINDS, Campaign, Found, Point
from tests.faults.jobs import JOBS, Stage

_LOADED = ("polars", "minutch.kernels.library", "minutch.fetch.fetch", "minutch.parse.parse", "minutch.crawldb.inject")
_LOADED += ("minutch.crawldb.updatedb", "minutch.crawldb.dedup", "minutch.crawldb.mergedb", "minutch.crawldb.readdb")
_LOADED += ("minutch.hostdb.updatehostdb", "minutch.hostdb.readhostdb")
_LOADED += ("minutch.crawldb.dump", "minutch.fetchlist.generate", "minutch.linkdb.invertlinks", "minutch.crawl.crawl")


def main() -> int:
    """Run campaigns as the command line says."""
    options = _options()
    for name in _LOADED:  # once, not in every job's process
        importlib.import_module(name)
    failed = 0
    with tempfile.TemporaryDirectory(prefix="faults-") as folder:
        stage = Stage(Path(folder))
        for name in options.jobs or JOBS:
            found = _campaign(Campaign(stage, JOBS[name], options.seed), options)
            figures = ", ".join(f"{kind} {count}" for kind, count in found.points.items())
            print(f"{name}: {figures}; {len(found.failures)} failures", flush=True)
            failed += len(found.failures)
    return 1 if failed else 0


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.faults")
    parser.add_argument("jobs", nargs="*")
    parser.add_argument("--kind", action="append", choices=KINDS)
    parser.add_argument("--points", type=int)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", default="")
    return parser.parse_args()


def _campaign(campaign: Campaign, options: argparse.Namespace) -> Found:
    found = Found()
    for kind in options.kind or KINDS:
        for name, point in islice(_wanted(campaign.points(kind), options.only), options.points):
            found.points[kind] = found.points.get(kind, 0) + 1
            problem = point()
            if problem is not None:
                words = ["python", "-m", "tests.faults", campaign.job.name, "--kind", kind]
                words += ["--seed", str(options.seed), "--only", name]
                found.failures.append(name)
                print(f"FAILED {shlex.join(words)}\n    {problem}", flush=True)
    return found


def _wanted(points: Iterator[tuple[str, Point]], text: str) -> Iterator[tuple[str, Point]]:
    return (point for point in points if text in point[0])


if __name__ == "__main__":
    sys.exit(main())
