"""Kernels run from their Python sources, on NumPy: slow, for debugging (`MINUTCH_KERNELS=python`).

A kernel's code runs with other globals than its module's: what it calls is interpreted too, and
`int64` and its like make numbers that wrap as compiled ones do. Machine integers of up to 64 signed
bits are Python's, uint64 is NumPy's; elements of arrays are read as such, and cut to their type
when they are stored.
"""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Callable
from threading import RLock
from types import FunctionType
from typing import Any, Final

import numpy as np


def _signed(bits: int) -> Callable[[Any], int]:
    half, mask = 1 << (bits - 1), (1 << bits) - 1

    def number(value: Any = 0) -> int:
        return ((int(value) & mask) ^ half) - half

    return number


def _unsigned(bits: int) -> Callable[[Any], int]:
    mask = (1 << bits) - 1

    def number(value: Any = 0) -> int:
        return int(value) & mask

    return number


def _uint64(value: Any = 0) -> np.uint64:
    return np.uint64(int(value) & 0xFFFF_FFFF_FFFF_FFFF)


_NUMBERS: Final[dict[str, Any]] = {
    **{f"int{bits}": _signed(bits) for bits in (8, 16, 32, 64)},
    **{f"uint{bits}": _unsigned(bits) for bits in (8, 16, 32)},
    "uint64": _uint64,
    "float32": np.float32,
    "bool": bool,
}
"""Name of a type → what makes a number of it."""


class _Array:
    """An array whose elements are read and stored as compiled code does; slices are such arrays
    too.
    """

    __slots__ = ("_make", "array")

    def __init__(self, array: np.ndarray[Any, Any]) -> None:
        self.array, self._make = array, _NUMBERS[array.dtype.name]

    def __getitem__(self, key: Any) -> Any:
        found = self.array[key]
        return _Array(found) if isinstance(found, np.ndarray) else self._make(found)

    def __setitem__(self, key: Any, value: Any) -> None:
        self.array[key] = value.array if isinstance(value, _Array) else self._make(value)

    def __len__(self) -> int:
        return len(self.array)

    def __getattr__(self, name: str) -> Any:  # size, shape, ctypes
        return getattr(self.array, name)


_namespaces: dict[str, dict[str, Any]] = {}
_functions: dict[Any, Any] = {}
_making = RLock()
"""Held while these are filled: a function is there before its globals are."""


def _interpreted(function: Any) -> Any:
    """A function of a kernel module with globals to be interpreted with; those are there when it is
    called.
    """
    if function not in _functions:
        module = function.__module__
        is_new = module not in _namespaces
        names = _namespaces.setdefault(module, {})
        _functions[function] = FunctionType(
            function.__code__, names, function.__name__, function.__defaults__
        )
        if is_new:
            names |= {
                name: _counterpart(name, value) for name, value in vars(sys.modules[module]).items()
            }
    return _functions[function]


def _counterpart(name: str, value: Any) -> Any:
    """The counterpart of a global of a module's kernels when they are interpreted."""
    if isinstance(value, np.ndarray):
        return _Array(value)
    if isinstance(value, type) and issubclass(value, np.integer):
        return _NUMBERS[value.__name__]
    kind = getattr(value, "kernel_kind", None)
    if kind == "kernel":
        return _interpreted(value.function)
    if kind == "primitive":
        return _wrapped(value) if name.startswith("scratch") else value
    return _interpreted(value) if kind else value


def _wrapped(primitive: Callable[[Any], Any]) -> Callable[[Any], _Array]:
    return lambda size: _Array(primitive(size))


def _fits(value: Any, shape: Any) -> bool:
    if not isinstance(value, np.ndarray) or not value.flags.c_contiguous:
        return False
    return bool(value.dtype == shape.dtype and value.ndim == shape.dimensions)


def function_of(kernel: Any) -> Callable[..., int]:
    """The substitute for the C function of a `native.Kernel`: takes the same, and returns the same
    status.
    """
    with _making:
        function = _interpreted(kernel.function)
    shapes = kernel.shapes()

    def run(result: int, ndarray: int, *args: Any) -> int:
        given = []
        for value, shape in zip(args, shapes, strict=True):
            if shape is None:
                given.append(_NUMBERS["int64"](value))
            elif _fits(value, shape):
                given.append(_Array(value))
            else:
                return int(kernel.WRONG)
        with np.errstate(over="ignore"):
            found = function(*kernel.together(given))
        if found is not None:
            ctypes.c_int64.from_address(result).value = _NUMBERS["int64"](found)
        return 0

    return run
