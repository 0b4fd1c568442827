"""Describes which URLs a normalizer leaves alone and which a filter accepts or rejects, so that
they need not be called for each URL.

Both are strict patterns, which match whole URLs between marks (`javaregex.marked`);
`plainautomaton` joins those of all normalizers and filters.
"""

from __future__ import annotations

from dataclasses import dataclass

from minutch.urls.javaregex.derivative import Pattern
from minutch.urls.javaregex.marked import ANYTHING, NOTHING


@dataclass(frozen=True, slots=True)
class Untouched:
    """The URLs that a normalizer does not change: those that `normal` matches and `touched` does
    not.

    `cuts`: it cuts off the fragment of a URL that is normal but for that. `squeezes`: it takes
    empty segments, and climbs above the root, out of a URL without query, fragment and escapes that
    is normal but for those; or takes out no more than some empty segments, if `collapses`.
    """

    normal: Pattern = ANYTHING
    touched: Pattern = NOTHING
    cuts: bool = False
    squeezes: bool = False
    collapses: bool = False


@dataclass(frozen=True, slots=True)
class Verdicts:
    """The URLs that a filter certainly accepts, and those that it certainly rejects, if they have
    no loop.

    `no_loops` says that it rejects URLs with a segment that comes back at every second place.
    """

    accepted: Pattern
    rejected: Pattern
    no_loops: bool = False
