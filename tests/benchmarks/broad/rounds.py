"""Compares a crawl by links whose rounds follow one another with one whose rounds overlap.

Both are the whole command, `minutch crawl`, in empty folders of their own. A second is idle if no
request was in flight in it, though one might have been: a page was known by then, of a seed or of a
link on a page that was answered, its host had had its pause, and the crawl asked for it later on.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Final

import numpy as np

from tests.benchmarks.broad import tables
from tests.benchmarks.broad.audit import audit
from tests.benchmarks.broad.bound import ideal
from tests.benchmarks.broad.cases import Case
from tests.benchmarks.broad.goals import CPU, FASTER, IDLE
from tests.benchmarks.broad.requestlog import QUESTION, ROBOTS, Requests, read
from tests.benchmarks.broad.runs import Crawl, Fetched
from tests.benchmarks.broad.server import serving
from tests.benchmarks.broad.web import Numbers, Web
from tests.benchmarks.measure import Failed

ROUNDS: Final = 4
MODES: Final[Mapping[str, str]] = {"following": "false", "overlapping": "true"}
"""The values of the property that says whether rounds overlap."""
_PROPERTY: Final = "crawl.overlap"
_NEVER: Final = np.iinfo(np.int64).max


def idle(requests: Requests, web: Web) -> float:
    """Seconds from the first request to the last in which none was in flight, though one might have
    been. Pure.
    """
    http = requests[(requests["page"] != QUESTION) & (requests["host"] >= 0)]
    if not len(http):
        return 0.0
    order = np.argsort(http["begin"], kind="stable")
    begins, ends = http["begin"][order], np.maximum.accumulate(http["end"][order])
    gaps = np.flatnonzero(begins[1:] > ends[:-1])
    known, asked = _times(http, web)
    waiting = np.flatnonzero(asked < _NEVER)
    hosts = web.slot_hosts[waiting]
    ready = np.zeros(web.plan.hosts, dtype=np.int64)
    by_end = np.sort(http, order="end")
    pauses = (1e6 * web.promised).astype(np.int64)
    at = 0
    found = 0
    for gap in gaps.tolist():
        start, end = int(ends[gap]), int(begins[gap + 1])
        upto = int(np.searchsorted(by_end["end"], start, side="right"))
        ended = by_end[at:upto]
        after = np.where(ended["page"] == ROBOTS, 0, pauses[ended["host"]])
        ready[ended["host"]] = ended["end"] + after
        at = upto
        may = np.where(asked[waiting] >= end, np.maximum(known[waiting], ready[hosts]), end)
        found += max(0, end - max(start, int(may.min(initial=end))))
    return found / 1e6


def _times(http: Requests, web: Web) -> tuple[Numbers, Numbers]:
    """When each slot was known, and when it was asked for first (µs)."""
    known = np.full(len(web.slot_hosts), _NEVER)
    asked = known.copy()
    pages = http[http["page"] >= 0]
    slots = web.first[pages["host"]] + 1 + pages["page"]
    np.minimum.at(asked, slots, pages["begin"])
    known[web.seeds] = http["begin"].min()
    answered = pages["status"] == 200
    targets = web.targets[slots[answered]]
    np.minimum.at(known, targets, pages["end"][answered][:, None])
    return known, asked


def compare(
    case: Case, folder: Path, properties: Mapping[str, str], rounds: int = ROUNDS
) -> tuple[str, dict[str, float], bool]:
    """Crawls in both ways below a folder; returns text, figures, and whether all was polite. Raises
    Failed.
    """
    web = Web(case.plan)
    found = {}
    for name, value in MODES.items():
        place = folder / name
        place.mkdir()
        with serving(case.plan, place) as server:
            crawl = Crawl(place, server, {**properties, _PROPERTY: value})
            fetched = crawl.crawl(web, rounds)
        requests = read(server.log)
        if not len(requests):
            raise Failed(f"{case.name}, {name}: the crawl made no request")
        found[name] = _figures(fetched, requests, web), audit(requests, web)
    first, second = (figures for figures, _ in found.values())
    rows = [
        (name, *(tables.number(figures[name], 3) for figures in (first, second))) for name in first
    ]
    figures = {f"{name}, {mode}": one[name] for mode, (one, _) in found.items() for name in one}
    bound = ideal(web).time(1.0)
    figures["bound of the last page"] = bound
    figures[FASTER] = second["pages a second"] / first["pages a second"]
    figures["violations"] = sum(len(audited.violations) for _, audited in found.values())
    audits = [f"{mode}: {tables.audited(audited)}" for mode, (_, audited) in found.items()]
    at_most = f"An ideal crawler that knows all pages has the last one after {bound:,.1f} s."
    text = "\n\n".join([tables.table(("", *found), rows), at_most, *audits])
    return text, figures, all(audited.passed for _, audited in found.values())


def _figures(fetched: Fetched, requests: Requests, web: Web) -> dict[str, float]:
    http = requests[requests["page"] != QUESTION]
    seconds = fetched.ended - fetched.started
    span = (int(http["end"].max()) - int(http["begin"].min())) / 1e6
    answered = http[(http["page"] >= 0) & (http["status"] == 200)]
    pages = len(np.unique(web.first[answered["host"]] + answered["page"]))
    return {
        "seconds": seconds,
        "first request to last": span,
        "pages": pages,
        "pages a second": pages / seconds,
        IDLE: idle(requests, web) / span,
        CPU: 1e6 * fetched.cpu / len(http),
        "peak PSS MB": fetched.peak_pss / 1e6,
    }
