"""Kernels: functions over arrays and memory that are compiled at installation and called without
Python's lock.

    @kernel      may be called from Python, and by other kernels
    @callback    a C function of one address, for other libraries; Python asks for its address alone
    @inner       is called by kernels alone
    @inlined     the same, and becomes part of its callers
    @primitive   stands for a few machine instructions (`intrinsics`); its Python body is for the
                 interpreted mode

A kernel is written in the part of Python that Numba understands. `build` compiles all of them and
links one shared library, which `library` loads: neither Numba nor a compiler is there when a job
runs. `library` runs the same source without a compiler, slowly, for debugging.

The names of types in a kernel's signature are all that is known of its arguments:

    Int, Bool       64-bit integer, truth value
    Word            unsigned 64-bit integer, between kernels alone
    U8 … I64, F32   array of one dimension, of unsigned, signed or floating numbers of so many bits
    Flags           array of one dimension, of truth values
    Views           int32, n × 4: strings as Arrow's binary view has them (`arrow`)
    U8Rows, I64Rows, F32Rows  array of two dimensions

    a NamedTuple    of these, by its name in the kernel's module: arguments that belong together

Arrays lie in memory row by row without gaps; whatever else is passed raises TypeError before the
kernel runs. Kernels hold no policy, raise nothing and ask for no memory: what they can't make sense
of they report by what they return, and room comes from their callers, or with a fixed size from the
stack (`scratch`).
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterable, Sequence
from enum import IntEnum, auto
from functools import cache, update_wrapper
from itertools import islice
from typing import (
    Any,
    Final,
    NamedTuple,
    NoReturn,
    ParamSpec,
    Protocol,
    SupportsInt,
    TypeAlias,
    TypeVar,
    cast,
)

import numpy as np
import numpy.typing as npt

from minutch.errors import MinutchError

P = ParamSpec("P")
R = TypeVar("R")

Int: TypeAlias = int
"""An integer: Python's on the way into a kernel and out of it, a machine's inside."""
Bool: TypeAlias = bool
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
F32Rows: TypeAlias = npt.NDArray[np.float32]


class Word(Protocol):
    """A uint64 inside a kernel. It is combined with its like alone: to the compiler, the sum of a
    uint64 and an int64 is a floating number.
    """

    def __add__(self, other: Word, /) -> Word: ...
    def __sub__(self, other: Word, /) -> Word: ...
    def __mul__(self, other: Word, /) -> Word: ...
    def __mod__(self, other: Word, /) -> Word: ...
    def __and__(self, other: Word, /) -> Word: ...
    def __or__(self, other: Word, /) -> Word: ...
    def __xor__(self, other: Word, /) -> Word: ...
    def __lshift__(self, other: Word, /) -> Word: ...
    def __rshift__(self, other: Word, /) -> Word: ...
    def __invert__(self) -> Word: ...
    def __eq__(self, other: object, /) -> Bool: ...
    def __hash__(self) -> int: ...
    def __lt__(self, other: Word | Int, /) -> Bool: ...
    def __le__(self, other: Word | Int, /) -> Bool: ...
    def __gt__(self, other: Word | Int, /) -> Bool: ...
    def __ge__(self, other: Word | Int, /) -> Bool: ...
    def __int__(self) -> Int: ...
    def __index__(self) -> Int: ...


def _integer(kind: type[np.integer[Any]]) -> Callable[[SupportsInt], Int]:
    """Returns what makes machine integers of a kind: NumPy's type, whose numbers are Ints to
    kernels.
    """
    return cast(Callable[[SupportsInt], Int], kind)


int8, int32, int64 = _integer(np.int8), _integer(np.int32), _integer(np.int64)
uint8, uint32 = _integer(np.uint8), _integer(np.uint32)
uint64 = cast(Callable[[SupportsInt], Word], np.uint64)


class Shape(NamedTuple):
    """The type and the dimensions that an array must have."""

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
    "F32Rows": Shape(np.dtype(np.float32), 2),
}
"""Name of an array's type → its shape."""
SCALARS = ("Int", "Bool")
LETTERS: Final = {
    "uint8": "BB",
    "int8": "bb",
    "uint32": "II",
    "int32": "ii",
    "uint64": "LQ",
    "int64": "lq",
    "float32": "ff",
    "bool": "??",
}
"""Kind of element → its letters: long and long long may have the same size."""
OTHER_AT: Final = 8
DIMENSIONS_AT: Final = 16
"""Bits of the word that says which kind of array an argument is: a letter, another one, how many
dimensions.
"""
DATA_OFFSET: Final = 16
"""The offset of the pointer to the elements in struct PyArrayObject."""
MOST_WORDS: Final = 64
"""Arguments of a kernel, those in records counted apart."""
WRONG: Final = ...
"""What a call returns whose arguments are none of the kernel's."""


