"""Makes the metadata record of 2012 for one URL, with its members in the order of the original
files. Pure: no I/O.

    {attempt_time, disposition: "FAILURE", [redirect_from], failure_reason, failure_detail}

    {attempt_time, disposition: "SUCCESS", [redirect_from],
     server_ip, http_result, http_headers, content_len,
     and for 2xx: mime_type, download_size, [download_truncated],
     [content_is_gzip, gunzip_content_len], md5,
     [charset_detected, charset_detector, text_simhash],
     [parsed_as, content], [archiveInfo]}

Any response below 500 is a success, even a 404; only those with 2xx have more than the head. Where
Common Crawl's description and the original files differ, the files win: `content_len` is the number
of bytes downloaded if there is no Content-Length, an unknown address is 0.0.0.0, and
`arcFileParition` is misspelt. Data that a segment lacks are missing: headers of responses without
content, and the compressed size of a page if there is no Content-Length. `text_simhash` is
minutch's own (`minutch.cycle.parse.simhash`), as a signed number; the algorithm of 2012 was not
published.
"""

from __future__ import annotations

import json
import pickle
from dataclasses import dataclass
from hashlib import md5
from http import HTTPStatus
from typing import Any, Final, NamedTuple

from selectolax.lexbor import LexborHTMLParser, SelectolaxError

from minutch.annexes.dataset.pagedocs import description_of, feed_doc, html_doc, is_feed
from minutch.charsets import Charset
from minutch.conf import Configuration
from minutch.cycle.parse.charset import CharsetDetector, Clue
from minutch.cycle.parse.simhash import simhash
from minutch.errors import FormatError, ParseError
from minutch.hadoop.formats.writables import Text
from minutch.mediatypes import essence
from minutch.records import crawldatum as status
from minutch.records import protocol
from minutch.records.crawldatum import CrawlDatum
from minutch.records.metadata import (
    IP_ADDRESS_KEY,
    PROTO_STATUS_KEY,
    RESPONSE_CODE_KEY,
    RESPONSE_HEADERS_KEY,
    TRUNCATED_KEY,
    Metadata,
)
from minutch.records.parsedata import ParseText
from minutch.records.protocol import Content, ProtocolStatus

Json = dict[str, Any]

NO_ADDRESS: Final = "0.0.0.0"
DETECTORS: Final = {
    Clue.HEADER: 0, Clue.META: 1, Clue.MARK: 2, Clue.CONTENT: 2, Clue.GUESS: 3, Clue.DEFAULT: 10,
}  # fmt: skip
"""Source of a charset → charset_detector: 3 is Mozilla's detector, and chardetng; 2 (then ICU) is
any inspection of the bytes; 10 is none.
"""
_PHRASES: Final = {int(code): code.phrase for code in HTTPStatus}
_GZIP: Final = ("gzip", "x-gzip")
_RESULTS: Final = {
    protocol.SUCCESS: 200, protocol.MOVED: 301, protocol.TEMP_MOVED: 302, protocol.NOTMODIFIED: 304,
    protocol.ACCESS_DENIED: 403, protocol.NOTFOUND: 404, protocol.GONE: 410,
}  # fmt: skip
"""ProtocolStatus → HTTP status, for responses whose own was not recorded."""
_REASONS: Final = {
    protocol.REDIR_EXCEEDED: "RedirectFailed",
    protocol.ROBOTS_DENIED: "RobotsDenied",
    protocol.BLOCKED: "Blocked",
    protocol.WOULDBLOCK: "Blocked",
}
"""ProtocolStatus → failure_reason; all others are IOException. Only RedirectFailed and IOException
occur in the original files.
"""
_NOT_HEADERS: Final = (
    "nutch.", "http.content.", "_", "OriginalCharEncoding", "CharEncodingForConversion",
)  # fmt: skip
_REDIRECTS: Final = (status.STATUS_FETCH_REDIR_TEMP, status.STATUS_FETCH_REDIR_PERM)
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


@dataclass(frozen=True, slots=True)
class HttpResult:
    """An HTTP response; `result` is 0 if there was none."""

    result: int
    server_ip: str
    headers: dict[str, str]


@dataclass(slots=True)
class ContentAnalysis:
    """The results of reading a page."""

    charset: str = ""
    detector: int = 10
    simhash: int | None = None
    parsed_as: str = ""
    content: Json | None = None


def answer_of(datum: CrawlDatum, content: Content | None) -> HttpResult:
    """Returns the response to the request for a page."""
    meta = content.metadata if content is not None else Metadata()
    code = _known(datum, meta, RESPONSE_CODE_KEY)
    protocol_status = _protocol_status(datum)
    result = (
        int(code) if code.isdecimal() and len(code) == 3 else _RESULTS.get(protocol_status.code, 0)
    )
    headers = headers_of(meta)
    if result and "response" not in headers:
        headers = {"response": f"HTTP/1.1 {result} {_PHRASES.get(result, '')}".rstrip(), **headers}
    if datum.status in _REDIRECTS and protocol_status.args and "location" not in headers:
        headers["location"] = protocol_status.args[0] or ""
    return HttpResult(result, _known(datum, meta, IP_ADDRESS_KEY) or NO_ADDRESS, headers)


