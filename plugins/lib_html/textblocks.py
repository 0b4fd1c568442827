"""A page's tree as tables, and the tokens by which a page is called outside of it: what `maintext`
judges pages by.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache
from threading import Lock
from typing import Any, Final, NamedTuple, TypeVar
from urllib.parse import urlsplit
from zlib import crc32

import numpy as np
from selectolax.lexbor import LexborHTMLParser, LexborNode

from minutch.kernels import blocks as kernels
from minutch.kernels.html import NUMBERED_NAMES, SHORT_NAME, Attributes, ElementRows
from minutch.kernels.scan import find_names

_SILENT: Final = (
    "script style template svg math iframe object audio video canvas select textarea title"
    " meta link base param source track x-iframe embed noframes datalist map"
)
_INLINE: Final = (
    "a abbr acronym b bdi bdo big cite code data del dfn em font i ins kbd label mark nobr q"
    " rp rt ruby s samp small span strike strong sub sup time tt u var wbr picture"
)
_BOXES: Final = (
    "html body main article section div p span h1 h2 h3 h4 h5 h6 ul ol li dl dt dd table"
    " tbody thead tfoot tr td th caption blockquote pre figure figcaption nav aside header"
    " footer form fieldset legend button address details summary noscript center hr input"
    " hgroup dialog menu search x-template"
)
TAGS: Final = tuple(_BOXES.split())
"""The kinds of boxes; their numbers start with 1, as 0 is any other."""
TAG: Final = {name: number for number, name in enumerate(TAGS, 1)}
MOST_BLOCKS: Final = 1 << 14
"""Blocks of a page beyond which all of its text is kept. 1,178 pages of all kinds had 217
(median) to 2,641; a block takes 4 kB while it is judged.
"""
_ROOM, _MOST_KEPT, _MOST_ROOM = 1 << 17, 1 << 20, 1 << 23
"""Bytes of text that there is room for."""


T = TypeVar("T")


class Blocks(NamedTuple):
    """A page as the kernel `blocks` has it."""

    text: bytes
    boxes: np.ndarray
    blocks: np.ndarray
    tokens: np.ndarray
    words: np.ndarray


class Flattener:
    """Makes tables of trees; one page at a time."""

    def __init__(self, numbers: Mapping[str, int]) -> None:
        self._elements = _element_rows()
        slots = np.full(NUMBERED_NAMES, -1, np.int64)
        for slot, name in enumerate(kernels.ATTRIBUTES):
            if name in numbers:
                slots[numbers[name]] = slot
        values = np.zeros((len(kernels.ATTRIBUTES), 2), np.int64)
        self._attributes = Attributes(slots, *_names(kernels.ATTRIBUTES), values)
        self._lock = Lock()
        self._found = np.zeros(kernels.PLACES, np.int64)
        self._make_room(_ROOM)

    def _make_room(self, size: int) -> None:
        """Room for a page with `size` bytes of text."""
        blocks = min(size // 16, MOST_BLOCKS + 1)
        self._size = size
        self._room = kernels.BlockRoom(
            np.empty(size, np.uint8),
            np.empty((size // 16, kernels.BOX_ROW), np.int64),
            np.empty((blocks, kernels.BLOCK_ROW), np.int64),
            np.empty((size // 4, kernels.TOKEN_ROW), np.int64),
            np.empty((kernels.TEXT_WORDS * blocks, kernels.TOKEN_ROW), np.int64),
        )

    def read(self, document: LexborHTMLParser) -> Blocks | None:
        """Returns the tables of a page's tree; None if it has no text, or more than there is room
        for at most.
        """
        return self.use(document, lambda page: Blocks(page.text, *(one.copy() for one in page[1:])))

    def use(self, document: LexborHTMLParser, use: Callable[[Blocks], T]) -> T | None:
        """Returns what `use` makes of the same; the tables are there as long as it runs."""
        root = document.root
        if root is None:
            return None
        with self._lock:
            tables = self._elements, self._attributes
            while (
                end := kernels.flatten(root.mem_id, *tables, self._room, self._found)
            ) == kernels.FULL and self._size < _MOST_ROOM:
                self._make_room(2 * self._size)
            is_there = end == kernels.DONE and self._found[kernels.BLOCKS]
            found = use(self._page()) if is_there else None
            if self._size > _MOST_KEPT:
                self._make_room(_ROOM)
        return found

    def _page(self) -> Blocks:
        room, counts = self._room, self._found.tolist()
        return Blocks(
            room.text[: counts[kernels.TEXT_SIZE]].tobytes(),
            room.boxes[: counts[kernels.BOXES]],
            room.blocks[: counts[kernels.BLOCKS]],
            room.tokens[: counts[kernels.TOKEN_COUNT]],
            room.words[: counts[kernels.WORD_COUNT]],
        )


def places(page: Blocks) -> np.ndarray:
    """Says where each block stands: a hash of 18 bits of the shapes of the boxes around it, in
    which boxes of one shape in each other count once, as sections do.
    """
    found = np.empty(len(page.blocks), np.int64)
    kernels.find_places(page.boxes, page.blocks, np.empty(len(page.boxes), np.int64), found)
    return found


class Choice(NamedTuple):
    """A page as tables, and which of its blocks are kept."""

    page: Blocks
    mask: np.ndarray


def block_of_line(page: Blocks) -> np.ndarray:
    """Returns the block of each line of a page's text: one with a br element has several."""
    found = np.empty(page.text.count(b"\n"), np.int64)
    kernels.find_lines(np.frombuffer(page.text, np.uint8), page.blocks, found)
    return found