class CallWords(IntEnum):
    """The places of words in the array by which a kernel is called. Then come, for each argument,
    the type of the record that it is or 0, how many fields, and what each is: 0, or a kind of
    array.
    """

    ENTRY = 0
    COUNT = auto()
    RESULT = auto()
    """What the kernel's result is before it says one."""
    WRONG = auto()
    NDARRAY = auto()
    AS_INTEGER = auto()
    AS_OBJECT = auto()
    ERROR = auto()
    TUPLE_ITEM = auto()
    NEW_REFERENCE = auto()
    LET_GO = auto()
    TAKE_BACK = auto()
    ARGUMENTS = auto()


class Kernel:
    """A compiled function, loaded when it is first called."""

    WRONG: Final = WRONG

    def __init__(self, function: Callable[..., Any]) -> None:
        update_wrapper(self, function)
        self.function, self.kernel_kind = function, "kernel"
        self.module, self.name = function.__module__.rpartition(".")[2], function.__name__
        # Annotations are strings here: the names of types.
        *arguments, result = function.__annotations__.values()
        self._records: list[Any] = [_record(function, name) for name in arguments]
        self.arity = len(self._records)
        self.parameters: tuple[str, ...] = tuple(
            name
            for argument, record in zip(arguments, self._records, strict=True)
            for name in (_names(record) if record else [argument])
        )
        self.result: str = result
        self._is_array = [name not in SCALARS for name in self.parameters]
        self._native: Any = None

    def __call__(self, *args: Any) -> Any:
        if self._native is None:
            self._native = self._load()
        try:
            found = self._native(*args)
        except TypeError:  # numbers that int() makes integers of, as NumPy's truth values
            fields = zip(self.apart(args), self._is_array, strict=True)
            words = [value if is_array else int(value) for value, is_array in fields]
            found = self._native(*self.together(words))
        if found is WRONG:
            self._fail(args)
        return found

    def _load(self) -> Any:
        from minutch.kernels.library import find_kernel

        _check_layout()
        return find_kernel(self)

    def apart(self, args: Sequence[Any]) -> tuple[Any, ...]:
        """The arguments with the fields of records instead of them: as many as `parameters`. Raises
        TypeError.
        """
        if len(args) != len(self._records):
            self._fail(args)
        found: list[Any] = []
        for value, record in zip(args, self._records, strict=True):
            if record is None:
                found.append(value)
            elif isinstance(value, record):
                found += value
            else:
                self._fail(args)
        return tuple(found)

    def together(self, values: Iterable[Any]) -> list[Any]:
        """The arguments again, from what `apart` made of them."""
        rest = iter(values)
        return [
            record(*islice(rest, len(record._fields))) if record else next(rest)
            for record in self._records
        ]

    def shapes(self) -> list[Shape | None]:
        """The shape of each parameter; None for numbers."""
        return [SHAPES.get(name) for name in self.parameters]

    def table(self, **addresses: int) -> I64:
        """What the library needs to call it: a `CallWords`, some of whose words are addresses."""
        found = {CallWords[name.upper()]: address for name, address in addresses.items()} | {
            CallWords.COUNT: self.arity,
            CallWords.RESULT: id(None) if self.result == "None" else 0,
            CallWords.WRONG: id(WRONG),
            CallWords.NDARRAY: id(np.ndarray),
        }
        words, shapes = [found[place] for place in sorted(found)], iter(self.shapes())
        for record in self._records:
            fields = [*islice(shapes, len(record._fields) if record else 1)]
            words += [id(record) if record else 0, len(fields), *map(_word_of, fields)]
        return np.array(words, np.int64)

    def _fail(self, args: Sequence[Any]) -> NoReturn:
        """Raise the error for arguments that are not those which the kernel takes."""
        found = ", ".join(map(_description, args))
        raise TypeError(
            f"{self.module}.{self.name}: expected ({', '.join(self.parameters)}), found {found}"
        )


