"""Kernels that go through the bytes of a page and stop at what matters there: bytes that are no
UTF-8, tags that may have to be renamed or that matter, words without numbers.
"""

from __future__ import annotations

import numpy as np

from minutch.kernels.hash import string_hash
from minutch.kernels.memory import (
    HIGH_BITS,
    equal_of_16,
    far_next_byte,
    least_of_16,
    load8,
    load64,
    next_byte,
    store8,
    store64,
    trailing_zeros,
)
from minutch.kernels.native import (
    I64,
    U8,
    Bool,
    Int,
    U8Rows,
    Word,
    inlined,
    inner,
    int64,
    kernel,
    uint64,
)

_ONES, _LOW_BITS = uint64(0x0101010101010101), uint64(0x7F7F7F7F7F7F7F7F)
_BLANKS = uint64(0x2020202020202020)
BLANK, BREAK = 1, 2
"""What is due before the next word."""
_IS_BLANK = np.zeros(256, np.int64)
_IS_BLANK[9:14] = _IS_BLANK[32] = 1


@inlined
def marks_of_byte(word: Word, byte: Int) -> Word:
    """The high bit of each byte of eight that is this one."""
    other = word ^ uint64(byte) * _ONES
    return ~((other & _LOW_BITS) + _LOW_BITS | other | _LOW_BITS)


@inlined
def marks_from(word: Word, byte: Int) -> Word:
    """The high bit of each byte of eight that is ASCII, and this one or more."""
    return (word & _LOW_BITS) + uint64(128 - byte) * _ONES & ~word & HIGH_BITS


@inlined
def marks_of_controls(word: Word) -> Word:
    """The high bit of each byte of eight that is below a blank."""
    return ~marks_from(word, 32) & ~word & HIGH_BITS


@inlined
def count_marked(marks: Word) -> Int:
    """How many bytes of eight have the high bit, and no other."""
    return int64((marks >> uint64(7)) * _ONES >> uint64(56))


@inlined
def is_copied(word: Word, blanks: Word, due: Int) -> Bool:
    """Tell whether folding leaves eight bytes as they are: blanks are alone; `due` says that one
    came before.
    """
    return blanks & (blanks << uint64(8) | uint64(due << 7)) | marks_of_controls(word) == 0


@inner
def fold_text(data: Int, length: Int, text: Int, size: Int, gap: Int) -> tuple[Int, Int]:
    """Append a text node to the `size` bytes at `text`, where there is room for it and 2 more; the
    new size and gap.
    """
    before, gap = size, max(gap, BLANK)
    separator = int64(10 if gap == BREAK else 32)
    is_started, due, i = int64(size > 0), int64(1), int64(0)
    while i < length:
        stop = min(i + 8, length)
        word = load64(data + i) if i + 8 <= length else uint64(0)  # which has controls
        blanks = marks_of_byte(word, 32)
        if is_copied(word, blanks, due):
            store8(text + size, separator)
            size += due & is_started
            store64(text + size, word)
            is_started, separator, due = int64(1), int64(32), int64(blanks >> uint64(63))
            size += 8 - due
            i = stop
        while i < stop:  # without a branch: a processor guesses wrong at the end of most words
            byte = int64(load8(data + i))
            i += 1
            blank = _IS_BLANK[byte]
            begins = due & 1 - blank
            due = blank
            store8(text + size, separator)
            size += begins & is_started  # the separator is kept only before a word
            is_started |= begins
            separator += (32 - separator) * begins
            store8(text + size, byte)
            size += 1 - blank
    if size > before:
        return size, due * BLANK
    return size, gap if length == 0 else BREAK


@inlined
def is_blank(byte: Int | Word) -> Bool:
    """Java's `\\s`."""
    return byte == 32 or (byte >= 9 and byte <= 13)


@inlined
def lower(byte: Int) -> Int:
    """An ASCII letter in lower case."""
    return byte + 32 if byte >= 65 and byte <= 90 else byte


@inner
def stands(data: U8, at: Int, word: U8) -> Bool:
    """Tell whether a word in lower case stands there in any case."""
    if at + word.size > data.size:
        return False
    k = 0
    while k < word.size and lower(data[at + k]) == word[k]:
        k += 1
    return k == word.size


@inlined
def next_of(data: U8, at: Int, byte: Int) -> Int:
    """Find where a byte comes next, from `at` on; the size of the data if it does not."""
    start, size = int64(data.ctypes.data), int64(data.size)
    return next_byte(start + at, start + size, byte) - start


@inlined
def far_next_of(data: U8, at: Int, byte: Int) -> Int:
    """Find the same of a byte that is rare."""
    start, size = int64(data.ctypes.data), int64(data.size)
    return far_next_byte(start + at, start + size, byte) - start


