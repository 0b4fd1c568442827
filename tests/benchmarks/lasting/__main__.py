"""Measures whether a crawl lasts: a day in the life of a web in an hour.

    python -m tests.benchmarks.lasting [--quick] [--minutes 60] [--hosts 500] [--pages 6000]
                                       [--seed 1] [-D name=value] [--folder DIR]

A seeded web whose hosts and pages are born, change, move, vanish and return is crawled by `minutch
crawl -i -1` with the adaptive schedule and intervals of minutes, and the crawl is killed, stopped
and begun again, and its clock set, all while time passes as it does. What came is compared with
what the web was at each time, by what its server saw and what the index holds. Prints Markdown:
all tenths of the run, what has ended the crawl, what was found wrong, the goals, and a line of
JSON. Exit code 1 if a goal was not reached. --quick takes a minute; its costs say little.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from math import ceil
from pathlib import Path
from typing import Final

import numpy as np

from tests.benchmarks.broad.audit import audit
from tests.benchmarks.broad.goals import Verdict
from tests.benchmarks.broad.requestlog import QUESTION, now, read
from tests.benchmarks.broad.server import serving
from tests.benchmarks.broad.tables import audited, number, table
from tests.benchmarks.broad.web import name
from tests.benchmarks.lasting import disturbances, server
from tests.benchmarks.lasting.audit import Compared, Early, compare, documents, too_often
from tests.benchmarks.lasting.disturbances import planned
from tests.benchmarks.lasting.figures import TENTHS, Run, by_tenth, tables, verdicts
from tests.benchmarks.lasting.history import History, LifePlan
from tests.benchmarks.lasting.ideal import Schedule, answered, counted, freshness, ideal
from tests.benchmarks.lasting.living import Life, Living, bytes_of
from tests.benchmarks.measure import Failed

_VIEWS: Final = 20
"""Times in each tenth at which freshness is looked at."""
_SHOWN: Final = 8
_SCHEDULE: Final = "db.fetch.schedule"


@dataclass(frozen=True)
class Form:
    """How large a run is."""

    span: float
    """Seconds."""
    hosts: int
    later: int
    """Hosts beside these that are born later."""
    pages: int
    """Of all hosts."""
    delay: float
    schedule: Schedule
    list_size: int
    """URLs of a fetch list at most."""
    ends: int
    """Kills, stops and signals."""
    jumps: Sequence[int]
    """Seconds by which the clock is set."""
    least_rounds: int
    patience: float = 0.0
    """Seconds for which the end is put off, until the index has all that it is to have."""
    seed: int = 1

    @property
    def longest_wait(self) -> float:
        """db.fetch.interval.max: that of a page that is gone, too."""
        return round(1.25 * self.schedule.longest)

    @property
    def grace(self) -> float:
        """Seconds after which the index has what the web had before, whatever was in between: the
        longest wait for a page, and as long again as the shortest one for its round.
        """
        return self.longest_wait + 2 * self.schedule.shortest

    @property
    def plan(self) -> LifePlan:
        """The web."""
        return LifePlan(
            hosts=self.hosts + self.later,
            pages=self.pages,
            delay=self.delay,
            skew=0.35,
            median=30.0,
            seed=self.seed,
            span=self.span,
            shortest=self.schedule.shortest,
            later=self.later,
            begin=now(),
        )

    @property
    def properties(self) -> dict[str, str]:
        """What the crawl is given."""
        schedule = self.schedule
        return {
            "fetcher.server.delay": f"{self.delay:g}",
            "fetcher.min.crawl.delay": f"{self.delay:g}",
            "db.ignore.external.links": "false",
            "http.redirect.max": "2",
            "http.robots.cache.seconds": f"{self.longest_wait:g}",
            "http.robots.503.defer.visits.delay": f"{1000 * schedule.shortest:g}",
            f"{_SCHEDULE}.class": "org.apache.nutch.crawl.AdaptiveFetchSchedule",
            f"{_SCHEDULE}.adaptive.min_interval": f"{schedule.shortest:g}",
            f"{_SCHEDULE}.adaptive.max_interval": f"{schedule.longest:g}",
            f"{_SCHEDULE}.adaptive.inc_rate": f"{schedule.inc_rate:g}",
            f"{_SCHEDULE}.adaptive.dec_rate": f"{schedule.dec_rate:g}",
            f"{_SCHEDULE}.adaptive.sync_delta": "false",
            "db.fetch.interval.default": f"{schedule.default:g}",
            "db.fetch.interval.max": f"{self.longest_wait:g}",
            "db.fetch.retry.interval": f"{schedule.shortest:g}",
            "crawl.compact.grace": f"{ceil(schedule.shortest / 6)}",
            "crawl.compact.retention": f"{4 * schedule.longest:g}",
        }


LONG: Final = Form(
    3600.0,
    500,
    50,
    6000,
    1.0,
    Schedule(60.0, 120.0, 240.0),
    500,
    ends=15,
    jumps=disturbances.JUMPS,
    least_rounds=500,
)
SHORT: Final = Form(
    40.0,
    12,
    3,
    90,
    0.1,
    Schedule(3.0, 6.0, 12.0),
    30,
    ends=3,
    jumps=(14_400, -14_400),
    least_rounds=3,
    patience=90.0,
)


@dataclass(frozen=True)
class Result:
    """What was found."""

    run: Run
    life: Life
    text: str


class Looks:
    """Compares the index with the web at the end of each tenth, and says when a run is over."""

    def __init__(self, form: Form, history: History, crawl: Living) -> None:
        self._form = form
        self._history = history
        self._crawl = crawl
        self._next = 0.0
        self.found: list[Compared] = []

    def is_over(self, time: float) -> bool:
        """Called often, with the seconds since the begin."""
        form, number = self._form, len(self.found) + 1
        if number <= TENTHS:
            if time >= form.span * number / TENTHS:
                self.found.append(self._compare(time))
                rounds = len(self._crawl.life.rounds)
                print(f"tenth {number} is over, {rounds:,} rounds so far", file=sys.stderr)
            return False
        if time < form.span + form.patience and time >= self._next:
            self._next = time + 1
            self.found[-1] = self._compare(time)
        return time >= form.span + form.patience or not self.found[-1].lacking

    def _compare(self, time: float) -> Compared:
        found = documents(self._crawl.place, self._history)
        return compare(found, self._history, time, self._form.grace)


def measure(form: Form, folder: Path, properties: Mapping[str, str]) -> Result:
    """Runs a crawl in an empty folder. Raises Failed."""
    plan = form.plan
    history = History(plan)
    with serving(plan, folder, server.__name__) as web:
        words = ["-i", "--size-fetchlist", str(form.list_size)]
        crawl = Living(folder, web, {**form.properties, **properties}, words, plan.begin)
        looks = Looks(form, history, crawl)
        seeds = [f"http://{name(host)}:{web.port}/p/0" for host in range(plan.hosts - plan.later)]
        plans = planned(form.span, form.seed, form.ends, form.jumps)
        life = crawl.run(seeds, plans, looks.is_over)
        newest = crawl.newest()
    requests = read(web.log)
    requests = requests[requests["page"] != QUESTION]
    if not len(requests):
        raise Failed("the crawl made no request")
    times = answered(requests, history, counted(history))
    known = {slot: mine[0] for slot, mine in times.items()}
    views = (np.arange(TENTHS * _VIEWS) + 0.5) * form.span / (TENTHS * _VIEWS)
    fresh, permitted = (
        freshness(one, known, history, views.tolist())
        for one in (times, ideal(history, known, form.schedule, form.span))
    )
    tenths = by_tenth(life, requests, plan.begin, form.span, fresh, permitted, looks.found)
    kills = [one.time for one in life.endings if one.kind in disturbances.KILLS or one.was_killed]
    jumps = [(at, min((one for one in life.rounds if one > at), default=at)) for at in life.jumps]
    early = too_often(requests, history, form.schedule.shortest, jumps, kills)
    polite = audit(requests, history)
    run = Run(
        tenths,
        rounds=len(life.rounds),
        too_soon=len(polite.violations),
        early=len(early),
        requests=len(requests),
        bytes_by_newest=bytes_of(crawl.place / "segments") / newest,
        died=sum(not one.kind for one in life.endings),
        deaf=sum(one.was_killed for one in life.endings),
        left=sum(one.left for one in life.endings),
    )
    parts = [tables(run), endings(life), audited(polite), *wrong(history, looks.found, early)]
    return Result(run, life, "\n\n".join(parts))


def endings(life: Life) -> str:
    """What has ended the crawl, and how that went."""
    return table(
        ("ended by", "at s", "took s", "exit code", "left behind"),
        (
            (
                (one.kind or "itself") + (", killed in the end" if one.was_killed else ""),
                number(one.time),
                number(one.seconds, 1),
                str(one.code),
                str(one.left),
            )
            for one in life.endings
        ),
    )


def wrong(history: History, compared: Iterable[Compared], early: list[Early]) -> Iterable[str]:
    """Examples of what is not as it should be."""
    for part, one in enumerate(compared):
        for what, slots in (("lacks", one.lacking), ("has, though they are gone,", one.ghosts)):
            if slots:
                yield f"At the end of tenth {part + 1} the index {what} {_names(history, slots)}."
    if early:
        yield "Asked for before its interval was over:\n" + "\n".join(
            f"- {history.url(one.slot, 0)} at {one.times[0]:.1f} s (status {one.statuses[0]}) and"
            f" {one.times[1]:.1f} s (status {one.statuses[1]})"
            for one in early[:_SHOWN]
        )


def _names(history: History, slots: list[int]) -> str:
    shown = ", ".join(history.url(slot, 0) for slot in slots[:_SHOWN])
    return shown + (f" and {len(slots) - _SHOWN:,} more" if len(slots) > _SHOWN else "")


def reached(found: Iterable[Verdict]) -> str:
    """The goals."""
    return table(
        ("figure", "found", "goal", ""),
        (
            (one.figure, number(one.found, 3), one.goal, "yes" if one.reached else "NO")
            for one in found
        ),
    )


def main() -> int:
    """The command."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.benchmarks.lasting", description=(__doc__ or "").split("\n")[0]
    )
    parser.add_argument("--quick", action="store_true", help="few hosts, a minute")
    parser.add_argument("--minutes", type=float, help="60: how long the run takes")
    parser.add_argument("--hosts", type=int, help="500: those from which it begins")
    parser.add_argument("--pages", type=int, help="6000: of all hosts")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("-D", dest="properties", action="append", default=[], metavar="name=value")
    parser.add_argument("--folder", type=Path, help="an empty folder, where the crawl is kept")
    given = parser.parse_args()
    form = replace(SHORT if given.quick else LONG, seed=given.seed)
    if given.minutes:
        rounds = round(form.least_rounds * 60 * given.minutes / form.span)
        form = replace(form, span=60 * given.minutes, least_rounds=rounds)
    if given.hosts:
        form = replace(form, hosts=given.hosts, later=given.hosts // 10)
    form = replace(form, pages=given.pages or form.pages)
    properties = dict(one.split("=", 1) for one in given.properties)
    if given.folder:
        given.folder.mkdir(parents=True, exist_ok=True)
    place = nullcontext(given.folder) if given.folder else tempfile.TemporaryDirectory()
    with place as folder:
        result = measure(form, Path(folder).absolute(), properties)
    goals = list(verdicts(result.run, form.least_rounds))
    print(result.text, reached(goals), sep="\n\n")
    print(json.dumps({"lasting": {one.figure: one.found for one in goals}}))
    return 0 if all(one.reached for one in goals) else 1


if __name__ == "__main__":
    sys.exit(main())
