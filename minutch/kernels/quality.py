"""Kernels that count in texts what filters of quality ask for: words, lines, and what is repeated.

    word     letters, digits and marks in a row, with what joins them (points, `@` and `_`,
             commas between digits: `3.14`, `www.example.org`; what an apostrophe begins is a word
             of its own: `don't` are two), each character of scripts without spaces, or a sign,
             together with the same ones that follow it
    line     what is between two LF, paragraph: between several; the text has no blanks at its ends

Lengths are characters. What is repeated is told by 64-bit hashes.
"""

from __future__ import annotations

from typing import NamedTuple

from minutch.kernels.hash import word_hash
from minutch.kernels.memory import load8
from minutch.kernels.native import (
    I32,
    I64,
    U8,
    U64,
    I64Rows,
    Int,
    StringColumn,
    Word,
    inlined,
    inner,
    int64,
    kernel,
    string_at,
    uint64,
)
from minutch.kernels.simhash import mixed

SPACE, SIGN, ALPHA, DIGIT, ALONE, END = 1, 2, 4, 8, 16, 32
"""What a character is: white space; punctuation or a control; a letter; a digit; a word of its own;
what ends a sentence."""
COUNTS = (
    *("chars", "tokens", "words", "word_chars", "alphas", "stops", "hashes", "ellipses"),
    *("newlines", "lines", "bullet_lines", "ellipsis_lines", "paragraphs", "same_paragraphs"),
    *("same_paragraph_chars", "some_lines", "same_lines", "same_line_chars"),
    *("full_lines", "ended_lines", "short_lines", "same_full_chars"),
    *(f"top_{n}" for n in (2, 3, 4)),
    *(f"same_{n}" for n in range(5, 11)),
)
"""The columns of what `measure` counts; tokens are words and signs, `stops` the bits of those stop
words that occur, some_lines those that are not empty, full_lines those that are not blank."""
_CHARS, _TOKENS, _WORDS, _WORD_CHARS, _ALPHAS, _STOPS = 0, 1, 2, 3, 4, 5
_HASHES, _ELLIPSES, _NEWLINES, _LINES, _BULLETS, _DOTTED = 6, 7, 8, 9, 10, 11
_PARAGRAPHS, _SAME_PARAGRAPHS, _SAME_PARAGRAPH_CHARS, _SOME, _SAME_LINES, _SAME_LINE_CHARS = (
    12,
    13,
    14,
    15,
    16,
    17,
)
_FULL, _ENDED, _SHORT, _SAME_FULL_CHARS, _TOP = 18, 19, 20, 21, 22
_SAME = _TOP + 3
_SHORT_LINE = 30  # `short_line_length` of datatrove's FineWeb filter
_PRIME = 0x100_0000_01B3  # FNV-1a of 64 bits
_OFFSET = 0xCBF2_9CE4_8422_2325
_GOLDEN = 0x9E37_79B9_7F4A_7C15  # 2⁶⁴ / golden ratio
_LF, _SIGN_HASH, _COMMA, _MINUS, _DOT, _BULLET, _DOTS = 10, 35, 44, 45, 46, 0x2022, 0x2026
_APOSTROPHE, _RAISED, _AT, _LOW = 39, 0x2019, 64, 95


class WordRoom(NamedTuple):
    """The fields of room for the longest of the texts: a place for each byte (and one more) for the
    hash, the length and the kind of a word; at least twice as many `slots`, a power of two.
    """

    hashes: U64
    lengths: I32
    kinds: U8
    slots: U64
    times: I32


@inner
def character(at: Int, left: Int) -> tuple[Int, Int]:
    """The character at an address, and how many bytes of UTF-8 it takes; `left` bytes are there."""
    first = int64(load8(at))
    if first < 0x80:
        return first, 1
    size = 2 if first < 0xE0 else 3 if first < 0xF0 else 4
    if size > left:  # cut off
        return 0xFFFD, left
    code = first & (0x7F >> size)
    for i in range(1, size):
        code = code << 6 | (int64(load8(at + i)) & 0x3F)
    return code, size


@inlined
def kind_of(code: Int, kinds: U8) -> Int:
    """What a character is; those beyond the table are letters that stand alone."""
    return int64(kinds[code]) if code < len(kinds) else ALPHA | ALONE


