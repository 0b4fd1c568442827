"""Functions of the C library of this process, called by their addresses.

memmem(data, size, word, size of it) -> the address of the word's first place in the data, 0 if
there is none
"""

from __future__ import annotations

import ctypes
from functools import cache


def trim() -> None:
    """Gives memory that is free back to the system, where glibc keeps it (malloc_trim(3))."""
    library = ctypes.CDLL(None)
    if hasattr(library, "malloc_trim"):
        library.malloc_trim(0)


@cache
def memmem() -> int:
    """The address of memmem, which glibc, musl and macOS have."""
    return ctypes.cast(ctypes.CDLL(None).memmem, ctypes.c_void_p).value or 0
