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

An ArrayFile of Nutch 0.4 and 0.5 is a MapFile with the keys 0, 1, 2, ... whose files, the index
among them, are SequenceFiles of version 1, without markers and checksums:

    file     "SEQ" byte(1), utf8 key class, utf8 value class, record*
    record   int length of key and value, int length of key, key, value

The classes are named in short: `long` is LongWritable.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from hashlib import md5
from heapq import merge
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import Final, TypeVar

from minutch.errors import FormatError, StoreError
from minutch.hadoop.formats.checksum import WholeOrNothing
from minutch.hadoop.formats.javaio import DataOutput, encode_modified_utf8
from minutch.hadoop.formats.mapfile import DATA, INDEX, INDEX_INTERVAL
from minutch.hadoop.formats.sequencefile import SequenceFileReader
from minutch.hadoop.formats.sequencewriter import MAGIC
from minutch.hadoop.formats.writables import MapWritable, Text, Writable
from minutch.paths import as_path
from minutch.records import crawldatum as status
from minutch.records import legacy, legacyfetch, protocol
from minutch.records.crawldatum import SECONDS_PER_DAY, CrawlDatum
from minutch.records.legacy import FetcherContent, FetcherText, OldPage, OldParseText
from minutch.records.legacyfetch import FetcherOutput, FetchListEntry
from minutch.records.links import Outlink
from minutch.records.metadata import (
    CONTENT_TYPE_KEY,
    FETCH_STATUS_KEY,
    PROTO_STATUS_KEY,
    SCORE_KEY,
    SEGMENT_NAME_KEY,
    SIGNATURE_KEY,
    Metadata,
)
from minutch.records.parsedata import FAILED, SUCCESS, ParseData, ParseStatus
from minutch.records.protocol import Content

FETCHLIST: Final = "fetchlist"
FETCHER: Final = "fetcher"
UNPARSED: Final = "fetcher_output"
CLASSES: Final[dict[str, type[Writable]]] = {
    FETCHLIST: FetchListEntry,
    FETCHER: FetcherOutput,
    UNPARSED: FetcherOutput,
    "fetcher_content": FetcherContent,
    "fetcher_text": FetcherText,
    "content": legacy.OldContent,
    "parse_text": OldParseText,
    "parse_data": legacy.OldParseData,
}
"""Folder → class of its records."""
_LONG_SIZE: Final = 8

R = TypeVar("R", bound=Writable)
_FETCH_STATUS: Final = {
    protocol.SUCCESS: status.STATUS_FETCH_SUCCESS,
    protocol.NOTMODIFIED: status.STATUS_FETCH_NOTMODIFIED,
    protocol.RETRY: status.STATUS_FETCH_RETRY,
    protocol.EXCEPTION: status.STATUS_FETCH_RETRY,
    protocol.MOVED: status.STATUS_FETCH_REDIR_PERM,
    protocol.TEMP_MOVED: status.STATUS_FETCH_REDIR_TEMP,
}
"""Code of ProtocolStatus → status; all others are fetch_gone."""
_OLD_STATUS: Final = {
    status.STATUS_FETCH_SUCCESS: legacyfetch.SUCCESS,
    status.STATUS_FETCH_NOTMODIFIED: legacyfetch.SUCCESS,
    status.STATUS_FETCH_RETRY: legacyfetch.RETRY,
    status.STATUS_FETCH_GONE: legacyfetch.NOT_FOUND,
    status.STATUS_PARSE_FAILED: legacyfetch.CANT_PARSE,
}
_OWN_KEYS: Final = (SEGMENT_NAME_KEY, FETCH_STATUS_KEY, SCORE_KEY, SIGNATURE_KEY)
"""Metadata that import adds and export omits."""
_MD5_SIZE: Final = 16
_MOST_DAYS: Final = 127


@dataclass(slots=True)
class FetchedPage:
    """The records of a fetched page; None for missing ones."""

    output: FetcherOutput
    content: legacy.OldContent | None = None
    data: legacy.OldParseData | None = None
    text: str | None = None