def choice_of(page: Blocks, kept: Iterable[int]) -> Choice:
    """Returns the blocks of a page that have one of the lines with the numbers `kept`."""
    blocks, mask = block_of_line(page), np.zeros(len(page.blocks), bool)
    mask[blocks[[number for number in kept if number < len(blocks)]]] = True
    return Choice(page, mask)


class KeptBlocks:
    """Says along a walk over a tree, from its start on, which texts are in blocks that are kept;
    all are where none have been chosen.
    """

    def __init__(self, kept: Choice | None) -> None:
        self._block = -1
        self._is_kept = kept is None
        self._mask: list[bool] = []
        self._firsts: dict[int, int] = {}
        self._boxes: dict[int, tuple[int, int]] = {}
        """Address → kept blocks, -1 if there are no blocks at all; end of the blocks."""
        if kept is not None:
            page, mask = kept
            self._mask = mask.tolist()
            first = page.blocks[:, kernels.FIRST].tolist()
            self._firsts = {address: number for number, address in enumerate(first)}
            start, end = page.boxes[:, kernels.BLOCKS_AT], page.boxes[:, kernels.BLOCKS_END]
            sums = np.concatenate([[0], np.cumsum(mask)])
            counts = np.where(start == end, -1, sums[end] - sums[start])
            pairs = zip(counts.tolist(), end.tolist(), strict=True)
            self._boxes = dict(zip(page.boxes[:, kernels.NODE].tolist(), pairs, strict=True))

    def reaches(self, text: LexborNode) -> bool:
        """Returns True if a text node is in a block that is kept."""
        if (number := self._firsts.get(text.mem_id)) is not None:
            self._block, self._is_kept = number, self._mask[number]
        return self._is_kept

    def skips(self, element: LexborNode) -> bool:
        """Returns True if an element has blocks, and none of them is kept."""
        count, end = self._boxes.get(element.mem_id, (-1, 0))
        if count == 0:
            self._block, self._is_kept = end - 1, False
        return count == 0

    def is_in(self, element: LexborNode) -> bool:
        """Returns True if something in an element is kept."""
        return not self._boxes or self._boxes.get(element.mem_id, (0, 0))[0] > 0

    def is_between(self) -> bool:
        """Returns True where the blocks before and after are kept, or there are none."""
        return all(self._mask[max(self._block, 0) : self._block + 2])


def _flags_of_names() -> dict[str, int]:
    flags: dict[str, int] = {}
    for flag, names in (
        (kernels.INLINE, _INLINE.split()),
        (kernels.SILENT, _SILENT.split()),
        (kernels.LINK, ("a",)),
        (kernels.BREAK, ("br",)),
        (kernels.IMAGE, ("img",)),
    ):
        for name in names:
            flags[name] = flags.get(name, 0) | flag
    return flags


FLAGS: Final = _flags_of_names()
"""Element → what is special about it."""


def _element_rows() -> ElementRows:
    document = LexborHTMLParser("")
    names = sorted({*FLAGS, *TAGS})
    numbers = {name: document.create_node(name).tag_id for name in names}
    unknown = [name for name in names if numbers[name] >= NUMBERED_NAMES]
    numbers |= {name: NUMBERED_NAMES + index for index, name in enumerate(unknown)}
    kinds, kinds_of_box = np.zeros((2, NUMBERED_NAMES + len(unknown)), np.int64)
    for name, number in numbers.items():
        kinds[number] = FLAGS.get(name, 0)
        kinds_of_box[number] = TAG.get(name, 0)
    return ElementRows(kinds, kinds_of_box, *_names(unknown))


def _names(names: Any) -> tuple[Any, Any]:
    data = [name.encode() for name in names]
    padded = b"".join(name.ljust(SHORT_NAME, b"\0") for name in data)
    return np.frombuffer(padded, np.uint8).reshape(-1, SHORT_NAME), np.array(
        [*map(len, data)], np.int64
    )


