"""Writes the WARC records of a fetched page.

    response     the HTTP head as it was stored (store.http.headers), fitted to the body, and the
                 body
    resource     the body alone, where there is no head
    revisit      the head alone, where the page had the same bytes as before; an empty block after a
                 304, whose head stands in the metadata record
    request      as it was stored (store.http.request)
    metadata     of fetch and parse: as fields, or as {"contentMeta": …, "parseMeta": …} in JSON
    conversion   the text that parsing found

Source: org.apache.nutch.tools.warc.WARCExporter (WARCReducer), tools.CommonCrawlFormatWARC; ISO
28500:2017, sections 6.3 to 6.8; the fields of metadata records are those of Heritrix, and of the
Common Crawl.

The head of an HTTP message is made to fit the body that is kept. This is kept unchunked and
uncompressed, so Content-Encoding and Transfer-Encoding no longer hold, and Content-Length may not:
they get the prefix `X-Crawler-`, and a right Content-Length is put behind the wrong one. Lines
without a colon go. The head ends with one empty line.

Where no head was kept, one is made of the status code and of the headers that the page's metadata
has: one value of each name, in another order than they came in, and without what the server said of
its reasons. The line MADE_HEAD marks it. Source: org.apache.nutch.tools.WARCUtils.fixHttpHeaders.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from http import HTTPStatus
from typing import Final, NamedTuple

from minutch.conf.properties import shown_request
from minutch.hadoop.formats.writables import Text
from minutch.records.crawldatum import CrawlDatum
from minutch.records.metadata import (
    CHAR_ENCODING_FOR_CONVERSION_KEY,
    CONTENT_FETCH_TIME_KEY,
    IP_ADDRESS_KEY,
    PROTOCOL_VERSIONS_KEY,
    REQUEST_KEY,
    RESPONSE_HEADERS_KEY,
    RESPONSE_TIME_KEY,
    SCORE_KEY,
    SEGMENT_NAME_KEY,
    SIGNATURE_KEY,
    TRUNCATED_REASON_KEY,
    Metadata,
)
from minutch.records.parsedata import ParseData, ParseText
from minutch.records.protocol import Content, is_truncated
from minutch.warc.jsontext import gson, metadata_object, valid
from minutch.warc.warcfile import (
    FIELDS,
    PAYLOAD_DIGEST,
    REQUEST,
    RESPONSE,
    V1_1,
    WarcFiles,
    warc_date,
    warc_fields,
)

LANGUAGE: Final = "WARC-Identified-Content-Language"
NOT_MODIFIED: Final = "http://netpreserve.org/warc/{}/revisit/server-not-modified"
IDENTICAL: Final = "http://netpreserve.org/warc/{}/revisit/identical-payload-digest"
_CIPHER_SUITES_KEY: Final = "_cipher_suites_"
_DEPTH_KEY: Final = "_depth_"
_REASONS: Final = ("length", "time", "disconnect")
_TLS: Final = "tlsv"
_DEEPEST: Final = 10_000
MADE_HEAD: Final = "X-Crawler-Head: made, none was stored"
"""A line by which a head is marked that is not the server's."""
_TOKEN: Final = re.compile(r"[!#$%&'*+.^`|~0-9A-Za-z-][!#$%&'*+.^_`|~0-9A-Za-z-]*")
"""A header's name (RFC 9110, 5.6.2); one that begins with an underscore is the crawler's own."""
_OWN: Final = frozenset({SEGMENT_NAME_KEY, SIGNATURE_KEY, SCORE_KEY, CONTENT_FETCH_TIME_KEY})
_OWN_BEGINNINGS: Final = ("nutch.", "http.content.", "robotstxt.")
_LINE_ENDS: Final = re.compile(r"[\r\n\0]+")
_STATUS: Final = re.compile(r"HTTP/[0-9.]+ +([1-9][0-9]{2})(?![0-9])")
_ENCODINGS = re.compile(r"(?i)(?:content|transfer)-encoding")


class Original(NamedTuple):
    """The capture that a revisit refers to: its time, its content's digest, its record's ID."""

    time: int
    digest: str
    id: str = ""


