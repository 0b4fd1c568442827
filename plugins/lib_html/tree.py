"""Parses pages to trees as browsers do, after `rewrite` has changed some markup as Nutch's parser
reads it, and `Limits` has refused pages that would take too much time.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from threading import Lock
from typing import Final

import numpy as np
from selectolax.lexbor import LexborDocumentOptions, LexborHTMLParser, SelectolaxError

from minutch.conf import Configuration
from minutch.errors import ParseError
from minutch.kernels import markup as kernels
from minutch.kernels.scan import next_tag
from minutch.kernels.tags import SLOTS, SPREAD, WIDE_PRIME, Tag

# Rewrites markup that Lexbor reads as text or drops from the tree, so that it is parsed as in
# Nutch.
#
#   template                    gets another name, so that its content is markup like any other; if
#                               templates are inert, the root of a shadow tree alone, which is shown
#   iframe with an end tag      likewise, if there is something inside
#   iframe without one          gets another name and ends at once; so does `<iframe … />`
#   noembed, noframes, xmp      get another name where the end tag is missing: a browser would take
#                               the rest of the page for their text
#
# An iframe has no end tag if the next one comes first: there can't be an iframe in an iframe.
# Comments are left as they are, and so is the text of script, style, title and textarea, to the
# end of the page if they have no end tag.

PREFIX: Final = b"x-"
"""The prefix of renamed elements, which HTML does not know."""

_TEXTS: Final = (b"script", b"style", b"title", b"textarea")
"""Elements that hold text, however long."""
_HIDDEN: Final = (b"noembed", b"noframes", b"xmp")
"""Elements that hold text if they have an end tag."""
_MARKUP: Final = (b"iframe", b"template")
_ROWS: Final = [name.ljust(16, b"\0") for name in (*_TEXTS, *_HIDDEN, *_MARKUP)]
_TAGS: Final = np.frombuffer(b"".join(_ROWS), np.uint8).reshape(len(_ROWS), -1)
_TAG: Final = re.compile(rb"<(/?)([a-z][^\s/>]*)")
_REST_OF_TAG: Final = re.compile(rb"(?:[^>=]++|=\s*+(?:\"[^\"]*+\"|'[^']*+'|(?![\"'])))*+(>?)")
_SHADOW: Final = re.compile(rb"[\s/\"']shadowrootmode\s*=\s*[\"']?(?:open|closed)(?![^\s/>\"'])")
_BLANKS: Final = b" \t\n\x0b\f\r"


def rewrite(data: bytes, *, inert: bool = False) -> bytes:
    """Returns the page with other names where they have to be; takes one pass. `inert`: what
    templates hold is not the page's.
    """
    return b"".join(_Rewriter(data, inert).pieces())


def next_tag_of(page: np.ndarray, at: int) -> int:
    """Returns where the next tag is that may have to be renamed; -1 if there is none."""
    return next_tag(page, at, _TAGS, len(_TEXTS), len(_MARKUP))


class _Rewriter:
    """One pass over one page."""

    def __init__(self, data: bytes, inert: bool) -> None:
        self._data, self._inert = data, inert
        self._lower = data.lower()
        self._next: dict[bytes, int] = {}
        self._templates: list[bool] = []
        """For each open template, whether it is renamed."""

    def pieces(self) -> Iterator[bytes]:
        """Yields the page in pieces."""
        data, done, at = self._data, 0, 0
        page = np.frombuffer(data, np.uint8)
        while (tag := next_tag_of(page, at)) >= 0:
            match = _TAG.match(self._lower, tag)
            assert match is not None, "a tag, as the kernel says"
            closes, name = match.groups()
            start, at = match.span(2)
            new_end = b""
            if closes:
                is_renamed = name == b"iframe" or self._closes_renamed()
            elif name in _HIDDEN:
                is_renamed = self._find(b"</" + name, at) < 0
                at = at if is_renamed else self._after(b"</" + name, at)
            else:
                name_end, at = at, self._end_of_tag(at)
                is_renamed = (name == b"template" and self._opens_renamed(name_end, at)) or (
                    name == b"iframe" and not self._is_empty(at)
                )
                if name == b"iframe" and is_renamed and self._is_unclosed(name_end, at):
                    new_end = b"</" + PREFIX + name + b">"
                elif name == b"iframe" and not is_renamed:
                    at = self._after(b"</iframe", at)
            if is_renamed:
                yield data[done:start] + PREFIX + data[start:at] + new_end
                done = at
        yield data[done:]

    def _opens_renamed(self, name_end: int, end: int) -> bool:
        """Returns True if the template whose tag goes from `name_end` to `end` is renamed."""
        is_renamed = not self._inert or _SHADOW.search(self._lower, name_end, end) is not None
        self._templates.append(is_renamed)
        return is_renamed

    def _closes_renamed(self) -> bool:
        return self._templates.pop() if self._templates else not self._inert

    def _find(self, text: bytes, start: int) -> int:
        """Returns the next position of a text, -1 if there is none. Remembers it, so that all calls
        together take one pass.
        """
        found = self._next.get(text, 0)
        if 0 <= found < start:
            found = self._next[text] = self._lower.find(text, start)
        return found

    def _after(self, text: bytes, start: int) -> int:
        """Returns the end of the next occurrence of a text, or the page's end."""
        found = self._find(text, start)
        return len(self._data) if found < 0 else found + len(text)

    def _end_of_tag(self, start: int) -> int:
        """Returns the end of a tag; the page's end if a quote in it is not closed."""
        rest = _REST_OF_TAG.match(self._data, start)
        return rest.end() if rest is not None and rest[1] else len(self._data)

    def _is_empty(self, start: int) -> bool:
        """Returns True if the end tag of an iframe follows at once, or after blanks."""
        found = self._find(b"</iframe", start)
        return found >= 0 and not self._data[start:found].strip(_BLANKS)

    def _is_unclosed(self, name_end: int, start: int) -> bool:
        """Returns True if an iframe whose tag goes from `name_end` to `start` has no end tag of its
        own.
        """
        tag = self._data[name_end : start - 1]
        if tag.endswith(b"/") and (len(tag) == 1 or tag[-2:-1] in b" \t\n\x0b\f\r\"'"):
            return True
        following, end = self._find(b"<iframe", start), self._find(b"</iframe", start)
        return end < 0 or 0 <= following < end


