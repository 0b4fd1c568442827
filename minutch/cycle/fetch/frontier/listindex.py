"""Indexes a fetch list by host: how many URLs each host has, and where they lie.

Records stay in their files; the index takes 8 bytes a URL, and a name and a few numbers a host. It
hands out the hosts, those with the most URLs first, and reads a host's URLs when they are wanted,
in the order of the list.

    parts ─ spans ─ host of each key ─ (host, place) sorted ─ hosts by their number of URLs
               └─ refused: no URL, or filters refuse it

One pass (`ListPass`) reads the list in bulk, and leaves out what an earlier run of the same fetch
settled. A part whose records can't be read one by one where they lie (compressed in blocks, on
another machine, of an old version) is first copied to a plain file.

Source: org.apache.nutch.fetcher.QueueFeeder: fetcher.filter.urls, fetcher.normalize.urls.
"""

from __future__ import annotations

import logging
import os
import struct
from bisect import bisect_right
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np
import numpy.typing as npt

from minutch.cycle.fetch.frontier.queueitems import Dropped, FetchItem
from minutch.cycle.fetch.ledger import OUTCOMES, Outcome
from minutch.errors import FormatError, StoreError, UrlError
from minutch.hadoop.formats.batch import Batch
from minutch.hadoop.formats.compress import DEFAULT_CODEC, codec
from minutch.hadoop.formats.javaio import DataInput
from minutch.hadoop.formats.sequencefile import SequenceFileReader
from minutch.hadoop.formats.sequencewriter import NONE, RECORD, TEXT, SequenceFileWriter
from minutch.paths import is_local
from minutch.records.crawldatum import CrawlDatum
from minutch.urls.hostname import canonical_host
from minutch.urls.hostnumbers import HostNumbers, Numbers
from minutch.urls.parts import host_of
from minutch.work.tables.spannedfile import SpannedFile, find_plain
from minutch.work.tables.spans import opened

log = logging.getLogger(__name__)

DATUM: Final = "org.apache.nutch.crawl.CrawlDatum"
PLACE_BITS: Final = 40
"""Of a place in the list, its parts one after the other: a list has up to a tebibyte."""
# A row is host << 40 | place: sorted, the rows of a host stand together, in list order.
_PLACE: Final = np.uint64((1 << PLACE_BITS) - 1)
_MOST_HOSTS: Final = 1 << (64 - PLACE_BITS)
_LENGTHS: Final = struct.Struct(">ii")
_USUAL_RECORD: Final = 512
"""Bytes that are read of a record at first."""

Places = npt.NDArray[np.uint64]


class Change:
    """Normalizes and filters the URLs of a list (fetcher.normalize.urls, fetcher.filter.urls)."""

    def __init__(self, *steps: Callable[[str], str | None]) -> None:
        self._steps = steps

    def __bool__(self) -> bool:
        return bool(self._steps)

    def __call__(self, url: str) -> str | None:
        """Returns the URL to fetch; None if it is not to be fetched."""
        found: str | None = url
        try:
            for step in self._steps:
                found = None if found is None else step(found)
        except UrlError as exc:
            log.warning("skipping %s: %s", url, exc)
            return None
        return found


NO_CHANGE: Final = Change()


class ListPass:
    """What one pass over a fetch list finds."""

    def __init__(self, change: Change, settled: Counter[str]) -> None:
        """`settled` are the URLs that are left out, and how often each."""
        self.parts: list[ListPart] = []
        self.records = 0
        """URLs of the list, settled ones included."""
        self.hosts: list[str] = []
        """By their numbers."""
        self.places: list[Places] = []
        """Number of its host and place of each URL that may be fetched, in one number."""
        self.refused: deque[tuple[int, Outcome]] = deque()
        """Places of the others, and why they may not."""
        self._change = change
        self._settled = settled
        self._codes: dict[str, int] = {}

    def read(self, files: Iterable[Path], scratch: Path) -> None:
        """Reads the parts. A copy of one goes to a file whose name begins with that of `scratch`.
        Raises FormatError, StoreError.
        """
        hosts = HostNumbers(self._code, missing=-Outcome.SKIPPED_INVALID)
        for number, path in enumerate(files):
            file = opened(path, DATUM)
            try:
                self._take(file, hosts)
            except _NotInPlaceError:
                copy = scratch.with_name(f"{scratch.name}-{number}")
                _copy(path, copy)
                self._take(opened(copy, DATUM), hosts)

    def _take(self, file: SpannedFile, numbers: HostNumbers) -> None:
        begin = self.parts[-1].end if self.parts else 0
        if (begin + file.size) >> PLACE_BITS:
            raise StoreError(f"{file.path}: the fetch list is larger than {1 << PLACE_BITS} bytes")
        # Copies: a part that turns out not to be in place is read again from the start.
        found, refused, settled, count = [], self.refused.copy(), self._settled.copy(), 0
        for base, batch in _batches(file):
            places, codes = _places_of(batch, begin + base), self._codes_of(batch, numbers)
            wanted = ~_settled_rows(batch, settled)
            for row in np.flatnonzero(wanted & (codes < 0)):
                refused.append((int(places[row]), OUTCOMES[-int(codes[row])]))
            wanted &= codes >= 0
            hosts = codes[wanted].astype(np.uint64) << np.uint64(PLACE_BITS)
            found.append(hosts | places[wanted].astype(np.uint64))
            count += batch.size
        self.refused, self._settled = refused, settled
        self.places += found
        self.records += count
        self.parts.append(ListPart(file, begin))

    def _codes_of(self, batch: Batch, numbers: HostNumbers) -> Numbers:
        """Returns a number for the host of each record; where it can't be fetched, its outcome
        below zero.
        """
        # URLs are changed one by one in Python; else a kernel numbers the hosts.
        if self._change:
            return np.array([self._code_of(url) for url in _urls(batch)], np.int64)
        return numbers.of(batch.keys, batch.key_at, batch.key_len)

    def _code_of(self, listed: str) -> int:
        url = self._change(listed)
        if url is None:
            return -Outcome.SKIPPED_FILTERED
        host = host_of(url)
        return -Outcome.SKIPPED_INVALID if host is None else self._code(host)

    def _code(self, host: str) -> int:
        host = canonical_host(host)
        code = self._codes.setdefault(host, len(self.hosts))
        if code == len(self.hosts):
            self.hosts.append(host)
            if code >= _MOST_HOSTS:
                raise StoreError(f"the fetch list has more than {_MOST_HOSTS} hosts")
        return code


