"""The records of Nutch 0.4 to 0.7, when segments were ArrayFiles: pages of the web database and
what was found in them. `legacyfetch` has those of fetch lists.

    string           unsigned short length in bytes, modified UTF-8; at most 21,845 characters,
                     longer ones are cut off
    gzip'd           int length, a gzip stream of that length
    properties       int count, (string name, string value)*
    Outlink          string URL, string anchor
    Page             byte version (4)
                     string URL (the primary key)
                     16 bytes MD5 of the content
                     long when to fetch again (ms)
                     byte failed attempts
                     byte fetch interval (days)
                     int  number of outlinks             from version 3
                     float score                         from version 2
                     float next score                    from version 4
    Link             byte version (5)
                     16 bytes MD5 of the page it is on
                     string URL
                     long domain ID                      from version 5
                     string anchor
                     boolean the target has outlinks     from version 4
    Content          byte version (1), string URL, string base URL, gzip'd content, string content
                     type, properties                    (net.nutch.protocol, from Nutch 0.5)
    FetcherContent   byte version (1), gzip'd content    (net.nutch.fetcher, Nutch 0.4)
    ParseData        byte version (1), [ParseStatus], string title, int number of outlinks,
                     Outlink*, properties; the ParseStatus is in version 2 alone, that of Nutch 0.7
    ParseText        byte version (1), gzip'd text       (both net.nutch.parse, from Nutch 0.5)
    FetcherText      byte version (1), gzip'd text       (net.nutch.fetcher, Nutch 0.4)

They follow Nutch's page on its formats, field by field; where that is silent, the first version in
Apache's repository (March 2005, before 0.7): how `java.util.Properties` and `compressed byte array`
lie (net.nutch.io.UTF8, net.nutch.io.WritableUtils, net.nutch.protocol.Content), that texts are
UTF-8, Link, and the layouts of older versions. The page leaves the number of outlinks of a Page
out; that source says that it came with version 3, so it is in every Page of version 4. `read_page`
takes both, see `legacyfetch`.

The classes were `net.nutch.…`, from 2005 on some of them `org.apache.nutch.…`; files mostly have
short names like `FetchListEntry`, and `minutch.records` knows all of them.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final, Self, TypeVar

from minutch.errors import FormatError
from minutch.hadoop.formats.javahash import date_to_string, float_to_string
from minutch.hadoop.formats.javaio import DataInput, DataOutput, decode_text, encode_text, inflate
from minutch.hadoop.formats.writables import Writable
from minutch.records.metadata import read_version
from minutch.records.parsedata import ParseStatus

LONGEST: Final = 0xFFFF // 3
"""UTF-16 units of the longest string (net.nutch.io.UTF8)."""
_GZIP_HEAD: Final = b"\x1f\x8b\x08" + bytes(7)
"""The header of java.util.zip.GZIPOutputStream: no name, no time, no system."""

T = TypeVar("T")
NO_MD5: Final = bytes(16)
PAGE_VERSION: Final = 4
LINK_VERSION: Final = 5
PARSE_VERSION: Final = 1
WITH_STATUS: Final = 2


def short_enough(text: str) -> str:
    """Cuts a text to the length that a string may have."""
    if len(text) * 2 <= LONGEST:  # no character has more than two units
        return text
    return text.encode("utf-16-le", "surrogatepass")[: 2 * LONGEST].decode(
        "utf-16-le", "surrogatepass"
    )


def write_string(out: DataOutput, text: str) -> None:
    """Writes a string, cut off where it is too long, as Nutch did."""
    out.write_utf8(short_enough(text))


def read_gzipped(data: DataInput) -> bytes:
    """Returns the bytes of a gzip stream that is preceded by its length."""
    start = data.pos
    return inflate(data.read_bytes(data.read_int()), start, wbits=31)


def write_gzipped(out: DataOutput, content: bytes) -> None:
    """Writes bytes as a gzip stream, preceded by its length."""
    deflate = zlib.compressobj(wbits=-15)
    packed = deflate.compress(content) + deflate.flush()
    out.write_int(len(_GZIP_HEAD) + len(packed) + 8)  # CRC-32 and size
    out.write_bytes(
        _GZIP_HEAD + packed + struct.pack("<II", zlib.crc32(content), len(content) & 0xFFFF_FFFF)
    )


def read_list(data: DataInput, what: str, least: int, read: Callable[[DataInput], T]) -> list[T]:
    """Returns an int and so many values of at least `least` bytes. FormatError if it can't be."""
    start = data.pos
    count = data.read_int()
    if not 0 <= count <= data.remaining // least:  # before as many are made
        raise FormatError(
            f"impossible number of {what}",
            offset=start,
            expected=f"0 to {data.remaining // least}",
            found=count,
        )
    return [read(data) for _ in range(count)]


