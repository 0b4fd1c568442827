"""Compares what people type with what pages are called: by their title, a part of it, the words of
a link, the end of the URL. Pure.

BM25 adds up words wherever they stand. That a page has a link whose words are just those of the
query, and not these words among a thousand links, it does not see.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from typing import Any, Final

from minutch.inspect.search.fields import unpaired

_PARTS: Final = re.compile(r"\s[-\u2014\u2013|·:»]\s|:\s")
"""What stands between the parts of a title, one of them often the site's name."""
LONGEST: Final = 200
"""Characters of a name."""
MOST: Final = 1000
"""Names of a page that are looked at."""


def names_of(stored: Mapping[str, list[Any]]) -> Iterator[str]:
    """Yields the names of a stored document."""
    for field, values in stored.items():
        base = field.partition("_")[0]
        for value in values if base in ("title", "anchor", "url") else ():
            text = unpaired(str(value))
            if base == "title":
                yield from (text, *_PARTS.split(text))
            elif base == "anchor":
                yield from text.split("\n")
            else:
                yield text.rstrip("/").rpartition("/")[2].partition(".")[0].replace("_", " ")


def likeness(
    wanted: Collection[str],
    names: Iterable[Collection[str]],
    rarity: Callable[[str], float],
) -> float:
    """Returns how much of the best of some names a query is, and the name of it: 0 to 1, the
    harmonic mean of both shares (F1), where words weigh as much as they are rare.
    """
    whole = sum(map(rarity, wanted))
    best = 0.0
    for name in names:
        both = sum(rarity(word) for word in wanted if word in name)
        if both:
            best = max(best, 2 * both / (whole + sum(map(rarity, name))))
    return best
