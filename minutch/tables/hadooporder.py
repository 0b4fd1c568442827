"""In which order Hadoop hands equal keys to a reducer: it decides ties, and so which records a limit lets through.

A map task sorts its output by partition and key with a quicksort that is not stable (`map_order`); a reduce task merges
the sorted outputs of the map tasks with a heap (`merge_order`), the smallest output first in it. For outputs that fit
into memory, which is the case for any database of a few hundred thousand records, all this is deterministic and
followed here exactly; beyond it, Hadoop's order depends on its heap's size and on timing, and the order that comes out
here is simply one of the possible ones.

Keys are 64-bit integers that compare as the serialized keys do (ranks, hash codes, bits of floats).
Matched: org.apache.hadoop.util.QuickSort and PriorityQueue, org.apache.hadoop.mapred.MapTask.MapOutputBuffer.compare,
org.apache.hadoop.mapred.Merger.MergeQueue, org.apache.hadoop.mapreduce.task.reduce.MergeManagerImpl.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]

COMPILED_FROM = 50_000
"""Records from which compiling the loops (once per machine) pays."""
_INSERTION_SORT = 13  # shorter stretches are sorted by insertion


def map_order(keys: Ints, partitions: Ints | None = None) -> Ints:
    """The order (indexes into `keys`) of a map task's output: by partition, then key, equal ones as Hadoop leaves them.

    `keys` are in the order in which the task collected them; with `partitions`, they must lie within 40 bits.
    """
    combined = keys.astype(np.int64) if partitions is None else (partitions.astype(np.int64) << 40) + keys
    combined = combined[::-1].copy()  # Hadoop's buffer grows downwards: the last record stands first
    order = np.arange(len(keys) - 1, -1, -1, dtype=np.int64)
    if len(keys) < COMPILED_FROM:
        key_list, order_list = combined.tolist(), order.tolist()
        _quicksort(key_list, order_list, len(keys))
        return np.array(order_list, dtype=np.int64)
    _compiled(_quicksort)(combined, order, len(keys))
    return order


def merge_order(segments: Sequence[Ints], sizes: Sequence[int], first: int | None = None) -> Ints:
    """The order in which a reduce task reads its sorted `segments` of keys: an array of (segment, index) rows.

    `sizes` are the segments' lengths in bytes: Hadoop puts them into the heap from the smallest to the largest. Only
    the `first` rows, if that is given.
    """
    present = sorted((i for i in range(len(segments)) if len(segments[i])), key=lambda i: sizes[i])
    total = sum(len(segments[i]) for i in present)
    total = total if first is None else min(first, total)
    result = np.empty((total, 2), dtype=np.int64)
    if len(present) == 1:
        result[:, 0] = present[0]
        result[:, 1] = np.arange(total)
    elif present:
        keys = np.concatenate([segments[i] for i in present]).astype(np.int64)
        ends = np.cumsum([len(segments[i]) for i in present])
        starts = ends - [len(segments[i]) for i in present]
        merged = np.empty(total, dtype=np.int64)
        _merge_into(keys, starts, ends, merged)
        position = np.searchsorted(ends, merged, side="right")
        result[:, 0] = np.array(present)[position]
        result[:, 1] = merged - starts[position]
    return result


def _merge_into(keys: Ints, starts: Ints, ends: Ints, merged: Ints) -> None:
    if len(keys) < COMPILED_FROM:
        merged_list = [0] * len(merged)
        _heap_merge(keys.tolist(), starts.tolist(), ends.tolist(), merged_list, [0] * (len(starts) + 1))
        merged[:] = merged_list
    else:
        _compiled(_heap_merge)(keys, starts.copy(), ends, merged, np.zeros(len(starts) + 1, dtype=np.int64))


@cache
def _compiled(function: Callable[..., Any]) -> Callable[..., Any]:
    from minutch.kernels.native import kernel

    return kernel(function)


def _quicksort(keys: Any, order: Any, n: int) -> None:
    """Sort `keys`, and `order` along with it: the steps of Hadoop's QuickSort, with a stack in place of recursion."""
    stack = [(0, n)]
    while len(stack) > 0:
        low, high = stack.pop()
        while high - low >= _INSERTION_SORT:
            for first, second in (((low + high) >> 1, low), ((low + high) >> 1, high - 1), (low, high - 1)):
                if keys[first] > keys[second]:
                    keys[first], keys[second] = keys[second], keys[first]
                    order[first], order[second] = order[second], order[first]
            pivot = keys[low]
            i, j = low, high
            left, right = low, high  # keys equal to the pivot gather at both ends
            while True:
                i += 1
                while i < j:
                    if keys[i] > pivot:
                        break
                    if keys[i] == pivot:
                        left += 1
                        if left != i:
                            keys[left], keys[i] = keys[i], keys[left]
                            order[left], order[i] = order[i], order[left]
                    i += 1
                j -= 1
                while j > i:
                    if pivot > keys[j]:
                        break
                    if keys[j] == pivot:
                        right -= 1
                        if right != j:
                            keys[right], keys[j] = keys[j], keys[right]
                            order[right], order[j] = order[j], order[right]
                    j -= 1
                if i >= j:
                    break
                keys[i], keys[j] = keys[j], keys[i]
                order[i], order[j] = order[j], order[i]
            j = i
            while left >= low:  # and move between the smaller and the larger ones
                i -= 1
                keys[left], keys[i] = keys[i], keys[left]
                order[left], order[i] = order[i], order[left]
                left -= 1
            while right < high:
                keys[right], keys[j] = keys[j], keys[right]
                order[right], order[j] = order[j], order[right]
                right += 1
                j += 1
            stack.append((low, i))
            low = j
        for i in range(low, high):
            j = i
            while j > low and keys[j - 1] > keys[j]:
                keys[j - 1], keys[j] = keys[j], keys[j - 1]
                order[j - 1], order[j] = order[j], order[j - 1]
                j -= 1


def _heap_merge(keys: Any, heads: Any, ends: Any, merged: Any, heap: Any) -> None:
    """Merge the sorted stretches of `keys` from `heads` to `ends`; `merged` gets the first positions, in order.

    `heap` (one longer than there are stretches) is Hadoop's PriorityQueue, whose first element is at 1.
    """
    size = 0
    for stretch in range(len(ends)):
        size += 1
        i, parent = size, size >> 1
        while parent > 0 and keys[heads[stretch]] < keys[heads[heap[parent]]]:
            heap[i] = heap[parent]
            i, parent = parent, parent >> 1
        heap[i] = stretch
    for count in range(len(merged)):
        merged[count] = heads[heap[1]]
        heads[heap[1]] += 1
        if heads[heap[1]] == ends[heap[1]]:
            heap[1] = heap[size]
            size -= 1
        i, child = 1, 2
        node = heap[1]
        if size > 2 and keys[heads[heap[3]]] < keys[heads[heap[2]]]:
            child = 3
        while child <= size and keys[heads[heap[child]]] < keys[heads[node]]:
            heap[i] = heap[child]
            i, child = child, child << 1
            if child < size and keys[heads[heap[child + 1]]] < keys[heads[heap[child]]]:
                child += 1
        heap[i] = node
