"""CrawlDatum as columns: from a batch to a table, and back. The bytes are those of `crawldatum`.

    version 7:  byte 7 | byte status | long fetch time | byte retries | int interval | float score |
                long modified time | byte n | n bytes of signature, if n > 0 | boolean |
                MapWritable, if true

    Fields       some fields as arrays; those that are not asked for are not looked at. Of plain
                 files they are found and decoded in one pass (`scan`), of all others record by
                 record first (`Batch`)
    to_datum …   between a row and the record, for code written for one record at a time (a user's
                 plugin or fetch schedule) inside a job that works on columns
    resealed     `validators` in columns: a fetch works on single entries, does without Polars, and
                 so can fork

Metadata is carried as it was stored, an empty map as none (Nutch writes none for it). Versions 1 to
6, and what is damaged, go through the dataclass, which knows their layouts and the errors. Source:
org.apache.nutch.crawl.CrawlDatum.readFields and write.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from typing import Any, Final, NamedTuple
from zlib import crc32

import numpy as np
import numpy.typing as npt
import polars as pl

from minutch.errors import FormatError
from minutch.hadoop.formats.batch import (
    Batch,
    Lengths,
    Offsets,
    Places,
    Stretch,
    keys_of,
    places,
    string_column,
)
from minutch.hadoop.formats.javaio import decode_text, encode_text
from minutch.hadoop.formats.writables import MapWritable
from minutch.kernels import crawldatum as kernels
from minutch.kernels import sequencefile
from minutch.kernels.arrow import MAX_BUFFER, Bytes, from_series, to_series
from minutch.records import metadata_columns, rawmap
from minutch.records.crawldatum import CrawlDatum
from minutch.records.validators import DIGITS, NO_TIME, NONE, RAW_KEY, SEAL, VALIDATORS_KEY

CRAWLDB_SCHEMA = pl.Schema(
    {
        "key": pl.Binary(),  # the URL's bytes
        "status": pl.UInt8(),
        "fetch_time": pl.Int64(),  # ms since the epoch
        "modified_time": pl.Int64(),  # ms since the epoch, 0 = unknown
        "retries": pl.Int8(),
        "fetch_interval": pl.Int32(),  # seconds
        "score": pl.Float32(),
        "signature": pl.Binary(),  # null = none, else 1 to 127 bytes
        "metadata": pl.Binary(),  # null = none or empty, else Hadoop's MapWritable as it was stored
    }
)

PACKED_SCHEMA = pl.Schema(
    {
        "key": pl.Binary(),
        "status": pl.UInt8(),
        "fetch_time": pl.Int64(),
        "score": pl.Float32(),
        "value": pl.Binary(),  # the serialized CrawlDatum
    }
)


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

FieldPlaces = tuple[Offsets, Lengths]
MAX_SIGNATURE = 127
_ROWS_AT_A_TIME = 100_000  # bounds the buffer that is encoded
_RECORDS_AT_A_TIME = 1 << 15


class CrawlDatumFields(NamedTuple):
    """Fields by name: numbers, and the places of strings in `values`; the key's are in `keys`."""

    keys: Bytes
    values: Bytes
    size: int
    """Number of records."""
    key_places: FieldPlaces
    numbers: dict[str, npt.NDArray[Any]]
    places: dict[str, FieldPlaces]

    @classmethod
    def room(
        cls, keys: Bytes, values: Bytes, names: Collection[str], count: int
    ) -> CrawlDatumFields:
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

    def first(self, count: int) -> CrawlDatumFields:
        """Returns the first records."""
        return self._chosen(slice(count), count)

    def filter(self, mask: npt.NDArray[np.bool_]) -> CrawlDatumFields:
        """Returns the records where `mask` is true."""
        return self._chosen(mask, int(np.count_nonzero(mask)))

    def _chosen(self, rows: Any, size: int) -> CrawlDatumFields:
        def some(array: Any) -> Any:
            return array[rows] if len(array) else array

        return self._replace(
            size=size,
            key_places=(some(self.key_places[0]), some(self.key_places[1])),
            numbers={name: some(column) for name, column in self.numbers.items()},
            places={name: (some(at), some(length)) for name, (at, length) in self.places.items()},
        )

    def column(self, name: str) -> pl.Series:
        """Returns a field as a column; strings are views into the records, empty ones null."""
        if name == KEY:
            return string_column(KEY, self.keys, *self.key_places)
        if name in NUMBERS:
            return pl.Series(name, self.numbers[name])
        return string_column(name, self.values, *self.places[name], least=1)


