"""Kernels that find links where no element has them: in style sheets, and URLs in running text."""

from __future__ import annotations

import numpy as np

from minutch.kernels.native import I64, U8, Bool, I64Rows, Int, inlined, inner, int64, kernel
from minutch.kernels.scan import blank_size, lower, next_of, stands


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


@kernel
def find_css_links(data: U8, place: I64, rows: I64Rows) -> Int:
    """Find what url() and @import name in a style sheet in UTF-8, from `place[0]` on, outside of
    comments and other strings: how many, `rows.shape[0]` at most, with their bounds. `place[0]`
    gets where to go on.
    """
    at, size, count = int64(place[0]), int64(data.size), 0
    while at < size and count < rows.shape[0]:
        while at < size and not _MATTERS[data[at]]:
            at += 1
        if at == size:
            break
        byte = lower(data[at])
        # A comment.
        if byte == 47 and at + 1 < size and data[at + 1] == 42:
            at += 2
            while at < size and not (data[at] == 42 and at + 1 < size and data[at + 1] == 47):
                at += 1
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
        at = next_of(data, at, 58)
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
