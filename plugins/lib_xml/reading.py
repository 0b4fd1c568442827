"""Parses XML from the web safely: no network, no entities but XML's own and the characters of HTML;
broken XML is parsed as far as possible.
"""

from __future__ import annotations

import io
import re
from collections.abc import Iterator
from typing import Final, TypedDict

from lxml import etree

from minutch.charsets import Charset
from minutch.cycle.parse.charset import xml_text
from minutch.errors import ParseError

ATOM: Final = "http://www.w3.org/2005/Atom"
CONTENT: Final = "http://purl.org/rss/1.0/modules/content/"
DUBLIN_CORE: Final = "http://purl.org/dc/elements/1.1/"
_USUAL: Final = {"atom": ATOM, "content": CONTENT, "dc": DUBLIN_CORE}
_BLANKS = " \t\n\x0b\f\r"


class _Safe(TypedDict):
    resolve_entities: bool
    no_network: bool
    load_dtd: bool
    huge_tree: bool
    recover: bool
    remove_pis: bool
    remove_comments: bool


_SAFELY: Final = _Safe(
    resolve_entities=False,
    no_network=True,
    load_dtd=False,
    huge_tree=False,
    recover=True,
    remove_pis=True,
    remove_comments=True,
)


def parse_xml(data: bytes, declared: Charset | None = None) -> etree._Element:
    """Returns the root element; `declared` is the charset of its Content-Type header. Raises
    ParseError if there is no element at all.
    """
    parser = etree.XMLParser(encoding="utf-8", **_SAFELY)
    try:
        # Decoded by us, mended, and told to be UTF-8: libxml2 knows fewer charsets, and none of
        # headers.
        root = etree.fromstring(xml_text(data, declared).encode("utf-8", "replace"), parser)
    except (etree.XMLSyntaxError, ValueError, LookupError) as error:
        raise ParseError(f"not XML: {error}") from error
    if root is None:
        raise ParseError("not XML: no element")
    return root


def large_xml(data: bytes, names: list[str]) -> Iterator[etree._Element]:
    """Yields the elements of local names as they end, and forgets them. Raises ParseError."""
    try:
        tags = [f"{{*}}{name}" for name in names]
        for _, element in etree.iterparse(io.BytesIO(data), tag=tags, **_SAFELY):
            yield element
            element.clear()
            # clear() leaves the empty element at its parent: a sheet of a million rows would keep a
            # million.
            while element.getprevious() is not None and (parent := element.getparent()) is not None:
                del parent[0]
    except etree.XMLSyntaxError as error:
        raise ParseError(f"not XML: {error}") from error


def local_name(element: etree._Element) -> str:
    """Returns the element's name without its namespace; empty for a comment or an instruction."""
    tag = element.tag
    # A prefix that is not declared stays in the name where XML is recovered.
    return re.split("[}:]", tag)[-1] if isinstance(tag, str) else ""


def namespace(element: etree._Element) -> str:
    """Returns the element's namespace, empty if it has none; of a prefix that is not declared the
    one that it usually stands for.
    """
    tag = element.tag
    if not isinstance(tag, str):
        return ""
    if tag.startswith("{"):
        return tag[1:].partition("}")[0]
    prefix = tag.rpartition(":")[0]
    return _USUAL.get(prefix, prefix)


def children(
    element: etree._Element, name: str, within: str | None = None
) -> Iterator[etree._Element]:
    """Returns the child elements of a local name, in the namespace `within` if it is given."""
    return (
        child
        for child in element
        if local_name(child) == name and (within is None or namespace(child) == within)
    )


def child(element: etree._Element, name: str, within: str | None = None) -> etree._Element | None:
    """Returns the first child element of a local name, in the namespace `within` if it is given."""
    return next(children(element, name, within), None)


def text_of(element: etree._Element | None) -> str:
    """Returns all text inside an element, stripped of blanks; empty without an element."""
    return "".join(element.itertext()).strip(_BLANKS) if element is not None else ""


def all_text(root: etree._Element) -> str:
    """Returns the texts of all elements, blanks folded, joined by a blank."""
    return " ".join(word for text in root.itertext() for word in text.split())
