"""Kernels that find where two columns of sorted strings meet, and that sort short runs of numbers."""

from __future__ import annotations

import numpy as np

from minutch.kernels.layout import compare
from minutch.kernels.native import Array, Int, kernel, string_at


@kernel
def meet(
    views: Array,
    addresses: Array,
    table_views: Array,
    table_addresses: Array,
    group: Array,
    at: Array,
    before: Array,
) -> Int:
    """Number the distinct strings of a sorted column and look them up in a sorted table, in one walk over both.

    Fills `group` (of each string, the number), `at` (of each number, the first row of the table with that string, or
    -1) and `before` (of each number, the rows of the table with smaller strings). Returns how many numbers there are.
    """
    count = 0
    row = 0
    rows = len(table_views)
    for i in range(len(views)):
        here, size = string_at(views, addresses, i), np.int64(views[i, 0])
        if count:
            last = string_at(views, addresses, i - 1)  # often the same place; see `pack` of the sort
            if last == here or compare(last, np.int64(views[i - 1, 0]), here, size) == 0:
                group[i] = count - 1
                continue
        found = -1
        while row < rows:
            order = compare(string_at(table_views, table_addresses, row), np.int64(table_views[row, 0]), here, size)
            if order >= 0:
                if order == 0:
                    found = row
                break
            row += 1
        group[i] = count
        at[count] = found
        before[count] = row
        count += 1
    return count


@kernel
def first_repeat(views: Array, addresses: Array) -> Int:
    """The first row of a column whose string is that of the row before; -1 if there is none."""
    for i in range(1, len(views)):
        if views[i, 0] == views[i - 1, 0]:
            here, before = string_at(views, addresses, i), string_at(views, addresses, i - 1)
            size = np.int64(views[i, 0])
            if compare(before, size, here, size) == 0:
                return i
    return -1


@kernel
def sort_runs(group: Array, values: Array, order: Array) -> None:
    """Fill `order` with the rows by group (which ascends), and within a group by descending value, stably."""
    n = len(group)
    start = 0
    while start < n:
        end = start + 1
        while end < n and group[end] == group[start]:
            end += 1
        if end - start <= 32:
            for i in range(start, end):
                value, to = values[i], i
                while to > start and values[order[to - 1]] < value:
                    order[to] = order[to - 1]
                    to -= 1
                order[to] = i
        else:
            found = np.argsort(-values[start:end], kind="mergesort")
            for i in range(end - start):
                order[start + i] = start + found[i]
        start = end
