"""Decides which kind of office document a file is, by its parts, and has it read.

    a main part by relationship or type    Office Open XML, by the root element of that part
    META-INF/container.xml, an .opf file   EPUB
    content.xml; XML that is no archive    OpenDocument

Sources: ECMA-376, part 2; EPUB 3.3 (OCF); OASIS OpenDocument 1.3, part 2.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from lxml import etree

from minutch.errors import ParseError

from ..lib_xml.reading import local_name, parse_xml
from .book import CONTAINER, ReadPage, read_book
from .document import Document
from .ooxml import inside, package_relations, read_document, read_properties, read_slides
from .opendocument import read_flat, read_open_document
from .package import Package
from .sheets import read_sheets

_READERS: Final[dict[str, Callable[[Package, etree._Element, str, Document], None]]] = {
    "document": read_document,
    "presentation": read_slides,
    "workbook": read_sheets,
}
"""Root element of the main part of Office Open XML → its reader."""


_FLAT: Final = ("document", "document-content")
"""Root elements of OpenDocument that is no archive: the second is the part of a document inside."""


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
