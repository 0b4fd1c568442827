"""Joins the records of an archive to visits: what one request for a URL brought. Pure: no I/O.

    response                  the answer, with its head
    resource                  the content alone
    revisit                   "not modified" (304), or "the same content as another visit", which
                              `refers_to` names
    request                   goes with the answer next to it
    metadata                  of an answer: how long it took
    warcinfo, conversion, …   no visit

Records of one visit stand together: a request counts for the answer to the same URL that stands
beside it, metadata for the answer before it. Source: ISO 28500:2017, section 6; the profiles of
revisit records in annex C of WARC 1.0 and section 6.7 of 1.1.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from enum import Enum, auto
from typing import Final

from minutch.clock import http_time
from minutch.warc.pagewriter import MADE_HEAD
from minutch.warc.reading.bytesource import RecordPosition
from minutch.warc.reading.recordheads import FILE_DESCRIPTION
from minutch.warc.reading.recordreader import Record

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_MILLISECOND: Final = timedelta(milliseconds=1)
_DIGITS: Final = re.compile(r"[0-9]{4,14}")
_FIRST: Final = "00000101000000"
_PAGES: Final = ("http:", "https:", "ftp:", "file:")
_FETCH_TIME: Final = re.compile(rb"(?im)^fetchTimeMs[ \t]*:[ \t]*([0-9]{1,9})[ \t]*\r?$")
_METHOD: Final = re.compile(rb"([A-Z]{3,20}) ")
_NO_TYPE: Final = ("", "-", "no-type", "unk", "alexa/dat")
_NOT_MODIFIED: Final = 304
_START: Final = RecordPosition(0)
LONGEST_HEAD: Final = 1 << 18
MOST_LINES: Final = 2000
"""Header lines that are kept; what is beyond them, or beyond the longest head, is passed over."""
MOST_CHUNKINGS: Final = 4

_MADE: Final = MADE_HEAD.encode()

_STATUS: Final = re.compile(rb"HTTP/[0-9.]{1,8}[ \t]+([0-9]{3})(?![0-9])")
_END: Final = re.compile(rb"\n\r?\n")
_CHUNK: Final = re.compile(rb"[ \t]*([0-9A-Fa-f]{1,12})[ \t]*(?:;[^\n]{0,4096})?\r?\n")
_CHANGED: Final = re.compile(
    rb"(?i)x-crawler-((?:content|transfer)-encoding|content-length)[ \t]*:"
)
_LENGTH: Final = re.compile(rb"(?i)content-length[ \t]*:")
_CHUNKED: Final = re.compile(rb"(?im)^transfer-encoding[ \t]*:.*\bchunked\b")
_INTERIM: Final = range(100, 200)


class VisitKind(Enum):
    """The kind of a visit's result."""

    ANSWER = auto()
    NOT_MODIFIED = auto()
    SAME = auto()
    """The content of another visit; the body is there once that is known."""


@dataclass(slots=True)
class Visit:
    """One visit. `time` in ms; `answer` is None for content without HTTP head, then in `body`."""

    url: str
    time: int
    kind: VisitKind
    answer: ArchivedResponse | None
    body: bytes
    media_type: str = ""
    address: str = ""
    request: bytes = b""
    took: int | None = None
    """How long the answer took, in ms."""
    is_dated: bool = True
    """Whether the record says when; `time` is that of the answer's Date else, or 0."""
    truncated: str = ""
    """Why the content is not whole: `length`, `time`, `disconnect`, `unspecified`."""
    place: RecordPosition = _START
    names: list[str] = field(default_factory=list)
    """By what other visits may refer to this one: record, URL and time, digest of its content."""
    refers_to: list[str] = field(default_factory=list)
    """By what this visit knows the one that had the same content, the surest name first."""

    @property
    def method(self) -> str:
        """The method of the request, if it is known; only the answer to a GET is the page."""
        found = _METHOD.match(self.request)
        return "GET" if found is None else found[1].decode()

    @property
    def status(self) -> int:
        """The status code; 200 for content that came without one."""
        if self.kind is VisitKind.NOT_MODIFIED:
            return _NOT_MODIFIED
        return 200 if self.answer is None else self.answer.code


def warc_visits(records: Iterable[Record]) -> Iterator[Visit | Record]:  # noqa: C901 - one step a case
    """Yields the visits of a WARC file, and the records that belong to none."""
    waiting: Visit | None = None
    request: Record | None = None
    for record in records:
        kind = record.fields.get("warc-type", "")
        if kind == "request":
            if waiting is not None and not waiting.request and target_of(record) == waiting.url:
                waiting.request = record.block
            else:
                if request is not None:
                    yield request
                # A request may stand before its answer (Heritrix: behind it).
                request = record
            continue
        if kind == "metadata" and waiting is not None and target_of(record) == waiting.url:
            # Heritrix and Common Crawl write how long the answer took.
            found = _FETCH_TIME.search(record.block)
            waiting.took = None if found is None else int(found[1])
            continue
        visit = _visit(record, kind)
        if visit is None:
            yield record
            continue
        if waiting is not None:
            yield waiting
        if request is not None and target_of(request) == visit.url:
            visit.request = request.block
        elif request is not None:
            yield request
        waiting, request = visit, None
    if request is not None:
        yield request
    if waiting is not None:
        yield waiting