def _places(count: int) -> FieldPlaces:
    return np.empty(count, np.int64), np.empty(count, np.int32)


def scan(stretch: Stretch, names: Collection[str]) -> CrawlDatumFields | None:
    """Returns the fields of all records of <Text, CrawlDatum> in a part of a file; None if
    something looks wrong, or is old.
    """
    # What is not written to takes no memory.
    room = (stretch.end - stretch.start) // kernels.LEAST_RECORD + 1
    found = CrawlDatumFields.room(stretch.data, stretch.data, names, room)
    count = kernels.scan(stretch.place, *found.key_places, found.columns)
    return None if count < 0 else found.first(count)


def decode_fields(batch: Batch, names: Collection[str]) -> CrawlDatumFields:
    """Returns the fields of records. Raises FormatError, which names the key."""
    found = decode_field_values(batch, names)
    return decode_fields(_current(batch), names) if found is None else found


def decode_field_values(batch: Batch, names: Collection[str]) -> CrawlDatumFields | None:
    """Returns the same if all are of version 7, else None."""
    found = CrawlDatumFields.room(batch.keys, batch.values, {*names} - {KEY}, batch.size)
    if not kernels.decode(batch.values, batch.value_at, batch.value_len, found.columns):
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


def decode(batch: Batch) -> pl.DataFrame:
    """Returns the records of `batch` as a table: `key`, then the columns of CRAWLDB_SCHEMA.

    Keys, signatures and metadata are views into the batch's buffers. Raises FormatError, which
    names the key.
    """
    fields = decode_fields(batch, FIELDS)
    return pl.DataFrame([keys_of(batch), *map(fields.column, FIELDS)])


def decode_packed(batch: Batch) -> pl.DataFrame:
    """Returns the records of `batch` as a table of PACKED_SCHEMA. FormatError names the key."""
    status, fetch_time, score = (
        np.empty(batch.size, NUMBERS[name]) for name in ("status", "fetch_time", "score")
    )
    value = batch.values, batch.value_at, batch.value_len
    if not kernels.plain(*value, status, fetch_time, score.view(np.int32)):
        frame = decode(batch)
        # Once more, now as `encode` writes them.
        return decode_packed(Batch(batch.keys, batch.key_at, batch.key_len, *encode(frame)))
    return pl.DataFrame(
        [
            string_column("key", batch.keys, batch.key_at, batch.key_len),
            pl.Series("status", status),
            pl.Series("fetch_time", fetch_time),
            pl.Series("score", score),
            string_column("value", *value),
        ]
    )


def scan_packed(stretch: Stretch) -> pl.DataFrame | None:
    """Returns the table of PACKED_SCHEMA of a part of a file whose records are not compressed, in
    one pass; None if one of them has to be made anew, or looks wrong.
    """
    if len(stretch.data) > MAX_BUFFER:
        return None
    # What is not written to takes no memory.
    room = (stretch.end - stretch.start) // kernels.LEAST_RECORD + 1
    keys, values = np.empty((room, 4), np.int32), np.empty((room, 4), np.int32)
    status, fetch_time, score = (
        np.empty(room, NUMBERS[name]) for name in ("status", "fetch_time", "score")
    )
    numbers = status, fetch_time, score.view(np.int32)
    count = kernels.scan_plain(stretch.place, keys, values, *numbers)
    if count < 0:
        return None
    return pl.DataFrame(
        [
            to_series("key", keys[:count], [stretch.data]),
            pl.Series("status", status[:count]),
            pl.Series("fetch_time", fetch_time[:count]),
            pl.Series("score", score[:count]),
            to_series("value", values[:count], [stretch.data]),
        ]
    )


