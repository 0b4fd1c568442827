"""Makes the line of metadata and the text of a URL in a worker process, the only place where pages
are read.
"""

from __future__ import annotations

import json
import pickle
from typing import Final, NamedTuple
from urllib.parse import urlsplit

from selectolax.lexbor import LexborHTMLParser, SelectolaxError

from minutch.archives.dataset.feeddoc import feed_doc, is_feed
from minutch.archives.dataset.htmldoc import description_of, html_doc
from minutch.archives.dataset.metadatadoc import (
    DETECTORS,
    Document,
    Json,
    answer_of,
    failure,
    is_success,
    success,
    was_attempted,
)
from minutch.charsets import Charset
from minutch.conf import Configuration
from minutch.cycle.parse.charset import CharsetDetector
from minutch.cycle.parse.simhash import simhash
from minutch.errors import FormatError, ParseError
from minutch.mediatypes import essence
from minutch.records.crawldatum import CrawlDatum
from minutch.records.parsedata import ParseText
from minutch.records.protocol import Content

HTML: Final = ("text/html", "application/xhtml+xml")
FEEDS: Final = ("application/rss+xml", "application/atom+xml", "application/rdf+xml")
XML: Final = ("application/xml", "text/xml")

WRITTEN_HTML: Final = "HTML pages"
WRITTEN_FEED: Final = "feeds"
WRITTEN_OTHER: Final = "other pages"
WRITTEN_FAILURE: Final = "failures"
NOT_ATTEMPTED: Final = "URLs omitted: never requested"
UNREADABLE: Final = "URLs omitted: unreadable records"
FAILED: Final = "unreadable pages, written without content"
COUNTERS: Final = frozenset(
    {WRITTEN_HTML, WRITTEN_FEED, WRITTEN_OTHER, WRITTEN_FAILURE, NOT_ATTEMPTED, UNREADABLE, FAILED}
)


class UrlRecords(NamedTuple):
    """The serialized records of a URL in a segment, None if missing. The last two are JSON."""

    url: str
    is_parsed: bool
    datum: bytes
    content: bytes | None
    text: bytes | None
    redirect_from: bytes | None
    archive_info: bytes | None = None


class MetadataLine(NamedTuple):
    """A line of output: JSON (empty: no line), text if there is any, and a counter to add to."""

    metadata: bytes
    text: bytes | None
    counter: str


class MetadataTask:
    """A task of a WorkerPool, whose items are pickled UrlRecords."""

    result_type = MetadataLine

    def __init__(self, conf: Configuration) -> None:
        self._charsets = CharsetDetector(conf)

    def run(self, item: bytes) -> MetadataLine:
        """Makes the line of an item. Raises nothing: unreadable records are counted."""
        return self._line(item, read=True)

    def finish(self, results: list[MetadataLine]) -> list[MetadataLine]:
        """Returns the results unchanged."""
        return results

    def accepts(self, result: MetadataLine) -> bool:
        """Tells whether a line is one, with a counter that is one of the export's."""
        return result.counter in COUNTERS and b"\n" not in result.metadata

    def fail(self, item: bytes, reason: str) -> MetadataLine:
        """Makes the line of a page that ended the worker, without its content."""
        line = self._line(item, read=False)
        return line._replace(counter=FAILED) if line.metadata else line

    def _line(self, pickled: bytes, *, read: bool) -> MetadataLine:
        item = UrlRecords(*pickle.loads(pickled))
        try:
            datum = CrawlDatum.from_bytes(item.datum)
            content = Content.from_bytes(item.content) if item.content is not None else None
            text = ParseText.from_bytes(item.text).text if item.text is not None else ""
        except FormatError:
            return MetadataLine(b"", None, UNREADABLE)
        if not was_attempted(datum):
            return MetadataLine(b"", None, NOT_ATTEMPTED)
        source: Json | None = (
            json.loads(item.redirect_from) if item.redirect_from is not None else None
        )
        answer = answer_of(datum, content)
        if not is_success(answer, datum):
            return MetadataLine(
                _dumped(failure(item.url, datum, answer, source)), None, WRITTEN_FAILURE
            )
        document, readable = None, None
        if read and content is not None and 200 <= answer.result < 300:
            document, readable = self._document(content, text, item.is_parsed)
        counter = {"html": WRITTEN_HTML, "feed": WRITTEN_FEED}.get(
            document.parsed_as if document else "", WRITTEN_OTHER
        )
        record = success(datum, answer, source, content, document)
        if item.archive_info is not None and "md5" in record:
            record["archiveInfo"] = json.loads(item.archive_info)
        return MetadataLine(_dumped(record), None if readable is None else _utf8(readable), counter)

    def _document(
        self, content: Content, text: str, is_parsed: bool
    ) -> tuple[Document, str | None]:
        """Returns the document of a page, and its text if it is of a type that has one in the data
        set.

        Markup is read only if it was parsed before: what a parse gave up might never end.
        """
        kind, data = essence(content.content_type), content.content
        if not (kind.startswith("text/") or kind in HTML + FEEDS + XML):
            return Document(), None
        charset, detector = self._charset(content, kind)
        document = Document(_javas(charset), detector)
        readable = None
        if kind in HTML and not is_parsed:
            return document, None
        if kind in HTML:
            readable = self._html(document, content, charset, text)
        elif kind in FEEDS or (kind in XML and is_feed(data)):
            readable = self._feed(document, content, charset)
        document.simhash = simhash(readable or text or charset.decode(data))
        return document, readable

    def _charset(self, content: Content, kind: str) -> tuple[Charset, int]:
        header = content.metadata.field("Content-Type") or content.content_type
        host = urlsplit(content.url).hostname or "" if "[" not in content.url else ""
        charset, clue = self._charsets.detect_by(
            content.content, header, kind, host.rpartition(".")[2]
        )
        return charset, DETECTORS[clue]

    def _html(
        self, document: Document, content: Content, charset: Charset, text: str
    ) -> str | None:
        try:
            tree = LexborHTMLParser(charset.to_utf8(content.content))
        except (SelectolaxError, ValueError):
            return None
        doc = html_doc(tree, content.base or content.url)
        document.parsed_as, document.content = "html", doc
        title = " ".join(doc.get("title", "").split())
        lines = [title, description_of(doc), text.strip().removeprefix(title).strip()]
        return "\n".join(line for line in lines if line)

    def _feed(self, document: Document, content: Content, charset: Charset) -> str | None:
        try:
            doc, readable = feed_doc(charset.to_utf8(content.content), content.base or content.url)
        except ParseError:
            return None
        document.parsed_as, document.content = "feed", doc
        return readable


def _javas(charset: Charset) -> str:
    """Returns a charset's name as the original files spell it."""
    return charset.name if charset.name.startswith(("windows-", "x-")) else charset.name.upper()


def _dumped(record: Json) -> bytes:
    return _utf8(json.dumps(record, ensure_ascii=False, separators=(",", ":")))


def _utf8(text: str) -> bytes:
    return text.encode("utf-8", "replace")
