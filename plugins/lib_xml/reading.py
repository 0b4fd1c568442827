"""Parses XML from the web safely: no network, no entities but XML's own; broken XML is parsed as
far as possible.
"""

from __future__ import annotations

from collections.abc import Iterator

from lxml import etree

from minutch.errors import ParseError

_BLANKS = " \t\n\x0b\f\r"


def parse_xml(data: bytes, charset: str | None = None) -> etree._Element:
    """Returns the root element. `charset` overrides the XML declaration. Raises ParseError if there
    is no element at all.
    """
    if charset is not None:
        data = data.decode(charset, "replace").encode("utf-8")
    parser = etree.XMLParser(
        encoding="utf-8" if charset is not None else None,
        resolve_entities=False,
        no_network=True,
        load_dtd=False,
        huge_tree=False,
        recover=True,
        remove_pis=True,
        remove_comments=True,
    )
    try:
        root = etree.fromstring(data, parser)
    except (etree.XMLSyntaxError, ValueError, LookupError) as error:
        raise ParseError(f"not XML: {error}") from error
    if root is None:
        raise ParseError("not XML: no element")
    return root


def local_name(element: etree._Element) -> str:
    """Returns the element's name without its namespace; empty for a comment or an instruction."""
    tag = element.tag
    return tag.rpartition("}")[2] if isinstance(tag, str) else ""


def namespace(element: etree._Element) -> str:
    """Returns the element's namespace, empty if it has none."""
    tag = element.tag
    return tag[1:].partition("}")[0] if isinstance(tag, str) and tag.startswith("{") else ""


def children(element: etree._Element, name: str) -> Iterator[etree._Element]:
    """Returns the child elements of a local name."""
    return (child for child in element if local_name(child) == name)


def child(element: etree._Element, name: str) -> etree._Element | None:
    """Returns the first child element of a local name."""
    return next(children(element, name), None)


def text_of(element: etree._Element | None) -> str:
    """Returns all text inside an element, stripped of blanks; empty without an element."""
    return "".join(element.itertext()).strip(_BLANKS) if element is not None else ""


def all_text(root: etree._Element) -> str:
    """Returns the texts of all elements, blanks folded, joined by a blank."""
    return " ".join(word for text in root.itertext() for word in text.split())
