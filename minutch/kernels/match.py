"""Kernels that find where two columns of sorted strings meet, and that sort short runs of
numbers.
"""

from __future__ import annotations

import numpy as np

from minutch.kernels.memory import compare
from minutch.kernels.native import F32, I64, U64, Int, Views, inner, int64, kernel, string_at


@kernel
def meet(
    views: Views,
    addresses: U64,
    table_views: Views,
    table_addresses: U64,
    group: I64,
    at: I64,
    before: I64,
) -> Int:
    """Number the distinct strings of a sorted column and look them up in a sorted table, in one
    walk over both.

    Fills `group` (of each string, the number), `at` (of each number, the first row of the table
    with that string, or -1) and `before` (of each number, the rows of the table with smaller
    strings). Returns how many numbers there are.
    """
    count = 0
    row = 0
    rows = len(table_views)
    for i in range(len(views)):
        here, size = string_at(views, addresses, i), int64(views[i, 0])
        if count:
            last = string_at(
                views, addresses, i - 1
            )  # often the same place; see `pack` of the sort
            if last == here or compare(last, int64(views[i - 1, 0]), here, size) == 0:
                group[i] = count - 1
                continue
        found = -1
        while row < rows:
            order = compare(
                string_at(table_views, table_addresses, row),
                int64(table_views[row, 0]),
                here,
                size,
            )
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


def sort_runs(group: I64, values: F32, order: I64) -> None:
    """Fill `order` with the rows by group (which ascends), and within a group by descending value,
    stably.
    """
    sort_runs_in(group, values, order, np.empty(len(group), np.int64))


@kernel
def sort_runs_in(group: I64, values: F32, order: I64, spare: I64) -> None:
    """Do the same as `sort_runs`, with room for as many rows."""
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
            for i in range(start, end):
                order[i] = i
            merge_sort(values, order, start, end, spare)
        start = end


@inner
def merge_sort(values: F32, order: I64, start: Int, end: Int, spare: I64) -> None:
    """Sort the rows in order[start:end] by descending value, stably: runs of growing width are
    merged in pairs.
    """
    width = 1
    while width < end - start:
        for low in range(start, end - width, 2 * width):
            middle, high = low + width, min(low + 2 * width, end)
            if values[order[middle]] <= values[order[middle - 1]]:
                continue
            left, right, to = low, middle, 0
            while left < middle and right < high:
                if values[order[right]] > values[order[left]]:
                    spare[to] = order[right]
                    right += 1
                else:
                    spare[to] = order[left]
                    left += 1
                to += 1
            while left < middle:
                spare[to] = order[left]
                left += 1
                to += 1
            for i in range(to):
                order[low + i] = spare[i]
        width *= 2
