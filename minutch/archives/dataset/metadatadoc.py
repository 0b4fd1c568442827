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

from dataclasses import dataclass
from hashlib import md5
from http import HTTPStatus
from typing import Any, Final

from minutch.cycle.parse.charset import Clue
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
from minutch.records.protocol import Content, ProtocolStatus

Json = dict[str, Any]

NO_ADDRESS: Final = "0.0.0.0"
DETECTORS: Final = {
    Clue.HEADER: 0,
    Clue.META: 1,
    Clue.MARK: 2,
    Clue.CONTENT: 2,
    Clue.GUESS: 3,
    Clue.DEFAULT: 10,
}
"""Source of a charset → charset_detector: 3 is Mozilla's detector, and chardetng; 2 (then ICU) is
any inspection of the bytes; 10 is none.
"""
_PHRASES: Final = {int(code): code.phrase for code in HTTPStatus}
_GZIP: Final = ("gzip", "x-gzip")
_RESULTS: Final = {
    protocol.SUCCESS: 200,
    protocol.MOVED: 301,
    protocol.TEMP_MOVED: 302,
    protocol.NOTMODIFIED: 304,
    protocol.ACCESS_DENIED: 403,
    protocol.NOTFOUND: 404,
    protocol.GONE: 410,
}
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
    "nutch.",
    "http.content.",
    "_",
    "OriginalCharEncoding",
    "CharEncodingForConversion",
)
_REDIRECTS: Final = (status.STATUS_FETCH_REDIR_TEMP, status.STATUS_FETCH_REDIR_PERM)


@dataclass(frozen=True, slots=True)
class Answer:
    """An HTTP response; `result` is 0 if there was none."""

    result: int
    server_ip: str
    headers: dict[str, str]


@dataclass(slots=True)
class Document:
    """The results of reading a page."""

    charset: str = ""
    detector: int = 10
    simhash: int | None = None
    parsed_as: str = ""
    content: Json | None = None


def answer_of(datum: CrawlDatum, content: Content | None) -> Answer:
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
    return Answer(result, _known(datum, meta, IP_ADDRESS_KEY) or NO_ADDRESS, headers)


def headers_of(meta: Metadata) -> dict[str, str]:
    """Returns headers by lower-case name, repeated ones joined by commas; verbatim if they were
    stored.
    """
    verbatim = meta.first(RESPONSE_HEADERS_KEY)
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


def redirect_of(url: str, answer: Answer) -> Json:
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


def is_success(answer: Answer, datum: CrawlDatum) -> bool:
    """Returns whether the crawl of 2012 would have counted this as a success."""
    return 0 < answer.result < 500 and datum.status not in _REDIRECTS


def failure(url: str, datum: CrawlDatum, answer: Answer, redirect_from: Json | None) -> Json:
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
    answer: Answer,
    redirect_from: Json | None,
    content: Content | None,
    document: Document | None,
) -> Json:
    """Returns the record of a successful fetch."""
    record = _begin(datum, "SUCCESS", redirect_from)
    body = content.content if content is not None else b""
    record["server_ip"] = answer.server_ip
    record["http_result"] = answer.result
    record["http_headers"] = answer.headers
    truncated = content is not None and content.metadata.first(TRUNCATED_KEY) == "true"
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


def _add_document(record: Json, document: Document | None) -> None:
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
    return str(value) if value is not None else meta.first(key) or ""
