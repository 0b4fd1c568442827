"""org.apache.nutch.protocol.Content, a fetched page as it came, and ProtocolStatus, how its fetch
ended.

    Content           int version (-1), text URL, text base URL, int length, content, text content
                      type, Metadata
    before -1         int size of 0 or more and a zlib stream of that size, which holds: byte
                      version (0 to 2), text URL, text base URL, int length, content, text
                      content type, Metadata
    ProtocolStatus    byte version (2; 1 has gzip'd strings), byte code, long last modified (ms
                      since the epoch, 0 if unknown), int number of arguments (-1 for none), (int
                      length, UTF-8)*
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Final, Self

from minutch.charsets import UTF_8, Charset
from minutch.errors import FormatError
from minutch.hadoop.formats.javaio import (
    DataInput,
    DataOutput,
    args_to_string,
    inflate,
    java_string,
    read_compressed_string,
    read_string,
    read_string_array,
    write_string_array,
)
from minutch.hadoop.formats.writables import Writable
from minutch.records.metadata import TRUNCATED_KEY, Metadata, read_version

VERSION: Final = -1
CONTENT_LENGTH_KEY: Final = "Content-Length"
_INTEGER: Final = re.compile(r"[+-]?[0-9]{1,10}")
SUCCESS: Final = 1
FAILED: Final = 2
PROTO_NOT_FOUND: Final = 10
GONE: Final = 11
MOVED: Final = 12
TEMP_MOVED: Final = 13
NOTFOUND: Final = 14
RETRY: Final = 15
EXCEPTION: Final = 16
ACCESS_DENIED: Final = 17
ROBOTS_DENIED: Final = 18
REDIR_EXCEEDED: Final = 19
NOTFETCHING: Final = 20
NOTMODIFIED: Final = 21
WOULDBLOCK: Final = 22
BLOCKED: Final = 23

CODE_NAMES: Final = {
    SUCCESS: "success", FAILED: "failed", PROTO_NOT_FOUND: "proto_not_found", GONE: "gone",
    MOVED: "moved", TEMP_MOVED: "temp_moved", NOTFOUND: "notfound", RETRY: "retry",
    EXCEPTION: "exception", ACCESS_DENIED: "access_denied", ROBOTS_DENIED: "robots_denied",
    REDIR_EXCEEDED: "redir_exceeded", NOTFETCHING: "notfetching", NOTMODIFIED: "notmodified",
    WOULDBLOCK: "wouldblock", BLOCKED: "blocked",
}  # fmt: skip


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
        if size == VERSION:  # -1 is no size: so versions from -1 on are told apart
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
        # Pages are large: only what stands around them is put together.
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


def is_truncated(content: Content) -> bool:
    """Returns whether content is cut off: by the protocol's mark, else by Content-Length."""
    mark = content.metadata.get(TRUNCATED_KEY)
    if mark is not None:
        return mark == "true"
    length = (content.metadata.field(CONTENT_LENGTH_KEY) or "").strip()
    if not _INTEGER.fullmatch(length):  # what Integer.parseInt takes
        return False
    return int(length) > len(content.content)


@dataclass(slots=True)
class ProtocolStatus(Writable):
    """A code with its arguments: a message, or the URL that a redirect leads to."""

    class_name = "org.apache.nutch.protocol.ProtocolStatus"
    code: int = 0
    args: list[str | None] | None = None
    last_modified: int = 0

    @classmethod
    def of(cls, code: int, message: object = None, last_modified: int = 0) -> Self:
        """Returns a status with at most one argument."""
        return cls(code, None if message is None else [str(message)], last_modified)

    @property
    def name(self) -> str | None:
        """Nutch's name of the code; None for a code it does not know."""
        return CODE_NAMES.get(self.code)

    @property
    def message(self) -> str | None:
        """The first argument."""
        return self.args[0] if self.args else None

    @property
    def is_success(self) -> bool:
        return self.code == SUCCESS

    @property
    def is_redirect(self) -> bool:
        return self.code in (MOVED, TEMP_MOVED)

    @classmethod
    def read(cls, data: DataInput) -> Self:
        version = read_version(data, "ProtocolStatus", (1, 2))
        code, last_modified = data.read_byte(), data.read_long()
        return cls(
            code,
            read_string_array(data, read_compressed_string if version == 1 else read_string),
            last_modified,
        )

    def write(self, out: DataOutput) -> None:
        out.write_byte(2)
        out.write_byte(self.code)
        out.write_long(self.last_modified)
        write_string_array(out, self.args)

    def __hash__(self) -> int:
        return hash((self.code, self.last_modified))  # `args` is a list

    def __str__(self) -> str:
        name = "null" if self.name is None else self.name
        return f"{name}({self.code}), lastModified={self.last_modified}{args_to_string(self.args)}"


def target_of(status: object) -> str | None:
    """Returns where the protocol status of a redirect leads; None of any other value."""
    return status.message if isinstance(status, ProtocolStatus) else None
