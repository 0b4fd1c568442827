"""Tags: how they are read, what markup has by them, the flags of elements by their names."""

from __future__ import annotations

from enum import IntEnum

import numpy as np

from minutch.kernels.memory import (
    HIGH_BITS,
    equal_of_16,
    first_marked,
    load8,
    load64,
    trailing_zeros,
)
from minutch.kernels.native import U8, Bool, Int, Word, inlined, inner, int64, kernel, uint64
from minutch.kernels.scan import lower, marks_from, marks_of_byte, next_of, stands

SLOTS = 512
"""Of the table of names: the slot of a name's number, or the next free one."""
WIDE_PRIME, SPREAD = 0x100000001B3, 0x1E3779B97F4A7C15
_ENDS_NAME = np.array([byte in b">/ \t\n\f\r" for byte in range(256)])


class Tag(IntEnum):
    """A property that an element has by its name; a name's flags are a sum of these."""

    VOID = 1 << 0
    """It has no content: br, img and their like."""
    RAW = 1 << 1
    """It contains text alone: script, style, textarea and their like."""
    FORMATTING = 1 << 2
    """It is opened again in later blocks until it is closed: b, i, font and their like."""
    CLOSES_P = 1 << 3
    """It closes a p that is open."""
    IS_P = 1 << 4
    """It is a p."""
    ITEM = 1 << 5
    """It is an li."""
    TERM = 1 << 6
    """It is a dd or dt."""
    HEADING = 1 << 7
    """It is an h1 to h6."""
    OPTION = 1 << 8
    """It is an option or optgroup: closes an option."""
    CELL = 1 << 9
    """It is a td, th or caption."""
    ROW_OF_TABLE = 1 << 10
    """It is a tr."""
    SECTION = 1 << 11
    """It is a tbody, thead, tfoot or colgroup."""
    TABLE = 1 << 12
    """It is a table or template."""
    BARRIER = 1 << 13
    """It hides what is outside from the tags inside, which close nothing there."""
    SPECIAL = 1 << 14
    """It is one of the standard's special elements."""
    ONCE = 1 << 15
    """It is html, head or body: the attributes of all such tags add up on one element."""
    ALONE = 1 << 16
    """It is an a or nobr, never open within itself."""
    LAST = 1 << 17
    """It is plaintext, after which there are no tags."""
    VALUE = 1 << 18
    """It is an option, which an option or optgroup closes."""
    FRAMES = 1 << 19
    """It is a frameset, in which nothing is text alone."""
    MARKER = 1 << 20
    """It takes the formatting elements inside off the list when it ends."""
    PLAIN = 1 << 21
    """It is an address, div or p: the special elements through which an li closes another."""
    LEAVES = 1 << 22
    """It ends what is foreign."""
    RUBY = 1 << 23
    """It is an rb, rp, rt or rtc."""
    FORM = 1 << 24
    """It is a form."""
    SVG = 1 << 25
    """It is an svg, or inside of one."""
    MATH = 1 << 26
    """It is a math, or inside of one."""
    IN_SVG = 1 << 27
    """It holds HTML again inside of an svg."""
    IN_MATH = 1 << 28
    """It holds HTML again inside of a math."""


@inlined
def mixed(name: Int, word: Int) -> Int:
    """The number of a name with up to eight bytes more; at first these themselves."""
    return int64(name * WIDE_PRIME) ^ (name >> 32) ^ word


@inlined
def slot_of(name: Int) -> Int:
    """Where the search for a name begins: the product has to have something of all its letters."""
    return int64(name * SPREAD) >> 40 & (SLOTS - 1)


@inlined
def ends_name(byte: Int | Word) -> Bool:
    """Tell whether a tag's name ends before this byte."""
    return bool(_ENDS_NAME[byte])


@inlined
def is_in_tag(byte: Word) -> Bool:
    """Tell whether a byte is a blank between the parts of a tag."""
    return ends_name(byte) and byte not in (62, 47)


