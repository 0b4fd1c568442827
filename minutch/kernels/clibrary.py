"""Functions of the C library of this process, called by their addresses.

memmem(data, size, word, size of it) -> the address of the word's first place in the data, 0 if
there is none
"""

from __future__ import annotations

import ctypes
from functools import cache
from typing import Final

_TRIM_THRESHOLD: Final = -1
_MMAP_THRESHOLD: Final = -3
"""glibc's numbers."""


def trim() -> None:
    """Gives memory that is free back to the system, where glibc keeps it (malloc_trim(3))."""
    library = ctypes.CDLL(None)
    if hasattr(library, "malloc_trim"):
        library.malloc_trim(0)


def give_back_large() -> None:
    """Lets glibc take each block of 1 MiB or more from the system, and give back what is freed
    (M_MMAP_THRESHOLD and M_TRIM_THRESHOLD of mallopt(3)).

    By itself it raises both bounds to the largest block that it has seen freed, up to 32 MiB and
    twice that, and keeps so much from then on, for each of the threads that came and went.
    malloc_trim does not reach it; a limit of arenas has to be set before there are threads.
    """
    library = ctypes.CDLL(None)
    if hasattr(library, "mallopt"):
        library.mallopt(_MMAP_THRESHOLD, 1 << 20)
        library.mallopt(_TRIM_THRESHOLD, 128 << 10)


@cache
def memmem() -> int:
    """The address of memmem, which glibc, musl and macOS have."""
    return ctypes.cast(ctypes.CDLL(None).memmem, ctypes.c_void_p).value or 0
