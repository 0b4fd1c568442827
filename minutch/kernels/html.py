"""The walk of `walk.py` as a kernel: over Lexbor's tree in memory, by the addresses of its nodes.

The offsets are those of Lexbor's structs (lxb_dom_node_t, lxb_dom_element_t,
lxb_dom_character_data_t, lxb_dom_attr_t, lexbor_str_t, lexbor_hash_entry_t) on 64-bit machines;
`tree_reader` makes sure of them before the kernel is called.

Text is folded as it is copied. Between two words there is nothing, a blank, or, after a break, a
line end; `gap` says which of them is due when the next word comes, so nothing stands before the
first word, and breaks never add up. The text inside a link is a piece of the page's text: from its
length when the element begins to that when it ends.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from minutch.kernels.memory import (
    copy_bytes,
    load8,
    load32,
    load64,
    put_vint,
)
from minutch.kernels.native import (
    I64,
    U8,
    Bool,
    I64Rows,
    Int,
    U8Rows,
    Word,
    inlined,
    inner,
    int64,
    kernel,
    uint64,
)
from minutch.kernels.scan import BREAK, fold_text

LOCAL_NAME, NEXT, PARENT, FIRST_CHILD, TYPE = 8, 40, 56, 64, 88
"""Of a node; a tag's or attribute's name is a small number, or the address of its entry if it is
none of Lexbor's.
"""
TEXT_STRING = 96
FIRST_ATTRIBUTE = 120
ATTRIBUTE_QUALIFIED, ATTRIBUTE_VALUE, ATTRIBUTE_NEXT = 104, 112, 128
STRING_DATA, STRING_LENGTH = 0, 8
ENTRY_LENGTH, SHORT_NAME = 24, 16
"""A name of up to 16 bytes stands in its entry."""
NUMBERED_NAMES = 256
"""More than Lexbor has numbers for, of elements and of attributes: what is not below this is an
entry's address.
"""
ELEMENT, TEXT = 1, 3

LINK, SEPARATOR, SILENT, NEEDS_CONTENT, BODY, META, BASE, TITLE, IMAGE, REWRITE, REWRITE_FILLED = (
    1 << bit for bit in range(11)
)
REWRITE_SHADOW = 1 << 11
"""Flags of elements that are special. The last three: a page is to be rewritten that has one, one
with content, or one that may have `shadowrootmode`.
"""

NAME, CONTENT, HTTP_EQUIV, HREF, SRC, ACTION, REL, METHOD, ALT = range(9)
"""The attributes that matter."""
ATTRIBUTES = ("name", "content", "http-equiv", "href", "src", "action", "rel", "method", "alt")
HEAD_SLOTS = 4
"""The first four are read of meta and base elements."""

DONE, FULL, REWRITTEN, UNSURE = range(4)
"""Ends of a walk: well; for want of room; at markup to be rewritten; at something that needs
Python's Unicode.
"""
TEXT_SIZE, RUN_SIZE, LINKS, HEADS, TITLE_START, TITLE_END, SIDE_SIZE = range(7)
"""Places in `found`."""
NODE, OUTER, TEXT_AT, SPARE_AT, TARGET, TARGET_END, ANCHOR, ANCHOR_END, ANCHOR_ASIDE, ROW = range(
    10
)
"""Columns of `rows`; ROW is their number."""
HEAD_ROW = 1 + 2 * HEAD_SLOTS
"""Columns of `heads`: whether it is a base element; start and end of each attribute in `side`, -1
if it has none.
"""

_NOFOLLOW = uint64(int.from_bytes(b"nofollow", "little"))
_SMALL = uint64(0x2020202020202020)
_URL = np.frombuffer(b"url", np.uint8)


@inlined
def at(address: Int) -> Int:
    """The word at an address."""
    return int64(load64(address))


@inner
def find_name(entry: Int, names: U8Rows, sizes: I64) -> Int:
    """Find which of the names stands in an entry of Lexbor's; -1 if none does."""
    size = at(entry + ENTRY_LENGTH)
    if size > SHORT_NAME:
        return -1
    for i in range(sizes.size):
        if sizes[i] == size:
            same = True
            for k in range(size):
                same &= names[i, k] == load8(entry + k)
            if same:
                return i
    return -1


class ElementRows(NamedTuple):
    """The fields of elements by their number: Lexbor's, the last of which stands for all that are
    unknown, then those of `names`.

    `kinds` are flags, `targets` the attributes that hold links.
    """

    kinds: I64
    targets: I64
    names: U8Rows
    name_sizes: I64


