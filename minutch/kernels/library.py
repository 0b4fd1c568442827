"""The shared library of compiled kernels: `_kernels.<system>-<machine>.so` beside this module; and
kernels run from their Python sources.

An installation makes the library (`build`, `wheel`); it carries a digest of the kernels' sources,
so a checkout whose kernels have changed since is told from one that has not. This is the one module
that looks at `MINUTCH_KERNELS` in the environment: where it is `python`, there is no library.

Interpreted, on NumPy, kernels are slow, for debugging. Their code runs with other globals than its
module's: what it calls is interpreted too, and `int64` and its like make numbers that wrap as
compiled ones do. Machine integers of up to 64 signed bits are Python's, uint64 is NumPy's; elements
of arrays are read as such, and cut to their type when they are stored.
"""

from __future__ import annotations

import ctypes
import hashlib
import os
import platform
import sys
from collections.abc import Callable
from functools import cache
from pathlib import Path
from threading import RLock
from types import FunctionType
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from minutch.errors import MinutchError

if TYPE_CHECKING:
    from minutch.kernels.native import Callback, Kernel


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
    # Registered before its globals exist, as these may lead back to it.
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
        # Integers in it have to wrap, too.
        return (lambda size: _Array(value(size))) if name.startswith("scratch") else value
    return _interpreted(value) if kind else value


def _fits(value: Any, shape: Any) -> bool:
    if not isinstance(value, np.ndarray) or not value.flags.c_contiguous:
        return False
    return bool(value.dtype == shape.dtype and value.ndim == shape.dimensions)


def function_of(kernel: Kernel) -> Callable[..., Any]:
    """The substitute for what calls a compiled kernel: takes the same, and returns the same."""
    with _making:
        function = _interpreted(kernel.function)
    shapes, result = kernel.shapes(), kernel.result

    def run(*args: Any) -> Any:
        given = []
        for value, shape in zip(kernel.apart(args), shapes, strict=True):
            if shape is None:
                given.append(_NUMBERS["int64"](value))
            elif _fits(value, shape):
                given.append(_Array(value))
            else:
                return kernel.WRONG
        with np.errstate(over="ignore"):  # compiled uint64 wraps silently
            found = function(*kernel.together(given))
        return {"None": lambda _: None, "Bool": bool, "Int": _NUMBERS["int64"]}[result](found)

    return run


FOLDER: Final = Path(__file__).parent
PATH: Final = FOLDER / f"_kernels.{sys.platform}-{platform.machine().lower()}.so"
PREFIX: Final = "minutch_"
"""The prefix of the library's own symbols."""
MARK: Final = PREFIX + "digest"
"""The symbol of the digest of the sources."""
CALL: Final = PREFIX + "call"
"""The symbol of what Python calls."""
DIGEST_SIZE: Final = 16
BASELINE: Final = "x86-64" if platform.machine().lower() in {"x86_64", "amd64"} else "generic"
"""The processor that all kernels are compiled for, by LLVM's name."""
NEWER: Final = "x86-64-v3"
"""The level that nearly all x86-64 processors since 2015 have."""
FASTER_ON_NEWER: Final = ("simhash",)
"""Modules that are compiled for NEWER too: 1.8 times as fast there. Others gain a tenth at most."""
PROCESSORS: Final = Path("/proc/cpuinfo")
_NEWER_HAS: Final = {"avx", "avx2", "bmi1", "bmi2", "f16c", "fma", "abm", "movbe"}
"""The flags in PROCESSORS that tell NEWER from the processors before it."""
_HINT: Final = (
    "`pip install` of the checkout makes them, as bin/minutch does, or `python -m"
    " minutch.kernels.build` where Numba is installed; MINUTCH_KERNELS=python does without them,"
    " slowly"
)
_NOT_COMPILED: Final = ("__init__", "arrow", "library", "clibrary", "link", "wheel")
"""Modules of this folder that no machine code depends on."""


@cache
def is_interpreted() -> bool:
    """Tell whether kernels are to be interpreted: MINUTCH_KERNELS=python."""
    return os.environ.get("MINUTCH_KERNELS") == "python"


@cache
def _sources() -> dict[str, bytes]:
    """The modules that the library is made of."""
    found = {path.stem: path.read_bytes() for path in sorted(FOLDER.glob("*.py"))}
    return {name: source for name, source in found.items() if name not in _NOT_COMPILED}


