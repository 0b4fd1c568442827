"""Reads the rules of an audit, those of `rules.toml` and the user's, and asks them of a crawl."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, fields, replace
from functools import cache
from importlib.resources import files
from typing import Any, Final, cast

import polars as pl

from minutch.conf import Configuration
from minutch.errors import ConfigError, QueryError, StoreError
from minutch.inspect.query.crawl import CrawlFolder
from minutch.inspect.query.results import csv_lines
from minutch.inspect.query.session import Session
from minutch.inspect.query.site import SiteTable, WrongLinksTable
from minutch.inspect.query.table import Request, Table
from minutch.plugin.repository import is_included

OWN: Final = "audit-rules.toml"
"""The user's rules, in a folder of configuration."""
SEVERITIES: Final = ("error", "warning", "notice")


@dataclass(frozen=True, slots=True)
class Rule:
    """A rule; what its fields are stands in `rules.toml`."""

    id: str
    severity: str
    says: str
    sql: str
    needs: str = ""
    set: str = ""
    where: Mapping[str, str] = field(default_factory=dict)


def rules_of(conf: Configuration) -> dict[str, Rule]:
    """Returns all rules by id, errors first. Raises ConfigError for what is no list of rules."""
    shipped = files("minutch.inspect.audit").joinpath("rules.toml").read_text(encoding="utf-8")
    found = {rule.id: rule for rule in _read(shipped, "rules.toml")}
    if (own := conf.resource(OWN)) is not None:
        # A rule of the same id takes the place of ours.
        found |= {rule.id: rule for rule in _read(conf.read_resource(OWN), str(own))}
    found = {
        name: replace(rule, needs="") if _is_configured(rule, conf) else rule
        for name, rule in found.items()
    }
    rank = {rule.id: SEVERITIES.index(rule.severity) for rule in found.values()}
    return {name: found[name] for name in sorted(found, key=lambda name: rank[name])}


def _is_configured(rule: Rule, conf: Configuration) -> bool:
    """Returns whether the configuration keeps what a rule needs; then a crawl without any of it has
    none, as a site without a single description.
    """
    return bool(rule.where) and all(
        is_included(conf, value)
        if name == "plugin.includes"
        else value in re.split(r"[,\s]+", conf.get(name, ""))
        for name, value in rule.where.items()
    )


def _read(text: str, where: str) -> Iterator[Rule]:
    try:
        entries = tomllib.loads(text).get("rule", [])
    except tomllib.TOMLDecodeError as exc:
        raise ConfigError(f"{where}: {exc}") from exc
    for number, entry in enumerate(entries, 1):
        yield _rule(entry, f"{where}: rule {number}")


def _rule(entry: Any, where: str) -> Rule:
    names = [one.name for one in fields(Rule)]
    if not isinstance(entry, dict) or not all(
        isinstance(value, dict if name == "where" else str) for name, value in entry.items()
    ):
        raise ConfigError(f"{where}: expected texts {', '.join(names)}")
    if unknown := entry.keys() - set(names):
        raise ConfigError(f"{where}: {', '.join(sorted(unknown))} is none of {', '.join(names)}")
    if missing := [name for name in names[:4] if not entry.get(name)]:
        raise ConfigError(f"{where}: no {' and no '.join(missing)}")
    if entry["severity"] not in SEVERITIES:
        raise ConfigError(
            f"{where}: severity: expected {', '.join(SEVERITIES)}, found {entry['severity']}"
        )
    return Rule(**entry)


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


class _Held(Table):
    """Keeps a table in memory."""

    def __init__(self, table: Table, rows: pl.DataFrame) -> None:
        self.name, self.columns = table.name, table.columns  # type: ignore[misc]
        self._rows = rows

    def frames(self, request: Request) -> Iterator[pl.DataFrame]:
        yield self.make(self._rows, request)


def _held(tables: Mapping[str, Table]) -> dict[str, Table]:
    """Keeps what nearly every rule asks for in memory: `site`, and the links to what is no page."""
    site, wrong = cast(SiteTable, tables[SiteTable.name]), tables[WrongLinksTable.name]
    # One reading of all parses for both, and for all rules.
    rows, links = site.read(site.columns, with_wrong=True)
    return {site.name: _Held(site, rows), wrong.name: _Held(wrong, links)}


def audit(crawl: CrawlFolder, rules: Iterable[Rule], now: int) -> Iterator[Finding]:
    """Yields what comes of each rule. Raises QueryError (invalid statement), FormatError."""
    tables = dict(crawl.tables)
    session = Session(crawl, now, tables | _held(tables))

    @cache
    def can_answer(needs: str) -> bool:
        # Several rules need the same: it is asked once, for one row.
        return not needs or bool(len(session.run(session.query(needs).head(1).collect)))

    for rule in rules:
        try:
            if not can_answer(rule.needs):
                yield Finding(rule, None)
                continue
            rows = session.run(session.query(rule.sql).collect)
        except StoreError:  # a store that does not exist
            yield Finding(rule, None)
            continue
        except QueryError as exc:
            raise QueryError(f"rule {rule.id}: {exc}", hint=exc.hint) from exc
        yield Finding(rule, rows)


def csv_of(rows: pl.DataFrame) -> Iterator[str]:
    """Yields rows as CSV that no spreadsheet evaluates: texts like formulas get an apostrophe."""
    texts = pl.col(pl.String)
    safe = pl.when(texts.str.contains(FORMULA)).then("'" + texts).otherwise(texts).name.keep()
    return csv_lines([rows.with_columns(safe)], rows.columns)
