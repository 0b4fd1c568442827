"""Kernels that find the values of a page that may have links, and its scripts: over Lexbor's tree,
as `html` walks it.
"""

from __future__ import annotations

from typing import NamedTuple

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
    begins,
    find_name,
    is_blank_of_html,
    may_have_url,
    says_nofollow,
    says_post,
)
from minutch.kernels.memory import copy_bytes, load8, load32, next_byte, scratch64
from minutch.kernels.native import I64, U8, Bool, I64Rows, Int, U8Rows, inner, int64, kernel, uint64
from minutch.kernels.textlinks import candidate_at

FULL, UNSURE = -1, -2
"""For want of room; at something that needs Python's Unicode."""
ALWAYS, IF_EMPTY, IGNORED, DRAWING, STYLE, ANCHOR, FORM, BASE, META, LINK = (
    1 << bit for bit in range(10)
)
"""Flags of elements: those that are looked at whatever they have, or if there is nothing in them;
whose attributes don't count; within which all are looked at; and what special ones are.
"""
IN_STYLE, ALONE, IN_SET = 1, 2, 4
"""Flags of attributes: a style; one that is read, but no reason to look at an element; srcset."""
REL, HREF, ACTION, METHOD, CONTENT, EQUIVALENT, SRC, DATA, TYPE_OF, TONGUE, SPECIAL = range(11)
"""The places of the first attributes."""
(
    OF_DATA,
    OF_STYLE,
    OF_ANCHOR,
    OF_FORM,
    OF_EMPTY_FORM,
    OF_POST,
    OF_BASE,
    OF_META,
    OF_LINK,
    OF_CANDIDATE,
    OTHERS,
) = range(11)
"""What a value is; from OTHERS on, that of the attribute of this place. OF_META: http-equiv, which
may be empty, and content; OF_LINK: relations, media type (the same) and target of a `link` element
but for style sheets, with NULs between, which no attribute has. OF_CANDIDATE: a URL of a srcset.
"""
_STYLES = np.frombuffer(b"stylesheet", np.uint8)
_DATA = np.frombuffer(b"data:", np.uint8)
_IMAGE, _TEXT = np.frombuffer(b"image/", np.uint8), np.frombuffer(b"text/", np.uint8)


class Names(NamedTuple):
    """The fields of names: places by Lexbor's number (-1 for others), the names in the order of
    their places, flags, and groups.

    An attribute holds links in the elements that have one of its groups, which are bits; the lowest
    is all elements'.
    """

    slots: I64
    spelled: U8Rows
    sizes: I64
    flags: I64
    groups: I64


@inner
def _place(name: Int, names: Names) -> Int:
    """The place of a name, by its number or the address of its entry; -1 if it is not asked for."""
    if name < len(names.slots):
        return int64(names.slots[name])
    return int64(find_name(name, names.spelled, names.sizes))


@inner
def _is_empty(child: Int) -> Bool:
    """Tell whether there are only blanks (of HTML) and comments from here on, as selectors do."""
    while child != 0:
        kind = load32(child + TYPE)
        if kind == ELEMENT:
            return False
        if kind == TEXT:
            data = at(child + TEXT_STRING + STRING_DATA)
            for i in range(at(child + TEXT_STRING + STRING_LENGTH)):
                if not is_blank_of_html(load8(data + i)):
                    return False
        child = at(child + NEXT)
    return True


@inner
def _may_hold_page(data: Int, size: Int) -> Bool:
    """Tell whether a data: URL may be one of HTML or SVG: a letter beyond ASCII may count as s."""
    data, size = data + _DATA.size, size - _DATA.size
    if size > 0 and load8(data) >= 128:
        return True
    for word, letter in ((_IMAGE, 115), (_TEXT, 104)):  # image/svg+xml, text/html
        if begins(data, size, word) and size > word.size:
            following = load8(data + word.size)
            return bool(following >= 128 or following | uint64(32) == letter)
    return False


@inner
def _has_link_of_style(data: Int, size: Int) -> Bool:
    """Tell whether a style may have url() or @import."""
    end = data + size
    return next_byte(data, end, 40) < end or next_byte(data, end, 64) < end


