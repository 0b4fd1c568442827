"""A long fetch from hosts that misbehave: do memory, descriptors and threads stay where they are?

    python -m tests.benchmarks.soak [--pages 200000] [--minutes 20] [--hosts 2000] [--threads 200]
    [--every 10]

Fetches and parses the pages of a random web (tests/support/randomweb.py, served by another process)
until all are done or the time is over. Prints every so many seconds what the fetch and its workers
hold, then by how much the second half of the samples exceeds the first one after a tenth of the
time as a start: figures that stay flat are near 0 %.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import astuple, dataclass
from pathlib import Path
from statistics import fmean

from tests.benchmarks.measure import family
from tests.support.golden import PROJECT
from tests.support.randomweb import Plan
from tests.support.segments import LOOPBACK

SETTINGS = {
    **LOOPBACK,
    "plugin.includes": "protocol-http|urlnormalizer-(pass|basic)|parse-html|scoring-opic",
    "fetcher.parse": "true",
    "http.timeout": "5000",
    "http.redirect.max": "3",
    "fetcher.max.exceptions.per.queue": "-1",
}
START = 0.1
"""The share of the time that counts as the start."""


@dataclass(frozen=True)
class Sample:
    """Memory, open files, threads and processes of a fetch and its workers at one time."""

    seconds: float
    megabytes: float
    descriptors: int
    threads: int
    processes: int


def sample(pid: int, seconds: float) -> Sample:
    """Sums over the family of a process; memory that processes share counts once (PSS).

    Mapped files are left out: how much of a library is shared depends on what else the machine is
    running.
    """
    kilobytes = descriptors = threads = processes = 0
    for one in family(pid):
        with suppress(OSError):
            rollup = Path(f"/proc/{one}/smaps_rollup").read_text()
            kilobytes += int(re.findall(r"^Pss_Anon: +(\d+)", rollup, re.MULTILINE)[0])
            descriptors += sum(1 for _ in Path(f"/proc/{one}/fd").iterdir())
            threads += sum(1 for _ in Path(f"/proc/{one}/task").iterdir())
            processes += 1
    return Sample(round(seconds, 1), round(kilobytes / 1024, 1), descriptors, threads, processes)


def samples(fetch: subprocess.Popen[bytes], every: float) -> Iterator[Sample]:
    """Samples a running fetch from time to time, until it ends."""
    started = time.monotonic()
    while fetch.poll() is None:
        yield sample(fetch.pid, time.monotonic() - started)
        with suppress(subprocess.TimeoutExpired):
            fetch.wait(every)


def growth(values: list[float]) -> float:
    """Returns the percentage by which the mean of the second half exceeds that of the first, after
    the start.
    """
    rest = values[int(len(values) * START) :]
    first, second = rest[: len(rest) // 2], rest[len(rest) // 2 :]
    return 100 * (fmean(second) / fmean(first) - 1) if first and fmean(first) else 0.0


def minutch(*words: str, **settings: str) -> list[str]:
    """A command line."""
    properties = [f"-D{name}={value}" for name, value in {**SETTINGS, **settings}.items()]
    return [sys.executable, "-m", "minutch", words[0], *properties, *words[1:]]


def main() -> int:
    """Serve, fetch, watch; the fetch's exit code."""
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks.soak")
    for name, default in (
        ("--pages", 200_000),
        ("--hosts", 2000),
        ("--threads", 200),
        ("--minutes", 20),
        ("--every", 10),
    ):
        parser.add_argument(name, type=int, default=default)
    options = parser.parse_args()
    plan = Plan(1, options.pages, options.hosts)
    web = [
        sys.executable,
        "-m",
        "tests.support.randomweb",
        *map(str, (plan.pages, plan.hosts, plan.seed)),
    ]
    with (
        tempfile.TemporaryDirectory(prefix="soak-") as name,
        subprocess.Popen(
            web, cwd=PROJECT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        ) as server,
    ):
        folder = Path(name)
        assert server.stdin is not None and server.stdout is not None
        port = int(server.stdout.readline())
        (folder / "urls.txt").write_text(
            "\n".join(plan.url(page, port) for page in range(plan.pages))
        )
        segments = folder / "segments"
        subprocess.run(
            minutch("freegen", str(folder / "urls.txt"), str(segments)), cwd=PROJECT, check=True
        )
        (segment,) = segments.iterdir()
        limit = {"fetcher.timelimit.mins": str(options.minutes)}
        code = watch(
            minutch("fetch", str(segment), "-threads", str(options.threads), **limit), options.every
        )
        server.stdin.close()
    return code


def watch(command: list[str], every: float) -> int:
    """Run a fetch and print what it holds."""
    taken = []
    print(f"{'seconds':>8} {'MB':>8} {'files':>6} {'threads':>8} {'processes':>9}")
    with subprocess.Popen(command, cwd=PROJECT) as fetch:
        for one in samples(fetch, every):
            taken.append(one)
            print("{:>8} {:>8} {:>6} {:>8} {:>9}".format(*astuple(one)), flush=True)
    for name in ("megabytes", "descriptors", "threads"):
        print(f"{name}: {growth([getattr(one, name) for one in taken]):+.1f} %")
    return fetch.returncode


if __name__ == "__main__":
    sys.exit(main())
