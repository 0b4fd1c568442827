"""Reads EPUB: the pages of the spine, each as a web page, and what the package says of the book.

A page that is missing, encrypted or damaged costs its own text alone. A book whose spine can't be
read has its pages in the order of the archive. Sources: EPUB 3.3; Tika's EpubParser.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Callable
from typing import Final
from urllib.parse import unquote

from lxml import etree

from minutch.errors import ParseError

from ..lib_xml.reading import child, children, local_name, text_of
from .document import Document
from .package import Package

ReadPage = Callable[[bytes], tuple[str, list[tuple[str, str]]]]
"""Makes text and links (target, anchor) of a page's bytes."""

CONTAINER: Final = "META-INF/container.xml"
_PAGE: Final = re.compile(r".*\.(?:xhtml|html?)", re.IGNORECASE)
_OUTSIDE: Final = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:")
_DUBLIN_CORE: Final = frozenset(
    ("title", "creator", "language", "identifier", "publisher", "subject", "description", "rights")
)


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
    found.title = found.metadata.get("dc:title") or ""


def _spine(root: etree._Element, folder: str) -> list[str]:
    """Returns the names of the pages in reading order."""
    manifest, spine = child(root, "manifest"), child(root, "spine")
    if manifest is None or spine is None:
        return []
    hrefs = {item.get("id"): item.get("href", "") for item in children(manifest, "item")}
    names = (hrefs.get(entry.get("idref"), "") for entry in children(spine, "itemref"))
    return [posixpath.normpath(posixpath.join(folder, unquote(name))) for name in names if name]
