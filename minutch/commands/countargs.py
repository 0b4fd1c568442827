"""Reads the arguments that `domainstats`, `protocolstats` and `crawlcomplete` share."""

from __future__ import annotations

from pathlib import Path

from minutch.errors import MinutchError
from minutch.hadoop.stores import as_path


def paths(words: str) -> list[Path]:
    """Returns the paths of a list with commas."""
    return [as_path(word) for word in words.split(",") if word]


def positive(name: str, value: str) -> int:
    """Returns a positive number. Raises MinutchError for anything else."""
    if not value.isascii() or not value.isdecimal() or not int(value):
        raise MinutchError(f"{name}: expected a positive number, found {value!r}")
    return int(value)


def one_of(name: str, value: str, choices: tuple[str, ...]) -> str:
    """Returns `value`. Raises MinutchError where it is none of `choices`."""
    if value not in choices:
        raise MinutchError(f"{name}: expected one of {', '.join(choices)}, found {value!r}")
    return value
