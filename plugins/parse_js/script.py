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
from bisect import bisect
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from itertools import accumulate, compress

import numpy as np
from selectolax.lexbor import LexborHTMLParser

from minutch.conf import Configuration
from minutch.errors import UrlError
from minutch.hadoop.formats.javaio import encode_text
from minutch.kernels.occurrences import find_scripts
from minutch.kernels.textlinks import (
    ALONE,
    ASK,
    JOINED,
    KIND,
    STRING_ROW,
    TEXT,
    find_pluses,
    find_strings,
)
from minutch.plugin.points import HTMLMetaTags, HtmlParseFilter, Parse, Parser, ParseResult
from minutch.records.links import Outlink, OutlinkRun, joined
from minutch.records.metadata import Metadata
from minutch.records.parsedata import SUCCESS, ParseData, ParseStatus
from minutch.records.protocol import Content
from minutch.urls.resolve import Resolver, resolver

from ..lib_html.elements import LONGEST, is_likely, places_of_urls
from ..lib_html.tree_reader import Copier, attribute_numbers

MAX_TITLE = 80
# JSParseFilter's own pattern, with a bound for its backslashes.
_STRING = re.compile(r"(\\{0,8}[\"'])([^\s\"']+?)\1")
_SEPARATOR = re.compile(r"[/.]")
_TEMPLATE = re.compile(r"[][{}|^`$\\*]")
"""What stands in patterns, and in strings that scripts make URLs of, and not in URLs."""
_QUOTED = r"\"[^\s\"'\\]*+\"|'[^\s\"'\\]*+'"
_PIECE = rf"(?:{_QUOTED}|(?<![\w$.)\]])[A-Za-z_$][\w$]{{2,}}+(?![\w$.(\[]))"
"""A string or a name. Names of one or two letters stand for many things in a minified script."""
_PIECES = re.compile(_PIECE)
_BEGINS_OTHERWISE = re.compile(r"[\"'][^\"'/.hH]")
"""A string before others that make no URL with it, nor a path."""
_SUM = re.compile(rf"{_PIECE}(?:\s*+\+\s*+{_PIECE})++")
_ASSIGNMENT = re.compile(
    rf"(?<![\w$.])([A-Za-z_$][\w$]*+)\s*+([-+*/%|&?^]{{0,3}}+)=(?![=>])"
    rf"(?:\s*+({_QUOTED})[ \t]*+(?=[;,}}\r\n]|\Z))?"
)
_JOINS_NEXT = re.compile(r"\s*+(?:\+(?!\+)|\.concat\()")
_GIVES = re.compile(r"=\s*+[\"']")
_QUOTES = "\"'"
_ROWS = 1024
_BETWEEN = b"\n;\n"
"""What no string and no sum goes over."""
_BLANKS_BEFORE = 64
"""Characters in which the sign before a string is looked for."""


def script_links(script: str, base: str, *, only_urls: bool = False) -> list[Outlink]:
    """Returns the links in a script; `base` is the URL that relative ones belong to. `only_urls`:
    strings count that are URLs or paths, and URLs wherever they stand.
    """
    data = script.encode("utf-8", "surrogatepass")
    return [*map(Outlink, links_of_scripts([data], base, only_urls=only_urls))]


def links_of_scripts(scripts: Iterable[bytes], base: str, *, only_urls: bool) -> list[str]:
    """Returns the targets of the same of scripts in UTF-8, in turn."""
    try:
        of_base = resolver(base)
    except UrlError:
        return []
    if not only_urls:
        return [link for script in scripts for link in _absolute(_any_strings(script), of_base)]
    # Without a slash there is neither a URL nor a path.
    wanted = [script for script in scripts if b"/" in script]
    return _likely_links(wanted, of_base) if wanted else []


def _any_strings(data: bytes) -> Iterator[str]:
    for match in _STRING.finditer(data.decode("utf-8", "surrogatepass")):
        if _SEPARATOR.search(text := match[2], 1, len(text) - 1):
            yield text


