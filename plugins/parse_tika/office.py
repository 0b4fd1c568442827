"""Decides which kind of office document a file is, by its parts, and has it read.

    a main part by relationship or type    Office Open XML, by the root element of that part
    META-INF/container.xml, an .opf file   EPUB
    content.xml; XML that is no archive    OpenDocument

Sources: ECMA-376, part 2; EPUB 3.3 (OCF); OASIS OpenDocument 1.3, part 2.
"""

from __future__ import annotations

import logging
import posixpath
import re
from collections.abc import Callable, Iterator
from typing import Final
from urllib.parse import unquote

from lxml import etree

from minutch.errors import ParseError

from ..lib_xml.reading import child, children, local_name, parse_xml, text_of
from .ooxml import inside, package_relations, read_document, read_properties, read_slides
from .opendocument import read_flat, read_open_document
from .package import RESERVATION, Document, Package
from .sheets import read_sheets

# Reads EPUB: the pages of the spine, each as a web page, and what the package says of the book.
#
# A page that is missing, encrypted or damaged costs its own text alone. A book whose spine can't
# be read has its pages in the order of the archive. Sources: EPUB 3.3; Tika's EpubParser.

ReadPage = Callable[[bytes], tuple[str, list[tuple[str, str]]]]
"""Makes text and links (target, anchor) of a page's bytes."""

CONTAINER: Final = "META-INF/container.xml"
_PAGE: Final = re.compile(r".*\.(?:xhtml|html?)", re.IGNORECASE)
_OUTSIDE: Final = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:")
_DUBLIN_CORE: Final = frozenset(
    ("title", "creator", "language", "identifier", "publisher", "subject", "description", "rights")
)
_READERS: Final[dict[str, Callable[[Package, etree._Element, str, Document], None]]] = {
    "document": read_document,
    "presentation": read_slides,
    "workbook": read_sheets,
}
"""Root element of the main part of Office Open XML → its reader."""


_FLAT: Final = ("document", "document-content")
"""Root elements of OpenDocument that is no archive: the second is the part of a document inside."""
log = logging.getLogger(__name__)

MOST_BYTES: Final = 16 << 20
MOST_DOCUMENTS: Final = 100
MOST_DEPTH: Final = 3
_PDF: Final = b"%PDF-"
_ZIP: Final = b"PK\x03\x04"
_PLAIN: Final = (".txt", ".csv", ".md")
_OBJECT: Final = "/content.xml"
"""An object of OpenDocument is a folder with a document's parts."""


def read_book(package: Package, found: Document, read_page: ReadPage) -> None:
    """Adds a book."""
    container = package.root(CONTAINER)
    entries = container.iter("{*}rootfile") if container is not None else iter(())
    path = next((entry.get("full-path", "") for entry in entries), "")
    if path not in package:
        path = next((name for name in package.names if name.lower().endswith(".opf")), "")
    root = package.root(path) if path else None
    if root is None:
        found.missing.append(f"{path or CONTAINER}: the book's package document can't be read")
    else:
        _describe(root, found)
    pages = _spine(root, posixpath.dirname(path)) if root is not None else []
    for name in pages or filter(_PAGE.fullmatch, package.names):
        data = package.read(name)
        if not data:
            if name not in package:
                found.missing.append(f"{name}: not in the archive")
            continue
        try:
            text, links = read_page(data)
        except ParseError as error:
            found.missing.append(f"{name}: {error}")
            continue
        found.texts.append(text)
        found.links += [link for link in links if _OUTSIDE.match(link[0])]


def _describe(root: etree._Element, found: Document) -> None:
    metadata = child(root, "metadata")
    for entry in metadata.iter() if metadata is not None else ():
        name, value = local_name(entry), text_of(entry)
        if name in _DUBLIN_CORE:
            found.describe(f"dc:{name}", value)
        elif name == "date":
            found.date("dcterms:created", value)
        elif name == "meta" and entry.get("property") == "dcterms:modified":
            found.date("dcterms:modified", value)
        elif name == "meta" and entry.get("property") in RESERVATION:
            found.describe(str(entry.get("property")), value)
    found.title = found.metadata.get("dc:title") or ""


def _spine(root: etree._Element, folder: str) -> list[str]:
    """Returns the names of the pages in reading order."""
    manifest, spine = child(root, "manifest"), child(root, "spine")
    if manifest is None or spine is None:
        return []
    hrefs = {item.get("id"): item.get("href", "") for item in children(manifest, "item")}
    names = (hrefs.get(entry.get("idref"), "") for entry in children(spine, "itemref"))
    return [posixpath.normpath(posixpath.join(folder, unquote(name))) for name in names if name]


def read_office(data: bytes, found: Document, read_page: ReadPage) -> None:
    """Adds what a document has; `read_page` reads the pages of a book.

    Raises ParseError if it is of no known kind, or can't be read; what was found before stays.
    """
    if not data.startswith(b"PK") and local_name(root := _flat(data)) in _FLAT:
        read_flat(root, found)
        return
    package = Package(data, found)
    relations = package_relations(package)
    main = next((name for name in inside(relations, "officeDocument") if name in package), "")
    if main:
        read_properties(package, relations, found)
        root = package.root(main)
        read = _READERS.get(local_name(root)) if root is not None else None
        if root is None or read is None:
            raise ParseError(f"not an office document of a kind that is read: {main}")
        read(package, root, main, found)
    elif CONTAINER in package or any(name.lower().endswith(".opf") for name in package.names):
        read_book(package, found, read_page)
    elif "content.xml" in package:
        read_open_document(package, found)
    else:
        raise ParseError("not an office document of a kind that is known")


def _flat(data: bytes) -> etree._Element:
    try:
        return parse_xml(data)
    except ParseError as error:
        raise ParseError("not an office document that can be read: neither zip nor XML") from error


# Parses embedded documents (tika.parse.embedded): attachments of a PDF, objects in an office
# document.
#
# Only texts are taken, of documents of the same kinds and of plain text, in the order of their
# names, down to MOST_DEPTH. What can't be read is passed over. Sizes are bounded: MOST_BYTES of
# one, MOST_DOCUMENTS in all. Source: TikaParser (AutoDetectParser in the ParseContext).


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
