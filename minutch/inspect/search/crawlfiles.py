"""Reads what a crawl's files have of one URL: the stored page, the links to it, its records from
the first one on."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import polars as pl

from minutch.charsets import UTF_8
from minutch.cycle.crawldb.store import CrawlDb
from minutch.cycle.fetch.decisions import http_code, reason
from minutch.cycle.linkdb.store import LinkDb
from minutch.cycle.segment.store import (
    CONTENT,
    CRAWL_FETCH,
    PARSE_DATA,
    PARSE_TEXT,
    Segment,
    segments_in,
)
from minutch.hadoop.formats.javaio import decode_text, encode_text
from minutch.hadoop.formats.writables import Text
from minutch.inspect.query.links import newest_links
from minutch.inspect.search.stillpage import still
from minutch.mediatypes import essence
from minutch.records.crawldatum import CrawlDatum
from minutch.records.links import Inlink
from minutch.records.metadata import (
    GENERATE_TIME_KEY,
    PROTO_STATUS_KEY,
    RESPONSE_CODE_KEY,
    RESPONSE_TIME_KEY,
    SIGNATURE_KEY,
)
from minutch.records.parsedata import SUCCESS_REDIRECT, ParseData, ParseStatus, ParseText
from minutch.records.protocol import NOTMODIFIED, Content, ProtocolStatus

HTML: Final = frozenset(("text/html", "application/xhtml+xml"))
PICTURES: Final = frozenset(
    f"image/{kind}" for kind in ("png", "jpeg", "gif", "webp", "bmp", "avif")
)
TEXT: Final = "text/plain"
_DEEP: Final = 3
"""Levels of folders by which a change is noticed: `segments/*/crawl_fetch`, `crawldb/current/*`."""
_TEXTUAL: Final = frozenset(
    f"application/{kind}" for kind in ("json", "xml", "javascript", "x-javascript", "xhtml+xml")
)


@dataclass(frozen=True)
class Stored:
    """A stored page in a form that is safe for a browser, and in UTF-8 if it is text."""

    url: str
    media_type: str
    """text/html, text/plain, or that of a picture."""
    body: bytes
    segment: str
    fetched: int | None
    """Milliseconds since the epoch."""
    original_type: str
    is_text_only: bool
    """True for the text that parsing has found, if a browser can't safely show the page."""


@dataclass(frozen=True)
class Event:
    """What one segment or the CrawlDb says of a URL. Times are in milliseconds since the epoch."""

    segment: str
    """Empty for the CrawlDb."""
    status: str
    """Nutch's name."""
    why: str
    """Why it was not fetched, in words; else empty."""
    code: str
    """The HTTP status of the answer, as far as it is known."""
    time: int
    """Of the fetch; in the CrawlDb, when it is due."""
    modified: int
    score: float
    signature: str
    interval: int
    parsed: str
    """How parsing ended; empty if nothing was parsed."""
    listed: str
    """When it was put on the fetch list."""
    response_ms: str
    metadata: dict[str, str]
    """What is left of it."""


