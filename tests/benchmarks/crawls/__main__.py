"""Measures whole crawls: 20,000 linked pages of 15 KB on 100 hosts, from one seed to the end.

    python -m tests.benchmarks.crawls [--pages 20000] [--hosts 100] [--threads 100] [--runs 1]
                                      [--only minutch spider colly crawlee scrapy nutch]
                                      [--keep DIR]

nginx (or, where that is missing, a server of ours) has the pages on loopback addresses; its CPU is
in a column of its own. Each crawler begins with one URL and an empty folder, and ends by itself;
`crawlers` says what each may do and stores. minutch takes all steps of its cycle in each round. CPU
is that of a command and all its processes, memory their RSS added up; with more runs, in each of
which all take their turn, the median counts. --keep: where crawlers are built and crawls stay, for
the next call; else a folder that goes. Nutch is the installation in NUTCH_HOME. Prints Markdown and
a line of JSON; exit code 1 if a crawler failed.
"""

from __future__ import annotations

import argparse
import json
import shutil
import sys
import tempfile
from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median
from typing import Final

from tests.benchmarks.broad.tables import number, table
from tests.benchmarks.crawls.crawlers import CRAWLERS, Crawler, NotHere, Work, measure, steps
from tests.benchmarks.crawls.web import Web
from tests.benchmarks.measure import Failed, cpu_of
from tests.benchmarks.pageserver import Serving, free_port, serving

MOST_CPU: Final = 0.8
"""ms of CPU a page that minutch's whole cycle is to take at most."""
LEAST_RATE: Final = 1300.0
"""Pages a second that it is to have on two cores."""


@dataclass(frozen=True)
class Run:
    """One crawl, measured."""

    crawler: str
    seconds: float
    cpu: float
    server_cpu: float
    peak_bytes: int
    stored: int
    """Pages, one as often as it was stored."""
    pages: int
    """Those that differ."""
    steps: dict[str, tuple[float, float]]
    """CPU seconds and seconds of each of minutch's steps."""

    @property
    def cpu_per_page(self) -> float:
        """In ms."""
        return 1000 * self.cpu / max(1, self.pages)

    @property
    def rate(self) -> float:
        """Pages a second."""
        return self.pages / self.seconds


def one_run(crawler: Crawler, program: Path, work: Work, server: Serving) -> Run:
    """Measure a crawl. Raises Failed."""
    before = cpu_of(server.pid)
    cost, stored, pages = measure(crawler, program, work)
    server_cpu = cpu_of(server.pid) - before
    return Run(
        crawler.name,
        cost.seconds,
        cost.cpu_seconds,
        server_cpu,
        cost.tree_bytes,
        stored,
        pages,
        steps(work),
    )


def compared(runs: Sequence[Run], missing: dict[str, str], web: Web) -> str:
    """The table of all crawlers; what is not here has its reason below."""
    titles = {crawler.name: crawler.title for crawler in CRAWLERS}
    rows = []
    for name in dict.fromkeys(run.crawler for run in runs):
        mine = [run for run in runs if run.crawler == name]
        fetched = min(run.pages for run in mine)
        rows.append(
            (
                titles[name],
                number(median(run.cpu for run in mine), 1),
                number(median(run.seconds for run in mine), 1),
                number(fetched) if fetched == web.pages else f"ONLY {fetched:,}",
                number(median(run.stored for run in mine)),
                number(median(run.cpu_per_page for run in mine), 2),
                number(median(run.rate for run in mine)),
                number(max(run.peak_bytes for run in mine) / 1e6, 0, " MB"),
                number(median(run.server_cpu for run in mine), 1),
            )
        )
    heads = (
        "",
        "CPU s",
        "seconds",
        "pages",
        "stored",
        "ms CPU/page",
        "pages/s",
        "peak memory",
        "server's CPU s",
    )
    lines = [table(heads, rows)]
    lines += [f"- {titles[name]} is not here: {reason}" for name, reason in missing.items()]
    return "\n".join(lines)


def by_step(runs: Sequence[Run]) -> str:
    """What minutch's steps take; empty without minutch."""
    mine = [run for run in runs if run.steps]
    if not mine:
        return ""
    names = list(dict.fromkeys(name for run in mine for name in run.steps))

    def of(run: Run, name: str, which: int) -> float:
        return run.steps.get(name, (0.0, 0.0))[which]

    return table(
        ("step, all rounds", "CPU s", "seconds", "ms CPU/page"),
        (
            (
                name,
                number(median(of(run, name, 0) for run in mine), 2),
                number(median(of(run, name, 1) for run in mine), 2),
                number(median(1000 * of(run, name, 0) / max(1, run.pages) for run in mine), 3),
            )
            for name in names
        ),
    )


