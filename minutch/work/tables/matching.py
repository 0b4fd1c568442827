"""Filter expressions over tables of CrawlDb entries: which rows match.

Rows with metadata are asked one by one. For the others an expression is evaluated once for each
distinct combination of the fields that it names, which for most expressions are far fewer than
rows. Matched: org.apache.nutch.crawl.CrawlDatum.execute.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import polars as pl

from minutch.expressions import Expression
from minutch.hadoop.formats.javaio import decode_text
from minutch.records import crawldatum_columns
from minutch.records.crawldatum import status_name

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
    named = {name.partition(".")[0] for name in expression.names()}
    fields = [field for field in _FIELDS if field in named]
    if not fields:
        return pl.repeat(expression.matches({}), len(frame), dtype=pl.Boolean, eager=True)
    columns = frame.select([_FIELDS[field] for field in fields])
    if "url" in fields:
        return _evaluated(columns, fields, expression)
    distinct = columns.unique()
    answers = distinct.with_columns(_evaluated(distinct, fields, expression).alias("_match"))
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
