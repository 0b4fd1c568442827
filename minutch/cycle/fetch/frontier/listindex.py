"""Indexes a fetch list by host: how many URLs each host has, and where they lie.

Records stay in their files; the index takes 8 bytes a URL, and a name and a few numbers a host. It
hands out the hosts, those with the most URLs first, and reads a host's URLs when they are wanted,
in the order of the list.

    parts ─ spans ─ host of each key ─ (host, place) sorted ─ hosts by their number of URLs
               └─ refused: no URL, or filters refuse it

What an earlier run of the same fetch settled is left out on the way (`listpass`).

Source: org.apache.nutch.fetcher.QueueFeeder: fetcher.filter.urls, fetcher.normalize.urls.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np

from minutch.cycle.fetch.frontier.listpass import NO_CHANGE, PLACE_BITS, Change, ListPass
from minutch.cycle.fetch.frontier.queueitems import Dropped, FetchItem
from minutch.cycle.fetch.ledger import Outcome
from minutch.errors import StoreError
from minutch.hadoop.formats.javaio import DataInput
from minutch.hadoop.formats.sequencefile import SequenceFileReader
from minutch.records.crawldatum import CrawlDatum

_PLACE: Final = np.uint64((1 << PLACE_BITS) - 1)


def generate_files(segment: Path) -> list[Path]:
    """Returns the parts of crawl_generate, in order of name. Raises StoreError if there are
    none.
    """
    folder = segment / "crawl_generate"
    files = sorted(path for path in folder.glob("part-*") if path.is_file())
    if not files:
        raise StoreError(f"{segment}: no fetch list: {folder} has no part files")
    return files


def listed_urls(files: Iterable[Path]) -> Iterator[str]:
    """Yields all URLs of a fetch list. Raises FormatError."""
    for path in files:
        with SequenceFileReader(path) as reader:
            for key, _ in reader.stored():
                yield DataInput(key).read_text()


class ListIndex:
    """The hosts of a fetch list that are not begun: a `FetchList`."""

    def __init__(
        self,
        files: Sequence[Path],
        scratch: Path,
        name: Callable[[str], str | None],
        *,
        mine: Callable[[str], bool] = lambda queue_id: True,
        settled: Counter[str] | None = None,
        change: Change = NO_CHANGE,
        number: int = 0,
    ) -> None:
        """`name` names the queue of a host, `mine` says whether this process has a queue, `number`
        is that of these parts of the list. A copy of a part goes to a file whose name begins with
        that of `scratch`. Raises FormatError, StoreError.
        """
        self._number = number
        found = ListPass(change, Counter() if settled is None else settled)
        found.read(files, scratch)
        self._change = change
        self._mine = mine
        self._parts, self._refused = found.parts, found.refused
        self.records = found.records
        """URLs of the whole list, settled ones included."""
        self._places = np.concatenate([np.empty(0, np.uint64), *found.places])
        found.places.clear()
        self._places.sort()
        self._hosts = deque(self._supplies(found.hosts, name))
        self.hosts = len(self._hosts)
        self.left = sum(supply.left for supply in self._hosts)

    # -- a FetchList -------------------------------------------------------------------------------

    def most(self) -> int:
        """Returns the number of URLs of the host that comes next; 0 if there is none."""
        return self._hosts[0].left if self._hosts else 0

    def begin(self) -> HostSupply:
        """Takes the host that comes next."""
        supply = self._hosts.popleft()
        self.left -= supply.left
        return supply

    @property
    def has_refused(self) -> bool:
        """True if there are URLs that can't be fetched."""
        return bool(self._refused)

    def refused(self, most: int) -> Iterator[Dropped]:
        """Yields up to `most` of them; of several processes, each has those whose URLs are its
        own.
        """
        while self._refused and most > 0:
            most -= 1
            place, outcome = self._refused.popleft()
            listed, datum = self._record(place)
            if self._mine(listed):
                yield Dropped(FetchItem(listed, datum, "", listed), outcome, outcome.reason)

    def refuse(self, supply: HostSupply) -> None:
        """Gives up the URLs left of a host: it has no queue."""
        places = self._places[supply.at : supply.end] & _PLACE
        self._refused += ((int(place), Outcome.SKIPPED_INVALID) for place in places)

    # -- reading -----------------------------------------------------------------------------------

    def item(self, row: int) -> FetchItem:
        """Reads the URL in a row of the index. Raises FormatError."""
        listed, datum = self._record(int(self._places[row] & _PLACE))
        return FetchItem(self._change(listed) or listed, datum, "", listed, parts=self._number)

    def close(self) -> None:
        """Closes the files."""
        for part in self._parts:
            part.close()

    def _record(self, place: int) -> tuple[str, CrawlDatum]:
        number = bisect_right(self._parts, place, key=lambda part: part.begin) - 1
        return self._parts[number].read(place)

    def _supplies(
        self, hosts: Sequence[str], name: Callable[[str], str | None]
    ) -> Iterator[HostSupply]:
        """Yields the hosts of this process, those with the most URLs first; of equal ones, the one
        that comes first in the list.
        """
        bits = np.uint64(PLACE_BITS)
        numbers = (self._places >> bits).astype(np.int32)
        starts = np.flatnonzero(np.diff(numbers, prepend=np.int32(-1)))
        ends, numbers = np.append(starts[1:], len(numbers)), numbers[starts]
        order = np.lexsort((self._places[starts] & _PLACE, starts - ends))
        groups = (column[order].tolist() for column in (numbers, starts, ends))
        for number, start, end in zip(*groups, strict=True):
            host = hosts[number]
            queue_id = name(host)
            if queue_id is not None and self._mine(queue_id):
                queue_id = host if queue_id == host else queue_id  # one string
                yield HostSupply(self, host, queue_id, start, end)


@dataclass(slots=True)
class HostSupply:
    """The URLs left of one host: a `Supply`."""

    index: ListIndex
    host: str
    queue_id: str
    at: int
    end: int

    @property
    def left(self) -> int:
        """Number of URLs."""
        return self.end - self.at

    def next(self) -> FetchItem:
        """Reads the next URL. Raises FormatError."""
        item = self.index.item(self.at)
        item.queue_id, item.host = self.queue_id, self.host
        self.at += 1
        return item

    def first_url(self) -> str:
        """Reads the next URL, which stays."""
        return self.index.item(self.at).url