RENAMED: Final[Mapping[str, str]] = {"iframe": "x-iframe"}
"""Element with links → its name in a rewritten page."""
REWRITTEN: Final = ("template",)
_SHADOWS: Final = ("template[shadowrootmode]",)
REWRITTEN_IF_FILLED: Final = ("iframe", "noembed", "noframes", "xmp")
"""Elements for which a page may have to be rewritten; the latter if they have content."""


def build_tree(data: bytes, *, inert: bool = False) -> LexborHTMLParser:
    """Returns the tree of a page in UTF-8, rewritten where it has to be. `inert`: what templates
    hold is not in it.
    """
    return rewritten(plain_tree(data), data, inert=inert)


def rewritten(document: LexborHTMLParser, data: bytes, *, inert: bool = False) -> LexborHTMLParser:
    """Returns the tree of a page of which the plain one is there: this one, or a rewritten one."""
    wanted = _is_to_be_rewritten(document, _SHADOWS if inert else REWRITTEN)
    return plain_tree(rewrite(data, inert=inert)) if wanted else document


def plain_tree(data: bytes) -> LexborHTMLParser:
    """Returns the tree of a page as it stands. Raises ParseError where memory is short."""
    try:
        return LexborHTMLParser(data, options=LexborDocumentOptions.WO_EVENTS)
    except SelectolaxError as error:
        raise ParseError(f"no tree of {len(data)} bytes: {error}") from error


def _is_to_be_rewritten(document: LexborHTMLParser, rewritten: Sequence[str]) -> bool:
    found = document.css(", ".join((*rewritten, *REWRITTEN_IF_FILLED)))
    return any(node.tag in REWRITTEN or node.first_child is not None for node in found)


# Refuses pages whose tree would take too much time, before it is built.
#
# Lexbor looks through all open elements at many a tag, and through all attributes of an element at
# each further one: a page of a megabyte can take minutes. How deep a tree would be is measured by
# the kernel `markup`, in pages that are large enough to do harm. Properties:
# parser.html.max.depth, parser.html.max.attributes.

DEPTH: Final = 1024
ATTRIBUTES: Final = 1024

_SMALL: Final = 1 << 14
"""Bytes of a page that can't do harm, whatever they are."""
_LARGE: Final = 1 << 16
"""Bytes of a page that may do harm with few tags: by attributes."""
_FEW_TAGS: Final = 2000
_DEEPEST: Final = 100_000
"""The highest limit of depth: there is room for so many open elements."""
_LESS_THAN: Final = 0x3C
_WORD: Final = (1 << 64) - 1

