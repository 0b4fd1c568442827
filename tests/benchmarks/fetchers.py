"""The fetchers that are measured: minutch in three ways, and its peers on the same URLs."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import venv
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from minutch.cycle.segment.store import CONTENT, CRAWL_GENERATE, PARSE_DATA, Segment, part_writer
from minutch.hadoop.formats.sequencefile import SequenceFileReader
from minutch.records.crawldatum import STATUS_DB_UNFETCHED, CrawlDatum
from tests.benchmarks.measure import Cost, Failed, run

PROJECT: Final = Path(__file__).parents[2]
PEERS: Final = Path(__file__).parent / "peers"
PACKAGES: Final = ("scrapy", "uvloop", "crawlee[parsel]")
PROPERTIES: Final = {
    "http.agent.name": "benchmark",
    "http.filter.ipaddress.include": "loopback",
    "plugin.includes": (
        "protocol-http|urlfilter-regex|parse-html|scoring-opic|urlnormalizer-(pass|regex|basic)"
    ),
    "fetcher.server.delay": "0",
    "fetcher.threads.start.delay": "0",
    "fetcher.timelimit.mins": "180",
}


@dataclass(frozen=True)
class Work:
    """One run: a folder of its own, the URLs to fetch in their order, and with how many threads and
    processes.
    """

    folder: Path
    urls: Sequence[str]
    threads: int
    processes: int = 1
    peers: Path | None = None
    """The virtual environment of the Python peers."""

    def segment(self) -> Segment:
        """A segment with the URLs as its fetch list."""
        segment = Segment(self.folder / "segments" / "20260101000000")
        with part_writer(segment.path, CRAWL_GENERATE, 0) as append:
            for url in self.urls:
                append(url, CrawlDatum(STATUS_DB_UNFETCHED, 2_592_000, 1.0))
        return segment


@dataclass(frozen=True)
class Fetcher:
    """One of the measured. `run` prepares, fetches and checks that every page is there."""

    name: str
    title: str
    run: Callable[[Work], Cost]
    many_processes: bool = False
    """It can share the work between processes."""


def install_peers(folder: Path) -> None:
    """Make the virtual environment of the Python peers, unless it is there."""
    if not (folder / "bin" / "python").exists():
        venv.create(folder, with_pip=True)
        subprocess.run(
            [folder / "bin" / "python", "-m", "pip", "install", "--quiet", *PACKAGES], check=True
        )


def _together(first: Cost, second: Cost) -> Cost:
    """Adds up the costs of two commands that run one after the other."""
    return Cost(
        first.seconds + second.seconds,
        first.cpu_seconds + second.cpu_seconds,
        max(first.peak_bytes, second.peak_bytes),
        max(first.private_bytes, second.private_bytes),
    )


def _check(found: int, work: Work) -> None:
    if found != len(work.urls):
        raise Failed(f"{len(work.urls)} pages expected, {found} found in {work.folder}")


def _records(segment: Segment, folder: str) -> int:
    """Records in the MapFiles of one part of a segment."""
    count = 0
    for path in sorted((segment.path / folder).glob("part-*")):
        with SequenceFileReader(path / "data") as reader:
            count += sum(1 for _ in reader)
    return count


def _minutch(work: Work, command: str, properties: dict[str, str], *arguments: str | Path) -> Cost:
    options = [f"-D{name}={value}" for name, value in (PROPERTIES | properties).items()]
    words: list[str | Path] = [sys.executable, "-m", "minutch", command, *options, *arguments]
    compiled = {"PYTHONPYCACHEPREFIX": str(work.folder.with_name("compiled"))}
    return run(words, cwd=work.folder, env=environment() | compiled)


def environment() -> dict[str, str]:
    """Returns that of a minutch whose modules are compiled once."""
    kept = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    return {**kept, "PYTHONPATH": str(PROJECT), "MINUTCH_HOME": str(PROJECT)}


def _fetch(work: Work, *, parse: bool) -> tuple[Segment, Cost]:
    segment = work.segment()
    properties = {
        "fetcher.parse": str(parse).lower(),
        "minutch.fetch.processes": str(work.processes),
    }
    cost = _minutch(work, "fetch", properties, segment.path, "-threads", str(work.threads))
    _check(_records(segment, CONTENT), work)
    return segment, cost


def store_only(work: Work) -> Cost:
    """`minutch fetch`."""
    return _fetch(work, parse=False)[1]


def fetch_and_parse(work: Work) -> Cost:
    """`minutch fetch`, then `minutch parse`, as bin/crawl runs them."""
    segment, cost = _fetch(work, parse=False)
    parsed = _minutch(work, "parse", {}, segment.path)
    _check(_records(segment, PARSE_DATA), work)
    return _together(cost, parsed)


def parse_while_fetching(work: Work) -> Cost:
    """`minutch fetch` with fetcher.parse=true."""
    segment, cost = _fetch(work, parse=True)
    _check(_records(segment, PARSE_DATA), work)
    return cost


def _peer(script: str) -> Callable[[Work], Cost]:
    def fetch(work: Work) -> Cost:
        if work.peers is None:
            raise Failed("--peers names no virtual environment")
        listed, stored = work.folder / "urls.txt", work.folder / "stored"
        listed.write_text("\n".join(work.urls), encoding="utf-8")
        words: list[str | Path] = [
            work.peers / "bin" / "python",
            PEERS / script,
            listed,
            stored,
            str(work.threads),
        ]
        cost = run(words, cwd=work.folder, env=dict(os.environ))
        _check(int((work.folder / "command.log").read_text().split()[-1]), work)
        return cost

    return fetch


def java_environment(logs: Path) -> dict[str, str]:
    """Returns that of a Nutch that logs to a folder."""
    java = shutil.which("java")
    home = "" if java is None else str(Path(java).resolve().parents[1])
    return {"JAVA_HOME": home, **os.environ, "NUTCH_LOG_DIR": str(logs)}


def nutch(work: Work) -> Cost:
    """`nutch fetch`, then `nutch parse`."""
    segment = work.segment()
    home = Path(os.environ["NUTCH_HOME"])
    temporary = {"hadoop.tmp.dir": str(work.folder / "hadoop")}
    costs = []
    for command, *more in (("fetch", "-threads", str(work.threads)), ("parse",)):
        options = [f"-D{name}={value}" for name, value in (PROPERTIES | temporary).items()]
        words: list[str | Path] = [home / "bin" / "nutch", command, *options, segment.path, *more]
        costs.append(run(words, cwd=work.folder, env=java_environment(work.folder)))
    _check(_records(segment, PARSE_DATA), work)
    return _together(*costs)


FETCHERS: Final = (
    Fetcher("parse", "minutch fetch, parse", fetch_and_parse, many_processes=True),
    Fetcher(
        "while", "minutch fetch, fetcher.parse=true", parse_while_fetching, many_processes=True
    ),
    Fetcher("store", "minutch fetch, store only", store_only, many_processes=True),
    Fetcher("scrapy", "Scrapy, links and body", _peer("scrapyspider.py")),
    Fetcher("crawlee", "Crawlee-python, links and body", _peer("crawleespider.py")),
    Fetcher("nutch", "Apache Nutch fetch, parse", nutch),
)


def measure(fetcher: Fetcher, work: Work) -> Cost:
    """One run in an empty folder."""
    shutil.rmtree(work.folder, ignore_errors=True)
    work.folder.mkdir(parents=True)
    try:
        return fetcher.run(work)
    finally:
        shutil.rmtree(work.folder)
