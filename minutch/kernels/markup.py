"""A kernel that foresees how deep the tree of a page would be, in one pass over its bytes, before
anything is built.

It follows the HTML standard's tree construction as far as that decides what is open: which tags
close others, formatting elements that come back in every block until they are closed, tables,
foreign elements. Where the standard is finer, it rather takes too much for open than too little.

    stack     the elements that are open                         columns: NAME … STACK_ROW
    formats   the standard's list of active formatting elements  columns: FORMAT … FORMAT_ROW
"""

from __future__ import annotations

from minutch.kernels.memory import load64
from minutch.kernels.native import (
    I64,
    U8,
    Bool,
    I64Rows,
    Int,
    inlined,
    inner,
    int64,
    kernel,
)
from minutch.kernels.scan import (
    far_next_of,
    lower,
    next_of,
    skip_comment,
)
from minutch.kernels.tags import (
    SLOTS,
    WIDE_PRIME,
    Tag,
    ends_name,
    name_at,
    skip_attributes,
    slot_of,
)

FOREIGN = Tag.SVG | Tag.MATH
"""Set for all elements in svg and math."""
POINT = Tag.IN_SVG | Tag.IN_MATH
CLOSERS = (
    Tag.ITEM
    | Tag.TERM
    | Tag.OPTION
    | Tag.CELL
    | Tag.ROW_OF_TABLE
    | Tag.SECTION
    | Tag.CLOSES_P
    | Tag.HEADING
)
"""Those whose start tags close others."""
IN_TABLES = Tag.CELL | Tag.ROW_OF_TABLE | Tag.SECTION

NAME, FLAGS, P_AT, ITEM_AT, TERM_AT, FORMAT_AT, ALIVE, LIST_SIZE, STACK_ROW = range(9)
FORMAT, WHOLE, ON_STACK, FORMAT_ROW = range(4)
SIZE, LIVE, LISTED, PENDING, TABLES, MARK, DEEPEST, STATE_SIZE = range(8)
"""Places in `state`: elements on the stack, those of them alive, entries of `formats`, those not on
the stack, open tables, where the list's last marker is, the most that was open at a time."""

FINE, TOO_DEEP, TOO_MANY_ATTRIBUTES, TOO_MANY_COPIES = range(4)
"""Ends of a measurement."""
COPIES = 1 << 20
"""Formatting elements that blocks may get in all."""


@inlined
def flags_of(name: Int, hashes: I64, flags: I64) -> Int:
    """Look up the flags of a name."""
    slot = slot_of(name)
    while hashes[slot] != 0:
        if hashes[slot] == name:
            return int64(flags[slot])
        slot = (slot + 1) & (SLOTS - 1)
    return 0


@inner
def pop_to(size: Int, stack: I64Rows, formats: I64Rows, state: I64) -> None:
    """Close what is open beyond the first `size` elements, and forget those before it that are
    closed already.
    """
    while state[SIZE] > size or (state[SIZE] > 0 and stack[state[SIZE] - 1, ALIVE] == 0):
        state[SIZE] -= 1
        row = stack[state[SIZE]]
        flags = row[FLAGS]
        if row[ALIVE] != 0:
            state[LIVE] -= 1
            place = row[FORMAT_AT]
            if place >= 0:
                # Closed by something else, it stays on the list: the next text reopens it.
                formats[place, ON_STACK] = -1
                state[PENDING] += 1
        if flags & Tag.TABLE:
            state[TABLES] -= 1
        if row[LIST_SIZE] >= 0:  # a marker was set: forget the formatting elements since
            for i in range(row[LIST_SIZE], state[LISTED]):
                if formats[i, ON_STACK] < 0:
                    state[PENDING] -= 1
                elif formats[i, ON_STACK] < state[SIZE]:
                    stack[formats[i, ON_STACK], FORMAT_AT] = -1
            state[LISTED] = row[LIST_SIZE]
            state[MARK] = 0
            for i in range(state[SIZE] - 1, -1, -1):
                if stack[i, LIST_SIZE] >= 0:
                    state[MARK] = stack[i, LIST_SIZE]
                    break