def modules() -> list[str]:
    """The modules that hold kernels."""
    # Told by the text, so that nothing is imported.
    return [name for name, source in _sources().items() if b"\n@kernel\n" in source]


def size_of(module: str) -> int:
    """Bytes of a module's source."""
    return len(_sources()[module])


def digest() -> bytes:
    """The digest of the sources that the library is made of."""
    return hashlib.blake2b(b"".join(_sources().values()), digest_size=DIGEST_SIZE).digest()


def symbol(function: Kernel | Callback, processor: str = BASELINE) -> str:
    """The name of the C function of a kernel that is compiled for a processor."""
    variant = "" if processor == BASELINE else processor.replace("-", "_") + "_"
    return f"{PREFIX}{variant}{function.module}_{function.name}"


@cache
def is_newer() -> bool:
    """Tell whether this processor is a NEWER one; where the system doesn't tell, it is not."""
    try:
        with PROCESSORS.open(encoding="ascii", errors="replace") as lines:
            flags = next((line for line in lines if line.startswith("flags")), "")
    except OSError:
        return False
    return set(flags.split()) >= _NEWER_HAS


def is_built() -> bool:
    """Tell whether the library is there and made of these sources."""
    try:
        return _mark(ctypes.CDLL(str(PATH))) == digest()
    except (OSError, ValueError):  # missing, for another machine, without a mark
        return False


@cache
def load() -> ctypes.CDLL | None:
    """The library; None where kernels are interpreted. Kernels are found by reading memory alone
    from then on.

    Raises MinutchError if it is missing, can't be loaded, or is made of other sources than these.
    """
    if is_interpreted():
        return None
    is_newer()  # reads a file, which a sandboxed worker could not do later
    try:
        found = ctypes.CDLL(str(PATH))
        mark = _mark(found)
    except (OSError, ValueError) as exc:
        raise MinutchError(f"the compiled kernels can't be loaded: {exc}", hint=_HINT) from exc
    if mark != digest():
        raise MinutchError(f"{PATH} was made before the kernels beside it were changed", hint=_HINT)
    return found


def _mark(found: ctypes.CDLL) -> bytes:
    return bytes((ctypes.c_char * DIGEST_SIZE).in_dll(found, MARK))


class _Method(ctypes.Structure):
    """struct PyMethodDef."""

    _fields_ = (
        ("name", ctypes.c_char_p),
        ("function", ctypes.c_void_p),
        ("flags", ctypes.c_int),
        ("doc", ctypes.c_char_p),
    )


_FASTCALL: Final = 0x80
"""METH_FASTCALL."""
_AS_OBJECT: Final = {
    "None": "Py_NewRef",
    "Bool": "PyBool_FromLong",
    "Int": "PyLong_FromLongLong",
}
"""A kernel's result → what makes an object of it."""
_methods: list[_Method] = []
"""Kept for ever: functions of Python's hold their addresses."""


def _address(function: Any) -> int:
    return ctypes.cast(function, ctypes.c_void_p).value or 0


def find_kernel(kernel: Kernel) -> Any:
    """What calls a kernel, or what stands for it where kernels are interpreted."""
    loaded = load()
    if loaded is None:
        return function_of(kernel)
    is_faster = kernel.module in FASTER_ON_NEWER and is_newer()
    name = symbol(kernel, NEWER if is_faster else BASELINE)
    python = ctypes.pythonapi
    table = kernel.table(
        entry=_address(loaded[name]),
        as_integer=_address(python.PyLong_AsUnsignedLongLongMask),
        as_object=_address(getattr(python, _AS_OBJECT[kernel.result])),
        error=_address(python.PyErr_Occurred),
        tuple_item=_address(python.PyTuple_GetItem),
        new_reference=_address(python.Py_NewRef),
        let_go=_address(python.PyEval_SaveThread),
        take_back=_address(python.PyEval_RestoreThread),
    )
    method = _Method(name.encode(), _address(loaded[CALL]), _FASTCALL, None)
    _methods.append(method)
    make = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.c_void_p, ctypes.py_object, ctypes.c_void_p)(
        ("PyCFunction_NewEx", python)
    )
    return make(ctypes.addressof(method), table, None)


@cache
def find_callback(callback: Callback) -> int:
    """The address of a callback's C function."""
    loaded = load()
    if loaded is None:
        raise MinutchError(f"{callback.name}: no C function where kernels are interpreted")
    return ctypes.cast(loaded[symbol(callback)], ctypes.c_void_p).value or 0
