"""Measures the jobs that walk whole databases.

    python -m tests.benchmarks.databases [--urls 1000000 5000000 10000000] [--pages 100000] [--jobs
    updatedb …]
                                         [--folder DIR] [--json FILE] [--nutch-at 5000000 |
                                         --no-nutch] [--repeat 3]
                                         [--in-proportion] [--tight]

Prints a Markdown table of what each job took, and one of the cost per record at each size and its
growth; --json writes the same as JSON, again after each job. Each job runs once on a small database
first, so that kernels are compiled; of --repeat runs the fastest counts. `cp -r` and Nutch are
measured in the same run, on the same files. Peak memory is that of the job's process, which starts
no others, with the pages of mapped files; `private` is without them.

updatedb, invertlinks and others that read the segment have as much work at every size, unless the
segment is made --in-proportion to the database.

Data are made in --folder (some 20 GB with ten million URLs) and stay there: what is complete is
used by the next run. Without --folder they are in a temporary folder that goes away. With --tight
they are made for the first job that reads them and removed after the last, and nothing is copied:
100 million URLs and 500,000 pages take 35 GB so.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import platform
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Collection, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from pathlib import Path

from tests.benchmarks import data, nutch
from tests.benchmarks.jobs import JOBS, Job, Workspace
from tests.benchmarks.measure import Cost, Failed, copy_seconds, run

PROJECT = Path(__file__).parents[2]
PROPERTIES = {"mapreduce.job.reduces": str(data.PARTS), "mapreduce.job.maps": "2"}
HADOOPS_SORT_BUFFER = "100"
"""MB, Hadoop's default; the interoperability tests have a smaller one."""
WARM_UP = 150_000
"""URLs of the database on which kernels are compiled."""


@dataclass
class Result:
    """One job at one size. Times in seconds, memory in bytes; None where there was nothing to
    compare with.
    """

    job: str
    urls: int
    records: int
    seconds: float
    cpu_seconds: float
    records_per_second: float
    peak_bytes: int
    private_bytes: int
    copy_seconds: float | None
    copy_ratio: float | None
    nutch_seconds: float | None = None
    nutch_ratio: float | None = None


def make_inputs(
    folder: Path, urls: int, pages: int, names: Collection[str] = data.NAMES
) -> Workspace:
    """The databases of one size with these names, which may be there already (made by this version
    of `data`).

    They are made by a process of their own: the memory that this one has had counts as its
    children's peak, too.
    """
    version = hashlib.sha256(Path(data.__file__).read_bytes()).hexdigest()[:8]
    work = Workspace(
        folder / f"inputs-{urls}-{pages}-{version}", folder / f"run-{os.getpid()}", urls, pages
    )
    if not all((work.inputs / name).exists() for name in names):
        words = [sys.executable, "-m", "tests.benchmarks.data", work.inputs, str(urls), str(pages)]
        subprocess.run([*words, *names], cwd=PROJECT, check=True)
    return work


def run_minutch(job: Job, work: Workspace) -> Cost:
    """One run of a job of ours."""
    work.fresh()
    words = [sys.executable, "-m", "minutch", job.command]
    words += [f"-D{name}={value}" for name, value in PROPERTIES.items()]
    environment = {**os.environ, "PYTHONPATH": str(PROJECT), "MINUTCH_HOME": str(PROJECT)}
    environment.pop(
        "PYTHONDONTWRITEBYTECODE", None
    )  # compiled modules are kept, as where minutch is installed
    return run([*words, *job.arguments(work)], cwd=work.run, env=environment)


def run_nutch(peer: nutch.Nutch, job: Job, work: Workspace) -> Cost:
    """The same by Nutch."""
    work.fresh()
    own = {
        "hadoop.tmp.dir": str(work.run / "hadoop"),
        "mapreduce.task.io.sort.mb": HADOOPS_SORT_BUFFER,
    }
    words = peer.command(job.command, {**PROPERTIES, **own}, job.arguments(work))
    return run(words, cwd=work.run, env=dict(os.environ))


def measure(
    job: Job, work: Workspace, peer: nutch.Nutch | None, repeat: int, *, copies: bool
) -> Result:
    """A job at one size; `copies` says whether its files are copied to compare."""
    cost = min(run_minutch(job, work) for _ in range(repeat))
    files = [*job.reads(work), *job.writes(work)]
    copied = copy_seconds(files, work.run / "copied") if copies else None
    records = job.records(work)
    result = Result(
        job.name,
        work.urls,
        records,
        cost.seconds,
        cost.cpu_seconds,
        records / cost.seconds,
        cost.peak_bytes,
        cost.private_bytes,
        copied,
        copied and cost.seconds / copied,
    )
    if peer is not None and (peer.has_plugins or not job.filters):
        result.nutch_seconds = run_nutch(peer, job, work).seconds
        result.nutch_ratio = result.nutch_seconds / cost.seconds
    return result


def markdown(results: list[Result]) -> str:
    """The table, and that of the growth where there are several sizes."""
    lines = [
        (
            "| job | URLs | seconds | CPU s | records/s | peak memory | private | × `cp -r` |"
            " Nutch, s | × faster |"
        ),
        "|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|",
    ]
    for r in results:
        theirs = (
            f"{r.nutch_seconds:.1f} | {r.nutch_ratio:.1f}"
            if r.nutch_seconds and r.nutch_ratio
            else "– | –"
        )
        lines.append(
            f"| {r.job} | {r.urls / 1e6:g} M | {r.seconds:.2f} | {r.cpu_seconds:.2f} |"
            f" {r.records_per_second:,.0f} | {r.peak_bytes / 1e9:.2f} GB |"
            f" {r.private_bytes / 1e9:.2f} GB |"
            f" {f'{r.copy_ratio:.1f}' if r.copy_ratio else '–'} | {theirs} |"
        )
    return "\n".join([*lines, *growth(results)])


