"""Kernels that find links where no element has them: in style sheets, in strings of scripts, and
URLs in running text.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from minutch.kernels.html import is_blank_of_html
from minutch.kernels.memory import equal_of_16, load8, load64, trailing_zeros
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
    uint64,
)
from minutch.kernels.scan import blank_size, far_next_of, lower, next_of, next_quote, stands


@inner
def _end_of_string(data: U8, at: Int) -> Int:
    """Where what is in a string of CSS ends whose quote stands before `at`: at the quote, or where
    one is missing.
    """
    quote = data[at - 1]
    # A line break ends a bad string (CSS Syntax 3, 4.3.5).
    while at < data.size and data[at] != quote and data[at] != 10:
        if data[at] == 92:  # an escape
            if at + 1 >= data.size:
                return at
            at += 1
        at += 1
    return min(at, int64(data.size))


@inner
def _after_blanks(data: U8, at: Int) -> Int:
    while at < data.size:
        size = blank_size(data, at)
        if size == 0:
            break
        at += size
    return at


@inner
def _end_of_plain(data: U8, at: Int) -> Int:
    """Where a URL without quotes ends."""
    while at < data.size:
        byte = data[at]
        if byte == 92:
            if at + 1 >= data.size:
                break
            at += 2
            continue
        if byte == 40 or byte == 41 or byte == 34 or byte == 39:  # noqa: PLR1714 - for Numba
            break
        if blank_size(data, at) > 0:
            break
        at += 1
    return at


_MATTERS = np.zeros(256, np.bool_)
"""The bytes with which something of a style sheet begins that matters."""
_MATTERS[np.frombuffer(b"/\"'@uU", np.uint8)] = True
_IMPORT, _URL = np.frombuffer(b"@import", np.uint8), np.frombuffer(b"url(", np.uint8)


@inner
def _next_that_matters(data: U8, at: Int) -> Int:
    """Where the next of these bytes is, but for a `u` without an `r` behind it."""
    start, size = int64(data.ctypes.data), int64(data.size)
    while at + 17 <= size:
        place = start + at
        names = equal_of_16(place, 117) | equal_of_16(place, 85)
        if names != 0:
            names &= equal_of_16(place + 1, 114) | equal_of_16(place + 1, 82)
        found = equal_of_16(place, 47) | equal_of_16(place, 34) | equal_of_16(place, 39)
        found |= equal_of_16(place, 64) | names
        if found != 0:
            return at + trailing_zeros(found)
        at += 16
    while at < size and not _MATTERS[data[at]]:
        at += 1
    return at


@inner
def candidate_at(data: Int, at: Int, size: Int) -> tuple[Int, Int, Int]:
    """The bounds of the URL in the candidate of a srcset that begins there, and where the next one
    does; the first is -1 if it is not plain ASCII with a whole width or density behind a blank.
    """
    end = at
    while end < size and load8(data + end) != 44:
        end += 1
    after = end + 1
    while at < end and is_blank_of_html(load8(data + at)):
        at += 1
    while end > at and is_blank_of_html(load8(data + end - 1)):
        end -= 1
    gap = end - 1
    while gap > at and load8(data + gap) != 32:
        gap -= 1
    if gap <= at or end - gap < 3:
        return -1, at, after
    last = load8(data + end - 1)
    is_plain = last == 120 or (last == 119 and load8(data + gap + 1) != 48)  # x, w
    for i in range(gap + 1, end - 1):
        is_plain &= load8(data + i) >= 48 and load8(data + i) <= 57
    for i in range(at, gap):
        is_plain &= load8(data + i) > 32 and load8(data + i) < 127
    return at if is_plain else -1, gap, after


@kernel
def find_css_links(data: U8, place: I64, rows: I64Rows) -> Int:
    """Find what url() and @import name in a style sheet in UTF-8, from `place[0]` on, outside of
    comments and other strings: how many, `rows.shape[0]` at most, with their bounds. `place[0]`
    gets where to go on.
    """
    at, size, count = int64(place[0]), int64(data.size), 0
    while at < size and count < rows.shape[0]:
        at = _next_that_matters(data, at)
        if at == size:
            break
        byte = lower(data[at])
        # A comment.
        if byte == 47 and at + 1 < size and data[at + 1] == 42:
            at += 2
            at = next_of(data, at, 42)
            while at + 1 < size and data[at + 1] != 47:
                at = next_of(data, at + 1, 42)
            at = min(at + 2, size)
            continue
        if byte == 34 or byte == 39:  # noqa: PLR1714 - for Numba
            at = _end_of_string(data, at + 1)
            if at < size and data[at] == byte:
                at += 1
            continue
        # Where the link begins, if there is one.
        start = int64(0)
        if byte == 64 and stands(data, at, _IMPORT):
            start = _after_blanks(data, at + 7)
            # `@import url(…)` is left to the other branch.
            if start == at + 7 or start >= size or (data[start] != 34 and data[start] != 39):
                start = 0
        elif byte == 117 and stands(data, at, _URL):
            start = _after_blanks(data, at + 4)
        if start == 0 or start >= size:
            at += 1
            continue
        if data[start] == 34 or data[start] == 39:
            start += 1
            end = _end_of_string(data, start)
            after = end + 1 if end < size and data[end] == data[start - 1] else end
        else:
            end = after = _end_of_plain(data, start)
            if end == start:
                at += 1
                continue
        if end > start:  # url() alone is no link
            rows[count, 0], rows[count, 1] = start, end
            count += 1
        at = after
    place[0] = at
    return count


def _table(more: bytes) -> U8:
    """What letters and digits are, and some more."""
    kinds = np.zeros(256, np.uint8)
    for byte in range(128):
        if chr(byte).isalpha():
            kinds[byte] = _LETTER | _OF_SCHEMES | _OF_LINKS
        elif chr(byte).isdigit():
            kinds[byte] = _OF_SCHEMES | _OF_LINKS
    for byte in b"+.-":
        kinds[byte] |= _OF_SCHEMES
    for byte in more:
        kinds[byte] |= _OF_LINKS
    return kinds


_LETTER, _OF_SCHEMES, _OF_LINKS = 1, 2, 4
_KINDS = _table(b"$_.+!*,;/?:@&~=%#-")
# From OutlinkExtractor.URL_PATTERN: a letter and {1,120}, {1,333}, {0,1000}.
_LONGEST_SCHEME, _LONGEST_REST, _LONGEST_FRAGMENT = 121, 333, 1000


@inlined
def _is_hex(byte: Int) -> Bool:
    return (byte >= 48 and byte <= 57) or (lower(byte) >= 97 and lower(byte) <= 102)


@inner
def _end_of_url(data: U8, at: Int, end: Int) -> Int:
    """Where a URL ends whose colon stands at `at`; 0 if there is none."""
    at += 1
    if at >= end or not (data[at] == 47 or _KINDS[data[at]] & _OF_SCHEMES):
        return 0
    if data[at] == 43 or data[at] == 45 or data[at] == 46:
        return 0
    at += 1
    count = 0
    while at < end and count < _LONGEST_REST and data[at] != 35:
        if data[at] == 37:
            if at + 2 >= end or not _is_hex(data[at + 1]) or not _is_hex(data[at + 2]):
                break
            at += 2
        at += 1
        count += 1
    if count == 0:
        return 0
    if at + 1 < end and data[at] == 35 and _KINDS[data[at + 1]] & _OF_SCHEMES:
        if data[at + 1] == 43 or data[at + 1] == 45 or data[at + 1] == 46:
            return at
        at += 2
        count = 0
        while at < end and count < _LONGEST_FRAGMENT and data[at] != 35:
            at += 1
            count += 1
    return at


@inlined
def _is_web(data: U8, at: Int, end: Int) -> Bool:
    """Tell whether `http://` or `https://` stands there."""
    if end - at < 7 or not stands(data, at, _HTTP):  # `http://`
        return False
    at += 5 if lower(data[at + 4]) == 115 else 4
    return bool(at + 2 < end and data[at] == 58 and data[at + 1] == 47 and data[at + 2] == 47)


_HTTP = np.frombuffer(b"http", np.uint8)


@kernel
def find_urls(data: U8, place: I64, rows: I64Rows) -> Int:
    """Find the URLs of the web in running text, by `outlinks.text_outlinks`, from `place[0]` on:
    how many, `rows.shape[0]` less one run's at most, with their bounds; -1 if there is no room for
    those of a run. `place[0]` gets where to go on.
    """
    size, count = int64(data.size), 0
    at = int64(place[0])
    while True:
        at = far_next_of(data, at, 58)
        if at + 2 >= size:
            place[0] = size
            return count
        is_web = data[at + 1] == 47 and data[at + 2] == 47
        http = at - 5 if at >= 5 and lower(data[at - 1]) == 115 else at - 4
        if not is_web or http < 0 or not stands(data, http, _HTTP):
            at += 1
            continue
        # The run around it: Nutch's pattern takes any scheme and goes from left to right, so an
        # earlier match may swallow this URL.
        start, end = at, at
        while start > 0 and _KINDS[data[start - 1]] & _OF_LINKS:
            start -= 1
        while end < size and _KINDS[data[end]] & _OF_LINKS:
            end += 1
        # Each colon in the run may end a scheme.
        before, done, colon = count, start, next_of(data, start, 58)
        while colon < end:
            least = max(done, colon - _LONGEST_SCHEME)
            first = colon
            while first > least and _KINDS[data[first - 1]] & _OF_SCHEMES:
                first -= 1
            while first < colon and not _KINDS[data[first]] & _LETTER:
                first += 1
            last = _end_of_url(data, colon, end) if first < colon - 1 else int64(0)
            if last > 0:
                done = last
                if _is_web(data, first, last):
                    if count == rows.shape[0]:
                        place[0] = at
                        return before if before > 0 else -1
                    while data[last - 1] in (46, 44, 59, 58, 33, 63):  # the sentence's punctuation
                        last -= 1
                    rows[count, 0], rows[count, 1] = first, last
                    count += 1
            colon = next_of(data, max(done, colon + 1), 58)
        at = end + 1


MOST_BACKSLASHES: Final = 8
"""Before a quote that belong to it."""
START, END, TEXT, TEXT_END, KIND, STRING_ROW = range(6)
"""Columns of a string's row: the whole of it with its quotes, what is between them, and what it
is.
"""
ALONE, JOINED, ASK = range(3)


_IN_NAMES, _OF_TEMPLATES, _LATER = 1, 2, 4
_IN_SCRIPTS = np.zeros(256, np.uint8)
"""What a byte is in a script: one of a name, one of what scripts make URLs of; _LATER ends a
string, or is a part of a character.
"""
_IN_SCRIPTS[48:58] = _IN_SCRIPTS[65:91] = _IN_SCRIPTS[97:123] = _IN_SCRIPTS[[36, 95]] = _IN_NAMES
_IN_SCRIPTS[np.frombuffer(b"][{}|^`$\\*<>", np.uint8)] |= _OF_TEMPLATES
_IN_SCRIPTS[0x80:] = _IN_SCRIPTS[9:14] = _IN_SCRIPTS[28:33] = _LATER
_IN_SCRIPTS[[34, 39]] = _LATER
_CONCAT = uint64(int.from_bytes(b".concat(", "little"))
_WINDOW: Final = 64
"""Characters before a string in which a sign is looked for."""


@inlined
def _is_space(byte: Int) -> Bool:
    """An ASCII blank of Python's str."""
    return byte == 32 or (byte >= 9 and byte <= 13) or (byte >= 28 and byte <= 31)


