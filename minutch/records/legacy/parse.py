"""net.nutch.parse.ParseData and ParseText, net.nutch.fetcher.FetcherText: what was found in a page,
until Nutch 0.7.

    ParseData (from Nutch 0.5)      byte version (1), [ParseStatus], string title, int number of
                                    outlinks, Outlink*, properties; the ParseStatus is in version 2
                                    alone, that of Nutch 0.7
    ParseText (from Nutch 0.5)      byte version (1), gzip'd text
    FetcherText (Nutch 0.4)         byte version (1), gzip'd text

The text is UTF-8, as Nutch's source of March 2005 has it; how properties lie is told by it, too
(`fields`).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final, Self

from minutch.hadoop.formats.javaio import DataInput, DataOutput, decode_text, encode_text
from minutch.hadoop.formats.writables import Writable
from minutch.records.legacy.fields import (
    Outlink,
    outlinks_to_string,
    properties_to_string,
    read_gzipped,
    read_outlinks,
    read_properties,
    read_up_to,
    write_gzipped,
    write_outlinks,
    write_properties,
    write_string,
)
from minutch.records.metadata import read_version
from minutch.records.parsestatus import ParseStatus

VERSION: Final = 1
WITH_STATUS: Final = 2


@dataclass(slots=True)
class ParseData(Writable):
    """Title, outlinks and metadata of a page; its status since Nutch 0.7."""

    class_name = "net.nutch.parse.ParseData"
    title: str = ""
    outlinks: list[Outlink] = field(default_factory=list)
    metadata: dict[str, str] = field(default_factory=dict)
    status: ParseStatus | None = None

    @classmethod
    def read(cls, data: DataInput) -> Self:
        version = read_up_to(data, "ParseData", WITH_STATUS)
        status = ParseStatus.read(data) if version == WITH_STATUS else None
        return cls(data.read_utf8(), read_outlinks(data), read_properties(data), status)

    def write(self, out: DataOutput) -> None:
        out.write_byte(VERSION if self.status is None else WITH_STATUS)
        if self.status is not None:
            self.status.write(out)
        write_string(out, self.title)
        write_outlinks(out, self.outlinks)
        write_properties(out, self.metadata)

    def __str__(self) -> str:
        status = "" if self.status is None else f"Status: {self.status}\n"
        links = outlinks_to_string(self.outlinks)
        return (
            f"{status}Title: {self.title}\n{links}Metadata: {properties_to_string(self.metadata)}\n"
        )


@dataclass(slots=True)
class _GzippedText(Writable):
    """A text."""

    text: str = ""

    @classmethod
    def read(cls, data: DataInput) -> Self:
        read_version(data, cls.__name__, (VERSION,))
        return cls(decode_text(read_gzipped(data)))

    def write(self, out: DataOutput) -> None:
        out.write_byte(VERSION)
        write_gzipped(out, encode_text(self.text))

    def __str__(self) -> str:
        return self.text


@dataclass(slots=True)
class ParseText(_GzippedText):
    """The text of a page."""

    class_name = "net.nutch.parse.ParseText"


@dataclass(slots=True)
class FetcherText(_GzippedText):
    """The text of a page, in Nutch 0.4."""

    class_name = "net.nutch.fetcher.FetcherText"
