"""A kernel that runs URLs through the automaton of a sieve, whose tables
`minutch.urls.plainautomaton` makes, and that of the rule against loops in URLs.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from minutch.kernels.memory import compare, load8, load64, scratch64
from minutch.kernels.native import (
    I8,
    I32,
    I64,
    U8,
    U64,
    Bool,
    Flags,
    Int,
    StringColumn,
    Views,
    Word,
    inlined,
    inner,
    int64,
    kernel,
    string_at,
    uint64,
)
from minutch.kernels.outlinks import REJECTED, VerdictTable


@kernel
def find_loops(views: Views, addresses: U64, loops: Flags) -> None:
    """Tell whether in each string a, x, a, y, a follow each other as whole segments, none of them
    empty.
    """
    for i in range(len(loops)):
        at = string_at(views, addresses, i)
        loops[i] = has_loop(at, at + int64(views[i, 0]))


@inner
def has_loop(at: Int, end: Int) -> Bool:
    """The same for the string between two addresses."""
    start = next_slash(at, end) + 1
    # The segment before, the one before that, and one more.
    last_start, last_size = start, int64(0)
    before_start, before_size, first_size = start, int64(0), int64(0)
    # Whether they are equal to the segments two places before them.
    last_comes_back = before_comes_back = False
    at = next_slash(start, end)
    while at < end:
        size = at - start
        comes_back = (
            size > 0 and size == before_size and compare(start, size, before_start, size) == 0
        )
        # a, x, a, y, a: it equals the one two before, and that one its own.
        if comes_back and before_comes_back and last_size and first_size:
            return True
        first_size = before_size
        before_start, before_size, before_comes_back = last_start, last_size, last_comes_back
        last_start, last_size, last_comes_back = start, size, comes_back
        start = at + 1
        at = next_slash(start, end)
    return False


@inner
def next_slash(at: Int, end: Int) -> Int:
    """The address of the next slash, at least `end` if there is none."""
    ones, high = uint64(0x0101_0101_0101_0101), uint64(0x8080_8080_8080_8080)
    while at + 8 <= end:
        word: Word = load64(at) ^ (ones * uint64(_SLASH))  # a slash is a zero byte
        zeros = (word - ones) & ~word & high
        if zeros:
            below = (zeros & (~zeros + uint64(1))) - uint64(1)  # ones up to the first of them
            # The product counts the bytes up to it.
            return at - 1 + int64((below & ones) * ones >> uint64(56))
        at += 8
    while at < end and load8(at) != _SLASH:
        at += 1
    return at


ASK: Final = 0
KEEP: Final = 1
REJECT: Final = 2
TOUCHED: Final = 3
"""What is said of a URL that ends in a state; the last: a normalizer may touch it, with or without
a fragment.
"""
UNKNOWN: Final = -1
DEAD: Final = 0
FIRST: Final = 1
"""Numbers of states."""
WIDTH: Final = 128
"""Characters that a state knows: ASCII."""

_SLASH, _HASH, _MARK, _DOT, _PERCENT = b"/#?.%"


class Rules(NamedTuple):
    """The fields of the automaton (`minutch.urls.plainautomaton`), and whether normalizers cut
    fragments off and squeeze paths, and filters reject loops.
    """

    table: I32
    verdicts: U8
    cuts: Bool
    squeezes: Bool
    no_loops: Bool


@inner
def run(data: U8, start: Int, end: Int, table: I32) -> Int:
    """The state in which a string ends: UNKNOWN if one is missing on the way, DEAD if nothing is to
    be said.
    """
    state: Int = FIRST
    for k in range(start, end):
        byte = int64(data[k])
        state = int64(table[state * WIDTH + byte]) if byte < WIDTH else DEAD
        if state <= DEAD:
            break
    return state


@inner
def find_fragment(data: U8, start: Int, end: Int) -> Int:
    """Find where the fragment begins, `end` if there is none."""
    at = start
    while at < end and data[at] != _HASH:
        at += 1
    return at


@inner
def squeeze(data: U8, start: Int, end: Int, to: Int) -> Int:
    """Copy a URL to `to`, without climbs above its root and empty segments; where the copy ends.

    That is `to` if it is no plain URL, or has a query or escapes.
    """
    slashes, at, out = 0, start, to
    while at < end:
        byte = data[at]
        if byte in (_MARK, _PERCENT):
            return to
        if slashes >= 3 and byte == _SLASH and data[at - 1] == _SLASH:  # after the host
            at += 1
            continue
        slashes += byte == _SLASH
        if slashes == 3 and byte == _SLASH:
            while (
                at + 3 < end
                and data[at + 1] == _DOT
                and data[at + 2] == _DOT
                and data[at + 3] == _SLASH
            ):
                at += 3
        data[out] = byte
        out += 1
        at += 1
    return out


@inlined
def step(state: Int, byte: Int, table: I32) -> Int:
    """The next state; DEAD at what no state knows, and at a fragment."""
    return int64(table[state * WIDTH + byte]) if byte < WIDTH and byte != _HASH else DEAD


@inner
def run_on(at: Int, end: Int, state: Int, table: I32) -> Int:
    """Do the same as `run`, from a state, for a string between two addresses; URLs with a fragment
    end nowhere.
    """
    while at < end and state > DEAD:
        state = step(state, int64(load8(at)), table)
        at += 1
    return state


@kernel
def sift_column(urls: StringColumn, first: Int, said: I8, rules: Rules) -> Int:
    """Say of the URLs of a column, from row `first` on, KEEP, REJECT or ASK; the last of all that
    have a fragment.

    Stops at a URL on whose way a state is missing and returns its row, -1 at the end. URLs go
    through in pairs: each step waits for the one before it, and two can wait side by side.
    """
    views, addresses = urls
    table, verdicts, no_loops = rules.table, rules.verdicts, rules.no_loops
    states = scratch64(2)
    for row in range(first, len(said), 2):
        other = min(row + 1, len(said) - 1)  # an odd last row goes twice
        one, two = string_at(views, addresses, row), string_at(views, addresses, other)
        ends = one + int64(views[row, 0]), two + int64(views[other, 0])
        state: Int = FIRST
        second: Int = FIRST
        shorter = min(ends[0] - one, ends[1] - two)
        done = int64(0)
        while done < shorter and state > DEAD and second > DEAD:
            state = step(state, int64(load8(one + done)), table)
            second = step(second, int64(load8(two + done)), table)
            done += 1
        states[0] = run_on(one + done, ends[0], state, table)
        states[1] = run_on(two + done, ends[1], second, table)
        for k in range(other - row + 1):
            if states[k] == UNKNOWN:
                return row + k
            verdict: Int = int64(verdicts[states[k]])
            start, end = (one, ends[0]) if k == 0 else (two, ends[1])
            if verdict == TOUCHED or (no_loops and verdict == KEEP and has_loop(start, end)):
                verdict = ASK
            said[row + k] = verdict
    return -1


@kernel
def sift(first: Int, said: I64, rules: Rules, known: VerdictTable) -> None:
    """Settle what the sieve says of the URLs from number `first` on, where it is
    in `said`.

    That is UNKNOWN at first. It stays so where a state is missing, for the string that `outs` tells
    then; it becomes ASK for a URL that is to be asked about. `arena` has room for each URL once
    more.
    """
    table, verdicts, cuts, squeezes, no_loops = rules
    urls, outs, arena, state = known.urls, known.outs, known.arena, known.state
    base = int64(arena.ctypes.data)
    for row in range(len(said)):
        if said[row] != UNKNOWN:
            continue
        start, size = urls[first + row, 0], urls[first + row, 1]
        end = find_fragment(arena, start, start + size)
        # With and without its fragment: a normalizer may cut it off, filters judge what is left.
        whole: Int = run(arena, start, start + size, table)
        last: Int = whole if end == start + size else run(arena, start, end, table)
        # Tells the caller on which string a state is missing.
        outs[first + row, 0], outs[first + row, 1] = start, size
        if min(whole, last) == UNKNOWN:
            continue
        verdict: Int = int64(verdicts[last])
        if whole == DEAD or verdicts[whole] == TOUCHED or (end < start + size and not cuts):
            verdict = TOUCHED
        # Perhaps only its path is not normal: judge what the normalizer would make of it.
        elif verdict == ASK and squeezes and end == start + size:
            end = squeeze(arena, start, end, state[1])
            start = state[1]
            last = run(arena, start, end, table)
            verdict = int64(verdicts[last]) if last != UNKNOWN else UNKNOWN
            if verdict in (KEEP, UNKNOWN):
                outs[first + row, 0], outs[first + row, 1] = start, end - start
                state[1] = end
            if verdict == UNKNOWN:
                continue
        if no_loops and verdict == KEEP and has_loop(base + start, base + end):
            verdict = ASK
        said[row] = verdict if verdict != TOUCHED else ASK
        if verdict == KEEP:
            outs[first + row, 0], outs[first + row, 1] = start, end - start
        elif verdict == REJECT:
            outs[first + row, 1] = REJECTED
