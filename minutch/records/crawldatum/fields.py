"""Some fields of CrawlDatums in bulk, as arrays: what `crawldatum_columns` makes columns of.

Fields that are not asked for are not looked at. Of plain files they are found and decoded in one
pass (`scan`), of all others record by record first (`Batch`). The layout of the bytes is in
`crawldatum_columns`.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt
import polars as pl

from minutch.errors import FormatError
from minutch.hadoop.formats.batch import Batch, Lengths, Offsets, Stretch, string_column
from minutch.kernels import crawldatum as kernels
from minutch.kernels.arrow import Bytes
from minutch.records.crawldatum.datum import CrawlDatum

KEY: Final = "key"
NUMBERS: Final = {
    "status": np.dtype(np.uint8),
    "fetch_time": np.dtype(np.int64),
    "modified_time": np.dtype(np.int64),
    "retries": np.dtype(np.int8),
    "fetch_interval": np.dtype(np.int32),
    "score": np.dtype(np.float32),
}
STRINGS: Final = ("signature", "metadata")
FIELDS: Final = (*NUMBERS, *STRINGS)

Places = tuple[Offsets, Lengths]


class Fields(NamedTuple):
    """Fields by their names: numbers, and the places of strings in `values`; the key's are in
    `keys`.
    """

    keys: Bytes
    values: Bytes
    size: int
    """Number of records."""
    key_places: Places
    numbers: dict[str, npt.NDArray[Any]]
    places: dict[str, Places]

    @classmethod
    def room(cls, keys: Bytes, values: Bytes, names: Collection[str], count: int) -> Fields:
        """Room for the fields `names` of `count` records; none for the others."""

        def size(name: str) -> int:
            return count if name in names else 0

        numbers = {name: np.empty(size(name), dtype) for name, dtype in NUMBERS.items()}
        places = {name: _places(size(name)) for name in STRINGS}
        return cls(keys, values, count, _places(size(KEY)), numbers, places)

    @property
    def columns(self) -> kernels.Columns:
        """The arrays as kernels take them; scores as the bits that they are."""
        numbers: list[Any] = [
            column.view(np.int32) if name == "score" else column
            for name, column in self.numbers.items()
        ]
        places = (array for pair in self.places.values() for array in pair)
        return kernels.Columns(*numbers, *places)

    def first(self, count: int) -> Fields:
        """Returns the first records."""
        return self._chosen(slice(count), count)

    def filter(self, mask: npt.NDArray[np.bool_]) -> Fields:
        """Returns the records where `mask` is true."""
        return self._chosen(mask, int(np.count_nonzero(mask)))

    def _chosen(self, rows: Any, size: int) -> Fields:
        def some(array: Any) -> Any:
            return array[rows] if len(array) else array

        return self._replace(
            size=size,
            key_places=(some(self.key_places[0]), some(self.key_places[1])),
            numbers={name: some(column) for name, column in self.numbers.items()},
            places={name: (some(at), some(length)) for name, (at, length) in self.places.items()},
        )

    def column(self, name: str) -> pl.Series:
        """Returns a field as a column; strings are views into the records. A string without a byte
        is null.
        """
        if name == KEY:
            return string_column(KEY, self.keys, *self.key_places)
        if name in NUMBERS:
            return pl.Series(name, self.numbers[name])
        return string_column(name, self.values, *self.places[name], least=1)


def _places(count: int) -> Places:
    return np.empty(count, np.int64), np.empty(count, np.int32)


def scan(stretch: Stretch, names: Collection[str]) -> Fields | None:
    """Returns the fields of all records of <Text, CrawlDatum> in a part of a file; None if
    something looks wrong, or is old.
    """
    room = (
        stretch.end - stretch.start
    ) // kernels.LEAST_RECORD + 1  # what is not written to takes no memory
    found = Fields.room(stretch.data, stretch.data, names, room)
    count = kernels.scan(stretch.place, *found.key_places, found.columns)
    return None if count < 0 else found.first(count)


def decode(batch: Batch, names: Collection[str]) -> Fields:
    """Returns the fields of records. Raises FormatError, which names the key."""
    found = decode_values(batch, names)
    return decode(_current(batch), names) if found is None else found


def decode_values(batch: Batch, names: Collection[str], *, optional: bool = False) -> Fields | None:
    """Returns the same if all are of version 7, else None. If `optional`, a value without a byte
    gives zeros and nulls.
    """
    found = Fields.room(batch.keys, batch.values, {*names} - {KEY}, batch.size)
    if not kernels.decode(batch.values, batch.value_at, batch.value_len, optional, found.columns):
        return None
    return found._replace(key_places=(batch.key_at, batch.key_len))


def _current(batch: Batch) -> Batch:
    """Returns the batch with every record in version 7, by the dataclass."""
    values = []
    for row in range(batch.size):
        try:
            values.append(CrawlDatum.from_bytes(batch.value(row)).to_bytes())
        except FormatError as exc:
            raise exc.at(f"record of {batch.key(row)!r}") from exc
    return Batch.of([batch.key(row) for row in range(batch.size)], values)