def target_of(record: Record) -> str:
    """Returns the URL; some writers put it into angle brackets."""
    uri = record.fields.get("warc-target-uri", "")
    return uri[1:-1] if uri.startswith("<") and uri.endswith(">") else uri


def _visit(record: Record, kind: str) -> Visit | None:
    make = _MAKERS.get(kind)
    url = target_of(record)
    if make is None or not url.lower().startswith(_PAGES):
        return None
    fields = record.fields
    visit = Visit(
        url, warc_time(fields.get("warc-date", "")), VisitKind.ANSWER, None, b"", place=record.place
    )
    visit.address = fields.get("warc-ip-address", "")
    visit.truncated = fields.get("warc-truncated", "") or ("length" if record.is_cut else "")
    visit.names = _names(
        fields.get("warc-record-id", ""),
        url,
        fields.get("warc-date", ""),
        fields.get("warc-payload-digest", ""),
    )
    make(visit, record)
    _date(visit)
    return visit


def _date(visit: Visit) -> None:
    """Dates a visit whose record does not say when by its answer's Date (RFC 9110, 6.6.1)."""
    if visit.time:
        return
    visit.is_dated = False
    lines = [] if visit.answer is None else visit.answer.head
    dates = (line[5:] for line in lines if line[:5].lower() == b"date:")
    visit.time = http_time(next(dates, b"").decode("latin-1").strip()) or 0


def _response(visit: Visit, record: Record) -> None:
    answer = read_answer(record.block)
    visit.answer = answer
    visit.body = record.block if answer is None else answer.body
    if answer is None:
        visit.media_type = ""
    elif answer.code == _NOT_MODIFIED:
        visit.kind = VisitKind.NOT_MODIFIED
    elif not answer.is_whole:
        visit.truncated = visit.truncated or "disconnect"


def _resource(visit: Visit, record: Record) -> None:
    visit.body, visit.media_type = record.block, record.fields.get("content-type", "")


def _revisit(visit: Visit, record: Record) -> None:
    fields = record.fields
    visit.answer = read_answer(record.block)
    if "not-modified" in fields.get("warc-profile", "") or (
        visit.answer and visit.answer.code == _NOT_MODIFIED
    ):
        visit.kind = VisitKind.NOT_MODIFIED
        return
    # It has no content, so nobody may refer to it.
    visit.kind, visit.names, visit.truncated = VisitKind.SAME, [], ""
    visit.refers_to = _names(
        fields.get("warc-refers-to", ""),
        fields.get("warc-refers-to-target-uri", ""),
        fields.get("warc-refers-to-date", ""),
        fields.get("warc-payload-digest", ""),
    )


_MAKERS: Final = {"response": _response, "resource": _resource, "revisit": _revisit}


def _names(record_id: str, url: str, date: str, digest: str) -> list[str]:
    named = ((record_id, record_id), (url and date, f"{date} {url}"), (digest, digest.lower()))
    return [name for given, name in named if given]


def arc_visits(records: Iterable[Record]) -> Iterator[Visit | Record]:
    """Yields an ARC file's visits, and its other records: description of the file, DNS."""
    for record in records:
        fields = record.fields
        url = fields["url"]
        if url.startswith(FILE_DESCRIPTION) or not url.lower().startswith(_PAGES):
            yield record
            continue
        answer = read_answer(record.block)
        body = record.block if answer is None else answer.body
        visit = Visit(
            url, arc_time(fields["date"]), VisitKind.ANSWER, answer, body, place=record.place
        )
        visit.media_type = "" if fields["type"] in _NO_TYPE else fields["type"]
        visit.address = "" if fields["ip"] in ("0.0.0.0", "-") else fields["ip"]
        if record.is_cut or (answer is not None and not answer.is_whole):
            visit.truncated = "length" if record.is_cut else "disconnect"
        if answer is not None and answer.code == _NOT_MODIFIED:
            visit.kind = VisitKind.NOT_MODIFIED
        _date(visit)
        yield visit


def warc_time(text: str) -> int:
    """Returns a date of WARC's (ISO 8601, from years to nanoseconds) in ms; 0 for what is none."""
    try:
        date = datetime.fromisoformat(text)
    except ValueError:
        return arc_time("".join(c for c in text if c.isdigit())[:14])
    return (date.replace(tzinfo=date.tzinfo or UTC) - _EPOCH) // _MILLISECOND


