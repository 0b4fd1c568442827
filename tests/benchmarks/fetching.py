"""Measures pages fetched per second of CPU: by minutch, and by Scrapy, Crawlee-python and Nutch
beside it.

    python -m tests.benchmarks.fetching [--urls 20000] [--pages 2000] [--folder DIR] [--hosts 200]
    [--threads 100]
                                        [--processes 1 2] [--rounds 3] [--only parse while store
                                        scrapy crawlee nutch]
                                        [--peers DIR]

nginx (or, where that is missing, a server of ours) has the pages of `corpus` on loopback addresses,
delay 0; its CPU does not count. minutch fetches, parses, normalizes and filters links and stores
Nutch segments; Scrapy and Crawlee take and resolve the links and append the bodies to a file; Nutch
(in NUTCH_HOME) fetches and parses. All take the same URLs, one after the other in each round. CPU
is that of a command and all its processes; the median of the rounds counts. --peers is the virtual
environment of Scrapy and Crawlee, made if it is not there. Prints a Markdown table and a line of
JSON.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import statistics
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from tests.benchmarks.fetchers import FETCHERS, Fetcher, Work, install_peers, measure
from tests.benchmarks.htmlpages import PAGES, corpus
from tests.benchmarks.measure import Cost, Failed
from tests.benchmarks.pageserver import page_url, serving

OURS = ("parse", "while", "store")
WARM_UP = 500
"""URLs of a first run, which does not count."""


@dataclass(frozen=True)
class Case:
    """A fetcher with a number of processes."""

    fetcher: Fetcher
    processes: int


@dataclass(frozen=True)
class Result:
    """The result of a case; rates are pages per second."""

    name: str
    processes: int
    pages_per_second: float
    pages_per_cpu_second: float
    peak_megabytes: float
    """Of the largest process."""


def make_urls(count: int, pages: int, hosts: int, port: int) -> list[str]:
    """The URLs, in no order; each host has as many."""
    urls = [
        page_url(f"127.0.{1 + host // 200}.{1 + host % 200}", port, number, pages)
        for number, host in ((number, number % hosts) for number in range(count))
    ]
    random.Random(2).shuffle(urls)
    return urls


def cases(only: Sequence[str], processes: Sequence[int], peers: Path | None) -> list[Case]:
    """Returns the cases to be measured; prints a message about those that can't be."""
    found = []
    for fetcher in FETCHERS:
        missing = None
        if only and fetcher.name not in only:
            continue
        if fetcher.name in ("scrapy", "crawlee") and peers is None:
            missing = "--peers is not given"
        elif fetcher.name == "nutch" and "NUTCH_HOME" not in os.environ:
            missing = "NUTCH_HOME is not set"
        if missing is None:
            found += [
                Case(fetcher, count) for count in (processes if fetcher.many_processes else [1])
            ]
        else:
            print(f"without {fetcher.title}: {missing}", file=sys.stderr)
    return found


def result(case: Case, costs: Sequence[Cost], urls: int) -> Result:
    """The medians of all rounds."""
    return Result(
        case.fetcher.name,
        case.processes,
        urls / statistics.median(cost.seconds for cost in costs),
        urls / statistics.median(cost.cpu_seconds for cost in costs),
        max(cost.peak_bytes for cost in costs) / 1e6,
    )


def ratios(results: Sequence[Result]) -> dict[str, float]:
    """minutch's pages per CPU second over each peer's, and more processes' pages per second over
    one's.
    """
    by_case = {(r.name, r.processes): r for r in results}
    found = {}
    for name in OURS:
        one = by_case.get((name, 1))
        if one is None:
            continue
        for peer in results:
            if peer.name not in OURS:
                found[f"{name}/{peer.name}"] = one.pages_per_cpu_second / peer.pages_per_cpu_second
            elif peer.name == name and peer.processes > 1:
                found[f"{name}: {peer.processes} processes/1"] = (
                    peer.pages_per_second / one.pages_per_second
                )
    return found


def markdown(results: Sequence[Result]) -> str:
    """The tables."""
    titles = {fetcher.name: fetcher.title for fetcher in FETCHERS}
    lines = ["| | processes | pages/s | pages per CPU s | peak memory |", "|---|--:|--:|--:|--:|"]
    lines += [
        f"| {titles[r.name]} | {r.processes} | {r.pages_per_second:,.0f} |"
        f" {r.pages_per_cpu_second:,.0f} | {r.peak_megabytes:,.0f} MB |"
        for r in results
    ]
    found = ratios(results)
    if found:
        lines += [
            "",
            "| | times |",
            "|---|--:|",
            *(f"| {name} | {value:.2f} |" for name, value in found.items()),
        ]
    return "\n".join(lines)


def main() -> int:
    """The command."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.benchmarks.fetching", description=__doc__.split("\n")[0]
    )
    parser.add_argument("--urls", type=int, default=20_000)
    parser.add_argument("--pages", type=int, default=PAGES)
    parser.add_argument(
        "--folder", type=Path, help="HTML files to serve instead of the documentation packages'"
    )
    parser.add_argument("--hosts", type=int, default=200)
    parser.add_argument("--threads", type=int, default=100)
    parser.add_argument("--processes", type=int, nargs="+", default=[1])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument(
        "--only", nargs="+", default=[], choices=[fetcher.name for fetcher in FETCHERS]
    )
    parser.add_argument("--peers", type=Path, help="virtual environment of Scrapy and Crawlee")
    given = parser.parse_args()
    if given.peers is not None:
        install_peers(given.peers.absolute())
    chosen = cases(given.only, given.processes, given.peers and given.peers.absolute())
    pages = corpus(given.pages, given.folder)
    costs: dict[Case, list[Cost]] = {case: [] for case in chosen}
    try:
        with (
            tempfile.TemporaryDirectory() as name,
            serving(pages.pages, Path(name) / "site") as (port, server, _),
        ):
            urls = make_urls(given.urls, len(pages.pages), given.hosts, port)
            for case in chosen:
                if (
                    case.fetcher.many_processes
                ):  # ours: modules and kernels are compiled once, as if installed
                    measure(
                        case.fetcher,
                        Work(Path(name) / "run", urls[:WARM_UP], given.threads, case.processes),
                    )
            for number in range(given.rounds):
                for case in chosen:
                    work = Work(
                        Path(name) / "run", urls, given.threads, case.processes, given.peers
                    )
                    cost = measure(case.fetcher, work)
                    costs[case].append(cost)
                    rate = len(urls) / cost.cpu_seconds
                    print(
                        f"round {number + 1}: {case.fetcher.name} x {case.processes}:"
                        f" {rate:,.0f}/CPU s",
                        file=sys.stderr,
                    )
    except Failed as exc:
        print(exc, file=sys.stderr)
        return 1
    results = [result(case, found, given.urls) for case, found in costs.items()]
    print(
        f"{given.urls:,} URLs over {pages} from {server}, {given.hosts} hosts, {given.threads}"
        " threads\n"
    )
    print(markdown(results))
    print(json.dumps({"fetching": [asdict(r) for r in results], "ratios": ratios(results)}))
    return 0


if __name__ == "__main__":
    sys.exit(main())