@dataclass(slots=True)
class RawFetchedPage:
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

    def fetched(self) -> Iterator[RawFetchedPage]:
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
            yield RawFetchedPage(position, values)

    def read_output(self, raw: RawFetchedPage) -> FetcherOutput:
        """Reads only the FetcherOutput of a page. Raises FormatError."""
        fetcher = self.fetcher or FETCHER
        return self.decode(fetcher, FetcherOutput, raw.position, raw.values[fetcher])

    def read(self, raw: RawFetchedPage) -> FetchedPage:
        """Reads the records of a page. Raises FormatError."""
        fetched = FetchedPage(self.read_output(raw))
        for name, value in raw.values.items():
            record = self.decode(name, CLASSES[name], raw.position, value)
            if isinstance(record, legacy.OldContent):
                fetched.content = record
            elif isinstance(record, FetcherContent):
                url = fetched.output.entry.page.url
                fetched.content = legacy.OldContent(url, url, record.content)
            elif isinstance(record, legacy.OldParseData):
                fetched.data = record
            elif isinstance(record, OldParseText | FetcherText):
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


# Translates records of Nutch before 0.8 into current ones, and back; the only module that decides
# how they correspond. Pure: no I/O.
#
#     FetchListEntry     CrawlDatum of the fetch list: fetch time, retries, interval (days → s),
#                        score
#     FetcherOutput      CrawlDatum of the fetch: status, date, MD5 as signature
#     Content            Content; Properties have one value per name, so several are joined
#                        by commas
#     ParseData, Text    ParseData with the properties as the content's metadata, ParseText
#
# An entry that was not to be fetched (flag 0) counted as unchanged
# (net.nutch.tools.UpdateDatabaseTool), so it becomes fetch_notmodified. Old records can't express
# redirects, which were followed at once, nor URLs that the fetch skipped: these are not written.
# Current records have no room for an entry's anchors, next score and number of outlinks.


def listed_datum(entry: FetchListEntry) -> CrawlDatum:
    """Translates the entry of a fetch list."""
    page = entry.page
    return CrawlDatum(
        status.STATUS_DB_UNFETCHED,
        max(page.interval, 1) * SECONDS_PER_DAY,
        page.score,
        page.next_fetch,
        retries=page.retries,
    )


def fetch_datum(output: FetcherOutput, content_type: str | None) -> CrawlDatum:
    """Translates the result of a fetch."""
    datum, protocol_status = listed_datum(output.entry), output.outcome
    if output.entry.fetch:
        datum.status = _FETCH_STATUS.get(protocol_status.code, status.STATUS_FETCH_GONE)
    else:
        datum.status, protocol_status = (
            status.STATUS_FETCH_NOTMODIFIED,
            protocol.ProtocolStatus.of(protocol.NOTMODIFIED),
        )
    datum.fetch_time = output.fetch_date
    if datum.status == status.STATUS_FETCH_SUCCESS:
        datum.signature = output.md5
    elif datum.status == status.STATUS_FETCH_NOTMODIFIED:
        datum.signature = output.entry.page.md5
    datum.metadata = MapWritable({Text(PROTO_STATUS_KEY): protocol_status})
    if content_type and datum.status == status.STATUS_FETCH_SUCCESS:
        datum.metadata[Text(CONTENT_TYPE_KEY)] = Text(content_type)
    return datum


def content_of(
    old: legacy.OldContent, content_type: str, segment: str, datum: CrawlDatum
) -> Content:
    """Translates the content of a page."""
    metadata = Metadata.of(
        {**old.metadata, SEGMENT_NAME_KEY: segment, FETCH_STATUS_KEY: str(datum.status)}
    )
    metadata.set(SCORE_KEY, str(datum.score))
    return Content(old.url, old.base, old.content, content_type, metadata)


def parse_data_of(
    output: FetcherOutput, old: legacy.OldParseData | None, segment: str
) -> ParseData | None:
    """Translates a ParseData, or FetcherOutput of Nutch 0.4; None if it was not parsed."""
    if old is None and output.version != legacyfetch.WITH_PARSE:
        return None
    found = old or legacy.OldParseData(output.title, output.outlinks)
    parsed = (
        ParseStatus(SUCCESS) if output.status != legacyfetch.CANT_PARSE else ParseStatus(FAILED)
    )
    metadata = Metadata.of(
        {**found.metadata, SIGNATURE_KEY: output.md5.hex(), SEGMENT_NAME_KEY: segment}
    )
    metadata.set(SCORE_KEY, str(output.entry.page.score))
    links = [Outlink(link.to_url, link.anchor) for link in found.outlinks]
    return ParseData(found.status or parsed, found.title, links, metadata)


# -- the other direction ---------------------------------------------------------------------------


