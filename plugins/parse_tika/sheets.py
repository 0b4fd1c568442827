"""Reads the workbooks of Office Open XML: sheets in their order, each with its name, cells as they
are shown, headers and footers, comments, text boxes and charts.

    row          a line, its cells with a blank between them
    link         of a cell, or the function HYPERLINK in it, with the cell's text
    comment      its text, without who wrote it

A sheet is read row by row and not held. Sources: ECMA-376, part 1, 18; [MS-XLSX] for threaded
comments; Tika's XSSFExcelExtractorDecorator.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from lxml import etree

from minutch.errors import ParseError

from ..lib_xml.reading import child, local_name, text_of
from .cellformats import CellFormats
from .document import Document
from .ooxml import inside, ordered, outside, read_part, relation_id
from .package import Package

_HEADINGS: Final = (
    "oddHeader",
    "evenHeader",
    "firstHeader",
    "oddFooter",
    "evenFooter",
    "firstFooter",
)
_CODES: Final = re.compile(r'&(?:"[^"]*"|K[0-9A-F]{6}|[0-9]+|[A-Z&])')
"""Codes of headers and footers: places, fonts, fields."""
_ESCAPED: Final = re.compile("_x([0-9A-Fa-f]{4})_")
_FUNCTION: Final = re.compile(r'\s*HYPERLINK\(\s*"([^"]+)"', re.IGNORECASE)
_TRUTH: Final = {"1": "TRUE", "0": "FALSE"}
MOST_TEXT = 16 << 20
"""Characters of a sheet: a shared string may be long, and stand in every cell."""
_MOST_KEPT: Final = 100_000
"""Cells whose text is kept for links to it."""


def read_sheets(package: Package, root: etree._Element, name: str, found: Document) -> None:
    """Adds a workbook."""
    relations = package.relations(name)
    sheets = [
        (entry.get("name", ""), target)
        for entry, target in ordered(root.iter("{*}sheet"), relations)
    ]
    if not sheets:
        sheets = [("", part) for part in inside(relations, "worksheet")]
    strings = [
        _string(entry)
        for part in inside(relations, "sharedStrings")
        for entry in package.elements(part, ["si"])
    ]
    styles = next((package.root(part) for part in inside(relations, "styles")), None)
    properties = child(root, "workbookPr")
    is_1904 = properties is not None and properties.get("date1904", "0") in ("1", "true", "on")
    formats = CellFormats.of(styles, is_1904=is_1904)
    for title, part in sheets:
        found.texts.append(title)
        _Sheet(strings, formats, found).read(package, part)


class _Sheet:
    def __init__(self, strings: list[str], formats: CellFormats, found: Document) -> None:
        self._strings, self._formats, self._found = strings, formats, found
        self._shown: dict[str, str] = {}
        self._left = MOST_TEXT

    def read(self, package: Package, name: str) -> None:
        relations = package.relations(name)
        targets = outside(relations)
        for element in package.elements(name, ["row", "hyperlink", *_HEADINGS]):
            tag = local_name(element)
            if tag == "row":
                self._found.texts.append(" ".join(self._cells(element, keep=bool(targets))))
            elif tag == "hyperlink":
                target = targets.get(relation_id(element))
                if target:
                    place = element.get("ref", "").partition(":")[0]
                    words = self._shown.get(place, "") or element.get("display", "")
                    self._found.links.append((target, words))
            else:
                self._found.texts.append(_CODES.sub(" ", element.text or ""))
        # A threaded comment has a plain one beside it that tells old programs to be upgraded.
        comments = inside(relations, "threadedComment") or inside(relations, "comments")
        for part in comments:
            for text in package.elements(part, ["text"]):
                self._found.texts.append(_string(text))
        for drawing in inside(relations, "drawing"):
            read_part(package, drawing, self._found)
            for chart in inside(package.relations(drawing), "chart"):
                read_part(package, chart, self._found)

    def _cells(self, row: etree._Element, *, keep: bool) -> Iterator[str]:
        for cell in row:
            text = self._cell(cell) if isinstance(cell.tag, str) else ""
            if not text:
                continue
            self._left -= len(text)
            if self._left < 0:
                raise ParseError(f"more than {MOST_TEXT} characters in a sheet")
            yield text
            if keep and len(self._shown) < _MOST_KEPT:
                self._shown[cell.get("r", "")] = text

    def _cell(self, cell: etree._Element) -> str:
        kind = cell.get("t", "n")
        value = ""
        for part in cell:
            if not isinstance(part.tag, str):
                continue  # the name of an entity
            tag = part.tag.rpartition("}")[2]
            if tag == "v":
                value = part.text or ""
            elif tag == "is":
                value = _string(part)
            elif tag == "f" and (match := _FUNCTION.match(part.text or "")):
                self._found.links.append((match[1], text_of(child(cell, "v"))))
        if kind == "s":
            return self._strings[int(value)] if _is_index(value, self._strings) else ""
        if kind == "b":
            return _TRUTH.get(value, value)
        if kind == "n":
            return self._formats.shown(value, cell.get("s", "0"))
        return _plain(value)


def _is_index(value: str, strings: list[str]) -> bool:
    return len(value) < 10 and value.isascii() and value.isdecimal() and int(value) < len(strings)


def _string(element: etree._Element) -> str:
    """Returns a string with its runs, without the readings that stand over it."""
    if not len(element):
        return _plain(element.text or "")
    texts = (
        text.text or ""
        for text in element.iter("{*}t")
        if (parent := text.getparent()) is None or local_name(parent) != "rPh"
    )
    return _plain("".join(texts))


def _plain(text: str) -> str:
    """Returns a string in one line, its escapes resolved."""
    if "_x" in text:
        text = _ESCAPED.sub(lambda match: chr(int(match[1], 16)), text)
        text = text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return " ".join(text.split())
