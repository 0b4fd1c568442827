"""Measures whole crawls: 20,000 linked pages of 15 KB on 100 hosts, from one seed to the end.

    python -m tests.benchmarks.crawls [--pages 20000|FOLDER] [--hosts 100] [--threads 100]
                                      [--only minutch spider colly crawlee scrapy nutch]
                                      [--runs 1] [--keep DIR] [--tls] [--latency MS]
                                      [--samples]

With a folder, its HTML pages take the place of made-up ones, on 1,000 hosts by default; all their
links lead to one another. --tls: by TLS 1.3, with a certificate for each host. --latency: a round
trip takes so long, and one packet in a thousand is lost (`distance`; root may do that). --samples:
minutch crawls once more, under perf, which says where its CPU goes.

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
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from statistics import median
from typing import Final

from tests.benchmarks.broad.tables import number, table
from tests.benchmarks.crawls import distance, samples
from tests.benchmarks.crawls.crawlers import CRAWLERS, Crawler, NotHere, Work, measure, steps
from tests.benchmarks.crawls.web import RealWeb, Web
from tests.benchmarks.measure import Failed, cpu_of
from tests.benchmarks.pageserver import Serving, certificates, free_port, serving

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
                number(fetched) if fetched >= web.pages else f"ONLY {fetched:,}",
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


def web_of(pages: str, hosts: int | None, scheme: str) -> Web:
    """The web of so many pages, or of a folder's."""
    if pages.isdecimal():
        return Web(int(pages), hosts or 100, free_port(), scheme)
    return RealWeb.of(Path(pages), hosts or 1000, free_port(), scheme)


def where(program: Path, work: Work) -> str:
    """What a crawl of minutch's spends its CPU on; or why that can't be told here."""
    if reason := samples.missing():
        return f"- no samples: {reason}"
    cost, _, pages = measure(CRAWLERS[0], program, work)
    assert work.samples is not None, "under perf"
    return samples.report(samples.shares(work.samples), cost.cpu_seconds, pages)


def main(arguments: Sequence[str] | None = None) -> int:  # noqa: PLR0915 - a line an option
    """The command."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.benchmarks.crawls", description=(__doc__ or "").split("\n")[0]
    )
    names = [crawler.name for crawler in CRAWLERS]
    parser.add_argument("--pages", default="20000", help="how many, or a folder of real ones")
    parser.add_argument("--hosts", type=int)
    parser.add_argument("--threads", type=int, default=100, help="requests in flight at most")
    parser.add_argument("--only", nargs="+", default=names, choices=names)
    parser.add_argument("--runs", type=int, default=1)
    parser.add_argument("--keep", type=Path, metavar="DIR", help="builds and crawls stay there")
    parser.add_argument("--tls", action="store_true")
    parser.add_argument("--latency", type=float, metavar="MS", default=0.0)
    parser.add_argument("--samples", action="store_true", help="where minutch's CPU goes, by perf")
    given = parser.parse_args(arguments)
    failed = False
    runs: list[Run] = []
    with _folder(given.keep) as folder:
        chosen = [crawler for crawler in CRAWLERS if crawler.name in given.only]
        programs, missing = built(chosen, folder / "tools")
        try:
            far = distance.enter_servers() if given.latency else None
        except Failed as exc:
            print(f"- no latency here: {exc}")
            return 0
        web = web_of(given.pages, given.hosts, "https" if given.tls else "http")
        shutil.rmtree(folder / "site", ignore_errors=True)
        shutil.rmtree(folder / "certificates", ignore_errors=True)
        made: Mapping[str, Path] = {}
        trusted = None
        if given.tls:
            made, trusted = certificates(
                map(web.address, range(web.hosts)), folder / "certificates"
            )
        with (
            serving(web.bodies(), folder / "site", web.port, made) as server,
            nullcontext() if far is None else distance.enter_clients(far, given.latency / 2000),
        ):
            work = partial(Work, seed=web.url(0), trusted=trusted)
            for crawler, program in programs.items():
                if crawler.name == "minutch":  # its modules are compiled once, as if installed
                    with tempfile.TemporaryDirectory() as name:
                        measure(crawler, program, work(Path(name) / "a", threads=1, rounds=1))
            for _ in range(given.runs):
                for crawler, program in programs.items():
                    place = folder / crawler.name
                    shutil.rmtree(place, ignore_errors=True)
                    try:
                        run = one_run(crawler, program, work(place, threads=given.threads), server)
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
            sampled = ""
            if given.samples:
                under = folder / "sampled"
                shutil.rmtree(under, ignore_errors=True)
                program = Path(sys.executable)
                sampled = where(program, work(under, threads=given.threads, samples=under / "perf"))
    print(
        f"{web.pages:,} pages on {web.hosts} hosts, {web.levels} levels, from {server.name}"
        f"{' by TLS' if given.tls else ''}"
        f"{f', {given.latency:g} ms and 0.1 % loss a packet' if given.latency else ''};"
        f" {given.threads} requests at once at most; {given.runs} runs\n"
    )
    goals = "" if isinstance(web, RealWeb) else reached(runs)
    parts = (compared(runs, missing, web), by_step(runs), goals, sampled)
    print("\n\n".join(part for part in parts if part))
    found: defaultdict[str, list[object]] = defaultdict(list)
    for run in runs:
        found[run.crawler].append(asdict(run))
    print(json.dumps({"crawls": found, "not here": missing}))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