@inner
def _value_of(attribute: Int) -> tuple[Int, Int]:
    """The address and size of an attribute's value; 0 if it has none."""
    value = at(attribute + ATTRIBUTE_VALUE)
    data = at(value + STRING_DATA) if value != 0 else int64(0)
    return data, at(value + STRING_LENGTH) if data != 0 else int64(0)


@inner
def _name_of(attribute: Int) -> Int:
    name = at(attribute + ATTRIBUTE_QUALIFIED)
    return name if name != 0 else at(attribute + LOCAL_NAME)


@inner
def _put_any(kind: Int, data: Int, size: Int, out: U8, rows: I64Rows, state: I64) -> None:
    """Append a value; `state` has how many there are and their bytes, -1 for want of room."""
    count, used = state[0], state[1]
    if used < 0:
        return
    if count == rows.shape[0] or used + size > out.size:
        state[1] = -1
        return
    copy_bytes(out.ctypes.data + used, data, size)
    rows[count, 0], rows[count, 1], rows[count, 2] = kind, used, used + size
    state[0], state[1] = count + 1, used + size


@inner
def _put_value(kind: Int, data: Int, size: Int, out: U8, rows: I64Rows, state: I64) -> None:
    """Append a value, if there is one."""
    if size > 0:
        _put_any(kind, data, size, out, rows, state)


@inner
def _put_more(data: Int, size: Int, out: U8, rows: I64Rows, state: I64) -> None:
    """Append a NUL and more to the last value."""
    used = state[1]
    if used >= 0 and used + 1 + size <= out.size:
        out[used] = 0
        copy_bytes(out.ctypes.data + used + 1, data, size)
        state[1] = rows[state[0] - 1, 2] = used + 1 + size
    else:
        state[1] = -1


@inner
def _put_candidates(data: Int, size: Int, out: U8, rows: I64Rows, state: I64) -> Bool:
    """Append the URLs of a srcset, if all its candidates are plain."""
    count, used, next_at = state[0], state[1], int64(0)
    while next_at <= size:
        start, end, next_at = candidate_at(data, next_at, size)
        if start < 0:
            state[0], state[1] = count, used
            return False
        _put_any(OF_CANDIDATE, data + start, end - start, out, rows, state)
    return True


@inner
def _put_link(attribute: Int, attributes: Names, out: U8, rows: I64Rows, state: I64) -> None:
    """Append what a `link` element says of its target, which may be empty; no type where it names a
    language, too.
    """
    relation = kind = target = tongue = int64(0)
    while attribute != 0:
        place = _place(_name_of(attribute), attributes)
        if place == REL:
            relation = attribute
        elif place == TYPE_OF:
            kind = attribute
        elif place == HREF:
            target = attribute
        elif place == TONGUE:
            tongue = attribute
        attribute = at(attribute + ATTRIBUTE_NEXT)
    if relation == 0 or target == 0:
        return
    data, size = _value_of(relation)
    if size == _STYLES.size and begins(data, size, _STYLES):
        return
    media, media_size = _value_of(kind) if kind != 0 and tongue == 0 else (int64(0), int64(0))
    _put_any(OF_LINK, data, size, out, rows, state)
    _put_more(media, media_size, out, rows, state)
    data, size = _value_of(target)
    _put_more(data, size, out, rows, state)


@inner
def _put_special(
    flags: Int, is_bare: Bool, values: I64Rows, out: U8, rows: I64Rows, state: I64
) -> None:
    """Append what depends on more than one attribute."""
    if flags & ANCHOR and is_bare:
        _put_value(OF_ANCHOR, values[HREF, 0], values[HREF, 1], out, rows, state)
    elif flags & BASE:
        _put_value(OF_BASE, values[HREF, 0], values[HREF, 1], out, rows, state)
    elif flags & FORM:
        kind = OF_EMPTY_FORM if is_bare else OF_FORM
        if says_post(values[METHOD, 0], values[METHOD, 1]):
            kind = OF_POST
        _put_value(kind, values[ACTION, 0], values[ACTION, 1], out, rows, state)
    elif flags & META and values[CONTENT, 1] > 0:
        data, size = values[CONTENT, 0], values[CONTENT, 1]
        first = load8(data)
        # `.`, `/` or `h`: the start of a URL or path.
        counts = (first >= 46 and first <= 47) or first | uint64(32) == 104
        end = data + size
        if counts or values[EQUIVALENT, 1] > 0 or next_byte(data, end, 60) < end:
            _put_any(OF_META, values[EQUIVALENT, 0], values[EQUIVALENT, 1], out, rows, state)
            _put_more(data, size, out, rows, state)


