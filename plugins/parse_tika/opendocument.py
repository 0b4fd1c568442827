"""Reads OpenDocument, zipped or as one XML file: text, title, links.

    text document   headers, paragraphs, footers
    spreadsheet     name and rows of each table, cells as they are shown
    presentation    slides, each with its notes

A paragraph is a line. Text boxes, notes and comments come behind the paragraph that they are
anchored in, comments without who wrote them. Changes that were tracked and descriptions of pictures
are left out. Links are those that lead out of the document; a link to a file beside it stays
relative. Sources: OASIS OpenDocument 1.3; Tika's OpenDocumentParser.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from lxml import etree

from minutch.errors import ParseError

from ..lib_xml.reading import child, local_name, text_of
from .package import Document, Package, ParagraphWalk

_PARAGRAPHS: Final = frozenset(("p", "h"))
_SKIPPED: Final = frozenset((
    "tracked-changes", "note-citation", "binary-data", "script", "scripts", "event-listeners",
    "forms", "covered-table-cell",
))  # fmt: skip
_OWN_BLOCKS: Final = frozenset(("note-body", "annotation", "frame", "custom-shape", "text-box"))
_OF_PICTURES: Final = ("title", "desc")
_OF_COMMENTS: Final = ("creator", "date", "date-string", "creator-initials", "sender-initials")
_SPACE: Final = re.compile("[ \t\r\n]+")
_OUTSIDE: Final = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:")
_PLACEHOLDERS: Final = frozenset(("page-number", "header", "footer", "date-time", "page"))
_MOST_BLANKS: Final = 100
_HEADERS: Final = ("header", "header-first", "header-left")
_FOOTERS: Final = ("footer", "footer-first", "footer-left")
_META: Final = {
    "title": "dc:title", "creator": "dc:creator", "initial-creator": "dc:creator",
    "subject": "dc:subject", "description": "dc:description", "language": "dc:language",
    "keyword": "meta:keyword", "generator": "generator",
}  # fmt: skip
_DATES: Final = {"creation-date": "dcterms:created", "date": "dcterms:modified"}


def read_open_document(package: Package, found: Document) -> None:
    """Adds the document in a package."""
    meta = package.root("meta.xml")
    if meta is not None:
        _describe(meta, found)
    root = package.root("content.xml")
    if root is None:
        raise ParseError("content.xml can't be read")
    _read(root, package.root("styles.xml"), found)


def read_flat(root: etree._Element, found: Document) -> None:
    """Adds a document that is one XML file."""
    _describe(root, found)
    _read(root, root, found)


def _describe(root: etree._Element, found: Document) -> None:
    meta = next(root.iter("{*}meta"), None)
    for entry in meta if meta is not None else ():
        name = local_name(entry)
        if name in _META:
            found.describe(_META[name], text_of(entry))
        elif name in _DATES:
            found.date(_DATES[name], text_of(entry))
        elif name == "document-statistic":
            found.describe("xmpTPg:NPages", _attribute(entry, "page-count"))
    found.title = found.metadata.get("dc:title") or ""


def _read(root: etree._Element, styles: etree._Element | None, found: Document) -> None:
    body = child(root, "body")
    if body is None:
        return
    is_text = child(body, "text") is not None
    if is_text and styles is not None:
        found.texts += _margins(styles, _HEADERS)
    walk = _Walk(by_rows=child(body, "spreadsheet") is not None)
    walk.block(body)
    found.texts += walk.lines
    if is_text and styles is not None:
        found.texts += _margins(styles, _FOOTERS)
    for link in body.iter("{*}a"):
        target = _attribute(link, "href").strip()
        if target.startswith("../"):
            target = target.removeprefix("../")  # out of the package
        elif not _OUTSIDE.match(target):
            continue
        words = _Walk()
        words.inline(link)
        found.links.append((target, " ".join(" ".join([*words.pieces, *words.lines]).split())))


def _margins(styles: etree._Element, names: tuple[str, ...]) -> list[str]:
    """Returns the lines of headers or footers, each once."""
    walk = _Walk()
    for page in styles.iter("{*}master-page"):
        for part in page:
            if local_name(part) in names:
                walk.block(part)
    return list(dict.fromkeys(walk.lines))


class _Walk(ParagraphWalk):
    def __init__(self, *, by_rows: bool = False) -> None:
        super().__init__()
        self._by_rows = by_rows

    def block(self, element: etree._Element) -> None:
        """Adds the paragraphs below an element."""
        for part, name in _parts(element):
            if name in _PARAGRAPHS:
                self.paragraph(part)
            elif name == "table-row" and self._by_rows:
                self._row(part)
            else:
                if name == "table" and self._by_rows:
                    self.lines.append(_attribute(part, "name"))
                self.block(part)

    def inline(self, element: etree._Element) -> None:
        """Adds the text inside a paragraph."""
        self._text(element.text)
        for part, name in _parts(element, tails=self.pieces):
            if name == "s":
                self.pieces.append(" " * min(_count(part), _MOST_BLANKS))
            elif name in ("tab", "line-break"):
                self.pieces.append(" ")
            elif name in _PARAGRAPHS:
                self.paragraph(part)
            elif name in _OWN_BLOCKS:
                self.block(part)
            else:
                self.inline(part)

    def _row(self, row: etree._Element) -> None:
        """Adds the cells of a row as one line, and behind it what is anchored in them."""
        cells, anchored = _Walk(), _Walk()
        for cell, _ in _parts(row):
            for part, name in _parts(cell):
                if name in _PARAGRAPHS:
                    cells.paragraph(part)
                else:
                    anchored.block(part)
        self.lines.append(" ".join(cells.lines))
        self.lines += anchored.lines

    def _text(self, text: str | None) -> None:
        if text:
            self.pieces.append(_SPACE.sub(" ", text))


def _parts(
    element: etree._Element, tails: list[str] | None = None
) -> Iterator[tuple[etree._Element, str]]:
    """Yields the child elements that count, with their names; their tails go into a list."""
    for part in element:
        if isinstance(part.tag, str):
            name = part.tag.rpartition("}")[2]
            if name not in _SKIPPED and not _is_aside(part, name):
                yield part, name
        if tails is not None and part.tail:
            tails.append(_SPACE.sub(" ", part.tail))


def _is_aside(element: etree._Element, name: str) -> bool:
    """Tells whether an element is a frame with the number of a page and the like, the description
    of a picture, or says who wrote a comment and when. Fields of text have the same local names.
    """
    if name == "frame":
        return _attribute(element, "class") in _PLACEHOLDERS
    if name in _OF_PICTURES:
        return "svg" in element.tag
    parent = element.getparent() if name in _OF_COMMENTS else None
    return parent is not None and local_name(parent) == "annotation"


def _count(element: etree._Element) -> int:
    value = _attribute(element, "c")
    return int(value) if value.isascii() and value.isdecimal() and len(value) < 6 else 1


def _attribute(element: etree._Element, name: str) -> str:
    """Returns an attribute by its local name."""
    return next(
        (str(value) for key, value in element.items() if str(key).rpartition("}")[2] == name), ""
    )
