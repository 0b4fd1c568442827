"""Remembers servers that have to be asked in another way than most."""

from __future__ import annotations

from collections import OrderedDict
from enum import Enum, auto
from typing import Final

MOST_KEPT: Final = 10_000
"""Servers; of more, those that were asked longest ago are asked in the usual way again."""


class Way(Enum):
    """How a server is asked."""

    USUAL = auto()
    """By libcurl, on a connection that is kept."""
    FRESH = auto()
    """By libcurl, each time on a new connection: kept ones turned out to be closed."""
    LENIENT = auto()
    """Not by libcurl, which refuses the head of its answers."""


class Ways:
    """Ways other than the usual one, by host and port."""

    def __init__(self) -> None:
        self._known: OrderedDict[str, Way] = OrderedDict()

    def __len__(self) -> int:
        return len(self._known)

    def of(self, server: str) -> Way:
        """Returns the way to ask a server."""
        way = self._known.get(server)
        if way is None:
            return Way.USUAL
        self._known.move_to_end(server)
        return way

    def note(self, server: str, way: Way) -> None:
        """Remembers how a server has to be asked."""
        self._known[server] = way
        self._known.move_to_end(server)
        if len(self._known) > MOST_KEPT:
            self._known.popitem(last=False)
