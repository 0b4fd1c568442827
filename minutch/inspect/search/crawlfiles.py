"""Reads what a crawl's files have of one URL: the stored page, the links to it, its records from
the first one on."""

from __future__ import annotations

import html
import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from shlex import quote
from typing import Final, TypeVar

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
from minutch.errors import StoreError
from minutch.hadoop.formats.javaio import decode_text, encode_text
from minutch.hadoop.formats.writables import Text
from minutch.inspect.query.links import newest_links
from minutch.mediatypes import essence
from minutch.processwide import command_line
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

T = TypeVar("T")

# Rebuilds a stored page of tags that make no browser connect anywhere. Pure.
#
# A policy (CSP) has no say in `<link rel=preconnect>` and `dns-prefetch`, in names that Chromium
# looks up for links, or in what browsers will think of next. So nothing is taken out of the page:
# it is written anew, from lists of what may stay. Each `<` of the output begins one of our own
# tags, so that no reading of it, by whatever rules, finds another element. Links lead to the top
# of the page, and say where they led; pictures are kept if they are in the page itself.
#
# Tags are told apart as in the HTML standard (13.2.5), but no tree is made: deep trees take the
# square of their size, and the browser mends the nesting as it would have mended the original's.

KEPT: Final = frozenset(
    re.findall(
        r"\w+",
        """
    html head title style body main article section nav aside header footer hgroup address
    h1 h2 h3 h4 h5 h6 p hr pre blockquote ol ul menu li dl dt dd figure figcaption div
    center a em strong small s cite q dfn abbr ruby rt rp data time code var samp kbd sub
    sup i b u mark bdi bdo span br wbr ins del img table caption colgroup col tbody thead
    tfoot tr td th details summary fieldset legend label form button font big tt strike nobr
    dir
    """,
    )
)
"""Elements whose tags stay. Of all others, what is between their tags does."""
ATTRIBUTES: Final = frozenset(
    re.findall(
        r"\w+",
        """
    id class style lang dir title alt width height align valign bgcolor color face size
    border cellpadding cellspacing colspan rowspan span start value type reversed datetime
    headers scope nowrap open hidden
    """,
    )
)
_RAW: Final = {
    name: re.compile(rf"</{name}(?=[\s/>])", re.IGNORECASE)
    for name in (
        *("title", "style", "script", "textarea", "iframe", "noembed", "noframes", "xmp"),
        "template",
    )
}
"""Elements whose content is no markup, and what ends it. It stays in a title and in a style."""
_TAG: Final = re.compile(r"<(/?)([a-zA-Z][^\s/>]*)")
_NAME: Final = re.compile(r"[\s/]*([^\s/>][^\s/>=]*)?\s*(=?)\s*")
_BARE: Final = re.compile(r"[^\s>]*")
_PICTURE: Final = re.compile(r"data:image/(?:png|jpeg|gif|webp|bmp|avif)[;,]", re.IGNORECASE)
_LT: Final = str.maketrans({"<": "&lt;"})
_LT_IN_CSS: Final = str.maketrans({"<": "\\3c "})
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


def still(page: bytes) -> bytes:
    """Returns an HTML page, UTF-8 both, that a browser shows without a connection to any host."""
    text = page.decode("utf-8", "replace")
    pieces = ["<!DOCTYPE html>" if "<!doctype html" in text[:4096].lower() else ""]
    at = 0
    while (start := text.find("<", at)) >= 0:
        pieces.append(text[at:start])
        tag = _TAG.match(text, start)
        if tag is None:
            at = _after_comment(text, start)
            if at == start + 1:
                pieces.append("&lt;")
            continue
        attributes, at = _attributes(text, tag.end())
        name = tag[2].lower()
        if name in KEPT:
            written = "" if tag[1] else _written(name, attributes)
            pieces.append(f"<{tag[1]}{name}{written}>")
        if not tag[1] and name in _RAW:
            end = _RAW[name].search(text, at)
            content, at = text[at : end.start() if end else None], end.start() if end else len(text)
            if name in KEPT:
                pieces.append(content.translate(_LT_IN_CSS if name == "style" else _LT))
    pieces.append(text[at:])
    return "".join(pieces).encode("utf-8", "replace")