def read_properties(data: DataInput) -> dict[str, str]:
    """java.util.Properties."""
    return dict(
        read_list(data, "properties", 4, lambda source: (source.read_utf8(), source.read_utf8()))
    )


def write_properties(out: DataOutput, properties: dict[str, str]) -> None:
    """Writes java.util.Properties, in their order."""
    out.write_int(len(properties))
    for name, value in properties.items():
        write_string(out, name)
        write_string(out, value)


def properties_to_string(properties: dict[str, str]) -> str:
    """Hashtable.toString."""
    return "{" + ", ".join(f"{name}={value}" for name, value in properties.items()) + "}"


@dataclass(slots=True)
class OldOutlink(Writable):
    """net.nutch.fetcher.Outlink, later net.nutch.parse.Outlink: a link found on a page."""

    class_name = "net.nutch.fetcher.Outlink"
    to_url: str
    anchor: str = ""

    @classmethod
    def read(cls, data: DataInput) -> Self:
        return cls(data.read_utf8(), data.read_utf8())

    def write(self, out: DataOutput) -> None:
        write_string(out, self.to_url)
        write_string(out, self.anchor)

    def __str__(self) -> str:
        return f"toUrl: {self.to_url} anchor: {self.anchor}"


def read_outlinks(data: DataInput) -> list[OldOutlink]:
    """Returns an int and so many links."""
    return read_list(data, "outlinks", 4, OldOutlink.read)


def write_outlinks(out: DataOutput, outlinks: list[OldOutlink]) -> None:
    """Writes an int and so many links."""
    out.write_int(len(outlinks))
    for outlink in outlinks:
        outlink.write(out)


def outlinks_to_string(outlinks: list[OldOutlink]) -> str:
    """Returns the lines of ParseData.toString."""
    return f"Outlinks: {len(outlinks)}\n" + "".join(
        f"  outlink: {outlink}\n" for outlink in outlinks
    )


def read_up_to(data: DataInput, name: str, newest: int) -> int:
    """Returns a version byte from 1 to `newest`. Raises FormatError."""
    start = data.pos
    version = data.read_byte()
    if not 1 <= version <= newest:
        raise FormatError(
            f"version of {name} that minutch does not know",
            offset=start,
            expected=f"1 to {newest}",
            found=version,
        )
    return version


@dataclass(slots=True)
class OldPage(Writable):
    """A page. `outlinks` is None where the number of outlinks is not in the bytes."""

    class_name = "net.nutch.db.Page"
    url: str = ""
    md5: bytes = NO_MD5
    next_fetch: int = 0
    retries: int = 0
    interval: int = 30
    outlinks: int | None = 0
    score: float = 1.0
    next_score: float = 1.0

    @classmethod
    def read(cls, data: DataInput) -> Self:
        return cls.read_page(data, True)

    @classmethod
    def read_page(cls, data: DataInput, counted: bool) -> Self:
        """With the number of outlinks, or as the page on Nutch's formats has it."""
        version = read_up_to(data, "Page", PAGE_VERSION)
        return cls(
            data.read_utf8(),
            data.read_bytes(16),
            data.read_long(),
            data.read_byte(),
            data.read_byte(),
            data.read_int() if version > 2 and counted else 0 if counted else None,
            data.read_float() if version > 1 else 1.0,
            data.read_float() if version > 3 else 1.0,
        )

    def write(self, out: DataOutput) -> None:
        out.write_byte(PAGE_VERSION)
        write_string(out, self.url)
        out.write_bytes(self.md5)
        out.write_long(self.next_fetch)
        out.write_byte(self.retries)
        out.write_byte(self.interval)
        if self.outlinks is not None:
            out.write_int(self.outlinks)
        out.write_float(self.score)
        out.write_float(self.next_score)

    def __str__(self) -> str:
        return (
            f"Version: {PAGE_VERSION}\nURL: {self.url}\nID: {self.md5.hex()}\n"
            f"Next fetch: {date_to_string(self.next_fetch)}\nRetries since fetch: {self.retries}\n"
            f"Retry interval: {self.interval} days\nNum outlinks: {self.outlinks or 0}\n"
            f"Score: {float_to_string(self.score)}\nNextScore: {float_to_string(self.next_score)}\n"
        )