@inlined
def next_quote(data: U8, at: Int) -> Int:
    """Find where a quote comes next, single or double, from `at` on; the size of the data if none
    does.
    """
    start, size = int64(data.ctypes.data), int64(data.size)
    while at + 16 <= size:
        found = equal_of_16(start + at, 34) | equal_of_16(start + at, 39)
        if found != 0:
            return at + trailing_zeros(found)
        at += 16
    while at < size and data[at] != 34 and data[at] != 39:
        at += 1
    return at


@inlined
def _goes_on(data: U8, at: Int, least: Int, most: Int) -> Bool:
    return at < data.size and data[at] >= least and data[at] <= most


@kernel
def is_utf8(data: U8) -> Bool:
    """Tell whether bytes are UTF-8 as Unicode 3.9 has it, table 3-7."""
    at, size = 0, data.size
    while at < size:
        while at + 16 <= size:
            beyond = least_of_16(data.ctypes.data + at, 0x80)
            if beyond != 0:
                at += trailing_zeros(beyond)
                break
            at += 16
        if at == size:
            return True
        byte = int64(data[at])
        if byte < 0x80:
            at += 1
            continue
        if byte < 0xC2 or byte > 0xF4:  # continuation, overlong, beyond U+10FFFF
            return False
        if byte < 0xE0:
            if not _goes_on(data, at + 1, 0x80, 0xBF):
                return False
            at += 2
            continue
        least, most = 0x80, 0xBF
        if byte == 0xE0:
            least = 0xA0  # less is overlong
        elif byte == 0xED:
            most = 0x9F  # more is a surrogate
        elif byte == 0xF0:
            least = 0x90  # less is overlong
        elif byte == 0xF4:
            most = 0x8F  # more is beyond U+10FFFF
        if not _goes_on(data, at + 1, least, most) or not _goes_on(data, at + 2, 0x80, 0xBF):
            return False
        at += 3
        if byte >= 0xF0:
            if not _goes_on(data, at, 0x80, 0xBF):
                return False
            at += 1
    return True


@inner
def _place(data: U8, at: Int, size: Int, names: U8Rows) -> Int:
    """Which of the names (padded with zeros) stands there in any case; -1 if none does."""
    if size >= names.shape[1]:
        return -1
    for place in range(names.shape[0]):
        same = names[place, size] == 0  # same length
        for k in range(size):
            if not same:
                break
            same = names[place, k] == lower(data[at + k])
        if same:
            return place
    return -1


@inner
def _after_end_tag(data: U8, at: Int, name: Int, size: Int) -> Int:
    """Where the next `</` with a name ends; the page's end if there is none."""
    while True:
        at = next_of(data, at, 60)
        if at + 2 + size > data.size:
            return int64(data.size)
        if data[at + 1] == 47:
            k = 0
            while k < size and lower(data[at + 2 + k]) == lower(data[name + k]):
                k += 1
            if k == size:
                return at + 2 + size
        at += 1


@inner
def _after_tag(data: U8, at: Int) -> Int:
    """The end of a tag whose name ends at `at`; the page's end if a quote in it is not closed."""
    size = int64(data.size)
    while at < size and data[at] != 62:
        at += 1
        if data[at - 1] != 61:  # quotes begin a value only after =
            continue
        while at < size and is_blank(data[at]):
            at += 1
        if at < size and (data[at] == 34 or data[at] == 39):
            at = next_of(data, at + 1, data[at]) + 1
    return min(at + 1, size)


@inner
def skip_comment(data: U8, at: Int) -> Int:
    """Find where a comment ends whose two dashes begin at `at`."""
    while at + 2 < data.size:
        if data[at + 1] == 45:
            if data[at + 2] == 62:
                return at + 3
            if data[at + 2] == 33 and at + 3 < data.size and data[at + 3] == 62:
                return at + 4
        at = next_of(data, at + 1, 45)
    return data.size


@kernel
def next_tag(data: U8, at: Int, names: U8Rows, texts: Int, ends: Int) -> Int:
    """Find the next tag from `at` on that is one of `names` (rows padded with zeros), -1 if there
    is none; comments are passed over, and so is what is in the values of attributes.

    The first `texts` names hold text, which is passed over to their end tags. End tags count of
    the last `ends` names alone.
    """
    size, rows = int64(data.size), names.shape[0]
    while True:
        at = next_of(data, at, 60)
        if at + 1 >= size:
            return -1
        tag = at
        at += 1
        if at + 2 < size and data[at] == 33 and data[at + 1] == 45 and data[at + 2] == 45:
            at = skip_comment(data, at + 1)
            continue
        closes = data[at] == 47
        name = at + 1 if closes else at
        # Without a letter, `<` and `</` begin no tag.
        if name >= size or lower(data[name]) < 97 or lower(data[name]) > 122:
            continue
        at = name
        while at < size and data[at] != 47 and data[at] != 62 and not is_blank(data[at]):
            at += 1
        place = _place(data, name, at - name, names)
        if closes:
            if place >= rows - ends:
                return tag
        elif place >= texts:
            return tag
        elif place >= 0:
            at = _after_end_tag(data, at, name, at - name)
        else:
            at = _after_tag(data, at)  # past any < in its attributes


