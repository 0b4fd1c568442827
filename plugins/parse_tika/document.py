"""A document while it is read: a reader adds what it finds as it goes.

So all that stands before a fault, or before the end of the time for a page, is kept.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Final

from lxml import etree

from minutch.records.metadata import Metadata

_PDF_DATE: Final = re.compile(
    r"(?:D:)?(\d{4})(\d\d)?(\d\d)?(\d\d)?(\d\d)?(\d\d)?(?:Z|([+-])(\d\d)'?(\d\d)?'?)?", re.ASCII
)
_MOST_VALUES: Final = 100
"""Of one name."""
_TOLD: Final = 5
"""Parts that a message names."""


@dataclass(slots=True)
class Document:
    """Text, title, links, metadata, as far as they are known."""

    texts: list[str] = field(default_factory=list)
    """Each ends a line; `text` folds them."""
    title: str = ""
    links: list[tuple[str, str]] = field(default_factory=list)
    """Targets as written, with their anchors."""
    metadata: Metadata = field(default_factory=Metadata)
    """Under the names that Tika gives them."""
    missing: list[str] = field(default_factory=list)
    """Parts that could not be read, and why."""

    @property
    def text(self) -> str:
        """Lines with their blanks folded, those without a word left out."""
        return "\n".join(_lines(self.texts))

    @property
    def loss(self) -> str:
        """What is missing from the text; empty if nothing is."""
        more = len(self.missing) - _TOLD
        told = "; ".join(self.missing[:_TOLD])
        return f"{told}; {more} more" if more > 0 else told

    def describe(self, name: str, value: str) -> None:
        """Adds a value to the metadata, if there is one."""
        folded = " ".join(value.split())
        known = self.metadata.get_values(name)
        if folded and folded not in known and len(known) < _MOST_VALUES:
            self.metadata.add(name, folded)

    def date(self, name: str, value: str) -> None:
        """Adds a time, of ISO 8601 or as PDF writes it, as Tika does: in UTC, to the second. One
        without a zone counts as UTC; one that is no time is left out.
        """
        time = _time(value.strip())
        if time:
            self.describe(name, time.strftime("%Y-%m-%dT%H:%M:%SZ"))


class Walk(ABC):
    """A way through a tree of paragraphs, which libxml2 keeps to 256 levels."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.pieces: list[str] = []
        """Of the paragraph that is being read."""

    @abstractmethod
    def inline(self, element: etree._Element) -> None:
        """Adds the text inside a paragraph."""

    def paragraph(self, element: etree._Element) -> None:
        """Adds a paragraph, and behind it what is anchored in it."""
        outer, lines = self.pieces, self.lines
        self.pieces, self.lines = [], []
        self.inline(element)
        lines.append("".join(self.pieces))
        lines += self.lines
        self.pieces, self.lines = outer, lines


def _lines(texts: list[str]) -> Iterator[str]:
    for text in texts:
        for line in text.splitlines():
            folded = " ".join(line.split())
            if folded:
                yield folded


def _time(value: str) -> datetime | None:
    try:
        if match := _PDF_DATE.fullmatch(value):
            *parts, sign, hours, minutes = match.groups()
            numbers = [
                int(part) if part else default
                for part, default in zip(parts, (0, 1, 1, 0, 0, 0), strict=True)
            ]
            zone = f"{sign}{hours}:{minutes or '00'}" if sign else "+00:00"
            year, month, day, hour, minute, second = numbers
            value = f"{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}{zone}"
        time = datetime.fromisoformat(value)
        return time.replace(tzinfo=time.tzinfo or UTC).astimezone(UTC)
    except (ValueError, OverflowError):
        return None
