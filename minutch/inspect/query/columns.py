"""Makes typed columns of tables from the fields of records. Pure: no I/O.

STATUS      Nutch's names of statuses, an enumeration; `unknown` for a code that has none
TIME        milliseconds, UTC; a time of 0 stands for none where Nutch uses it so, and one before
            year 1 or after 9999, where calendars end (ISO/IEC 9075-2, 4.6.2), is the first or last
METADATA    a list of key and value, in the order of the record; values as Nutch shows them
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

import numpy as np
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