@inner
def blank_size(data: U8, at: Int) -> Int:
    """Bytes of the blank there, Python's `\\s` of str in UTF-8; 0 if there is none."""
    byte = data[at]
    if byte < 0x80:
        return 1 if byte == 32 or (byte >= 9 and byte <= 13) or (byte >= 28 and byte <= 31) else 0
    if byte == 0xC2:
        return 2 if at + 1 < data.size and (data[at + 1] == 0x85 or data[at + 1] == 0xA0) else 0
    if at + 2 >= data.size:
        return 0
    word = int64(byte) << 16 | int64(data[at + 1]) << 8 | int64(data[at + 2])
    is_blank = (
        word == 0xE19A80
        or (word >= 0xE28080 and word <= 0xE2808A)
        or word in (0xE280A8, 0xE280A9, 0xE280AF, 0xE2819F, 0xE38080)
    )
    return 3 if is_blank else 0


_JSON, _TYPE, _MAKER = (
    np.frombuffer(word, np.uint8) for word in (b"application/ld+json", b"og:type", b"generator")
)
_PLUS, _COLON = 14, 2
"""Where these have a byte that is rare in pages."""


@inner
def _find_word(data: U8, at: Int, end: Int, word: U8, rare: Int) -> Int:
    """Find where a word comes next that ends before `end`, by a rare byte of it; -1 if it does
    not.
    """
    at += rare
    while True:
        at = far_next_of(data, at, int64(word[rare]))
        start = at - rare
        if start + word.size > min(end, int64(data.size)):
            return -1
        k = 0
        while k < word.size and data[start + k] == word[k]:
            k += 1
        if k == word.size:
            return start
        at += 1


@kernel
def find_names(data: U8, at: Int, head: Int, found: I64) -> None:
    """Find `application/ld+json` from `at` on, `og:type` and `generator` in the first `head` bytes:
    where they are, -1 for those that are not there.
    """
    found[0] = _find_word(data, at, int64(data.size), _JSON, _PLUS)
    found[1] = _find_word(data, 0, head, _TYPE, _COLON)
    found[2] = _find_word(data, 0, head, _MAKER, 0)


_DIGIT, _SPACE, _SLASH = 1, 2, 4
_OF_WORDS = np.zeros(256, np.uint8)
"""What a byte is in a text of words; 0 is any other."""
_OF_WORDS[48:58], _OF_WORDS[47] = _DIGIT, _SLASH
_OF_WORDS[9:14] = _OF_WORDS[32] = _SPACE
_SPELLED = np.arange(256).astype(np.uint8)
"""A byte as it is copied: blanks are all alike."""
_SPELLED[9:14] = 32


@kernel
def drop_numbers(data: U8, out: U8) -> Int:
    """Copy the words of a text without their digits, a blank between two, but for those with a
    slash; the size. There is room for a byte more than the text has.
    """
    at = size = start = has_word = int64(0)
    while at < data.size:
        stop = min(at + 8, int64(data.size))
        word = load64(data.ctypes.data + at) if at + 8 <= data.size else uint64(0)
        blanks = marks_of_byte(word, 32)
        is_left_out = marks_from(word, 47) & ~marks_from(word, 58)  # a slash or digits
        if is_left_out == 0 and is_copied(word, blanks, 1 - has_word):
            store64(out.ctypes.data + size, word)
            if blanks:  # the last of them ends a word
                has_word = 1 - int64(blanks >> uint64(63))
                blanks |= blanks >> uint64(8)
                blanks |= blanks >> uint64(16)
                start = size + count_marked(blanks | blanks >> uint64(32))
            else:
                has_word = int64(1)
            size += 8
            at = stop
        while at < stop:
            kind = int64(_OF_WORDS[data[at]])
            if kind == _SLASH:
                size, has_word = start, int64(0)
                while at < data.size and _OF_WORDS[data[at]] != _SPACE:
                    at += 1
                continue
            # Without a branch: a processor guesses wrong at the end of every other word.
            out[size] = _SPELLED[data[at]]
            is_space = kind >> 1
            is_other = 1 - is_space - (kind & 1)
            size += is_other | is_space & has_word
            has_word = (has_word | is_other) & ~is_space
            start += (size - start) * is_space
            at += 1
    return size if has_word else max(size - 1, int64(0))


@kernel
def bag_of_words(text: U8, size: Int, seed: Int) -> Int:
    """The sum of the hashes of words with a blank between two, in whatever order they stand."""
    found, start = uint64(0), int64(text.ctypes.data)
    end = start + size
    while start < end:
        stop = next_byte(start, end, 32)
        found += string_hash(start, stop - start, seed)
        start = stop + 1
    return int64(found)
