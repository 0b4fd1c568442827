"""Decides whether an object is of a type, with all that it is made of.

A worker that was taken over answers what it likes, as long as the classes are those of an answer.
Here its answer is held to the annotations of these classes, so that whoever works with it finds
what they say. Of a class without annotations, and of types that are not listed here, the class
alone counts.

    X | Y, None               one of them
    list[X], Sequence[X]      a list, all of whose items are of type X
    dict[K, V]                a dictionary
    tuple[X, Y]               a tuple of as many items
    NamedTuple, dataclass     an object all of whose fields are of their types
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from functools import cache
from types import UnionType
from typing import Any, Union, get_args, get_origin, get_type_hints


def is_of(value: object, expected: Any) -> bool:
    """Tells whether a value is of a type; False for what refers to itself."""
    try:
        return _is_of(value, expected)
    except RecursionError:
        return False


def _is_of(value: object, expected: Any) -> bool:
    origin, arguments = get_origin(expected), get_args(expected)
    if origin in (Union, UnionType):
        return any(_is_of(value, one) for one in arguments)
    if origin is not None:
        return _holds(value, origin, arguments)
    if expected is None or not isinstance(expected, type) or expected is Any:
        return expected is not None or value is None
    return isinstance(value, expected) and all(
        _is_of(getattr(value, name, _MISSING), kind) for name, kind in _fields(expected)
    )


def _holds(value: object, origin: Any, arguments: tuple[Any, ...]) -> bool:
    """Tells whether a value is a container of this kind, and its items are of their types."""
    if origin in (list, Sequence):
        return isinstance(value, list) and all(_is_of(item, arguments[0]) for item in value)
    if origin in (dict, Mapping):
        return isinstance(value, dict) and all(
            _is_of(key, arguments[0]) and _is_of(item, arguments[1]) for key, item in value.items()
        )
    if origin is tuple:
        return (
            isinstance(value, tuple)
            and len(value) == len(arguments)
            and all(map(_is_of, value, arguments))
        )
    return True


_MISSING = object()


@cache
def _fields(kind: type) -> tuple[tuple[str, Any], ...]:
    """Returns the annotated fields of a class and their types."""
    names = (
        {field.name for field in dataclasses.fields(kind)}
        if dataclasses.is_dataclass(kind)
        else set(getattr(kind, "_fields", ()))
    )
    try:
        hints = get_type_hints(kind) if names else {}
    except NameError:  # of a type that only a type checker imports
        hints = {}
    return tuple((name, hints[name]) for name in sorted(names & hints.keys()))
