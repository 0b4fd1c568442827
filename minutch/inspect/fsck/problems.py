"""Problems of a crawl: the place, the problem, and its remedy."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from pathlib import Path

from minutch.hadoop.formats.javaio import decode_text


class Remedy(Enum):
    """The remedy of a problem."""

    NONE = "by hand"
    REMOVE = "remove it"
    PLACE = "put them in their places"
    INDEX = "make the index from the data"
    CHECKSUMS = "write the checksums again: all records can be read"
    REWRITE = "sort and partition the records again"
    DROP = "keep what can be read, drop the rest"

    @property
    def loses_records(self) -> bool:
        """True if it is applied only if the user asks for it by name."""
        return self is Remedy.DROP


@dataclass(frozen=True)
class Problem:
    """A problem. `folder` is the folder of parts that a rewrite replaces."""

    path: Path
    what: str
    remedy: Remedy = Remedy.NONE
    offset: int | None = None
    key: bytes | None = None
    folder: Path | None = None

    def __str__(self) -> str:
        where = str(self.path) if self.offset is None else f"{self.path} at offset {self.offset}"
        key = "" if self.key is None else f" (key {decode_text(self.key)})"
        return f"{where}: {self.what}{key}"
