"""Encodes documents as tantivy's JSON: known fields by their names, all others below `other`. See
`minutch.inspect.search.fields`.
"""

from __future__ import annotations

import base64
from typing import Final

import polars as pl

from minutch.inspect.search.fields import (
    BINARY,
    DATES,
    EXACT,
    HAS,
    HAS_CJK,
    HAS_MARK,
    KEY,
    OTHER,
    TEXTS,
    paired,
    stemmer_of,
)
from minutch.plugin.documents import Documents, texts_of

_DATE: Final = pl.Datetime("ms")
_PLAIN: Final = (pl.String(), pl.Boolean(), pl.Int32(), pl.Int64())
_RFC_3339: Final = "%Y-%m-%dT%H:%M:%S%.3fZ"
_SPAN: Final = (-9_214_560_000_000, 9_214_646_399_999)
"""Milliseconds from 1678 to 2261, what tantivy's dates, which count nanoseconds, can hold; others
are left out.
"""


def encoded(documents: Documents) -> pl.Series:
    """Returns the JSON of each document (Binary)."""
    own: dict[str, pl.Series] = {KEY: documents.keys}
    others: dict[str, pl.Series] = {}
    languages = _languages(documents)
    for name in documents.names():
        values = documents.column(name)
        if values is None:
            continue
        if name in TEXTS:
            own |= _by_language(name, _words(values), languages)
        elif name == "id" or name in EXACT:
            own[name] = texts_of(values)
        elif name == BINARY:
            own[name] = _base64(values)
        elif name in DATES and _inner(values) == _DATE:
            own[name] = _dates(values)
        else:
            others[name] = _plain(values)
    return _json(own, others)


def _inner(values: pl.Series) -> object:
    return values.dtype.inner if isinstance(values.dtype, pl.List) else values.dtype


def _plain(values: pl.Series) -> pl.Series:
    """Values of any field as JSON has them."""
    if _inner(values) == _DATE:
        return _dates(values)
    return values if _inner(values) in _PLAIN else texts_of(values)


def _dates(values: pl.Series) -> pl.Series:
    """Dates as RFC 3339."""
    if isinstance(values.dtype, pl.List):
        held = values.list.eval(pl.element().filter(pl.element().cast(pl.Int64).is_between(*_SPAN)))
        return held.list.eval(pl.element().dt.strftime(_RFC_3339))
    held = values.zip_with(
        values.cast(pl.Int64).is_between(*_SPAN).fill_null(False), _nulls(values)
    )
    return held.dt.strftime(_RFC_3339)


def _nulls(values: pl.Series) -> pl.Series:
    return values.clear().extend_constant(None, len(values))


def _base64(values: pl.Series) -> pl.Series:
    """Bytes that came as text."""
    texts = _words(values, pair=False)
    return pl.Series(
        [None if text is None else base64.b64encode(text.encode()).decode() for text in texts],
        dtype=pl.String,
    )


def _words(values: pl.Series, *, pair: bool = True) -> pl.Series:
    """Texts to be searched, several values as lines."""
    texts = texts_of(values)
    if isinstance(texts.dtype, pl.List):
        texts = texts.list.join("\n")
    if not pair:
        return texts
    rows = texts.str.contains(f"{HAS_CJK}|{HAS_MARK}").fill_null(False).arg_true()
    if not len(rows):
        return texts
    return texts.clone().scatter(
        rows, pl.Series([paired(text) for text in texts.gather(rows)], dtype=pl.String)
    )


def _languages(documents: Documents) -> pl.Series | None:
    """Returns the stemmer of each document; None where none has one."""
    found = documents.column("lang")
    if found is None:
        return None
    langs = texts_of(found)
    first = langs.list.first() if isinstance(langs.dtype, pl.List) else langs
    codes = {lang: stemmer_of(lang) for lang in first.unique() if lang is not None}
    stemmers = first.replace_strict(codes, default=None, return_dtype=pl.String)
    return None if stemmers.null_count() == len(stemmers) else stemmers


def _by_language(name: str, texts: pl.Series, languages: pl.Series | None) -> dict[str, pl.Series]:
    """Returns a field, and its twins of the languages that occur."""
    if languages is None:
        return {name: texts}
    nothing = _nulls(texts)
    columns = {name: texts.zip_with(languages.is_null(), nothing)}
    for code in sorted(languages.drop_nulls().unique()):
        columns[f"{name}_{code}"] = texts.zip_with((languages == code).fill_null(False), nothing)
    return columns


def _json(own: dict[str, pl.Series], others: dict[str, pl.Series]) -> pl.Series:
    """Returns an object for each row, without the fields that it lacks: rows that have the same
    ones are written together.
    """
    frame = pl.DataFrame(
        [values.alias(f"o{n}") for n, values in enumerate((*own.values(), *others.values()))]
    )
    names = dict(zip(frame.columns, (*own, *others), strict=True))
    mine = set(frame.columns[: len(own)])
    missing = frame.select(
        pl.concat_str([pl.col(c).is_null().cast(pl.Int8) for c in frame.columns])
    ).to_series()
    result = pl.Series("payload", [], dtype=pl.String).extend_constant("", len(frame))
    for pattern in missing.unique(maintain_order=True):
        rows = (missing == pattern).arg_true()
        there = [column for column, bit in zip(frame.columns, pattern, strict=True) if bit == "0"]
        below = [pl.col(column).alias(names[column]) for column in there if column not in mine]
        parts = [pl.col(column).alias(names[column]) for column in there if column in mine]
        parts += [pl.struct(below).alias(OTHER)] if below else []
        has = sorted(
            {
                names[column].partition("_")[0] if column in mine else names[column]
                for column in there
            }
            - {KEY}
        )
        parts.append(pl.lit(pl.Series([has])).alias(HAS))
        texts = frame[rows].select(pl.struct(parts).struct.json_encode()).to_series()
        result = result.scatter(rows, texts)
    return result.cast(pl.Binary).alias("payload")