def headers_of(meta: Metadata) -> dict[str, str]:
    """Returns headers by lower-case name, repeated ones joined by commas; or as stored."""
    verbatim = meta.get(RESPONSE_HEADERS_KEY)
    found: dict[str, str] = {}
    if verbatim:
        first, *lines = verbatim.splitlines() or [""]
        found["response"] = first.strip()
        pairs = [
            (name, value) for name, colon, value in (line.partition(":") for line in lines) if colon
        ]
    else:
        names = (name for name in meta if not name.startswith(_NOT_HEADERS))
        pairs = [(name, value) for name in names for value in meta[name]]
    for name, value in pairs:
        key = name.strip().lower()
        found[key] = f"{found[key]}, {value.strip()}" if key in found else value.strip()
    return found


def redirect_of(url: str, answer: HttpResult) -> Json:
    """Returns the member `redirect_from`, which describes a redirect to the page."""
    return {
        "source_url": url,
        "http_result": answer.result,
        "server_ip": answer.server_ip,
        "http_headers": answer.headers,
    }


def was_attempted(datum: CrawlDatum) -> bool:
    """Returns whether a fetch was attempted."""
    return datum.has_fetch_status() and _protocol_status(datum).code != protocol.NOTFETCHING


def is_success(answer: HttpResult, datum: CrawlDatum) -> bool:
    """Returns whether the crawl of 2012 would have counted this as a success."""
    return 0 < answer.result < 500 and datum.status not in _REDIRECTS


def failure(url: str, datum: CrawlDatum, answer: HttpResult, redirect_from: Json | None) -> Json:
    """Returns the record of a failed fetch."""
    protocol_status = _protocol_status(datum)
    message = (protocol_status.args[0] if protocol_status.args else "") or ""
    if datum.status in _REDIRECTS:
        reason, detail = "RedirectFailed", f"Not Followed Redirect Location:{message}"
    elif answer.result >= 500:
        reason, detail = (
            "InvalidResponseCode",
            f"URL:{url} returned invalid responseCode:{answer.result}",
        )
    else:
        reason, detail = _REASONS.get(protocol_status.code, "IOException"), message
    record = _begin(datum, "FAILURE", redirect_from)
    record["failure_reason"] = reason
    record["failure_detail"] = detail
    return record


def success(
    datum: CrawlDatum,
    answer: HttpResult,
    redirect_from: Json | None,
    content: Content | None,
    document: ContentAnalysis | None,
) -> Json:
    """Returns the record of a successful fetch."""
    record = _begin(datum, "SUCCESS", redirect_from)
    body = content.content if content is not None else b""
    record["server_ip"] = answer.server_ip
    record["http_result"] = answer.result
    record["http_headers"] = answer.headers
    truncated = content is not None and content.metadata.get(TRUNCATED_KEY) == "true"
    is_gzip = answer.headers.get("content-encoding", "").lower() in _GZIP
    length = answer.headers.get("content-length", "")
    declared_length = (
        int(length)
        if length.isascii() and length.isdecimal() and len(length) < 16 and not truncated
        else None
    )
    size = len(body) if declared_length is None else declared_length
    record["content_len"] = size
    if content is None or not 200 <= answer.result < 300:
        return record
    declared = essence(answer.headers.get("content-type", ""))
    record["mime_type"] = declared or content.content_type
    record["download_size"] = size
    if truncated:
        record["download_truncated"] = True
    if is_gzip:
        record["content_is_gzip"] = True
        record["gunzip_content_len"] = len(body)
    record["md5"] = md5(body, usedforsecurity=False).hexdigest()
    _add_document(record, document)
    return record


def _add_document(record: Json, document: ContentAnalysis | None) -> None:
    if document is None:
        return
    if document.charset:
        record["charset_detected"] = document.charset
        record["charset_detector"] = document.detector
    if document.simhash is not None:
        record["text_simhash"] = java_long(document.simhash)
    if document.content is not None:
        record["parsed_as"] = document.parsed_as
        record["content"] = document.content


def java_long(number: int) -> int:
    """Converts an unsigned number of 64 bits to Java's long."""
    return number - (1 << 64) if number >> 63 else number


def _begin(datum: CrawlDatum, disposition: str, redirect_from: Json | None) -> Json:
    record: Json = {"attempt_time": datum.fetch_time, "disposition": disposition}
    if redirect_from is not None:
        record["redirect_from"] = redirect_from
    return record


def _protocol_status(datum: CrawlDatum) -> ProtocolStatus:
    found = datum.metadata.get(Text(PROTO_STATUS_KEY))
    return found if isinstance(found, ProtocolStatus) else ProtocolStatus()


def _known(datum: CrawlDatum, meta: Metadata, key: str) -> str:
    """Returns a value from the metadata of the datum, or of the content."""
    value = datum.metadata.get(Text(key))
    return str(value) if value is not None else meta.get(key) or ""


# Makes the line of metadata and the text of a URL in a worker process, the only place where pages
# are read.


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
    ) -> tuple[ContentAnalysis, str | None]:
        """Returns the document of a page, and its text if it is of a type that has one in the data
        set.

        Markup is read only if it was parsed before: what a parse gave up might never end.
        """
        kind, data = essence(content.content_type), content.content
        if not (kind.startswith("text/") or kind in HTML + FEEDS + XML):
            return ContentAnalysis(), None
        charset, detector = self._charset(content, kind)
        document = ContentAnalysis(_javas(charset), detector)
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
        charset, clue = self._charsets.detect_by(content.content, header, kind, content.url)
        return charset, DETECTORS[clue]

    def _html(
        self, document: ContentAnalysis, content: Content, charset: Charset, text: str
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

    def _feed(self, document: ContentAnalysis, content: Content, charset: Charset) -> str | None:
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