def arc_time(text: str) -> int:
    """Returns a date of 4 to 14 digits, in UTC, in ms; 0 for anything else."""
    if not _DIGITS.fullmatch(text):
        return 0
    try:
        date = datetime.strptime(text + _FIRST[len(text) :], "%Y%m%d%H%M%S")
    except ValueError:
        return 0
    return (date.replace(tzinfo=UTC) - _EPOCH) // _MILLISECOND


# HTTP answers as archives hold them, taken apart: head, body, chunks undone.
#
#     answer  =  status line, *header line, blank line, body
#
# Archives hold bodies as they came (chunked, compressed), or unpacked with the headers still saying
# so, or unpacked with headers that were changed: `pagewriter` puts `X-Crawler-` before those that
# no longer hold, and so does Common Crawl. Such headers get their names back here. Source: RFC
# 9112, section 7.1; org.apache.nutch.tools.WARCUtils.fixHttpHeaders.


@dataclass(slots=True)
class ArchivedResponse:
    """One answer. `head` are its lines, status line first, without line ends."""

    code: int
    head: list[bytes]
    body: bytes
    is_whole: bool = True
    """Whether the last chunk is there."""
    is_decoded: bool = False
    """Whether the body is unpacked, whatever Content-Encoding says."""
    is_made: bool = False
    """Whether the head is not the server's."""


def read_answer(block: bytes) -> ArchivedResponse | None:
    """Returns the answer in the block of a record; None if there is none."""
    at = 0
    while True:
        status = _STATUS.match(block, at)
        if status is None:
            return None
        end = _END.search(block, at, at + LONGEST_HEAD)
        head = block[at : end.start() if end else min(len(block), at + LONGEST_HEAD)]
        at = (
            end.end()
            if end
            else len(block)
            if len(block) - at <= LONGEST_HEAD
            else _behind_flood(block, at)
        )
        code = int(status[1])
        # 100 Continue and 103 Early Hints stand before the answer (RFC 9110, 15.2).
        if code not in _INTERIM or not _STATUS.match(block, at):
            break
    lines = [line.removesuffix(b"\r") for line in head.split(b"\n", MOST_LINES)[:MOST_LINES]]
    body, is_whole = block[at:] if at else block, True
    if _CHUNKED.search(head):
        body, is_whole = unchunked(body)
    lines, is_changed = _as_they_came(lines)
    is_made = _MADE in lines
    if is_made:
        lines.remove(_MADE)
    return ArchivedResponse(code, lines, body, is_whole, is_changed or is_made, is_made)


def _behind_flood(block: bytes, at: int) -> int:
    end = _END.search(block, at)
    return end.end() if end else len(block)


def _as_they_came(lines: list[bytes]) -> tuple[list[bytes], bool]:
    """Header lines with the names that they had, and whether a coding is among them."""
    if not any(_CHANGED.match(line) for line in lines):
        return lines, False
    result: list[bytes] = []
    is_decoded = after_length = False
    for line in lines:
        changed = _CHANGED.match(line)
        if changed is None:
            # The right Content-Length that was put behind the wrong one goes.
            if not (after_length and _LENGTH.match(line)):
                result.append(line)
            after_length = False
            continue
        result.append(line[changed.start(1) :])
        after_length = changed[1].lower() == b"content-length"
        is_decoded |= changed[1].lower() == b"content-encoding"
    return result, is_decoded


def unchunked(body: bytes) -> tuple[bytes, bool]:
    """Returns the content of chunks, and whether the last one is there; data that is not chunked
    stays as it is.

    A recorder that chunks what came in chunks leaves chunks in chunks: they are undone as well if
    they are whole.
    """
    content, is_whole = _content(body)
    if content is None:
        return body, True
    for _ in range(MOST_CHUNKINGS - 1):
        inner, inner_whole = _content(content)
        if inner is None or not inner_whole:
            break
        content = inner
    return content, is_whole


def _content(body: bytes) -> tuple[bytes | None, bool]:
    """Returns the content of chunks and whether they are whole; None if no whole chunk is there."""
    pieces: list[bytes] = []
    at = 0
    while (head := _CHUNK.match(body, at)) is not None:
        size = int(head[1], 16)
        if not size:
            return b"".join(pieces), True
        piece = body[head.end() : head.end() + size]
        pieces.append(piece)
        at = head.end() + size
        if len(piece) < size:
            break
        # One piece and no line end: what looked like a size was content.
        if not body.startswith((b"\r\n", b"\n"), at):
            return (b"".join(pieces), False) if len(pieces) > 1 else (None, False)
        at += 2 if body.startswith(b"\r\n", at) else 1
    return (b"".join(pieces), False) if pieces else (None, False)
