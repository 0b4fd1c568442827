"""org.apache.nutch.parse.ParseStatus: how a parse ended.

byte version (2; 1 has gzip'd strings)
byte major code, short minor code
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
