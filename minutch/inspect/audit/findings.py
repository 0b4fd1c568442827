"""Asks the rules of an audit of a crawl."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import ClassVar, Final

import polars as pl

from minutch.errors import QueryError, StoreError
from minutch.inspect.audit.rules import Rule
from minutch.inspect.query.crawl import Crawl
from minutch.inspect.query.results import csv_lines
from minutch.inspect.query.session import Session, in_utc
from minutch.inspect.query.site import SiteTable
from minutch.inspect.query.table import Request, Table

FORMULA: Final = r"^[=+\-@\t\r]"
"""How a cell begins that spreadsheets would compute (OWASP, "CSV Injection")."""


@dataclass(frozen=True, slots=True)
class Finding:
    """What came of a rule: its rows, or None where the crawl can't answer."""

    rule: Rule
    rows: pl.DataFrame | None

    @property
    def count(self) -> int:
        """The number of rows."""
        return 0 if self.rows is None else len(self.rows)

    def urls(self, most: int) -> list[str]:
        """Returns the first URLs, each once."""
        if self.rows is None or not self.rows.width:
            return []
        first = self.rows.to_series(0).cast(pl.String).drop_nulls()
        return first.unique(maintain_order=True).head(most).to_list()


class _HeldSite(Table):
    """The table `site`, in memory, since nearly every rule asks for it."""

    name = SiteTable.name
    columns: ClassVar = SiteTable.columns

    def __init__(self, table: Table) -> None:
        self._rows = pl.concat(table.frames(Request(tuple(table.columns))))

    def frames(self, request: Request) -> Iterator[pl.DataFrame]:
        yield self.make(self._rows, request)


def audit(crawl: Crawl, rules: Iterable[Rule], now: int) -> Iterator[Finding]:
    """Yields what comes of each rule. Raises QueryError for a statement that is none, FormatError
    (damage).
    """
    tables = dict(crawl.tables)
    session = Session(crawl, now, tables | {"site": _HeldSite(tables["site"])})
    for rule in rules:
        try:
            if rule.needs and not len(session.query(rule.needs).head(1).collect()):
                yield Finding(rule, None)
                continue
            rows = in_utc(session.query(rule.sql)).collect(engine="streaming")
        except StoreError:  # a store that does not exist
            yield Finding(rule, None)
            continue
        except (QueryError, pl.exceptions.PolarsError) as exc:
            said = exc if isinstance(exc, QueryError) else session.error(exc, rule.sql)
            raise QueryError(f"rule {rule.id}: {said}", hint=said.hint) from exc
        yield Finding(rule, rows)


def csv_of(rows: pl.DataFrame) -> Iterator[str]:
    """Yields rows as CSV that no spreadsheet computes: a text that looks like a formula gets an
    apostrophe.
    """
    texts = pl.col(pl.String)
    safe = pl.when(texts.str.contains(FORMULA)).then("'" + texts).otherwise(texts).name.keep()
    return csv_lines([rows.with_columns(safe)], rows.columns)
