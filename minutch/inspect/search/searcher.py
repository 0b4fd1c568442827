"""Opens the local index for searches: in this process if its own jobs have written it, apart if
not.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final, TypeVar

from minutch.inspect.search.apart import Apart
from minutch.inspect.search.localindex import LocalIndex
from minutch.inspect.search.results import Hit, OpenIndex, Results, SearchOptions

T = TypeVar("T")

MEMORY: Final = 1 << 30
"""Bytes that searches of somebody else's index may take; its files, which are mapped, not counted.
"""
SECONDS: Final = 60.0
"""That a search may take there."""
_DEFAULTS: Final = SearchOptions()


def search(index: Path, query: str, options: SearchOptions = _DEFAULTS) -> Results:
    """Searches an index, or that of the crawl in a folder. Raises StoreError, FormatError."""
    return searcher_of(index).search(query, options)


def searcher_of(index: Path) -> Searcher:
    """Opens an index, or that of the crawl in a folder. Raises StoreError, FormatError."""
    inside = index / "index"
    is_crawl = inside.is_dir() and not (index / "current").exists()
    return Searcher(inside if is_crawl else index)


class Searcher:
    """A searcher of an index as a commit has left it; any number of threads may use it. Raises
    StoreError, FormatError.
    """

    def __init__(self, path: Path) -> None:
        self.place = LocalIndex(path)
        self._state = self.place.state()
        is_ours = self.place.require()
        with self.place.reading():
            where = (self.place.current,)
            self._open: OpenIndex | Apart = (
                OpenIndex(*where)
                if is_ours
                else Apart(OpenIndex, where, memory=MEMORY, seconds=SECONDS)
            )
        self.count = self._ask(int, "count")
        """Number of documents."""

    def _ask(self, returns: type[T], name: str, *args: object) -> T:
        with self.place.reading():
            if isinstance(self._open, Apart):
                return self._open.call(returns, name, *args)
            found: T = getattr(self._open, name)(*args)
            return found

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
