"""The primitives of kernels: memory by its address, calls of C functions, room on the stack.

Compiled, each is a few machine instructions (`intrinsics`). The bodies here are what the
interpreted mode runs.
"""

from __future__ import annotations

import ctypes
import sys

import numpy as np

from minutch.kernels.native import I32, I64, Int, Word, primitive, uint64

_U64 = (1 << 64) - 1
_WORD = ctypes.c_int64
_FUNCTION = ctypes.CFUNCTYPE(_WORD, *7 * [_WORD])


@primitive
def call7(function: Int, a: Int, b: Int, c: Int, d: Int, e: Int, f: Int, g: Int) -> Int:
    """Call the C function at an address with seven integers or addresses; it may take fewer.
    Returns 64 bits.
    """
    return int(_FUNCTION(int(function))(*map(int, (a, b, c, d, e, f, g))))


@primitive
def copy_bytes(target: Int, source: Int, size: Int) -> None:
    """memcpy by addresses."""
    ctypes.memmove(int(target), int(source), int(size))


@primitive
def prefetch(address: Int) -> None:
    """Ask for the cache line at an address, which may be any; it is needed soon."""


@primitive
def folded_product(a: Word, b: Word) -> Word:
    """Both halves of the 128-bit product of two uint64, combined by exclusive or: a uint64."""
    product = int(a) * int(b)
    return uint64((product ^ product >> 64) & _U64)


@primitive
def load8(address: Int) -> Word:
    """The byte at an address, as uint64."""
    return uint64(ctypes.c_uint8.from_address(int(address)).value)


@primitive
def load32(address: Int) -> Word:
    """The little-endian 32-bit word at any address, as uint64."""
    return uint64(_number(address, 4))


@primitive
def load64(address: Int) -> Word:
    """The little-endian 64-bit word at any address, as uint64."""
    return uint64(_number(address, 8))


@primitive
def load_int(address: Int) -> Int:
    """The big-endian 32-bit integer at any address, signed."""
    return int.from_bytes(ctypes.string_at(int(address), 4), "big", signed=True)


@primitive
def load_long(address: Int) -> Int:
    """The big-endian 64-bit integer at any address, signed."""
    return int.from_bytes(ctypes.string_at(int(address), 8), "big", signed=True)


@primitive
def store8(address: Int, value: Int | Word) -> None:
    """Store the low byte of an integer at an address."""
    _store(address, value, 1)


@primitive
def store32(address: Int, value: Int | Word) -> None:
    """Store the low 32 bits of an integer, little-endian, at any address."""
    _store(address, value, 4)


@primitive
def store64(address: Int, value: Int | Word) -> None:
    """Store an integer, little-endian, at any address."""
    _store(address, value, 8)


@primitive
def scratch32(size: Int) -> I32:
    """Zeros on the stack, which go with the kernel that asks for them; `size` is a constant."""
    return np.zeros(int(size), np.int32)


@primitive
def scratch64(size: Int) -> I64:
    """Zeros of 64 bits each, otherwise as `scratch32`."""
    return np.zeros(int(size), np.int64)


def _number(address: Int, size: int) -> int:
    return int.from_bytes(ctypes.string_at(int(address), size), sys.byteorder)


def _store(address: Int, value: Int | Word, size: int) -> None:
    data = (int(value) & ((1 << 8 * size) - 1)).to_bytes(size, sys.byteorder)
    ctypes.memmove(int(address), data, size)
