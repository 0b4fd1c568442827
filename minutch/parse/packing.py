"""The records of a page's documents as the files of a segment hold them. The one home of that, for parse and fetch.

    text, data   a serialized ParseText and ParseData
    crawl        record*, as they lie in a SequenceFile without its markers
    record       int length of key and value | int length of key | key: Text, the URL | value: CrawlDatum

Values are compressed where the files are compressed record by record.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable, Iterator
from typing import Final, NamedTuple

import numpy as np
from isal import isal_zlib

from minutch.conf import Configuration
from minutch.formats.javaio import encode_text
from minutch.formats.sequencefile import RECORD
from minutch.parse.output import Entry, Linked, PageOutput
from minutch.records.crawldatum import CrawlDatum
from minutch.records.outlinkrun import OutlinkRun
from minutch.records.parsetext import ParseText
from minutch.segment.store import CRAWL_PARSE, PARSE_DATA, PARSE_TEXT, compression_of, text_key

_REMEMBERED: Final = 4096
_LENGTHS: Final = struct.Struct(">ii")

Compress = Callable[[bytes], bytes]


class PackedDocument(NamedTuple):
    """A document's records: `url` in UTF-8, `text` None where texts are not stored, `crawl` whole records.

    `is_extra` says that it was found inside another page (and has a URL of its own).
    """

    url: bytes
    text: bytes | None
    data: bytes
    crawl: bytes
    is_extra: bool = False


class DocumentPacker:
    """Serializes documents; most links of a page have equal data, which are made once."""

    def __init__(self, text: Compress, data: Compress, crawl: Compress) -> None:
        """How the values of each folder are compressed."""
        self._text = text
        self._data = data
        self._crawl = crawl
        self._datums: dict[tuple[float, ...], bytes] = {}

    @classmethod
    def for_segment(cls, conf: Configuration) -> DocumentPacker:
        """For the files of a segment."""
        return cls(*(compressor(compression_of(name, conf)) for name in (PARSE_TEXT, PARSE_DATA, CRAWL_PARSE)))

    @classmethod
    def compressing(cls, compression: str) -> DocumentPacker:
        """For a file in which all values are compressed alike."""
        compress = compressor(compression)
        return cls(compress, compress, compress)

    def pack(self, output: PageOutput, *, is_extra: bool) -> PackedDocument:
        """A document's records."""
        return PackedDocument(
            encode_text(output.url),
            None if output.text is None else self._text(ParseText(output.text).to_bytes()),
            self._data(output.data.to_bytes()),
            self.crawl_records(output.entries),
            is_extra,
        )

    def crawl_records(self, entries: Iterable[Entry]) -> bytes:
        """The records for crawl_parse, one after the other."""
        return b"".join(
            linked_records(entry.links, self._datum(entry.datum))
            if isinstance(entry, Linked)
            else _record(text_key(encode_text(entry[0])), self._datum(entry[1]))
            for entry in entries
        )

    def _datum(self, datum: CrawlDatum) -> bytes:
        if datum.metadata or datum.signature:
            return self._crawl(datum.to_bytes())
        fields = (datum.status, datum.fetch_interval, datum.score, datum.fetch_time, datum.modified_time, datum.retries)
        packed = self._datums.get(fields)
        if packed is None:
            if len(self._datums) >= _REMEMBERED:
                self._datums.clear()
            packed = self._datums[fields] = self._crawl(datum.to_bytes())
        return packed


def compressor(compression: str) -> Compress:
    """How values are compressed in files with this compression."""
    return _compress if compression == RECORD else bytes


def _compress(data: bytes) -> bytes:
    """A zlib stream; ISA-L's level 1 takes a quarter of the time of zlib's default, and a twentieth more space."""
    return bytes(isal_zlib.compress(data, 1))


def _record(key: bytes, value: bytes) -> bytes:
    return _LENGTHS.pack(len(key) + len(value), len(key)) + key + value


def linked_records(links: OutlinkRun, value: bytes) -> bytes:
    """A record for each link, all with one value."""
    from minutch.kernels.outlinks import RECORD_HEAD
    from minutch.kernels.outlinks import linked_records as write_records

    out = np.empty(len(links.data) + len(links) * (RECORD_HEAD + len(value)), np.uint8)
    data, packed = (np.frombuffer(part, np.uint8) for part in (links.data, value))
    return out[: write_records(data, len(links), packed, out)].tobytes()


def unpack_records(crawl: bytes) -> Iterator[tuple[bytes, bytes]]:
    """Key and value of each record of `PackedDocument.crawl`."""
    start = 0
    while start < len(crawl):
        size, key_size = _LENGTHS.unpack_from(crawl, start)
        start += _LENGTHS.size
        yield crawl[start : start + key_size], crawl[start + key_size : start + size]
        start += size
