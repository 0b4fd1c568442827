"""Evaluates expressions on tables of hosts, with these variables. Pure: no I/O.

    unfetched fetched gone redirTemp redirPerm notModified dnsFailures connectionFailures
    redirs       redirTemp + redirPerm
    ok           fetched + notModified
    numRecords   the sum of the six counts
    any key of the metadata whose value is a number or a text, including dots (pct95._rs_); in the
    key of a text, `-` becomes `_`

Nutch's generate lacks the sums, its readhostdb the texts, and both the long numbers of the
metadata.

Source: org.apache.nutch.hostdb.ReadHostDb.ReadHostDbMapper,
org.apache.nutch.crawl.Generator.SelectorReducer.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import polars as pl

from minutch.expressions import Expression
from minutch.hadoop.formats.writables import FloatWritable
from minutch.records.metadata_columns import FLOAT, INT, LONG, TEXT, entries

_STATUSES: Final = ("unfetched", "fetched", "gone", "redir_temp", "redir_perm", "not_modified")
FIXED: Final[Mapping[str, pl.Expr]] = {
    "unfetched": pl.col("unfetched"),
    "fetched": pl.col("fetched"),
    "gone": pl.col("gone"),
    "redirTemp": pl.col("redir_temp"),
    "redirPerm": pl.col("redir_perm"),
    "redirs": pl.col("redir_perm") + pl.col("redir_temp"),
    "notModified": pl.col("not_modified"),
    "ok": pl.col("fetched") + pl.col("not_modified"),
    "numRecords": pl.sum_horizontal(_STATUSES),
    "dnsFailures": pl.col("dns_failures"),
    "connectionFailures": pl.col("connection_failures"),
}
"""Variable -> its values, from columns of the HostDb."""


def evaluate(
    hosts: pl.DataFrame, expression: Expression, more: Mapping[str, object] | None = None
) -> list[object]:
    """Evaluates the expression for each host (HOSTDB_SCHEMA); None where it has no value.

    `more` has variables that are the same for all hosts. Raises FormatError for damaged metadata.
    """
    constant = dict(more or {})
    asked = expression.names()
    used = [name for name in FIXED if name in {text.partition(".")[0] for text in asked}]
    if not asked - set(FIXED) - set(constant):
        return _by_distinct(hosts, expression, used, constant)
    described = _described(hosts)
    values = []
    for row, fixed in enumerate(_rows(hosts, used)):
        variables = {**constant, **dict(zip(used, fixed, strict=True)), **described.get(row, {})}
        values.append(expression.evaluate(variables))
    return values


def _by_distinct(
    hosts: pl.DataFrame, expression: Expression, used: list[str], constant: Mapping[str, object]
) -> list[object]:
    """Evaluates the expression once for each distinct combination of the fields that it uses."""
    known: dict[tuple[object, ...], object] = {}
    values = []
    for fixed in _rows(hosts, used):
        if fixed not in known:
            known[fixed] = expression.evaluate({**constant, **dict(zip(used, fixed, strict=True))})
        values.append(known[fixed])
    return values


def _rows(hosts: pl.DataFrame, used: list[str]) -> list[tuple[object, ...]]:
    if not used:
        return [()] * len(hosts)
    return hosts.select(FIXED[name].alias(name) for name in used).rows()


def _described(hosts: pl.DataFrame) -> dict[int, dict[str, object]]:
    """Returns the variables from the metadata of each host that has some, by its row."""
    found: dict[int, dict[str, object]] = {}
    for row, key, kind, value in entries(hosts["metadata"], hosts["key"]).iter_rows():
        name, variables = key.decode("utf-8", "replace"), found.setdefault(row, {})
        if kind == FLOAT:
            variables[name] = FloatWritable.from_bytes(value).value
        elif kind in (INT, LONG):
            variables[name] = int.from_bytes(value, "big", signed=True)
        elif kind == TEXT:
            variables[name.replace("-", "_")] = value.decode("utf-8", "replace")
    return found
