"""Parses embedded documents (tika.parse.embedded): attachments of a PDF, objects in an office
document.

Only texts are taken, of documents of the same kinds and of plain text, in the order of their names,
down to MOST_DEPTH. What can't be read is passed over. Sizes are bounded: MOST_BYTES of one,
MOST_DOCUMENTS in all. Source: TikaParser (AutoDetectParser in the ParseContext).
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from typing import Final

from minutch.errors import ParseError

from .book import ReadPage
from .document import Document
from .office import read_office
from .ooxml import inside
from .package import Package

log = logging.getLogger(__name__)

MOST_BYTES: Final = 16 << 20
MOST_DOCUMENTS: Final = 100
MOST_DEPTH: Final = 3
_PDF: Final = b"%PDF-"
_ZIP: Final = b"PK\x03\x04"
_PLAIN: Final = (".txt", ".csv", ".md")
_OBJECT: Final = "/content.xml"
"""An object of OpenDocument is a folder with a document's parts."""


def add_embedded(data: bytes, found: Document, read_page: ReadPage) -> None:
    """Adds the texts of the documents inside of a document."""
    _Embedded(found, read_page).add(data, 1)


class _Embedded:
    def __init__(self, found: Document, read_page: ReadPage) -> None:
        self._found, self._read_page = found, read_page
        self._left = MOST_DOCUMENTS

    def add(self, data: bytes, depth: int) -> None:
        try:
            for name, inner in _documents(data):
                if not self._left:
                    log.debug("more than %d embedded documents", MOST_DOCUMENTS)
                    return
                self._read(name, inner, depth)
        except ParseError as error:
            log.debug("embedded documents can't be read: %s", error)

    def _read(self, name: str, data: bytes, depth: int) -> None:
        document = Document()
        try:
            if data.startswith(_PDF):
                from .pdf import read_pdf

                read_pdf(data, document)
            elif data.startswith(_ZIP) or name.endswith(_OBJECT):
                read_office(data, document, self._read_page)
            elif name.lower().endswith(_PLAIN):
                document.texts.append(" ".join(data.decode("utf-8", "replace").split()))
            else:
                return
        except ParseError as error:
            log.debug("embedded %s: %s", name, error)
        if document.texts:
            self._left -= 1
            self._found.texts += document.texts
        if depth < MOST_DEPTH:
            self.add(data, depth + 1)


def _documents(data: bytes) -> Iterator[tuple[str, bytes]]:
    """Names and contents of what is inside of a document."""
    if data.startswith(_PDF):
        if b"/EmbeddedFile" in data or b"/ObjStm" in data:
            from .pdf import attachments

            yield from attachments(data, MOST_BYTES)
    elif data.startswith(_ZIP):
        package = Package(data, Document())
        sources = (name for name in package.names if name.endswith(".rels"))
        parts: set[str] = {
            name for name in package.names if name.count("/") == 1 and name.endswith(_OBJECT)
        }
        for source in sources:
            folder, _, file = source.removesuffix(".rels").rpartition("_rels/")
            parts |= set(inside(package.relations(folder + file), "package"))
        for name in sorted(parts):
            inner = package.read(name, MOST_BYTES)
            if inner:
                yield name, inner
