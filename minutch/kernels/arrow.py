"""Columns of byte strings between NumPy and Polars without a copy, through Arrow's C data
interface.

A column of byte strings ("binary view", format `vz`) is an array of 16-byte views and any number of
data buffers:

    view    int length | 12 bytes, zero-padded               length <= 12 int length | 4 bytes | int
            buffer | int offset    else; the 4 bytes are the string's first
    array   validity bitmap (may be null) | views | data buffer * | long size of each data buffer

Polars, which is loaded when it is needed, keeps its Binary columns so. `to_series` hands it views
into a part file that is mapped into memory; `Strings` gives a kernel the addresses of a column's
strings. Source:
https://arrow.apache.org/docs/format/CDataInterface.html and Columnar.html.
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from itertools import count
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from minutch.kernels.library import is_interpreted
from minutch.kernels.native import StringColumn

if TYPE_CHECKING:
    import polars as pl

Bytes = npt.NDArray[np.uint8]
Views = npt.NDArray[np.int32]

INLINE = 12
"""Strings up to this length stand in their view."""
MAX_BUFFER = 0x7FFF_FFFF  # offsets in views are ints


class _Schema(ctypes.Structure):
    """struct ArrowSchema."""

    _fields_ = (
        ("format", ctypes.c_char_p),
        ("name", ctypes.c_char_p),
        ("metadata", ctypes.c_void_p),
        ("flags", ctypes.c_int64),
        ("n_children", ctypes.c_int64),
        ("children", ctypes.c_void_p),
        ("dictionary", ctypes.c_void_p),
        ("release", ctypes.c_void_p),
        ("private_data", ctypes.c_void_p),
    )


class _Array(ctypes.Structure):
    """struct ArrowArray."""

    _fields_ = (
        ("length", ctypes.c_int64),
        ("null_count", ctypes.c_int64),
        ("offset", ctypes.c_int64),
        ("n_buffers", ctypes.c_int64),
        ("n_children", ctypes.c_int64),
        ("buffers", ctypes.POINTER(ctypes.c_void_p)),
        ("children", ctypes.c_void_p),
        ("dictionary", ctypes.c_void_p),
        ("release", ctypes.c_void_p),
        ("private_data", ctypes.c_void_p),
    )


class _Stream(ctypes.Structure):
    """struct ArrowArrayStream; its functions take the stream itself first."""

    _fields_ = (
        ("get_schema", ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p)),
        ("get_next", ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p)),
        ("get_last_error", ctypes.CFUNCTYPE(ctypes.c_char_p, ctypes.c_void_p)),
        ("release", ctypes.c_void_p),
        ("private_data", ctypes.c_void_p),
    )


_capsule_new = ctypes.pythonapi.PyCapsule_New
_capsule_new.restype = ctypes.py_object
_capsule_new.argtypes = (ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p)
_capsule_pointer = ctypes.pythonapi.PyCapsule_GetPointer
_capsule_pointer.restype = ctypes.c_void_p
_capsule_pointer.argtypes = (ctypes.py_object, ctypes.c_char_p)

_held: dict[int, tuple[Any, ...]] = {}
"""The owners of the memory that Polars was given; first a flag that Polars sets when it lets go of
the array.
"""
_some = ctypes.c_int64(0)
"""Whether one of these flags was set since they were looked at: there are hundreds, and columns
come and go by thousands, which cost updatedb 0.2 s of CPU at five million entries.
"""
_tokens = count(1)
_HAS_NULLS = 2  # ARROW_FLAG_NULLABLE
_BINARY, _TEXT = b"vz", b"vu"
"""Formats of views: bytes, UTF-8."""


def _drop_schema(schema: Any) -> None:
    schema.contents.release = None


def _let_go() -> None:
    """Give back what Polars no longer needs. Other threads may do the same."""
    if not _some.value:
        return
    _some.value = 0  # before the flags are read: one that is set meanwhile sets it again
    for token in tuple(_held):  # a copy: other threads change it
        held = _held.get(token)
        if held is not None and held[0][0]:
            _held.pop(token, None)


_release_schema = ctypes.CFUNCTYPE(None, ctypes.POINTER(_Schema))(_drop_schema)


class _Export:
    """One array, offered to Polars by the Arrow PyCapsule protocol."""

    def __init__(
        self, views: Views, buffers: Sequence[Bytes], valid: Bytes | None, kind: bytes
    ) -> None:
        from minutch.kernels.sequencefile import release

        sizes = np.array([len(buffer) for buffer in buffers], np.int64)
        addresses = [None if valid is None else valid.ctypes.data, views.ctypes.data]
        addresses += [*(buffer.ctypes.data for buffer in buffers), sizes.ctypes.data]
        pointers = (ctypes.c_void_p * len(addresses))(*addresses)
        # Set by a compiled function: Polars releases arrays in threads without Python's lock.
        flag = (ctypes.c_int64 * 2)(0, ctypes.addressof(_some))
        self.schema = _Schema(format=kind, name=b"", flags=_HAS_NULLS)
        self.schema.release = ctypes.cast(_release_schema, ctypes.c_void_p)
        self.array = _Array(
            # -1: nobody has counted them.
            length=len(views),
            null_count=0 if valid is None else -1,
            n_buffers=len(addresses),
        )
        self.array.buffers = pointers
        self.array.private_data = ctypes.addressof(flag)
        self.array.release = release.address()
        _held[next(_tokens)] = (flag, views, tuple(buffers), valid, sizes, pointers)

    def __arrow_c_array__(self, requested_schema: object = None) -> tuple[object, object]:
        # No destructors: this object owns the structs.
        return (
            _capsule_new(ctypes.addressof(self.schema), b"arrow_schema", None),
            _capsule_new(ctypes.addressof(self.array), b"arrow_array", None),
        )


def to_series(
    name: str,
    views: Views,
    buffers: Sequence[Bytes],
    valid: Bytes | None = None,
    *,
    is_text: bool = False,
) -> pl.Series:
    """A Binary column over `views` (int32, n × 4), whose strings lie in `buffers`; nothing is
    copied, unless kernels are interpreted.

    `valid` is a bitmap of the rows that are not null, lowest bit first. The column keeps the arrays
    alive. With `is_text`, all strings being UTF-8, which nobody will look at again, it is a String
    column.
    """
    import polars as pl

    if is_interpreted():
        copied = pl.Series(name, _copies(views, buffers, valid), dtype=pl.Binary)
        return copied.cast(pl.String) if is_text else copied
    _let_go()
    return pl.Series(_Export(views, buffers, valid, _TEXT if is_text else _BINARY)).alias(name)


def _copies(views: Views, buffers: Sequence[Bytes], valid: Bytes | None) -> list[bytes | None]:
    """The strings one by one: without compiled code, nobody hears when Polars lets go of memory."""
    copies: list[bytes | None] = []
    for row, (size, _, buffer, at) in enumerate(views.tolist()):
        if valid is not None and not valid[row >> 3] >> (row & 7) & 1:
            copies.append(None)
        elif size <= INLINE:
            copies.append(views[row].tobytes()[4 : 4 + size])
        else:
            copies.append(buffers[buffer][at : at + size].tobytes())
    return copies


class Strings(NamedTuple):
    """A Binary column as kernels take it: string i is `views[i]`, its buffer at `addresses[views[i,
    2]]`.
    """

    views: Views  # n × 4
    addresses: npt.NDArray[np.uint64]
    owner: object  # keeps them alive

    @property
    def column(self) -> StringColumn:
        """The column as a kernel's argument."""
        return StringColumn(self.views, self.addresses)


