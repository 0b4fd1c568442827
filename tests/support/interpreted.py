"""Each call of a kernel made twice: interpreted, then compiled, over the same arrays; both have to
leave the same.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from threading import RLock
from typing import Any

import numpy as np
import pytest

from minutch.kernels.library import function_of
from minutch.kernels.native import Kernel

calls: Counter[str] = Counter()
"""Of each kernel, the calls that were compared."""

MOST = 500
"""Rows up to which a call is made twice: interpreted kernels take some 100 µs for each."""
OFTEN = 150
"""Calls of a kernel that are made twice, in each process."""

_compiled = Kernel.__call__
_alone = RLock()
"""Threads may share what a kernel writes to."""


def _both(kernel: Kernel, *args: Any) -> Any:
    name, fields = f"{kernel.module}.{kernel.name}", kernel.apart(args)
    if calls[name] >= OFTEN or any(
        isinstance(value, np.ndarray) and value.dtype != np.uint8 and len(value) > MOST
        for value in fields
    ):
        return _compiled(kernel, *args)
    arrays = [value for value in fields if isinstance(value, np.ndarray) and value.flags.writeable]
    before = [array.copy() for array in arrays]
    result = function_of(kernel)(*args)
    if result is kernel.WRONG:
        return _compiled(kernel, *args)  # which says what is wrong
    interpreted = [array.copy() for array in arrays]
    for array, old in zip(arrays, before, strict=True):
        array[...] = old
    found = _compiled(kernel, *args)
    assert found == result, f"{name}: {found} compiled, {result} interpreted"
    for number, (array, other) in enumerate(zip(arrays, interpreted, strict=True)):
        if array.tobytes() != other.tobytes():
            np.testing.assert_array_equal(
                array, other, f"{name}: array {number}, compiled and interpreted"
            )
    calls[name] += 1
    return found


def _one_at_a_time(kernel: Kernel, *args: Any) -> Any:
    with _alone:
        return _both(kernel, *args)


@contextmanager
def both_ways() -> Iterator[None]:
    """All kernels that are called meanwhile run both ways."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Kernel, "__call__", _one_at_a_time)
        yield


@pytest.fixture(autouse=True)
def compared() -> Iterator[None]:
    """Runs all kernels both ways in the tests that import it, from a conftest.py or a module."""
    with both_ways():
        yield