@kernel
def find_links(
    root: Int,
    elements: Names,
    attributes: Names,
    values: I64Rows,
    out: U8,
    rows: I64Rows,
) -> Int:
    """Copy the values of `root` and what is below it that may have links which only browsers
    follow, and what `link` elements say, in the page's order: how many, FULL or UNSURE. A row is
    what a value is, and its bounds. `values` is room for those of one element, one for each
    SPECIAL attribute.
    """
    node, drawing, state = root, int64(0), scratch64(2)
    while True:
        child = at(node + FIRST_CHILD)
        attribute = int64(0)
        flags, group = int64(0), int64(1)
        is_found = False
        if load32(node + TYPE) == ELEMENT:
            place = _place(at(node + LOCAL_NAME), elements)
            if place >= 0:
                flags, group = elements.flags[place], elements.groups[place]
                if flags & DRAWING and drawing == 0:
                    drawing = node
                is_found = flags & ALWAYS != 0 or (flags & IF_EMPTY != 0 and _is_empty(child))
            is_found |= drawing != 0
            attribute = at(node + FIRST_ATTRIBUTE)
            if flags & LINK:
                _put_link(attribute, attributes, out, rows, state)
            # Otherwise an attribute may be the reason to look at it.
            look = int64(0) if is_found else attribute
            while look != 0:
                place = _place(_name_of(look), attributes)
                if place >= 0:
                    kind = attributes.flags[place]
                    if attributes.groups[place] & group and not kind & ALONE:
                        is_found = True
                        if kind & IN_STYLE:
                            data, size = _value_of(look)
                            is_found = _has_link_of_style(data, size)
                    if place in (SRC, DATA):
                        data, size = _value_of(look)
                        is_found |= begins(data, size, _DATA)
                    if is_found:
                        break
                look = at(look + ATTRIBUTE_NEXT)
        if is_found:
            if flags & STYLE and state[1] >= 0:
                size = _put_text(node, out, state[1])
                if size != state[1]:
                    if size >= 0 and state[0] < rows.shape[0]:
                        row = rows[state[0]]
                        row[0], row[1], row[2] = OF_STYLE, state[1], size
                        state[0] += 1
                    else:
                        size = -1
                    state[1] = size
            if flags & IGNORED:
                attribute = int64(0)
        if is_found and attribute != 0:
            # First what others depend on, then values in the order of the attributes.
            values[:, 1] = 0
            look = attribute
            while look != 0:
                place = _place(_name_of(look), attributes)
                if place >= 0 and place < SPECIAL:
                    values[place, 0], values[place, 1] = _value_of(look)
                look = at(look + ATTRIBUTE_NEXT)
            is_left_out = says_nofollow(values[REL, 0], values[REL, 1]) if values[REL, 1] > 7 else 0
            if is_left_out < 0:
                return UNSURE
            look = attribute if is_left_out == 0 else int64(0)
            while look != 0:
                data, size = _value_of(look)
                if size > 0:
                    place = _place(_name_of(look), attributes)
                    if place >= 0 and attributes.groups[place] & group:
                        kind = attributes.flags[place]
                        if kind & IN_SET and _put_candidates(data, size, out, rows, state):
                            pass
                        elif not kind & IN_STYLE or may_have_url(data, size):
                            _put_value(OTHERS + place, data, size, out, rows, state)
                    if begins(data, size, _DATA) and _may_hold_page(data, size):
                        _put_value(OF_DATA, data, size, out, rows, state)
                look = at(look + ATTRIBUTE_NEXT)
            if is_left_out == 0:  # what depends on several of them
                _put_special(flags, child == 0, values, out, rows, state)
        if state[1] < 0:
            return FULL
        if child != 0:
            node = child
            continue
        while True:
            if node == drawing:
                drawing = int64(0)
            if node == root or at(node + NEXT) != 0:
                break
            node = at(node + PARENT)
        if node == root:
            return int64(state[0])
        node = at(node + NEXT)


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
    last, end = _JAVASCRIPT.size - 1, data + size
    colon = next_byte(data + last, end, 58)
    while colon < end:
        if begins(colon - last, _JAVASCRIPT.size, _JAVASCRIPT):
            return True
        colon = next_byte(colon + 1, end, 58)
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
def _after(node: Int, root: Int) -> Int:
    """The node that comes after one and what is in it; 0 if that is not below `root`."""
    while node != root and at(node + NEXT) == 0:
        node = at(node + PARENT)
    return int64(0) if node == root else at(node + NEXT)