def growth(results: list[Result]) -> list[str]:
    """A table of what a record costs at each size, and by how much more at the largest than at the
    smallest.
    """
    sizes = sorted({r.urls for r in results})
    if len(sizes) == 1:
        return []
    lines = [
        "",
        "| job, µs per record | "
        + " | ".join(f"{size / 1e6:g} M" for size in sizes)
        + " | growth | of CPU |",
    ]
    lines.append("|---|" + "--:|" * (len(sizes) + 2))
    cost = {(r.job, r.urls): r.seconds / r.records * 1e6 for r in results}
    cpu = {(r.job, r.urls): r.cpu_seconds / r.records for r in results}
    for name in dict.fromkeys(r.job for r in results):
        row = [cost.get((name, size)) for size in sizes]
        shown = ["–" if value is None else f"{value:.2f}" for value in row]
        shown += [
            _change(of.get((name, sizes[0])), of.get((name, sizes[-1]))) for of in (cost, cpu)
        ]
        lines.append(f"| {name} | " + " | ".join(shown) + " |")
    return lines


def _change(first: float | None, last: float | None) -> str:
    return f"{100 * (last / first - 1):+.0f} %" if first and last else "–"


def machine() -> dict[str, str]:
    """Describes the machine, and the day, of the measurement."""
    return {
        "date": time.strftime("%Y-%m-%d"),
        "cores": str(os.cpu_count()),
        "memory": f"{os.sysconf('SC_PAGE_SIZE') * os.sysconf('SC_PHYS_PAGES') / 2**30:.0f} GiB",
        "system": platform.platform(),
        "python": platform.python_version(),
    }


def main() -> int:
    """The command."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.benchmarks.databases", description=__doc__.split("\n")[0]
    )
    parser.add_argument("--urls", type=int, nargs="+", default=[1_000_000, 5_000_000, 10_000_000])
    parser.add_argument("--pages", type=int, default=100_000, help="of the segment, at every size")
    parser.add_argument(
        "--in-proportion", action="store_true", help="so many at the largest size, fewer at others"
    )
    parser.add_argument("--tight", action="store_true", help="for little disk; see above")
    parser.add_argument(
        "--jobs",
        nargs="+",
        default=[],
        help="beginnings of the names of the jobs to run; default: all",
    )
    parser.add_argument("--json", type=Path)
    parser.add_argument("--folder", type=Path, help="where data are made, and found again")
    parser.add_argument(
        "--nutch-at",
        type=int,
        nargs="+",
        help="numbers of URLs with which Nutch runs, too; default: all",
    )
    parser.add_argument("--no-nutch", action="store_true")
    parser.add_argument("--repeat", type=int, default=3)
    options = parser.parse_args()
    jobs = [job for job in JOBS if not options.jobs or job.name.startswith(tuple(options.jobs))]
    nutch_at = [] if options.no_nutch else options.nutch_at or options.urls
    with ExitStack() as stack:
        folder = options.folder or Path(
            stack.enter_context(tempfile.TemporaryDirectory(prefix="minutch-benchmark-"))
        )
        folder.mkdir(parents=True, exist_ok=True)
        stack.callback(shutil.rmtree, folder / f"run-{os.getpid()}", ignore_errors=True)
        try:
            results = measure_all(folder.absolute(), jobs, options.urls, nutch_at, options)
        except Failed as exc:
            print(exc, file=sys.stderr)
            return 1
    print(
        ", ".join(f"{name} {value}" for name, value in machine().items()),
        "\n",
        markdown(results),
        sep="\n",
    )
    return 0


def measure_all(
    folder: Path,
    jobs: list[Job],
    sizes: list[int],
    nutch_at: list[int],
    options: argparse.Namespace,
) -> list[Result]:
    """All jobs at all sizes."""
    peer = nutch.find(folder / "nutch") if nutch_at else "not asked for"
    print(f"Nutch: {peer if isinstance(peer, str) else peer.name}", file=sys.stderr)
    warm = make_inputs(folder, WARM_UP, WARM_UP // 20)
    for job in jobs:
        run_minutch(job, warm)
    warm.fresh()
    results: list[Result] = []
    for urls in sizes:
        share = urls / max(sizes) if options.in_proportion else 1
        pages = min(round(options.pages * share), urls)
        for number, job in enumerate(jobs):
            work = make_inputs(folder, urls, pages, job.inputs(warm))
            beside = peer if isinstance(peer, nutch.Nutch) and urls in nutch_at else None
            results.append(measure(job, work, beside, options.repeat, copies=not options.tight))
            if options.tight:
                remove_read(work, jobs[number + 1 :])
            print(markdown(results[-1:]).splitlines()[2], file=sys.stderr)
            if options.json:
                report = {"machine": machine(), "results": [asdict(result) for result in results]}
                options.json.write_text(json.dumps(report, indent=2), encoding="utf-8")
    return results


def remove_read(work: Workspace, coming: Sequence[Job]) -> None:
    """Remove what the last job wrote, and databases that no coming one reads."""
    work.fresh()
    needed = {name for job in coming for name in job.inputs(work)}
    needed |= {data.MADE_OF[name] for name in needed & data.MADE_OF.keys()}
    for name in set(data.NAMES) - needed:
        shutil.rmtree(work.inputs / name, ignore_errors=True)


if __name__ == "__main__":
    sys.exit(main())
