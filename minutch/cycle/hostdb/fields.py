"""Aggregates metadata fields of pages per host, as keys and values of the host's metadata. Pure: no
I/O.

    <field>.<value>                     LongWritable   pages with this value (hostdb.string.fields)
    max.<field> avg.<field> min.<field> FloatWritable  of the values that are numbers
                                                       (hostdb.numeric.fields)
    pct<n>.<field>                      FloatWritable  the n-th percentile (hostdb.percentiles)

The percentile p of n sorted values is the value at index floor(p / 100 * n), or the last one, as
Nutch's t-digest computes it while it keeps all values. Nutch stores the median for each percentile.

Source: org.apache.nutch.hostdb.UpdateHostDbReducer.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

import numpy as np
import polars as pl

from minutch.conf import Configuration, Settings, prop
from minutch.errors import ConfigError
from minutch.hadoop.formats.javahash import (
    float32,
    float_to_string,
    names_order,
    parse_float,
    string_hash,
)
from minutch.hadoop.formats.writables import FloatWritable, IntWritable, LongWritable, Writable
from minutch.records.metadata_columns import (
    FLOAT,
    INT,
    LONG,
    STATUS,
    TEXT,
    entries,
    hash_buckets,
    stored,
)
from minutch.records.protocol import ProtocolStatus
from minutch.urls.hostcolumns import map_distinct
from minutch.work.tables.frame import decode_keys, encode_keys

VALUES_SCHEMA: Final = pl.Schema(
    {
        "key": pl.Binary(),  # the host
        "field": pl.UInt16(),  # index in the string fields followed by the numeric ones
        "text": pl.Binary(),  # the value of a string field
        "number": pl.Float32(),  # the value of a numeric one
        "count": pl.Int64(),  # pages
    }
)
NEW_SCHEMA: Final = pl.Schema({"row": pl.UInt32(), "key": pl.Binary(), "value": pl.Binary()})
"""Entries of metadata, key and value as stored, in their order in the map of host `row`."""

_NUMBERS: Final[dict[int, type[Writable]]] = {
    INT: IntWritable,
    LONG: LongWritable,
    FLOAT: FloatWritable,
}


def _names(conf: Configuration, name: str) -> tuple[str, ...]:
    return tuple(dict.fromkeys(conf.get_trimmed_strings(name)))


def _percentiles(conf: Configuration, name: str) -> tuple[int, ...]:
    return tuple(dict.fromkeys(map(_percentile, conf.get_trimmed_strings(name))))


@dataclass(frozen=True, slots=True)
class Fields(Settings):
    """hostdb.string.fields, hostdb.numeric.fields, hostdb.percentiles."""

    strings: tuple[str, ...] = prop("hostdb.string.fields", _names)
    numbers: tuple[str, ...] = prop("hostdb.numeric.fields", _names)
    percentiles: tuple[int, ...] = prop("hostdb.percentiles", _percentiles)

    def values(self, hosts: pl.Series, pages: pl.DataFrame) -> pl.DataFrame:
        """Counts the pages of each host by value: a table of VALUES_SCHEMA, values in the order of
        their first appearance.

        `pages` has key and metadata, `hosts` (Binary) the host of each. Raises FormatError for
        damaged metadata.
        """
        names = dict.fromkeys((*self.strings, *self.numbers))
        found = entries(pages["metadata"], pages["key"], tuple(names))
        if found.is_empty():
            return VALUES_SCHEMA.to_frame()
        found = found.with_columns(key=hosts.gather(found["row"]))
        none = pl.lit(None, pl.Float32), pl.lit(None, pl.Binary)
        tables = []
        for number, name in enumerate(self.strings):
            mine = found.filter(pl.col("name") == name.encode())
            tables.append(
                mine.select("key", pl.lit(number).alias("field"), text=_texts(mine), number=none[0])
            )
        for number, name in enumerate(self.numbers, len(self.strings)):
            mine = found.filter(pl.col("name") == name.encode())
            numbers = mine.select(
                "key", pl.lit(number).alias("field"), text=none[1], number=_floats(mine)
            )
            # Float.parseFloat fails, which Nutch's reducer logs.
            tables.append(numbers.filter(pl.col("number").is_not_null()))
        together = pl.concat(tables).cast({"field": pl.UInt16})
        keys = ("key", "field", "text", "number")
        # Few rows for many pages: what is sorted by host are these.
        return together.group_by(keys, maintain_order=True).agg(count=pl.len().cast(pl.Int64))

    def writes(self, name: bytes) -> bool:
        """Returns True for a key of a host's metadata that this job writes."""
        # Names have dots of their own: the field is all behind the first one.
        text = name.decode("utf-8", "replace")
        kind, _, field = text.partition(".")
        if field in self.numbers and (
            kind in ("max", "avg", "min") or re.fullmatch(r"pct\d+", kind)
        ):
            return True
        return any(text.startswith(f"{string}.") for string in self.strings)

    def summaries(self, rows: pl.Series, values: pl.DataFrame) -> pl.DataFrame:
        """Makes the new metadata of hosts, as NEW_SCHEMA.

        `values` is a table of VALUES_SCHEMA with each value of a host once, `rows` has the host's
        row for each of its rows.
        """
        table = values.with_columns(row=rows)
        counted = self._counts(table.filter(pl.col("field") < len(self.strings)))
        return pl.concat(
            [counted, self._statistics(table.filter(pl.col("field") >= len(self.strings)))]
        )

    def _counts(self, table: pl.DataFrame) -> pl.DataFrame:
        """Makes the entries of the string fields, by field and value in the order of Java maps."""
        if table.is_empty():
            return NEW_SCHEMA.to_frame()
        # UpdateHostDbReducer holds its fields in a HashMap, whose order the metadata have.
        position = {field: index for index, field in enumerate(names_order(self.strings))}
        groups = (
            table.select(pl.struct("row", "field").rank("dense").alias("g"))["g"].to_numpy() - 1
        )
        hashes = map_distinct(
            table["text"],
            lambda text: string_hash(text.decode("utf-8", "replace")) & 0xFFFF_FFFF,
            pl.Int64(),
        )
        ordered = table.with_columns(
            position=pl.col("field").replace_strict(position, return_dtype=pl.Int64),
            bucket=pl.Series(hash_buckets(groups.astype(np.int64), hashes.to_numpy())),
        ).sort("row", "position", "bucket", maintain_order=True)
        names = [f"{name}.".encode() for name in self.strings]
        keys = [
            stored(names[field] + text)
            for field, text in ordered.select("field", "text").iter_rows()
        ]
        values = ordered["count"]
        head = bytes((LONG,))
        return pl.DataFrame(
            {
                "row": ordered["row"],
                "key": keys,
                "value": [head + int(value).to_bytes(8, "big", signed=True) for value in values],
            },
            schema=NEW_SCHEMA,
        )

    def _statistics(self, table: pl.DataFrame) -> pl.DataFrame:
        """Makes the entries of the numeric fields: maximum, average, percentiles, minimum, each in
        the order of a Java map of the fields.
        """
        if table.is_empty():
            return NEW_SCHEMA.to_frame()
        wide = pl.col("number").cast(pl.Float64)
        total = pl.col("count").sum()
        table = table.sort("row", "field", "number", maintain_order=True)
        table = table.with_columns(until=pl.col("count").cum_sum().over("row", "field"))
        wanted = [
            ("max", pl.col("number").max()),
            (
                "avg",
                # Nutch's sum is a float; summed in 64 bits it does not depend on the order.
                ((wide * pl.col("count")).sum().cast(pl.Float32).cast(pl.Float64) / total).cast(
                    pl.Float32
                ),
            ),
            # In the order in which UpdateHostDbReducer puts them into the map.
            *((f"pct{p}", self._percentile(p, total)) for p in self.percentiles),
            ("min", pl.col("number").min()),
        ]
        found = table.group_by("row", "field", maintain_order=True).agg(**dict(wanted))
        position = {
            field + len(self.strings): index
            for index, field in enumerate(names_order(self.numbers))
        }
        found = found.with_columns(
            position=pl.col("field").replace_strict(position, return_dtype=pl.Int64)
        )
        found = found.sort("row", "position")
        kinds = ["max", "avg", "pct", "min"]
        tables = []
        for name, _ in wanted:
            keys = [stored(f"{name}.{field}".encode()) for field in self.numbers]
            key = found["field"] - len(self.strings)
            data = found[name].to_numpy().astype(">f4").tobytes()
            head = bytes((FLOAT,))
            tables.append(
                found.select(
                    "row",
                    "position",
                    kind=pl.lit(kinds.index(name[:3])),
                    key=pl.Series(keys, dtype=pl.Binary).gather(key),
                    value=pl.Series(
                        [head + data[at : at + 4] for at in range(0, len(data), 4)], dtype=pl.Binary
                    ),
                )
            )
        return (
            pl.concat(tables)
            .sort("row", "kind", "position", maintain_order=True)
            .select(NEW_SCHEMA.names())
        )

    @staticmethod
    def _percentile(percentile: int, total: pl.Expr) -> pl.Expr:
        """Selects a percentile of values in ascending order, with the cumulative counts `until`."""
        target = pl.min_horizontal((total * percentile).floordiv(100), total - 1)
        return pl.col("number").filter(pl.col("until") > target).first()


