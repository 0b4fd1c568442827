"""A kernel that numbers the distinct strings of a column."""

from __future__ import annotations

import numpy as np

from minutch.kernels.memory import compare
from minutch.kernels.native import I32, U32, U64, Column, Int, Views, int64, kernel, string_at
from minutch.kernels.seeded import SEED, string_hash


def numbered(strings: Column) -> tuple[U32, U32]:
    """The first row of each distinct string, in the order in which they come, and the number of
    each row's string.
    """
    count = len(strings.views)
    slots = np.zeros(1 << max(4, (2 * count).bit_length()), np.int32)
    hashes = np.empty(count, np.uint64)
    rows, numbers = np.empty(count, np.uint32), np.empty(count, np.uint32)
    found = number(strings.views, strings.addresses, SEED, slots, hashes, rows, numbers)
    return rows[:found], numbers


@kernel
def number(
    views: Views, addresses: U64, seed: Int, slots: I32, hashes: U64, rows: U32, numbers: U32
) -> Int:
    """Number the strings: equal ones have one number, in the order in which they come first.

    Fills `numbers` with that of each string and `rows` with the first row of each number; returns
    how many there are. `slots` are zeros, a power of two of them and more than there are strings;
    `hashes` has room for each string. `seed` as in `seeded`.
    """
    mask = len(slots) - 1
    count = int64(0)
    for i in range(len(views)):
        size, at = int64(views[i, 0]), string_at(views, addresses, i)
        code = string_hash(at, size, seed)
        slot = int64(code) & mask
        while slots[slot]:
            known = int64(slots[slot]) - 1
            row = int64(rows[known])
            if (
                hashes[known] == code
                and compare(string_at(views, addresses, row), int64(views[row, 0]), at, size) == 0
            ):
                numbers[i] = known
                break
            slot = (slot + 1) & mask
        else:
            slots[slot] = count + 1
            hashes[count] = code
            rows[count] = i
            numbers[i] = count
            count += 1
    return count
