"""How many pages `minutch fetch` does in a second of CPU: fetched, parsed, filtered, stored as a Nutch segment.

    python -m tests.benchmarks.fetching [--pages DIR] [--count 20000] [--hosts 200] [--threads 100] [--processes 1,2]
                                        [--parse true,false] [--rounds 3]

A server of ours (a process of its own, whose CPU does not count) has some 2,000 HTML files on loopback addresses; delay
0. CPU time is that of the fetch and all its processes. Prints a Markdown table and a line of JSON.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import socket
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from minutch.conf import Configuration
from minutch.records.crawldatum import STATUS_DB_UNFETCHED, CrawlDatum
from minutch.segment.store import CRAWL_GENERATE, Segment, part_writer
from tests.benchmarks.measure import Cost, run
from tests.benchmarks.parsing import made_up_pages, real_pages

PROJECT = Path(__file__).parents[2]
PLUGINS = "protocol-http|urlfilter-regex|parse-html|scoring-opic|urlnormalizer-(pass|regex|basic)"
PROPERTIES = {
    "http.agent.name": "benchmark",
    "http.filter.ipaddress.include": "loopback",
    "plugin.includes": PLUGINS,
    "fetcher.server.delay": "0",
    "fetcher.threads.start.delay": "0",
}


def make_segment(folder: Path, count: int, hosts: int, port: int) -> Segment:
    """A fetch list of `count` URLs over `hosts` addresses, in no order."""
    segment = Segment(folder / "segments" / "20260101000000")
    shutil.rmtree(folder / ".fetchstate", ignore_errors=True)
    urls = [
        f"http://127.0.{1 + n % hosts // 200}.{1 + n % hosts % 200}:{port}/docs/{n}/page.html" for n in range(count)
    ]
    random.Random(2).shuffle(urls)
    with part_writer(segment.path, CRAWL_GENERATE, 0, Configuration()) as append:
        for url in urls:
            append(url, CrawlDatum(STATUS_DB_UNFETCHED, 2_592_000, 1.0))
    return segment


@contextmanager
def server(pages: list[bytes], folder: Path) -> Iterator[int]:
    """The page server; its port."""
    folder.mkdir()
    for number, page in enumerate(pages):
        (folder / f"{number:05}.html").write_bytes(page)
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = int(probe.getsockname()[1])
    command = [sys.executable, "-m", "tests.benchmarks.pageserver", str(folder), str(port)]
    with subprocess.Popen(command, cwd=PROJECT, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.readline()
        try:
            yield port
        finally:
            process.kill()


def measure(folder: Path, port: int, count: int, hosts: int, threads: int, values: dict[str, str]) -> Cost:
    """Fetch once, in a process of its own."""
    segment = make_segment(folder, count, hosts, port)
    options = [f"-D{name}={value}" for name, value in (PROPERTIES | values).items()]
    command = [sys.executable, "-m", "minutch", "fetch", *options, segment.path, "-threads", str(threads)]
    environment = {**os.environ, "PYTHONPATH": str(PROJECT)}
    try:
        return run(command, cwd=folder, env=environment)
    finally:
        shutil.rmtree(segment.path.parent)


def main() -> None:
    """Measure all combinations in turn, several rounds."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--pages", type=Path, help="folder with HTML files; made-up pages otherwise")
    parser.add_argument("--count", type=int, default=20_000)
    parser.add_argument("--hosts", type=int, default=200)
    parser.add_argument("--threads", type=int, default=100)
    parser.add_argument("--processes", default="1,2")
    parser.add_argument("--parse", default="true,false")
    parser.add_argument("--rounds", type=int, default=3)
    given = parser.parse_args()
    pages = real_pages(given.pages) if given.pages else made_up_pages()
    cases = [(parse, int(n)) for parse in given.parse.split(",") for n in given.processes.split(",")]
    costs: dict[tuple[str, int], list[Cost]] = {case: [] for case in cases}
    with tempfile.TemporaryDirectory() as name, server(pages, Path(name) / "pages") as port:
        for _ in range(given.rounds):
            for parse, processes in cases:
                values = {"fetcher.parse": parse, "minutch.fetch.processes": str(processes)}
                cost = measure(Path(name), port, given.count, given.hosts, given.threads, values)
                costs[parse, processes].append(cost)
    size = statistics.fmean(map(len, pages)) / 1024
    print(f"{len(pages)} pages, mean {size:.1f} KB; {given.count} URLs, {given.hosts} hosts, {given.threads} threads\n")
    print("| parse | processes | pages/s/core | pages/s | peak MB of the largest process |\n|---|---|---|---|---|")
    result = []
    for (parse, processes), found in costs.items():
        cpu = given.count / statistics.median(cost.cpu_seconds for cost in found)
        wall = given.count / statistics.median(cost.seconds for cost in found)
        peak = max(cost.peak_bytes for cost in found) >> 20
        print(f"| {parse} | {processes} | {cpu:,.0f} | {wall:,.0f} | {peak} |")
        result.append({"parse": parse, "processes": processes, "pages_per_core_second": cpu, "pages_per_second": wall})
    print(json.dumps({"fetching": result}))


if __name__ == "__main__":
    main()