def write_page(
    files: WarcFiles,
    time: int,
    target: str,
    content: Content,
    *,
    can_be_cut_off: bool = True,
    code: int | None = None,
    digest: str = "",
) -> str:
    """Writes a page as a response or resource record; returns its ID. `target` is its URI, `time`
    when it was fetched (ms).

    `code` is the HTTP status that a head is made of where none was stored; `digest` the page's,
    where it is known.
    """
    head = _head(content, code)
    more = list(_connection(content.metadata))
    if can_be_cut_off and is_truncated(content):
        reason = content.metadata.get(TRUNCATED_REASON_KEY)
        more.append(("WARC-Truncated", reason if reason in _REASONS else "unspecified"))
    if digest:
        # Known: not hashed a second time.
        more.append((PAYLOAD_DIGEST, digest))
    if not head:
        return files.write(
            "resource", time, target, content.content, content.content_type, head=b"", more=more
        )
    return files.write("response", time, target, content.content, RESPONSE, head=head, more=more)


def write_revisit(
    files: WarcFiles,
    time: int,
    target: str,
    content: Content,
    original: Original | None,
    *,
    profile: str,
    code: int | None,
) -> str:
    """Writes a revisit record; `original` is the earlier capture, None if it is not known.

    Replay tools show the original's head where the revisit has none; that of a 304 they would show
    as it is, without a page. `code` is the HTTP status, None where no HTTP was spoken.
    """
    head = b"" if profile == NOT_MODIFIED else _head(content, code)
    more = [*_connection(content.metadata), ("WARC-Profile", profile.format(V1_1))]
    if original is not None:
        more.append((PAYLOAD_DIGEST, original.digest))
        more.append(("WARC-Refers-To-Target-URI", target))
        more.append(("WARC-Refers-To-Date", warc_date(original.time, V1_1)))
        # Optional: URI and date name it, too.
        if original.id:
            more.append(("WARC-Refers-To", original.id))
    content_type = "" if code is None else RESPONSE
    return files.write("revisit", time, target, b"", content_type, head=head or None, more=more)


def _head(content: Content, code: int | None) -> bytes:
    """Returns the HTTP head of a page, empty where there is none."""
    length = len(content.content)
    head = fitted_head(content.metadata.get(RESPONSE_HEADERS_KEY) or "", length)
    if not head and code is not None:
        head = rebuilt_head(code, content.metadata, length)
    return valid(head).encode()


def _connection(metadata: Metadata) -> Iterator[tuple[str, str]]:
    """Yields the server's address, and which protocols were spoken (store.protocol.versions)."""
    address = (metadata.get(IP_ADDRESS_KEY) or "").strip()
    if address:
        yield "WARC-IP-Address", address
    for name in filter(None, (metadata.get(PROTOCOL_VERSIONS_KEY) or "").split(",")):
        # `TLSv1.3` of Java is `tls/1.3` in WARC-Protocol.
        yield "WARC-Protocol", f"tls/{name[len(_TLS) :]}" if name.lower().startswith(_TLS) else name
    suite = (metadata.get(_CIPHER_SUITES_KEY) or "").strip()
    if suite:
        yield "WARC-Cipher-Suite", suite


def write_request(files: WarcFiles, time: int, target: str, content: Content, page: str) -> None:
    """Writes the request for the page with the ID `page`, if it was stored; without the operator's
    cookies and credentials.
    """
    request = shown_request(content.metadata.get(REQUEST_KEY) or "")
    if request.strip():
        more = [("WARC-Concurrent-To", page)]
        files.write("request", time, target, valid(request).encode(), REQUEST, more=more)


def write_fetch_data(
    files: WarcFiles,
    time: int,
    target: str,
    datum: CrawlDatum | None,
    data: ParseData | None,
    page: str,
    *,
    answer: Content | None = None,
) -> None:
    """Writes what is known of a fetch and of the page's parse, as fields; nothing if nothing is
    known.

    `answer` is one whose head stands in no record of its own.
    """
    fields = [*_of_fetch(datum), *_of_answer(answer), *_of_parse(data)]
    if fields:
        files.write(
            "metadata", time, target, warc_fields(fields), FIELDS, more=[("WARC-Refers-To", page)]
        )


