"""Opens the local index for searches: in this process if its own jobs wrote it."""

from __future__ import annotations

import re
from difflib import get_close_matches
from pathlib import Path
from typing import Final, TypeVar

from minutch.inspect.search.apart import Apart, Here
from minutch.inspect.search.localindex import LocalIndex
from minutch.inspect.search.query import words_of
from minutch.inspect.search.results import Hit, OpenIndex, Results, SearchOptions

T = TypeVar("T")

MEMORY: Final = 1 << 30
"""Bytes that searches of somebody else's index may take; its files, which are mapped, not counted.
"""
SECONDS: Final = 60.0
"""That a search may take there."""
_DEFAULTS: Final = SearchOptions()
MOST: Final = 3
"""Queries that are suggested."""
MOST_WORDS: Final = 8
"""Words of a query, each of which is left out once; longer queries have no suggestions."""
_PLAIN: Final = re.compile(r"\w{3,}")
_ALIKE: Final = 0.6
_APART: Final = 2
"""Characters by which the lengths of two words alike may differ."""
_ONE: Final = SearchOptions(limit=1)


def search(index: Path, query: str, options: SearchOptions = _DEFAULTS) -> Results:
    """Searches an index, or that of the crawl in a folder. Raises StoreError, FormatError."""
    return searcher_of(index).search(query, options)


def searcher_of(index: Path) -> Searcher:
    """Opens an index, or that of the crawl in a folder. Raises StoreError, FormatError."""
    inside = index / "index"
    is_crawl = inside.is_dir() and not (index / "current").exists()
    return Searcher(inside if is_crawl else index)


class Searcher:
    """A searcher of an index as a commit left it, for any threads. StoreError, FormatError."""

    def __init__(self, path: Path) -> None:
        self.place = LocalIndex(path)
        self._state = self.place.state()
        is_ours = self.place.require()
        with self.place.reading():
            where = (self.place.current,)
            self._open: Apart | Here = (
                Here(OpenIndex(*where))
                if is_ours
                else Apart(OpenIndex, where, memory=MEMORY, seconds=SECONDS)
            )
        self.count = self._ask(int, "count")
        """Number of documents."""

    def _ask(self, returns: type[T], name: str, *args: object) -> T:
        with self.place.reading():
            return self._open.call(returns, name, *args)

    def newest(self) -> Searcher:
        """Returns this one, or one for a later commit."""
        return self if self.place.state() == self._state else Searcher(self.place.path)

    def search(self, text: str, options: SearchOptions = _DEFAULTS) -> Results:
        """Returns the hits of a query, best first."""
        return self._ask(Results, "search", text, options)

    def newest_hits(self, limit: int) -> list[Hit]:
        """Returns the pages that were fetched last."""
        return self._ask(list[Hit], "newest_hits", limit)

    def hosts(self) -> list[tuple[str, int]]:
        """Returns the hosts with the most documents, and their numbers."""
        return self._ask(list[tuple[str, int]], "hosts")

    def host_count(self) -> int:
        """Returns the number of hosts; of very many, nearly."""
        return self._ask(int, "host_count")

    def texts_like(self, word: str) -> list[str]:
        """Returns titles and contents of pages that have a word much like this one."""
        return self._ask(list[str], "texts_like", word)


# Finds what a query without hits may have meant: fewer of its words, or another spelling.


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
