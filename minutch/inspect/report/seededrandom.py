"""Draws random numbers that depend on a seed, a page and a turn alone, not on order, cores or
libraries."""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

_MASK: Final = (1 << 64) - 1
_STEP: Final = 0x9E37_79B9_7F4A_7C15


def mixed_bits(numbers: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Scrambles the bits of numbers. Source: SplitMix64 (Steele, Lea, Flood 2014)."""
    numbers = (numbers ^ (numbers >> np.uint64(30))) * np.uint64(0xBF58_476D_1CE4_E5B9)
    numbers = (numbers ^ (numbers >> np.uint64(27))) * np.uint64(0x94D0_49BB_1331_11EB)
    return numbers ^ (numbers >> np.uint64(31))


def uniform(hashes: NDArray[np.uint64], seed: int, turn: int) -> NDArray[np.float64]:
    """Returns a number from 0 up to 1 for each page, by its hash."""
    salt = (seed * 0x1_0000_0001 + turn + 1) * _STEP & _MASK
    bits = mixed_bits(hashes ^ mixed_bits(np.array([salt], np.uint64)))
    found: NDArray[np.float64] = (bits >> np.uint64(11)).astype(np.float64) * 2.0**-53
    return found
