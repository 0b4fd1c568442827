"""Measures the jobs that run on Spark: the engine of one machine beside Spark with one core, and
with two.

    python -m tests.benchmarks.engine [--urls 5000000 20000000] [--pages 100000] [--jobs updatedb …]
    [--folder DIR]
                                      [--masters local[1] local[2]] [--json FILE] [--repeat 1]

Prints a Markdown table. For Spark, `in jobs` is the time in which Spark's jobs ran: without the
start of the process, of Java and of Spark. `shuffled` is what was written for Spark's shuffles,
compressed as it travels, also for each record of the job (see `jobs`). CPU seconds and peak memory
are those of the process and all that it started, sampled. Data are made and found as by
`databases`, whose other remarks hold here as well.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final

from tests.benchmarks.databases import PROJECT, PROPERTIES, WARM_UP, machine, make_inputs
from tests.benchmarks.jobs import JOBS, Job, Workspace
from tests.benchmarks.measure import Failed
from tests.benchmarks.shuffled import EVENTS, read_log

COMMANDS: Final = {
    "readdb",
    "generate",
    "updatedb",
    "dedup",
    "inject",
    "invertlinks",
    "scoreupdater",
    "mergesegs",
}
"""Of the jobs that are measured those that run on Spark."""
LOCAL: Final = "local engine"
_SAMPLE: Final = 0.1
"""Seconds between two looks at the memory of all processes."""


@dataclass
class Result:
    """One run. Times in seconds, memory and volume in bytes; None where there is no Spark."""

    job: str
    urls: int
    records: int
    engine: str
    seconds: float
    cpu_seconds: float
    peak_bytes: int
    job_seconds: float | None = None
    shuffled_bytes: int | None = None
    shuffled_entries: int | None = None


class Watcher(threading.Thread):
    """Looks at a process and its descendants as long as it runs: their anonymous memory, and their
    time.
    """

    def __init__(self, pid: int) -> None:
        super().__init__(daemon=True)
        self._pid = pid
        self._over = threading.Event()
        self._cpu: dict[int, float] = {}
        self.peak = 0
        self.start()

    def run(self) -> None:
        while not self._over.wait(_SAMPLE):
            sizes = {pid: size for pid in _family(self._pid) if (size := self._look_at(pid))}
            self.peak = max(self.peak, sum(sizes.values()))

    def _look_at(self, pid: int) -> int:
        """Bytes of a process; its time is put down."""
        try:
            fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
            status = Path(f"/proc/{pid}/status").read_text()
        except OSError:
            return 0
        self._cpu[pid] = (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
        found = re.search(r"^RssAnon:\s+(\d+)", status, re.MULTILINE)
        return int(found[1]) * 1024 if found else 0

    def stop(self) -> tuple[float, int]:
        """The seconds of CPU of all processes, up to the last look at each, and the greatest sum of
        their memory.
        """
        self._over.set()
        self.join()
        return sum(self._cpu.values()), self.peak


def _family(pid: int) -> list[int]:
    """A process and all below it."""
    children: dict[int, list[int]] = {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            parent = int(path.read_text().rpartition(")")[2].split()[1])
        except OSError:
            continue
        children.setdefault(parent, []).append(int(path.parent.name))
    found = [pid]
    for own in found:
        found += children.get(own, [])
    return found


def measure(job: Job, work: Workspace, engine: str) -> Result:
    """One run of a job. Raises Failed."""
    work.fresh()
    properties = dict(PROPERTIES)
    if engine != LOCAL:
        events = work.run / "events"
        events.mkdir()
        properties |= {
            "minutch.engine": "spark",
            "spark.master": engine,
            "spark.eventLog.dir": events.as_uri(),
            **EVENTS,
        }
    words = [
        sys.executable,
        "-m",
        "minutch",
        job.command,
        *(f"-D{name}={value}" for name, value in properties.items()),
    ]
    environment = {**os.environ, "PYTHONPATH": str(PROJECT), "MINUTCH_HOME": str(PROJECT)}
    log = work.run / "command.log"
    arguments = [str(word) for word in job.arguments(work)]
    with log.open("wb") as output:
        start = time.monotonic()
        process = subprocess.Popen(
            [*words, *arguments], cwd=work.run, env=environment, stdout=output, stderr=output
        )
        watcher = Watcher(process.pid)
        code = process.wait()
        seconds = time.monotonic() - start
        cpu, peak = watcher.stop()
    if code:
        raise Failed(f"{job.command} … exit code {code}\n{log.read_text(errors='replace')[-3000:]}")
    result = Result(job.name, work.urls, job.records(work), engine, seconds, cpu, peak)
    if engine != LOCAL:
        found = read_log(next(events.iterdir()))
        result.job_seconds, result.shuffled_bytes, result.shuffled_entries = (
            found.job_seconds,
            found.bytes,
            found.records,
        )
    return result


def markdown(results: list[Result]) -> str:
    """The table; `×` is the time beside that of the local engine, also of Spark's jobs alone."""
    lines = [
        (
            "| job | URLs | engine | seconds | × | in jobs | × | CPU s | peak memory | shuffled |"
            " bytes a record |"
        ),
        "|---|--:|---|--:|--:|--:|--:|--:|--:|--:|--:|",
    ]
    local = {(r.job, r.urls): r.seconds for r in results if r.engine == LOCAL}
    for r in results:
        base = local.get((r.job, r.urls))
        lines.append(
            f"| {r.job} | {r.urls / 1e6:g} M | {r.engine} | {r.seconds:.1f} |"
            f" {_ratio(r.seconds, base)} | {_shown(r.job_seconds)} | {_ratio(r.job_seconds, base)}"
            f" | {r.cpu_seconds:.1f} | {r.peak_bytes / 1e9:.2f} GB | {_megabytes(r.shuffled_bytes)}"
            f" | {_shown(None if r.shuffled_bytes is None else r.shuffled_bytes / r.records)} |"
        )
    return "\n".join(lines)