def _likely_links(scripts: Sequence[bytes], of_base: Resolver) -> list[str]:
    """Returns the links of each script: strings and sums that are URLs or paths, then URLs that
    stand anywhere else.
    """
    # In one go: a kernel's call costs as much for a short script.
    data = bytearray(_BETWEEN.join(scripts))
    page = np.frombuffer(data, np.uint8)
    starts = [*accumulate((len(script) + len(_BETWEEN) for script in scripts), initial=0)]
    strings = _by_script(_rows(find_strings, page, STRING_ROW), starts)
    pluses = _by_script(_rows(find_pluses, page, 1), starts)
    texts: dict[int, list[str]] = {}
    for number in {*strings, *pluses}:
        script = _Script(scripts[number], starts[number])
        texts[number] = script.strings(data, strings.get(number, []))
        if number in pluses:
            places = script.characters([plus for (plus,) in pluses[number]])
            texts[number] += filter(_may_be, _sums(script.text, places))
    urls = _by_script(places_of_urls(data), starts)
    links = []
    for number in sorted({*texts, *urls}):
        found = _absolute(texts.get(number, ()), of_base)
        had = {*found}
        anywhere = dict.fromkeys([data[at:end].decode() for at, end in urls.get(number, ())])
        links += [*found, *(url for url in anywhere if url not in had)]
    return links


def _rows(kernel: Callable[..., int], page: np.ndarray, width: int) -> Iterator[list[int]]:
    """Yields the rows that a kernel finds."""
    place, rows, count = np.zeros(1, np.int64), np.empty((_ROWS, width), np.int64), _ROWS
    while count == _ROWS:
        count = kernel(page, place, rows)
        yield from rows[:count].tolist()


def _by_script(rows: Iterable[list[int]], starts: Sequence[int]) -> dict[int, list[list[int]]]:
    """Returns the rows by the number of the script that they are in."""
    found: dict[int, list[list[int]]] = {}
    for row in rows:
        found.setdefault(bisect(starts, row[0]) - 1, []).append(row)
    return found


class _Script:
    """A script of a page, from `start` on."""

    def __init__(self, data: bytes, start: int) -> None:
        self._data, self._start = data, start

    @cached_property
    def text(self) -> str:
        return self._data.decode("utf-8", "surrogatepass")

    def characters(self, places: Iterable[int]) -> list[int]:
        """Returns rising places of the page as places in `text`."""
        if self._data.isascii():
            return [place - self._start for place in places]
        found, at, count = [], 0, 0
        for place in places:
            end = place - self._start
            # Counted on from the last one: from the beginning each would be quadratic.
            count += len(self._data[at:end].decode("utf-8", "surrogatepass"))
            at = end
            found.append(count)
        return found

    def strings(self, page: bytearray, rows: Sequence[Sequence[int]]) -> list[str]:
        """Returns the strings that are URLs or paths and stand alone; those that are joined with
        others are blanks in the page then.
        """
        found = []
        asked = [place for row in rows if row[KIND] == ASK for place in row[:TEXT]]
        places = iter(self.characters(asked))
        for start, end, text_start, text_end, kind in rows:
            text = page[text_start:text_end].decode("utf-8", "surrogatepass")
            is_found, is_joined = kind == ALONE, kind == JOINED
            if kind == ASK:
                is_joined = _is_joined(self.text, next(places), next(places))
                is_found = not is_joined and _may_be(text)
            if is_found:
                found.append(text)
            elif is_joined:
                page[start:end] = b" " * (end - start)
        return found


def _absolute(strings: Iterable[str], of_base: Resolver) -> list[str]:
    links = []
    for target in strings:
        try:
            # As JSParseFilter.getJSLinks.
            url = f"http://{target}" if target.startswith("www.") else of_base.resolve(target)
        except UrlError:
            continue
        # As JSParseFilter.getJSLinks, too.
        links.append(url.replace("&amp;", "&"))
    return links


def _may_be(text: str) -> bool:
    return is_likely(text) and not _TEMPLATE.search(text)


def _sums(script: str, pluses: Iterable[int]) -> Iterator[str]:
    """Yields the sums of strings that are all known and may be a URL or a path, by the places of
    `+` that may make one.
    """
    found = [
        (*match.span(), _PIECES.findall(match[0]))
        for match in _all_sums(script, pluses)
        if not _BEGINS_OTHERWISE.match(match[0])
    ]
    names = [{piece for piece in pieces if piece[0] not in _QUOTES} for *_, pieces in found]
    # Assignments are gone through only where a sum may be known: its names are given strings.
    given = {*_given(script)} if any(names) else set()
    are_given = [given.issuperset(own) for own in names]
    values = _values(script) if any(compress(names, are_given)) else {}
    for start, end, all_pieces in compress(found, are_given):
        pieces = [piece[1:-1] if piece[0] in _QUOTES else values.get(piece) for piece in all_pieces]
        known = [piece for piece in pieces if piece is not None]
        if (
            len(known) == len(pieces)
            # A name may be there a thousand times in a sum: nothing of that length is made.
            and sum(map(len, known)) <= LONGEST
            and not _is_joined(script, start, end)
        ):
            yield "".join(known)