@inlined
def _in_name(byte: Int) -> Bool:
    return bool(_IN_SCRIPTS[byte] & _IN_NAMES)


@inner
def _is_likely(data: U8, at: Int, end: Int) -> Int:
    """1 if a string is a URL or a path without anything of a template, 0 if not, -1 if it has
    characters beyond ASCII.
    """
    kinds = int64(0)
    for i in range(at, end):
        kinds |= int64(_IN_SCRIPTS[data[i]])
    if kinds & _LATER:
        return -1
    if kinds & _OF_TEMPLATES:
        return 0
    if end - at > 7 and stands(data, at, _HTTP):
        at += 5 if lower(data[at + 4]) == 115 else 4
        if data[at] != 58 or data[at + 1] != 47 or data[at + 2] != 47:
            return 0
        at += 3
    else:
        for _ in range(2):
            at += 1 if at < end and data[at] == 46 else 0
        if at == end or data[at] != 47:
            return 0
        at += 1
        at += 1 if at < end and data[at] == 47 and data[at - 2] != 46 else 0
    if at >= end:
        return 0
    first = data[at]
    return 1 if _in_name(first) or first == 126 or first == 37 or first == 45 else 0  # noqa: PLR1714 - for Numba


@inner
def _is_joined(data: U8, start: Int, end: Int) -> Int:
    """1 if a script adds something before or behind what stands there, 0 if not, -1 if a character
    beyond ASCII decides.
    """
    at, least = start, max(start - _WINDOW, 0)
    while at > least and _is_space(data[at - 1]):
        at -= 1
    if at > least:
        if data[at - 1] >= 0x80:
            return -1
        if data[at - 1] == 43 and (at - 1 == least or data[at - 2] != 43):
            return 1
    size = int64(data.size)
    while end < size and _is_space(data[end]):
        end += 1
    if end == size:
        return 0
    if data[end] >= 0x80:
        return -1
    if data[end] == 43:
        return 1 if end + 1 == size or data[end + 1] != 43 else 0
    return 1 if end + 8 <= size and load64(data.ctypes.data + end) == _CONCAT else 0


