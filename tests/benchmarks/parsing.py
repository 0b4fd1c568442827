"""Measures pages that `minutch parse` does per second of CPU, beside a bare loop that only takes
title, text and links.

    python -m tests.benchmarks.parsing [--pages DIR | --made] [--count 20000] [--rounds 3]
                                      [--within]

Both see the same pages in the same run, one after the other in each round, each in a process of its
own whose CPU time (with that of its workers) is taken. The bare loop has the pages decompressed in
memory and keeps nothing: selectolax with Lexbor, as in minutch, makes the tree and is asked for
title, text and links, with their texts and made absolute; its start is not counted. The job reads
a segment, resolves, normalizes and filters the links, signs, scores and writes three folders; its
start is counted. It runs with Nutch's usual plugins and with the configuration of `minutch init`.
Without --pages the pages are those of `corpus`; of a folder all of up to a megabyte count; --made:
the pages of 15 KB of `tests.benchmarks.crawls`. --within: bare loop and parse step take turns in
this process, without start, files and workers, over each page once. Prints a Markdown table, with
the ratio of each job's pages to those of the bare loop, and a line of JSON.
"""

from __future__ import annotations

import argparse
import gc
import json
import os
import pickle
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections import deque
from collections.abc import Callable, Iterator
from functools import partial
from itertools import cycle, islice
from pathlib import Path
from urllib.parse import urljoin

from minutch.conf import Configuration
from minutch.cycle.parse.pageparser import PageParser, SegmentTask
from minutch.cycle.parse.partwriters import PartSettings
from minutch.cycle.segment.store import CONTENT, Segment, part_writer
from minutch.job import set_up_process
from minutch.records.metadata import FETCH_STATUS_KEY, SCORE_KEY, Metadata
from minutch.records.protocol import Content
from tests.benchmarks.crawls.web import Web
from tests.benchmarks.htmlpages import LARGEST, corpus
from tests.benchmarks.measure import adopting

PROJECT = Path(__file__).parents[2]
HOSTS = 200
MOST_TAKEN = 1 << 20
"""Bytes that Nutch takes of a page (http.content.limit)."""
PLUGINS = "protocol-http|urlfilter-regex|parse-html|scoring-opic|urlnormalizer-(pass|regex|basic)"
WITHIN = {
    "minutch parse": {"plugin.includes": PLUGINS},
    "minutch parse, settings of minutch init": {"minutch.profile": "web"},
}
MADE = 2000
_AT_ONCE = 16


def write_segment(folder: Path, pages: list[bytes], count: int) -> Segment:
    """A fetched segment of `count` URLs on 200 hosts."""
    segment = Segment(folder / "20260101000000")
    with (
        segment.writing([CONTENT]) as directory,
        part_writer(directory, CONTENT, 0) as append,
    ):
        for url, body in urls_with(pages, count):
            append(url, content_of(url, body))
    return segment


def urls_with(pages: list[bytes], count: int) -> Iterator[tuple[str, bytes]]:
    """So many URLs in their order, with the pages in turn."""
    urls = sorted(
        f"http://127.0.1.{number % HOSTS}/docs/{number // HOSTS}/page.html"
        for number in range(count)
    )
    return zip(urls, cycle(pages), strict=False)


def content_of(url: str, body: bytes) -> Content:
    """A page as it was fetched."""
    head = {FETCH_STATUS_KEY: "33", SCORE_KEY: "1.0", "Content-Type": "text/html; charset=utf-8"}
    return Content(url, url, body, "text/html", Metadata.of(head))


def bare(pages: Iterator[bytes]) -> int:
    """Title, text and absolute links of each page, by css selection; the number of links."""
    from selectolax.lexbor import LexborDocumentOptions, LexborHTMLParser

    links, base = 0, "http://127.0.1.1/docs/1/page.html"
    for page in pages:
        document = LexborHTMLParser(
            page.decode("utf-8", "replace"), options=LexborDocumentOptions.WO_EVENTS
        )
        title = document.css_first("title")
        found = (
            title.text() if title else "",
            document.body.text(separator=" ") if document.body else "",
            [
                (absolute(base, node.attributes["href"] or ""), node.text())
                for node in document.css("a[href]")
            ],
        )
        links += len(found[2])
    return links


def absolute(base: str, target: str) -> str:
    """A link as urllib has it; empty where that fails."""
    try:
        return urljoin(base, target)
    except ValueError:
        return ""