@inner
def name_at(data: U8, at: Int) -> tuple[Int, Int]:
    """The number of the name that begins there, whatever the case of its letters, and its end.

    Names of up to eight bytes are their own numbers; NUL, which trees have as U+FFFD, is 255.
    """
    start, size = int64(data.ctypes.data), int64(data.size)
    if at + 8 <= size:
        word = load64(start + at)
        ends = ~marks_from(word, 33) & ~word | marks_of_byte(word, 47) | marks_of_byte(word, 62)
        ends &= HIGH_BITS
        if ends != 0:
            count = first_marked(ends)
            if ends_name(load8(start + at + count)):
                word |= (marks_from(word, 65) & ~marks_from(word, 91)) >> uint64(2)
                return int64(word & (uint64(1) << uint64(8 * count)) - uint64(1)), at + count
    name = word_of_name = shift = int64(0)
    while at < size and not ends_name(load8(start + at)):
        byte = lower(int64(load8(start + at)))
        word_of_name |= (byte if byte != 0 else 255) << shift
        shift += 8
        at += 1
        if shift == 64:
            name, word_of_name, shift = mixed(name, word_of_name), int64(0), int64(0)
    return mixed(name, word_of_name) if shift > 0 else name, at


@inner
def end_of_attribute(data: U8, at: Int) -> Int:
    """Where the name of an attribute ends: before `=`, a slash, `>` or a blank."""
    start, size = int64(data.ctypes.data), int64(data.size)
    while at < size:
        if at + 8 <= size:
            word = load64(start + at)
            ends = ~marks_from(word, 33) & ~word | marks_of_byte(word, 47)
            ends = (ends | marks_from(word, 61) & ~marks_from(word, 63)) & HIGH_BITS
            if ends == 0:
                at += 8
                continue
            at += first_marked(ends)
        byte = load8(start + at)
        if byte == 61 or ends_name(byte):
            return at
        at += 1  # another control character
    return at


@inlined
def skip_attributes(data: U8, at: Int) -> tuple[Int, Int]:
    """Where a tag ends, after its `>`, and the number of attributes, -1 minus it after a slash."""
    size, start, count, slash = int64(data.size), int64(data.ctypes.data), int64(0), False
    while at < size:
        byte = load8(start + at)
        if byte == 62:
            return at + 1, -1 - count if slash else count
        at += 1
        if ends_name(byte):
            slash = byte == 47
            continue
        slash = False
        count += 1
        at = ahead = end_of_attribute(data, at)
        while ahead < size and is_in_tag(load8(start + ahead)):
            ahead += 1
        if ahead >= size or load8(start + ahead) != 61:
            continue
        at = ahead + 1
        while at < size and is_in_tag(load8(start + at)):
            at += 1
        if at < size and (load8(start + at) == 34 or load8(start + at) == 39):
            at = next_of(data, at + 1, int64(load8(start + at))) + 1
        else:
            while at < size and load8(start + at) != 62 and not is_in_tag(load8(start + at)):
                at += 1
    return size, count


REFRESH, CONDITION, FRAME, BASE = (1 << bit for bit in range(4))
"""What markup may have: a `meta` that is a refresh, `<!--[if`, a `frame`, a `base`."""
_META, _FRAME, _BASE = (np.frombuffer(name, np.uint8) for name in (b"meta", b"frame", b"base"))
_CONDITION = np.frombuffer(b"!--[if", np.uint8)
_REFRESH = np.frombuffer(b"refresh", np.uint8)


@inner
def _has(data: U8, at: Int, end: Int, word: U8) -> Bool:
    for start in range(at, end - word.size + 1):
        if lower(data[start]) == word[0] and stands(data, start, word):
            return True
    return False


@inner
def _mark_at(data: U8, name: Int) -> Int:
    """What markup has by the tag whose name begins there."""
    if stands(data, name, _META):
        return REFRESH if _has(data, name, next_of(data, name, 60), _REFRESH) else 0
    if stands(data, name, _CONDITION):
        return CONDITION
    if stands(data, name, _FRAME):
        return FRAME
    return BASE if stands(data, name, _BASE) else 0


@kernel
def marks_of(data: U8) -> Int:
    """Tell what markup may have, by its tags: each goes up to the next `<`."""
    found, at, start, size = 0, int64(0), int64(data.ctypes.data), int64(data.size)
    while at + 17 <= size:
        marked = equal_of_16(start + at, 60)
        if marked != 0:
            # Few tags are left: a processor guesses wrong at how many there are of 16 bytes.
            names = start + at + 1
            first = equal_of_16(names, 109) | equal_of_16(names, 77) | equal_of_16(names, 33)
            first |= equal_of_16(names, 98) | equal_of_16(names, 66)
            marked &= first | equal_of_16(names, 102) | equal_of_16(names, 70)
            while marked != 0:
                found |= _mark_at(data, at + trailing_zeros(marked) + 1)
                marked &= marked - uint64(1)
        at += 16
    while at + 1 < size:
        if data[at] == 60:
            found |= _mark_at(data, at + 1)
        at += 1
    return found
