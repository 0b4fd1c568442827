"""Fault injection by command:

    python -m tests.faults [job ...] [--kind kill] [--large] [--points 20] [--minutes 5] [--seed 1]
    [--only TEXT]

Runs each job undisturbed, then disturbed at points of each kind in the order that the seed sets: at
all of them, at the first so many, or as long as the minutes last for each kind. The job `together`
is two and three jobs at once. With --large the crawl has ten times the pages and twelve times the
parts. Prints figures and failures; --only takes the points whose names contain a text: a failure's
line gives the command that repeats it. Exit code 1 if there is one. TMPDIR=/dev/shm is quicker by
half.
"""

from __future__ import annotations

import argparse
import importlib
import math
import shlex
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from itertools import islice, takewhile
from pathlib import Path
from typing import Final

from minutch.kernels import library
from tests.faults.campaign import KINDS, Campaign, Found, Point
from tests.faults.jobs import JOBS, LARGE, SMALL, Stage
from tests.faults.races import Races
from tests.faults.watch import pin

TOGETHER = "together"
"""In place of a job: two and three of them at once."""
_LOADED = (
    "minutch.kernels.library",
    "minutch.cycle.fetch.fetcher",
    "minutch.cycle.parse.parsesegment",
    "minutch.cycle.segment.readseg",
)


def main() -> int:
    """Run campaigns as the command line says."""
    options = _options()
    library.load()
    pin()
    for module in _LOADED:
        importlib.import_module(module)
    failed = 0
    with tempfile.TemporaryDirectory(prefix="faults-") as folder:
        stage = Stage(Path(folder), LARGE if options.large else SMALL)
        for name in sorted(
            options.jobs or [*JOBS, TOGETHER],
            key=lambda name: name == TOGETHER or not JOBS[name].forks,
        ):
            if name == TOGETHER:
                found = _disturb(name, {"race": Races(stage, options.seed).points()}, options)
            else:
                campaign = Campaign(stage, JOBS[name], options.seed)
                found = _disturb(
                    name, {kind: campaign.points(kind) for kind in options.kind or KINDS}, options
                )
            figures = ", ".join(f"{kind} {count}" for kind, count in found.points.items())
            print(f"{name}: {figures}; {len(found.failures)} failures", flush=True)
            failed += len(found.failures)
    return 1 if failed else 0


_LONGEST: Final = 500
"""Characters of an error that are printed."""


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.faults")
    parser.add_argument("jobs", nargs="*")
    parser.add_argument("--kind", action="append", choices=KINDS)
    parser.add_argument("--points", type=int)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", default="")
    parser.add_argument("--large", action="store_true")
    parser.add_argument("--minutes", type=float, default=math.inf)
    return parser.parse_args()


def _disturb(
    name: str, kinds: Mapping[str, Iterator[tuple[str, Point]]], options: argparse.Namespace
) -> Found:
    found = Found()
    for kind, points in kinds.items():
        for title, point in _within(
            options.minutes, islice(_wanted(points, options.only), options.points)
        ):
            found.points[kind] = found.points.get(kind, 0) + 1
            try:
                problem = point()
            except Exception as exc:  # noqa: BLE001 - what was left can't even be read
                problem = f"{type(exc).__name__}: {exc}"[:_LONGEST]
            if problem is not None:
                words = [
                    "python",
                    "-m",
                    "tests.faults",
                    name,
                    *(("--kind", kind) if kind in KINDS else ()),
                ]
                words += [
                    "--seed",
                    str(options.seed),
                    *(("--large",) if options.large else ()),
                    "--only",
                    title,
                ]
                found.failures.append(title)
                print(f"FAILED {shlex.join(words)}\n    {problem}", flush=True)
    return found


def _wanted(points: Iterator[tuple[str, Point]], text: str) -> Iterator[tuple[str, Point]]:
    return (point for point in points if text in point[0])


def _within(minutes: float, points: Iterator[tuple[str, Point]]) -> Iterator[tuple[str, Point]]:
    end = time.monotonic() + minutes * 60
    return takewhile(lambda point: time.monotonic() < end, points)


if __name__ == "__main__":
    sys.exit(main())