@inner
def _tokenize(at: Int, size: Int, kinds: U8, room: WordRoom) -> Int:
    """Find the words and signs of a text; returns how many."""
    hashes, lengths, flags, _, _ = room
    count, done = 0, int64(0)
    value, length, flag = uint64(_OFFSET), 0, 0
    before, before_kind = int64(-1), 0
    while done < size:
        code, width = character(at + done, size - done)
        kind = kind_of(code, kinds)
        ends, begins = False, False  # whether a token ends before this character, or begins with it
        is_word = kind & (SPACE | SIGN) == 0
        if kind & SPACE:  # blanks only separate
            ends = True
        # A letter or digit continues a word, unless one of both stands alone.
        elif is_word:
            alone = kind & ALONE != 0 or (flag & ALONE) != 0
            ends = begins = length == 0 or alone or (flag & SIGN) != 0
        else:
            # A sign may join two parts of a word, if the next character belongs to one.
            after = int64(SPACE)
            if done + width < size:
                code_after, _ = character(at + done + width, size - done - width)
                after = kind_of(code_after, kinds)
            inside = length > 0 and flag & SIGN == 0 and after & (SPACE | SIGN) == 0
            if inside and (code in (_APOSTROPHE, _RAISED)):
                ends = begins = is_word = True
            elif inside and (
                code in (_DOT, _AT, _LOW) or (code == _COMMA and before_kind & after & DIGIT)
            ):
                is_word = True
            else:
                # A row of equal signs is one token.
                ends = begins = code != before or flag & SIGN == 0
        if ends and length:
            hashes[count], lengths[count], flags[count] = mixed(value), length, flag
            count += 1
            length = 0
        if begins:
            value, length, flag = uint64(_OFFSET), 0, 0 if is_word else SIGN
        if kind & SPACE == 0:
            value = (value ^ uint64(code)) * uint64(_PRIME)
            length += 1
            flag |= kind & (ALPHA | ALONE)
        before, before_kind = code, kind
        done += width
    if length:
        hashes[count], lengths[count], flags[count] = mixed(value), length, flag
        count += 1
    return count


@inner
def _clear(room: WordRoom, count: Int) -> Word:
    """Make slots for so many values; returns the mask of their number."""
    size = 4
    while size < 2 * count:
        size *= 2
    for i in range(size):
        room.slots[i] = uint64(0)
        room.times[i] = 0
    return uint64(size - 1)


@inner
def _slot(value: Word, mask: Word, seed: Int, room: WordRoom) -> Int:
    """The slot of a value that is not 0; `times` says how often it was counted."""
    at = word_hash(value, seed) & mask
    while room.slots[at] != 0 and room.slots[at] != value:
        at = (at + uint64(1)) & mask
    room.slots[at] = value
    return int64(at)


@inner
def _run(room: WordRoom, first: Int, width: Int) -> tuple[Word, Int]:
    """The hash of a run of words, never 0, and their characters."""
    value, length = uint64(0), int64(0)
    for k in range(first, first + width):
        value = mixed(value * uint64(_PRIME) + room.hashes[k] + uint64(_GOLDEN))
        length += int64(room.lengths[k])
    return (value if value != 0 else uint64(1)), length


@inner
def _count_runs(row: Int, count: Int, seed: Int, room: WordRoom, counts: I64Rows) -> None:
    """Count the characters of the most frequent run of 2 to 4 words (the first of several), with
    blanks between the words, and those of runs of 5 to 10 that were there before: these do not
    overlap.
    """
    for width in range(2, 5):
        mask, most = _clear(room, count), int64(0)
        for i in range(count - width + 1):
            value, length = _run(room, i, width)
            slot = _slot(value, mask, seed, room)
            room.times[slot] += 1
            most = max(most, int64(room.times[slot]))
        # The highest count is known now: find the first run that has it.
        for i in range(count - width + 1):
            value, length = _run(room, i, width)
            if int64(room.times[_slot(value, mask, seed, room)]) == most:
                counts[row, _TOP + width - 2] = most * (length + width - 1)
                break
    for width in range(5, 11):
        mask = _clear(room, count)
        i = 0
        while i <= count - width:
            value, length = _run(room, i, width)
            slot = _slot(value, mask, seed, room)
            if room.times[slot]:
                counts[row, _SAME + width - 5] += length
                i += width  # they do not overlap
            else:
                room.times[slot] = 1
                i += 1


@inner
def _count_words(row: Int, count: Int, room: WordRoom, stops: U64, counts: I64Rows) -> None:
    """Count words, their characters, those with letters, and which stop words there are."""
    found = int64(0)
    for i in range(count):
        if room.kinds[i] & SIGN == 0:
            counts[row, _WORDS] += 1
            counts[row, _WORD_CHARS] += room.lengths[i]
        if room.kinds[i] & ALPHA:
            counts[row, _ALPHAS] += 1
        for k in range(len(stops)):
            if room.hashes[i] == stops[k]:
                found |= 1 << k
    counts[row, _TOKENS], counts[row, _STOPS] = count, found


class LineHashes(NamedTuple):
    """The fields of the lines of all texts: hashes (0: blank), and where those of each text end."""

    hashes: U64
    ends: I64