class Attributes(NamedTuple):
    """The fields of the attributes that matter: places by an attribute's number (-1 for others),
    names, and room for the values of one element.
    """

    slots: I64
    names: U8Rows
    name_sizes: I64
    values: I64Rows


class Room(NamedTuple):
    """The fields of what is found: the page's text; `side` for targets, anchors that are no text
    and attributes of the head; `spare` for alternative texts within a link, in the end the run of
    links; `rows` and `heads` as above.
    """

    text: U8
    side: U8
    spare: U8
    rows: I64Rows
    heads: I64Rows


@inner
def read_attributes(element: Int, attributes: Attributes) -> None:
    """The addresses and sizes of the values of the attributes that matter; size -1 for those that
    are missing.
    """
    slots, values = attributes.slots, attributes.values
    values[:, 1] = -1
    attribute = at(element + FIRST_ATTRIBUTE)
    while attribute != 0:
        name = at(attribute + ATTRIBUTE_QUALIFIED)
        if name == 0:  # 0: it is spelled as the local name
            name = at(attribute + LOCAL_NAME)
        if name < slots.size:
            slot = int64(slots[name])
        else:
            slot = find_name(name, attributes.names, attributes.name_sizes)
        if slot >= 0:
            value = at(attribute + ATTRIBUTE_VALUE)
            values[slot, 0] = at(value + STRING_DATA) if value != 0 else 0
            values[slot, 1] = at(value + STRING_LENGTH) if values[slot, 0] != 0 else 0
        attribute = at(attribute + ATTRIBUTE_NEXT)


@inner
def may_be_shadow(element: Int) -> Bool:
    """Tell whether an attribute without a number has a name as long as `shadowrootmode`."""
    attribute = at(element + FIRST_ATTRIBUTE)
    while attribute != 0 and (
        at(attribute + LOCAL_NAME) < NUMBERED_NAMES
        or at(at(attribute + LOCAL_NAME) + ENTRY_LENGTH) != 14
    ):
        attribute = at(attribute + ATTRIBUTE_NEXT)
    return attribute != 0


@inlined
def is_word(byte: Int) -> Bool:
    """Tell whether an ASCII character is one of a word, for `\\b`."""
    lower = byte | 32
    return (lower >= 97 and lower <= 122) or (byte >= 48 and byte <= 57) or byte == 95


@inner
def says_nofollow(data: Int, size: Int) -> Int:
    """1 if `nofollow` stands there as a word, 0 if not, -1 if a character beside it is not
    ASCII.
    """
    for start in range(size - 7):
        if load64(data + start) | _SMALL != _NOFOLLOW:
            continue
        before = int64(load8(data + start - 1)) if start > 0 else 32
        after = int64(load8(data + start + 8)) if start + 8 < size else 32
        if before >= 128 or after >= 128:
            return -1
        if not is_word(before) and not is_word(after):
            return 1
    return 0


@inner
def begins(data: Int, size: Int, word: U8) -> Bool:
    """Tell whether a string begins with a word, in any case."""
    if size < word.size:
        return False
    for k in range(word.size):
        byte = load8(data + k)
        if byte >= 65 and byte <= 90:
            byte |= uint64(32)
        if byte != word[k]:
            return False
    return True


@inner
def may_have_url(data: Int, size: Int) -> Bool:
    """Tell whether a style has `url` or @; the parser of styles reads all that are long."""
    if size > 512:
        return True
    for i in range(size):
        byte = load8(data + i)
        if byte == 64 or (byte | uint64(32) == 117 and begins(data + i, size - i, _URL)):
            return True
    return False


@inlined
def is_blank_of_html(byte: Word) -> Bool:
    """HTML's blanks: VT is none."""
    return byte == 32 or (byte >= 9 and byte <= 13 and byte != 11)


@inlined
def says_post(data: Int, size: Int) -> Bool:
    """Tell whether a form's method is post."""
    return size == 4 and (load32(data) | uint64(0x20202020)) == 0x74736F70  # post, in any case


@inlined
def leads_to_no_page(data: Int, size: Int) -> Bool:
    """Tell whether a link has one of the schemes, in lower case, that many links and no pages
    have.
    """
    if size < 5:
        return False
    word, last = load32(data), load8(data + 4)
    return bool(
        (word == 0x61746164 and last == 58)  # data:
        or word == 0x3A6C6574  # tel:
        or (size > 6 and word == 0x6C69616D and load32(data + 3) == 0x3A6F746C)  # mailto:
        or (size > 10 and load64(data) == 0x697263736176616A and load32(data + 7) == 0x3A747069)
    )  # javascript:


