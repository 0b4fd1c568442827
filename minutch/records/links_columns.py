"""Inlinks and a ParseData's outlinks as columns, in pure Python: for small tables, and the yardstick for the kernels.

    Inlinks      int count | count × Inlink
    Inlink       text URL | text anchor | in layout 1.21: boolean | MapWritable, if true
    ParseData    byte 5 | ParseStatus | text title | int count | count × Outlink | two Metadata
    ParseStatus  byte 2 | byte major | short minor | int count | count × text
    Outlink      text URL | text anchor | boolean | MapWritable, if true

Metadata is carried as it was stored, an empty map as none.
Source: org.apache.nutch.crawl.Inlinks, Inlink; org.apache.nutch.parse.ParseData, ParseStatus, Outlink.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from minutch.errors import FormatError
from minutch.formats.javaio import DataInput, DataOutput
from minutch.formats.writables import MapWritable
from minutch.records.links import LAYOUT_METADATA, LAYOUTS, layouts_of
from minutch.records.parsedata import VERSION
from minutch.records.parsestatus import ParseStatus

_SCHEME = re.compile(rb"[A-Za-z][A-Za-z0-9+.-]*:")


class LinkRow(NamedTuple):
    """A link's other end, its anchor and its metadata."""

    url: bytes
    anchor: bytes
    metadata: bytes | None


def _read_metadata(data: DataInput) -> bytes | None:
    if not data.read_boolean():
        return None
    start = data.pos
    entries = MapWritable.read(data)
    return bytes(data.buf[start : data.pos]) if entries else None


def _read_link(data: DataInput, flag: bool) -> LinkRow:
    return LinkRow(data.read_text_bytes(), data.read_text_bytes(), _read_metadata(data) if flag else None)


def decode_inlinks(record: bytes, layout: str) -> list[LinkRow]:
    """The links of a serialized Inlinks in `layout`. FormatError if they don't use up `record` exactly."""
    data = DataInput(record)
    count = data.read_int()
    if not 0 <= count <= data.remaining:
        raise FormatError("impossible number of inlinks", offset=0, found=count)
    links = [_read_link(data, layout == LAYOUT_METADATA) for _ in range(count)]
    if data.remaining:
        raise FormatError("bytes left over after Inlinks", offset=data.pos, expected=data.pos, found=data.end)
    return links


def encode_inlinks(links: Sequence[Sequence[bytes | None]], layout: str) -> bytes:
    """The serialized Inlinks of (URL, anchor, metadata) rows, in their order."""
    out = DataOutput()
    out.write_int(len(links))
    for url, anchor, metadata in links:
        out.write_text_bytes(url or b"")
        out.write_text_bytes(anchor or b"")
        if layout == LAYOUT_METADATA:
            out.write_boolean(metadata is not None)
            out.write_bytes(metadata or b"")
    return out.getvalue()


def decode_outlinks(record: bytes) -> list[LinkRow]:
    """The outlinks of a serialized ParseData; what follows them is not looked at."""
    data = DataInput(record)
    version = data.read_byte()
    if version != VERSION:
        raise FormatError("unknown version of ParseData", offset=0, expected=VERSION, found=version)
    ParseStatus.read(data)
    data.skip(data.read_vint())
    start = data.pos
    count = data.read_int()
    if not 0 <= count <= data.remaining:
        raise FormatError("impossible number of outlinks", offset=start, found=count)
    return [_read_link(data, True) for _ in range(count)]


def layout_of(records: Iterable[bytes]) -> str:
    """The layout that all of `records` share, decided by the first record that only one layout fits.

    Records that fit both (they hold no links, or are forged) go by whether their links' URLs look like URLs; where
    nothing tells, it is the newer layout. Raises FormatError at a record that fits none.
    """
    likely = LAYOUT_METADATA
    for record in records:
        fitting = layouts_of(record)
        if not fitting:
            raise FormatError("neither layout of Inlinks fits a record", expected=" or ".join(LAYOUTS))
        if len(fitting) == 1:
            return next(iter(fitting))
        if not _has_urls(record, likely):
            likely = next((layout for layout in LAYOUTS if _has_urls(record, layout)), likely)
    return likely


def _has_urls(record: bytes, layout: str) -> bool:
    return all(_SCHEME.match(link.url) for link in decode_inlinks(record, layout))
