"""One automaton that decides plain URLs for all normalizers and filters, without calling them; all
other URLs go through the plugins. A module of its own, as filters that are asked row by row do
without NumPy.

It joins the patterns of `rules.Untouched` and `rules.Verdicts`. States are made in Python when they
are first reached; `minutch.kernels.sieve` runs through existing ones.

    state       derivatives of three patterns: URLs to keep, URLs to reject, URLs that a normalizer
                may change
    table       [state × 128 + character]: the next state, UNKNOWN where none was made yet
    verdicts    [state]: the verdict on a URL that ends there: ASK, KEEP or REJECT; TOUCHED if a
                normalizer may change it

A fragment is cut off, empty segments and climbs above the root are taken out, where a normalizer
does so; the URL before and the URL after that must both be untouched.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import Final

import numpy as np

from minutch.kernels.sieve import ASK, DEAD, FIRST, KEEP, REJECT, TOUCHED, UNKNOWN, WIDTH, Rules
from minutch.urls.javaregex.derivative import (
    ANYTHING,
    END,
    NOTHING,
    START,
    Automaton,
    Intersection,
    Pattern,
    State,
    size_of,
)
from minutch.urls.javaregex.tree import Alternation
from minutch.urls.rules import Untouched, Verdicts

_MOST_STATES: Final = 1 << 12
_MOST_STEPS: Final = 1 << 14
"""Entries of the table that are made; each costs Python some 20 us, more for larger patterns."""
_LARGEST: Final = 5000
"""Characters in patterns, each as often as it may be repeated; the usual rules have hundreds."""
_ORDINARY: Final = range(0x21, 0x7F)
_ALL_ORDINARY: Final = sum(1 << code for code in _ORDINARY)

Triple = tuple[State, State, State]


class PlainUrlAutomaton:
    """The automaton of some normalizers and filters. Not thread-safe."""

    @classmethod
    def of(
        cls, normalizers: Sequence[Untouched], filters: Sequence[Verdicts]
    ) -> PlainUrlAutomaton | None:
        """Builds the automaton; None for patterns so large that calling the plugins costs less."""
        patterns = [
            pattern
            for normalizer in normalizers
            for pattern in (normalizer.normal, normalizer.touched)
        ]
        patterns += [
            pattern for verdicts in filters for pattern in (verdicts.accepted, verdicts.rejected)
        ]
        try:
            return cls(normalizers, filters) if size_of(patterns, _LARGEST) < _LARGEST else None
        except RecursionError:
            return None

    def __init__(self, normalizers: Sequence[Untouched], filters: Sequence[Verdicts]) -> None:
        cuts = any(normalizer.cuts for normalizer in normalizers)
        # What one of them takes out must not be in the way of another.
        squeezes = any(normalizer.squeezes for normalizer in normalizers) and all(
            normalizer.squeezes or normalizer.collapses or normalizer.normal is ANYTHING
            for normalizer in normalizers
        )
        no_loops = any(verdicts.no_loops for verdicts in filters)
        touched = _any(normalizer.touched for normalizer in normalizers)
        normal = _all(normalizer.normal for normalizer in normalizers)
        accepted = _all(verdicts.accepted for verdicts in filters)
        rejected = _any(verdicts.rejected for verdicts in filters)
        # One automaton for all patterns: equal states are shared.
        self._automaton = Automaton(NOTHING)
        state_of = self._automaton.state_of
        self._nothing, self._anything = state_of(NOTHING), state_of(ANYTHING)
        self.table = np.full(_MOST_STATES * WIDTH, UNKNOWN, np.int32)
        self.verdicts = np.full(_MOST_STATES, ASK, np.uint8)
        # State 0 is DEAD, from which nothing leads away.
        self.table[:WIDTH] = DEAD
        self.rules = Rules(self.table, self.verdicts, cuts, squeezes, no_loops)
        """The automaton as kernels take it."""
        self._steps = 0
        self._numbers: dict[Triple, int] = {}
        self._states: list[Triple] = [(self._nothing, self._nothing, self._anything)]
        patterns = Intersection(normal, accepted), Intersection(normal, rejected), touched
        keeps, rejects, touches = (state_of(pattern) for pattern in patterns)
        self._number(self._step((keeps, rejects, touches), START))  # FIRST

    def learn(self, url: bytes) -> None:
        """Makes the states that a URL passes through."""
        state = FIRST
        for byte in url:
            if byte >= WIDTH or state == DEAD:
                return
            following = int(self.table[state * WIDTH + byte])
            if following == UNKNOWN:
                following = self._following(state, byte)
                # For all characters that lead there at once: one by one, links of 400 real pages
                # took 3,003 steps of the shipped rules instead of 974, and twice the time.
                self.table[state * WIDTH + np.array(self._alike(state, byte))] = following
            state = following

    def _alike(self, state: int, byte: int) -> tuple[int, ...]:
        """Returns the characters that no pattern tells from one, in a state."""
        alike = _ALL_ORDINARY
        if not alike >> byte & 1:
            return (byte,)
        for asked in frozenset().union(*map(self._automaton.sets, self._states[state])):
            alike &= asked if asked >> byte & 1 else ~asked
        return _codes(alike)

    def _following(self, state: int, byte: int) -> int:
        self._steps += 1
        # Dead ends cost nothing but a call of the plugins.
        if byte not in _ORDINARY or self._steps > _MOST_STEPS:
            return DEAD
        try:
            triple = self._step(self._states[state], byte)
        except RecursionError:
            return DEAD
        # Touched whatever follows: the plugins have to be asked.
        return DEAD if triple[2] is self._anything else self._number(triple)

    def _step(self, triple: Triple, code: int) -> Triple:
        derive = self._automaton.derive
        keeps, rejects, touched = triple
        return derive(keeps, code), derive(rejects, code), derive(touched, code)

    def _number(self, triple: Triple) -> int:
        """Returns the number of a state; DEAD if there is no more room."""
        number = self._numbers.get(triple)
        if number is None:
            if len(self._states) == _MOST_STATES:
                return DEAD
            number = self._numbers[triple] = len(self._states)
            self._states.append(triple)
            keeps, rejects, touched = (state.nullable for state in self._step(triple, END))
            verdict = KEEP if keeps else REJECT if rejects else ASK
            self.verdicts[number] = TOUCHED if touched else verdict
        return number


@lru_cache(maxsize=1024)
def _codes(characters: int) -> tuple[int, ...]:
    """Returns the codes of characters, each of which is a bit."""
    return tuple(code for code in _ORDINARY if characters >> code & 1)


def _all(patterns: Iterable[Pattern]) -> Pattern:
    found: Pattern = ANYTHING
    for pattern in patterns:
        found = Intersection(found, pattern)
    return found


def _any(patterns: Iterable[Pattern]) -> Pattern:
    found: Pattern = NOTHING
    for pattern in patterns:
        found = Alternation((found, pattern))  # type: ignore[arg-type]  # any pattern may stand in it
    return found
