"""org.apache.nutch.parse.ParseData: what a parse found, but for the text; and ParseImpl, both
together.

ParseData    byte version (5), ParseStatus, text title, int count, Outlink*, Metadata of the
content,
             Metadata of the parse
ParseImpl    boolean canonical, ParseText, ParseData
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Self

from minutch.charsets import UTF_8, Charset, lookup
from minutch.errors import FormatError
from minutch.hadoop.formats.javaio import DataInput, DataOutput
from minutch.hadoop.formats.writables import Writable
from minutch.records.links import Outlink
from minutch.records.links.outlinkrun import OutlinkRun
from minutch.records.metadata import CHAR_ENCODING_FOR_CONVERSION_KEY, Metadata, read_version
from minutch.records.parsestatus import ParseStatus
from minutch.records.parsetext import ParseText

VERSION = 5


@dataclass(slots=True)
class ParseData(Writable):
    """Status, title, outlinks and metadata of one parsed page."""

    class_name = "org.apache.nutch.parse.ParseData"
    status: ParseStatus = field(default_factory=ParseStatus)
    title: str = ""
    outlinks: Sequence[Outlink] = field(default_factory=list)
    content_meta: Metadata = field(default_factory=Metadata)
    parse_meta: Metadata = field(default_factory=Metadata)

    def meta(self, name: str) -> str | None:
        """Returns the first value of `name` in the parse metadata, else of the header field in the
        content's (ParseData.getMeta).
        """
        value = self.parse_meta.first(name)
        return self.content_meta.field(name) if value is None else value

    @property
    def charset(self) -> Charset:
        """The charset that parsing found; UTF-8 if there is none or none known.

        Source: org.apache.nutch.segment.SegmentReader.getCharset.
        """
        meta = self.parse_meta
        name = meta.first(CHAR_ENCODING_FOR_CONVERSION_KEY) or meta.first("Content-Encoding")
        return lookup(name or "utf-8") or UTF_8

    @classmethod
    def read(cls, data: DataInput) -> Self:
        read_version(data, "ParseData", (VERSION,))
        status, title = ParseStatus.read(data), data.read_text()
        start = data.pos
        count = data.read_int()
        if not 0 <= count <= data.remaining:
            raise FormatError("impossible number of outlinks", offset=start, found=count)
        outlinks = [Outlink.read(data) for _ in range(count)]
        return cls(status, title, outlinks, Metadata.read(data), Metadata.read(data))

    def write(self, out: DataOutput) -> None:
        out.write_byte(VERSION)
        self.status.write(out)
        out.write_text(self.title)
        out.write_int(len(self.outlinks))
        if isinstance(self.outlinks, OutlinkRun):
            out.write_bytes(self.outlinks.data)
        else:
            for link in self.outlinks:
                link.write(out)
        self.content_meta.write(out)
        self.parse_meta.write(out)

    def __str__(self) -> str:
        links = "".join(f"  outlink: {link}\n" for link in self.outlinks)
        return (
            f"Version: {VERSION}\nStatus: {self.status}\nTitle: {self.title}\nOutlinks:"
            f" {len(self.outlinks)}\n{links}Content Metadata:\n "
            f" {self.content_meta.to_string(chr(10) + '  ', ' = ')}\nParse Metadata:\n "
            f" {self.parse_meta.to_string(chr(10) + '  ', ' = ')}\n"
        )


@dataclass(slots=True)
class ParseImpl(Writable):
    """Text and data of one parse, as fetch and parse hand them on in one value."""

    class_name = "org.apache.nutch.parse.ParseImpl"
    text: ParseText = field(default_factory=ParseText)
    data: ParseData = field(default_factory=ParseData)
    canonical: bool = True

    @classmethod
    def read(cls, data: DataInput) -> Self:
        canonical = data.read_boolean()
        return cls(ParseText.read(data), ParseData.read(data), canonical)

    def write(self, out: DataOutput) -> None:
        out.write_boolean(self.canonical)
        self.text.write(out)
        self.data.write(out)
