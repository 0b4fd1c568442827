"""parse-js: takes quoted strings in JavaScript that look like URLs as links, without an anchor.

A string counts if it has no blanks and, not at its ends, a slash or a dot. In HTML pages scripts,
event attributes and `javascript:` links are searched, and what is found stands before the page's
other links. With parse.js.strings=urls a string has to begin as a URL or a path does, and URLs in
comments count, too: `text/html` and `lodash.debounce` are no pages. A string that the script joins
with others is no link, but their sum is, if all are known: `"/blog/" + "new"`, or names that are
given a string once. Source: org.apache.nutch.parse.js.JSParseFilter.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from minutch.conf import Configuration
from minutch.errors import UrlError
from minutch.plugin.points import HTMLMetaTags, HtmlParseFilter, Parse, Parser, ParseResult
from minutch.records.links import Outlink
from minutch.records.metadata import Metadata
from minutch.records.parsedata import SUCCESS, ParseData, ParseStatus
from minutch.records.protocol import Content
from minutch.urls.resolve import Resolver

from ..lib_html.elements import LONGEST, in_text, is_likely

if TYPE_CHECKING:
    from selectolax.lexbor import LexborHTMLParser

MAX_TITLE = 80
_STRING = re.compile(r"(\\{0,8}[\"'])([^\s\"']+?)\1")
_SEPARATOR = re.compile(r"[/.]")
_TEMPLATE = re.compile(r"[][{}|^`$\\*]")
"""What stands in patterns, and in strings that scripts make URLs of, and not in URLs."""
_QUOTED = r"\"[^\s\"'\\]*+\"|'[^\s\"'\\]*+'"
_PIECE = rf"(?:{_QUOTED}|(?<![\w$.)\]])[A-Za-z_$][\w$]{{2,}}+(?![\w$.(\[]))"
"""A string or a name. Names of one or two letters stand for many things in a minified script."""
_PIECES = re.compile(_PIECE)
_SUM = re.compile(rf"{_PIECE}(?:\s*+\+\s*+{_PIECE})++")
_ASSIGNMENT = re.compile(
    rf"(?<![\w$.])([A-Za-z_$][\w$]*+)\s*+([-+*/%|&?^]{{0,3}}+)=(?![=>])"
    rf"(?:\s*+({_QUOTED})[ \t]*+(?=[;,}}\r\n]|\Z))?"
)
_JOINS_NEXT = re.compile(r"\s*+(?:\+(?!\+)|\.concat\()")
_BLANKS_BEFORE = 64
"""Characters in which the sign before a string is looked for."""


def script_links(script: str, base: str, *, only_urls: bool = False) -> list[Outlink]:
    """Returns the links in a script; `base` is the URL that relative ones belong to. `only_urls`:
    strings count that are URLs or paths, and URLs wherever they stand.
    """
    try:
        resolver = Resolver(base)
    except UrlError:
        return []
    if only_urls:
        alone = _STRING.sub(lambda match: " " if _is_joined(match) else match[0], script)
        named = [match[2] for match in _STRING.finditer(alone)] + [*_sums(script)]
        strings = [text for text in named if is_likely(text) and not _TEMPLATE.search(text)]
    else:
        found = (match[2] for match in _STRING.finditer(script))
        strings = [text for text in found if _SEPARATOR.search(text, 1, len(text) - 1)]
    links = []
    for target in strings:
        try:
            url = f"http://{target}" if target.startswith("www.") else resolver.resolve(target)
        except UrlError:
            continue
        links.append(Outlink(url.replace("&amp;", "&")))
    if only_urls:
        had = {link.to_url for link in links}
        links += [Outlink(url) for url in dict.fromkeys(in_text(alone)) if url not in had]
    return links


def _sums(script: str) -> Iterator[str]:
    """Yields the sums of strings that are all known."""
    values: dict[str, str | None] = {}
    for name, operator, value in _ASSIGNMENT.findall(script):
        is_known = value and not operator and name not in values
        values[name] = value[1:-1] if is_known else None
    for match in _SUM.finditer(script):
        pieces = [
            piece[1:-1] if piece[0] in "\"'" else values.get(piece)
            for piece in _PIECES.findall(match[0])
        ]
        known = [piece for piece in pieces if piece is not None]
        if len(known) == len(pieces) and sum(map(len, known)) <= LONGEST and not _is_joined(match):
            yield "".join(known)


def _is_joined(match: re.Match[str]) -> bool:
    """Tells whether a script adds something before or behind a piece of it."""
    before = match.string[max(0, match.start() - _BLANKS_BEFORE) : match.start()].rstrip()
    return (before.endswith("+") and not before.endswith("++")) or _JOINS_NEXT.match(
        match.string, match.end()
    ) is not None


def _only_urls(conf: Configuration) -> bool:
    return conf.get_word("parse.js.strings") == "urls"


class JSParser(Parser):
    """Files of JavaScript: the script is the text, its first line the title."""

    def get_parse(self, content: Content) -> ParseResult:
        script = content.content.decode("utf-8", "replace")
        title = script.split("\n", 1)[0][:MAX_TITLE]
        links = script_links(script, content.url, only_urls=_only_urls(self.conf))
        data = ParseData(ParseStatus(SUCCESS), title, links, content.metadata, Metadata())
        return ParseResult.of(content.url, Parse(script, data))


class JSParseFilter(HtmlParseFilter):
    """JavaScript within HTML pages."""

    def filter(
        self,
        content: Content,
        result: ParseResult,
        metatags: HTMLMetaTags,
        document: LexborHTMLParser,
    ) -> ParseResult:
        only = _only_urls(self.conf)
        found = [
            link
            for script in _scripts(document)
            for link in script_links(script, content.base, only_urls=only)
        ]
        data = result[content.url].data
        data.outlinks = [*found, *data.outlinks]
        return result


def _scripts(document: LexborHTMLParser) -> Iterator[str]:
    """Yields all pieces of JavaScript in a page."""
    if document.root is None:
        return
    for node in document.root.traverse():
        if node.tag == "script":
            yield node.text()
            continue
        for name, value in node.attributes.items():
            if value and (
                name.startswith("on") or (name == "href" and "javascript:" in value.lower())
            ):
                yield value
