"""Hosts of many URLs at a time, as numbers or as views of their text; without Polars.

Plain URLs, which nearly all are, are taken apart by a kernel; the others by `urls.parts`. Source:
java.net.URL.getHost.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from minutch.hadoop.formats.batch import Lengths, Offsets
from minutch.kernels.arrow import INLINE, Bytes, Views
from minutch.kernels.keycolumns import numbered
from minutch.kernels.native import StringColumn
from minutch.kernels.urls import find_hosts
from minutch.urls.parts import spelled_host

Numbers = npt.NDArray[np.int64]


class PlainHosts(NamedTuple):
    """The hosts of plain URLs: views of their `text`, a bitmap, the numbers of the `others`."""

    views: Views
    text: Bytes
    valid: Bytes
    others: Numbers


def plain_hosts(base: int, at: Offsets, length: Lengths) -> PlainHosts:
    """Returns the hosts of the plain ones among URLs at distances from an address."""
    count = len(at)
    text = np.empty(int(length.sum(dtype=np.int64)), np.uint8)  # what is unused takes no memory
    views, valid = np.empty((count, 4), np.int32), np.zeros(-(-count // 8), np.uint8)
    used = find_hosts(base, at, length, text, views, valid)
    others = np.flatnonzero(np.unpackbits(valid, count=count, bitorder="little") == 0)
    return PlainHosts(views, text[:used], valid, others)


class HostNumbers:
    """Numbers for hosts of URLs in batches: a function is called once for each host as spelled."""

    def __init__(self, number: Callable[[str], int], *, missing: int) -> None:
        """`missing` stands for what is no URL."""
        self._number = number
        self._missing = missing
        self._numbers = np.empty(0, np.int64)
        self._views = np.empty((0, 4), np.int32)
        self._text = np.empty(0, np.uint8)

    def of(self, keys: Bytes, at: Offsets, length: Lengths) -> Numbers:
        """Returns the number of the host of each URL at offsets of a buffer."""
        views, text, _, others = plain_hosts(keys.ctypes.data, at, length)
        # Number of the buffer that a long host is in: 0 are those known, 1 the new ones.
        views[views[:, 0] > INLINE, 2] = 1
        known, everything = len(self._views), np.concatenate([self._views, views])
        addresses = np.array([self._text.ctypes.data, text.ctypes.data], np.uint64)
        # Known ones first, so each row of those keeps its number.
        rows, places = numbered(StringColumn(everything, addresses))
        self._keep(everything[rows[known:]], text)
        numbers = self._numbers[places[known:]]
        for row in others.tolist():
            url = keys[at[row] : at[row] + length[row]].tobytes().decode("utf-8", "replace")
            host = spelled_host(url)
            numbers[row] = self._missing if host is None else self._number(host)
        return numbers

    def _keep(self, views: Views, text: Bytes) -> None:
        """Numbers new hosts, and keeps their text behind that of the others."""
        pieces, numbers, end = [self._text], [], len(self._text)
        for view in views:
            size, _, _, at = view.tolist()
            if size > INLINE:
                pieces.append(text[at : at + size])
                view[2:] = 0, end
                end += size
            # A view holds up to 12 bytes in itself.
            host = view.view(np.uint8)[4 : 4 + size] if size <= INLINE else pieces[-1]
            numbers.append(self._number(str(host.data, "ascii")))
        self._numbers = np.append(self._numbers, np.array(numbers, np.int64))
        self._views = np.concatenate([self._views, views])
        self._text = np.concatenate(pieces)