class CrawlFiles:
    """The files of the crawl in a folder. Methods raise FormatError (damage)."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def segments(self) -> list[Segment]:
        """Returns the segments, oldest first."""
        folder = self.folder / "segments"
        return segments_in(folder) if folder.is_dir() else []

    def state(self) -> tuple[tuple[str, int, int, int], ...]:
        """Returns a value that is different after every job: of the databases' parts and the
        segments' folders, which appear by renaming, names and times.
        """
        return tuple(_entries(self.folder, _DEEP))

    def stored(self, url: str) -> Stored | None:
        """Returns the page as it was last stored; None if no segment has its content."""
        for segment in reversed(self.segments()):
            found = _last(segment, CONTENT, url)
            if isinstance(found, Content):
                return _stored(url, segment, found)
        return None

    def title(self, url: str) -> str:
        """Returns the title of the page as it was last parsed; empty if it has none."""
        for segment in reversed(self.segments()):
            found = _last(segment, PARSE_DATA, url)
            if isinstance(found, ParseData):
                return " ".join(found.title.split())
        return ""

    def inlinks(self, url: str) -> list[Inlink]:
        """Returns the links to a page, in the order of the LinkDb; where it knows none, those of
        the newest parses.
        """
        db = LinkDb(self.folder / "linkdb")
        found = db.get(url) if db.exists() else None
        if found is not None and len(found):
            return list(found)
        wanted = pl.col("key") == encode_text(url)
        return [
            Inlink(decode_text(from_url), decode_text(anchor))
            for links in newest_links([one for one in self.segments() if one.has(PARSE_DATA)])
            for from_url, anchor in links.filter(wanted).select("from_url", "anchor").iter_rows()
        ]

    def history(self, url: str) -> list[Event]:
        """Returns the records of a URL: those of the segments, oldest first, then that of the
        CrawlDb.
        """
        return list(self._events(url))

    def _events(self, url: str) -> Iterator[Event]:
        for segment in self.segments():
            for datum in segment.get(CRAWL_FETCH, url) if segment.has(CRAWL_FETCH) else ():
                if isinstance(datum, CrawlDatum):
                    yield _event(segment.name, datum, _last(segment, PARSE_DATA, url))
        db = CrawlDb(self.folder / "crawldb")
        known = db.get(url) if db.exists() else None
        if known is not None:
            yield _event("", known, None)


def _entries(folder: Path, depth: int) -> Iterator[tuple[str, int, int, int]]:
    try:
        with os.scandir(folder) as found:
            entries = sorted(found, key=lambda entry: entry.name)
    except OSError:  # gone meanwhile
        return
    for entry in entries:
        try:
            stat = entry.stat(follow_symlinks=depth == _DEEP)  # a database may lie elsewhere
        except OSError:
            continue
        yield entry.path, stat.st_ino, stat.st_mtime_ns, stat.st_size
        if depth > 1 and entry.is_dir():
            yield from _entries(Path(entry.path), depth - 1)


def _last(segment: Segment, folder: str, url: str) -> object | None:
    found = segment.get(folder, url) if segment.has(folder) else []
    return found[-1] if found else None


def _event(segment: str, datum: CrawlDatum, parsed: object | None) -> Event:
    signature = datum.signature.hex() if datum.signature else ""
    ended = datum.metadata.get(Text(PROTO_STATUS_KEY))
    more = {str(key): str(value) for key, value in datum.metadata.items()}
    for known in (PROTO_STATUS_KEY, RESPONSE_CODE_KEY):
        more.pop(known, None)
    code = http_code(datum)
    if isinstance(parsed, ParseData):
        signature = parsed.content_meta.first(SIGNATURE_KEY) or signature
    return Event(
        segment,
        datum.status_name,
        _why(ended, code),
        code,
        datum.fetch_time,
        datum.modified_time,
        datum.score,
        signature,
        datum.fetch_interval,
        _parse_words(parsed.status) if isinstance(parsed, ParseData) else "",
        more.pop(GENERATE_TIME_KEY, ""),
        more.pop(RESPONSE_TIME_KEY, ""),
        more,
    )


def _why(ended: object, code: str) -> str:
    if not isinstance(ended, ProtocolStatus) or ended.is_success or ended.is_redirect:
        return ""
    return "" if ended.code == NOTMODIFIED else reason(ended, code)


def _parse_words(status: ParseStatus) -> str:
    if not status.is_success:
        return f"not parsed: {status.message or status}"
    is_whole = status.minor == SUCCESS_REDIRECT or not status.message
    return "parsed" if is_whole else f"parsed: {status.message}"


def _stored(url: str, segment: Segment, content: Content) -> Stored:
    parsed, fetched = _last(segment, PARSE_DATA, url), _last(segment, CRAWL_FETCH, url)
    time = fetched.fetch_time if isinstance(fetched, CrawlDatum) else None
    kind = essence(content.content_type)
    charset = parsed.charset if isinstance(parsed, ParseData) else UTF_8
    text_only = False
    if kind in PICTURES:
        media_type, body = kind, content.content
    elif kind.startswith("text/") or kind in _TEXTUAL or kind.endswith(("+xml", "+json")):
        media_type = "text/html" if kind in HTML else TEXT
        body = charset.to_utf8(content.content)
        body = still(body) if media_type == "text/html" else body
    else:
        found = _last(segment, PARSE_TEXT, url)
        media_type, text_only = TEXT, True
        body = found.text.encode("utf-8", "replace") if isinstance(found, ParseText) else b""
    return Stored(url, media_type, body, segment.name, time, kind, text_only)