def _word_of(shape: Shape | None) -> int:
    """The word for a field of a `CallWords`."""
    if shape is None:
        return 0
    letter, other = map(ord, LETTERS[shape.dtype.name])
    return letter | other << OTHER_AT | shape.dimensions << DIMENSIONS_AT


class Callback:
    """A function that other libraries call by its address, from any thread, without Python's
    lock.
    """

    def __init__(self, function: Callable[[Int], None]) -> None:
        self.function = function
        self.module, self.name = function.__module__.rpartition(".")[2], function.__name__

    def address(self) -> int:
        """The address of the C function, void f(void *)."""
        from minutch.kernels.library import find_callback

        return find_callback(self)


def _record(function: Callable[..., Any], name: str) -> Any:
    """The NamedTuple that a kernel's argument is, by the name of its type; None for others."""
    return None if name in SHAPES or name in SCALARS else function.__globals__[name]


def _names(record: Any) -> list[str]:
    """The names of the types of a record's fields."""
    return [getattr(kind, "__forward_arg__", kind) for kind in record.__annotations__.values()]


@cache
def _check_layout() -> None:
    """Raise MinutchError where NumPy's arrays don't lie in memory as compiled kernels take them
    to.
    """
    array = np.zeros((2, 3), np.int32)
    if ctypes.c_void_p.from_address(id(array) + DATA_OFFSET).value != array.ctypes.data:
        raise MinutchError(
            "kernels need CPython with its global lock: this Python lays objects out in another way"
        )


def _description(value: object) -> str:
    if isinstance(value, np.ndarray):
        return f"{value.dtype} {value.shape} in steps of {value.strides} bytes"
    return repr(value)


def kernel(function: Callable[P, R]) -> Callable[P, R]:
    """A kernel that Python may call; all its parameters and its result are annotated."""
    return cast(Callable[P, R], Kernel(function))


def callback(function: Callable[[Int], None]) -> Callback:
    """A C function that takes one address; it reaches memory by primitives alone."""
    return Callback(function)


def inner(function: Callable[P, R]) -> Callable[P, R]:
    """A function that only kernels call."""
    return _marked(function, "inner")


def inlined(function: Callable[P, R]) -> Callable[P, R]:
    """A small function that becomes part of the kernels that call it."""
    return _marked(function, "inlined")


def primitive(function: Callable[P, R]) -> Callable[P, R]:
    """A function that `intrinsics` defines by machine code."""
    return _marked(function, "primitive")


def _marked(function: Callable[P, R], kind: str) -> Callable[P, R]:
    cast(Any, function).kernel_kind = kind
    return function


class StringColumn(NamedTuple):
    """The fields of a column of byte strings, as `string_at` takes them (see `arrow.Strings`)."""

    views: Views
    addresses: U64


class Slices(NamedTuple):
    """The fields of byte strings in a buffer: all bytes, offsets and lengths."""

    bytes: U8
    at: I64
    length: I32


@inlined
def string_at(views: Views, addresses: U64, i: Int) -> Int:
    """The address of string `i` of a column (see `arrow.Strings`)."""
    if views[i, 0] <= 12:
        return int64(views.ctypes.data) + 16 * i + 4
    return int64(addresses[views[i, 2]]) + int64(uint32(views[i, 3]))
