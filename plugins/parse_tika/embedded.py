"""Parses embedded documents (tika.parse.embedded): attachments of a PDF, objects in an OOXML file.

Only texts are taken, of documents of the same kinds and of plain text, in the order of their names,
down to MOST_DEPTH. What can't be read is passed over. Sizes are bounded: MOST_BYTES of one,
MOST_DOCUMENTS in all. Source: TikaParser (AutoDetectParser in the ParseContext).
"""

from __future__ import annotations

import io
import logging
import zipfile
import zlib
from collections.abc import Iterator
from typing import Final

from minutch.errors import ParseError

from .office import read_office
from .pdf import attachments, read_pdf

log = logging.getLogger(__name__)

MOST_BYTES: Final = 16 << 20
MOST_DOCUMENTS: Final = 100
MOST_DEPTH: Final = 3
_PDF: Final = b"%PDF-"
_ZIP: Final = b"PK\x03\x04"
_PLAIN: Final = (".txt", ".csv", ".md")
_FOLDERS: Final = ("word/embeddings/", "xl/embeddings/", "ppt/embeddings/")
_BROKEN: Final = (
    zipfile.BadZipFile,
    zlib.error,
    RuntimeError,
    NotImplementedError,
    EOFError,
    ValueError,
    OSError,
)


def embedded_texts(data: bytes) -> list[str]:
    """Returns the texts of the documents inside of a document."""
    found: list[str] = []
    _collect(data, 1, found)
    return found


def _collect(data: bytes, depth: int, found: list[str]) -> None:
    for name, inner in _documents(data):
        if len(found) == MOST_DOCUMENTS:
            log.debug("more than %d embedded documents", MOST_DOCUMENTS)
            return
        try:
            found.append(_text(name, inner))
        except ParseError as error:
            log.debug("embedded %s: %s", name, error)
            continue
        if depth < MOST_DEPTH:
            _collect(inner, depth + 1, found)


def _text(name: str, data: bytes) -> str:
    if data.startswith(_PDF):
        return read_pdf(data)[0]
    if data.startswith(_ZIP):
        return read_office(data)[0]
    if name.lower().endswith(_PLAIN):
        return " ".join(data.decode("utf-8", "replace").split())
    raise ParseError("of a kind that is not read")


def _documents(data: bytes) -> Iterator[tuple[str, bytes]]:
    """Names and contents of what is inside of a document."""
    if data.startswith(_PDF):
        yield from attachments(data, MOST_BYTES)
    elif data.startswith(_ZIP):
        yield from _objects(data)


def _objects(data: bytes) -> Iterator[tuple[str, bytes]]:
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            for name in sorted(name for name in archive.namelist() if name.startswith(_FOLDERS)):
                with archive.open(name) as stream:
                    inner = stream.read(MOST_BYTES + 1)
                if len(inner) <= MOST_BYTES:
                    yield name, inner
    except _BROKEN as error:
        log.debug("embedded documents can't be read: %s", error)
