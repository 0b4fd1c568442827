"""The records of a page's documents as the files of a segment hold them, and the part files that a parse writes.

    text, data   a serialized ParseText and ParseData
    crawl        record*, as they lie in a SequenceFile without its markers
    record       int length of key and value | int length of key | key: Text, the URL | value: CrawlDatum

Values are compressed where the files are compressed record by record.

The parts of parse_data, parse_text and crawl_parse go by the page's URL. Pages come in the order of their URLs and go
straight into the files. Pages found inside others come out of order: they are kept apart, and in the end the MapFiles
concerned are rewritten with them in their places (crawl_parse is in no order and gets their records at its end). Of
several pages with one URL the first stays, as Nutch's reducer has it.
"""

from __future__ import annotations

import pickle
import shutil
import struct
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import Final, NamedTuple, Self

import numpy as np
from isal import isal_zlib

from minutch.conf import Configuration
from minutch.formats.checksum import crc_path
from minutch.formats.javahash import partition
from minutch.formats.javaio import DataInput, encode_text
from minutch.formats.mapfile import DATA, TEXT, MapFileReader, MapFileWriter
from minutch.formats.recordsort import merge_records, sort_records
from minutch.formats.sequencefile import RECORD, SequenceFileReader, SequenceFileWriter
from minutch.parse.output import Entry, Linked, PageOutput
from minutch.records.crawldatum import CrawlDatum
from minutch.records.outlinkrun import OutlinkRun
from minutch.records.parsetext import ParseText
from minutch.segment.store import CRAWL_PARSE, LAYOUTS, PARSE_DATA, PARSE_TEXT, compression_of, text_key
from minutch.tables.database import part_name

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


_EXTRA = "extra"


class PartWriters:
    """Writers for all parts (mapreduce.job.reduces) below a directory; `finish` belongs at the end."""

    def __init__(self, directory: Path, conf: Configuration, *, stores_text: bool) -> None:
        self._directory = directory
        self._compressions = {folder: compression_of(folder, conf) for folder in (PARSE_DATA, PARSE_TEXT, CRAWL_PARSE)}
        self._folders = (PARSE_DATA, PARSE_TEXT) if stores_text else (PARSE_DATA,)
        self._parts = range(max(1, conf.get_int("mapreduce.job.reduces", 1)))
        self._maps = {(folder, part): self._map_file(folder, part) for folder in self._folders for part in self._parts}
        self._crawl = [self._flat_file(CRAWL_PARSE, self._path(CRAWL_PARSE, part)) for part in self._parts]
        self._extra: SequenceFileWriter | None = None
        self._last = b""

    def _path(self, folder: str, part: int) -> Path:
        (self._directory / folder).mkdir(parents=True, exist_ok=True)
        return self._directory / folder / part_name(part)

    def _map_file(self, folder: str, part: int) -> MapFileWriter:
        value_class = LAYOUTS[folder].value_class
        return MapFileWriter(self._path(folder, part), TEXT, value_class, compression=self._compressions[folder])

    def _flat_file(self, folder: str, path: Path) -> SequenceFileWriter:
        return SequenceFileWriter(path, TEXT, LAYOUTS[folder].value_class, compression=self._compressions[folder])

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        with ExitStack() as stack:
            for writer in (*self._maps.values(), *self._crawl, *((self._extra,) if self._extra else ())):
                stack.callback(writer.close)

    def write(self, document: PackedDocument) -> bool:
        """Write a page's records; pages must come in the order of their URLs. False if there was one of this URL."""
        if document.url == self._last:
            return False
        self._last = document.url
        part = self._part_of(document.url)
        key = text_key(document.url)
        for folder in self._folders:
            compressed = self._compressions[folder] == RECORD
            self._maps[folder, part].append_raw(key, _value(document, folder), compressed=compressed)
        self._crawl[part].append_records(document.crawl)
        return True

    def keep(self, document: PackedDocument) -> None:
        """Take a page that was found inside another one; `finish` writes it."""
        if self._extra is None:
            self._extra = SequenceFileWriter(self._directory / _EXTRA, "", "")
        self._extra.append_raw(document.url, pickle.dumps(document))

    def _part_of(self, url: bytes) -> int:
        return partition(url, len(self._parts)) if len(self._parts) > 1 else 0

    def finish(self) -> int:
        """Put the pages found inside others in their places; how many were left out because their URLs were there."""
        if self._extra is None:
            return 0
        self._extra.close()
        for writer in self._maps.values():
            writer.close()
        left_out = 0
        with ExitStack() as stack:
            files = [stack.enter_context(MapFileReader(self._path(PARSE_DATA, part))) for part in self._parts]
            extras = {key: stack.enter_context(self._flat_file(key[0], self._extra_path(*key))) for key in self._maps}
            for url, document in self._extra_documents():
                part = self._part_of(url)
                if files[part].get(text_key(url)) is not None:
                    left_out += 1
                    continue
                for folder in self._folders:
                    compressed = self._compressions[folder] == RECORD
                    extras[folder, part].append_raw(url, _value(document, folder), compressed=compressed)
                self._crawl[part].append_records(document.crawl)
        for folder, part in self._maps:
            self._merge(folder, part)
        _remove(self._directory / _EXTRA)
        return left_out

    def _extra_path(self, folder: str, part: int) -> Path:
        return self._directory / f"{_EXTRA}-{folder}-{part}"

    def _extra_documents(self) -> Iterator[tuple[bytes, PackedDocument]]:
        """The pages that were kept, in the order of their URLs, of each URL the first."""
        with SequenceFileReader(self._directory / _EXTRA) as reader:
            last = None
            for url, packed in sort_records(reader):
                if url != last:
                    yield url, pickle.loads(packed)
                last = url

    def _merge(self, folder: str, part: int) -> None:
        """Rewrite one MapFile with the pages that were kept for it."""
        path, extra = self._path(folder, part), self._extra_path(folder, part)
        old = self._directory / f"{_EXTRA}-old"
        path.rename(old)
        with self._map_file(folder, part) as writer:
            for url, value in merge_records((_urls_and_values(old / DATA), _raw(extra))):
                writer.append_raw(text_key(url), value)
        shutil.rmtree(old)
        _remove(extra)


def _value(document: PackedDocument, folder: str) -> bytes:
    return (document.text or b"") if folder == PARSE_TEXT else document.data


def _urls_and_values(path: Path) -> Iterator[tuple[bytes, bytes]]:
    """The records of a file with their URLs in UTF-8 for keys."""
    return ((DataInput(key).read_text_bytes(), value) for key, value in _raw(path))


def _raw(path: Path) -> Iterator[tuple[bytes, bytes]]:
    with SequenceFileReader(path) as reader:
        yield from reader


def _remove(path: Path) -> None:
    path.unlink()
    crc_path(path).unlink(missing_ok=True)
