"""Kernels: functions over arrays and memory that are compiled ahead of time and called without Python's lock.

    @kernel      may be called from Python, and by other kernels
    @inner       is called by kernels alone
    @inlined     the same, and becomes part of its callers: a real call would count references to arrays
    @primitive   has no Python body; `primitives` says what machine code it stands for

A kernel is written in the part of Python that Numba understands. `build` compiles all of them to object files, once on
a machine; `library` loads those. So a job that uses kernels imports neither Numba nor a compiler.

The names of types in a kernel's signature are all that is known of its arguments:

    Int, Bool       64-bit integer, truth value
    U8 … I64, F32   array of one dimension, of unsigned, signed or floating numbers of so many bits
    Flags           array of one dimension, of truth values
    Views           int32, n × 4: strings as Arrow's binary view has them (`arrow`)
    U8Rows, I64Rows array of two dimensions

Arrays lie in memory row by row without gaps; whatever else is passed raises TypeError before the kernel runs. Kernels
hold no policy and raise nothing: what they can't make sense of they report by what they return.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from functools import cache, update_wrapper
from typing import Any, NamedTuple, NoReturn, ParamSpec, TypeAlias, TypeVar, cast

import numpy as np
import numpy.typing as npt

from minutch.errors import MinutchError

P = ParamSpec("P")
R = TypeVar("R")

Int: TypeAlias = Any
"""An integer: Python's on the way into a kernel and out of it, a machine's inside."""
Bool: TypeAlias = Any
U8: TypeAlias = npt.NDArray[np.uint8]
U32: TypeAlias = npt.NDArray[np.uint32]
U64: TypeAlias = npt.NDArray[np.uint64]
F32: TypeAlias = npt.NDArray[np.float32]
I8: TypeAlias = npt.NDArray[np.int8]
I32: TypeAlias = npt.NDArray[np.int32]
I64: TypeAlias = npt.NDArray[np.int64]
Flags: TypeAlias = npt.NDArray[np.bool_]
Views: TypeAlias = npt.NDArray[np.int32]
U8Rows: TypeAlias = npt.NDArray[np.uint8]
I64Rows: TypeAlias = npt.NDArray[np.int64]


class Shape(NamedTuple):
    """What an array has to be."""

    dtype: np.dtype[Any]
    dimensions: int


SHAPES: dict[str, Shape] = {
    "U8": Shape(np.dtype(np.uint8), 1),
    "U32": Shape(np.dtype(np.uint32), 1),
    "U64": Shape(np.dtype(np.uint64), 1),
    "F32": Shape(np.dtype(np.float32), 1),
    "I8": Shape(np.dtype(np.int8), 1),
    "I32": Shape(np.dtype(np.int32), 1),
    "I64": Shape(np.dtype(np.int64), 1),
    "Flags": Shape(np.dtype(np.bool_), 1),
    "Views": Shape(np.dtype(np.int32), 2),
    "U8Rows": Shape(np.dtype(np.uint8), 2),
    "I64Rows": Shape(np.dtype(np.int64), 2),
}
"""Name of an array's type → its shape."""
SCALARS = ("Int", "Bool")
WRONG_ARRAY = 100
"""What a kernel's function returns for an argument that is no array of the right kind."""
DATA_OFFSET = 16
"""Where in struct PyArrayObject the pointer to the elements is."""
_NDARRAY = id(np.ndarray)
_RESULTS: dict[str, Callable[[int], object]] = {"None": lambda _: None, "Bool": bool, "Int": int}


