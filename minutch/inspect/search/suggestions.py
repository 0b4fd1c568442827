"""Finds what a query without hits may have meant: fewer of its words, or another spelling."""

from __future__ import annotations

import re
from difflib import get_close_matches
from typing import Final

from minutch.inspect.search.query import words_of
from minutch.inspect.search.results import SearchOptions
from minutch.inspect.search.searcher import Searcher

MOST: Final = 3
"""Queries that are suggested."""
MOST_WORDS: Final = 8
"""Words of a query, each of which is left out once; longer queries have no suggestions."""
_PLAIN: Final = re.compile(r"\w{3,}")
_ALIKE: Final = 0.6
_APART: Final = 2
"""Characters by which the lengths of two words alike may differ."""
_ONE: Final = SearchOptions(limit=1)


def suggestions(searcher: Searcher, text: str) -> list[tuple[str, int]]:
    """Returns queries that find something, and how many pages; the nearest spelling comes first."""
    words = words_of(text)
    if not 0 < len(words) <= MOST_WORDS:
        return []
    spelled = [_nearest(searcher, word) for word in words]
    tried = [spelled] if spelled != words else []
    tried += [
        some[:at] + some[at + 1 :]
        for some in (words, spelled)
        for at in range(len(words))
        if len(words) > 1
    ]
    found = {query: searcher.search(query, _ONE).count for query in map(" ".join, tried)}
    first, *others = found.items() if found else [("", 0)]
    if spelled == words:
        first, others = ("", 0), list(found.items())
    others.sort(key=lambda pair: -pair[1])
    return [(query, count) for query, count in [first, *others] if count][:MOST]


def _nearest(searcher: Searcher, word: str) -> str:
    """Returns the word, or if no page has it, the most similar one of a page."""
    if not _PLAIN.fullmatch(word) or searcher.search(word, _ONE).count:
        return word
    least, most = len(word) - _APART, len(word) + _APART
    there = {
        found.lower()
        for text in searcher.texts_like(word)
        for found in _PLAIN.findall(text)
        if least <= len(found) <= most
    }
    return next(iter(get_close_matches(word.lower(), sorted(there), 1, _ALIKE)), word)
