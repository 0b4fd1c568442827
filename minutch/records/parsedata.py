"""What a parse found in a page (org.apache.nutch.parse): ParseData, ParseText, ParseStatus.

ParseStatus    byte version (2; 1 has gzip'd strings), byte major code, short minor code,
               int number of arguments (-1 for none), (int length, UTF-8)*
ParseText      byte version (2; 1 has gzip'd text), text
ParseData      byte version (5), ParseStatus, text title, int count, Outlink*, Metadata of the
               content, Metadata of the parse
ParseImpl      boolean canonical, ParseText, ParseData
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final, Self

from minutch.charsets import UTF_8, Charset, lookup
from minutch.errors import FormatError
from minutch.hadoop.formats.javaio import (
    DataInput,
    DataOutput,
    args_to_string,
    encode_text,
    encode_vlong,
    read_compressed_string,
    read_string,
    read_string_array,
    write_string_array,
)
from minutch.hadoop.formats.writables import Writable
from minutch.records.links import Outlink, OutlinkRun
from minutch.records.metadata import CHAR_ENCODING_FOR_CONVERSION_KEY, Metadata, read_version

NOTPARSED: Final = 0
SUCCESS: Final = 1
FAILED: Final = 2
MAJOR_NAMES: Final = ("notparsed", "success", "failed")

SUCCESS_REDIRECT: Final = 100
"""Success; the arguments are the URL that a meta refresh leads to and its delay in seconds."""
FAILED_EXCEPTION: Final = 200
FAILED_TRUNCATED: Final = 202
FAILED_INVALID_FORMAT: Final = 203
FAILED_MISSING_PARTS: Final = 204
FAILED_MISSING_CONTENT: Final = 205


@dataclass(slots=True)
class ParseStatus(Writable):
    """A major and a minor code with arguments."""

    class_name = "org.apache.nutch.parse.ParseStatus"
    major: int = NOTPARSED
    minor: int = 0
    args: list[str | None] | None = None

    @classmethod
    def failed(cls, minor: int, message: str) -> Self:
        """Returns a failure with its reason."""
        return cls(FAILED, minor, [message])

    @property
    def is_success(self) -> bool:
        return self.major == SUCCESS

    @property
    def message(self) -> str | None:
        """The first argument."""
        return self.args[0] if self.args else None

    @classmethod
    def read(cls, data: DataInput) -> Self:
        version = read_version(data, "ParseStatus", (1, 2))
        major, minor = data.read_byte(), data.read_short()
        return cls(
            major,
            minor,
            read_string_array(data, read_compressed_string if version == 1 else read_string),
        )

    def write(self, out: DataOutput) -> None:
        out.write_byte(2)
        out.write_byte(self.major)
        out.write_short(self.minor)
        write_string_array(out, self.args)

    def __hash__(self) -> int:
        return hash((self.major, self.minor))

    def __str__(self) -> str:
        name = MAJOR_NAMES[self.major] if 0 <= self.major < len(MAJOR_NAMES) else "UNKNOWN!"
        return f"{name}({self.major},{self.minor}){args_to_string(self.args)}"


@dataclass(slots=True)
class ParseText(Writable):
    """The plain text of a page."""

    class_name = "org.apache.nutch.parse.ParseText"
    text: str = ""

    @classmethod
    def read(cls, data: DataInput) -> Self:
        version = read_version(data, "ParseText", (1, 2))
        return cls((read_compressed_string(data) or "") if version == 1 else data.read_text())

    def write(self, out: DataOutput) -> None:
        out.write_bytes(self.to_bytes())

    def to_bytes(self) -> bytes:
        """Returns the value's bytes; the text is copied once."""
        return serialized(encode_text(self.text))

    def __str__(self) -> str:
        return self.text


def serialized(text: bytes) -> bytes:
    """Returns the record of a text in UTF-8."""
    return b"".join((b"\2", encode_vlong(len(text)), text))


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
        value = self.parse_meta.get(name)
        return self.content_meta.field(name) if value is None else value

    @property
    def charset(self) -> Charset:
        """The charset that parsing found; UTF-8 if there is none, or an unknown one.

        Source: org.apache.nutch.segment.SegmentReader.getCharset.
        """
        meta = self.parse_meta
        name = meta.get(CHAR_ENCODING_FOR_CONVERSION_KEY) or meta.get("Content-Encoding")
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