class Kernel:
    """A compiled function. Loaded, and where necessary compiled, when it is first called."""

    def __init__(self, function: Callable[..., Any]) -> None:
        update_wrapper(self, function)
        self.function = function
        self.module, self.name = function.__module__.rpartition(".")[2], function.__name__
        *parameters, result = function.__annotations__.values()
        self.parameters: tuple[str, ...] = tuple(parameters)
        self._is_array = [name not in SCALARS for name in parameters]
        self._result = _RESULTS[result]
        self._native: Any = None

    def __call__(self, *args: Any) -> Any:
        if self._native is None:
            self._native = self._load()
        if len(args) != len(self.parameters):
            self._fail(WRONG_ARRAY, args)
        # An array goes as its object's address: the function that `build` makes checks it and reads data and sizes.
        result = ctypes.c_int64()
        try:
            status = self._native(ctypes.addressof(result), _NDARRAY, *args)
        except ctypes.ArgumentError:  # NumPy's integers
            words = [value if is_array else int(value) for value, is_array in zip(args, self._is_array, strict=True)]
            status = self._native(ctypes.addressof(result), _NDARRAY, *words)
        if status:
            self._fail(status, args)
        return self._result(result.value)

    def _load(self) -> Any:
        from minutch.kernels.library import address

        _check_layout()
        words = [ctypes.py_object if is_array else ctypes.c_int64 for is_array in self._is_array]
        return ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_void_p, ctypes.c_void_p, *words)(
            address(self.module, self.name)
        )

    def _fail(self, status: int, args: tuple[Any, ...]) -> NoReturn:
        """Raise the error for a function that did not come to its end, or did not begin."""
        if status != WRONG_ARRAY:
            raise MemoryError(f"{self.module}.{self.name}: no memory")
        found = ", ".join(map(_description, args))
        raise TypeError(f"{self.module}.{self.name}: expected ({', '.join(self.parameters)}), found {found}")


@cache
def _check_layout() -> None:
    """Raise MinutchError where NumPy's arrays don't lie in memory as compiled kernels take them to."""
    array = np.zeros((2, 3), np.int32)
    if ctypes.c_void_p.from_address(id(array) + DATA_OFFSET).value != array.ctypes.data:
        raise MinutchError("kernels need CPython with its global lock: this Python lays objects out in another way")


def _description(value: object) -> str:
    if isinstance(value, np.ndarray):
        return f"{value.dtype} {value.shape} in steps of {value.strides} bytes"
    return repr(value)


def kernel(function: Callable[P, R]) -> Callable[P, R]:
    """A kernel that Python may call; all its parameters and its result are annotated."""
    return cast(Callable[P, R], Kernel(function))


def inner(function: Callable[P, R]) -> Callable[P, R]:
    """A function that only kernels call."""
    return _marked(function, "inner")


def inlined(function: Callable[P, R]) -> Callable[P, R]:
    """A small function that becomes part of the kernels that call it."""
    return _marked(function, "inlined")


def primitive(function: Callable[P, R]) -> Callable[P, R]:
    """A function that `primitives` defines by machine code."""
    return _marked(function, "primitive")


def _marked(function: Callable[P, R], kind: str) -> Callable[P, R]:
    cast(Any, function).kernel_kind = kind
    return function


@primitive
def call7(function: Int, a: Int, b: Int, c: Int, d: Int, e: Int, f: Int, g: Int) -> Int:
    """Call the C function at an address with seven integers or addresses; it may take fewer. Returns 64 bits."""


@primitive
def copy_bytes(target: Int, source: Int, size: Int) -> None:
    """memcpy by addresses."""


@primitive
def prefetch(address: Int) -> None:
    """Ask for the cache line at an address, which may be any; it is needed soon."""


@primitive
def folded_product(a: Int, b: Int) -> Int:
    """Both halves of the 128-bit product of two uint64, combined by exclusive or: a uint64."""


@primitive
def load8(address: Int) -> Int:
    """The byte at an address, as uint64."""


@primitive
def load32(address: Int) -> Int:
    """The little-endian 32-bit word at any address, as uint64."""


@primitive
def load64(address: Int) -> Int:
    """The little-endian 64-bit word at any address, as uint64."""


@primitive
def load_int(address: Int) -> Int:
    """The big-endian 32-bit integer at any address, signed."""


@primitive
def load_long(address: Int) -> Int:
    """The big-endian 64-bit integer at any address, signed."""


@primitive
def store8(address: Int, value: Int) -> None:
    """Store the low byte of an integer at an address."""


@primitive
def store32(address: Int, value: Int) -> None:
    """Store the low 32 bits of an integer, little-endian, at any address."""


@primitive
def store64(address: Int, value: Int) -> None:
    """Store an integer, little-endian, at any address."""


@inlined
def string_at(views: Views, addresses: U64, i: Int) -> Int:
    """The address of string `i` of a column (see `arrow.Strings`)."""
    if views[i, 0] <= 12:
        return np.int64(views.ctypes.data) + 16 * i + 4
    return np.int64(addresses[views[i, 2]]) + np.int64(np.uint32(views[i, 3]))
