"""Kernels that tell which of some elements and attributes a page has, and find its scripts: over
Lexbor's tree, as `html` walks it.
"""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np

from minutch.kernels.html import (
    ATTRIBUTE_NEXT,
    ATTRIBUTE_QUALIFIED,
    ATTRIBUTE_VALUE,
    ELEMENT,
    ENTRY_LENGTH,
    FIRST_ATTRIBUTE,
    FIRST_CHILD,
    LOCAL_NAME,
    NEXT,
    NUMBERED_NAMES,
    PARENT,
    SHORT_NAME,
    STRING_DATA,
    STRING_LENGTH,
    TEXT,
    TEXT_STRING,
    TYPE,
    at,
    find_name,
    has_more_than_blanks,
)
from minutch.kernels.memory import copy_bytes, load8, load32
from minutch.kernels.native import I64, U8, Bool, Int, U8Rows, inner, int64, kernel, uint64

ALWAYS: Final = 1
IF_EMPTY: Final = 2
"""Elements that count, and those that do unless they surely have content."""


class Names(NamedTuple):
    """The fields of names, and whether they occur (`seen`).

    `slots` has a name's place by Lexbor's number (-1 for others), `spelled` and `sizes` the names
    in the order of their places, of which `kinds` says when they count.
    """

    slots: I64
    spelled: U8Rows
    sizes: I64
    kinds: I64
    seen: I64


@inner
def _place(name: Int, names: Names) -> Int:
    """The place of a name, by its number or the address of its entry; -1 if it is not asked for."""
    if name < len(names.slots):
        return int64(names.slots[name])
    return int64(find_name(name, names.spelled, names.sizes))


@inner
def _may_be_empty(child: Int) -> Bool:
    """Tell whether the first child of an element leaves open that there is nothing else in it."""
    if child == 0:
        return True
    kind = load32(child + TYPE)
    if kind != TEXT:
        return kind != ELEMENT
    text = child + TEXT_STRING
    return not has_more_than_blanks(at(text + STRING_DATA), at(text + STRING_LENGTH))


@kernel
def mark_names(root: Int, elements: Names, attributes: Names) -> None:
    """Set `seen` to 1 for each name that `root` or something below it has, of elements and of
    attributes.
    """
    node = root
    while True:
        child = at(node + FIRST_CHILD)
        if load32(node + TYPE) == ELEMENT:
            place = _place(at(node + LOCAL_NAME), elements)
            if place >= 0 and (elements.kinds[place] == ALWAYS or _may_be_empty(child)):
                elements.seen[place] = 1
            attribute = at(node + FIRST_ATTRIBUTE)
            while attribute != 0:
                name = at(attribute + ATTRIBUTE_QUALIFIED)
                place = _place(name if name != 0 else at(attribute + LOCAL_NAME), attributes)
                if place >= 0:
                    attributes.seen[place] = 1
                attribute = at(attribute + ATTRIBUTE_NEXT)
        if child != 0:
            node = child
            continue
        while node != root and at(node + NEXT) == 0:
            node = at(node + PARENT)
        if node == root:
            return
        node = at(node + NEXT)


FULL: Final = -1
_JAVASCRIPT = np.frombuffer(b"javascript:", np.uint8)


@inner
def _is_of_event(name: Int) -> Bool:
    """Tell whether an attribute's name begins with `on`, as none does that has a number."""
    if name < NUMBERED_NAMES:
        return False
    size = at(name + ENTRY_LENGTH)
    start = name if size <= SHORT_NAME else at(name)
    return size >= 2 and load8(start) == 0x6F and load8(start + 1) == 0x6E


@inner
def _is_script(data: Int, size: Int) -> Bool:
    """Tell whether `javascript:` stands there in any case."""
    for start in range(size - _JAVASCRIPT.size + 1):
        k = 0
        while k < _JAVASCRIPT.size:
            byte = load8(data + start + k)
            if byte >= 65 and byte <= 90:
                byte |= uint64(32)
            if byte != _JAVASCRIPT[k]:
                break
            k += 1
        if k == _JAVASCRIPT.size:
            return True
    return False


@inner
def _put(string: Int, out: U8, size: Int) -> Int:
    """Append one of Lexbor's strings; the new size, FULL for want of room."""
    length = at(string + STRING_LENGTH)
    if size < 0 or size + length > out.size:
        return FULL
    copy_bytes(out.ctypes.data + size, at(string + STRING_DATA), length)
    return size + length


@inner
def _put_text(root: Int, out: U8, size: Int) -> Int:
    """Append all text below an element; the new size, FULL for want of room."""
    node = at(root + FIRST_CHILD)
    while node != 0:
        if load32(node + TYPE) == TEXT:
            size = _put(node + TEXT_STRING, out, size)
        child = at(node + FIRST_CHILD) if load32(node + TYPE) == ELEMENT else int64(0)
        if child != 0:
            node = child
            continue
        while node != root and at(node + NEXT) == 0:
            node = at(node + PARENT)
        node = int64(0) if node == root else at(node + NEXT)
    return size


@kernel
def find_scripts(root: Int, script: Int, href: Int, out: U8, ends: I64) -> Int:
    """Copy all pieces of JavaScript in `root` and below it: what is in elements whose number is
    `script`, in attributes of events, and in those with the number `href` that have `javascript:`;
    how many, FULL for want of room. `ends` has where each ends.
    """
    node, size, count = root, int64(0), 0
    while True:
        child = at(node + FIRST_CHILD)
        if load32(node + TYPE) == ELEMENT:
            attribute = at(node + FIRST_ATTRIBUTE)
            if at(node + LOCAL_NAME) == script:
                attribute, before = int64(0), size
                size = _put_text(node, out, size)
                if size != before:
                    if size < 0 or count == ends.size:
                        return FULL
                    ends[count] = size
                    count += 1
            while attribute != 0:
                name = at(attribute + ATTRIBUTE_QUALIFIED)
                if name == 0:
                    name = at(attribute + LOCAL_NAME)
                value = at(attribute + ATTRIBUTE_VALUE)
                if value != 0 and at(value + STRING_DATA) != 0 and at(value + STRING_LENGTH) > 0:
                    is_one = _is_of_event(name)
                    if name == href:
                        is_one = _is_script(at(value + STRING_DATA), at(value + STRING_LENGTH))
                    if is_one:
                        size = _put(value, out, size)
                        if size < 0 or count == ends.size:
                            return FULL
                        ends[count] = size
                        count += 1
                attribute = at(attribute + ATTRIBUTE_NEXT)
        if child != 0:
            node = child
            continue
        while node != root and at(node + NEXT) == 0:
            node = at(node + PARENT)
        if node == root:
            return count
        node = at(node + NEXT)