def decode_values(values: Bytes, at: Offsets, length: Lengths) -> list[pl.Series]:
    """Returns the columns of CRAWLDB_SCHEMA without `key`, of records of version 7."""
    batch = Batch(values, at, length, values, at, length)
    fields = decode_field_values(batch, FIELDS)
    assert fields is not None, "records that were decoded or encoded before"
    return [*map(fields.column, FIELDS)]


def encode(frame: pl.DataFrame) -> tuple[Bytes, Offsets, Lengths]:
    """Returns the serialized CrawlDatum of each row: a buffer, and the offsets and lengths in it.

    Raises ValueError for a signature longer than 127 bytes.
    """
    signatures, metadata = from_series(frame["signature"]), from_series(frame["metadata"])
    at, length = np.empty(len(frame), np.int64), np.empty(len(frame), np.int32)
    longest = int(signatures.views[:, 0].max(initial=0))
    if longest > MAX_SIGNATURE:  # its length is one signed byte
        raise ValueError(f"signature of {longest} bytes, at most {MAX_SIGNATURE} can be stored")
    length[:] = kernels.FIXED_SIZE + 1
    length += signatures.views[:, 0]
    length += metadata.views[:, 0]
    buffer = np.empty(int(sequencefile.running_sum(length, at)), np.uint8)
    kernels.encode(buffer, at, _numbers(frame), signatures.column, metadata.column)
    return buffer, at, length


def stored_records(frame: pl.DataFrame) -> Iterator[Places]:
    """Yields the rows of a table of CRAWLDB_SCHEMA as they go into a file."""
    for part in frame.iter_slices(_ROWS_AT_A_TIME):
        yield Places.of(from_series(part["key"]), *encode(part))


def patched_records(
    table: pl.DataFrame,
    rows: pl.DataFrame,
    at: Offsets,
    before: Offsets,
    scored: Offsets,
    scores: pl.Series,
) -> Iterator[Places]:
    """Yields the records of a packed table with `rows` put in: row i for record at[i], or if that
    is -1 before before[i].

    The records `scored` are copied with new `scores` (Float32).
    """
    keys, values = from_series(table["key"]), from_series(table["value"])
    value_at, value_len = places(values)
    copied = np.empty(int(value_len[scored].sum(dtype=np.int64)), np.uint8)
    kernels.copy_scored(value_at, value_len, scored, scores.to_numpy().view(np.int32), copied)
    found = Places(*places(keys), value_at, value_len, (keys, values, copied))
    if len(rows):
        found = _put_in(found, Places.of(from_series(rows["key"]), *encode(rows)), at, before)
    for start in range(0, found.size, _RECORDS_AT_A_TIME):
        yield found.between(start, start + _RECORDS_AT_A_TIME)


def _put_in(table: Places, rows: Places, at: Offsets, before: Offsets) -> Places:
    count = table.size + int((at < 0).sum())
    key_at, value_at = np.empty(count, np.int64), np.empty(count, np.int64)
    key_len, value_len = np.empty(count, np.int32), np.empty(count, np.int32)
    found = sequencefile.RecordPlaces(key_at, key_len, value_at, value_len)
    sequencefile.put_in(table.arrays, rows.arrays, at, before, found)
    return Places(*found, (table.owner, rows.owner))


def _numbers(frame: pl.DataFrame) -> kernels.Numbers:
    columns: list[Any] = [np.ascontiguousarray(frame[name].to_numpy()) for name in NUMBERS]
    return kernels.Numbers(
        *(column.view(np.int32) if column.dtype == np.float32 else column for column in columns)
    )


_NAMES = CRAWLDB_SCHEMA.names()


def to_datum(row: Sequence[Any]) -> CrawlDatum:
    """Returns a row's record in the order of CRAWLDB_SCHEMA without `key`. Raises FormatError."""
    status, fetch_time, modified_time, retries, interval, score, signature, metadata = row
    return CrawlDatum(
        status,
        interval,
        score,
        fetch_time,
        modified_time,
        retries,
        signature,
        MapWritable() if metadata is None else MapWritable.from_bytes(metadata),
    )