def _after_comment(text: str, start: int) -> int:
    """Returns where a comment or the like ends; the place after `<` if that is text."""
    if text.startswith(("<!-->", "<!--->"), start):
        return text.index(">", start) + 1
    if text.startswith("<!--", start):
        end = text.find("-->", start + 4)
        return end + 3 if end >= 0 else len(text)
    if text.startswith(("<!", "<?", "</"), start):
        end = text.find(">", start)
        return end + 1 if end >= 0 else len(text)
    return start + 1


def _attributes(text: str, at: int) -> tuple[dict[str, str], int]:
    """Reads a tag's attributes; returns them and where the tag ends. One without an end takes the
    rest of the page, as in a browser.
    """
    found: dict[str, str] = {}
    while True:
        name = _NAME.match(text, at)
        assert name is not None  # it matches the empty string
        at = name.end()
        if name[1] is None:
            end = text.find(">", at)
            return found, end + 1 if end >= 0 else len(text)
        value = ""
        if name[2] and text[at : at + 1] in ("'", '"'):
            end = text.find(text[at], at + 1)
            if end < 0:
                return found, len(text)
            value, at = text[at + 1 : end], end + 1
        elif name[2]:
            bare = _BARE.match(text, at)
            assert bare is not None
            value, at = bare[0], bare.end()
        found.setdefault(name[1].lower(), html.unescape(value))


def _written(tag: str, attributes: dict[str, str]) -> str:
    kept = {name: value for name, value in attributes.items() if name in ATTRIBUTES}
    source, target = attributes.get("src", ""), attributes.get("href")
    if tag == "img" and _PICTURE.match(source):
        kept["src"] = source
    if tag == "a" and target is not None:
        kept["href"] = target if target.startswith("#") else "#"
        if kept["href"] != target:
            kept.setdefault("title", target)
    return "".join(f' {name}="{html.escape(value)}"' for name, value in kept.items())


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
        found = self._newest(CONTENT, url, Content)
        return None if found is None else _stored(url, *found)

    def require_content(self, url: str) -> Content:
        """Returns the same as it came. Raises StoreError if there is none."""
        found = self._newest(CONTENT, url, Content)
        if found is None:
            raise StoreError(
                f"no segment of {self.folder} has the content of {url}",
                hint=f"`{command_line(f'explain {quote(url)} {self.folder}')}` says why",
            )
        return found[1]

    def parsed(self, url: str) -> ParseData | None:
        """Returns the newest parse of a page."""
        found = self._newest(PARSE_DATA, url, ParseData)
        return None if found is None else found[1]

    def title(self, url: str) -> str:
        """Returns the title of the page as it was last parsed; empty if it has none."""
        found = self.parsed(url)
        return "" if found is None else " ".join(found.title.split())

    def _newest(self, folder: str, url: str, kind: type[T]) -> tuple[Segment, T] | None:
        for segment in reversed(self.segments()):
            found = segment.newest(folder, url)
            if isinstance(found, kind):
                return segment, found
        return None

    def inlinks(self, url: str) -> list[Inlink]:
        """Returns the links to a page, in the LinkDb's order; else those of the newest parses."""
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
        """Returns the records of a URL: the segments', oldest first, then the CrawlDb's."""
        return list(self._events(url))

    def _events(self, url: str) -> Iterator[Event]:
        for segment in self.segments():
            for datum in segment.get(CRAWL_FETCH, url) if segment.has(CRAWL_FETCH) else ():
                if isinstance(datum, CrawlDatum):
                    yield _event(segment.name, datum, segment.newest(PARSE_DATA, url))
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


def _event(segment: str, datum: CrawlDatum, parsed: object | None) -> Event:
    signature = datum.signature.hex() if datum.signature else ""
    ended = datum.metadata.get(Text(PROTO_STATUS_KEY))
    more = {str(key): str(value) for key, value in datum.metadata.items()}
    for known in (PROTO_STATUS_KEY, RESPONSE_CODE_KEY):
        more.pop(known, None)
    code = http_code(datum)
    if isinstance(parsed, ParseData):
        signature = parsed.content_meta.get(SIGNATURE_KEY) or signature
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
    parsed, fetched = segment.newest(PARSE_DATA, url), segment.newest(CRAWL_FETCH, url)
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
        found = segment.newest(PARSE_TEXT, url)
        media_type, text_only = TEXT, True
        body = found.text.encode("utf-8", "replace") if isinstance(found, ParseText) else b""
    return Stored(url, media_type, body, segment.name, time, kind, text_only)
