"""Kernel that tells which of some elements and attributes a page has: over Lexbor's tree, as `html`
walks it.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from minutch.kernels.html import (
    ATTRIBUTE_NEXT,
    ATTRIBUTE_QUALIFIED,
    ELEMENT,
    FIRST_ATTRIBUTE,
    FIRST_CHILD,
    LOCAL_NAME,
    NEXT,
    PARENT,
    STRING_DATA,
    STRING_LENGTH,
    TEXT,
    TEXT_STRING,
    TYPE,
    at,
    find_name,
    has_more_than_blanks,
)
from minutch.kernels.memory import load32
from minutch.kernels.native import I64, Bool, Int, U8Rows, inner, int64, kernel

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
