"""Measures a case: serves its web, makes its fetch list, fetches it, and writes what was found."""

from __future__ import annotations

import math
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Final

import numpy as np

from tests.benchmarks.broad import rounds, tables
from tests.benchmarks.broad.audit import Audit, audit
from tests.benchmarks.broad.bound import ideal
from tests.benchmarks.broad.cases import Case, Mode
from tests.benchmarks.broad.goals import CPU, STOP
from tests.benchmarks.broad.rates import compare
from tests.benchmarks.broad.requestlog import QUESTION, Reader, Requests, read
from tests.benchmarks.broad.runs import Crawl, Fetched
from tests.benchmarks.broad.server import serving
from tests.benchmarks.broad.web import Web

AFTERWARDS: Final = 30.0
"""Seconds that a fetch may go on after the last page that can be had, though no longer than the
bound took: hostile hosts have no end.
"""
RUNNING: Final = 10.0
"""Seconds between a first request and the signal that ends the fetch (Mode.START)."""
PARTS: Final = 5
"""Parts of the requests for each of which the CPU per request is taken."""


@dataclass(frozen=True)
class Options:
    """How cases are measured."""

    properties: Mapping[str, str]
    """What the fetch is given beside the defaults, the loopback's and the case's delay."""
    limit: float
    """Seconds after which a fetch is ended; 0: twice the bound and a minute."""
    places: int
    folder: Path | None
    """Where folders of cases are made and kept."""


@dataclass(frozen=True)
class Result:
    """What was found of a case: text, and figures by name."""

    text: str
    figures: dict[str, float]
    polite: bool


def measure(case: Case, options: Options) -> Result:
    """Measure a case."""
    web = Web(case.plan)
    properties = {"fetcher.server.delay": f"{case.plan.delay:g}", **options.properties}
    with _folder(case, options) as folder:
        if case.mode is Mode.ROUNDS:
            return _rounds(case, folder, properties)
        with serving(case.plan, folder) as server:
            crawl = Crawl(folder, server, properties)
            _say(case, f"{web.pages:,} URLs on {case.plan.hosts:,} hosts: inject, generate")
            segment = crawl.prepare(web)
            watch = Watch(case, web, options.limit, server.log)
            _say(case, "fetch")
            fetched = crawl.fetch(segment, watch.is_over)
        requests = read(server.log)
    http = requests[requests["page"] != QUESTION]
    if not len(http):
        return Result(f"### {case.name}\n\nThe fetch made no request.", {}, False)
    found = audit(requests, web)
    maker = {Mode.RATE: _rate, Mode.CPU: _cpu, Mode.START: _start}[case.mode]
    text, figures = maker(web, fetched, requests, options)
    figures |= _always(fetched, http, found)
    _say(case, f"done after {fetched.ended - fetched.started:.0f} s")
    parts = [f"### {case.name}: {case.mode.value}", tables.describe(web), text]
    return Result("\n\n".join([*parts, tables.audited(found)]), figures, found.passed)


def _rounds(case: Case, folder: Path, properties: Mapping[str, str]) -> Result:
    _say(case, "two crawls in rounds")
    text, figures, polite = rounds.compare(case, folder, properties)
    parts = [f"### {case.name}: {case.mode.value}", tables.describe(Web(case.plan)), text]
    return Result("\n\n".join(parts), figures, polite)


@contextmanager
def _folder(case: Case, options: Options) -> Iterator[Path]:
    if options.folder is not None:
        folder = options.folder / case.name
        folder.mkdir(parents=True)
        yield folder
    else:
        with tempfile.TemporaryDirectory(prefix="broad-") as name:
            yield Path(name)


def _say(case: Case, what: str) -> None:
    print(f"{case.name}: {what}", file=sys.stderr, flush=True)


class Watch:
    """Decides when a fetch is to be ended, by what the server has seen."""

    def __init__(self, case: Case, web: Web, limit: float, log: Path) -> None:
        self._case = case
        self._web = web
        bound = ideal(web).time(1.0)
        self._limit = limit or (2 * bound + 60 if case.mode is Mode.RATE else math.inf)
        self._afterwards = min(AFTERWARDS, bound)
        self._reader = Reader(log)
        self._pages = self._requests = 0
        self._first: float | None = None
        self._complete: float | None = None
        self._said = 0.0

    def is_over(self, seconds: float) -> bool:
        """True if the fetch, which began so many seconds ago, is to be ended."""
        new = self._reader.more()
        new = new[new["page"] != QUESTION]
        self._requests += len(new)
        is_page = (new["page"] >= 0) & (new["status"] == 200) & self._web.counted[new["host"]]
        self._pages += int(is_page.sum())
        if len(new) and self._first is None:
            self._first = seconds
        if self._pages >= self._web.counted_pages and self._complete is None:
            self._complete = seconds
        if seconds - self._said >= 10:
            self._said = seconds
            _say(
                self._case,
                f"{seconds:.0f} s, {self._pages:,} of {self._web.counted_pages:,} pages,"
                f" {self._requests:,} requests",
            )
        if self._case.mode is Mode.START:
            return self._first is not None and seconds - self._first > RUNNING
        over = self._complete is not None and seconds - self._complete > self._afterwards
        return (over and self._case.mode is Mode.RATE) or seconds > self._limit


