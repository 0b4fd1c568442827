"""Reads Office Open XML: which part is the main one, what its relationships lead to, and the text
and links of each.

    document      headers, text, foot- and endnotes, comments, charts, diagrams, footers
    presentation  slides in their order, each with its notes, comments, charts, diagrams
    workbook      `sheets`

A paragraph is a line. A text box comes behind the paragraph that it is anchored in; deleted text is
left out; of several forms of one drawing the first is taken. Links are those of relationships that
lead outside, and HYPERLINK fields. Sources: ECMA-376, parts 1 to 3; Tika's OOXMLParser.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

from lxml import etree

from ..lib_xml.reading import local_name, text_of
from .package import Document, Package, ParagraphWalk, Relation

_BY_TYPE: Final = {
    ".main+xml": "officeDocument",
    ".core-properties+xml": "core-properties",
    ".extended-properties+xml": "extended-properties",
}
"""Ends of content types, by the relationships that lead to such parts."""
_ORDER: Final = (
    "header", "", "footnotes", "endnotes", "comments", "chart", "diagramData", "footer",
)  # fmt: skip
"""Kinds of parts around the document itself, which has no name."""
_BESIDE_A_SLIDE: Final = ("notesSlide", "comments", "chart", "diagramData")
_NO_NOTES: Final = frozenset(("sldImg", "sldNum", "hdr", "dt", "ftr"))
"""Placeholders of a page of notes that say nothing of their own."""

_BLANKS: Final = frozenset(("tab", "br", "cr", "ptab"))
_SKIPPED: Final = frozenset(
    ("del", "moveFrom", "delText", "delInstrText", "rPh", "pPr", "rPr", "tblPr", "sectPr", "tcPr")
)
_HYPERLINK: Final = re.compile(r'\s*HYPERLINK\s+(?:"([^"]*)"|([^\\\s"]\S*))', re.IGNORECASE)
_MOST_FIELDS: Final = 20
"""Fields inside each other."""

_PROPERTIES: Final = {
    "title": "dc:title",
    "creator": "dc:creator",
    "subject": "dc:subject",
    "description": "dc:description",
    "language": "dc:language",
    "keywords": "meta:keyword",
    "lastModifiedBy": "meta:last-author",
    "category": "cp:category",
    "Application": "extended-properties:Application",
    "Company": "extended-properties:Company",
    "Pages": "xmpTPg:NPages",
    "Slides": "meta:slide-count",
}
"""Elements of docProps/core.xml and app.xml by the names that Tika gives them."""
_DATES: Final = {"created": "dcterms:created", "modified": "dcterms:modified"}


def package_relations(package: Package) -> list[Relation]:
    """Returns the relationships of the package itself; where they say nothing of a main part, what
    the content types of the parts say. None for a package of another kind.
    """
    relations = package.relations()
    if any(entry.kind == "officeDocument" and entry.target in package for entry in relations):
        return relations
    types = package.root("[Content_Types].xml")
    for entry in types if types is not None else ():
        name, content_type = entry.get("PartName", "").lstrip("/"), entry.get("ContentType", "")
        kind = next((kind for end, kind in _BY_TYPE.items() if content_type.endswith(end)), "")
        if kind and name in package:
            relations.append(Relation("", kind, name, is_outside=False))
    return relations


def read_properties(package: Package, relations: list[Relation], found: Document) -> None:
    """Adds what the package says about itself: title, authors, dates."""
    for relation in relations:
        if relation.kind not in ("core-properties", "extended-properties"):
            continue
        root = package.root(relation.target)
        for entry in root if root is not None else ():
            tag, value = local_name(entry), text_of(entry)
            if tag in _PROPERTIES:
                found.describe(_PROPERTIES[tag], value)
            elif tag in _DATES:
                found.date(_DATES[tag], value)
    found.title = found.metadata.get("dc:title") or ""


def read_document(package: Package, root: etree._Element, name: str, found: Document) -> None:
    """Adds a document of Word's. Headers and footers that say the same are there once."""
    relations = package.relations(name)
    once: set[str] = set()
    for kind in _ORDER:
        if not kind:
            _add(root, relations, found)
            continue
        for part in inside(relations, kind):
            before = len(found.texts)
            read_part(package, part, found)
            text = "\n".join(found.texts[before:])
            if kind in ("header", "footer") and text in once:
                del found.texts[before:]
            once.add(text)


def read_slides(package: Package, root: etree._Element, name: str, found: Document) -> None:
    """Adds a presentation, its slides in the order of its list."""
    relations = package.relations(name)
    slides = [target for _, target in ordered(root.iter("{*}sldId"), relations)]
    for slide in slides or inside(relations, "slide"):
        read_part(package, slide, found)
        beside = package.relations(slide)
        for kind in _BESIDE_A_SLIDE:
            for part in inside(beside, kind):
                read_part(package, part, found)


def read_part(package: Package, name: str, found: Document) -> None:
    """Adds text and links of a part, in words of its own alone."""
    root = package.root(name)
    if root is None:
        return
    if local_name(root) == "chartSpace":
        _chart(root, found)
        return
    if local_name(root) == "notes":
        for shape in list(root.iter("{*}sp")):
            kinds = {entry.get("type") for entry in shape.iter("{*}ph")}
            if kinds & _NO_NOTES and (parent := shape.getparent()) is not None:
                parent.remove(shape)
    _add(root, package.relations(name), found)


def inside(relations: Iterable[Relation], kind: str) -> list[str]:
    """Returns the parts of a kind that relationships lead to."""
    wanted = [entry for entry in relations if entry.kind == kind and not entry.is_outside]
    return list(dict.fromkeys(entry.target for entry in wanted))


