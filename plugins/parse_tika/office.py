"""Extracts text, title and links of office documents that are a zip of XML: OOXML, OpenDocument,
EPUB.

    word/document.xml                      paragraphs             a line each
    ppt/slides/slide*.xml                  slides                 a line for each paragraph
    xl/worksheets/sheet*.xml               sheets                 a line for each row;
                                           xl/sharedStrings.xml has texts
    content.xml                            OpenDocument           a line for each paragraph or
                                           heading
    META-INF/container.xml -> *.opf        EPUB                   the pages of the spine

The title is that of docProps/core.xml, meta.xml or the .opf file. Links are those that lead out of
the document: relationships with TargetMode="External", xlink:href, href. Unpacked bytes are
bounded; XML is read without entities. Sources: ECMA-376, OASIS OpenDocument 1.3, EPUB 3.3.
"""

from __future__ import annotations

import io
import posixpath
import re
import zipfile
import zlib
from collections.abc import Callable, Iterable, Iterator
from urllib.parse import unquote

from lxml import etree

from minutch.errors import ParseError

from ..lib_xml.reading import child, children, local_name, parse_xml, text_of

MOST_BYTES = 64 << 20
"""Unpacked bytes that are read at most."""

OfficeDocument = tuple[str, str, list[tuple[str, str]]]
"""Text, title, links with their anchors."""
Links = list[tuple[str, str]]

_BLANKS = frozenset(("tab", "br", "cr", "s", "line-break", "noBreakHyphen", "soft-page-break"))
_LINES = frozenset(
    (
        "p",
        "h",
        "h1",
        "h2",
        "h3",
        "h4",
        "h5",
        "h6",
        "li",
        "div",
        "tr",
        "dt",
        "dd",
        "blockquote",
        "title",
    )
)
_HIDDEN = frozenset(("Fallback", "tracked-changes", "script", "style", "head"))
_NUMBER = re.compile(r"\d+")
_OUTSIDE = re.compile(r"(?:https?|ftp)://", re.IGNORECASE)


class OfficePackage:
    """The members of a document; reading more than MOST_BYTES in all is a ParseError."""

    def __init__(self, archive: zipfile.ZipFile) -> None:
        self._archive = archive
        self.names = archive.namelist()
        self._left = MOST_BYTES

    def root(self, name: str) -> etree._Element | None:
        """Returns the root element of a member; None if there is no such member."""
        try:
            stream = self._archive.open(name)
        except KeyError:
            return None
        with stream:
            data = stream.read(self._left + 1)
        self._left -= len(data)
        if self._left < 0:
            raise ParseError(f"more than {MOST_BYTES} bytes unpacked")
        return parse_xml(data)

    def numbered(self, pattern: str) -> list[str]:
        """Returns the members that match, by the first number in their names."""
        found = [name for name in self.names if re.fullmatch(pattern, name)]
        return sorted(
            found, key=lambda name: int(match[0]) if (match := _NUMBER.search(name)) else 0
        )

    def targets(self, name: str) -> dict[str, str]:
        """Returns the targets of a member's relationships that lead outside, by id."""
        folder, file = posixpath.split(name)
        root = self.root(f"{folder}/_rels/{file}.rels")
        if root is None:
            return {}
        outside = (entry for entry in root if entry.get("TargetMode") == "External")
        return {entry.get("Id", ""): entry.get("Target", "") for entry in outside}


def read_office(data: bytes) -> OfficeDocument:
    """Returns the document in an archive. Raises ParseError if it is of no known kind, or if it
    can't be read.
    """
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            package = OfficePackage(archive)
            for mark, read in _READERS.items():
                if mark in package.names:
                    return read(package)
    except (
        zipfile.BadZipFile,
        zlib.error,
        RuntimeError,
        NotImplementedError,
        EOFError,
        ValueError,
        OSError,
    ) as error:
        raise ParseError(f"not an office document that can be read: {error}") from error
    raise ParseError("not an office document of a kind that is known")


def _word(package: OfficePackage) -> OfficeDocument:
    return _parts(package, ["word/document.xml", *package.numbered(r"word/(?:foot|end)notes\.xml")])


def _slides(package: OfficePackage) -> OfficeDocument:
    return _parts(package, package.numbered(r"ppt/slides/slide\d+\.xml"))


def _parts(package: OfficePackage, names: Iterable[str]) -> OfficeDocument:
    texts: list[str] = []
    links: Links = []
    for name in names:
        root = package.root(name)
        if root is not None:
            texts.append("".join(_runs(root)))
            links += _relations(root, package.targets(name))
    return _lines(texts), _core_title(package), links


def _runs(element: etree._Element) -> Iterator[str]:
    """Yields the text of OOXML: what `t` elements hold."""
    name = local_name(element)
    if name in _HIDDEN:
        return
    if name == "t":
        yield _flat(element.text)
    elif name in _BLANKS:
        yield " "
    else:
        for part in element:
            yield from _runs(part)
        if name == "p":
            yield "\n"


