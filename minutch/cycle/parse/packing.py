"""Packs the records of documents as the files of a segment hold them.

    text, data   a serialized ParseText and ParseData
    crawl        record*, as they lie in a SequenceFile without its markers
    record       int length of key and value | int length of key | key | value
    key, value   Text, the URL; CrawlDatum

Values are compressed where the files are compressed record by record (`partwriters`).
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator, Sequence
from itertools import islice, pairwise
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np
from isal import isal_zlib

from minutch.cycle.parse.pagerecords import CrawlParseRecord, LinkRecords, PageRecords
from minutch.cycle.segment.store import CRAWL_PARSE, PARSE_DATA, PARSE_TEXT
from minutch.cycle.segment.storedrecords import text_key
from minutch.hadoop.formats.javaio import encode_text
from minutch.hadoop.formats.sequencewriter import RECORD, record_places
from minutch.kernels.deflate import LIBRARY_OVERHEAD, SHORT, Compressor, deflate, new_places
from minutch.kernels.native import U8, Slices
from minutch.records.crawldatum import CrawlDatum
from minutch.records.links import OutlinkRun
from minutch.records.parsedata import serialized

if TYPE_CHECKING:
    from minutch.cycle.parse.partwriters import PartSettings

_REMEMBERED: Final = 4096
_LENGTHS: Final = struct.Struct(">ii")

Compress = Callable[[Sequence[bytes]], list[bytes]]


class PackedDocument(NamedTuple):
    """A document's records: `url` in UTF-8, `text` None where texts are not stored, `crawl` whole
    records.

    `is_extra` says that it was found inside another page (and has a URL of its own).
    """

    url: bytes
    text: bytes | None
    data: bytes
    crawl: bytes
    is_extra: bool = False


class DocumentPacker:
    """Serializes documents, those of many pages at once; most links of a page have equal data,
    which are made once.
    """

    def __init__(self, text: Compress, data: Compress, crawl: Compress) -> None:
        """Takes the compressing function of each folder."""
        self._text = text
        self._data = data
        self._crawl = crawl
        self._datums: dict[tuple[float, ...], bytes] = {}

    @classmethod
    def for_segment(cls, settings: PartSettings) -> DocumentPacker:
        """Makes a packer for the part files of a segment."""
        folders = (PARSE_TEXT, PARSE_DATA, CRAWL_PARSE)
        return cls(*(compressor(settings.compression_of(folder)) for folder in folders))

    @classmethod
    def compressing(cls, compression: str) -> DocumentPacker:
        """Makes a packer for a file in which all values have the same compression."""
        compress = compressor(compression)
        return cls(compress, compress, compress)

    def pack(self, output: PageRecords, *, is_extra: bool) -> PackedDocument:
        """Returns a document's records."""
        return self.pack_all([(output, is_extra)])[0]

    def pack_all(self, outputs: Sequence[tuple[PageRecords, bool]]) -> list[PackedDocument]:
        """Returns the records of documents, each with whether it was found inside another page."""
        texts = iter(
            self._text([serialized(page.text) for page, _ in outputs if page.text is not None])
        )
        data = self._data([page.data.to_bytes() for page, _ in outputs])
        crawl = self._crawl_records([page.entries for page, _ in outputs])
        return [
            PackedDocument(
                encode_text(page.url),
                None if page.text is None else next(texts),
                found,
                records,
                is_extra,
            )
            for (page, is_extra), found, records in zip(outputs, data, crawl, strict=True)
        ]

    def crawl_records(self, entries: Sequence[CrawlParseRecord]) -> bytes:
        """Returns the records for crawl_parse, one after the other."""
        return self._crawl_records([entries])[0]

    def _crawl_records(self, pages: Sequence[Sequence[CrawlParseRecord]]) -> list[bytes]:
        datums = [
            entry.datum if isinstance(entry, LinkRecords) else entry[1]
            for entries in pages
            for entry in entries
        ]
        values = self._crawl([self._datum(datum) for datum in datums])
        found = iter(_records([entry for entries in pages for entry in entries], values))
        return [b"".join(islice(found, len(entries))) for entries in pages]

    def _datum(self, datum: CrawlDatum) -> bytes:
        if datum.metadata or datum.signature:
            return datum.to_bytes()
        fields = (
            datum.status,
            datum.fetch_interval,
            datum.score,
            datum.fetch_time,
            datum.modified_time,
            datum.retries,
        )
        value = self._datums.get(fields)
        if value is None:
            if len(self._datums) >= _REMEMBERED:
                self._datums.clear()
            value = self._datums[fields] = datum.to_bytes()
        return value


