"""What kernels need below NumPy: compilation with a cache, memory by address, and libdeflate.

A kernel is a function that Numba compiles; it walks bytes without Python's lock. Kernels are compiled when they are
first used on data that is worth it, and cached in the user's cache directory (or NUMBA_CACHE_DIR), by a digest of all
their sources: Numba itself does not notice that a kernel in another module changed. All kernels stand in this
folder.

libdeflate is the library inside the `deflate` package, called by the addresses of its C functions:

    crc32(crc, data, size) -> crc
    zlib_decompress_ex(decompressor, data, size, out, room, size_t *read, size_t *written)
        -> 0 good, 1 bad data, 2 and 3 too little or too much room
    zlib_compress(compressor, data, size, out, room) -> bytes written, 0 if there is no room

Only modules that hold kernels import this one, and they are imported by functions that have big data at hand.
"""

from __future__ import annotations

import ctypes
import hashlib
import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias, TypeVar

import numba
import numpy as np
from llvmlite import ir
from numba.core import event, types
from numba.extending import intrinsic
from numba.misc.appdirs import user_cache_dir

log = logging.getLogger(__name__)

F = TypeVar("F", bound=Callable[..., Any])
Array: TypeAlias = Any
"""A NumPy array, in a kernel's signature."""
Int: TypeAlias = Any
"""An integer: Python's on the way into a kernel and out of it, a machine's inside."""
Bool: TypeAlias = Any


_config: Any = numba.config
_user_cache: Any = user_cache_dir


def _cache_directory() -> Path:
    """Where this version's compiled kernels are kept."""
    sources = sorted(Path(__file__).parent.glob("*.py"))
    digest = hashlib.sha256(b"".join(source.read_bytes() for source in sources)).hexdigest()[:16]
    base = Path(_config.CACHE_DIR or _user_cache("minutch"))
    return base / f"kernels-{digest}"


_CACHE = _cache_directory()


class _Notice(event.Listener):
    """Says once that kernels are being compiled: a job stands still meanwhile."""

    told = False

    def on_start(self, event: Any) -> None:
        """Numba compiles a function; one that comes from the cache is none."""
        if not self.told:
            self.told = True
            log.info("compiling kernels, once on this machine; the first big job waits for it some seconds")

    def on_end(self, event: Any) -> None:
        """Nothing to say."""


event.register("numba:compile", _Notice())  # type: ignore[no-untyped-call]


def kernel(function: F) -> F:
    """`function` compiled on first use, without Python's lock, and cached where that is possible."""
    # What is cached names its module; a plugin's depends on the folder that the plugin was found in.
    _config.CACHE_DIR = str(_CACHE / function.__module__.partition(".")[0])
    try:
        return numba.njit(function, nogil=True, cache=True, boundscheck=False)  # type: ignore[no-any-return]
    except RuntimeError:  # no directory for the cache can be written
        return numba.njit(function, nogil=True, boundscheck=False)  # type: ignore[no-any-return]


def inlined(function: F) -> F:
    """A small function that becomes part of the kernels that call it: a real call would count references to arrays."""
    return numba.njit(function, inline="always", boundscheck=False)  # type: ignore[no-any-return]


def _call7(typingctx: Any, function: Any, a: Any, b: Any, c: Any, d: Any, e: Any, f: Any, g: Any) -> Any:
    """Call the C function at an address with seven integers or addresses; it may take fewer. Returns 64 bits."""
    word = types.int64
    signature = word(word, word, word, word, word, word, word, word)

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        integer = ir.IntType(64)
        pointer = builder.inttoptr(args[0], ir.FunctionType(integer, [integer] * 7).as_pointer())
        return builder.call(pointer, args[1:])

    return signature, codegen


def _copy_bytes(typingctx: Any, target: Any, source: Any, size: Any) -> Any:
    """memcpy by addresses."""
    word = types.int64
    signature = types.void(word, word, word)

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        byte = ir.IntType(8).as_pointer()
        target, source, size = args
        memcpy = builder.module.declare_intrinsic("llvm.memcpy", [byte, byte, ir.IntType(64)])
        false = ir.Constant(ir.IntType(1), 0)
        builder.call(memcpy, [builder.inttoptr(target, byte), builder.inttoptr(source, byte), size, false])
        return context.get_dummy_value()

    return signature, codegen