def _values(script: str) -> dict[str, str | None]:
    """Returns the names that are given a string once, with it, and others."""
    values: dict[str, str | None] = {}
    for name, operator, value in _ASSIGNMENT.findall(script):
        is_known = value and not operator and name not in values
        values[name] = value[1:-1] if is_known else None
    return values


def _given(script: str) -> Iterator[str]:
    """Yields all names that are given a string anywhere: far fewer than are given anything."""
    for match in _GIVES.finditer(script):
        end = _end_before(script, match.start())
        yield script[_name_start(script, end) : end]


def _all_sums(script: str, pluses: Iterable[int]) -> Iterator[re.Match[str]]:
    """Yields what `_SUM.finditer` does: each `+` says where the first piece of a sum would be."""
    starts = set()
    for plus in pluses:
        end = _end_before(script, plus)
        last = script[end - 1]
        starts.add(script.rfind(last, 0, end - 1) if last in _QUOTES else _name_start(script, end))
    end = 0
    for start in sorted(starts):
        # Sums don't overlap, as finditer's matches don't.
        if start >= end and (match := _SUM.match(script, start)):
            end = match.end()
            yield match


def _end_before(script: str, at: int) -> int:
    """Where what stands before a place ends, without blanks."""
    while at and script[at - 1].isspace():
        at -= 1
    return at


def _name_start(script: str, end: int) -> int:
    while end and ((last := script[end - 1]).isalnum() or last in "_$"):
        end -= 1
    return end


def _is_joined(script: str, start: int, end: int) -> bool:
    """Tells whether a script adds something before or behind a piece of it."""
    before = script[max(0, start - _BLANKS_BEFORE) : start].rstrip()
    return (before.endswith("+") and not before.endswith("++")) or _JOINS_NEXT.match(
        script, end
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

    def __init__(self, conf: Configuration, parameters: Mapping[str, str]) -> None:
        super().__init__(conf, parameters)
        self._only_urls = _only_urls(conf)

    @cached_property
    def _finder(self) -> ScriptFinder | None:
        numbers = attribute_numbers()
        return None if numbers is None else ScriptFinder(numbers)

    def filter(
        self,
        content: Content,
        result: ParseResult,
        metatags: HTMLMetaTags,
        document: LexborHTMLParser,
    ) -> ParseResult:
        only, finder = self._only_urls, self._finder
        scripts = _scripts(document) if finder is None else finder.scripts(document)
        found = links_of_scripts(scripts, content.base, only_urls=only)
        data = result[content.url].data
        # Before the page's own, as JSParseFilter puts them: db.max.outlinks.per.page keeps the
        # first.
        if found:
            data.outlinks = joined(OutlinkRun.to([*map(encode_text, found)]), data.outlinks)
        return result


class ScriptFinder:
    """Finds what `_scripts` does by a kernel; one page at a time."""

    def __init__(self, numbers: Mapping[str, int]) -> None:
        """`numbers` are Lexbor's of attributes."""
        self._numbers = LexborHTMLParser("").create_node("script").tag_id, numbers["href"]
        self._copier = Copier()

    def scripts(self, document: LexborHTMLParser) -> list[bytes]:
        """Returns all pieces of JavaScript in a page that are not empty, in UTF-8."""
        return self._copier.copied(find_scripts, document.root, *self._numbers)


def _scripts(document: LexborHTMLParser) -> Iterator[bytes]:
    """Yields all pieces of JavaScript in a page, in UTF-8."""
    if document.root is None:
        return
    for node in document.root.traverse():
        if node.tag == "script":
            yield node.text().encode("utf-8", "surrogatepass")
            continue
        for name, value in node.attributes.items():
            if value and (
                name.startswith("on") or (name == "href" and "javascript:" in value.lower())
            ):
                yield value.encode("utf-8", "surrogatepass")
