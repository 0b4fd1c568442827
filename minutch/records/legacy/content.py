"""net.nutch.protocol.Content and net.nutch.fetcher.FetcherContent: a page as it came, to Nutch
until 0.7.

    Content (from Nutch 0.5)        byte version (1), string URL, string base URL, gzip'd content,
                                    string content type, properties
    FetcherContent (Nutch 0.4)      byte version (1), gzip'd content

How the gzip'd content and the properties lie is Nutch's source of March 2005 (`fields`).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final, Self

from minutch.hadoop.formats.javaio import DataInput, DataOutput
from minutch.hadoop.formats.writables import Writable
from minutch.records.legacy.fields import (
    properties_to_string,
    read_gzipped,
    read_properties,
    write_gzipped,
    write_properties,
    write_string,
)
from minutch.records.metadata import read_version

VERSION: Final = 1


@dataclass(slots=True)
class Content(Writable):
    """URL, base URL, bytes, media type and headers of a page."""

    class_name = "net.nutch.protocol.Content"
    url: str = ""
    base: str = ""
    content: bytes = b""
    content_type: str = ""
    metadata: dict[str, str] = field(default_factory=dict)

    @classmethod
    def read(cls, data: DataInput) -> Self:
        read_version(data, "Content", (VERSION,))
        return cls(
            data.read_utf8(),
            data.read_utf8(),
            read_gzipped(data),
            data.read_utf8(),
            read_properties(data),
        )

    def write(self, out: DataOutput) -> None:
        out.write_byte(VERSION)
        write_string(out, self.url)
        write_string(out, self.base)
        write_gzipped(out, self.content)
        write_string(out, self.content_type)
        write_properties(out, self.metadata)

    def __str__(self) -> str:
        return (
            f"url: {self.url}\nbase: {self.base}\ncontentType: {self.content_type}\n"
            f"metadata: {properties_to_string(self.metadata)}\n"
            f"Content:\n{self.content.decode('utf-8', 'replace')}"
        )


@dataclass(slots=True)
class FetcherContent(Writable):
    """The bytes of a page."""

    class_name = "net.nutch.fetcher.FetcherContent"
    content: bytes = b""

    @classmethod
    def read(cls, data: DataInput) -> Self:
        read_version(data, "FetcherContent", (VERSION,))
        return cls(read_gzipped(data))

    def write(self, out: DataOutput) -> None:
        out.write_byte(VERSION)
        write_gzipped(out, self.content)

    def __str__(self) -> str:
        return self.content.decode("utf-8", "replace")