def to_row(url: str, datum: CrawlDatum) -> tuple[Any, ...]:
    """Returns the row of CRAWLDB_SCHEMA of a record."""
    return (
        encode_text(url),
        datum.status,
        datum.fetch_time,
        datum.modified_time,
        datum.retries,
        datum.fetch_interval,
        datum.score,
        datum.signature,
        datum.metadata.to_bytes() if datum.metadata else None,
    )


def to_frame(records: Iterable[tuple[str, CrawlDatum]]) -> pl.DataFrame:
    """Returns the table of `records`, in their order."""
    return pl.DataFrame(
        [to_row(url, datum) for url, datum in records], schema=CRAWLDB_SCHEMA, orient="row"
    )


def records(frame: pl.DataFrame) -> Iterator[tuple[str, CrawlDatum]]:
    """URL and record of each row of `frame`."""
    for key, *row in frame.select(_NAMES).iter_rows():
        yield decode_text(key), to_datum(row)


def map_rows(
    frame: pl.DataFrame, change: Callable[..., object], *columns: pl.Series
) -> pl.DataFrame:
    """`frame` after `change(url, datum, *values)` on each row; `values` come from `columns`, one
    per row.

    `change` alters the datum it is given, or returns the one to use instead. Other columns of
    `frame` stay.
    """
    changed = []
    for (url, datum), *values in zip(records(frame), *columns, strict=True):
        result = change(url, datum, *values)
        # None: changed in place.
        changed.append((url, result if isinstance(result, CrawlDatum) else datum))
    return frame.with_columns(to_frame(changed).drop("key"))


_HEX: Final = np.frombuffer(bytes(range(256)).hex().encode(), "S2")


def _seals(keys: pl.Series, signatures: pl.Series, times: pl.Series) -> Bytes:
    """Returns the seals of entries as bytes, one row each; a null time is that of a parse."""
    words = np.empty((len(keys), 3), ">u4")
    # In all 0.2 µs a row: a kernel would not be seen beside what merging metadata takes.
    words[:, 0] = np.fromiter(map(crc32, keys, map(crc32, signatures)), np.uint32, len(keys))
    # 64 bits as two words.
    words[:, 1:] = times.fill_null(0).to_numpy().astype(">i8").view(">u4").reshape(-1, 2)
    found = _HEX[words.view(np.uint8)].view(np.uint8).reshape(-1, SEAL)
    # A parse knows no fetch time.
    found[times.is_null().to_numpy(), -len(NO_TIME) :] = ord(NONE)
    return found


def resealed(entries: pl.DataFrame) -> pl.Series:
    """Returns the metadata of entries, their validators sealed to them; without validators where
    they are not held, have another seal, or are of a copy older than `oldest` (s since the epoch).

    `entries` has key, metadata, signature and fetch_time; `is_held`, and the `known_signature` and
    `known_time` (ms, null for a parse) that the validators were sealed with.
    """
    # Seal and date have a fixed width, and lie in the maps where they are written over.
    width = SEAL + 1 + DIGITS
    texts = metadata_columns.texts_in_place(entries["metadata"], str(VALIDATORS_KEY), width)
    held = entries["is_held"].to_numpy()[texts.row]
    row, at = texts.row[held], texts.at[held]
    windows = np.lib.stride_tricks.sliding_window_view(texts.bytes, width, writeable=True)
    some, found = entries[row], windows[at]
    since = (found[:, -DIGITS:].astype(np.int64) - ord("0")) @ 10 ** np.arange(DIGITS)[::-1]
    seals = _seals(some["key"], some["known_signature"], some["known_time"])
    # Sealed by the entry before, and not older than a segment may be.
    good = (found[:, :SEAL] == seals).all(axis=1) & (since >= some["oldest"].to_numpy())
    some = some.filter(pl.Series(good))
    windows[at[good], :SEAL] = _seals(some["key"], some["signature"], some["fetch_time"])
    others = np.setdiff1d(np.arange(len(entries)), row[good])
    dropped = [rawmap.without(data, RAW_KEY) for data in entries["metadata"].gather(others)]
    return texts.maps().scatter(others, pl.Series(dropped, dtype=pl.Binary))
