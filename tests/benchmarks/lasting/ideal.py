"""Says how fresh an ideal crawler with the same schedule, and no delays of its own, would be. Pure.

It knows each page from the moment at which the crawl itself asked for it first. It asks for a page
when it is due, the one that has been due for longest first, and waits for nothing but for its host:
one request at a time, the latency of the page, the promised pause after it. The schedule is the
adaptive one with `sync_delta` off: after a change the interval shrinks by dec_rate, else it grows
by inc_rate, and stays within its bounds. A copy is fresh while the page has the version of the last
answer. Pages count that are there from their birth to the end, at one address, on hosts that never
die: what others do has no schedule that everybody would agree about; `audit` looks at them.

Source: org.apache.nutch.crawl.AdaptiveFetchSchedule.
"""

from __future__ import annotations

import heapq
from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import inf
from typing import Final

import numpy as np

from tests.benchmarks.broad.requestlog import Requests
from tests.benchmarks.lasting.history import NOT_MODIFIED, OK, History

Times = Mapping[int, Sequence[float]]
"""Slot → seconds at which the page was asked for and answered, in order."""
_ANSWERED: Final = (OK, NOT_MODIFIED)


@dataclass(frozen=True)
class Schedule:
    """Intervals in seconds, and how they change."""

    shortest: float
    default: float
    longest: float
    inc_rate: float = 0.4
    dec_rate: float = 0.2

    def after(self, interval: float, has_changed: bool) -> float:
        """The interval after a fetch."""
        factor = 1 - self.dec_rate if has_changed else 1 + self.inc_rate
        return min(self.longest, max(self.shortest, interval * factor))


def counted(history: History) -> list[int]:
    """The slots of pages that count."""
    return [
        slot
        for slot, page in enumerate(history.lives)
        if page is not None
        and page.is_plain
        and history.hosts[int(history.slot_hosts[slot])].dead[0] == inf
    ]


def answered(requests: Requests, history: History, slots: Iterable[int]) -> dict[int, list[float]]:
    """When each of these pages was answered; those that never were are left out."""
    pages = requests[(requests["page"] >= 0) & np.isin(requests["status"], _ANSWERED)]
    pages = pages[np.argsort(pages["begin"], kind="stable")]
    found: dict[int, list[float]] = {}
    wanted = set(slots)
    asked = history.first[pages["host"]] + 1 + pages["page"]
    begins = (pages["begin"] - history.plan.begin) / 1e6
    for slot, begin in zip(asked.tolist(), begins.tolist(), strict=True):
        if slot in wanted:
            found.setdefault(slot, []).append(begin)
    return found


def ideal(
    history: History, first: Mapping[int, float], schedule: Schedule, end: float
) -> dict[int, list[float]]:
    """When an ideal crawler asks for each page, which it knows from `first` on, until `end`."""
    by_host: dict[int, list[tuple[float, int]]] = {}
    for slot, time in first.items():
        by_host.setdefault(int(history.slot_hosts[slot]), []).append((time, slot))
    found: dict[int, list[float]] = {slot: [] for slot in first}
    for host, due in by_host.items():
        heapq.heapify(due)
        pause = float(history.promised[host])
        intervals: dict[int, float] = {}
        free = 0.0
        while due:
            time, slot = heapq.heappop(due)
            time = max(time, free)
            if time > end:
                break
            if slot in intervals:
                life = history.life(slot)
                has_changed = life.version(time) > life.version(found[slot][-1])
                intervals[slot] = schedule.after(intervals[slot], has_changed)
            else:
                intervals[slot] = schedule.default
            found[slot].append(time)
            free = time + int(history.latencies[slot]) / 1000 + pause
            heapq.heappush(due, (time + intervals[slot], slot))
    return found


def freshness(
    times: Times, known: Mapping[int, float], history: History, at: Sequence[float]
) -> list[float]:
    """The share of the pages known at each time whose copy was fresh; NaN where none was known."""
    fresh = np.zeros(len(at))
    count = np.zeros(len(at))
    for slot, since in known.items():
        page, mine = history.life(slot), times[slot]
        for number, time in enumerate(at):
            if time >= since:
                count[number] += 1
                last = bisect_right(mine, time) - 1
                if last >= 0:
                    fresh[number] += page.version(mine[last]) == page.version(time)
    with np.errstate(invalid="ignore"):
        return (fresh / count).tolist()
