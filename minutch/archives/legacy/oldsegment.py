"""Reads a segment of Nutch 0.4 to 0.7 from disk: ArrayFiles, one folder each.

    fetchlist           FetchListEntry*     the pages to fetch, in order
    fetcher             FetcherOutput*      the fetched pages, in order of arrival
    fetcher_output      FetcherOutput*      the same, for a segment not parsed (from 0.5)
    fetcher_content     FetcherContent*     0.4
    fetcher_text        FetcherText*        0.4
    content             Content*            from 0.5
    parse_text          ParseText*          from 0.5
    parse_data          ParseData*          from 0.5

The n-th records of all folders but `fetchlist` belong to one page. This and `fetcher_output` are
documented by Nutch's source of March 2005 (net.nutch.fetcher.FetcherOutput,
net.nutch.segment.SegmentReader).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from heapq import merge
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import Final, TypeVar

from minutch.errors import FormatError, StoreError
from minutch.hadoop.formats.mapfile import DATA
from minutch.hadoop.formats.sequencefile import SequenceFileReader
from minutch.hadoop.formats.writables import Writable
from minutch.records.legacy import Content, FetcherContent, FetcherText, ParseData, ParseText
from minutch.records.legacyfetch import FetcherOutput, FetchListEntry

FETCHLIST: Final = "fetchlist"
FETCHER: Final = "fetcher"
UNPARSED: Final = "fetcher_output"
CLASSES: Final[dict[str, type[Writable]]] = {
    FETCHLIST: FetchListEntry,
    FETCHER: FetcherOutput,
    UNPARSED: FetcherOutput,
    "fetcher_content": FetcherContent,
    "fetcher_text": FetcherText,
    "content": Content,
    "parse_text": ParseText,
    "parse_data": ParseData,
}
"""Folder → class of its records."""
_LONG_SIZE: Final = 8

R = TypeVar("R", bound=Writable)


@dataclass(slots=True)
class Fetched:
    """The records of a fetched page; None for missing ones."""

    output: FetcherOutput
    content: Content | None = None
    data: ParseData | None = None
    text: str | None = None


@dataclass(slots=True)
class RawFetched:
    """The serialized records of a fetched page, by folder."""

    position: int
    values: dict[str, bytes]


class OldSegment:
    """A reader of an old segment."""

    def __init__(self, path: Path) -> None:
        """Raises StoreError if there is none."""
        self.path = path
        self.folders = [name for name in CLASSES if (path / name / DATA).is_file()]
        if FETCHLIST not in self.folders and self.fetcher is None:
            raise StoreError(
                f"{path} is no segment of Nutch before 0.8: it has neither {FETCHLIST} nor"
                f" {FETCHER}"
            )

    @property
    def fetcher(self) -> str | None:
        """Folder of the fetcher's output; None if nothing was fetched."""
        return next((name for name in (FETCHER, UNPARSED) if name in self.folders), None)

    @property
    def is_parsed(self) -> bool:
        """True if the pages are parsed."""
        return bool({"fetcher_text", "parse_data"} & set(self.folders))

    def fetchlist(self) -> Iterator[FetchListEntry]:
        """Yields the fetch list; nothing if there is none. Raises FormatError."""
        if FETCHLIST in self.folders:
            for position, value in self._values(FETCHLIST):
                yield self.decode(FETCHLIST, FetchListEntry, position, value)

    def fetched(self) -> Iterator[RawFetched]:
        """Yields the fetched pages in order of arrival. Raises FormatError, also for pages without
        a FetcherOutput.
        """
        fetcher = self.fetcher
        if fetcher is None:
            return
        names = [name for name in self.folders if name not in {FETCHLIST, FETCHER, UNPARSED}]
        streams = [self._named(name) for name in (fetcher, *names)]
        for position, rows in groupby(merge(*streams, key=itemgetter(0)), key=itemgetter(0)):
            values = {name: value for _, name, value in rows}
            if fetcher not in values:
                raise FormatError(
                    "a page without its record in the fetcher's output",
                    path=self.path / fetcher / DATA,
                    expected=f"position {position}, which {', '.join(values)} has",
                )
            yield RawFetched(position, values)

    def read_output(self, raw: RawFetched) -> FetcherOutput:
        """Reads only the FetcherOutput of a page. Raises FormatError."""
        fetcher = self.fetcher or FETCHER
        return self.decode(fetcher, FetcherOutput, raw.position, raw.values[fetcher])

    def read(self, raw: RawFetched) -> Fetched:
        """Reads the records of a page. Raises FormatError."""
        fetched = Fetched(self.read_output(raw))
        for name, value in raw.values.items():
            record = self.decode(name, CLASSES[name], raw.position, value)
            if isinstance(record, Content):
                fetched.content = record
            elif isinstance(record, FetcherContent):
                url = fetched.output.entry.page.url
                fetched.content = Content(url, url, record.content)
            elif isinstance(record, ParseData):
                fetched.data = record
            elif isinstance(record, ParseText | FetcherText):
                fetched.text = record.text
        return fetched

    def decode(self, folder: str, kind: type[R], position: int, value: bytes) -> R:
        """Reads a record; a FormatError names its file and position."""
        try:
            return kind.from_bytes(value)
        except FormatError as exc:
            exc.what = f"bad {kind.__name__} at position {position}: {exc.what}"
            exc.path = str(self.path / folder / DATA)
            raise

    def _named(self, folder: str) -> Iterator[tuple[int, str, bytes]]:
        return ((position, folder, value) for position, value in self._values(folder))

    def _values(self, folder: str) -> Iterator[tuple[int, bytes]]:
        with SequenceFileReader(self.path / folder / DATA) as reader:
            for key, value in reader:
                if len(key) != _LONG_SIZE:
                    raise FormatError(
                        "wrong key of an ArrayFile", path=reader.name, offset=reader.position,
                        expected="a long", found=f"{len(key)} bytes",
                    )  # fmt: skip
                yield int.from_bytes(key, "big"), value