def reached(runs: Sequence[Run]) -> str:
    """The figures that minutch is to reach; empty without minutch."""
    mine = [run for run in runs if run.crawler == "minutch"]
    if not mine:
        return ""
    cpu = median(run.cpu_per_page for run in mine)
    rate = median(run.rate for run in mine)
    rows = (
        ("ms CPU/page", number(cpu, 2), f"≤ {MOST_CPU:g}", cpu <= MOST_CPU),
        ("pages/s", number(rate), f"≥ {LEAST_RATE:,.0f}", rate >= LEAST_RATE),
    )
    words = (f"{name}, minutch" for name, *_ in rows)
    return table(
        ("figure", "found", "to reach", ""),
        (
            (name, found, goal, "yes" if is_reached else "NO")
            for name, (_, found, goal, is_reached) in zip(words, rows, strict=True)
        ),
    )


@contextmanager
def _folder(keep: Path | None) -> Iterator[Path]:
    if keep is not None:
        keep.mkdir(parents=True, exist_ok=True)
        yield keep.absolute()
    else:
        with tempfile.TemporaryDirectory(prefix="crawls-") as name:
            yield Path(name)


def built(chosen: Sequence[Crawler], tools: Path) -> tuple[dict[Crawler, Path], dict[str, str]]:
    """The programs of crawlers that can be had, and the reasons why others can't."""
    tools.mkdir(exist_ok=True)
    programs: dict[Crawler, Path] = {}
    missing: dict[str, str] = {}
    for crawler in chosen:
        print(f"{crawler.name}: build", file=sys.stderr, flush=True)
        try:
            programs[crawler] = crawler.build(tools)
        except NotHere as exc:
            missing[crawler.name] = str(exc)
    return programs, missing


def main(arguments: Sequence[str] | None = None) -> int:
    """The command."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.benchmarks.crawls", description=(__doc__ or "").split("\n")[0]
    )
    names = [crawler.name for crawler in CRAWLERS]
    parser.add_argument("--pages", type=int, default=20_000)
    parser.add_argument("--hosts", type=int, default=100)
    parser.add_argument("--threads", type=int, default=100, help="requests in flight at most")
    parser.add_argument("--only", nargs="+", default=names, choices=names)
    parser.add_argument("--runs", type=int, default=1)
    parser.add_argument("--keep", type=Path, metavar="DIR", help="builds and crawls stay there")
    given = parser.parse_args(arguments)
    failed = False
    runs: list[Run] = []
    with _folder(given.keep) as folder:
        chosen = [crawler for crawler in CRAWLERS if crawler.name in given.only]
        programs, missing = built(chosen, folder / "tools")
        web = Web(given.pages, given.hosts, free_port())
        shutil.rmtree(folder / "site", ignore_errors=True)
        with serving(web.bodies(), folder / "site", web.port) as server:
            for crawler, program in programs.items():
                if crawler.name == "minutch":  # its modules are compiled once, as if installed
                    with tempfile.TemporaryDirectory() as name:
                        measure(crawler, program, Work(Path(name) / "a", web.url(0), 1, rounds=1))
            for _ in range(given.runs):
                for crawler, program in programs.items():
                    place = folder / crawler.name
                    shutil.rmtree(place, ignore_errors=True)
                    try:
                        run = one_run(
                            crawler, program, Work(place, web.url(0), given.threads), server
                        )
                    except Failed as exc:
                        print(f"{crawler.name}: {exc}", file=sys.stderr)
                        failed = True
                        continue
                    runs.append(run)
                    print(
                        f"{run.crawler}: {run.pages:,} pages, {run.cpu:.1f} CPU s,"
                        f" {run.seconds:.1f} s",
                        file=sys.stderr,
                        flush=True,
                    )
    print(
        f"{web.pages:,} pages on {web.hosts} hosts, {web.levels} levels, from {server.name};"
        f" {given.threads} requests at once at most; {given.runs} runs\n"
    )
    print(
        "\n\n".join(
            part for part in (compared(runs, missing, web), by_step(runs), reached(runs)) if part
        )
    )
    found: defaultdict[str, list[object]] = defaultdict(list)
    for run in runs:
        found[run.crawler].append(asdict(run))
    print(json.dumps({"crawls": found, "not here": missing}))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