def _shown(value: float | None) -> str:
    return "–" if value is None else f"{value:.1f}"


def _megabytes(value: int | None) -> str:
    return "–" if value is None else f"{value / 1e6:,.1f} MB"


def _ratio(seconds: float | None, base: float | None) -> str:
    return "–" if seconds is None or not base else f"{seconds / base:.2f}"


def main() -> int:
    """The command."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.benchmarks.engine", description=__doc__.split("\n")[0]
    )
    parser.add_argument("--urls", type=int, nargs="+", default=[5_000_000, 20_000_000])
    parser.add_argument("--pages", type=int, default=100_000, help="of the segment, at every size")
    parser.add_argument(
        "--jobs", nargs="+", default=[], help="beginnings of the names of the jobs; default: all"
    )
    parser.add_argument("--masters", nargs="+", default=["local[1]", "local[2]"])
    parser.add_argument("--folder", type=Path, help="where data are made, and found again")
    parser.add_argument("--json", type=Path)
    parser.add_argument(
        "--repeat", type=int, default=1, help="runs of each, of which the fastest counts"
    )
    options = parser.parse_args()
    chosen = [job for job in JOBS if job.command in COMMANDS]
    jobs = [job for job in chosen if not options.jobs or job.name.startswith(tuple(options.jobs))]
    results: list[Result] = []
    with ExitStack() as stack:
        folder = options.folder or Path(
            stack.enter_context(tempfile.TemporaryDirectory(prefix="minutch-benchmark-"))
        )
        folder = folder.absolute()
        folder.mkdir(parents=True, exist_ok=True)
        stack.callback(shutil.rmtree, folder / f"run-{os.getpid()}", ignore_errors=True)
        try:
            warm = make_inputs(folder, WARM_UP, WARM_UP // 20)
            for job in jobs:
                measure(job, warm, LOCAL)  # compiles what it needs
            for urls in options.urls:
                work = make_inputs(folder, urls, min(options.pages, urls))
                for job in jobs:
                    for engine in (LOCAL, *options.masters):
                        runs = [measure(job, work, engine) for _ in range(options.repeat)]
                        results.append(min(runs, key=lambda run: run.seconds))
                        print(results[-1], file=sys.stderr)
                        if options.json:
                            report = {
                                "machine": machine(),
                                "results": [asdict(result) for result in results],
                            }
                            options.json.write_text(json.dumps(report, indent=2), encoding="utf-8")
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


if __name__ == "__main__":
    sys.exit(main())