class ListPart:
    """A part file, opened to read records at their places; it begins at `begin` of the list."""

    def __init__(self, file: SpannedFile, begin: int) -> None:
        self.path, self.begin, self.end = file.path, begin, begin + file.size
        self._is_compressed = file.compression == RECORD
        self._descriptor = os.open(file.path, os.O_RDONLY | os.O_CLOEXEC)

    def read(self, place: int) -> tuple[str, CrawlDatum]:
        """Reads a record, URL and datum. Raises FormatError."""
        at = place - self.begin
        # pread has no position to share: hosts are read in any order.
        data = os.pread(self._descriptor, _USUAL_RECORD, at)
        try:
            size, key_size = _LENGTHS.unpack_from(data)
            end, value_at = _LENGTHS.size + size, _LENGTHS.size + key_size
            # Few records: with long metadata.
            if end > len(data):
                data += os.pread(self._descriptor, end - len(data), at + len(data))
            value = data[value_at:end]
            if self._is_compressed:
                value = codec(DEFAULT_CODEC).decompress(value)
            url = DataInput(data[_LENGTHS.size : value_at]).read_text()
            return url, CrawlDatum.from_bytes(value)
        except (FormatError, struct.error) as exc:
            raise FormatError(
                f"no record: {exc}", path=self.path, offset=at, expected="a URL and a CrawlDatum"
            ) from exc

    def close(self) -> None:
        """Closes the file."""
        os.close(self._descriptor)


class _NotInPlaceError(Exception):
    """Records can't be read where they lie."""


def _batches(file: SpannedFile) -> Iterator[tuple[int, Batch]]:
    """Yields the records of a file, where they lie, in batches, each after the offset of its
    buffer.
    """
    if not is_local(file.path) or file.compression not in (NONE, RECORD):
        raise _NotInPlaceError
    for span in file.spans():
        if span.end <= span.start:
            continue
        stretch = file.stretch(span)
        batch = None if stretch is None else find_plain(stretch)
        if stretch is None or batch is None:
            raise _NotInPlaceError
        yield span.start - stretch.start, batch


def _places_of(batch: Batch, base: int) -> Numbers:
    """Returns where each record begins: its lengths, before the length of the key's text."""
    sizes = batch.key_len.astype(np.int64)
    # Bytes of the key's length by WritableUtils.writeVInt: up to 127 one, then one and its bytes.
    vints = np.where(sizes < 128, 1, np.where(sizes < 256, 2, np.where(sizes < 1 << 16, 3, 4)))
    return batch.key_at + (base - _LENGTHS.size) - vints


def _urls(batch: Batch) -> Iterator[str]:
    data = batch.keys.data
    for at, length in zip(batch.key_at.tolist(), batch.key_len.tolist(), strict=True):
        yield str(data[at : at + length], "utf-8", "surrogateescape")


def _settled_rows(batch: Batch, settled: Counter[str]) -> npt.NDArray[np.bool_]:
    """Returns the mask of the records that an earlier run settled, each as often as it did; takes
    them off the count.
    """
    found = np.zeros(batch.size, np.bool_)
    if settled:
        for row, url in enumerate(_urls(batch)):
            if settled.get(url):
                settled[url] -= 1
                found[row] = True
    return found


def _copy(path: Path, copy: Path) -> None:
    """Writes a part's records to a plain file. Raises FormatError for damage."""
    copy.unlink(missing_ok=True)
    with SequenceFileReader(path) as reader, SequenceFileWriter(copy, TEXT, DATUM) as writer:
        for key, value in reader:
            writer.append_raw(key, value)


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
        # Where another host begins in the sorted rows.
        starts = np.flatnonzero(np.diff(numbers, prepend=np.int32(-1)))
        ends, numbers = np.append(starts[1:], len(numbers)), numbers[starts]
        # Starts - ends is minus the number of URLs: most first.
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
