"""JSON without NaN and infinity, which it has not (RFC 8259, section 6): they are written as null,
and an error where they are read.
"""

from __future__ import annotations

import json
import math
from typing import Any


def dumps(value: Any, **options: Any) -> str:
    """Returns the text of a value; `options` are those of json.dumps."""
    try:
        return json.dumps(value, allow_nan=False, **options)
    except ValueError:
        return json.dumps(finite(value), allow_nan=False, **options)


def loads(text: str | bytes) -> Any:
    """Returns the value of a text that may be anything. Raises ValueError for what is no JSON, NaN
    and infinity among it, and for what is nested too deep.
    """
    try:
        return json.loads(text, parse_constant=_none, parse_float=_finite)
    except RecursionError as exc:
        raise ValueError("nested too deep") from exc


def _none(word: str) -> Any:
    raise ValueError(f"{word} is no JSON")


def _finite(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise ValueError(f"{text} is too large")
    return number


def finite(value: Any) -> Any:
    """Returns the value with None for numbers that JSON has not."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, dict):
        return {name: finite(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [finite(item) for item in value]
    return value