@inner
def trimmed(data: U8, start: Int, end: Int) -> tuple[Int, Int]:
    """The bounds without what java.lang.String.trim takes off."""
    while start < end and data[start] <= 32:
        start += 1
    while end > start and data[end - 1] <= 32:
        end -= 1
    return start, end


@inner
def has_more_than_blanks(data: Int, size: Int) -> Bool:
    """Tell whether java.lang.String.trim would leave anything."""
    i = 0
    while i < size and load8(data + i) <= 32:
        i += 1
    return i < size


@inner
def put_after_blank(room: U8, size: Int, data: Int, length: Int) -> Int:
    """Append a blank and some bytes to the `size` that are there; the new size, -1 for want of
    room.
    """
    if size + 1 + length > room.size:
        return -1
    room[size] = 32
    copy_bytes(room.ctypes.data + size + 1, data, length)
    return size + 1 + length


@inner
def is_left_out(values: I64Rows) -> Int:
    """1 if a link is not to be followed or posts a form, 0 if it counts, -1 if that takes Python's
    Unicode.
    """
    if values[METHOD, 1] > 0 and says_post(values[METHOD, 0], values[METHOD, 1]):
        return 1
    return says_nofollow(values[REL, 0], values[REL, 1]) if values[REL, 1] > 0 else 0


@inner
def put_head(head: I64, is_base: Bool, values: I64Rows, side: U8, size: Int) -> Int:
    """Keep the attributes of a meta or base element; the new size of `side`, -1 for want of
    room.
    """
    head[0] = is_base
    for slot in range(HEAD_SLOTS):
        head[1 + 2 * slot] = -1
        if values[slot, 1] >= 0:
            head[1 + 2 * slot] = size + 1
            size = put_after_blank(side, size, values[slot, 0], values[slot, 1])
            if size < 0:
                return -1
            head[2 + 2 * slot] = size
    return size


@inner
def end_link(
    row: I64, text: U8, text_size: Int, spare: U8, spare_size: Int, side: U8, size: Int
) -> Int:
    """Settle a link's anchor: the text since its start, else what is in `spare`; the new size of
    `side`, or -1.
    """
    row[ANCHOR], row[ANCHOR_END] = trimmed(text, row[TEXT_AT], text_size)
    row[ANCHOR_ASIDE] = row[ANCHOR] == row[ANCHOR_END]
    if row[ANCHOR_ASIDE]:
        start, end = trimmed(spare, row[SPARE_AT], spare_size)
        row[ANCHOR] = size + 1
        size = put_after_blank(side, size, spare.ctypes.data + start, end - start)
        row[ANCHOR_END] = size
    return size


@inner
def pack_links(rows: I64Rows, count: Int, text: U8, side: U8, run: U8) -> Int:
    """Write the links as serialized Outlinks (an `OutlinkRun`); the size of the run, -1 for want of
    room.
    """
    size = 0
    for i in range(count):
        row = rows[i]
        target, anchor = row[TARGET_END] - row[TARGET], row[ANCHOR_END] - row[ANCHOR]
        if size + target + anchor + 11 > run.size:  # two VInts of up to 5 bytes, a flag
            return -1
        size = put_vint(run, size, target)
        copy_bytes(run.ctypes.data + size, side.ctypes.data + row[TARGET], target)
        size = put_vint(run, size + target, anchor)
        source = side.ctypes.data if row[ANCHOR_ASIDE] else text.ctypes.data
        copy_bytes(run.ctypes.data + size, source + row[ANCHOR], anchor)
        size += anchor
        run[size] = 0  # no metadata
        size += 1
    return size