_TYPE: Final = re.compile(rb'"@type"\s*:\s*\[?\s*"(?:https?://schema\.org/)?(\w{1,40})"')
_CONTENT: Final = re.compile(rb"content=[\"']?([\w.:]{1,30})")
_MOST_TYPES: Final = 200
_HEAD: Final = 1 << 16
"""Bytes in which names of the head are looked for: a search through whole pages takes 0.3 ms."""
_PLAIN: Final = re.compile(
    r"https?://([a-z0-9.-]++)(?::\d*+)?(/[!-\"$->@-~]*+)?(?:\?([!-\"$-~]*+))?"
)
_WORD: Final = re.compile(rb"[a-z]{1,30}|\d{4,}")
_MOST_STEPS: Final = 8
_LONGEST: Final = 256
"""Characters of hosts and folders whose tokens are remembered."""


def _bytes(text: str) -> bytes:
    return text.encode("ascii", "replace")


def _parts(url: str) -> tuple[str, str, str]:
    """Returns host, path and query of a URL, as far as it has them."""
    if plain := _PLAIN.fullmatch(url):
        return plain[1], plain[2] or "", plain[3] or ""
    try:
        parts = urlsplit(url)
    except ValueError:  # Python's idea of a URL is narrower than that of Java and of browsers
        return "", "", ""
    path = parts.path
    if parts.scheme == "file":  # where a folder lies on a disk says nothing of its pages
        path = path.rpartition("/")[2]
    return parts.hostname or "", path, parts.query


@lru_cache(maxsize=4096)
def _tokens_of_host(host: str) -> tuple[int, ...]:
    return tuple([_token(b"h:" + label[:20]) for label in _bytes(host).split(b".")[:-1]])


@lru_cache(maxsize=4096)
def _tokens_of_step(place: int, step: str, is_last: bool) -> tuple[int, ...]:
    """The tokens of a part of a path, whose place counts up to _MOST_STEPS."""
    words = _WORD.findall(_bytes(step.lower()))
    names = [b"ul:%d" % min(len(words), 8)] if is_last else []
    if place == 0:
        names.append(b"u0:" + _bytes(step.lower())[:20])
    if place < _MOST_STEPS:
        names += [b"u:" + (b"#" if word.isdigit() else word) for word in words[:12]]
        names.append(b"u%d:%d" % (min(place, 3), min(len(words), 6)))
    return tuple(map(_token, names))


def _tokens_of_url(url: str) -> set[int]:
    host, path, query = _parts(url)
    steps = [step for step in path.split("/") if step]
    is_short = len(host) + len(path) < _LONGEST  # what is remembered of others may be anything
    of_host = _tokens_of_host if is_short else _tokens_of_host.__wrapped__
    of_step = _tokens_of_step if is_short else _tokens_of_step.__wrapped__
    last = len(steps) - 1
    found = {_token(b"ud:%d" % min(len(steps), 6))}.union(
        of_host(host),
        *[of_step(place, step, False) for place, step in enumerate(steps[:-1][:_MOST_STEPS])],
        of_step(min(last, _MOST_STEPS), steps[-1], True) if steps else (),
    )
    names = [_bytes(one.split("=")[0].lower())[:20] for one in query.split("&")[:6]]
    found.update([_token(b"q:" + name) for name in names])
    return found


@lru_cache(maxsize=1 << 14)
def _token(name: bytes) -> int:
    """A token's number among those of all pages; names have a few dozen bytes."""
    return crc32(name) & ((1 << kernels.BITS) - 1) | 1 << kernels.BITS


def page_tokens(url: str, markup: bytes) -> np.ndarray:
    """Tokens of the page as a whole, beyond those of its tree: what its URL, its structured data
    and its head call it.
    """
    found: set[bytes] = set()
    page, places = np.frombuffer(markup, np.uint8), np.empty(3, np.int64)
    find_names(page, 0, _HEAD, places)
    (at, *others), found_types = places.tolist(), 0
    while at >= 0 and found_types < _MOST_TYPES:
        end = markup.find(b"</script", at)
        types = _TYPE.findall(markup, at, end if end >= 0 else len(markup))
        found.update(b"j:" + name for name in types[:_MOST_TYPES])
        found_types += 1 + len(types)
        if end < 0:
            break
        find_names(page, end, 0, places)
        at = int(places[0])
    for letter, at in zip((b"o:", b"g:"), others, strict=True):
        value = None
        if at >= 0:
            value = _CONTENT.search(markup, at, at + 60) or _CONTENT.search(
                markup, max(0, at - 60), at
            )
        if value is not None:
            found.add(letter + value[1].lower())
    return np.array([*_tokens_of_url(url).union(map(_token, found))], np.int64)
