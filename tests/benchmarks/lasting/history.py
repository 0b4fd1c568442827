"""Plans from a seed what happens on a web: births, changes, moves, deaths and returns.

Times are seconds after `begin`. A page that changes does so at whole seconds, so that its
Last-Modified tells each version from the one before. The first page of a host is its hub: it links
to all pages of the host, and to hosts that were born later, and changes when one is born. A page
that moves is answered by 301 from then on; the page that it has moved to is linked by nobody.
"""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass, field
from math import ceil, inf
from typing import Final

import numpy as np

from tests.benchmarks.broad.web import Plan, Web

OK, NOT_MODIFIED, MOVED, MISSING, GONE = 200, 304, 301, 404, 410
DEAD: Final = 0
"""The status of all pages of a host that is dead."""
BOTH, DATE, TAG, NOTHING, PRESENT = range(5)
"""What a page can be validated by: Last-Modified and ETag, one of them, or nothing; PRESENT: by
nothing, as it claims to have changed just now.
"""
_VALIDATORS: Final = (BOTH, BOTH, BOTH, DATE, DATE, TAG, NOTHING)
_NEVER, _OFTEN, _SOMETIMES = 0.4, 0.1, 0.3
"""Shares of pages that never change, or change after 1 or 5 shortest intervals on average; all
others change after 20.
"""
_PERIODS: Final = (inf, 1.0, 5.0, 20.0)
_RESTLESS, _WRONG = 0.1, 0.1
"""In a mixed web, shares of pages that change after a 24th of a shortest interval, and of those
whose Last-Modified is always the present.
"""
_DYING: Final = 0.12
"""The share of hosts that die; half of them return."""
_BORN_LATER, _VANISHING = 0.1, 0.16
"""Shares of pages; half of those that vanish return."""
_MOVING: Final = 10
"""Among so many pages of a host, every second time one moves."""
_HUB: Final = 0


@dataclass(frozen=True)
class LifePlan(Plan):
    """What a web that changes is made from."""

    span: float = 3600.0
    """Seconds over which things happen."""
    shortest: float = 60.0
    """The shortest interval of the crawl's schedule (s): what changes goes by it."""
    later: int = 0
    """How many of the hosts are born later: those of the highest numbers."""
    begin: int = 0
    """When all began: µs of the monotonic clock, which all processes of the machine share."""
    mixed: bool = False
    """Some pages change all the time, some have wrong dates, and scores differ."""
    set_too: bool = False
    """Where the machine's clock is set, the web's time goes with it."""


@dataclass(slots=True)
class Page:
    """The life of one page."""

    born: float
    changes: list[float]
    """Sorted; version n is there after n changes."""
    validator: int
    gone: tuple[float, float] = (inf, inf)
    code: int = MISSING
    """The status while it is gone."""
    moved: float = inf
    """It is at the next page number from then on."""
    linked: bool = True
    """The hub links to it, once it is born."""
    rate: float = 0.0
    """Changes a second that are planned."""
    score: float = 1.0

    def version(self, time: float) -> int:
        """How often it has changed by then."""
        return bisect_right(self.changes, time)

    def status(self, time: float) -> int:
        """What is answered while its host is alive."""
        if time < self.born:
            return MISSING
        if time >= self.moved:
            return MOVED
        return self.code if self.gone[0] <= time < self.gone[1] else OK

    @property
    def is_plain(self) -> bool:
        """True if it is there from its birth to the end, at one address."""
        return self.linked and self.gone[0] == self.moved == inf


@dataclass(slots=True)
class Host:
    """The life of one host."""

    born: float
    dead: tuple[float, float]
    children: list[int] = field(default_factory=list)
    """Hosts that its hub links to once they are born."""

    def is_dead(self, time: float) -> bool:
        """True while it answers nothing of use."""
        return time < self.born or self.dead[0] <= time < self.dead[1]


