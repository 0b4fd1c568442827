"""Decides which URLs of a pattern may be asked for: those that differ in the values of their query
alone are one pattern, of which generate.max.per.pattern have a place in all.

    http://a.example/list?page=7&sort=up    pattern: http://a.example/list?page&sort

A calendar or a sort order makes URLs without end; a limit of each pattern bounds them all. What was
asked for before counts first, then those with the lowest hash: the choice depends on the CrawlDb
alone. Nothing is kept: the counts are those of the CrawlDb. Pure: no I/O.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

import polars as pl

from minutch.cycle.fetchlist.select import mixed, url_hashes
from minutch.records.crawldatum import STATUS_DB_UNFETCHED
from minutch.work.tables.frame import decode_keys

PROPERTY = "generate.max.per.pattern"
_SCHEMA = pl.Schema({"pattern": pl.UInt64(), "hash": pl.UInt32(), "asked": pl.Boolean()})
_MANY = 1_000_000
"""Rows from which on those beyond the limit are dropped."""


def patterns_of(frame: pl.DataFrame) -> pl.DataFrame:
    """Returns `row`, `pattern` and `hash` of the entries (`key`) of a table that have a query."""
    keys = frame.select("key").with_row_index("row")
    keys = keys.filter(pl.col("key").bin.contains(b"?"))
    url, query = pl.col("url"), pl.col("url").str.extract(r"\?([^#]*)")
    names = query.str.replace_all(";", "&", literal=True).str.replace_all(r"=[^&]*", "")
    names = names.str.split("&").list.unique().list.sort().list.join("&")
    return keys.with_columns(url=decode_keys(keys["key"])).select(
        "row",
        pattern=(url.str.extract(r"^([^?#]*)") + "?" + names).hash(),
        hash=pl.Series(mixed(url_hashes(keys["key"])), dtype=pl.UInt32),
    )


@dataclass(frozen=True, slots=True)
class PatternLimits:
    """The patterns that have more URLs than places."""

    last: pl.DataFrame = field(
        default_factory=lambda: pl.DataFrame(schema={"pattern": pl.UInt64, "last": pl.Int64})
    )
    """The highest hash that has a place, by pattern; -1: none has."""

    @classmethod
    def of(
        cls, tables: Iterable[pl.DataFrame], most: int, taken: pl.Series | None
    ) -> PatternLimits:
        """Counts the entries of a CrawlDb; `most` is the limit, `taken` are keys that are being
        asked for.
        """
        found, rows = [pl.DataFrame(schema=_SCHEMA)], 0
        for table in tables:
            asked = _is_asked(table)
            if taken is not None and len(taken):
                asked |= table["key"].is_in(taken.implode())
            some = patterns_of(table)
            found.append(some.with_columns(asked=asked.gather(some["row"])).drop("row"))
            rows += len(some)
            if rows > _MANY:
                found, rows = [_best(pl.concat(found), most)], 0
        entries = pl.concat(found)
        counts = entries.group_by("pattern").agg(pl.len(), pl.col("asked").sum())
        full = counts.filter(pl.col("len") > most).select(
            "pattern", left=(most - pl.col("asked").cast(pl.Int64)).clip(0)
        )
        rank = pl.col("hash").rank("ordinal").over("pattern")
        new = entries.filter(~pl.col("asked")).join(full, on="pattern").with_columns(rank=rank)
        has_place = pl.col("rank") <= pl.col("left")
        last = new.group_by("pattern").agg(
            last=pl.col("hash").filter(has_place).max().cast(pl.Int64).fill_null(-1)
        )
        return cls(last.sort("pattern"))

    def have_place(self, frame: pl.DataFrame) -> pl.Series:
        """Returns the mask of the entries that may be asked for."""
        mask = pl.Series([True]).new_from_index(0, len(frame))
        if self.last.is_empty():
            return mask
        some = patterns_of(frame).join(self.last, on="pattern")
        beyond = some.filter(pl.col("hash") > pl.col("last"))["row"]
        return mask.scatter(beyond, False) | _is_asked(frame)


def _is_asked(frame: pl.DataFrame) -> pl.Series:
    return (frame["status"] != STATUS_DB_UNFETCHED) | (frame["retries"] > 0)


def _best(found: pl.DataFrame, most: int) -> pl.DataFrame:
    """Drops of each pattern what is beyond any limit; one more stays, to know that there is."""
    rank = pl.col("hash").rank("ordinal").over("pattern", "asked")
    return found.filter(rank <= most + 1)
