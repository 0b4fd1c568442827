"""Writes facts as JSON: the same names, times in ISO 8601, everything else with its type. Pure: no
I/O"""

from __future__ import annotations

from dataclasses import fields, is_dataclass
from typing import Any, Final

from minutch import strictjson
from minutch.inspect.explain.timewords import iso

TIMES: Final = frozenset(
    {
        "now",
        "time",
        "due",
        "fetch_time",
        "modified_time",
        "fetched",
        "expires",
        "busy_until",
        "next_due",
    }
)
"""Fields that hold ms since the epoch, wherever they are."""


def to_json(facts: Any) -> str:
    """Returns a dataclass as ASCII text, whatever pages have put into it."""
    return strictjson.dumps(_plain(facts), indent=2)


def _plain(value: Any, name: str = "") -> Any:
    if is_dataclass(value):
        return {
            field.name: _plain(getattr(value, field.name), field.name) for field in fields(value)
        }
    if isinstance(value, dict):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if name in TIMES and isinstance(value, int):
        return iso(value)
    return value