def _percentile(text: str) -> int:
    if not (text.isascii() and text.isdigit() and int(text) <= 100):
        raise ConfigError(
            f"hostdb.percentiles: expected whole numbers from 0 to 100, found {text!r}"
        )
    return int(text)


def _texts(found: pl.DataFrame) -> pl.Series:
    """Returns the values of entries as toString formats them, in UTF-8."""
    if (found["kind"] == TEXT).all():
        return encode_keys(decode_keys(found["value"]))
    return _distinct(found, lambda kind, value: text_of(kind, value).encode(), pl.Binary())


def _floats(found: pl.DataFrame) -> pl.Series:
    """Returns the values of entries as numbers, null if they are none."""
    return _distinct(found, number_of, pl.Float32())


def _distinct(
    found: pl.DataFrame, function: Callable[[int, bytes], object], dtype: pl.DataType
) -> pl.Series:
    """Applies `function` to kind and value, once for each distinct pair."""
    pairs = found.select("kind", "value")
    distinct = pairs.unique()
    results = [function(*pair) for pair in distinct.iter_rows()]
    known = distinct.with_columns(result=pl.Series(results, dtype=dtype))
    return pairs.join(known, on=("kind", "value"), how="left", maintain_order="left")["result"]


def text_of(kind: int, value: bytes) -> str:
    """Returns the value of a metadata entry as its toString formats it."""
    if kind == FLOAT:
        return float_to_string(FloatWritable.from_bytes(value).value)
    if kind in _NUMBERS:
        return str(int.from_bytes(value, "big", signed=True))
    if kind == STATUS:
        return str(ProtocolStatus.from_bytes(value))
    return value.decode("utf-8", "replace")


def number_of(kind: int, value: bytes) -> float | None:
    """Returns the value as a 32-bit float; None if it is no number or NaN."""
    try:
        number = float32(parse_float(text_of(kind, value)))
    except ValueError:
        return None
    return None if math.isnan(number) else number