@inner
def _count_lines(
    row: Int,
    at: Int,
    size: Int,
    kinds: U8,
    room: WordRoom,
    counts: I64Rows,
    lines: LineHashes,
    seed: Int,
) -> None:
    """Count lines by how they begin and end, paragraphs, and what is repeated of both; hash the
    lines.
    """
    place = lines.ends[row - 1] if row else int64(0)
    # The slots hold a value per line at most.
    expected = int64(1)
    for i in range(size):
        expected += load8(at + i) == uint64(_LF)
    mask, paragraphs = _clear(room, expected), 0
    line, length = uint64(_OFFSET), int64(0)
    whole, whole_length = uint64(_OFFSET), int64(0)
    first, last, dots, before = int64(0), int64(0), int64(0), int64(_LF)
    done = int64(0)
    while done <= size:
        code, width = int64(_LF), int64(1)
        if done < size:
            code, width = character(at + done, size - done)
            counts[row, _CHARS] += 1
            counts[row, _NEWLINES] += code == _LF
        if code != _LF:
            if length == 0 and whole_length:
                whole, whole_length = (whole ^ uint64(_LF)) * uint64(_PRIME), whole_length + 1
            line, length = (line ^ uint64(code)) * uint64(_PRIME), length + 1
            whole, whole_length = (whole ^ uint64(code)) * uint64(_PRIME), whole_length + 1
            last = code
            counts[row, _HASHES] += code == _SIGN_HASH
            if kind_of(code, kinds) & SPACE == 0:
                first = code if first == 0 else first
                # Every third point in a row completes an ellipsis.
                dots = (dots + 1 if before == _DOT else 1) if code == _DOT else 0
                dots = int64(3) if code == _DOTS else dots
                counts[row, _ELLIPSES] += code == _DOTS or (code == _DOT and dots % 3 == 0)
        else:
            # Nothing follows a final LF.
            counts[row, _LINES] += done < size or length > 0
            counts[row, _BULLETS] += first in (_BULLET, _MINUS)
            counts[row, _DOTTED] += dots >= 3
            lines.hashes[place] = uint64(0)
            if length:
                # The line is over: is it a repetition, how does it begin and end?
                value = mixed(line)
                slot = _slot(value if value != 0 else uint64(1), mask, seed, room)
                again = room.times[slot] > 0
                room.times[slot] = 1
                counts[row, _SOME] += 1
                counts[row, _SAME_LINES] += again
                counts[row, _SAME_LINE_CHARS] += length if again else 0
                if first:
                    # Blank lines have no hash.
                    lines.hashes[place] = value if value != 0 else uint64(1)
                    counts[row, _FULL] += 1
                    counts[row, _ENDED] += kind_of(last, kinds) & END != 0
                    counts[row, _SHORT] += length <= _SHORT_LINE
                    counts[row, _SAME_FULL_CHARS] += length if again else 0
            # A paragraph ends at a blank line or with the text.
            if whole_length and (length == 0 or done >= size):
                value = mixed(whole)
                room.hashes[paragraphs] = value if value != 0 else uint64(1)
                room.lengths[paragraphs] = whole_length
                paragraphs, whole, whole_length = paragraphs + 1, uint64(_OFFSET), int64(0)
            place += 1
            line, length, first, dots = uint64(_OFFSET), int64(0), int64(0), int64(0)
        before = code
        done += width
    lines.ends[row] = place
    counts[row, _PARAGRAPHS] = paragraphs
    # Paragraphs are compared last: until now lines had the slots.
    mask = _clear(room, paragraphs)
    for i in range(paragraphs):
        slot = _slot(room.hashes[i], mask, seed, room)
        if room.times[slot]:
            counts[row, _SAME_PARAGRAPHS] += 1
            counts[row, _SAME_PARAGRAPH_CHARS] += room.lengths[i]
        room.times[slot] = 1


@kernel
def measure(
    texts: StringColumn,
    kinds: U8,
    stops: U64,
    seed: Int,
    room: WordRoom,
    counts: I64Rows,
    lines: LineHashes,
) -> None:
    """Count what `COUNTS` names in each text, into zeros, and hash its lines, of which there is one
    more than it has LF.

    `kinds` says what characters are, `stops` has the hashes of stop words (`hash_words`).
    """
    for row in range(len(texts.views)):
        at, size = string_at(texts.views, texts.addresses, row), int64(texts.views[row, 0])
        _count_lines(row, at, size, kinds, room, counts, lines, seed)
        count = _tokenize(at, size, kinds, room)
        _count_words(row, count, room, stops, counts)
        _count_runs(row, count, seed, room, counts)


@kernel
def hash_words(texts: StringColumn, kinds: U8, room: WordRoom, hashes: U64) -> None:
    """The hash of the first word of each text."""
    for row in range(len(texts.views)):
        at, size = string_at(texts.views, texts.addresses, row), int64(texts.views[row, 0])
        hashes[row] = room.hashes[0] if _tokenize(at, size, kinds, room) else uint64(0)