@kernel
def find_strings(data: U8, place: I64, rows: I64Rows) -> Int:
    """Find strings of a script in UTF-8, from `place[0]` on, that have no blanks and are URLs or
    paths which stand alone, or have `://` and are joined with others: how many, `rows.shape[0]` at
    most. `place[0]` gets where to go on. KIND is ASK where characters beyond ASCII decide.

    A string is `(\\\\{0,8}["'])([^\\s"']+?)\\1`, each after the one before it.
    """
    size, count = int64(data.size), 0
    at = found = int64(place[0])
    while count < rows.shape[0]:
        quote = next_quote(data, at)
        if quote >= size:
            found = size
            break
        end, blank, has_scheme = quote + 1, int64(0), False
        while end < size:
            byte = data[end]
            if _IN_SCRIPTS[byte] & _LATER:
                if byte == 34 or byte == 39:  # noqa: PLR1714 - for Numba
                    break
                blank = blank_size(data, end)
                if blank > 0:
                    break
            has_scheme |= byte == 47 and data[end - 1] == 47 and data[end - 2] == 58
            end += 1
        if end >= size:
            found = size
            break
        if blank > 0 or data[end] != data[quote]:
            at = end + blank
            continue
        # Backslashes before the opening quote, and as many before the closing one, are not text.
        before, behind = 0, 0
        while (
            before < MOST_BACKSLASHES and quote - before > found and data[quote - before - 1] == 92
        ):
            before += 1
        while behind < before and end - behind - 1 > quote + 1 and data[end - behind - 1] == 92:
            behind += 1
        if end - behind <= quote + 1:
            at = end
            continue
        likely = _is_likely(data, quote + 1, end - behind)
        if likely != 0 or has_scheme:
            joined = _is_joined(data, quote - behind, end + 1)
            kind = ALONE if joined == 0 else JOINED
            if likely < 0 or joined < 0:
                kind = ASK
            if kind == ASK or (likely == 1 if joined == 0 else has_scheme):
                row = rows[count]
                row[START], row[END] = quote - behind, end + 1
                row[TEXT], row[TEXT_END], row[KIND] = quote + 1, end - behind, kind
                count += 1
        at = found = end + 1
    place[0] = found
    return count


