"""org.apache.nutch.protocol.Content: a fetched page as it came.

    int version (-1), text URL, text base URL, int length, content, text content type, Metadata

Older Nutch wrote an int size of 0 or more and a zlib stream of that size, which holds:
    byte version (0 to 2), text URL, text base URL, int length, content, text content type, Metadata
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final, Self

from minutch.charsets import UTF_8, Charset
from minutch.errors import FormatError
from minutch.hadoop.formats.javaio import DataInput, DataOutput, java_string
from minutch.hadoop.formats.writables import Writable
from minutch.records.metadata import Metadata, read_version
from minutch.records.strings import inflate

VERSION: Final = -1


@dataclass(slots=True)
class Content(Writable):
    """URL, base URL, raw bytes, media type and response metadata of one fetched page."""

    class_name = "org.apache.nutch.protocol.Content"
    url: str = ""
    base: str = ""
    content: bytes = b""
    content_type: str = ""
    metadata: Metadata = field(default_factory=Metadata)
    version: int = VERSION

    @classmethod
    def read(cls, data: DataInput) -> Self:
        start = data.pos
        size = data.read_int()
        if size == VERSION:
            return cls._read_fields(data)
        if size < 0:
            raise FormatError(
                "version of Content that minutch does not know",
                offset=start,
                expected=VERSION,
                found=size,
            )
        inner = DataInput(inflate(data.read_bytes(size), start))
        read_version(inner, "Content", (0, 1, 2))
        return cls._read_fields(inner)

    @classmethod
    def _read_fields(cls, data: DataInput) -> Self:
        url, base = data.read_text(), data.read_text()
        content = data.read_bytes(data.read_int())
        return cls(url, base, content, data.read_text(), Metadata.read(data))

    def write(self, out: DataOutput) -> None:
        out.write_bytes(self.to_bytes())

    def to_bytes(self) -> bytes:
        """Returns the value's bytes; the page itself is copied once."""
        before, behind = DataOutput(), DataOutput()
        before.write_int(VERSION)
        before.write_text(self.url)
        before.write_text(self.base)
        before.write_int(len(self.content))
        behind.write_text(self.content_type)
        self.metadata.write(behind)
        return b"".join((before.buf, self.content, behind.buf))

    def to_string(self, charset: Charset = UTF_8) -> str:
        """Content.toString(charset): bytes that are not of `charset` become U+FFFD."""
        head = (
            f"Version: {self.version}\nurl: {self.url}\nbase: {self.base}\ncontentType:"
            f" {self.content_type}\nmetadata: {self.metadata}\nContent:\n"
        )
        return java_string(head) + charset.decode(self.content, keep_mark=True)

    def __str__(self) -> str:
        return self.to_string()
