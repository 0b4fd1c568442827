"""A page's tree as tables: its boxes, the blocks of text in them, and the names by which the page
calls both. One walk over Lexbor's tree in memory, by the offsets of `html`.

    box     an element that starts a line of its own (columns: OUTER … BOX_ROW), in document order
    block   text between the start or end of a box and the next one (columns: BOX … BLOCK_ROW);
            FIRST is the address of the text node that it begins with
    token   a word of an attribute, of a link's target or of a short block, as a hash of 18 bits
            (columns: OWNER, TOKEN); the owner is a box, or a block by -1 - its number

Words of attributes are runs of ASCII letters, in lower case, also those that a capital begins
(`postBody` has two); digits and signs only separate, so `post-123` and `post-124` are the same.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from minutch.kernels.html import (
    ELEMENT,
    FIRST_CHILD,
    LOCAL_NAME,
    NEXT,
    PARENT,
    STRING_DATA,
    STRING_LENGTH,
    TEXT,
    TEXT_STRING,
    TYPE,
    Attributes,
    ElementRows,
    at,
    find_name,
    read_attributes,
)
from minutch.kernels.memory import HIGH_BITS, load8, load32, load64, store8, store64
from minutch.kernels.native import (
    I64,
    U8,
    I64Rows,
    Int,
    inlined,
    inner,
    int64,
    kernel,
    uint64,
)
from minutch.kernels.scan import (
    count_marked,
    is_blank,
    is_copied,
    marks_from,
    marks_of_byte,
    next_of,
)

ATTRIBUTES = (
    "class",
    "id",
    "role",
    "itemprop",
    "itemtype",
    "aria-label",
    "data-testid",
    "style",
    "hidden",
    "aria-hidden",
    "href",
    "rel",
)
"""The attributes whose words are tokens."""
CLASS, ID, HREF = 0, 1, 10
TAG_SEED, TEXT_SEED, HIDDEN = 30, 31, 8
"""Beside the numbers of the attributes; those of `id` count as words of `class`."""
TOKENS, LONGEST = 24, 400
"""The most tokens of an attribute, and the bytes of it that are looked at."""
TEXT_WORDS = 6
"""The words of a block that become tokens."""
BITS = 18
"""Of a token."""

INLINE, SILENT, LINK, BREAK, IMAGE = (1 << bit for bit in range(5))
"""Flags of elements."""
OUTER, TAG, DEPTH, NODE, BLOCKS_AT, BLOCKS_END, SHAPE, TOKENS_AT, BOX_ROW = range(9)
(
    BOX,
    TEXT_AT,
    TEXT_END,
    WORDS,
    LINK_WORDS,
    LINKS,
    CHARACTERS,
    STOPS,
    CAPITALS,
    FIRST,
    BLOCK_ROW,
) = range(11)
OWNER, TOKEN, TOKEN_ROW = range(3)
DONE, FULL = range(2)
BOXES, BLOCKS, TOKEN_COUNT, TEXT_SIZE, WORD_COUNT, PLACES = range(6)
"""Places in `found`."""

SEED, PRIME, MASK = 0x11C9DC5, 0x01000193, 0x7FFFFFFF
_BLANK, _LINE = 1, 2
_CAPITAL = 1 << 8
_OF_BLANKS = 1
_KINDS = np.full(256, 2, np.int64)
"""Whether a byte begins a character (2), is a stop (4), a capital (8), or a blank alone."""
_KINDS[0x80:0xC0] = 0
_KINDS[np.frombuffer(b".!?", np.uint8)] |= 4
_KINDS[65:91] |= 8
_KINDS[9:14] = _KINDS[32] = _OF_BLANKS
_LETTERS = np.zeros(256, np.int64)
"""An ASCII letter in lower case, of capitals with a bit above; 0 for any other byte."""
_LETTERS[97:123] = np.arange(97, 123)
_LETTERS[65:91] = np.arange(97, 123) | _CAPITAL


class BlockRoom(NamedTuple):
    """The fields of what is found; `text` has all blocks, a line end after each, `words` their
    first words as tokens.
    """

    text: U8
    boxes: I64Rows
    blocks: I64Rows
    tokens: I64Rows
    words: I64Rows


@inlined
def folded(code: Int) -> Int:
    """A hash of 31 bits as one of BITS."""
    return (code ^ code >> (31 - BITS)) & ((1 << BITS) - 1)  # FNV's xor-folding


@inlined
def mixed(code: Int, byte: Int) -> Int:
    """The hash of a word with one more byte."""
    return ((code ^ byte) * PRIME) & MASK


@inner
def put_tokens(
    data: Int, size: Int, seed: Int, owner: Int, most: Int, tokens: I64Rows, count: Int
) -> Int:
    """Append the tokens of a string; the new number of tokens."""
    first = count
    code, length, was_lower = mixed(SEED, seed), 0, False
    for i in range(min(size, LONGEST) + 1):
        letter = _LETTERS[int64(load8(data + i))] if i < size else 0
        # `postBody` is two words.
        if length > 0 and (letter == 0 or (letter >= _CAPITAL and was_lower)):
            if length > 1:
                if count - first >= most or count >= tokens.shape[0]:
                    return count
                tokens[count, OWNER], tokens[count, TOKEN] = owner, folded(code)
                count += 1
            code, length = mixed(SEED, seed), 0
        if letter != 0:
            code = mixed(code, letter & (_CAPITAL - 1))
            length += 1
        was_lower = letter != 0 and letter < _CAPITAL
    return count


@inner
def put_element(attributes: Attributes, owner: Int, tokens: I64Rows, count: Int) -> Int:
    """Append the tokens of an element whose attributes have been read."""
    values = attributes.values
    for slot in range(values.shape[0]):
        size = values[slot, 1]
        if size < 0:
            continue
        if slot == HIDDEN:  # a boolean attribute: its presence counts
            if count < tokens.shape[0]:
                tokens[count, OWNER], tokens[count, TOKEN] = owner, folded(mixed(SEED, HIDDEN))
                count += 1
        elif size > 0:
            seed = CLASS if slot == ID else slot
            count = put_tokens(values[slot, 0], size, seed, owner, TOKENS, tokens, count)
    return count


@inner
def put_text(
    data: Int, length: Int, is_link: Int, text: Int, size: Int, gap: Int, block: I64
) -> tuple[Int, Int]:
    """Append a text node to a block, where there is room for it and 2 more bytes; the new size and
    the gap before what follows.
    """
    i = words = characters = stops = capitals = blank = int64(0)
    before, separator = size, int64(10 if gap == _LINE else 32)
    is_started = int64(size > block[TEXT_AT])
    due = int64(gap != 0) | 1 - is_started
    while i < length:
        stop = min(i + 8, length)
        word = load64(data + i) if i + 8 <= length else uint64(0)  # which has controls
        blanks = marks_of_byte(word, 32)
        if is_copied(word, blanks, due) and marks_of_byte(word, 0xC2) == 0:
            store8(text + size, separator)
            size += due & is_started
            store64(text + size, word)
            words += count_marked(blanks << uint64(8) | uint64(due << 7))
            is_started, separator, due = int64(1), int64(32), int64(blanks >> uint64(63))
            size += 8 - due
            inner_bytes = word & ~(word << uint64(1)) & HIGH_BITS  # of characters beyond ASCII
            characters += 8 - count_marked(blanks | inner_bytes)
            ends = marks_of_byte(word, 46) | marks_of_byte(word, 33) | marks_of_byte(word, 63)
            stops += count_marked(ends)
            capitals += count_marked(marks_from(word, 65) & ~marks_from(word, 91))
            blank, i = due, stop
        while i < stop:  # without a branch: a processor guesses wrong at the end of most words
            byte = int64(load8(data + i))
            kind = _KINDS[byte]
            i += 1
            if byte == 0xC2 and i < length and load8(data + i) == 0xA0:  # a no-break space
                kind = int64(_OF_BLANKS)
                i += 1
            blank = kind & _OF_BLANKS
            begins = due & 1 - blank
            due = blank
            store8(text + size, separator)
            size += begins & is_started  # the separator is kept only before a word
            is_started |= begins
            separator += (32 - separator) * begins
            store8(text + size, byte)
            size += 1 - blank
            words += begins
            characters += kind >> 1 & 1
            stops += kind >> 2 & 1
            capitals += kind >> 3
    if size == before:
        return size, max(gap, _BLANK) if length > 0 else gap
    block[WORDS] += words
    block[LINK_WORDS] += words * is_link
    block[CHARACTERS] += characters
    block[STOPS] += stops
    block[CAPITALS] += capitals
    return size, blank * _BLANK


@inner
def has_text(data: Int, length: Int) -> Int:
    """1 if there is more than blanks."""
    i = int64(0)
    while i < length:
        byte = int64(load8(data + i))
        if byte == 0xC2 and i + 1 < length and load8(data + i + 1) == 0xA0:
            i += 2
        elif is_blank(byte):
            i += 1
        else:
            return 1
    return 0


@inner
def is_permalink(child: Int, attributes: Attributes) -> Int:
    """1 if all that a link to its own page has is one sign: # ¶ § 🔗 ⚓, one without width, or one
    of a font of icons. Generators of sites put such a link behind each heading and term.
    """
    href, size = attributes.values[HREF, 0], attributes.values[HREF, 1]
    if size < 1 or load8(href) != 0x23 or load32(child + TYPE) != TEXT or at(child + NEXT) != 0:
        return 0
    data = at(child + TEXT_STRING + STRING_DATA)
    length = at(child + TEXT_STRING + STRING_LENGTH)
    code = int64(0)
    for i in range(min(length, 5)):  # a byte more than the longest sign has
        code = code << 8 | int64(load8(data + i))
    is_icon = length == 3 and 0xEE8080 <= code <= 0xEFA3BF  # U+E000 to U+F8FF: the private use area
    return 1 if code in (0x23, 0xC2B6, 0xC2A7, 0xE2808B, 0xE29A93, 0xF09F9497) or is_icon else 0


@kernel
def flatten(
    root: Int, elements: ElementRows, attributes: Attributes, room: BlockRoom, found: I64
) -> Int:
    """Fill `room` with the boxes, blocks and tokens of the tree below `root`; FULL if it is too
    small.

    The `targets` of `elements` are numbers by which TAG says what kind of element a box is.
    """
    kinds, numbers, tags, tag_sizes = elements
    text, boxes, blocks, tokens, words = room
    known = kinds.size - tag_sizes.size
    box_count = block_count = count = size = kept = 0
    box, depth = -1, 0
    is_open = False
    gap = 0
    link = last_link = int64(0)
    is_behind_link = False
    node = root
    while True:
        kind = load32(node + TYPE)
        child = int64(0)
        if kind == TEXT:
            data = at(node + TEXT_STRING + STRING_DATA)
            length = at(node + TEXT_STRING + STRING_LENGTH)
            # A block begins with the first text that is not blank, and ends at the next box.
            if box >= 0 and (is_open or has_text(data, length) != 0):
                if size + length + 2 > text.size or block_count + 1 >= blocks.shape[0]:
                    return FULL
                row = blocks[block_count]
                if not is_open:
                    row[:] = 0
                    row[BOX], row[TEXT_AT], row[FIRST] = box, size, node
                    is_open, gap = True, 0
                before, end = row[WORDS], size
                is_link = 1 if link != 0 else 0
                size, gap = put_text(data, length, is_link, int64(text.ctypes.data), size, gap, row)
                if size > end:
                    is_behind_link = False
                if row[WORDS] > before and link != last_link and link != 0:  # noqa: PLR1714 - for Numba
                    row[LINKS] += 1
                    last_link = link
        elif kind == ELEMENT:
            tag = at(node + LOCAL_NAME)
            if tag >= known:  # an entry's address: the name is none of Lexbor's
                place = find_name(tag, tags, tag_sizes) if tag_sizes.size > 0 else -1
                tag = known + place if place >= 0 else known - 1
            flags = kinds[tag]
            if flags & BREAK:
                gap = _LINE
            elif flags & IMAGE:
                gap = max(gap, _BLANK)
            elif not flags & SILENT:
                child = at(node + FIRST_CHILD)
                if count + TOKENS * len(ATTRIBUTES) + 8 > tokens.shape[0]:
                    return FULL
                if flags & INLINE:
                    if child != 0:
                        read_attributes(node, attributes)
                        if flags & LINK and is_permalink(child, attributes) != 0:
                            child = int64(0)
                    if child != 0:
                        count = put_element(attributes, -1 - block_count, tokens, count)
                        if flags & LINK:
                            if is_behind_link:  # links side by side are no one word
                                gap = max(gap, _BLANK)
                            if link == 0:
                                link = node
                else:
                    # A box begins, and ends the block that is open.
                    if is_open:
                        is_open = False
                        blocks[block_count, TEXT_END] = size
                        text[size] = 10
                        size += 1
                        block_count += 1
                    else:
                        # No text followed the inline elements: their tokens belong to no block.
                        count = kept
                    if box_count + 1 >= boxes.shape[0]:
                        return FULL
                    row = boxes[box_count]
                    row[OUTER], row[TAG], row[DEPTH], row[NODE] = box, numbers[tag], depth, node
                    row[BLOCKS_AT], row[TOKENS_AT] = block_count, count
                    read_attributes(node, attributes)
                    # The element itself is the first of its tokens.
                    code = mixed(mixed(SEED, TAG_SEED), numbers[tag])
                    tokens[count, OWNER], tokens[count, TOKEN] = box_count, folded(code)
                    count += 1
                    first = count
                    count = put_element(attributes, box_count, tokens, count)
                    # The first word of the class and the element: what cards of one kind share.
                    row[SHAPE] = code
                    if count > first and attributes.values[CLASS, 1] > 0:
                        row[SHAPE] = mixed(code, tokens[first, TOKEN])
                    kept = count
                    if child == 0:  # the walk up never passes it
                        row[BLOCKS_END] = block_count
                    else:
                        box = box_count
                        depth += 1
                    box_count += 1
        if child != 0:
            node = child
            continue
        while True:  # the end of the node, and of those that end with it
            if box >= 0 and boxes[box, NODE] == node:
                if is_open:
                    is_open = False
                    blocks[block_count, TEXT_END] = size
                    text[size] = 10
                    size += 1
                    block_count += 1
                    kept = count
                else:
                    count = kept
                boxes[box, BLOCKS_END] = block_count
                box = boxes[box, OUTER]
                depth -= 1
                gap = 0
            if node == link:
                link = 0
                is_behind_link = True
            following = at(node + NEXT)
            if node == root or following != 0:
                break
            node = at(node + PARENT)
        if node == root:
            break
        node = following
    # Words are taken from whole blocks, as a block may be made of several text nodes.
    if words.shape[0] < TEXT_WORDS * block_count:
        return FULL
    word_count = int64(0)
    for i in range(block_count):
        start, length = blocks[i, TEXT_AT], blocks[i, TEXT_END] - blocks[i, TEXT_AT]
        word_count = put_tokens(
            int64(text.ctypes.data) + start, length, TEXT_SEED, i, TEXT_WORDS, words, word_count
        )
    found[BOXES], found[BLOCKS], found[TOKEN_COUNT], found[TEXT_SIZE], found[WORD_COUNT] = (
        box_count,
        block_count,
        count,
        size,
        word_count,
    )
    return DONE


@kernel
def find_places(boxes: I64Rows, blocks: I64Rows, paths: I64, found: I64) -> None:
    """Say where each block stands: a hash of the shapes of the boxes around it, in which boxes of
    one shape in each other count once. `paths` has room for one of each box.
    """
    for i in range(boxes.shape[0]):
        outer, mine = boxes[i, OUTER], boxes[i, SHAPE]
        if outer < 0:
            paths[i] = mine
        elif boxes[outer, SHAPE] == mine:
            paths[i] = paths[outer]
        else:
            paths[i] = mixed(paths[outer], mine)
    for i in range(blocks.shape[0]):
        found[i] = folded(paths[blocks[i, BOX]])


@kernel
def find_lines(text: U8, blocks: I64Rows, found: I64) -> None:
    """Say which block each line is in: one with a br element has several."""
    at = count = int64(0)
    for i in range(blocks.shape[0]):
        while at <= blocks[i, TEXT_END] and count < found.size:
            at = next_of(text, at, 10) + 1
            found[count] = i
            count += 1