def fetch_list_entry(url: str, datum: CrawlDatum, outlinks: int = 0) -> FetchListEntry:
    """Makes the entry of a fetch list. As in new Pages of Nutch, the MD5 of a page never fetched is
    that of its URL.
    """
    signature = datum.signature if datum.signature and len(datum.signature) == _MD5_SIZE else None
    page = OldPage(
        url,
        signature or md5(encode_modified_utf8(url), usedforsecurity=False).digest(),
        datum.fetch_time,
        datum.retries,
        min(max(datum.fetch_interval // SECONDS_PER_DAY, 1), _MOST_DAYS),
        outlinks,
        datum.score,
        datum.score,
    )
    return FetchListEntry(datum.status != status.STATUS_FETCH_NOTMODIFIED, page)


def fetcher_output(
    url: str,
    datum: CrawlDatum,
    listed: CrawlDatum | None,
    content: bytes,
    parsed: ParseData | None,
    version: int,
) -> FetcherOutput | None:
    """Makes the record of a fetch; returns None for a status that has no equivalent."""
    old_status = _OLD_STATUS.get(datum.status)
    if old_status is None:
        return None
    entry = fetch_list_entry(
        url, listed or datum, len(parsed.outlinks) if parsed is not None else 0
    )
    entry.fetch = datum.status != status.STATUS_FETCH_NOTMODIFIED
    if not entry.fetch and datum.signature and len(datum.signature) == _MD5_SIZE:
        entry.page.md5 = datum.signature
    if old_status == legacyfetch.SUCCESS and parsed is not None and parsed.status.major == FAILED:
        old_status = legacyfetch.CANT_PARSE
    digest = md5(content, usedforsecurity=False).digest()
    output = FetcherOutput(entry, digest, old_status, datum.fetch_time, version=version)
    if version == legacyfetch.WITH_PARSE and parsed is not None:
        output.title, output.outlinks = parsed.title, _links(parsed)
    return output


def old_content(url: str, content: Content | None) -> legacy.OldContent:
    """Makes the content of a page, which is empty if there is none."""
    if content is None:
        return legacy.OldContent(url, url)
    return legacy.OldContent(
        content.url,
        content.base,
        content.content,
        content.content_type,
        _properties(content.metadata),
    )


def old_parse_data(parsed: ParseData | None) -> legacy.OldParseData:
    """Makes the ParseData of a page, which is empty if there is none."""
    if parsed is None:
        return legacy.OldParseData()
    properties = _properties(parsed.content_meta) | _properties(parsed.parse_meta)
    return legacy.OldParseData(parsed.title, _links(parsed), properties)


def _links(parsed: ParseData) -> list[legacy.OldOutlink]:
    return [legacy.OldOutlink(link.to_url, link.anchor) for link in parsed.outlinks]


def _properties(metadata: Metadata) -> dict[str, str]:
    return {name: ", ".join(values) for name, values in metadata.items() if name not in _OWN_KEYS}


_LONG = struct.Struct(">q")
_OLD_RECORD = struct.Struct(">iiq")
_SHORT_LONG = "long"


class OldArrayFileWriter(WholeOrNothing):
    """Writes an ArrayFile as Nutch 0.4 and 0.5 did."""

    def __init__(self, directory: str | Path, value_class: str) -> None:
        self.path = as_path(directory)
        self.path.mkdir(parents=True, exist_ok=True)
        self._data, self._index = (
            (self.path / name).open("wb", buffering=1 << 16) for name in (DATA, INDEX)
        )
        self._data.write(_old_head(value_class))
        self._index.write(_old_head(_SHORT_LONG))
        self._next = 0

    def append_value(self, value: bytes) -> None:
        """Appends a serialized value."""
        if self._next % INDEX_INTERVAL == 0:
            self._index.write(_OLD_RECORD.pack(16, 8, self._next) + _LONG.pack(self._data.tell()))
        self._data.write(_OLD_RECORD.pack(8 + len(value), 8, self._next))
        self._data.write(value)
        self._next += 1

    def close(self) -> None:
        self._data.close()
        self._index.close()

    def discard(self) -> None:
        """Closes and removes the unfinished files."""
        self.close()
        for name in (DATA, INDEX):
            (self.path / name).unlink(missing_ok=True)


def _old_head(value_class: str) -> bytes:
    out = DataOutput()
    out.write_bytes(MAGIC + b"\1")
    out.write_utf8(_SHORT_LONG)
    out.write_utf8(value_class)
    return out.getvalue()