def _always(fetched: Fetched, http: Requests, found: Audit) -> dict[str, float]:
    took, in_flight = stop_seconds(fetched, http)
    stop = {} if fetched.stopped is None else {"stop": took, STOP: took - in_flight}
    return stop | {
        "seconds": fetched.ended - fetched.started,
        "first request": int(http["begin"].min()) / 1e6 - fetched.started,
        CPU: 1e6 * fetched.cpu / len(http),
        "peak RSS MB": fetched.peak_rss / 1e6,
        "peak PSS MB": fetched.peak_pss / 1e6,
        "peak PSS MB without mapped files": fetched.peak_own / 1e6,
        "requests": len(http),
        "violations": len(found.violations),
        "parallel": found.parallel,
    }


def _rate(
    web: Web, fetched: Fetched, requests: Requests, options: Options
) -> tuple[str, dict[str, float]]:
    rates = compare(requests, web, ideal(web), fetched.samples, options.places)
    parts = [
        tables.over_time(rates),
        tables.times(rates),
        tables.shares(rates),
        tables.table(("", ""), _costs(fetched, requests, rates.late)),
    ]
    figures = {f"{share:.0%} by bound": found / bound for share, found, bound, _ in rates.times}
    figures |= {
        f"{share:.0%} by bound with its CPU": found / cpu for share, found, _, cpu in rates.times
    }
    free = [share for share in rates.shares if share.free]
    for ending, some in (("", rates.shares), (", no other limit", free)):
        for name, values in tables.by_measure(some).items():
            if values:
                figures[f"smallest share {name}{ending}"] = min(values)
                figures[f"median share {name}{ending}"] = median(values)
    return "\n\n".join(parts), figures


def _costs(
    fetched: Fetched, requests: Requests, late: tuple[float, float] | None = None
) -> list[tuple[str, str]]:
    http = requests[requests["page"] != QUESTION]
    seconds = fetched.ended - fetched.started
    server = fetched.samples[-1].server_cpu - fetched.samples[0].server_cpu
    first = int(http["begin"].min()) / 1e6 - fetched.started
    rows = [
        ("start to end", f"{seconds:,.1f} s"),
        ("start to the first request", f"{first:.2f} s"),
        ("CPU of the fetch per request", f"{1e6 * fetched.cpu / len(http):,.0f} µs"),
        ("CPU of the server per request", f"{1e6 * server / len(http):,.0f} µs"),
        ("peak RSS of the fetch", f"{fetched.peak_rss / 1e6:,.0f} MB"),
        ("peak PSS with its workers", f"{fetched.peak_pss / 1e6:,.0f} MB"),
        ("of it, without mapped files", f"{fetched.peak_own / 1e6:,.0f} MB"),
        ("questions for addresses", f"{len(requests) - len(http):,}"),
    ]
    if late is not None:
        rows.append(
            ("answers later than planned: median, 99 %", f"{late[0]:,.1f} ms, {late[1]:,.1f} ms")
        )
    if fetched.stopped is not None:
        rows.append(("SIGTERM to the end", _stop_text(fetched, http)))
    return rows


def stop_seconds(fetched: Fetched, http: Requests) -> tuple[float, float]:
    """Seconds from SIGTERM to the end, and those of them until the last request was over."""
    if fetched.stopped is None:
        return 0.0, 0.0
    in_flight = max(0.0, float(http["end"].max()) / 1e6 - fetched.stopped)
    took = fetched.ended - fetched.stopped
    return took, min(in_flight, took)


def _stop_text(fetched: Fetched, http: Requests) -> str:
    took, in_flight = stop_seconds(fetched, http)
    return f"{took:.2f} s, {in_flight:.2f} of them for what was in flight"


def _cpu(
    web: Web, fetched: Fetched, requests: Requests, options: Options
) -> tuple[str, dict[str, float]]:
    http = requests[requests["page"] != QUESTION]
    ends = np.sort(http["end"]) / 1e6
    times = [sample.time for sample in fetched.samples]
    cpu = [sample.cpu for sample in fetched.samples]
    borders = [ends[int(part * (len(ends) - 1) / PARTS)] for part in range(PARTS + 1)]
    used = np.diff(np.interp(borders, times, cpu)) / (len(ends) / PARTS) * 1e6
    rates = (len(ends) / PARTS) / np.maximum(np.diff(borders), 1e-9)
    rows = [
        (f"{part + 1} of {PARTS}", f"{one:,.0f}", f"{rate:,.0f}")
        for part, (one, rate) in enumerate(zip(used.tolist(), rates.tolist(), strict=True))
    ]
    text = tables.table(("requests", "µs CPU per request", "requests/s"), rows)
    costs = tables.table(("", ""), _costs(fetched, requests))
    return f"{text}\n\n{costs}", {"µs CPU per request, last part": float(used[-1])}


def _start(
    web: Web, fetched: Fetched, requests: Requests, options: Options
) -> tuple[str, dict[str, float]]:
    http = requests[requests["page"] != QUESTION]
    first = int(http["begin"].min()) / 1e6
    then = next((sample for sample in fetched.samples if sample.time >= first), fetched.samples[-1])
    rows = [
        ("start to the first request", f"{first - fetched.started:.2f} s"),
        ("RSS at the first request", f"{then.rss / 1e6:,.0f} MB"),
        ("PSS at the first request, with workers", f"{then.pss / 1e6:,.0f} MB"),
        ("CPU until then", f"{then.cpu:.1f} s"),
        (f"requests in {RUNNING:.0f} s", f"{len(http):,}"),
        ("SIGTERM to the end", _stop_text(fetched, http)),
        ("peak RSS", f"{fetched.peak_rss / 1e6:,.0f} MB"),
        ("peak PSS, without mapped files", f"{fetched.peak_own / 1e6:,.0f} MB"),
    ]
    return tables.table(("", ""), rows), {
        "RSS MB at the first request": then.rss / 1e6,
        "PSS MB at the first request": then.pss / 1e6,
    }