@inlined
def push(name: Int, flags: Int, stack: I64Rows, state: I64) -> None:
    """Open an element."""
    size = state[SIZE]
    row = stack[size]
    row[NAME], row[FLAGS], row[FORMAT_AT], row[ALIVE], row[LIST_SIZE] = name, flags, -1, 1, -1
    for column in range(P_AT, TERM_AT + 1):
        row[column] = stack[size - 1, column] if size > 0 else -1
    if flags & Tag.BARRIER:
        row[P_AT] = -1
    if flags & (Tag.SPECIAL | Tag.RUBY) and not flags & Tag.PLAIN:
        row[ITEM_AT] = row[TERM_AT] = -1
    if flags & Tag.IS_P:
        row[P_AT] = size
    if flags & Tag.ITEM:
        row[ITEM_AT] = size
    if flags & Tag.TERM:
        row[TERM_AT] = size
    if flags & Tag.MARKER:
        row[LIST_SIZE] = state[MARK] = state[LISTED]
    state[TABLES] += flags & Tag.TABLE != 0
    state[SIZE] += 1
    state[LIVE] += 1


@inner
def drop_format(place: Int, stack: I64Rows, formats: I64Rows, state: I64) -> None:
    """Take an entry out of the list of formatting elements."""
    if formats[place, ON_STACK] < 0:
        state[PENDING] -= 1
    else:
        stack[formats[place, ON_STACK], FORMAT_AT] = -1
    for i in range(place, state[LISTED] - 1):
        for column in range(FORMAT_ROW):
            formats[i, column] = formats[i + 1, column]
        if formats[i, ON_STACK] >= 0:
            stack[formats[i, ON_STACK], FORMAT_AT] = i
    state[LISTED] -= 1


@inner
def close_format(name: Int, stack: I64Rows, formats: I64Rows, state: I64) -> Bool:
    """Close a formatting element; False if none of that name is in the list."""
    for place in range(state[LISTED] - 1, state[MARK] - 1, -1):
        if formats[place, FORMAT] != name:
            continue
        at = formats[place, ON_STACK]
        drop_format(place, stack, formats, state)
        # The standard's adoption agency, as far as depth is concerned: with a special element
        # inside, the formatting element is gone, and what is inside stays open.
        if at >= 0:
            blocked = False
            for i in range(at + 1, state[SIZE]):
                blocked |= stack[i, FLAGS] & (Tag.SPECIAL | Tag.BARRIER) != 0
            if not blocked:
                pop_to(at, stack, formats, state)
            elif stack[at, ALIVE] != 0:
                stack[at, ALIVE] = 0
                state[LIVE] -= 1
        return True
    return False


@inner
def open_format(name: Int, whole: Int, stack: I64Rows, formats: I64Rows, state: I64) -> None:
    """Put the element that was just opened on the list, where no more than three alike may be."""
    alike, first = 0, -1
    for place in range(state[LISTED] - 1, state[MARK] - 1, -1):
        if formats[place, WHOLE] == whole:
            alike += 1
            first = place
    if alike >= 3:  # the Noah's Ark clause, 13.2.4.3
        drop_format(first, stack, formats, state)
    place = state[LISTED]
    formats[place, FORMAT], formats[place, WHOLE], formats[place, ON_STACK] = (
        name,
        whole,
        state[SIZE] - 1,
    )
    stack[state[SIZE] - 1, FORMAT_AT] = place
    state[LISTED] += 1


@inner
def reopen_formats(stack: I64Rows, formats: I64Rows, state: I64) -> Int:
    """Open again what is on the list and not on the stack; how many that are."""
    count = int64(state[PENDING])
    for place in range(state[LISTED] if count > 0 else 0):
        if formats[place, ON_STACK] < 0 and state[SIZE] < stack.shape[0] - 1:
            push(formats[place, FORMAT], Tag.FORMATTING, stack, state)
            stack[state[SIZE] - 1, FORMAT_AT] = place
            formats[place, ON_STACK] = state[SIZE] - 1
            state[PENDING] -= 1
    return count


