"""Remembers the rules of hosts, within a budget of bytes: those that were asked for longest ago go
first.
"""

from __future__ import annotations

import sys
from collections import OrderedDict
from typing import Final, NamedTuple

from minutch.urls.robots import ALLOW_ALL, ALLOW_NONE, UNSAID, RobotRules

BUDGET: Final = 64 << 20
"""Bytes of rules, in each process of a fetch. A file of 30,000 rules took 5.3 MB, and 50,000 hosts
were kept whatever theirs took.
"""
_ENTRY: Final = 310
"""Bytes of a host besides its key and its rules."""
_SHARED: Final = frozenset({ALLOW_ALL, ALLOW_NONE, UNSAID})


class Remembered(NamedTuple):
    """Rules, and when they were fetched (seconds since the epoch)."""

    fetched: float
    rules: RobotRules


class RobotsMemory:
    """The rules of hosts by key (scheme, host and port)."""

    def __init__(self, budget: int = BUDGET) -> None:
        self._budget = budget
        self._known: OrderedDict[str, Remembered] = OrderedDict()
        self.bytes = 0
        """What all of it takes."""

    def __len__(self) -> int:
        return len(self._known)

    def get(self, key: str, since: float) -> RobotRules | None:
        """Returns the rules of `key` if they were fetched after `since`."""
        found = self._known.get(key)
        if found is None or found.fetched <= since:
            return None
        self._known.move_to_end(key)
        return found.rules

    def keep(self, key: str, rules: RobotRules, fetched: float) -> None:
        """Remembers rules. Those that were kept last stay whatever they take, as they are about to
        be used.
        """
        self.forget(key)
        self._known[key] = Remembered(fetched, rules)
        self.bytes += _cost(key, rules)
        while self.bytes > self._budget and len(self._known) > 1:
            self.forget(next(iter(self._known)))

    def forget(self, key: str) -> None:
        """Forgets the rules of `key`, if there are any."""
        found = self._known.pop(key, None)
        if found is not None:
            self.bytes -= _cost(key, found.rules)


def _cost(key: str, rules: RobotRules) -> int:
    return _ENTRY + sys.getsizeof(key) + (0 if rules in _SHARED else rules.cost)
