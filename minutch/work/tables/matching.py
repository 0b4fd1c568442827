"""Filter expressions over tables of CrawlDb entries: which rows match; over tables of hosts: their
values. Pure: no I/O.

Rows with metadata are asked one by one. For the others an expression is evaluated once for each
distinct combination of the fields that it names, which for most expressions are far fewer than
rows. Matched: org.apache.nutch.crawl.CrawlDatum.execute.

Of hosts these are the variables:

    unfetched fetched gone redirTemp redirPerm notModified dnsFailures connectionFailures
    redirs       redirTemp + redirPerm
    ok           fetched + notModified
    numRecords   the sum of the six counts
    any key of the metadata whose value is a number or a text, including dots (pct95._rs_); in the
    key of a text, `-` becomes `_`

Nutch's generate lacks the sums, its readhostdb the texts, and both the long numbers of the
metadata. Source: org.apache.nutch.hostdb.ReadHostDb.ReadHostDbMapper,
org.apache.nutch.crawl.Generator.SelectorReducer.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

import polars as pl

from minutch.expressions import Expression
from minutch.hadoop.formats.javaio import decode_text
from minutch.hadoop.formats.writables import FloatWritable
from minutch.records import crawldatum_columns
from minutch.records.crawldatum import status_name
from minutch.records.metadata_columns import FLOAT, INT, LONG, TEXT, entries

_FIELDS: Final = {
    "url": "key", "status": "status", "fetchTime": "fetch_time", "modifiedTime": "modified_time",
    "retries": "retries", "interval": "fetch_interval", "score": "score", "signature": "signature",
}  # fmt: skip
"""Variable -> column."""


def matching(frame: pl.DataFrame, expression: Expression) -> pl.Series:
    """Evaluates the expression for each row of `frame` (CRAWLDB_SCHEMA, more columns may follow);
    returns the mask of those for which it is true.
    """
    bare = frame["metadata"].is_null()
    result = pl.repeat(False, len(frame), dtype=pl.Boolean, eager=True)
    if bare.any():
        result = result.scatter(bare.arg_true(), _by_fields(frame.filter(bare), expression))
    if not bare.all():
        others = frame.filter(~bare)
        found = [
            expression.matches(datum.variables(url))
            for url, datum in crawldatum_columns.records(others)
        ]
        result = result.scatter((~bare).arg_true(), pl.Series(found, dtype=pl.Boolean))
    return result


def _by_fields(frame: pl.DataFrame, expression: Expression) -> pl.Series:
    """The same for rows without metadata."""
    # `url.length()` is about `url`.
    named = {name.partition(".")[0] for name in expression.names()}
    fields = [field for field in _FIELDS if field in named]
    if not fields:
        return pl.repeat(expression.matches({}), len(frame), dtype=pl.Boolean, eager=True)
    columns = frame.select([_FIELDS[field] for field in fields])
    if "url" in fields:  # each row is distinct
        return _evaluated(columns, fields, expression)
    distinct = columns.unique()
    answers = distinct.with_columns(_evaluated(distinct, fields, expression).alias("_match"))
    # `nulls_equal`: a signature may be missing.
    joined = columns.join(
        answers, on=columns.columns, how="left", nulls_equal=True, maintain_order="left"
    )
    return joined["_match"]


def _evaluated(columns: pl.DataFrame, fields: list[str], expression: Expression) -> pl.Series:
    readers = [_READERS.get(field, _as_it_is) for field in fields]
    found = []
    for row in columns.iter_rows():
        values = [read(value) for read, value in zip(readers, row, strict=True)]
        found.append(expression.matches(dict(zip(fields, values, strict=True))))
    return pl.Series(found, dtype=pl.Boolean)


def _as_it_is(value: Any) -> object:
    return value


def _hexadecimal(signature: bytes | None) -> str | None:
    return None if signature is None else signature.hex()


_READERS: Final[dict[str, Callable[[Any], object]]] = {
    "url": decode_text,
    "status": status_name,
    "signature": _hexadecimal,
}


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
    # No name of a metadata key: counts of hosts repeat, and metadata need not be read.
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
            # Jexl would read `-` as minus.
            variables[name.replace("-", "_")] = value.decode("utf-8", "replace")
    return found
