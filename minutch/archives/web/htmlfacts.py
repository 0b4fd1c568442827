"""Extracts the facts of an HTML page that a WAT record has: title, base, meta, link and script
elements, and links. Pure: no I/O.

    Head     Base, Title, Metas, Link, Scripts
    Links    path (`A@/href`: element and attribute), url as written in the page,
             other attributes, text of an anchor

Links are in document order, an anchor where it ends. The page is parsed as a stream, without a
tree.

Source: org.archive.resource.html.ExtractingParseObserver of the Common Crawl's ia-web-commons:
which elements, which attributes, and how much of a text.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final

from lxml import etree

LONGEST_TEXT: Final = 128
"""Maximum length of the text of a title or anchor, in characters."""
_MOST_OPEN: Final = 8
"""Maximum number of nested anchors that the same text belongs to."""
_LONGEST_STYLE: Final = 100_000

_URL_ATTRIBUTES: Final[Mapping[str, tuple[str, ...]]] = {
    "applet": ("codebase", "cdata"),
    "audio": ("src",),
    "blockquote": ("cite",),
    "button": ("formaction",),
    "del": ("cite",),
    "embed": ("src",),
    "frame": ("src",),
    "iframe": ("src",),
    "img": ("longdesc",),
    "input": ("src", "formaction"),
    "ins": ("cite",),
    "menuitem": ("icon",),
    "object": ("codebase", "cdata", "data"),
    "q": ("cite",),
    "source": ("src",),
    "track": ("src",),
    "video": ("src", "poster"),
}
_ON_ANY: Final = ("background", "data-href", "data-uri")
_WITH_MORE: Final[Mapping[str, tuple[str, tuple[str, ...]]]] = {
    "area": ("href", ("rel",)),
    "form": ("action", ("target", "method")),
    "img": ("src", ("alt", "title")),
}
_OF_ANCHORS: Final = ("target", "alt", "title", "rel", "hreflang", "type")
_OF_METAS: Final = ("name", "rel", "content", "http-equiv", "property")
_SEPARATING: Final = frozenset(
    """
