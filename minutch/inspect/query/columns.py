"""Makes typed columns of tables from the fields of records, and numbers of URLs (64 bits of their
hashes), which are found among sorted ones. Pure: no I/O.

STATUS      Nutch's names of statuses, an enumeration; `unknown` for a code that has none
TIME        milliseconds, UTC; a time of 0 stands for none where Nutch uses it so, and one before
            year 1 or after 9999, where calendars end (ISO/IEC 9075-2, 4.6.2), is the first or last
METADATA    a list of key and value, in the order of the record; values as Nutch shows them
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

import numpy as np
import numpy.typing as npt
import polars as pl

from minutch.hadoop.formats.javafloats import float_texts
from minutch.records.crawldatum import STATUS_NAMES
from minutch.records.metadata_columns import FLOAT, INT, LONG, TEXT, entries, shown
from minutch.work.tables.frame import decode_keys

_FIRST: Final = -62_135_596_800_000
_LAST: Final = 253_402_300_799_999
UNKNOWN: Final = "unknown"
STATUS: Final = pl.Enum([*STATUS_NAMES.values(), UNKNOWN])
TIME: Final = pl.Datetime("ms", "UTC")
METADATA: Final = pl.List(pl.Struct({"key": pl.String(), "value": pl.String()}))


def enum_of(codes: pl.Series, names: Mapping[int, str], kind: pl.Enum) -> pl.Series:
    """Returns the names of codes (UInt8); `unknown` for a code without one. Null stays null."""
    places = {name: place for place, name in enumerate(kind.categories)}
    # A code is a byte: one look-up for each row, no comparison.
    table = np.full(256, places[UNKNOWN], np.uint8)
    for code, name in names.items():
        table[code] = places[name]
    has_nulls = codes.null_count() > 0
    found = pl.Series(
        codes.name, table.take((codes.fill_null(0) if has_nulls else codes).to_numpy())
    )
    found = found.cat.to(kind) if hasattr(found.cat, "to") else found.cast(pl.UInt32).cast(kind)
    return (
        found.zip_with(codes.is_not_null(), pl.Series([None], dtype=kind)) if has_nulls else found
    )


def statuses(codes: pl.Series) -> pl.Series:
    """Returns the names of the status codes of CrawlDatums."""
    return enum_of(codes, STATUS_NAMES, STATUS)


def times(ms: pl.Series) -> pl.Series:
    """Returns times from milliseconds since the epoch."""
    return ms.clip(_FIRST, _LAST).cast(TIME)


def known_times(ms: pl.Series) -> pl.Series:
    """Returns times like `times`, but null for 0."""
    return times(ms.set(ms == 0, None))


def hex_of(data: pl.Series) -> pl.Series:
    """Returns bytes in hexadecimal."""
    return data.bin.encode("hex")


def metadata_lists(metadata: pl.Series, keys: pl.Series) -> pl.Series:
    """Returns the entries of each map whose key is a Text, if any. Raises FormatError."""
    found = entries(metadata, keys)
    pairs = found.select(
        "row",
        pair=pl.struct(
            key=decode_keys(found["name"]).alias("key"), value=_shown(found).alias("value")
        ),
    )
    lists = pairs.group_by("row", maintain_order=True).agg("pair")
    return in_rows(lists["row"], lists["pair"], len(metadata)).fill_null(
        pl.Series([[]], dtype=METADATA)
    )


def _shown(found: pl.DataFrame) -> pl.Series:
    """Returns the values of a table of entries, as toString shows them."""
    kind = found["kind"]
    texts = decode_keys(found.select(pl.when(pl.col("kind") == TEXT).then("value"))["value"])
    for number, show in _NUMBERS.items():
        mine = (kind == number).arg_true()
        if len(mine):
            texts = texts.scatter(mine, show(found["value"].gather(mine)))
    rest = (~kind.is_in([TEXT, *_NUMBERS])).arg_true()
    others = [
        shown(*entry).decode("utf-8", "replace")
        for entry in found[rest].select("kind", "value").iter_rows()
    ]
    return texts.scatter(rest, pl.Series(others, dtype=pl.String))


def _number(data: pl.Series, dtype: pl.DataType) -> pl.Series:
    return data.bin.reinterpret(dtype=dtype, endianness="big")


def _ints(data: pl.Series) -> pl.Series:
    return _number(data, pl.Int32()).cast(pl.String)


def _longs(data: pl.Series) -> pl.Series:
    return _number(data, pl.Int64()).cast(pl.String)


def _floats(data: pl.Series) -> pl.Series:
    return pl.Series(float_texts(_number(data, pl.Float32()).to_numpy()), dtype=pl.String)


_NUMBERS: Final[dict[int, Callable[[pl.Series], pl.Series]]] = {
    INT: _ints,
    LONG: _longs,
    FLOAT: _floats,
}
"""Kind of a value -> how a column of them is shown."""


def in_rows(rows: pl.Series, values: pl.Series, count: int) -> pl.Series:
    """Returns a column of `count` rows with `values` in `rows`, which ascend; null elsewhere."""
    every = pl.DataFrame({"row": np.arange(count, dtype=np.uint32)})
    found = pl.DataFrame([rows.alias("row").cast(pl.UInt32), values.alias("value")])
    return every.join(found, on="row", how="left", maintain_order="left")["value"]


ID: Final = pl.col("url").hash().alias("id")

Ids = npt.NDArray[np.uint64]
Places = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]


_STEPS: Final = 8
"""Ids that are looked at one by one; where many begin alike, the rest is cut in half."""


class SortedIds:
    """Sorted ids, and where those begin that have the same first bits. Since they are hashes, what
    is sought is one of the next few: eight times as fast as halving a million.
    """

    def __init__(self, ids: Ids) -> None:
        self.ids = ids
        # At least two slots for each id: the one sought is mostly the first or second of its own.
        bits = len(ids).bit_length() + 1
        self._shift = np.uint64(64 - bits)
        heads = np.arange(1 << bits, dtype=np.uint64) << self._shift
        self._begins = np.searchsorted(ids, heads).astype(np.int32)

    def places_of(self, wanted: Ids) -> tuple[Places, Mask]:
        """Returns the place of each of `wanted`, and a mask of those that are there."""
        ids, last = self.ids, len(self.ids) - 1
        if last < 0:
            return np.zeros(len(wanted), np.int64), np.zeros(len(wanted), bool)
        at = np.minimum(self._begins[wanted >> self._shift], last).astype(np.int64)
        lower = np.flatnonzero(ids[at] < wanted)
        for _ in range(_STEPS):
            at[lower] += 1
            lower = lower[at[lower] <= last]
            lower = lower[ids[at[lower]] < wanted[lower]]
        at[lower] = np.searchsorted(ids, wanted[lower])
        at = np.minimum(at, last)
        return at, ids[at] == wanted

    def places_of_runs(self, wanted: Ids) -> tuple[Places, Mask]:
        """Returns the same, faster for many repeats in a row, such as a page with many links."""
        heads = (
            np.flatnonzero(np.concatenate([[True], wanted[1:] != wanted[:-1]]))
            if len(wanted)
            else np.zeros(0, np.int64)
        )
        lengths = np.diff(np.append(heads, len(wanted)))
        at, there = self.places_of(wanted[heads])
        return np.repeat(at, lengths), np.repeat(there, lengths)


def of_keys(urls: pl.DataFrame) -> pl.DataFrame:
    """Returns a URL (`id`, …) for each `key` of `urls.urlkeys`: what other spellings mean. The
    least id decides where several have the same.
    """
    return urls.sort("id").unique("key", keep="first", maintain_order=True)
