"""Kernels for hash codes of URLs. Imported only where there is much data."""

from __future__ import annotations

import numpy as np

from minutch.kernels.native import Array, Int, kernel, load8, string_at


@kernel
def _step(value: Int, byte: Int) -> Int:
    """31 * value + the signed byte, in 32 bits."""
    return np.uint32(value * np.uint32(31) + np.uint32(byte) - np.uint32((byte & 128) << 1))


@kernel
def url_hashes(views: Array, addresses: Array, hashes: Array) -> None:
    """The hash of each string as a serialized Text (after its length as a VInt), from the last byte to the first."""
    for i in range(len(hashes)):
        address, size = string_at(views, addresses, i), np.int64(views[i, 0])
        value = np.uint32(1)
        for offset in range(size - 1, -1, -1):
            value = _step(value, load8(address + offset))
        if size < 128:
            value = _step(value, np.uint64(size))
        else:
            count = 1 if size < 1 << 8 else 2 if size < 1 << 16 else 3 if size < 1 << 24 else 4
            for number in range(count):
                value = _step(value, np.uint64((size >> (8 * number)) & 255))
            value = _step(value, np.uint64((-112 - count) & 255))
        hashes[i] = np.int32(value)
