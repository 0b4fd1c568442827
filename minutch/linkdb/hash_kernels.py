"""Kernels for hash codes of strings. Imported only where there is much data."""

from __future__ import annotations

import numpy as np

from minutch.formats.columns_native import Array, kernel, load8, string_at


@kernel
def string_hashes(views: Array, addresses: Array, hashes: Array, plain: Array) -> None:
    """String.hashCode of each ASCII string into `hashes`; `plain` tells which ones are ASCII."""
    for i in range(len(hashes)):
        address = string_at(views, addresses, i)
        value, seen = np.uint32(0), np.uint64(0)
        for offset in range(views[i, 0]):
            byte = load8(address + offset)
            seen |= byte
            value = np.uint32(value * np.uint32(31) + np.uint32(byte))
        hashes[i] = np.int32(value)
        plain[i] = seen < 128