@inner
def _piece_ends(data: U8, end: Int) -> Bool:
    """Tell whether a string without blanks, or a name of three letters, may end there."""
    if data[end - 1] == 34 or data[end - 1] == 39:
        at = end - 2
        while at >= 0 and not _IN_SCRIPTS[data[at]] & _LATER and data[at] != 92:
            at -= 1
        return bool(at >= 0 and (data[at] == data[end - 1] or data[at] >= 0x80))
    at = end
    while at > 0 and _in_name(data[at - 1]):
        at -= 1
    if at > 0 and data[at - 1] >= 0x80:
        return True
    is_part = at > 0 and data[at - 1] in (46, 41, 93)  # of `a.b`, `f()b`, `a[0]b`
    return end - at >= 3 and not is_part and (data[at] < 48 or data[at] > 57)


@inner
def _piece_begins(data: U8, at: Int) -> Bool:
    """Tell whether a string, or a name of three letters, may begin there."""
    if data[at] == 34 or data[at] == 39:
        return True
    if not _in_name(data[at]) or (data[at] >= 48 and data[at] <= 57):
        return False
    end = at
    while end < data.size and _in_name(data[end]):
        end += 1
    if end == data.size or data[end] >= 0x80:
        return True
    return end - at >= 3 and data[end] not in (46, 40, 91)


@kernel
def find_pluses(data: U8, place: I64, rows: I64Rows) -> Int:
    """Find each `+` of a script in UTF-8, from `place[0]` on, that may join strings or names: how
    many, `rows.shape[0]` at most. `place[0]` gets where to go on.
    """
    size, count, at = int64(data.size), 0, int64(place[0])
    while count < rows.shape[0]:
        plus = far_next_of(data, at, 43)
        if plus >= size:
            at = size
            break
        at = after = plus + 1
        while after < size:
            blank = blank_size(data, after)
            if blank == 0:
                break
            after += blank
        before = plus
        while before > 0 and _is_space(data[before - 1]):
            before -= 1
        if after < size and before > 0 and _piece_begins(data, after) and _piece_ends(data, before):
            rows[count, 0] = plus
            count += 1
    place[0] = at
    return count
