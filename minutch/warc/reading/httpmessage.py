"""HTTP answers as archives hold them, taken apart: head, body, chunks undone. Pure: no I/O.

    answer  =  status line, *header line, blank line, body

Archives hold bodies as they came (chunked, compressed), or unpacked with the headers still saying
so, or unpacked with headers that were changed: `httpheaders` puts `X-Crawler-` before those that no
longer hold, and so does Common Crawl. Such headers get their names back here. Source: RFC 9112,
section 7.1; org.apache.nutch.tools.WARCUtils.fixHttpHeaders.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from minutch.warc.httpheaders import MADE_HEAD

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


@dataclass(slots=True)
class Answer:
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


def read_answer(block: bytes) -> Answer | None:
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
    return Answer(code, lines, body, is_whole, is_changed or is_made, is_made)


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
        if not body.startswith((b"\r\n", b"\n"), at):
            return (b"".join(pieces), False) if len(pieces) > 1 else (None, False)
        at += 2 if body.startswith(b"\r\n", at) else 1
    return (b"".join(pieces), False) if pieces else (None, False)