_ReleaseFunction = ctypes.CFUNCTYPE(None, ctypes.c_void_p)


class _Received:
    """An array that Polars exported; released with the last reference."""

    def __init__(self) -> None:
        self.array = _Array()

    def __del__(self, function: Any = _ReleaseFunction, reference: Any = ctypes.byref) -> None:
        if self.array.release:  # the names are bound here because the module may be gone at exit
            function(self.array.release)(reference(self.array))


def _format(stream: _Stream, address: int) -> bytes:
    """The format of a stream's arrays; empty if it does not say."""
    schema = _Schema()
    # A non-zero result is an errno.
    if stream.get_schema(address, ctypes.byref(schema)) or not schema.release:
        return b""
    found = bytes(schema.format)
    _ReleaseFunction(schema.release)(ctypes.byref(schema))
    return found


def from_series(series: pl.Series) -> Strings:
    """The strings of a Binary or String column, nulls as empty ones; not copied where it is one
    chunk without nulls.

    Raises ValueError for a column of anything else.
    """
    _let_go()
    if series.null_count() == len(series):
        return Strings(np.zeros((len(series), 4), np.int32), np.zeros(1, np.uint64), None)
    # Kernels know no nulls.
    series = series.fill_null(b"") if series.null_count() else series
    # Kernels take a single array of views.
    capsule = series.rechunk().__arrow_c_stream__()
    address = _capsule_pointer(capsule, b"arrow_array_stream")
    stream = _Stream.from_address(address)
    found = _format(stream, address)
    if found not in (_BINARY, _TEXT):
        raise ValueError(
            f"column {series.name!r} of type {series.dtype}: expected strings in views, found"
            f" {found!r}"
        )
    received = _Received()
    array = received.array
    if stream.get_next(address, ctypes.byref(array)) or not array.release:
        raise ValueError(f"column {series.name!r} could not be exported")
    views: Any = (ctypes.c_int32 * (4 * array.length)).from_address(
        array.buffers[1] + 16 * array.offset
    )
    views.owner = received  # lives as long as any array of them, as those that kernels take
    # Buffer 0 is the validity bitmap, 1 the views, the last one the sizes of the others.
    addresses = [array.buffers[i] or 0 for i in range(2, array.n_buffers - 1)]
    return Strings(
        np.frombuffer(views, np.int32).reshape(-1, 4),
        np.array(addresses or [0], np.uint64),
        received,
    )
