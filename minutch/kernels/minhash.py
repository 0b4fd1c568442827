"""Kernels of MinHash: which texts have most runs of words in common, by hashes of which equal texts
have equal ones, and similar texts some (A. Broder, On the Resemblance and Containment of Documents,
1997; bands: J. Leskovec, A. Rajaraman, J. Ullman, Mining of Massive Datasets, chapter 3).
"""

from __future__ import annotations

from typing import NamedTuple

from minutch.kernels.memory import load8
from minutch.kernels.native import (
    I64,
    U32,
    U64,
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
from minutch.kernels.quality import character
from minutch.kernels.simhash import mixed

MARK, ALONE = 0xFFFF_FFFF, 0x8000_0000
"""In a table of characters: one that is passed over; each of these is a word of its own."""
_ZERO, _NINE, _DOT, _COMMA = 48, 57, 46, 44
_PRIME = 0x100_0000_01B3  # FNV-1a of 64 bits
_OFFSET = 0xCBF2_9CE4_8422_2325
_GOLDEN = 0x9E37_79B9_7F4A_7C15  # 2⁶⁴ / golden ratio
_MOST = 0xFFFF_FFFF_FFFF_FFFF


@inner
def _plain_words(at: Int, size: Int, plain: U32, words: U64) -> Int:
    """Hash the words of a text, the points and commas within numbers too; returns how many. Those
    with a digit are odd, all others even.
    """
    count, done = 0, int64(0)
    value, inside, before, kind = uint64(_OFFSET), False, int64(0), uint64(0)
    while done < size:
        code, width = character(at + done, size - done)
        unit = int64(plain[code]) if code < len(plain) else code | ALONE
        done += width
        # A point or comma between two digits is part of the number.
        if unit == 0 and inside and _ZERO <= before <= _NINE and (code in (_DOT, _COMMA)):
            after = int64(load8(at + done)) if done < size else int64(0)
            unit = int64(_DOT) if _ZERO <= after <= _NINE else unit
        if unit == MARK:  # combining marks change no word
            continue
        if inside and (unit == 0 or unit & ALONE):
            # The word before it ends.
            words[count], count, inside = _word(value, kind), count + 1, False
        if unit:
            value, kind = (value, kind) if inside else (uint64(_OFFSET), uint64(0))
            value = (value ^ uint64(unit)) * uint64(_PRIME)
            kind = uint64(1) if _ZERO <= unit <= _NINE else kind
            inside = True
        if unit & ALONE:
            # A character that is a word by itself.
            words[count], count, inside = _word(value, kind), count + 1, False
        before = unit
    if inside:
        words[count], count = _word(value, kind), count + 1
    return count


@inlined
def _word(value: Word, kind: Word) -> Word:
    """The hash of a word, whose lowest bit is its kind."""
    return (mixed(value) & ~uint64(1)) | kind


class Functions(NamedTuple):
    """The fields of hash functions x → factor · x + summand, modulo 2⁶⁴; factors are odd."""

    factors: U64
    summands: U64


@kernel
def band_keys(
    texts: StringColumn, plain: U32, width: Int, by: Functions, bands: Int, words: U64, out: U64
) -> None:
    """The key of each band of each text (row by row), of as many hashes as there are functions for
    it, each the least: that the last ones, one for each band, make of the text's numbers and of one
    that every text has; that the others make of the runs of `width` words. 0 for a text without
    words; one with fewer words is one run.

    `plain` has for each character what it counts as: 0 separates words. `words` has room for one
    each byte.
    """
    least = words[: len(by.factors)]
    words = words[len(by.factors) :]
    numbers = len(by.factors) - bands
    each = numbers // bands
    for row in range(len(texts.views)):
        at, size = string_at(texts.views, texts.addresses, row), int64(texts.views[row, 0])
        count = _plain_words(at, size, plain, words)
        for k in range(len(least)):
            # A number that every text has: texts without others differ by words alone.
            every = by.factors[k] * uint64(_GOLDEN) + by.summands[k]
            least[k] = uint64(_MOST) if k < numbers else every
        for i in range(count):
            # Only words with a digit count as numbers.
            for k in range(numbers, len(least) if words[i] & uint64(1) else numbers):
                least[k] = min(least[k], by.factors[k] * words[i] + by.summands[k])
        # The least value of each function over all runs of words.
        for i in range(max(count - width + 1, 1 if count else 0)):
            run = uint64(0)
            for k in range(i, min(i + width, count)):
                run = mixed(run * uint64(_PRIME) + words[k] + uint64(_GOLDEN))
            for k in range(numbers):
                least[k] = min(least[k], by.factors[k] * run + by.summands[k])
        # A band's key combines its own hashes and one of numbers.
        for band in range(bands):
            key = uint64(band)  # the same hashes in another band are no match
            for k in range(band * each, (band + 1) * each):
                key = mixed(key * uint64(_PRIME) + least[k] + uint64(_GOLDEN))
            key = mixed(key * uint64(_PRIME) + least[numbers + band] + uint64(_GOLDEN))
            key = key if key != 0 else uint64(1)  # 0 stands for no words
            out[row * bands + band] = key if count else uint64(0)


@inlined
def _root(rows: I64, row: Int) -> Int:
    """The first row that a row was joined with, with the way there made shorter."""
    while rows[row] != row:
        rows[row] = rows[rows[row]]
        row = int64(rows[row])
    return row


@kernel
def join_equal(keys: U64, order: I64, rows: I64) -> None:
    """Join the rows of equal keys, but 0, which ascend in this order; `rows` has for each row one
    that it is joined with, never a later one.
    """
    for i in range(1, len(keys)):
        if keys[i] == keys[i - 1] and keys[i] != 0:
            a, b = _root(rows, int64(order[i - 1])), _root(rows, int64(order[i]))
            rows[max(a, b)] = min(a, b)  # roots are never later rows: `find_roots` relies on it


@kernel
def find_roots(rows: I64) -> None:
    """Give each row the first of those that it is joined with."""
    for i in range(len(rows)):
        rows[i] = rows[rows[i]]  # earlier rows lead to their roots already
