"""Refuses pages whose tree would take too much time, before it is built.

Lexbor looks through all open elements at many a tag, and through all attributes of an element at
each further one: a page of a megabyte can take minutes. How deep a tree would be is measured by the
kernel `markup`, in pages that are large enough to do harm. Properties: parser.html.max.depth,
parser.html.max.attributes.
"""

from __future__ import annotations

from threading import Lock
from typing import Final

import numpy as np

from minutch.conf import Configuration
from minutch.errors import ParseError
from minutch.kernels import markup as kernels
from minutch.kernels.tags import Tag

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
        state = np.zeros(kernels.SCRATCH + 1, np.int64)
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
    hashes, flags = np.zeros((2, kernels.SLOTS), np.int64)
    known: dict[str, int] = {}
    for flag, names in _NAMES.items():
        for name in names.split():
            known[name] = known.get(name, 0) | flag
    for name, value in known.items():
        code = _hash(name)
        slot = code % kernels.SLOTS
        while hashes[slot]:
            slot = (slot + 1) % kernels.SLOTS
        hashes[slot], flags[slot] = code, value
    return hashes, flags


def _hash(name: str) -> int:
    code = kernels.SEED
    for byte in name.encode():
        code = ((code ^ byte) * kernels.PRIME) & kernels.MASK
    return code
