"""Records in bulk, not taken apart: where their keys and values lie.

    Stretch   a part of a file, in which they are not found yet
    Batch     offsets in buffers, as records are found in a file
    Places    addresses in memory, as records go into a file

`decode` functions of the modules `*_columns` make tables of batches, `encode` functions make places
of tables.
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import numpy.typing as npt

from minutch.kernels import sequencefile, sort
from minutch.kernels.arrow import Bytes, Strings, from_series, to_series
from minutch.kernels.clibrary import libdeflate
from minutch.kernels.sequencefile import first_bad_sum

if TYPE_CHECKING:
    import polars as pl

Offsets = npt.NDArray[np.int64]
Lengths = npt.NDArray[np.int32]


class Stretch(NamedTuple):
    """A part of a SequenceFile in memory: `data[start:end]`, whole records and markers, with their
    checksums.

    `sums` has the CRC of each chunk of `data` (none: there is nothing to compare), `chunk` is how
    many bytes that has.
    """

    data: Bytes
    start: int
    end: int
    marker: Bytes
    sums: Bytes
    chunk: int

    @property
    def place(self) -> sequencefile.StretchPlace:
        """The stretch as a kernel's argument."""
        return sequencefile.StretchPlace(*self, libdeflate().crc32)

    @property
    def is_whole(self) -> bool:
        """True if the checksums are those of the bytes."""
        first, last = self.start // self.chunk, -(-self.end // self.chunk)
        if not len(self.sums):
            return True
        return bool(
            first_bad_sum(self.data, first, last, self.chunk, self.sums, libdeflate().crc32) < 0
        )


class Batch(NamedTuple):
    """Key i is `keys[key_at[i] : key_at[i] + key_len[i]]` (a Text's bytes), values likewise."""

    keys: Bytes
    key_at: Offsets
    key_len: Lengths
    values: Bytes
    value_at: Offsets
    value_len: Lengths

    @property
    def size(self) -> int:
        """Number of records."""
        return len(self.key_at)

    def between(self, start: int, end: int) -> Batch:
        """Returns the records from number `start` to before `end`."""
        here = slice(start, end)
        keys = self.key_at[here], self.key_len[here]
        return Batch(self.keys, *keys, self.values, self.value_at[here], self.value_len[here])

    def filter(self, mask: npt.NDArray[np.bool_]) -> Batch:
        """Returns the records where `mask` is true."""
        if mask.all():
            return self
        keys = self.key_at[mask], self.key_len[mask]
        return Batch(self.keys, *keys, self.values, self.value_at[mask], self.value_len[mask])

    @classmethod
    def of(cls, keys: Sequence[bytes], values: Sequence[bytes]) -> Batch:
        """Returns a batch of records that come one by one."""
        return cls(*_joined(keys), *_joined(values))

    @classmethod
    def joined(cls, batches: Sequence[Batch]) -> Batch:
        """Returns the records of small batches, copied, in one."""
        if len(batches) == 1:
            return batches[0]

        def pack(buffers: Sequence[Bytes], at: Sequence[Offsets]) -> tuple[Bytes, Offsets]:
            # Offsets move by what stands before their buffer.
            bases = np.cumsum([0, *map(len, buffers)])
            moved = [here + base for here, base in zip(at, bases[:-1], strict=True)]
            return np.concatenate(buffers), np.concatenate(moved)

        keys, key_at = pack([one.keys for one in batches], [one.key_at for one in batches])
        values, value_at = pack([one.values for one in batches], [one.value_at for one in batches])
        key_len = np.concatenate([one.key_len for one in batches])
        value_len = np.concatenate([one.value_len for one in batches])
        return cls(keys, key_at, key_len, values, value_at, value_len)

    def key(self, row: int) -> bytes:
        """Returns the bytes of a key."""
        return self.keys[self.key_at[row] : self.key_at[row] + self.key_len[row]].tobytes()

    def value(self, row: int) -> bytes:
        """Returns the bytes of a value."""
        return self.values[self.value_at[row] : self.value_at[row] + self.value_len[row]].tobytes()


