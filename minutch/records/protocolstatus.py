"""org.apache.nutch.protocol.ProtocolStatus: how a fetch ended.

byte version (2; 1 has gzip'd strings)
byte code
long last modified (ms since the epoch, 0 if unknown)
int  number of arguments (-1 for none), (int length, UTF-8)*
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Self

from minutch.hadoop.formats.javaio import DataInput, DataOutput
from minutch.hadoop.formats.writables import Writable
from minutch.records.metadata import read_version
from minutch.records.strings import (
    args_to_string,
    read_compressed_string,
    read_string,
    read_string_array,
    write_string_array,
)

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
    SUCCESS: "success",
    FAILED: "failed",
    PROTO_NOT_FOUND: "proto_not_found",
    GONE: "gone",
    MOVED: "moved",
    TEMP_MOVED: "temp_moved",
    NOTFOUND: "notfound",
    RETRY: "retry",
    EXCEPTION: "exception",
    ACCESS_DENIED: "access_denied",
    ROBOTS_DENIED: "robots_denied",
    REDIR_EXCEEDED: "redir_exceeded",
    NOTFETCHING: "notfetching",
    NOTMODIFIED: "notmodified",
    WOULDBLOCK: "wouldblock",
    BLOCKED: "blocked",
}
_TRANSIENT: Final = {
    ACCESS_DENIED,
    EXCEPTION,
    REDIR_EXCEEDED,
    RETRY,
    TEMP_MOVED,
    WOULDBLOCK,
    PROTO_NOT_FOUND,
}
_PERMANENT: Final = {FAILED, GONE, MOVED, NOTFOUND, ROBOTS_DENIED}


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
    def is_transient_failure(self) -> bool:
        return self.code in _TRANSIENT

    @property
    def is_permanent_failure(self) -> bool:
        return self.code in _PERMANENT

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
        return hash((self.code, self.last_modified))

    def __str__(self) -> str:
        name = "null" if self.name is None else self.name
        return f"{name}({self.code}), lastModified={self.last_modified}{args_to_string(self.args)}"