@kernel
def walk(
    root: Int,
    elements: ElementRows,
    attributes: Attributes,
    room: Room,
    found: I64,
    marked: Bool,
) -> Int:
    """Walk the tree below `root`; `found` as above.

    `marked`: a byte order mark stands before the page, which is a text of its own.
    """
    kinds, targets, tags, tag_sizes = elements
    text, side, spare, rows, heads = room
    values = attributes.values
    numbers = kinds.size - tag_sizes.size
    text_size = side_size = spare_size = count = head_count = 0
    gap = BREAK
    if marked:
        text[0], text[1], text[2] = 0xEF, 0xBB, 0xBF  # U+FEFF
        text_size, gap = 3, 0
    link = -1  # the innermost one that has not ended: its row
    silent = title = 0  # the element that has not ended
    title_start = title_end = -1
    in_head = True
    node = root
    while True:
        kind = load32(node + TYPE)
        child = int64(0)
        if kind == TEXT:
            data = at(node + TEXT_STRING + STRING_DATA)
            size = at(node + TEXT_STRING + STRING_LENGTH)
            if silent == 0:
                if text_size + size + 2 > text.size:
                    return FULL
                text_size, gap = fold_text(data, size, text.ctypes.data, text_size, gap)
            # Text that the page does not show may still be the anchor of a link without any other.
            if link >= 0 and (silent != 0 or not has_more_than_blanks(data, size)):
                spare_size = put_after_blank(spare, spare_size, data, size)
        elif kind == ELEMENT:
            child = at(node + FIRST_CHILD)
            tag = at(node + LOCAL_NAME)
            if tag >= numbers:  # an entry's address
                tag = numbers + find_name(tag, tags, tag_sizes)
            flags = kinds[tag]
            if flags != 0:
                if flags & REWRITE or (flags & REWRITE_FILLED and child != 0):
                    return REWRITTEN
                if flags & REWRITE_SHADOW and may_be_shadow(node):
                    return REWRITTEN
                if flags & SEPARATOR:
                    gap = BREAK
                if flags & (LINK | IMAGE | META | BASE):
                    read_attributes(node, attributes)
                # A link begins: its target is kept now, its anchor settled when it ends.
                if (
                    flags & LINK
                    and values[targets[tag], 1] >= 0
                    and (child != 0 or not flags & NEEDS_CONTENT)
                ):
                    left_out = is_left_out(values)
                    if left_out < 0:
                        return UNSURE  # beside `nofollow` is a character beyond ASCII
                    if left_out == 0:
                        if count >= rows.shape[0]:
                            return FULL
                        row = rows[count]
                        row[NODE], row[OUTER] = node, link
                        row[TEXT_AT], row[SPARE_AT] = text_size, spare_size
                        row[TARGET] = side_size + 1
                        side_size = put_after_blank(
                            side, side_size, values[targets[tag], 0], values[targets[tag], 1]
                        )
                        row[TARGET_END] = side_size
                        link = count
                        count += 1
                if (
                    flags & IMAGE
                    and link >= 0
                    and has_more_than_blanks(values[ALT, 0], values[ALT, 1])
                ):
                    spare_size = put_after_blank(spare, spare_size, values[ALT, 0], values[ALT, 1])
                if flags & SILENT:  # nothing within is text, until its end
                    if silent == 0 and child != 0:
                        silent = node
                elif in_head and flags != 0:
                    if flags & BODY:  # title, meta and base count only before it
                        in_head = False
                    elif flags & TITLE and title_start < 0:
                        title_start, title = text_size, node
                    elif flags & (META | BASE):
                        if head_count >= heads.shape[0]:
                            return FULL
                        side_size = put_head(
                            heads[head_count], flags & BASE != 0, values, side, side_size
                        )
                        head_count += 1
        if side_size < 0 or spare_size < 0:  # no room in `side` or `spare`
            return FULL
        if child != 0:
            node = child
            continue
        while True:  # the end of the node, and of those that end with it
            if link >= 0 and rows[link, NODE] == node:
                side_size = end_link(
                    rows[link], text, text_size, spare, spare_size, side, side_size
                )
                if side_size < 0:
                    return FULL
                link = rows[link, OUTER]
                if link < 0:  # no open link can need it
                    spare_size = 0
            if node == silent:
                silent = 0
            if node == title:
                title, title_end = 0, text_size
            following = at(node + NEXT)
            if node == root or following != 0:
                break
            node = at(node + PARENT)
        if node == root:
            break
        # The last node that ended, whose sibling comes next.
        if load32(node + TYPE) == ELEMENT:
            tag = at(node + LOCAL_NAME)
            if tag >= numbers:
                tag = numbers + find_name(tag, tags, tag_sizes)
            if kinds[tag] & SEPARATOR:
                gap = BREAK  # blocks separate text at both ends
        node = following
    if gap == BREAK and text_size > 0:
        text[text_size] = 10
        text_size += 1
    found[TEXT_SIZE], found[SIDE_SIZE] = text_size, side_size
    found[LINKS], found[HEADS] = count, head_count
    found[TITLE_START], found[TITLE_END] = trimmed(text, max(0, title_start), max(0, title_end))
    # All anchors are settled, and `spare` is free for the run.
    found[RUN_SIZE] = pack_links(rows, count, text, side, spare)
    return FULL if found[RUN_SIZE] < 0 else DONE
