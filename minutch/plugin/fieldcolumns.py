"""Converts columns of document fields: lists, texts, joined values (types: `documents`)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from datetime import datetime
from typing import Any, Final

import numpy as np
import polars as pl

from minutch.hadoop.formats.javahash import date_to_string
from minutch.records.document import Date, FieldValue, Long, value_text
from minutch.urls.hostcolumns import map_distinct
from minutch.work.tables.textparts import float_texts

_DATE: Final = pl.Datetime("ms")
_USUAL_DATES: Final = datetime(1970, 1, 1), datetime(9999, 12, 31)
"""Years of four digits, in which every calendar agrees with Java's."""
_TYPES: Final[dict[type, pl.DataType]] = {
    str: pl.String(), bool: pl.Boolean(), int: pl.Int32(), Long: pl.Int64(), float: pl.Float32(),
    Date: _DATE,
}  # fmt: skip
_MAKERS: Final[dict[pl.DataType, Callable[[Any], FieldValue]]] = {pl.Int64(): Long, _DATE: Date}


def lists_of(values: pl.Series) -> Iterator[list[Any] | None]:
    """Returns the values of each document in a column, as `records.document` has them."""
    if values.dtype == pl.Object:
        yield from (None if found is None else list(found) for found in values)
        return
    inner = values.dtype.inner if isinstance(values.dtype, pl.List) else values.dtype
    make = next((make for dtype, make in _MAKERS.items() if dtype == inner), None)
    if inner == _DATE:
        # Dates as ms: Python's datetime ends with the year 9999.
        values = values.cast(pl.List(pl.Int64) if isinstance(values.dtype, pl.List) else pl.Int64)
    for found in values.to_list():
        if found is None:
            yield None
            continue
        items = found if isinstance(found, list) else [found]
        yield [make(item) for item in items] if make else items


def column_of(name: str, found: Sequence[list[FieldValue] | None]) -> pl.Series:
    """Makes a column of the values of each document, None if it has none."""
    kinds = {type(value) for values in found if values for value in values}
    dtype = _TYPES.get(next(iter(kinds))) if len(kinds) == 1 else None
    # Values of several types have no column of their own in Polars.
    if dtype is None:
        return pl.Series(name, found, dtype=pl.Object)
    stored = pl.Int64() if dtype == _DATE else dtype
    if all(values is None or len(values) == 1 for values in found):
        single = [None if values is None else values[0] for values in found]
        return pl.Series(name, single, dtype=stored).cast(dtype)
    return pl.Series(name, found, dtype=pl.List(stored)).cast(pl.List(dtype))


def joined_fields(before: pl.Series, more: pl.Series) -> pl.Series:
    """Joins the values of two columns, document by document."""
    kinds = {
        column.dtype.inner if isinstance(column.dtype, pl.List) else column.dtype
        for column in (before, more)
    }
    if len(kinds) > 1 or pl.Object in kinds:
        pairs = zip(lists_of(before), lists_of(more), strict=True)
        return column_of(
            before.name, [old if new is None else [*(old or []), *new] for old, new in pairs]
        )
    # No document has both: no lists are needed.
    if not (before.is_not_null() & more.is_not_null()).any() and before.dtype == more.dtype:
        return before.zip_with(before.is_not_null(), more)
    old, new = as_lists(before), as_lists(more)
    both = pl.select(
        pl.concat_list(pl.lit(old), pl.lit(new))
    ).to_series()  # null where one of them is
    return both.zip_with(both.is_not_null(), old.zip_with(old.is_not_null(), new))


def as_lists(values: pl.Series) -> pl.Series:
    """Converts a column to one of lists; null stays null."""
    if isinstance(values.dtype, pl.List):
        return values
    lists = (
        # Arrays of one: without a Python object for each.
        values.reshape((len(values), 1)).arr.to_list()
        if len(values)
        else values.cast(pl.List(values.dtype))
    )
    return lists.to_frame("v").select(pl.when(values.is_not_null()).then(pl.col("v"))).to_series()


def texts_of(values: pl.Series) -> pl.Series:
    """Returns a column's values as Java prints them: String if each has one, else List(String)."""
    if values.dtype == pl.Object:
        found = [
            None if items is None else [value_text(item) for item in items]
            for items in lists_of(values)
        ]
        return pl.Series(values.name, found, dtype=pl.List(pl.String))
    if not isinstance(values.dtype, pl.List):
        return _texts(values)
    if values.dtype == pl.List(pl.String):
        return values
    lengths = values.list.len()
    # Empty lists would explode to nulls.
    flat = _texts(values.filter(lengths > 0).explode())
    owner = np.repeat(np.arange(len(values)), lengths.fill_null(0).to_numpy())
    grouped = (
        pl.DataFrame({"row": owner, "text": flat}).group_by("row", maintain_order=True).agg("text")
    )
    every = pl.DataFrame({"row": np.arange(len(values)), "there": values.is_not_null()})
    joined = every.join(grouped, on="row", how="left", maintain_order="left")
    empty = pl.lit([], dtype=pl.List(pl.String))
    return (
        joined.select(pl.when("there").then(pl.col("text").fill_null(empty)))
        .to_series()
        .alias(values.name)
    )


def _texts(values: pl.Series) -> pl.Series:
    if values.dtype == pl.String:
        return values
    if values.dtype == _DATE:
        usual = values.is_between(*_USUAL_DATES)
        if usual.all():
            # Date.toString in UTC.
            return values.dt.strftime("%a %b %d %H:%M:%S UTC %Y")
        # Java counts by the Julian calendar before 1582.
        return map_distinct(values.cast(pl.Int64), date_to_string, pl.String())
    if values.dtype == pl.Float32:
        return float_texts(values)
    return values.cast(pl.String)


def cut_texts(values: pl.Series, length: int) -> pl.Series:
    """Cuts strings to at most `length` UTF-16 units; half a surrogate pair becomes a `?`."""
    # No string has more UTF-16 units than bytes.
    too_long = (values.str.len_bytes() > length).fill_null(False)
    if not too_long.any():
        return values
    rows = too_long.arg_true()
    long = values.gather(rows)
    cut = long.str.head(max(length, 0))
    beyond = long.str.contains("[\U00010000-\U0010ffff]").arg_true()  # characters of two units
    if len(beyond):
        units = (text.encode("utf-16-le")[: 2 * max(length, 0)] for text in long.gather(beyond))
        texts = [
            piece.decode("utf-16-le", "surrogatepass").encode("utf-8", "replace").decode()
            for piece in units
        ]
        cut = cut.scatter(beyond, pl.Series(texts, dtype=pl.String))
    return values.clone().scatter(rows, cut)