def compressor(compression: str) -> Compress:
    """Returns the function that compresses values for files with this compression."""
    return _compressed if compression == RECORD else list


def _compressed(values: Sequence[bytes]) -> list[bytes]:
    """Returns the values as zlib streams.

    A kernel is for the short ones; for the others ISA-L's level 1 takes a quarter of the time of
    zlib's default, and a twentieth more space.
    """
    streams = iter(_short_streams([value for value in values if len(value) <= SHORT]))
    return [
        next(streams) if len(value) <= SHORT else bytes(isal_zlib.compress(value, 1))
        for value in values
    ]


def _short_streams(values: list[bytes]) -> list[bytes]:
    data = np.frombuffer(b"".join(values), np.uint8)
    sizes = np.array([*map(len, values)], np.int32)
    starts = np.cumsum(sizes, dtype=np.int64) - sizes
    out = np.empty(len(data) + LIBRARY_OVERHEAD * len(values), np.uint8)
    out_at, out_sizes = np.empty_like(starts), np.empty_like(sizes)
    streams, only_short = Slices(out, out_at, out_sizes), Compressor(new_places(), 0, 0)
    deflate(starts + data.ctypes.data, sizes, streams, only_short)
    packed = out[: int(out_sizes.sum())].tobytes()
    return [
        packed[at : at + size] for at, size in zip(out_at.tolist(), out_sizes.tolist(), strict=True)
    ]


def _records(entries: Sequence[CrawlParseRecord], values: Sequence[bytes]) -> list[bytes]:
    """Returns the records of each entry, with its value."""
    runs = [
        (entry.links, value)
        for entry, value in zip(entries, values, strict=True)
        if isinstance(entry, LinkRecords)
    ]
    linked = iter(linked_records(runs) if runs else ())
    return [
        next(linked)
        if isinstance(entry, LinkRecords)
        else _record(text_key(encode_text(entry[0])), value)
        for entry, value in zip(entries, values, strict=True)
    ]


def _record(key: bytes, value: bytes) -> bytes:
    return _LENGTHS.pack(len(key) + len(value), len(key)) + key + value


def linked_records(runs: Sequence[tuple[OutlinkRun, bytes]]) -> list[bytes]:
    """Returns a record for each link of each run, all of a run with the value that comes with
    it.
    """
    from minutch.kernels.outlinks import RECORD_HEAD
    from minutch.kernels.outlinks import linked_records as write_records

    data = b"".join([run.data for run, _ in runs])
    sizes = [len(value) for _, value in runs]
    table = np.empty((len(runs), 3), np.int64)
    table[:, 0] = [run.length for run, _ in runs]
    table[:, 1], table[:, 2] = np.cumsum(sizes) - sizes, sizes
    out = np.empty(len(data) + int((table[:, 0] * (RECORD_HEAD + table[:, 2])).sum()), np.uint8)
    ends = np.empty(len(runs), np.int64)
    values = b"".join([value for _, value in runs])
    write_records(np.frombuffer(data, np.uint8), table, np.frombuffer(values, np.uint8), out, ends)
    return _cut(out, [0, *ends.tolist()])


def _cut(data: U8, bounds: Sequence[int]) -> list[bytes]:
    """Returns the strings between each bound and the next one."""
    return [data[start:end].tobytes() for start, end in pairwise(bounds)]


def are_records(crawl: bytes) -> bool:
    """Tells whether records follow one another up to the end, as `PackedDocument.crawl` has
    them.
    """
    at, size, unpack = 0, len(crawl), _LENGTHS.unpack_from
    last = size - _LENGTHS.size
    while at < size:
        if at > last:
            return False
        length, key_length = unpack(crawl, at)
        if not 0 <= key_length <= length:
            return False
        at += _LENGTHS.size + length
    return at == size


def unpack_records(crawl: bytes) -> Iterator[tuple[bytes, bytes]]:
    """Yields key and value of each record of `PackedDocument.crawl`. Raises FormatError."""
    for start, end, key_end in record_places(crawl):
        yield crawl[start + _LENGTHS.size : key_end], crawl[key_end:end]
