"""creativecommons: finds the licence of a page and its kind of work, as parse metadata.

    License-Url        https://creativecommons.org/licenses/by/4.0/
    License-Location   where it was found: rdf (RDF in a comment), rel (<a rel="license">) or a (any
                       other link to one)
    Work-Type          video, image, audio, text, interactive or software, from RDF

RDF counts more than rel, and rel more than a plain link; of several links the first.
creativecommons.exclude.unlicensed=true makes the parse of every other page fail.

Source: org.creativecommons.nutch.CCParseFilter, which knows http: licences alone (today's are
https:) and takes `rel` for one word.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from minutch.conf import Configuration
from minutch.errors import ParseError, UrlError
from minutch.plugin.points import HTMLMetaTags, HtmlParseFilter, Parse, ParseResult
from minutch.records.parsedata import ParseData, ParseStatus
from minutch.records.protocol import Content
from minutch.urls.parts import Url
from minutch.urls.parts import parse as parse_url

from ..lib_xml.reading import parse_xml

if TYPE_CHECKING:
    from selectolax.lexbor import LexborHTMLParser, LexborNode

LICENSE_URL: Final = "License-Url"
LICENSE_LOCATION: Final = "License-Location"
WORK_TYPE: Final = "Work-Type"
UNLICENSED: Final = "org.apache.nutch.parse.ParseException: No CC license. Excluding."

_CC: Final = ("http://web.resource.org/cc/", "http://creativecommons.org/ns#")
"""The namespace that Nutch knows, and the one that took its place in 2008."""
_RDF: Final = "http://www.w3.org/1999/02/22-rdf-syntax-ns#"
_DC: Final = "http://purl.org/dc/elements/1.1/"
_LICENSES: Final = "/licenses/"
_MAYBE_RDF: Final = re.compile(rb"R\0?D\0?F")
"""RDF in any charset: going through all nodes for comments is worth it."""
_TYPE_PREFIX: Final = "http://purl.org/dc/dcmitype/"
_WORK_TYPES: Final[Mapping[str, str]] = {
    "MovingImage": "video", "StillImage": "image", "Sound": "audio", "Text": "text",
    "Interactive": "interactive", "Software": "software", "Image": "image",
}  # fmt: skip


@dataclass(slots=True)
class LicenceClaims:
    """The licences that a page names, by where it names them."""

    rdf: str | None = None
    rel: str | None = None
    a: str | None = None
    work_type: str | None = None

    @property
    def licence(self) -> tuple[str, str] | None:
        """The URL that counts, and its location."""
        found = ((self.rdf, "rdf"), (self.rel, "rel"), (self.a, "a"))
        return next(((url, where) for url, where in found if url is not None), None)


class CCParseFilter(HtmlParseFilter):
    """The filter; see the module."""

    def __init__(self, conf: Configuration, parameters: Mapping[str, str]) -> None:
        super().__init__(conf, parameters)
        self.exclude = conf.get_boolean("creativecommons.exclude.unlicensed", False)

    def filter(
        self,
        content: Content,
        result: ParseResult,
        metatags: HTMLMetaTags,
        document: LexborHTMLParser,
    ) -> ParseResult:
        found = LicenceClaims()
        _look_at_links(document, parse_url(content.base), found)
        # Few pages have RDF, and going through all nodes of a page costs more than its links.
        if _MAYBE_RDF.search(content.content):
            for comment in _comments(document):
                _look_at_rdf(comment, found)
        if found.licence is None and self.exclude:
            result[content.url] = Parse("", ParseData(ParseStatus.failed(0, UNLICENSED)))
            return result
        metadata = result[content.url].data.parse_meta
        if found.licence is not None:
            metadata.add(LICENSE_URL, found.licence[0])
            metadata.add(LICENSE_LOCATION, found.licence[1])
        if found.work_type is not None:
            metadata.add(WORK_TYPE, found.work_type)
        return result


def _look_at_links(document: LexborHTMLParser, base: Url, found: LicenceClaims) -> None:
    """Links to licences, from which `rel` and `a` come."""
    # Lexbor finds the few links that may be one; what they are is told by the URL.
    for node in document.css('a[href*="icenses/" i]'):
        values = node.attributes
        try:
            url = parse_url(values["href"] or "", base)
        except UrlError:
            continue
        if not _is_licence(url):
            continue
        if "license" in (values.get("rel") or "").lower().split():
            found.rel = found.rel or str(url)
        else:
            found.a = found.a or str(url)


def _is_licence(url: Url) -> bool:
    host = url.host.lower().removeprefix("www.")
    path = url.path.removeprefix(_LICENSES)
    return (
        url.protocol in ("http", "https")
        and host == "creativecommons.org"
        and path not in ("", url.path)
    )


def _comments(document: LexborHTMLParser) -> Iterator[str]:
    """Yields the comments of a page that may hold RDF."""
    root = document.root
    # A comment may stand before the html element.
    top = root.parent if root is not None and root.parent is not None else root
    nodes: Iterator[LexborNode] = iter(()) if top is None else top.traverse(include_text=True)
    for node in nodes:
        if node.is_comment_node:
            text = node.comment_content or ""
            if "RDF" in text and any(name in text for name in _CC):
                yield text


def _look_at_rdf(comment: str, found: LicenceClaims) -> None:
    """Reads licence and type of work from an RDF document, if the comment is one."""
    try:
        root = parse_xml(comment.strip().encode("utf-8", "replace"))
    except ParseError:
        return
    documents = list(root.iter(f"{{{_RDF}}}RDF"))
    # CCParseFilter: RDF of several works says nothing of the page.
    if len(documents) != 1:
        return
    for licence in documents[0].iter(*(f"{{{name}}}License" for name in _CC)):
        found.rdf = licence.get(f"{{{_RDF}}}about") or found.rdf
    if next(documents[0].iter(*(f"{{{name}}}Work" for name in _CC)), None) is None:
        return
    for kind in documents[0].iter(f"{{{_DC}}}type"):
        name = (kind.get(f"{{{_RDF}}}resource") or "").removeprefix(_TYPE_PREFIX)
        found.work_type = _WORK_TYPES.get(name)
