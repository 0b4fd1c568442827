"""Kernels that tell what a text is: of which media type it may be, by the literals at its
beginning; its language, by an automaton that counts the features in it, whose weights are added up.
"""

from __future__ import annotations

from typing import NamedTuple

from minutch.kernels.memory import call7, load8, load32, load64, prefetch_all, scratch64
from minutch.kernels.native import (
    F32,
    I32,
    I64,
    U8,
    Bool,
    F32Rows,
    I64Rows,
    Int,
    inlined,
    inner,
    int64,
    kernel,
)

ROW_AT, FEATURE_MASK = 32, 0xFFFFFFFF
"""Of a word of an automaton's state."""
_APART = 16
"""Bytes after which it hardly matters in which state an automaton was before them."""
_WALKS, _AHEAD = 16, 8


class Transitions(NamedTuple):
    """From a state a byte leads to `moves[row + byte]`: a word of `states` has a state's row above
    ROW_AT, and below it its feature and 1, 0 for none.
    """

    moves: I32
    states: I64


@inlined
def _moved(state: Int, text: Int, moves: Int, states: Int) -> Int:
    """The state to which the byte at an address leads."""
    row = (state >> ROW_AT) + int64(load8(text))
    return int64(load64(states + 8 * int64(load32(moves + 4 * row))))


@inner
def _move_along(state: Int, text: U8, at: Int, end: Int, tables: Transitions, path: I32) -> Int:
    """Walk from one place to another; the state there. `path` gets the features, and 1."""
    moves, states = int64(tables.moves.ctypes.data), int64(tables.states.ctypes.data)
    start = int64(text.ctypes.data)
    for i in range(at, end):
        state = _moved(state, start + i, moves, states)
        path[i] = state & FEATURE_MASK
    return state


@kernel
def count_features(text: U8, tables: Transitions, path: I32, counts: I32, found: I32) -> Int:
    """Walk an automaton over a text: how many features it meets. `found` gets them as they come
    first, `counts` (of zeros) how often each comes; `path` is room for one a byte.

    A step waits for memory, so _WALKS parts are walked at once: each but the first from the start
    _APART bytes before it. Where that has not led to the state in which the part before ends, it
    is walked again.
    """
    moves, states = int64(tables.moves.ctypes.data), int64(tables.states.ctypes.data)
    state, first, size = int64(tables.states[0]), int64(text.ctypes.data), text.size // _WALKS
    end = int64(0)
    if size >= _APART:
        now, begun = scratch64(_WALKS), scratch64(_WALKS)
        now[:] = state
        for i in range(-_APART, 0):
            for k in range(1, _WALKS):
                now[k] = begun[k] = _moved(now[k], first + k * size + i, moves, states)
        for i in range(size):
            for k in range(_WALKS):
                now[k] = _moved(now[k], first + k * size + i, moves, states)
                path[k * size + i] = now[k] & FEATURE_MASK
        state, end = now[0], _WALKS * size
        for k in range(1, _WALKS):
            if begun[k] == state:
                state = now[k]
            else:  # it started from the wrong state
                state = _move_along(state, text, k * size, (k + 1) * size, tables, path)
    _move_along(state, text, end, text.size, tables, path)
    # `path` has a feature's number + 1.
    kinds = 0
    for i in range(text.size):
        feature = int64(path[i]) - 1
        if feature >= 0:
            if counts[feature] == 0:
                found[kinds] = feature
                kinds += 1
            counts[feature] += 1
    return kinds


@kernel
def sum_features(
    found: I32, kinds: Int, counts: I32, logarithms: F32, weights: F32Rows, sums: F32
) -> None:
    """Add up the weights of the first features in `found`, each times what `logarithms` has for how
    often it came (the last for all that is more); `counts` of these are 0 afterwards.
    """
    most = int64(logarithms.size) - 1
    start, width = int64(weights.ctypes.data), 4 * sums.size
    for i in range(0, kinds - 3, 4):
        for k in range(i + _AHEAD, min(i + _AHEAD + 4, kinds)):
            prefetch_all(start + width * int64(found[k]), width)
        a, b, c, d = int64(found[i]), int64(found[i + 1]), int64(found[i + 2]), int64(found[i + 3])
        e = logarithms[min(int64(counts[a]), most)]
        f = logarithms[min(int64(counts[b]), most)]
        g = logarithms[min(int64(counts[c]), most)]
        h = logarithms[min(int64(counts[d]), most)]
        for k in range(sums.size):
            sums[k] = (
                sums[k] + e * weights[a, k] + f * weights[b, k] + g * weights[c, k]
            ) + h * weights[d, k]
    for i in range(kinds - kinds % 4, kinds):
        a = int64(found[i])
        e = logarithms[min(int64(counts[a]), most)]
        for k in range(sums.size):
            sums[k] += e * weights[a, k]
    for k in range(kinds):
        counts[found[k]] = 0


@inlined
def _is_at(data: U8, at: Int, word: U8, start: Int, size: Int) -> Bool:
    """Tell whether bytes of `word` stand in `data`, which has room for them."""
    i = int64(0)
    while i < size and data[at + i] == word[start + i]:
        i += 1
    return i == size


@inlined
def _has_byte(letters: U8, at: Int, size: Int, byte: Int) -> Bool:
    i = int64(0)
    while i < size and letters[at + i] != byte:
        i += 1
    return i < size


@kernel
def rules_that_may_hold(
    page: U8,
    folded: U8,
    rules: I64Rows,
    literals: I64Rows,
    letters: U8,
    memmem: Int,
    goes_on: Bool,
    found: I32,
) -> Int:
    """Put into `found` the numbers of the rules all of whose literals are where they have to be in
    the beginning of a file, in order; returns how many.

    A rule: its priority, the row of its first literal, that behind its last, and whether these are
    all that it wants; then rules of a lower priority are left out, unless the kernel `goes_on`. A
    literal: between which offsets it begins, where it lies in `letters`, how long it is, and where
    it is to be found: 0 in the page, 1 in `folded`, which has the page's beginning in lower case; 2
    is one byte of the page, which is any of the literal's.
    """
    count, least = int64(0), -int64(1) << 62
    for rule in range(len(rules)):
        if rules[rule, 0] < least:
            break
        row, end = rules[rule, 1], rules[rule, 2]
        holds = True
        while holds and row < end:
            first, last, at, size = (
                literals[row, 0],
                literals[row, 1],
                literals[row, 2],
                literals[row, 3],
            )
            data = folded if literals[row, 4] == 1 else page
            room = len(data) - first
            if literals[row, 4] == 2:
                holds = room > 0 and _has_byte(letters, at, size, int64(data[first]))
            elif size > room:
                holds = False
            elif first == last:
                holds = _is_at(data, first, letters, at, size)
            else:
                start, stretch = data.ctypes.data + first, min(room, last - first + size)
                word = letters.ctypes.data + at
                holds = call7(memmem, start, stretch, word, size, 0, 0, 0) != 0
            row += 1
        if holds:
            found[count] = rule
            count += 1
            if rules[rule, 3] and not goes_on:
                least = rules[rule, 0]
    return count