class History(Web):
    """A web with the lives of its hosts and pages."""

    plan: LifePlan

    def __init__(self, plan: LifePlan) -> None:
        super().__init__(plan)
        first = plan.hosts - plan.later
        self.hosts = [self._host(number, number >= first) for number in range(plan.hosts)]
        lasting = [n for n, host in enumerate(self.hosts[:first]) if host.dead[0] == inf]
        for child in range(first, plan.hosts):
            chance = np.random.default_rng([plan.seed, 3, child])
            for parent in chance.choice(lasting, size=min(2, len(lasting)), replace=False).tolist():
                self.hosts[parent].children.append(child)
        self.lives: list[Page | None] = []
        """The life of each slot; None for a robots.txt."""
        for number, size in enumerate(self.sizes.tolist()):
            self.lives += [None, *self._pages(number, size)]

    def life(self, slot: int) -> Page:
        """The life of a slot that is a page."""
        found = self.lives[slot]
        assert found is not None, "a robots.txt has no life"
        return found

    def status(self, slot: int, time: float) -> int:
        """What a page answers to a request without a validator; DEAD: its host does not."""
        is_dead = self.hosts[int(self.slot_hosts[slot])].is_dead(time)
        return DEAD if is_dead else self.life(slot).status(time)

    def was(self, slot: int, statuses: tuple[int, ...], since: float, until: float) -> bool:
        """True if a page answered with one of these all the time from `since` to `until`."""
        host, page = self.hosts[int(self.slot_hosts[slot])], self.life(slot)
        turns = (host.born, *host.dead, page.born, *page.gone, page.moved)
        times = [since, *(turn for turn in turns if since < turn <= until)]
        return all(self.status(slot, time) in statuses for time in times)

    def _host(self, number: int, is_later: bool) -> Host:
        plan = self.plan
        chance = np.random.default_rng([plan.seed, 1, number])
        born = plan.span * chance.uniform(0.05, 0.75) if is_later else 0.0
        dies, returns = chance.random() < _DYING, chance.random() < 0.5
        dead = born + (plan.span - born) * chance.uniform(0.1, 0.9) if dies else inf
        away = plan.shortest * chance.uniform(4, 16)
        return Host(born, (dead, dead + away if returns else inf))

    def _pages(self, number: int, size: int) -> list[Page]:
        host = self.hosts[number]
        pages = [self._page(number, page, host.born) for page in range(size)]
        for page in range(7, size - 1, _MOVING):
            chance = np.random.default_rng([self.plan.seed, 4, number, page])
            if chance.random() < 0.5:
                mover, target = pages[page], pages[page + 1]
                mover.moved = host.born + (self.plan.span - host.born) * chance.uniform(0.05, 0.9)
                mover.born, mover.gone = host.born, (inf, inf)
                target.born, target.gone, target.linked = mover.moved, (inf, inf), False
        hub = pages[_HUB]
        births = {float(ceil(page.born)) for page in pages if page.linked and page.born > host.born}
        births |= {float(ceil(self.hosts[child].born)) for child in host.children}
        hub.changes = sorted(births.union(hub.changes))
        hub.rate += len(births) / (self.plan.span - host.born)
        return pages

    def _page(self, number: int, page: int, host_born: float) -> Page:
        plan = self.plan
        chance = np.random.default_rng([plan.seed, 2, number, page])
        left = plan.span - host_born
        drawn = chance.random()
        period = (
            plan.shortest
            * _PERIODS[int(np.digitize(drawn, np.cumsum((_NEVER, _OFTEN, _SOMETIMES))))]
        )
        if plan.mixed and drawn > 1 - _RESTLESS:
            period = plan.shortest / 24
        validator = _VALIDATORS[chance.integers(len(_VALIDATORS))]
        is_later = page != _HUB and chance.random() < _BORN_LATER
        born = host_born + left * chance.uniform(0.02, 0.9) if is_later else host_born
        changes: list[float] = []
        if period < inf:
            times = born + np.cumsum(chance.exponential(period, ceil(2 * plan.span / period) + 20))
            changes = np.unique(np.ceil(times)).tolist()
        gone, code = (inf, inf), MISSING
        if page != _HUB and chance.random() < _VANISHING:
            vanished = born + (plan.span - born) * chance.uniform(0.05, 0.9)
            returned = vanished + plan.shortest * chance.uniform(2, 10)
            gone = (vanished, returned if chance.random() < 0.5 else inf)
            code = GONE if chance.random() < 0.5 else MISSING
        score = 1.0
        if plan.mixed:
            validator = PRESENT if chance.random() < _WRONG else validator
            # nobody gives a page that is found later a score
            score = 1.0 if born else round(chance.lognormal(-0.5, 1.0), 3)
        return Page(born, changes, validator, gone, code, rate=1 / period, score=score)

    def links(self, host: int, page: int, time: float) -> list[tuple[int, int]]:
        """The host and number of each page that a page links to at a time."""
        first, size = int(self.first[host]) + 1, int(self.sizes[host])
        if page != _HUB:
            return [(host, _HUB)]
        here = [
            (host, number)
            for number in range(1, size)
            if (life := self.life(first + number)).linked and ceil(life.born) <= time
        ]
        children = self.hosts[host].children
        return here + [(kid, _HUB) for kid in children if ceil(self.hosts[kid].born) <= time]
