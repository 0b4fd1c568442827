"""Measures the jobs that walk whole databases.

    python -m tests.benchmarks.databases --urls 1000000 5000000 10000000 [--pages 100000] [--jobs updatedb …]
                                         [--json FILE] [--folder DIR] [--no-nutch] [--repeat 3]

Prints a Markdown table; --json writes the same as JSON. Data are made in a folder of their own (in --folder, else in
the system's for temporary files: some 20 GB for ten million URLs) and deleted at the end. Each job runs once on a small
database first, so that kernels are compiled; of --repeat runs the fastest counts. `cp -r` and Nutch are measured in the
same run, on the same files.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import shutil
import subprocess
import sys
import tempfile
import time
from dataclasses import asdict, dataclass
from pathlib import Path

from tests.benchmarks import data, nutch
from tests.benchmarks.jobs import JOBS, Job, Workspace
from tests.benchmarks.measure import Cost, Failed, copy_seconds, run

PROJECT = Path(__file__).parents[2]
PROPERTIES = {"mapreduce.job.reduces": str(data.PARTS), "mapreduce.job.maps": "2"}
WARM_UP = 150_000
"""URLs of the database on which kernels are compiled."""


@dataclass
class Result:
    """One job at one size. Times in seconds, memory in bytes; None where there was nothing to compare with."""

    job: str
    urls: int
    records: int
    seconds: float
    cpu_seconds: float
    records_per_second: float
    peak_bytes: int
    copy_seconds: float
    copy_ratio: float
    nutch_seconds: float | None = None
    nutch_ratio: float | None = None


def make_inputs(folder: Path, urls: int, pages: int) -> Workspace:
    """The databases of one size.

    They are made by a process of their own: the memory that this one has had counts as its children's peak, too.
    """
    work = Workspace(folder / f"inputs-{urls}", folder / "run", urls, pages)
    words = [sys.executable, "-m", "tests.benchmarks.data", work.inputs, str(urls), str(pages)]
    subprocess.run(words, cwd=PROJECT, check=True)
    return work


def run_minutch(job: Job, work: Workspace) -> Cost:
    """One run of a job of ours."""
    work.fresh()
    words = [sys.executable, "-m", "minutch", job.command]
    words += [f"-D{name}={value}" for name, value in PROPERTIES.items()]
    environment = {**os.environ, "PYTHONPATH": str(PROJECT), "MINUTCH_HOME": str(PROJECT)}
    return run([*words, *job.arguments(work)], cwd=work.run, env=environment)


def run_nutch(peer: nutch.Nutch, job: Job, work: Workspace) -> Cost:
    """The same by Nutch."""
    work.fresh()
    temporary = {"hadoop.tmp.dir": str(work.run / "hadoop")}
    words = peer.command(job.command, {**PROPERTIES, **temporary}, job.arguments(work))
    return run(words, cwd=work.run, env=dict(os.environ))


def measure(job: Job, work: Workspace, peer: nutch.Nutch | None, repeat: int) -> Result:
    """A job at one size."""
    cost = min(run_minutch(job, work) for _ in range(repeat))
    copied = copy_seconds([*job.reads(work), *job.writes(work)], work.run / "copied")
    records = job.records(work)
    result = Result(
        job.name,
        work.urls,
        records,
        cost.seconds,
        cost.cpu_seconds,
        records / cost.seconds,
        cost.peak_bytes,
        copied,
        cost.seconds / copied,
    )
    if peer is not None and (peer.has_plugins or not job.filters):
        result.nutch_seconds = run_nutch(peer, job, work).seconds
        result.nutch_ratio = result.nutch_seconds / cost.seconds
    return result


def markdown(results: list[Result]) -> str:
    """The table, and the growth from the smallest size to the largest."""
    lines = [
        "| job | URLs | seconds | CPU s | records/s | peak memory | × `cp -r` | Nutch, s | × faster |",
        "|---|--:|--:|--:|--:|--:|--:|--:|--:|",
    ]
    for r in results:
        theirs = f"{r.nutch_seconds:.1f} | {r.nutch_ratio:.1f}" if r.nutch_seconds and r.nutch_ratio else "– | –"
        lines.append(
            f"| {r.job} | {r.urls / 1e6:g} M | {r.seconds:.2f} | {r.cpu_seconds:.2f} | {r.records_per_second:,.0f} "
            f"| {r.peak_bytes / 1e9:.2f} GB | {r.copy_ratio:.1f} | {theirs} |"
        )
    sizes = sorted({r.urls for r in results})
    if len(sizes) > 1:
        lines += ["", f"| job | µs per record at {sizes[0]:,} | at {sizes[-1]:,} | growth |", "|---|--:|--:|--:|"]
        by_size = {(r.job, r.urls): r.seconds / r.records * 1e6 for r in results}
        for name in dict.fromkeys(r.job for r in results):
            first, last = by_size.get((name, sizes[0])), by_size.get((name, sizes[-1]))
            if first and last:
                lines.append(f"| {name} | {first:.2f} | {last:.2f} | {100 * (last / first - 1):+.0f} % |")
    return "\n".join(lines)


def machine() -> dict[str, str]:
    """Where and when this was measured."""
    return {
        "date": time.strftime("%Y-%m-%d"),
        "cores": str(os.cpu_count()),
        "memory": f"{os.sysconf('SC_PAGE_SIZE') * os.sysconf('SC_PHYS_PAGES') / 2**30:.0f} GiB",
        "system": platform.platform(),
        "python": platform.python_version(),
    }


def main() -> int:
    """The command."""
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks.databases", description=__doc__.split("\n")[0])
    parser.add_argument("--urls", type=int, nargs="+", default=[1_000_000])
    parser.add_argument("--pages", type=int, default=100_000)
    parser.add_argument(
        "--jobs", nargs="+", default=[], help="beginnings of the names of the jobs to run; default: all"
    )
    parser.add_argument("--json", type=Path)
    parser.add_argument("--folder", type=Path)
    parser.add_argument("--no-nutch", action="store_true")
    parser.add_argument("--repeat", type=int, default=3)
    options = parser.parse_args()
    jobs = [job for job in JOBS if not options.jobs or job.name.startswith(tuple(options.jobs))]
    folder = Path(tempfile.mkdtemp(prefix="minutch-benchmark-", dir=options.folder))
    results: list[Result] = []
    try:
        peer = None if options.no_nutch else nutch.find(folder / "nutch")
        print(f"Nutch: {peer.name if isinstance(peer, nutch.Nutch) else peer or 'not asked for'}", file=sys.stderr)
        warm = make_inputs(folder, WARM_UP, WARM_UP // 20)
        for job in jobs:
            run_minutch(job, warm)
        for urls in options.urls:
            work = make_inputs(folder, urls, min(options.pages, urls))
            for job in jobs:
                results.append(measure(job, work, peer if isinstance(peer, nutch.Nutch) else None, options.repeat))
                print(markdown(results[-1:]).splitlines()[2], file=sys.stderr)
            shutil.rmtree(work.inputs)
    except Failed as exc:
        print(exc, file=sys.stderr)
        return 1
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    print(", ".join(f"{name} {value}" for name, value in machine().items()), "\n", markdown(results), sep="\n")
    if options.json:
        report = {"machine": machine(), "results": [asdict(result) for result in results]}
        options.json.write_text(json.dumps(report, indent=2), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
