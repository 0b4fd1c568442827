"""What the kernel `blocks` makes of a page, by a walk in Python: the same tables, but for addresses
of nodes.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from selectolax.lexbor import LexborHTMLParser, LexborNode

from minutch.kernels import blocks as kernels
from plugins.lib_html import textblocks
from plugins.lib_html.textblocks import Blocks

_BLANKS = b" \t\n\x0b\f\r"


def plain_blocks(document: LexborHTMLParser) -> Blocks | None:
    """Returns the tables of a page; None if it has no text."""
    flat = _Flat()
    assert document.root is not None
    for node, is_start in _steps(document.root):
        (flat.start if is_start else flat.end)(node)
    if not flat.blocks:
        return None
    words = []
    for number, block in enumerate(flat.blocks):
        text = bytes(flat.text[block[kernels.TEXT_AT] : block[kernels.TEXT_END]])
        words += [(number, token) for token in _tokens(text, kernels.TEXT_SEED, kernels.TEXT_WORDS)]
    return Blocks(
        bytes(flat.text),
        np.array(flat.boxes, np.int64),
        np.array(flat.blocks, np.int64),
        np.array(flat.tokens, np.int64).reshape(-1, kernels.TOKEN_ROW),
        np.array(words, np.int64).reshape(-1, kernels.TOKEN_ROW),
    )


def _steps(root: LexborNode) -> Iterator[tuple[LexborNode, bool]]:
    """Each node where it starts and where it ends; what is in a silent element is left out."""
    open_nodes = [(root, True)]
    while open_nodes:
        node, is_start = open_nodes.pop()
        yield node, is_start
        if not is_start:
            continue
        open_nodes.append((node, False))
        children = []
        is_silent = _flags(node) & (kernels.SILENT | kernels.BREAK | kernels.IMAGE)
        if not is_silent and not is_permalink(node):
            child = node.first_child
            while child is not None:
                children.append((child, True))
                child = child.next
        open_nodes += reversed(children)


def _flags(node: LexborNode) -> int:
    return textblocks.FLAGS.get(node.tag or "", 0)


def is_permalink(node: LexborNode) -> bool:
    href, child = node.attributes.get("href") or "", node.first_child
    if node.tag != "a" or href[:1] != "#" or child is None or not child.is_text_node:
        return False
    text = child.text_content or ""
    is_icon = len(text) == 1 and "\ue000" <= text <= "\uf8ff"
    return child.next is None and (is_icon or text in [*"#¶§\u200b⚓🔗"])


class _Flat:
    def __init__(self) -> None:
        self.text = bytearray()
        self.boxes: list[list[int]] = []
        self.blocks: list[list[int]] = []
        self.tokens: list[tuple[int, int]] = []
        self.kept = 0
        self.open: list[tuple[int, int]] = []
        """Boxes: number and address."""
        self.is_open = False
        self.gap = b""
        self.link = self.last_link = 0
        self.is_behind_link = False

    def _close(self) -> bool:
        """Ends the block that is open; forgets inline tokens where there is none."""
        if not self.is_open:
            del self.tokens[self.kept :]
            return False
        self.blocks[-1][kernels.TEXT_END] = len(self.text)
        self.text += b"\n"
        self.is_open = False
        return True

    def _blank(self, gap: bytes) -> None:
        self.gap = b"\n" if b"\n" in (self.gap, gap) else gap

    def start(self, node: LexborNode) -> None:
        if node.is_text_node:
            self._add((node.text_content or "").encode(), node)
        elif node.is_element_node:
            self._element(node)

    def _add(self, data: bytes, node: LexborNode) -> None:
        data = data.replace("\xa0".encode(), b" ")
        if not self.open or not (self.is_open or data.strip(_BLANKS)):
            return
        if not self.is_open:
            self.is_open, self.gap = True, b""
            self.blocks.append([0] * kernels.BLOCK_ROW)
            self.blocks[-1][kernels.BOX] = self.open[-1][0]
            self.blocks[-1][kernels.TEXT_AT] = len(self.text)
            self.blocks[-1][kernels.FIRST] = node.mem_id
        block = self.blocks[-1]
        parts = data.split()
        if not parts or data[:1] in _split(_BLANKS):
            self._blank(b" ")
        before = block[kernels.WORDS]
        for i, part in enumerate(parts):
            self._count(block, part)
            is_first = len(self.text) == block[kernels.TEXT_AT]
            if i or self.gap or is_first:
                if not is_first:
                    self.text += self.gap if i == 0 else b" "
                block[kernels.WORDS] += 1
                block[kernels.LINK_WORDS] += self.link != 0
            self.gap = b""
            self.text += part
            self.is_behind_link = False
        if parts and data[-1:] in _split(_BLANKS):
            self.gap = b" "
        if block[kernels.WORDS] > before and self.link and self.link != self.last_link:
            block[kernels.LINKS] += 1
            self.last_link = self.link

    @staticmethod
    def _count(block: list[int], part: bytes) -> None:
        block[kernels.CHARACTERS] += len(part.decode())
        for column, those in (
            (kernels.STOPS, b".!?"),
            (kernels.CAPITALS, bytes(range(65, 91))),
        ):
            block[column] += sum(byte in those for byte in part)

    def _element(self, node: LexborNode) -> None:
        flags = _flags(node)
        if flags & kernels.BREAK:
            self.gap = b"\n"
        elif flags & kernels.IMAGE:
            self._blank(b" ")
        elif flags & kernels.SILENT:
            return
        elif flags & kernels.INLINE:
            if node.first_child is not None and not is_permalink(node):
                self._name(node, -1 - len(self.blocks) + self.is_open)
                if flags & kernels.LINK:
                    if self.is_behind_link:
                        self._blank(b" ")
                    self.link = self.link or node.mem_id
        else:
            self._box(node)

    def _box(self, node: LexborNode) -> None:
        self._close()
        kind = textblocks.TAG.get(node.tag or "", 0)
        code = _mixed(_mixed(kernels.SEED, kernels.TAG_SEED), kind)
        number = len(self.boxes)
        self.tokens.append((number, _folded(code)))
        first = len(self.tokens)
        self._name(node, number)
        shape = code
        if len(self.tokens) > first and node.attributes.get("class"):
            shape = _mixed(code, self.tokens[first][1])
        row = [0] * kernels.BOX_ROW
        row[kernels.OUTER] = self.open[-1][0] if self.open else -1
        row[kernels.TAG], row[kernels.DEPTH], row[kernels.SHAPE] = kind, len(self.open), shape
        row[kernels.BLOCKS_AT] = row[kernels.BLOCKS_END] = len(self.blocks)
        row[kernels.TOKENS_AT] = first - 1
        self.boxes.append(row)
        self.kept = len(self.tokens)
        if node.first_child is not None:
            self.open.append((number, node.mem_id))

    def end(self, node: LexborNode) -> None:
        if self.open and self.open[-1][1] == node.mem_id:
            if self._close():
                self.kept = len(self.tokens)
            self.boxes[self.open.pop()[0]][kernels.BLOCKS_END] = len(self.blocks)
            self.gap = b""
        if node.mem_id == self.link:
            self.link = 0
            self.is_behind_link = True

    def _name(self, node: LexborNode, owner: int) -> None:
        """Appends the tokens of an element."""
        attributes = node.attributes
        for slot, name in enumerate(kernels.ATTRIBUTES):
            if name not in attributes:
                continue
            if slot == kernels.HIDDEN:
                self.tokens.append((owner, _folded(_mixed(kernels.SEED, slot))))
                continue
            seed = kernels.CLASS if slot == kernels.ID else slot
            value = (attributes[name] or "").encode()
            self.tokens += [(owner, one) for one in _tokens(value, seed, kernels.TOKENS)]


def _split(data: bytes) -> list[bytes]:
    return [bytes([byte]) for byte in data]


def _tokens(data: bytes, seed: int, most: int) -> Iterator[int]:
    found, word, was_lower = 0, b"", False
    for byte in data[: kernels.LONGEST] + b" ":
        is_capital = 65 <= byte <= 90
        is_letter = is_capital or 97 <= byte <= 122
        if word and (not is_letter or (is_capital and was_lower)):
            if len(word) > 1:
                if found == most:
                    return
                code = _mixed(kernels.SEED, seed)
                for letter in word.lower():
                    code = _mixed(code, letter)
                yield _folded(code)
                found += 1
            word = b""
        if is_letter:
            word += bytes([byte])
        was_lower = is_letter and not is_capital


def _mixed(code: int, byte: int) -> int:
    return ((code ^ byte) * kernels.PRIME) & kernels.MASK


def _folded(code: int) -> int:
    return (code ^ code >> (31 - kernels.BITS)) & ((1 << kernels.BITS) - 1)


def plain_places(page: Blocks) -> np.ndarray:
    """Says where each block stands, all boxes of a depth at a time."""
    shapes, outer = page.boxes[:, kernels.SHAPE], page.boxes[:, kernels.OUTER]
    depths = page.boxes[:, kernels.DEPTH]
    paths, order = shapes.copy(), np.argsort(depths, kind="stable")
    for level in np.split(order, np.flatnonzero(np.diff(depths[order])) + 1)[1:]:
        around, mine = outer[level], shapes[level]
        path = (paths[around] ^ mine) * kernels.PRIME & kernels.MASK
        paths[level] = np.where(mine == shapes[around], paths[around], path)
    whole = paths[page.blocks[:, kernels.BOX]]
    found: np.ndarray = (whole ^ whole >> 31 - kernels.BITS) & (1 << kernels.BITS) - 1
    return found


def plain_lines(page: Blocks) -> np.ndarray:
    """Says which block each line is in."""
    ends = np.flatnonzero(np.frombuffer(page.text, np.uint8) == 10)
    return np.searchsorted(page.blocks[:, kernels.TEXT_END], ends)
