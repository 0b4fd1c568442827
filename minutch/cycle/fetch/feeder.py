"""Brings the fetch list into the queues, a few items per thread at a time.

Source: org.apache.nutch.fetcher.QueueFeeder: fetcher.filter.urls, fetcher.normalize.urls (scope
default) and fetcher.queue.depth.multiplier. Every listed URL is handed to the queues or back with
the reason why not.
"""

from __future__ import annotations

import logging
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Final

from minutch.cycle.fetch.hostaddresses import HostAddresses
from minutch.cycle.fetch.ledger import Outcome
from minutch.cycle.fetch.queueitems import FetchItem
from minutch.cycle.fetch.queuekey import QueueKey
from minutch.errors import StoreError, UrlError
from minutch.hadoop.formats.javaio import DataInput
from minutch.hadoop.formats.sequencefile import SequenceFileReader
from minutch.records.crawldatum import CrawlDatum

log = logging.getLogger(__name__)

REMEMBERED: Final = 10_000
"""Queues that are remembered as announced."""
AHEAD: Final = 100
"""Entries whose hosts are asked for before it is their turn, where queues are named by
addresses.
"""

_Entry = tuple[str, CrawlDatum, str | None]
"""URL as listed, datum, URL to fetch: None if filters refuse it."""

Change = Callable[[str], str | None]


def generate_files(segment: Path) -> list[Path]:
    """Returns the parts of crawl_generate, in order of name. Raises StoreError if there are
    none.
    """
    folder = segment / "crawl_generate"
    files = sorted(path for path in folder.glob("part-*") if path.is_file())
    if not files:
        raise StoreError(f"{segment}: no fetch list: {folder} has no part files")
    return files


def fetch_list(files: Iterable[Path]) -> Iterator[tuple[str, CrawlDatum]]:
    """Yields all entries of a fetch list."""
    for path in files:
        with SequenceFileReader(path) as reader:
            for key, value in reader:
                yield DataInput(key).read_text(), CrawlDatum.from_bytes(value)


def count_entries(files: Iterable[Path]) -> int:
    """Counts the entries of a fetch list."""
    count = 0
    for path in files:
        with SequenceFileReader(path) as reader:
            count += sum(1 for _ in reader)
    return count


class Later:
    """Takes the place of an item while the address of its host is being looked up."""


LATER: Final = Later()


class Feeder:
    """Items of the fetch list one by one, without those that an earlier run of the same fetch
    settled.
    """

    def __init__(
        self,
        entries: Iterable[tuple[str, CrawlDatum]],
        key: QueueKey,
        *,
        settled: Counter[str] | None = None,
        normalize: Change | None = None,
        keep: Change | None = None,
        mine: Callable[[str], bool] = lambda queue_id: True,
        announce: Callable[[str], None] = lambda url: None,
        addresses: HostAddresses | None = None,
    ) -> None:
        """`mine` says whether this process fetches a queue; what belongs to others is passed over.

        `announce` gets a URL of each queue that comes up. `addresses` are what `key` knows, if it
        needs them.
        """
        self._entries = ((listed, datum, self._change(listed)) for listed, datum in entries)
        self._key = key
        self._settled = settled if settled is not None else Counter()
        self._normalize = normalize
        self._keep = keep
        self._mine = mine
        self._announce = announce
        self._announced: set[str] = set()
        self._addresses = addresses
        self._ahead: deque[_Entry] = deque()
        self.done = False
        self.waits = False
        """The address of the next host is being looked up."""
        self.total = 0
        """Listed URLs that this process is responsible for, settled ones included."""

    def next(self) -> FetchItem | tuple[str, CrawlDatum, Outcome] | Later | None:
        """Returns the next item; a URL that can't be fetched with its outcome; LATER; None at the
        end (`done`).
        """
        while (entry := self._entry()) is not None:
            self.waits = isinstance(entry, Later)
            if isinstance(entry, Later):
                return entry
            listed, datum, url = entry
            queue_id = None if url is None else self._key(url)
            if not self._mine(queue_id or listed):
                continue
            self.total += 1
            if self._settled.get(listed, 0) > 0:
                self._settled[listed] -= 1
                continue
            if url is None:
                return listed, datum, Outcome.SKIPPED_FILTERED
            if queue_id is None:
                return listed, datum, Outcome.SKIPPED_INVALID
            self._announce_once(url, queue_id)
            return FetchItem(url, datum, queue_id, listed)
        self.done = True
        return None

    def _entry(self) -> _Entry | Later | None:
        """Returns the next entry, once the address of its host is known."""
        if self._addresses is None:
            return next(self._entries, None)
        while len(self._ahead) < AHEAD and (entry := next(self._entries, None)) is not None:
            self._ahead.append(entry)
            if entry[2] is not None:
                self._addresses.begin(entry[2])
        if not self._ahead:
            return None
        url = self._ahead[0][2]
        waiting = url is not None and self._addresses.begin(url) is not None
        return LATER if waiting else self._ahead.popleft()

    def _announce_once(self, url: str, queue_id: str) -> None:
        if queue_id not in self._announced:
            if len(self._announced) >= REMEMBERED:
                self._announced.clear()
            self._announced.add(queue_id)
            self._announce(url)

    def _change(self, url: str) -> str | None:
        result: str | None = url
        try:
            if self._normalize is not None:
                result = self._normalize(url)
            if self._keep is not None and result is not None:
                result = self._keep(result)
        except UrlError as exc:
            log.warning("skipping %s: %s", url, exc)
            return None
        return result
