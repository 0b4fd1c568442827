"""The table `checks`: what `check` has found out about links that are no pages of the crawl, and
about those with a fragment; beside the CrawlDb, as Parquet files.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import ClassVar, Final

import polars as pl

from minutch.errors import StoreError
from minutch.inspect.query.columns import TIME
from minutch.inspect.query.outcomes import OUTCOMES
from minutch.inspect.query.table import Column, Request, Table
from minutch.work.tables.database import Database

CHECKS: Final = "checks"
"""The folder beside the CrawlDb."""
_TYPES: Final = {
    "url": pl.String(),
    "fragment": pl.String(),
    "from_url": pl.String(),
    "anchor": pl.String(),
    "external": pl.Boolean(),
    "outcome": pl.Enum(OUTCOMES),
    "code": pl.Int32(),
    "reason": pl.String(),
    "asked": TIME,
    "has_fragment": pl.Boolean(),
}


def _column(name: str, dtype: pl.DataType) -> Column:
    return Column(dtype, lambda rows: rows[name])


class Checks(Database):
    """What a check has found out, in a folder."""

    def parts(self) -> list[Path]:
        return sorted(self.current.glob("*.parquet"))


class ChecksTable(Table):
    """A table with one row per link that was checked."""

    name = CHECKS
    columns: ClassVar = {name: _column(name, dtype) for name, dtype in _TYPES.items()}

    def __init__(self, checks: Checks) -> None:
        self._checks = checks

    def partitions(self) -> Mapping[str, Table]:
        if not self._checks.exists():
            raise StoreError(f"Input path does not exist: {self._checks.path}")
        return super().partitions()

    def frames(self, request: Request) -> Iterator[pl.DataFrame]:
        for part in self._checks.parts():
            yield self.make(pl.read_parquet(part), request)