@inner
def leave_foreign(stack: I64Rows, formats: I64Rows, state: I64) -> None:
    """Close what is foreign, up to where there is HTML."""
    end = state[SIZE]
    while end > 0 and stack[end - 1, FLAGS] & FOREIGN and not stack[end - 1, FLAGS] & POINT:
        end -= 1
    pop_to(end, stack, formats, state)


@inner
def open_foreign(name: Int, flags: Int, stack: I64Rows, state: I64) -> None:
    """Open an element in svg or math, of which the innermost open element is a part."""
    space = stack[state[SIZE] - 1, FLAGS] & FOREIGN
    point = flags & (Tag.IN_SVG if space == Tag.SVG else Tag.IN_MATH)
    push(name, space | point | (Tag.SPECIAL | Tag.BARRIER if point != 0 else 0), stack, state)


@inner
def close_others(flags: Int, stack: I64Rows, formats: I64Rows, state: I64) -> None:
    """Close what a start tag closes."""
    size = state[SIZE]
    if size == 0:
        return
    top = stack[size - 1]
    end = size
    if flags & Tag.ITEM and top[ITEM_AT] >= 0:
        end = top[ITEM_AT]
    elif flags & Tag.TERM and top[TERM_AT] >= 0:
        end = top[TERM_AT]
    elif flags & Tag.OPTION and top[FLAGS] & Tag.VALUE:
        end = size - 1
    elif flags & IN_TABLES:
        # Within the table a section closes sections, rows and cells; a row, rows and cells; a
        # cell, cells.
        wanted = (
            IN_TABLES
            if flags & Tag.SECTION
            else Tag.CELL | Tag.ROW_OF_TABLE
            if flags & Tag.ROW_OF_TABLE
            else Tag.CELL
        )
        for i in range(size - 1, -1, -1):
            if stack[i, FLAGS] & Tag.TABLE:
                break
            if stack[i, FLAGS] & wanted:
                end = i
    pop_to(end, stack, formats, state)
    size = state[SIZE]
    if flags & Tag.CLOSES_P and size > 0 and stack[size - 1, P_AT] >= 0:
        pop_to(stack[size - 1, P_AT], stack, formats, state)
        size = state[SIZE]
    if flags & Tag.HEADING and size > 0 and stack[size - 1, FLAGS] & Tag.HEADING:
        pop_to(size - 1, stack, formats, state)


@inner
def close(name: Int, flags: Int, stack: I64Rows, formats: I64Rows, state: I64) -> None:
    """Close an element by its end tag, if it is open as far as the tag can see."""
    if flags & Tag.FORMATTING and close_format(name, stack, formats, state):
        return
    # How far an end tag looks: to the table, the end of its scope, or any special element.
    stop = (
        Tag.TABLE
        if flags & (IN_TABLES | Tag.TABLE)
        else Tag.BARRIER
        if flags & Tag.SPECIAL
        else Tag.BARRIER | Tag.SPECIAL
    )
    for i in range(state[SIZE] - 1, -1, -1):
        if stack[i, NAME] == name and stack[i, ALIVE] != 0:
            if flags & Tag.FORM and i < state[SIZE] - 1:  # what is inside stays open
                stack[i, ALIVE] = 0
                state[LIVE] -= 1
            else:
                pop_to(i, stack, formats, state)
            return
        if stack[i, FLAGS] & stop:
            return


@inner
def skip_raw(data: U8, at: Int, start: Int, end: Int) -> Int:
    """Find the end tag of an element with text; its name stands from `start` to `end`."""
    while True:
        at = far_next_of(data, at, 60)
        if at + 2 + end - start > data.size:
            return data.size
        if data[at + 1] == 47:
            same = True
            for k in range(end - start):
                if lower(data[at + 2 + k]) != lower(data[start + k]):
                    same = False
                    break
            after = at + 2 + end - start
            if same and (after == data.size or ends_name(data[after])):
                return at
        at += 1


