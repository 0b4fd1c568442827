"""Compares an index with the web that it is made of, and looks for pages that were asked too often.

All times are seconds after the begin. Pure, but for `documents`, which reads an index.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np
import tantivy

from minutch.inspect.search.fields import KEY
from minutch.inspect.search.localindex import opened
from tests.benchmarks.broad.requestlog import Requests
from tests.benchmarks.broad.web import number
from tests.benchmarks.lasting.history import GONE, MISSING, MOVED, NOT_MODIFIED, OK, History

_URL: Final = re.compile(r"http://([\w.]+):\d+/p/(\d+)")
_VERSION: Final = re.compile(r"version (\d+)")
_MOST: Final = 1_000_000
_TOLERANCE: Final = 0.5
"""Seconds by which an interval may seem shorter: a fetch is dated when it is over."""
_ON_ITS_WAY: Final = 2.0
"""Seconds before a kill in which an answer may not have been stored yet."""

Documents = Mapping[int, int]
"""Slot → version, of the pages in an index."""


def documents(crawl: Path, history: History) -> dict[int, int]:
    """Reads the index of a crawl; empty if there is none yet."""
    folder = crawl / "index" / "current"
    if not (folder / "meta.json").exists():
        return {}
    index = opened(folder)
    searcher = index.searcher()
    found = {}
    for _, address in searcher.search(tantivy.Query.all_query(), limit=_MOST).hits:
        document = searcher.doc(address)
        url, title = (str((document[name] or [""])[0]) for name in (KEY, "title"))
        page, version = _URL.fullmatch(url), _VERSION.search(title)
        if page is not None and version is not None:
            host = number(page[1].encode())
            found[int(history.first[host]) + 1 + int(page[2])] = int(version[1])
    return found


@dataclass(frozen=True)
class Compared:
    """An index and the web: slots of pages."""

    lacking: list[int]
    """The server has had them for long, the index lacks them."""
    ghosts: list[int]
    """They are gone, or have moved, for long, and are in the index."""
    older: list[int]
    """In the index with a version that was replaced long ago."""
    live: int
    """Pages that the server has had for long."""


def compare(found: Documents, history: History, at: float, grace: float) -> Compared:
    """Compares an index that was read at a time; what has not lasted for `grace` is not judged."""
    since = at - grace
    lacking, ghosts, older = [], [], []
    live = 0
    for slot, page in enumerate(history.lives):
        if page is None or since < 0:
            continue
        if history.was(slot, (OK,), since, at):
            live += 1
            if slot not in found:
                lacking.append(slot)
            elif found[slot] < page.version(since):
                older.append(slot)
        elif slot in found and history.was(slot, (MISSING, GONE, MOVED), since, at):
            ghosts.append(slot)
    return Compared(lacking, ghosts, older, live)


@dataclass(frozen=True)
class Early:
    """Two requests for one page, the second one before its interval was over."""

    slot: int
    times: tuple[float, float]
    statuses: tuple[int, int]


def too_often(
    requests: Requests,
    history: History,
    shortest: float,
    jumps: Sequence[tuple[float, float]],
    kills: Sequence[float],
) -> list[Early]:
    """Requests for a page that follow an answer by less than the shortest interval.

    Not judged: pages that others have moved to (a redirect leads there at any time), answers that
    were on their way when the crawl was killed, and pairs that touch one of the `jumps`: from the
    moment at which the clock was set until the next list began, since a list keeps its dates.
    """
    pages = requests[(requests["page"] >= 0) & (requests["host"] >= 0)]
    slots = history.first[pages["host"]] + 1 + pages["page"]
    order = np.lexsort((pages["begin"], slots))
    pages, slots = pages[order], slots[order]
    begins = (pages["begin"] - history.plan.begin) / 1e6
    short = (slots[1:] == slots[:-1]) & (np.diff(begins) < shortest - _TOLERANCE)
    short &= np.isin(pages["status"][:-1], (OK, NOT_MODIFIED, MISSING, GONE))
    found = []
    for at in np.flatnonzero(short).tolist():
        slot = int(slots[at])
        first, second = float(begins[at]), float(begins[at + 1])
        is_excused = any(first <= until and jump <= second for jump, until in jumps) or any(
            first <= kill <= first + _ON_ITS_WAY for kill in kills
        )
        if history.life(slot).linked and not is_excused:
            statuses = int(pages["status"][at]), int(pages["status"][at + 1])
            found.append(Early(slot, (first, second), statuses))
    return found
