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
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from operator import attrgetter
from types import UnionType
from typing import Any, Union, get_args, get_origin, get_type_hints

Check = Callable[[Any], bool]


def is_of(value: object, expected: Any) -> bool:
    """Tells whether a value is of a type; False for what refers to itself."""
    try:
        return check_of(expected)(value)
    except RecursionError:
        return False


@cache
def check_of(expected: Any) -> Check:
    """Returns the function that tells whether a value is of a type."""
    origin, arguments = get_origin(expected), get_args(expected)
    if origin in (Union, UnionType):
        ways = [check_of(one) for one in arguments]
        return lambda value: any(way(value) for way in ways)
    if origin is not None:
        return _container(origin, [check_of(one) for one in arguments])
    if expected is None:
        return lambda value: value is None
    if expected is Any or not isinstance(expected, type):
        return lambda value: True
    return _object(expected)


def _container(origin: Any, items: Sequence[Check]) -> Check:
    if origin in (list, Sequence):
        item = items[0]
        return lambda value: isinstance(value, list) and all(map(item, value))
    if origin in (dict, Mapping):
        key, item = items
        return lambda value: (
            isinstance(value, dict) and all(map(key, value)) and all(map(item, value.values()))
        )
    if origin is tuple:
        size = len(items)
        return lambda value: (
            isinstance(value, tuple)
            and len(value) == size
            and all(item(one) for item, one in zip(items, value, strict=True))
        )
    return lambda value: True


def _object(kind: type) -> Check:
    """Returns the check of a class, which finds its fields when it is first used: they may be of
    the same class.
    """
    names = (
        [field.name for field in dataclasses.fields(kind)]
        if dataclasses.is_dataclass(kind)
        else getattr(kind, "_fields", ())
    )
    if not names:
        return lambda value: isinstance(value, kind)
    fields: list[tuple[Callable[[Any], Any], Check]] = []

    def check(value: Any) -> bool:
        nonlocal fields
        if not isinstance(value, kind):
            return False
        if not fields:
            fields = [(attrgetter(name), _field(kind, name)) for name in names]
        try:
            return all(item(get(value)) for get, item in fields)
        except AttributeError:  # an object that was made without it
            return False

    return check


def _field(kind: type, name: str) -> Check:
    try:
        return check_of(get_type_hints(kind).get(name, Any))
    except NameError:  # of a type that only a type checker imports
        return check_of(Any)