def _prefetch(typingctx: Any, address: Any) -> Any:
    """Ask for the cache line at an address, which may be any; it is needed soon."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        byte, word = ir.IntType(8).as_pointer(), ir.IntType(32)
        kind = ir.FunctionType(ir.VoidType(), [byte, word, word, word])
        function = builder.module.declare_intrinsic("llvm.prefetch", [byte], kind)
        read, keep, data = (ir.Constant(word, value) for value in (0, 3, 1))
        builder.call(function, [builder.inttoptr(args[0], byte), read, keep, data])
        return context.get_dummy_value()

    return types.void(types.int64), codegen


def _loader(bits: int) -> Any:
    """A function that loads an unsigned little-endian integer from any address."""

    def load(typingctx: Any, address: Any) -> Any:
        """Load by address."""

        def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            kind = ir.IntType(bits)
            value = builder.load(builder.inttoptr(args[0], kind.as_pointer()))
            value.align = 1
            return value if bits == 64 else builder.zext(value, ir.IntType(64))

        return types.uint64(types.int64), codegen

    return intrinsic(load)


def _storer(bits: int) -> Any:
    """A function that stores the low bits of an integer, little-endian, at any address."""

    def store(typingctx: Any, address: Any, value: Any) -> Any:
        """Store by address."""

        def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            kind = ir.IntType(bits)
            value = args[1] if bits == 64 else builder.trunc(args[1], kind)
            builder.store(value, builder.inttoptr(args[0], kind.as_pointer())).align = 1
            return context.get_dummy_value()

        return types.void(types.int64, types.int64), codegen

    return intrinsic(store)


call7: Any = intrinsic(_call7)
copy_bytes: Any = intrinsic(_copy_bytes)
prefetch: Any = intrinsic(_prefetch)
load8: Any = _loader(8)
load32: Any = _loader(32)
load64: Any = _loader(64)
store8: Any = _storer(8)
store32: Any = _storer(32)
store64: Any = _storer(64)


@inlined
def string_at(views: Array, addresses: Array, i: Int) -> Int:
    """The address of string `i` of a column (see `columns_arrow.Strings`)."""
    if views[i, 0] <= 12:
        return np.int64(views.ctypes.data) + 16 * i + 4
    return np.int64(addresses[views[i, 2]]) + np.int64(np.uint32(views[i, 3]))


_ARRAY_RELEASE, _ARRAY_PRIVATE_DATA = 64, 72  # offsets in struct ArrowArray


@cache
def release_function() -> int:
    """The address of a C function that releases an ArrowArray: it sets the integer that its private data points to.

    Polars may let go of a column at any time, also while Python is raising an exception, when no Python may run.
    """

    def release(array: Int) -> None:
        store64(np.int64(load64(array + _ARRAY_PRIVATE_DATA)), np.int64(1))
        store64(array + _ARRAY_RELEASE, np.int64(0))

    function: Any = numba.cfunc(types.void(types.int64))(release)
    _kept.append(function)
    return int(function.address)


_kept: list[object] = []


class Libdeflate(NamedTuple):
    """Addresses of libdeflate's functions."""

    crc32: int
    zlib_compress: int
    zlib_decompress_ex: int


@cache
def _library() -> Any:
    from deflate import _deflate

    return ctypes.CDLL(_deflate.__file__)


@cache
def libdeflate() -> Libdeflate | None:
    """The functions of libdeflate; None where the package keeps them to itself."""
    try:
        library = _library()
        found = [getattr(library, f"libdeflate_{name}") for name in Libdeflate._fields]
    except (ImportError, OSError, AttributeError):
        return None
    return Libdeflate(*(ctypes.cast(function, ctypes.c_void_p).value or 0 for function in found))


@contextmanager
def decompressor() -> Iterator[int]:
    """The address of a libdeflate_decompressor."""
    library = _library()
    library.libdeflate_alloc_decompressor.restype = ctypes.c_void_p
    address = library.libdeflate_alloc_decompressor()
    try:
        yield address
    finally:
        library.libdeflate_free_decompressor(ctypes.c_void_p(address))


@contextmanager
def compressor(level: int) -> Iterator[int]:
    """The address of a libdeflate_compressor of `level` (0 to 12)."""
    library = _library()
    library.libdeflate_alloc_compressor.restype = ctypes.c_void_p
    address = library.libdeflate_alloc_compressor(level)
    try:
        yield address
    finally:
        library.libdeflate_free_compressor(ctypes.c_void_p(address))
