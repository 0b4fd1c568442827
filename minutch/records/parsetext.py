"""org.apache.nutch.parse.ParseText: the plain text of a page.

byte version (2; 1 has gzip'd text), text
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

from minutch.hadoop.formats.javaio import DataInput, DataOutput, encode_text, encode_vlong
from minutch.hadoop.formats.writables import Writable
from minutch.records.metadata import read_version
from minutch.records.strings import read_compressed_string


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
