"""Holds the results of extensions: of fetching and parsing, and the actions of index writers.

Plugins import these from `points`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from minutch.hadoop.formats.javaio import encode_text
from minutch.records.metadata import Metadata

if TYPE_CHECKING:
    from minutch.records.parsedata import ParseData
    from minutch.records.protocol import Content, ProtocolStatus


@dataclass(slots=True)
class ProtocolOutput:
    """The result of fetching a URL; `content` is None unless the status is a success."""

    content: Content | None
    status: ProtocolStatus


class Parse:
    """A parsed (sub-)document; `is_original` is False for pages found inside another (a feed's
    entries).

    Its text may be given in UTF-8, which is what is stored: it becomes a string when somebody reads
    it.
    """

    __slots__ = ("_text", "data", "is_original")

    def __init__(self, text: str | bytes, data: ParseData, is_original: bool = True) -> None:
        self._text = text
        self.data = data
        self.is_original = is_original

    @property
    def text(self) -> str:
        """The text."""
        if isinstance(self._text, bytes):
            self._text = self._text.decode()
        return self._text

    @text.setter
    def text(self, text: str) -> None:
        self._text = text

    @property
    def utf8(self) -> bytes:
        """The text in UTF-8, as it is stored."""
        return self._text if isinstance(self._text, bytes) else encode_text(self._text)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Parse):
            return NotImplemented
        return (self.text, self.data, self.is_original) == (
            other.text,
            other.data,
            other.is_original,
        )

    __hash__ = None  # type: ignore[assignment]  # it may change

    def __repr__(self) -> str:
        return f"Parse(text={self.text!r}, data={self.data!r}, is_original={self.is_original!r})"


class ParseResult(dict[str, Parse]):
    """Parsed documents by URL, in order; `original_url` is the URL of the content itself."""

    def __init__(self, original_url: str, entries: Mapping[str, Parse] | None = None) -> None:
        super().__init__(entries or {})
        self.original_url = original_url

    @classmethod
    def of(cls, url: str, parse: Parse) -> ParseResult:
        """Makes the usual result: one URL, one document."""
        return cls(url, {url: parse})

    @property
    def is_success(self) -> bool:
        """True if every document was parsed."""
        return all(parse.data.status.is_success for parse in self.values())

    @property
    def is_any_success(self) -> bool:
        """True if at least one document was parsed."""
        return any(parse.data.status.is_success for parse in self.values())

    def drop_failures(self) -> None:
        """Removes the documents that could not be parsed (ParseResult.filter)."""
        for url in [url for url, parse in self.items() if not parse.data.status.is_success]:
            del self[url]


@dataclass(slots=True)
class HTMLMetaTags:
    """The meta elements in the head of an HTML page; names of `general_tags` and `http_equiv_tags`
    are in lower case.
    """

    no_index: bool = False
    no_follow: bool = False
    no_cache: bool = False
    base_href: str | None = None
    refresh: bool = False
    refresh_time: int = 0
    refresh_href: str | None = None
    general_tags: Metadata = field(default_factory=Metadata)
    http_equiv_tags: dict[str, str] = field(default_factory=dict)


class Action(NamedTuple):
    """An action of a writer: adds the document `payload` under a URL, or deletes it (None)."""

    key: str
    payload: bytes | None


class Refused(NamedTuple):
    """A document or a deletion that a server refuses, and the reason."""

    key: str
    reason: str