def cpu_of(arguments: list[str], folder: Path = PROJECT) -> float:
    """CPU seconds of a process in a folder, and of its children."""
    # Compiled modules are kept, as where minutch is installed.
    environment = {
        name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"
    }
    environment["PYTHONPATH"] = environment["MINUTCH_HOME"] = str(PROJECT)
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    with adopting() as orphans:  # workers of a fork server are nobody's to wait for
        subprocess.run(
            [sys.executable, *arguments],
            check=True,
            cwd=folder,
            env=environment,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        deque(orphans(), 0)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def stepping(pages: list[bytes], values: dict[str, str]) -> Callable[[], None]:
    """The work of a worker on these pages, with these properties."""
    conf = Configuration.load([], overrides=values).freeze()
    set_up_process(conf)
    make_parser = partial(PageParser, conf, PartSettings.from_conf(conf), "20260101000000")
    task = SegmentTask(make_parser, 0)
    items = [content_of(url, page).to_bytes() for url, page in urls_with(pages, len(pages))]

    def work() -> None:
        for at in range(0, len(items), _AT_ONCE):
            task.finish([task.run(item) for item in items[at : at + _AT_ONCE]])
            gc.collect(0)

    return work


def measure_within(pages: list[bytes], rounds: int) -> tuple[list[float], dict[str, list[float]]]:
    """CPU seconds in this process of the bare loop and of each configuration, round by round."""
    works = {name: stepping(pages, values) for name, values in WITHIN.items()}
    gc.freeze()
    gc.set_threshold(250_000, 20, 50)  # as in a worker
    bare_times: list[float] = []
    times: dict[str, list[float]] = {name: [] for name in works}
    for number in range(rounds + 1):
        for name, work in (("", lambda: bare(iter(pages))), *works.items()):
            start = time.process_time()
            work()
            if number:  # the first one makes room and tables
                (times[name] if name else bare_times).append(time.process_time() - start)
    return bare_times, times


def measure(
    folder: Path, pages: list[bytes], count: int, rounds: int
) -> tuple[list[float], dict[str, list[float]]]:
    """CPU seconds of the bare loop and of each job, round by round."""
    segment = write_segment(folder, pages, count)
    packed = folder / "pages.pickle"
    packed.write_bytes(pickle.dumps(pages))
    site = folder / "site"
    cpu_of(["-m", "minutch", "init", str(site)])
    jobs = {
        "minutch parse": (PROJECT, [f"-Dplugin.includes={PLUGINS}"]),
        "minutch parse, settings of minutch init": (site, []),
    }
    bare_times: list[float] = []
    job_times: dict[str, list[float]] = {name: [] for name in jobs}
    for _ in range(rounds):
        start_up = cpu_of(["-m", __spec__.name, "--bare", str(packed), "--count", "0"])
        bare_times.append(
            cpu_of(["-m", __spec__.name, "--bare", str(packed), "--count", str(count)]) - start_up
        )
        for name, (place, arguments) in jobs.items():
            for made in ("crawl_parse", "parse_data", "parse_text"):
                shutil.rmtree(segment.path / made, ignore_errors=True)
            job_times[name].append(
                cpu_of(["-m", "minutch", "parse", *arguments, str(segment.path)], place)
            )
    return bare_times, job_times


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    options.add_argument("--pages", type=Path, help="folder with HTML files")
    options.add_argument("--count", type=int, default=20_000)
    options.add_argument("--rounds", type=int, default=3)
    options.add_argument("--made", action="store_true", help="pages of 15 KB")
    options.add_argument("--within", action="store_true", help="in one process")
    options.add_argument("--bare", type=Path, help=argparse.SUPPRESS)
    given = options.parse_args()
    if given.bare:
        bare(islice(cycle(pickle.loads(given.bare.read_bytes())), given.count))
        return
    largest = LARGEST if given.pages is None else MOST_TAKEN
    if given.made:
        pages = [*islice(Web(MADE, HOSTS, 8080).bodies(), MADE)]
    else:
        pages = corpus(folder=given.pages, largest=largest).pages
    if given.within:
        pages = pages[: given.count]
        report(pages, len(pages), *measure_within(pages, given.rounds))
        return
    with tempfile.TemporaryDirectory() as folder:
        bare_times, job_times = measure(Path(folder), pages, given.count, given.rounds)
    report(pages, given.count, bare_times, job_times)


def report(
    pages: list[bytes], count: int, bare_times: list[float], job_times: dict[str, list[float]]
) -> None:
    """The table, and the same as JSON."""
    bare_pages = round(count / statistics.median(bare_times))
    print("| | pages per CPU second | ratio |\n|---|--:|--:|")
    print(f"| bare loop: title, text, absolute links | {bare_pages} | 1 |")
    jobs = {}
    for name, times in job_times.items():
        ratios = [ours / theirs for ours, theirs in zip(bare_times, times, strict=True)]
        jobs[name] = {
            "pages_per_cpu_second": round(count / statistics.median(times)),
            "ratio": round(statistics.median(ratios), 3),
            "ratios": [round(ratio, 3) for ratio in ratios],
        }
        print(f"| {name} | {jobs[name]['pages_per_cpu_second']} | {jobs[name]['ratio']} |")
    size = round(statistics.mean(map(len, pages)))
    result = {"pages": count, "mean_bytes": size, "bare_pages_per_cpu_second": bare_pages}
    print(json.dumps(result | {"jobs": jobs}))


if __name__ == "__main__":
    main()