@inner
def _put_text(root: Int, out: U8, size: Int) -> Int:
    """Append all text below an element; the new size, FULL for want of room."""
    node = at(root + FIRST_CHILD)
    while node != 0:
        if load32(node + TYPE) == TEXT:
            size = _put(node + TEXT_STRING, out, size)
        child = at(node + FIRST_CHILD) if load32(node + TYPE) == ELEMENT else int64(0)
        node = child if child != 0 else _after(node, root)
    return size


@kernel
def find_scripts(root: Int, script: Int, href: Int, out: U8, ends: I64) -> Int:
    """Copy all pieces of JavaScript in `root` and below it: what is in elements whose number is
    `script`, in attributes of events, and in those with the number `href` that have `javascript:`;
    how many, FULL for want of room. `ends` has where each ends.
    """
    node, size, count = root, int64(0), 0
    while node != 0:
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
                name = _name_of(attribute)
                if name == href or _is_of_event(name):
                    data, length = _value_of(attribute)
                    if length > 0 and (name != href or _is_script(data, length)):
                        size = _put(at(attribute + ATTRIBUTE_VALUE), out, size)
                        if size < 0 or count == ends.size:
                            return FULL
                        ends[count] = size
                        count += 1
                attribute = at(attribute + ATTRIBUTE_NEXT)
        node = child if child != 0 else _after(node, root)
    return count


MOST_VALUES = 4
"""Of an element."""


@kernel
def find_values(root: Int, tag: Int, attributes: Names, out: U8, ends: I64) -> Int:
    """Copy the values of `attributes` (MOST_VALUES at most) of each element below `root` that has
    the number `tag` (0: any) and the first of them: how many values, FULL for want of room. `ends`
    has where each ends.
    """
    node, size, count, found = root, int64(0), 0, scratch64(MOST_VALUES)
    width = attributes.sizes.size
    while node != 0:
        child = int64(0)
        if load32(node + TYPE) == ELEMENT:
            child = at(node + FIRST_CHILD)
            found[:] = 0
            attribute = at(node + FIRST_ATTRIBUTE)
            if tag != 0 and at(node + LOCAL_NAME) != tag:
                attribute = int64(0)
            while attribute != 0:
                place = _place(_name_of(attribute), attributes)
                if place >= 0:
                    found[place] = attribute
                attribute = at(attribute + ATTRIBUTE_NEXT)
            if found[0] != 0:
                if count + width > ends.size:
                    return FULL
                for place in range(width):
                    value = at(found[place] + ATTRIBUTE_VALUE) if found[place] != 0 else int64(0)
                    size = _put(value, out, size) if value != 0 else size
                    ends[count + place] = size
                if size < 0:
                    return FULL
                count += width
        node = child if child != 0 else _after(node, root)
    return count


@kernel
def find_texts(root: Int, tag: Int, out: U8, ends: I64) -> Int:
    """Copy all text of each element below `root` that has the number `tag`: how many, FULL for want
    of room. `ends` has where each ends.
    """
    node, size, count = root, int64(0), 0
    while node != 0:
        child = int64(0)
        if load32(node + TYPE) == ELEMENT:
            child = at(node + FIRST_CHILD)
            if at(node + LOCAL_NAME) == tag:
                size = _put_text(node, out, size)
                if size < 0 or count == ends.size:
                    return FULL
                ends[count] = size
                count += 1
        node = child if child != 0 else _after(node, root)
    return count