def ordered(
    entries: Iterable[etree._Element], relations: list[Relation]
) -> list[tuple[etree._Element, str]]:
    """Returns the entries of a list with the parts that they name by r:id."""
    targets = {entry.id: entry.target for entry in relations if not entry.is_outside}
    return [
        (entry, targets[found]) for entry in entries if (found := relation_id(entry)) in targets
    ]


def relation_id(element: etree._Element) -> str:
    """Returns the attribute r:id of an element, in whichever namespace that is."""
    return next((str(value) for name, value in element.items() if str(name).endswith("}id")), "")


def outside(relations: Iterable[Relation]) -> dict[str, str]:
    """Returns the targets of the relationships that lead outside, by id."""
    return {entry.id: entry.target for entry in relations if entry.is_outside}


def _add(root: etree._Element, relations: list[Relation], found: Document) -> None:
    targets = outside(relations)
    walk = _Walk()
    walk.block(root)
    found.texts += walk.lines
    for element in root.iter("{*}hyperlink", "{*}hlinkClick") if targets else ():
        target = targets.get(relation_id(element))
        if target:
            # A click belongs to the run whose properties it stands in.
            words = element if local_name(element) == "hyperlink" else element.getparent()
            words = words.getparent() if words is not None and words is not element else words
            found.links.append((target, "" if words is None else _plain(words)))
    found.links += walk.links


def _plain(element: etree._Element) -> str:
    """Returns the words of an element in one line."""
    walk = _Walk()
    walk.inline(element)
    return " ".join("".join(walk.pieces).split())


class _Walk(ParagraphWalk):
    """Goes through a tree of WordprocessingML or DrawingML."""

    def __init__(self) -> None:
        super().__init__()
        self.links: list[tuple[str, str]] = []
        """Of fields."""
        self._fields: list[tuple[list[str], list[str]]] = []
        """The fields that are open: what they tell, and the text that they show."""
        self._shows: list[bool] = []

    def block(self, element: etree._Element) -> None:
        """Adds the paragraphs below an element."""
        for part in _parts(element):
            name = part.tag.rpartition("}")[2]
            if name == "p":
                self.paragraph(part)
            elif name == "text" and not len(part):
                self.lines.append(part.text or "")  # a comment on a slide
            else:
                self.block(part)

    def inline(self, element: etree._Element) -> None:  # noqa: C901 - one branch a case
        """Adds the text inside a paragraph."""
        for part in _parts(element):
            name = part.tag.rpartition("}")[2]
            if name == "t" and not len(part):
                self._emit((part.text or "").replace("\n", " "))
            elif name in _BLANKS:
                self._emit(" ")
            elif name == "noBreakHyphen":
                self._emit("-")
            elif name == "sym":
                self._emit(_symbol(part))
            elif name == "p":
                self.paragraph(part)
            elif name == "fldChar":
                self._field(
                    next(
                        (str(value) for key, value in part.items() if key.endswith("}fldCharType")),
                        "",
                    )
                )
            elif name == "instrText":
                if self._fields:
                    self._fields[-1][0].append(part.text or "")
            elif name == "fldSimple":
                self._simple(part)
            else:
                self.inline(part)

    def _emit(self, text: str) -> None:
        self.pieces.append(text)
        for (_, shown), is_shown in zip(self._fields, self._shows, strict=True):
            if is_shown:
                shown.append(text)

    def _field(self, kind: str) -> None:
        if kind == "begin" and len(self._fields) < _MOST_FIELDS:
            self._fields.append(([], []))
            self._shows.append(False)
        elif kind == "separate" and self._shows:
            self._shows[-1] = True
        elif kind == "end" and self._fields:
            instruction, shown = self._fields.pop()
            self._shows.pop()
            self._link("".join(instruction), "".join(shown))

    def _simple(self, element: etree._Element) -> None:
        instruction = next(
            (str(value) for key, value in element.items() if key.endswith("}instr")), ""
        )
        before = len(self.pieces)
        self.inline(element)
        self._link(instruction, "".join(self.pieces[before:]))

    def _link(self, instruction: str, shown: str) -> None:
        match = _HYPERLINK.match(instruction)
        if match and (match[1] or match[2]):
            self.links.append((match[1] or match[2], " ".join(shown.split())))


def _parts(element: etree._Element) -> Iterable[etree._Element]:
    """Returns the child elements that count; of the forms of a drawing (AlternateContent) one."""
    found: list[etree._Element] = []
    for part in element:
        if not isinstance(part.tag, str):
            continue  # the name of an entity
        name = part.tag.rpartition("}")[2]
        if name == "AlternateContent":
            found += _chosen(part)
        elif name not in _SKIPPED:
            found.append(part)
    return found


def _chosen(element: etree._Element) -> list[etree._Element]:
    for form in element:
        if local_name(form) in ("Choice", "Fallback") and any(
            (text.text or "").strip() for text in form.iter("{*}t")
        ):
            return [form]
    return []


def _symbol(element: etree._Element) -> str:
    """Returns a character that is given by its number; those of the private area are pictures."""
    value = next((str(value) for key, value in element.items() if key.endswith("}char")), "")
    code = int(value, 16) if re.fullmatch("[0-9A-Fa-f]{1,5}", value) else 0
    return "" if not code or 0xD800 <= code <= 0xF8FF else chr(code)


def _chart(root: etree._Element, found: Document) -> None:
    """Adds titles and labels of a chart, not its numbers."""
    walk = _Walk()
    walk.block(root)
    found.texts += walk.lines
    for labels in root.iter("{*}strCache"):
        found.texts.append(" ".join(text_of(value) for value in labels.iter("{*}v")))