address article aside blockquote body br button canvas caption cite col colgroup datalist dd
details div dl dt embed fieldset figcaption figure footer form h1 h2 h3 h4 h5 h6 header hgroup hr
iframe img input label legend li map noscript object ol optgroup output p pre progress q section
select summary table tbody td textarea tfoot th thead time title tr ul video
""".split()  # noqa: SIM905
)
"""Elements that separate words."""
_CLICKABLE: Final = frozenset({"div", "input"})
_TOLD: Final = (
    frozenset("base body head html link meta script style svg title".split())  # noqa: SIM905
    | _CLICKABLE
    | _WITH_MORE.keys()
    | _URL_ATTRIBUTES.keys()
)
"""Elements of which there is more to tell than the attributes that any may have."""
_CLICKS: Final = (
    re.compile(
        r"^(?:javascript:)?(?:(?:window|top|document|self|parent)\.)?location(?:\.href)?\s*=\s*'([^'\"]{3,256})'$",
        re.I,
    ),
    re.compile(
        r"^(?:javascript:)?(?:window|parent)\.open\((?P<quote>['\"])(?P<url>[^\"']{3,256}?)(?P=quote)[,)]",
        re.I,
    ),
)
_IN_STYLE: Final = (
    re.compile(r"url\s*\(\s*([^()\s]{1,8000})\s*\)"),
    re.compile(r"@import\s+(\"[^\"]+\"|'[^']+'|[a-z0-9_.:/-]+)\s*;"),
)

Link = dict[str, str]


def html_facts(markup: bytes) -> dict[str, object]:
    """Returns the facts of a page in UTF-8."""
    reader = _Reader()
    parser = etree.HTMLParser(target=reader, encoding="utf-8", huge_tree=True)
    try:
        parser.feed(markup)
        parser.close()
    except etree.LxmlError:  # no page at all
        reader.close()
    return reader.facts()


@dataclass(slots=True)
class _Anchor:
    link: Link
    text: list[str] = field(default_factory=list)
    size: int = 0

    def add(self, text: str) -> None:
        if self.size < 8 * LONGEST_TEXT:
            self.text.append(text[: 8 * LONGEST_TEXT])
            self.size += len(self.text[-1])


@dataclass
class _Reader:
    """A target of lxml's parser, which calls it for each element and text."""

    head: dict[str, object] = field(default_factory=dict)
    links: list[Link] = field(default_factory=list)
    _anchors: list[_Anchor] = field(default_factory=list)
    _title: list[str] | None = None
    _style: list[str] | None = None
    _in_head: bool = False
    _svgs: int = 0

    def start(self, tag: str, attributes: Mapping[str, str]) -> None:
        if attributes:
            for each in _ON_ANY:
                if each in attributes:
                    self.links.append(_link(tag.upper(), each, attributes))
        if tag == "a":
            known = "href" in attributes
            self._anchors.append(
                _Anchor(_link("A", "href", attributes, _OF_ANCHORS) if known else {})
            )
        elif tag in _TOLD:
            self._told(tag, tag.upper(), attributes)

    def _told(self, tag: str, name: str, attributes: Mapping[str, str]) -> None:
        """Takes an element of which there is more to tell than of any."""
        self._track_section(tag, opened=True)
        self._head_element(tag, name, attributes)
        if tag in _WITH_MORE and _WITH_MORE[tag][0] in attributes:
            self.links.append(_link(name, _WITH_MORE[tag][0], attributes, _WITH_MORE[tag][1]))
        for each in _URL_ATTRIBUTES.get(tag, ()):
            if each in attributes:
                self.links.append(_link(name, each, attributes))
        if tag in _CLICKABLE and "onclick" in attributes:
            self.links += [
                {"path": f"{name}@/onclick", "url": url} for url in _clicked(attributes["onclick"])
            ]

    def _track_section(self, tag: str, *, opened: bool) -> None:
        if tag == "head":
            self._in_head = opened
        elif tag == "body":
            self._in_head = False
        elif tag == "svg":
            self._svgs = max(0, self._svgs + (1 if opened else -1))
        elif tag == "title" and opened:
            self._title = []
        elif tag == "style" and opened:
            self._style = []

    def _head_element(self, tag: str, name: str, attributes: Mapping[str, str]) -> None:
        if tag == "base" and "href" in attributes:
            self.head["Base"] = attributes["href"]
        elif tag == "html":
            for each in ("lang", "xml:lang"):
                if each in attributes:
                    self._add("Metas", {"name": f"HTML@/{each}", "content": attributes[each]})
        elif tag == "meta":
            found = {each: attributes[each] for each in _OF_METAS if each in attributes}
            if found:
                self._add("Metas", found)
        elif tag == "link" and "href" in attributes:
            self._add("Link", _link(name, "href", attributes, ("rel", "type")))
        elif tag == "script" and "src" in attributes:
            self._add("Scripts", _link(name, "src", attributes, ("type",)))

    def _add(self, name: str, value: Link) -> None:
        known = self.head.setdefault(name, [])
        assert isinstance(known, list)
        known.append(value)

    def data(self, text: str) -> None:
        if self._title is not None:
            self._title.append(text)
        elif self._style is not None:
            self._style.append(text)
        elif self._anchors:
            self._add_text(text)

    def end(self, tag: str) -> None:
        if self._anchors and tag in _SEPARATING:
            self._add_text(" ")
        if tag == "a":
            if self._anchors:
                self._close(self._anchors.pop())
        elif tag in _TOLD:
            self._end_told(tag)

    def _end_told(self, tag: str) -> None:
        if tag == "title" and self._title is not None:
            title = " ".join("".join(self._title).split())[:LONGEST_TEXT]
            if not self._svgs and (self._in_head or "Title" not in self.head):
                self.head["Title"] = title
            self._title = None
        elif tag == "style" and self._style is not None:
            text = "".join(self._style)[:_LONGEST_STYLE]
            self.links += [{"path": "STYLE/#text", "href": url} for url in _styled(text)]
            self._style = None
        self._track_section(tag, opened=False)

    def _add_text(self, text: str) -> None:
        for anchor in self._anchors[-_MOST_OPEN:]:
            anchor.add(text)

    def _close(self, anchor: _Anchor) -> None:
        if anchor.link:
            text = " ".join("".join(anchor.text).split())[:LONGEST_TEXT]
            if text:
                anchor.link["text"] = text
            self.links.append(anchor.link)

    def close(self) -> None:
        while self._anchors:
            self._close(self._anchors.pop())

    def facts(self) -> dict[str, object]:
        """Returns the facts collected."""
        head = {"Head": self.head} if self.head else {}
        return head | ({"Links": self.links} if self.links else {})


def _link(
    name: str, attribute: str, attributes: Mapping[str, str], more: tuple[str, ...] = ()
) -> Link:
    found = {"path": f"{name}@/{attribute}", "url": attributes[attribute]}
    if more and len(attributes) > 1:
        for each in more:
            if each in attributes:
                found[each] = attributes[each]
    return found


def _clicked(script: str) -> Iterator[str]:
    for pattern in _CLICKS:
        match = pattern.search(script[:1000])
        if match:
            yield match["url"] if "url" in pattern.groupindex else match[1]


def _styled(text: str) -> Iterator[str]:
    for pattern in _IN_STYLE:
        for match in pattern.finditer(text):
            url = match[1].strip("\\\"'")
            if url:
                yield url