@kernel
def measure(
    data: U8,
    hashes: I64,
    name_flags: I64,
    stack: I64Rows,
    formats: I64Rows,
    state: I64,
    most_attributes: Int,
) -> Int:
    """Measure the tree that a page would have; `state` (zeros at first) is as it was when the
    measurement ended.

    hashes, name_flags   what is known of names: SLOTS of each
    stack, formats       room for one more than may be open
    """
    size, most_depth = data.size, min(stack.shape[0], formats.shape[0]) - 2
    at = copies = attributes_of_all = 0
    has_cdata = False
    frames = framesets = 0
    while True:
        text = at
        at = next_of(data, at, 60)
        if at > text and state[PENDING] > 0:  # text reopens them
            copies += reopen_formats(stack, formats, state)
        if at + 2 >= size:
            return FINE
        at += 1
        first = data[at]
        closes = first == 47
        if closes:
            at += 1
            first = data[at]
        letter = lower(first)
        if letter < 97 or letter > 122:
            # Comments, CDATA sections, and bogus comments, which end at the next `>`.
            if closes or first in (63, 33):
                if (
                    first == 33
                    and data[at + 1] == 45
                    and at + 2 < size
                    and data[at + 2] == 45
                    and not closes
                ):
                    # CDATA exists in foreign elements alone. Once it was seen, what is a comment is
                    # uncertain, so tags within comments count.
                    at = at + 3 if has_cdata else skip_comment(data, at + 1)
                elif first == 33 and data[at + 1] == 91:
                    has_cdata = True
                    at += 2
                else:
                    while at < size and data[at] != 62:
                        at += 1
            continue
        start = at
        name, end = name_at(data, at)
        at = end
        flags = flags_of(name, hashes, name_flags)
        at, count = skip_attributes(data, at)
        empty = count < 0
        if empty:  # svg and math honour `/>`, HTML does not
            count = -1 - count
        if closes:
            close(name, flags, stack, formats, state)
            if flags & Tag.FRAMES and frames > 0:
                frames -= 1
            continue
        if flags & Tag.ONCE:
            attributes_of_all += count
            count = attributes_of_all
        if count > most_attributes:
            return TOO_MANY_ATTRIBUTES
        if flags & Tag.FRAMES:  # is ignored, or all that is taken from here on
            frames += 1
            framesets += 1
            state[DEEPEST] = max(state[DEEPEST], frames)
        if flags & Tag.LEAVES:
            leave_foreign(stack, formats, state)
        top = stack[state[SIZE] - 1, FLAGS] if state[SIZE] > 0 else 0
        if top & FOREIGN and not top & POINT:
            if not empty:
                open_foreign(name, flags, stack, state)
        elif flags & Tag.LAST:
            return FINE
        elif not flags & (Tag.ONCE | Tag.FRAMES) and (state[TABLES] > 0 or not flags & IN_TABLES):
            if flags & CLOSERS:
                close_others(flags, stack, formats, state)
            if flags & Tag.ALONE:
                close_format(name, stack, formats, state)
            # 13.2.6.4.7: phrasing content reopens what is on the list, blocks do not.
            if state[PENDING] > 0 and not flags & (Tag.CLOSES_P | IN_TABLES | Tag.TABLE | Tag.RAW):
                copies += reopen_formats(stack, formats, state)
            if flags & Tag.RAW:
                at = at if framesets > 0 else skip_raw(data, at, start, end)
            elif not flags & Tag.VOID and not (flags & FOREIGN and empty):
                push(name, flags, stack, state)
                if flags & Tag.FORMATTING:
                    # Alike: equal names and attributes. Here, equal bytes, eight at a time.
                    whole = name
                    while end + 8 <= at:
                        word = int64(load64(data.ctypes.data + end))
                        whole = int64((whole ^ word) * WIDE_PRIME)
                        whole ^= whole >> 32
                        end += 8
                    for i in range(end, at):
                        whole = int64((whole ^ data[i]) * WIDE_PRIME)
                    open_format(name, whole, stack, formats, state)
        # Pending ones count, as the next text reopens them.
        state[DEEPEST] = max(state[DEEPEST], state[LIVE] + state[PENDING])
        if state[DEEPEST] > most_depth or state[SIZE] > most_depth:
            return TOO_DEEP
        if copies > COPIES:
            return TOO_MANY_COPIES
