"""Encodes documents as JSON objects, column by column.

A field with one value is that value, one with several an array; a field that a document lacks is
left out. Dates are in UTC as Java's ISO_INSTANT prints them: 2026-11-22T16:00:00Z, with
milliseconds where there are some.

>>> documents = Documents(pl.Series(["http://a.org/"]))
>>> documents.add("title", pl.Series(["A"]))
>>> json_objects(documents.fields, 1).to_list()
[b'{"title":"A"}']
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any, Final

import polars as pl

from minutch.plugin.documents import Documents, as_lists
from minutch.records.document import Date

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_DATE: Final = pl.Datetime("ms")
_NO_CHARACTERS: Final = r"[\p{NChar}\x00-\x08\x0b\x0c\x0e-\x1f]"


def columns_of(documents: Documents) -> dict[str, pl.Series]:
    """Returns the fields with their columns."""
    return {
        name: values for name in documents.names() if (values := documents.column(name)) is not None
    }


def json_objects(fields: Mapping[str, pl.Series], count: int, *, arrays: bool = False) -> pl.Series:
    """Returns an object for each of `count` documents (Binary), in UTF-8. `arrays`: one value is an
    array, too.
    """
    members = [_members(values.alias(name), arrays) for name, values in fields.items()]
    if not members:
        return pl.Series("payload", [b"{}"] * count, dtype=pl.Binary)
    inside = pl.concat_str([pl.lit(column) for column in members], separator=",", ignore_nulls=True)
    return (
        pl.select(pl.concat_str(pl.lit("{"), inside, pl.lit("}")))
        .to_series()
        .cast(pl.Binary)
        .alias("payload")
    )


def without_noncharacters(values: pl.Series) -> pl.Series:
    """Texts without code points that stand for no character, and without control characters but
    tab, CR and LF.
    """
    return without(values, _NO_CHARACTERS)


def without(values: pl.Series, pattern: str) -> pl.Series:
    """Texts, and lists of them, without what matches `pattern`; other values as they are."""
    if values.dtype == pl.String:
        return values.str.replace_all(pattern, "")
    if values.dtype == pl.List(pl.String):
        return values.list.eval(pl.element().str.replace_all(pattern, ""))
    return values


def _members(values: pl.Series, arrays: bool) -> pl.Series:
    """`"name":value` for each document, null where it has none."""
    if values.dtype == pl.Object:
        members = [
            None if found is None else _member(values.name, found, arrays) for found in values
        ]
        return pl.Series(values.name, members, dtype=pl.String)
    column = pl.col(values.name)
    if values.dtype == _DATE:
        values = values.to_frame().select(_iso(column)).to_series()
    elif values.dtype == pl.List(_DATE):
        values = values.list.eval(_iso(pl.element()))
    if arrays or not isinstance(values.dtype, pl.List):
        whole = as_lists(values).alias(values.name) if arrays else values
        return _present(_encoded(whole.to_frame()), values)
    single = values.to_frame().select(column.list.first())
    several = (values.list.len() > 1).fill_null(False)
    return _present(_encoded(values.to_frame()).zip_with(several, _encoded(single)), values)


def _present(texts: pl.Series, values: pl.Series) -> pl.Series:
    """`texts` where there are values, null elsewhere."""
    return pl.select(
        pl.when(pl.lit(values.is_not_null())).then(pl.lit(texts)).alias(values.name)
    ).to_series()


def _encoded(column: pl.DataFrame) -> pl.Series:
    """Returns the members of objects that have nothing but this column."""
    objects = column.select(pl.struct(pl.all()).struct.json_encode()).to_series()
    return objects.str.slice(1).str.head(-1)


def _iso(values: pl.Expr) -> pl.Expr:
    return values.dt.strftime("%Y-%m-%dT%H:%M:%S%.3fZ").str.replace(r"\.000Z$", "Z")


def _member(name: str, found: Iterable[Any], arrays: bool) -> str:
    """Returns the same for values of several types."""
    values = [_iso_text(value) if isinstance(value, Date) else value for value in found]
    whole = {name: values[0] if len(values) == 1 and not arrays else values}
    return json.dumps(whole, ensure_ascii=False, separators=(",", ":"))[1:-1]


def _iso_text(date: Date) -> str:
    moment = _EPOCH + timedelta(milliseconds=int(date))
    return re.sub(r"(\.000)?\+00:00$", "Z", moment.isoformat(timespec="milliseconds"))
