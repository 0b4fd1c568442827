"""Knows which URLs a process fetches already, where a list gets more parts while it is fetched.

A URL may be listed and be the target of a redirect: in Nutch both are asked for, and here, where
the page that led to it was asked when the URL was listed. Where rounds overlap, generate lists
pages while others are in flight: what it lists and what these lead to is the same page, which would
have been asked for once. Parts are numbered as they come: of a listed URL of part n, and one of no
list whose page was asked when there were m parts, one is fetched if m < n.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

from minutch.cycle.fetch.frontier.listindex import listed_urls
from minutch.cycle.fetch.frontier.queueitems import Dropped, FetchItem
from minutch.cycle.fetch.ledger import Outcome


class Claims:
    """The URLs of no list that a process follows, and the parts that its list has got."""

    def __init__(self) -> None:
        self.parts = 0
        """Parts that have come since the fetch began."""
        self._followed: dict[int, int] = {}
        """By the hash of a URL of no list: the parts that there were."""
        self._files: list[list[tuple[int, Sequence[Path]]]] = [[], []]
        """The parts of the list before, and those of this one, with their numbers."""
        self._listed: dict[int, int] | None = None
        """By the hash of a URL of these: the number of its part. Read when it is wanted."""

    def turn(self, files: Sequence[Path], followed: Iterable[FetchItem]) -> int:
        """Begins with another list, into which `files` and what is `followed` go on. Returns the
        number of these files.
        """
        self._followed = {hash(item.url): item.parts for item in followed}
        self._files = [self._files[-1], []]
        return self.take(files)

    def take(self, files: Sequence[Path]) -> int:
        """Takes more of the list; returns the number of these files."""
        self.parts += 1
        self._files[-1].append((self.parts, files))
        self._listed = None
        return self.parts

    def follow(self, item: FetchItem) -> None:
        """Claims an item of no list."""
        key = hash(item.url)
        self._followed[key] = min(item.parts, self._followed.get(key, item.parts))

    def fetched(self, item: FetchItem) -> Dropped | None:
        """Returns how a listed item ends that is fetched already, as something had led to it; None
        for all others.
        """
        parts = None if item.listed is None else self._followed.get(hash(item.url))
        if parts is None or parts >= item.parts:
            return None
        return Dropped(item, Outcome.SKIPPED_FOLLOWED, Outcome.SKIPPED_FOLLOWED.reason)

    def is_listed(self, item: FetchItem) -> bool:
        """Tells whether an item of no list has been listed since its page was asked. Raises
        FormatError.
        """
        if item.parts == self.parts:
            return False
        if self._listed is None:
            self._listed = {
                hash(url): number
                for parts in self._files
                for number, files in parts
                for url in listed_urls(path for path in files if path.exists())
            }
        return self._listed.get(hash(item.url), 0) > item.parts