def _flat(text: str | None) -> str:
    """Text in one line: line ends are made by paragraphs only."""
    return text.replace("\n", " ").replace("\r", " ") if text else ""


def _relations(root: etree._Element, targets: dict[str, str]) -> Links:
    links = []
    for element in root.iter("{*}hyperlink", "{*}hlinkClick"):
        names = (name for name in element.attrib if isinstance(name, str) and name.endswith("}id"))
        target = next(
            (targets[element.attrib[name]] for name in names if element.attrib[name] in targets), ""
        )
        if target:
            run = (
                element.getparent().getparent() if local_name(element) == "hlinkClick" else element
            )
            anchor = "".join(_runs(run)) if run is not None else ""
            links.append((target, anchor or element.get("display", "")))
    return links


def _sheets(package: OfficePackage) -> OfficeDocument:
    shared = package.root("xl/sharedStrings.xml")
    strings = ["".join(_runs(entry)) for entry in shared] if shared is not None else []
    texts: list[str] = []
    links: Links = []
    for name in package.numbered(r"xl/worksheets/sheet\d+\.xml"):
        root = package.root(name)
        if root is not None:
            texts += (
                " ".join(_cell(cell, strings) for cell in row) + "\n" for row in root.iter("{*}row")
            )
            links += _relations(root, package.targets(name))
    return _lines(texts), _core_title(package), links


def _cell(cell: etree._Element, strings: list[str]) -> str:
    value = text_of(child(cell, "v"))
    if cell.get("t") == "s":
        return strings[int(value)] if value.isdecimal() and int(value) < len(strings) else ""
    return "".join(_runs(cell)) if cell.get("t") == "inlineStr" else value


def _core_title(package: OfficePackage) -> str:
    root = package.root("docProps/core.xml")
    return text_of(child(root, "title")) if root is not None else ""


def _open_document(package: OfficePackage) -> OfficeDocument:
    root = package.root("content.xml")
    body = child(root, "body") if root is not None else None
    links = (
        [(target, text_of(a)) for a in body.iter("{*}a") if (target := _href(a))]
        if body is not None
        else []
    )
    meta = package.root("meta.xml")
    title = (
        next((text_of(found) for found in meta.iter("{*}title")), "") if meta is not None else ""
    )
    return _lines(["".join(_mixed(body))] if body is not None else []), title, links


def _mixed(element: etree._Element) -> Iterator[str]:
    """Yields all text inside an element, line ends where paragraphs end."""
    name = local_name(element)
    if name in _HIDDEN:
        return
    yield " " if name in _BLANKS else _flat(element.text)
    for part in element:
        yield from _mixed(part)
        yield _flat(part.tail)
    if name in _LINES:
        yield "\n"


def _href(element: etree._Element) -> str:
    """Returns the target of an element's link, if it is outside of the document."""
    targets = (
        str(value)
        for name, value in element.attrib.items()
        if str(name).rpartition("}")[2] == "href"
    )
    return next((target for target in targets if _OUTSIDE.match(target)), "")


def _book(package: OfficePackage) -> OfficeDocument:
    container = package.root("META-INF/container.xml")
    entries = container.iter("{*}rootfile") if container is not None else iter(())
    path = next((entry.get("full-path", "") for entry in entries), "")
    root = package.root(path)
    if root is None:
        raise ParseError(f"the book has no {path or 'rootfile'}")
    manifest, spine = child(root, "manifest"), child(root, "spine")
    hrefs = (
        {item.get("id"): item.get("href", "") for item in manifest} if manifest is not None else {}
    )
    texts: list[str] = []
    links: Links = []
    for reference in children(spine, "itemref") if spine is not None else ():
        name = unquote(hrefs.get(reference.get("idref"), ""))
        page = (
            package.root(posixpath.normpath(posixpath.join(posixpath.dirname(path), name)))
            if name
            else None
        )
        if page is not None:
            texts.append("".join(_mixed(page)))
            links += [(target, text_of(a)) for a in page.iter("{*}a") if (target := _href(a))]
    return _lines(texts), next((text_of(title) for title in root.iter("{*}title")), ""), links


def _lines(texts: Iterable[str]) -> str:
    """Blanks folded, empty lines left out."""
    lines = (" ".join(line.split()) for line in "\n".join(texts).split("\n"))
    return "\n".join(line for line in lines if line)


_READERS: dict[str, Callable[[OfficePackage], OfficeDocument]] = {
    "word/document.xml": _word,
    "ppt/presentation.xml": _slides,
    "xl/workbook.xml": _sheets,
    "META-INF/container.xml": _book,
    "content.xml": _open_document,
}
"""Member that shows the kind of document → its reader."""
