"""Kernels of near-duplicates: the SimHash of a text, and rows of numbers that differ in few
bits.
"""

from __future__ import annotations

from typing import NamedTuple

from minutch.kernels.hash import word_hash
from minutch.kernels.memory import scratch32
from minutch.kernels.native import (
    I64,
    U8,
    U32,
    U64,
    Flags,
    Int,
    Word,
    inlined,
    int32,
    int64,
    kernel,
    uint64,
)

_ALONE = 0x1_0000
"""In a table of characters: each of these is a word of its own."""
_PRIME = 0x100_0000_01B3  # FNV-1a of 64 bits
_OFFSET = 0xCBF2_9CE4_8422_2325
_GOLDEN = 0x9E37_79B9_7F4A_7C15  # 2⁶⁴ / golden ratio


@inlined
def mixed(value: Word) -> Word:
    """A 64-bit word whose every bit depends on every bit of `value` (the finalizer of
    SplitMix64).
    """
    value = (value ^ (value >> uint64(30))) * uint64(0xBF58_476D_1CE4_E5B9)
    value = (value ^ (value >> uint64(27))) * uint64(0x94D0_49BB_1331_11EB)
    return value ^ (value >> uint64(31))


@kernel
def word_hashes(text: U8, table: U32, words: U64) -> Int:
    """Hash the words of a text in UTF-16LE; returns how many there are (`words` has room for one
    each unit).

    `table` has for each unit what it counts as (0: it separates words), with `_ALONE` if it is a
    word of its own.
    """
    count = 0
    word, inside = uint64(_OFFSET), False
    for i in range(len(text) // 2):
        unit = table[int64(text[2 * i]) | int64(text[2 * i + 1]) << 8]
        if inside and (unit == 0 or unit & _ALONE):
            words[count] = mixed(word)
            count += 1
            word, inside = uint64(_OFFSET), False
        if unit:
            word = (word ^ uint64(unit)) * uint64(_PRIME)
            inside = True
        if unit & _ALONE:
            words[count] = mixed(word)
            count += 1
            word, inside = uint64(_OFFSET), False
    if inside:
        words[count] = mixed(word)
        count += 1
    return count


@kernel
def simhash(words: U64, count: Int, width: Int, seed: Int, seen: U64, result: U64) -> None:
    """The SimHash of the first `count` words: for each bit, what most of the different runs of
    `width` words have.

    `seen` is all zeros, at least twice as many as there are words, and a power of two. Where in it
    a run has its place goes by `seed`, as in `string_hash`: a page knows the words' own hashes.
    """
    ones = scratch32(64)
    mask = uint64(len(seen) - 1)
    runs = max(count - width + 1, 1 if count else 0)
    different = 0
    for i in range(runs):
        value = uint64(0)
        for k in range(i, min(i + width, count)):
            value = mixed(value * uint64(_PRIME) + words[k] + uint64(_GOLDEN))
        if value == 0:
            value = uint64(1)
        at = word_hash(value, seed) & mask
        while seen[at] != 0 and seen[at] != value:
            at = (at + uint64(1)) & mask
        if seen[at] == value:  # a run counts once
            continue
        seen[at] = value
        different += 1
        for k in range(64):
            ones[k] += int32((value >> uint64(k)) & uint64(1))
    found = uint64(0)
    for k in range(64):
        if 2 * ones[k] > different:
            found |= uint64(1) << uint64(k)  # most runs have it
    result[0] = found


@inlined
def differing_bits(a: Word, b: Word) -> Int:
    """Returns the number of bits in which two 64-bit words differ."""
    # Ones per 2, 4 and 8 bits; the product sums the eight bytes in the top one.
    value = a ^ b
    value = value - ((value >> uint64(1)) & uint64(0x5555_5555_5555_5555))
    value = (value & uint64(0x3333_3333_3333_3333)) + (
        (value >> uint64(2)) & uint64(0x3333_3333_3333_3333)
    )
    value = (value + (value >> uint64(4))) & uint64(0x0F0F_0F0F_0F0F_0F0F)
    return int64((value * uint64(0x0101_0101_0101_0101)) >> uint64(56))


class Sorted(NamedTuple):
    """The fields of rows by key, those of one key ascending: numbers, keys and words."""

    order: U32
    keys: U64
    words: U64


class HashRows(NamedTuple):
    """The fields of rows: groups (none: all are one), ranks, which are kept and which undecided.

    Lower ranks are better, and ascend with the rows.
    """

    groups: U64
    ranks: I64
    kept: Flags
    undecided: Flags


@kernel
def sweep(by_key: Sorted, rows: HashRows, bits: Int, blocked: Flags, leaders: I64) -> None:
    """Look, for each undecided row, for a better one of its group, with the same key, within `bits`
    bits of it.

    If the better row is kept, the first of those becomes the leader, if none is before it; if not,
    the row is blocked.
    """
    order, keys, words = by_key
    groups, ranks, kept, undecided = rows
    start, count, grouped = 0, len(order), len(groups) > 0
    for end in range(1, count + 1):
        if end < count and keys[end] == keys[start]:
            continue
        # Only rows of one key, start to end - 1, are compared.
        any_kept = False
        for i in range(start, end):
            any_kept |= kept[order[i]]
        for j in range(start + 1, end):
            row = order[j]
            if not undecided[row]:
                continue
            word, i = words[j], start - 1
            # Blocked, and no leader possible: nothing more to learn.
            while not (blocked[row] and not any_kept):
                i += 1
                while i < j and differing_bits(word, words[i]) > bits:
                    i += 1
                if i >= j:
                    break
                other = order[i]
                if ranks[other] == ranks[row] or (grouped and groups[row] != groups[other]):
                    continue
                if kept[other]:  # rows ascend by rank: the first found is the best
                    if leaders[row] < 0 or other < leaders[row]:
                        leaders[row] = other
                    break
                if undecided[other]:
                    blocked[row] = True
        start = end