def _of_fetch(datum: CrawlDatum | None) -> Iterator[tuple[str, str]]:
    """Yields how long the answer took (store.response.time), and the depth (scoring-depth)."""
    took, depth = (
        None if datum is None else datum.metadata.get(Text(key))
        for key in (RESPONSE_TIME_KEY, _DEPTH_KEY)
    )
    if took is not None:
        yield "fetchTimeMs", str(took)
    text = "" if depth is None else str(depth)
    # Cut before it is read: int() refuses more than 4,300 digits.
    if text.isascii() and text.isdigit() and 0 < int(text[:6]) <= _DEEPEST:
        # Heritrix: a letter for each hop, L for a link; scoring-depth counts the seed as 1.
        yield "hopsFromSeed", "L" * (int(text) - 1)


def _of_answer(answer: Content | None) -> Iterator[tuple[str, str]]:
    head = "" if answer is None else answer.metadata.get(RESPONSE_HEADERS_KEY) or ""
    for number, line in enumerate(filter(None, head.split("\r\n"))):
        yield "http-header" if number else "http-status", line


def _of_parse(data: ParseData | None) -> Iterable[tuple[str, str]]:
    if data is None:
        return
    charset = data.parse_meta.get(CHAR_ENCODING_FOR_CONVERSION_KEY)
    if charset:
        yield "charset-detected", charset
    for link in data.outlinks:
        yield "outlink", link.to_url


def write_parse_data(files: WarcFiles, time: int, target: str, data: ParseData, page: str) -> None:
    """Writes the metadata of a page and of its parse."""
    meta = {
        "contentMeta": metadata_object(data.content_meta),
        "parseMeta": metadata_object(data.parse_meta),
    }
    block = f"{gson(meta)}\r\n".encode()
    files.write(
        "metadata", time, target, block, "application/json", more=[("WARC-Refers-To", page)]
    )


def write_parse_text(
    files: WarcFiles,
    time: int,
    target: str,
    text: ParseText,
    page: str,
    *,
    language: str | None = None,
    end: str = "",
) -> None:
    """Writes the text of a page, followed by `end`, and its language (ISO 639-3)."""
    more = [("WARC-Refers-To", page)]
    if language is not None:
        more.append((LANGUAGE, language))
    files.write(
        "conversion", time, target, f"{valid(text.text)}{end}".encode(), "text/plain", more=more
    )


def fitted_head(head: str, length: int) -> str:
    """Returns the head for a body of `length` bytes; empty for a blank one."""
    if not head.strip():
        return ""
    status, *lines = head.split("\r\n")
    return "\r\n".join((status, *_fitted(lines, length), "", ""))


def _fitted(lines: list[str], length: int) -> Iterator[str]:
    for line in lines:
        name, colon, value = line.partition(":")
        if not colon:
            continue
        if _ENCODINGS.fullmatch(name):
            yield f"X-Crawler-{line}"
        elif name.lower() == "content-length" and not _says(value, length):
            yield f"X-Crawler-{line}"
            yield f"Content-Length: {length}"
        else:
            yield line


def _says(value: str, length: int) -> bool:
    digits = value.strip()
    return digits.isascii() and digits.isdigit() and len(digits) < 19 and int(digits) == length


def rebuilt_head(code: int, metadata: Metadata, length: int) -> str:
    """Returns a head for a body of `length` bytes, of a page's metadata."""
    lines = [f"HTTP/1.1 {code} {reason(code)}"]
    for name in metadata.java_names():
        if _TOKEN.fullmatch(name) and name not in _OWN and not name.startswith(_OWN_BEGINNINGS):
            # A line end in a value would begin a header of its own.
            lines += [f"{name}: {_LINE_ENDS.sub(' ', value)}" for value in metadata[name]]
    if code != HTTPStatus.NOT_MODIFIED and not any(
        line.lower().startswith("content-length:") for line in lines
    ):
        lines.append(f"Content-Length: {length}")
    return fitted_head("\r\n".join((*lines, MADE_HEAD)), length)


def reason(code: int) -> str:
    """Returns RFC 9110's reason phrase for a status code; empty for an unknown one."""
    try:
        return HTTPStatus(code).phrase
    except ValueError:
        return ""


def status_of(head: str) -> int | None:
    """Returns the status code of a head."""
    match = _STATUS.match(head)
    return None if match is None else int(match[1])


def fetch_time(content: Content) -> int | None:
    """Returns the time (ms) of a page's fetch; None where its metadata has none."""
    text = content.metadata.get(CONTENT_FETCH_TIME_KEY) or ""
    return int(text) if text.isascii() and text.isdigit() and len(text) < 16 else None