_NAMES: Final = {
    Tag.VOID: (
        "area base basefont bgsound br col embed frame hr image img input keygen link meta param"
        " source track wbr"
    ),
    Tag.RAW: "iframe noembed noframes script style textarea title xmp",
    Tag.FORMATTING: "a b big code em font i nobr s small strike strong tt u",
    Tag.ALONE: "a nobr",
    Tag.CLOSES_P: (
        "address article aside blockquote center dd details dialog dir div dl dt fieldset"
        " figcaption figure footer form h1 h2 h3 h4 h5 h6 header hgroup hr li listing main menu nav"
        " ol p plaintext pre search section summary ul xmp"
    ),
    Tag.IS_P: "p",
    Tag.ITEM: "li",
    Tag.TERM: "dd dt",
    Tag.HEADING: "h1 h2 h3 h4 h5 h6",
    Tag.OPTION: "option optgroup",
    Tag.CELL: "caption td th",
    Tag.ROW_OF_TABLE: "tr",
    Tag.SECTION: "colgroup tbody tfoot thead",
    Tag.TABLE: "table template",
    Tag.BARRIER: "applet button caption marquee object select table td template th",
    Tag.MARKER: "applet caption marquee object td template th",
    Tag.PLAIN: "address div p",
    Tag.SPECIAL: (
        "address applet article aside blockquote button caption center colgroup dd details dir div"
        " dl dt fieldset figcaption figure footer form h1 h2 h3 h4 h5 h6 header hgroup li listing"
        " main marquee menu nav noscript object ol p pre search section select summary table tbody"
        " td template tfoot th thead tr ul"
    ),
    Tag.ONCE: "body head html",
    Tag.LAST: "plaintext",
    Tag.VALUE: "option",
    Tag.LEAVES: (
        "b big blockquote body br center code dd div dl dt em embed h1 h2 h3 h4 h5 h6 head hr i img"
        " li listing menu meta nobr ol p pre ruby s small span strike strong sub sup table tt u"
        " ul var"
    ),
    Tag.RUBY: "rb rp rt rtc",
    Tag.FORM: "form",
    Tag.SVG: "svg",
    Tag.MATH: "math",
    Tag.IN_SVG: "desc foreignobject title",
    Tag.IN_MATH: "mi mn mo ms mtext",
    Tag.FRAMES: "frameset",
}
_REASONS: Final = {
    kernels.TOO_DEEP: "elements nested deeper than parser.html.max.depth = {depth}",
    kernels.TOO_MANY_ATTRIBUTES: (
        "an element with more attributes than parser.html.max.attributes = {attributes}"
    ),
    kernels.TOO_MANY_COPIES: (
        f"more than {kernels.COPIES} formatting elements to be repeated in later blocks"
    ),
}


class Limits:
    """The limits of a configuration, and room to measure one page at a time."""

    def __init__(self, conf: Configuration) -> None:
        depth = conf.get_int("parser.html.max.depth")
        self._is_on = depth > 0
        self._depth = min(max(1, depth), _DEEPEST)
        self._attributes = max(1, conf.get_int("parser.html.max.attributes"))
        self._names = _table_of_names()
        self._stack = np.zeros((self._depth + 2, kernels.STACK_ROW), np.int64)
        self._formats = np.zeros((self._depth + 2, kernels.FORMAT_ROW), np.int64)
        self._lock = Lock()

    def check(self, data: bytes) -> None:
        """Raises ParseError for a page beyond the limits."""
        if len(data) <= _SMALL or not self._is_on:
            return
        page = np.frombuffer(data, np.uint8)
        if len(data) <= _LARGE and np.count_nonzero(page == _LESS_THAN) <= _FEW_TAGS:
            return
        end = self.measure(data)[0]
        if end != kernels.FINE:
            reason = _REASONS[end].format(depth=self._depth, attributes=self._attributes)
            raise ParseError(f"no tree of {len(data)} bytes: {reason}")

    def measure(self, data: bytes) -> tuple[int, int]:
        """Measures a page; returns the result and the greatest depth of the tree until then."""
        state = np.zeros(kernels.STATE_SIZE, np.int64)
        with self._lock:
            end = kernels.measure(
                np.frombuffer(data, np.uint8),
                *self._names,
                self._stack,
                self._formats,
                state,
                self._attributes,
            )
        return end, int(state[kernels.DEEPEST])


def _table_of_names() -> tuple[np.ndarray, np.ndarray]:
    """Returns the kernel's `hashes` and `name_flags`."""
    hashes, flags = np.zeros((2, SLOTS), np.int64)
    known: dict[str, int] = {}
    for flag, names in _NAMES.items():
        for name in names.split():
            known[name] = known.get(name, 0) | flag
    for name, value in known.items():
        code = _number(name)
        slot = (code * SPREAD >> 40) % SLOTS
        while hashes[slot]:
            slot = (slot + 1) % SLOTS
        hashes[slot], flags[slot] = code, value
    return hashes, flags


def _number(name: str) -> int:
    """What `name_at` makes of a name."""
    code, data = 0, name.encode()
    for at in range(0, len(data), 8):
        word = int.from_bytes(data[at : at + 8], "little")
        code = (code * WIDE_PRIME ^ code >> 32 ^ word) & _WORD
    return code - (_WORD + 1) * (code > _WORD >> 1)
