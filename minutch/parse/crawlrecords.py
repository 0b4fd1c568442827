"""The records of pages for crawl_parse, as they lie in a SequenceFile without its markers.

    record   int length of key and value | int length of key | key: Text, the URL | value: CrawlDatum

The value is compressed where the folder's files are compressed record by record.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable
from typing import Final

from isal import isal_zlib

from minutch.conf import Configuration
from minutch.formats.javaio import encode_text
from minutch.formats.sequencefile import RECORD
from minutch.parse.output import Entry, Linked
from minutch.records.crawldatum import CrawlDatum
from minutch.records.outlinkrun import OutlinkRun
from minutch.segment.store import compression_of, text_key

_REMEMBERED: Final = 4096
_LENGTHS: Final = struct.Struct(">ii")


def packer(folder: str, conf: Configuration) -> Callable[[bytes], bytes]:
    """How values of a folder are made ready: compressed, where its files are compressed by record."""
    return _compress if compression_of(folder, conf) == RECORD else bytes


def _compress(data: bytes) -> bytes:
    """A zlib stream; ISA-L's level 1 takes a quarter of the time of zlib's default, and a twentieth more space."""
    return bytes(isal_zlib.compress(data, 1))


class DatumPacker:
    """Makes data ready for a file, by `pack`; most links of a page have equal ones, which are made once."""

    def __init__(self, pack: Callable[[bytes], bytes]) -> None:
        self._pack = pack
        self._packed: dict[tuple[float, ...], bytes] = {}

    def __call__(self, datum: CrawlDatum) -> bytes:
        """A datum's value as the file holds it."""
        if datum.metadata or datum.signature:
            return self._pack(datum.to_bytes())
        fields = (datum.status, datum.fetch_interval, datum.score, datum.fetch_time, datum.modified_time, datum.retries)
        packed = self._packed.get(fields)
        if packed is None:
            if len(self._packed) >= _REMEMBERED:
                self._packed.clear()
            packed = self._packed[fields] = self._pack(datum.to_bytes())
        return packed


class CrawlRecords:
    """Serializes the entries of pages; `pack` makes a datum's bytes ready for the file."""

    def __init__(self, pack: Callable[[bytes], bytes]) -> None:
        self._value = DatumPacker(pack)

    def pack(self, entries: Iterable[Entry]) -> bytes:
        """The records of a page, one after the other."""
        return b"".join(
            linked_records(entry.links, self._value(entry.datum))
            if isinstance(entry, Linked)
            else _record(text_key(encode_text(entry[0])), self._value(entry[1]))
            for entry in entries
        )


def _record(key: bytes, value: bytes) -> bytes:
    return _LENGTHS.pack(len(key) + len(value), len(key)) + key + value


def linked_records(links: OutlinkRun, value: bytes) -> bytes:
    """A record for each link, all with one value."""
    import numpy as np

    from minutch.kernels.outlinks import RECORD_HEAD
    from minutch.kernels.outlinks import linked_records as write_records

    out = np.empty(len(links.data) + len(links) * (RECORD_HEAD + len(value)), np.uint8)
    data, packed = (np.frombuffer(part, np.uint8) for part in (links.data, value))
    return out[: write_records(data, len(links), packed, out)].tobytes()