def _joined(strings: Sequence[bytes]) -> tuple[Bytes, Offsets, Lengths]:
    length = np.fromiter(map(len, strings), np.int32, len(strings))
    at = np.empty(len(strings), np.int64)
    sequencefile.running_sum(length, at)
    return np.frombuffer(b"".join(strings), np.uint8), at, length


class Places(NamedTuple):
    """Records by the addresses and lengths of their keys, as in a Text, and values, as in the file.

    What lies at the addresses belongs to `owner`.
    """

    key_at: Offsets
    key_len: Lengths
    value_at: Offsets
    value_len: Lengths
    owner: object

    @classmethod
    def of(cls, keys: Strings, values: Bytes, at: Offsets, length: Lengths) -> Places:
        """Keys from a column, values at offsets of a buffer."""
        # The owner keeps alive what the addresses lead to.
        return cls(*places(keys), at + values.ctypes.data, length, (keys.owner, keys.views, values))

    @property
    def arrays(self) -> sequencefile.RecordPlaces:
        """The places as a kernel's argument."""
        return sequencefile.RecordPlaces(self.key_at, self.key_len, self.value_at, self.value_len)

    @property
    def size(self) -> int:
        """Number of records."""
        return len(self.key_at)

    def between(self, start: int, end: int) -> Places:
        """Returns the records from number `start` to before `end`."""
        here = slice(start, end)
        return Places(
            self.key_at[here],
            self.key_len[here],
            self.value_at[here],
            self.value_len[here],
            self.owner,
        )

    def key(self, row: int) -> bytes:
        """Returns the bytes of a key."""
        return ctypes.string_at(int(self.key_at[row]), int(self.key_len[row]))

    def value(self, row: int) -> bytes:
        """Returns the bytes of a value."""
        return ctypes.string_at(int(self.value_at[row]), int(self.value_len[row]))


def places(strings: Strings) -> tuple[Offsets, Lengths]:
    """Returns the addresses and lengths of a column's strings."""
    count = len(strings.views)
    at, length = np.empty(count, np.int64), np.empty(count, np.int32)
    sequencefile.string_places(strings.views, strings.addresses, at, length)
    return at, length


def string_column(
    name: str,
    buffer: Bytes,
    at: Offsets,
    length: Lengths,
    *,
    least: int | None = None,
    is_text: bool = False,
) -> pl.Series:
    """Returns a Binary column over strings in `buffer`, not copied. Their offsets may span 4 GiB at
    most.

    With `least`, strings shorter than that (down to length -1) are null. With `is_text`, see
    `to_series`, it is String.
    """
    shortest = 0 if least is None else least
    found = np.empty(3, np.int64)
    sequencefile.extent(at, length, shortest, found)
    base, end, present = found.tolist()
    if least is not None and not present:  # no string: there is no buffer to point into
        import polars as pl

        return pl.Series(name, [None], dtype=pl.String if is_text else pl.Binary).new_from_index(
            0, len(at)
        )
    views = np.empty((len(at), 4), np.int32)
    # A bitmap only where some are null.
    valid = np.zeros(0 if present == len(at) else -(-len(at) // 8), np.uint8)
    sequencefile.fill_views(buffer, at, length, shortest, base, views, valid)
    # Offsets of a view have 32 bits: they count from the first string, not from the buffer.
    return to_series(
        name, views, [buffer[base:end]], valid if len(valid) else None, is_text=is_text
    )


def keys_of(batch: Batch) -> pl.Series:
    """Returns the keys of a batch (Binary), not copied."""
    return string_column("key", batch.keys, batch.key_at, batch.key_len)


def own_column(column: pl.Series) -> pl.Series:
    """Returns the same strings (Binary) in their own memory: what they lay in is let go."""
    strings, rows = from_series(column), np.arange(len(column), dtype=np.uint32)
    out = np.empty(int(strings.views[:, 0].sum(dtype=np.int64)), np.uint8)
    at, length = np.empty(len(column), np.int64), np.empty(len(column), np.int32)
    sort.pack(strings.views, strings.addresses, rows, out, at, length)
    if not column.null_count():
        return string_column(column.name, out, at, length)
    length[column.is_null().to_numpy()] = -1  # nulls again
    return string_column(column.name, out, at, length, least=0)