@dataclass(slots=True)
class OldLink(Writable):
    """A link between two pages."""

    class_name = "net.nutch.db.Link"
    from_id: bytes = NO_MD5
    url: str = ""
    domain_id: int = 0
    anchor: str = ""
    target_has_outlink: bool = False

    @classmethod
    def read(cls, data: DataInput) -> Self:
        version = read_up_to(data, "Link", LINK_VERSION)
        return cls(
            data.read_bytes(16),
            data.read_utf8(),
            data.read_long() if version > 4 else 0,
            data.read_utf8(),
            data.read_boolean() if version > 3 else False,
        )

    def write(self, out: DataOutput) -> None:
        out.write_byte(LINK_VERSION)
        out.write_bytes(self.from_id)
        write_string(out, self.url)
        out.write_long(self.domain_id)
        write_string(out, self.anchor)
        out.write_boolean(self.target_has_outlink)

    def __str__(self) -> str:
        return (
            f"Version: {LINK_VERSION}\nID: {self.from_id.hex()}\nDomainID: {self.domain_id}\nURL:"
            f" {self.url}\nAnchorText: {self.anchor}\ntargetHasOutlink:"
            f" {str(self.target_has_outlink).lower()}\n"
        )


CONTENT_VERSION: Final = 1


@dataclass(slots=True)
class OldContent(Writable):
    """URL, base URL, bytes, media type and headers of a page."""

    class_name = "net.nutch.protocol.Content"
    url: str = ""
    base: str = ""
    content: bytes = b""
    content_type: str = ""
    metadata: dict[str, str] = field(default_factory=dict)

    @classmethod
    def read(cls, data: DataInput) -> Self:
        read_version(data, "Content", (CONTENT_VERSION,))
        return cls(
            data.read_utf8(),
            data.read_utf8(),
            read_gzipped(data),
            data.read_utf8(),
            read_properties(data),
        )

    def write(self, out: DataOutput) -> None:
        out.write_byte(CONTENT_VERSION)
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
        read_version(data, "FetcherContent", (CONTENT_VERSION,))
        return cls(read_gzipped(data))

    def write(self, out: DataOutput) -> None:
        out.write_byte(CONTENT_VERSION)
        write_gzipped(out, self.content)

    def __str__(self) -> str:
        return self.content.decode("utf-8", "replace")


@dataclass(slots=True)
class OldParseData(Writable):
    """Title, outlinks and metadata of a page; its status since Nutch 0.7."""

    class_name = "net.nutch.parse.ParseData"
    title: str = ""
    outlinks: list[OldOutlink] = field(default_factory=list)
    metadata: dict[str, str] = field(default_factory=dict)
    status: ParseStatus | None = None

    @classmethod
    def read(cls, data: DataInput) -> Self:
        version = read_up_to(data, "ParseData", WITH_STATUS)
        status = ParseStatus.read(data) if version == WITH_STATUS else None
        return cls(data.read_utf8(), read_outlinks(data), read_properties(data), status)

    def write(self, out: DataOutput) -> None:
        out.write_byte(PARSE_VERSION if self.status is None else WITH_STATUS)
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
        read_version(data, cls.__name__, (PARSE_VERSION,))
        return cls(decode_text(read_gzipped(data)))

    def write(self, out: DataOutput) -> None:
        out.write_byte(PARSE_VERSION)
        write_gzipped(out, encode_text(self.text))

    def __str__(self) -> str:
        return self.text


@dataclass(slots=True)
class OldParseText(_GzippedText):
    """The text of a page."""

    class_name = "net.nutch.parse.ParseText"


@dataclass(slots=True)
class FetcherText(_GzippedText):
    """The text of a page, in Nutch 0.4."""

    class_name = "net.nutch.fetcher.FetcherText"
