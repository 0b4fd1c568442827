"""Defines the methods that expressions may call on strings, numbers and the configuration, under
Java's names; each is a pure function.

A position outside the string, or an argument of the wrong kind, raises `Failure`, as Java's methods
throw.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final

from minutch.conf import Configuration
from minutch.expressions.values import MAX_STRING, Failure, full_match, regex, text_of
from minutch.hadoop.formats.javahash import string_hash

Method = Callable[..., object]

_MARK: Final = "\uffff"  # where a string is split; in no text


def _substring(text: str, start: int, end: int | None = None) -> str:
    end = len(text) if end is None else end
    if not 0 <= start <= end <= len(text):
        raise Failure("position outside the string")
    return text[start:end]


def _starts_with(text: str, prefix: str, offset: int = 0) -> bool:
    return 0 <= offset <= len(text) and text.startswith(prefix, offset)


def _replace(text: str, old: str, new: str) -> str:
    grown = len(text) + (text.count(old) * (len(new) - len(old)))
    if grown > MAX_STRING:
        raise Failure("string too long")
    return text.replace(old, new)


def _substitute(text: str, pattern: str, replacement: str, count: int = 0) -> str:
    """String.replaceAll; with a `count` of 1, replaceFirst."""
    compiled = regex(pattern)
    result = compiled.replace_all(text, compiled.replacement(replacement), count)
    if len(result) > MAX_STRING:
        raise Failure("string too long")
    return result


def _split(text: str, pattern: str) -> list[str]:
    """String.split by a regular expression: no empty strings at the end."""
    compiled = regex(pattern)
    parts = compiled.replace_all(text, compiled.replacement(_MARK)).split(_MARK)
    while len(parts) > 1 and not parts[-1]:
        parts.pop()
    return parts


def _compare_to(left: str, right: str) -> int:
    for one, other in zip(left, right, strict=False):
        if one != other:
            return ord(one) - ord(other)
    return len(left) - len(right)


class JavaObject:
    """An object that a caller puts among the variables: what expressions may call of it, and its
    members.

    The names of its methods have to be in OBJECT_METHODS.
    """

    __slots__ = ("members", "methods")

    def __init__(self, methods: Mapping[str, Method], members: Mapping[str, object]) -> None:
        self.methods, self.members = methods, members


OBJECT_METHODS: Final = frozenset(
    {"getField", "getFieldNames", "getFieldValue", "getValues", "getWeight"}
)
"""The methods of documents (NutchDocument, NutchField)."""

_STRING: Final[Mapping[str, Method]] = {
    "startsWith": _starts_with,
    "endsWith": lambda text, suffix: text.endswith(suffix),
    "contains": lambda text, part: part in text,
    "matches": lambda text, pattern: full_match(pattern, text),
    "equals": lambda text, other: text == other,
    "equalsIgnoreCase": lambda text, other: text.lower() == other.lower(),
    "compareTo": _compare_to,
    "compareToIgnoreCase": lambda text, other: _compare_to(text.lower(), other.lower()),
    "toLowerCase": lambda text: text.lower(),
    "toUpperCase": lambda text: text.upper(),
    "trim": lambda text: text.strip("".join(map(chr, range(33)))),
    "strip": lambda text: text.strip(),
    "length": len,
    "isEmpty": lambda text: not text,
    "isBlank": lambda text: not text.strip(),
    "indexOf": lambda text, part, start=0: text.find(part, max(start, 0)),
    "lastIndexOf": lambda text, part: text.rfind(part),
    "substring": _substring,
    "concat": lambda text, other: _replace(text, "", "") + other,
    "replace": _replace,
    "replaceAll": _substitute,
    "replaceFirst": lambda text, pattern, replacement: _substitute(text, pattern, replacement, 1),
    "split": _split,
    "hashCode": string_hash,
    "toString": lambda text: text,
}
_NUMBER: Final[Mapping[str, Method]] = {
    "intValue": int,
    "longValue": int,
    "floatValue": float,
    "doubleValue": float,
    "equals": lambda number, other: type(number) is type(other) and number == other,
    "compareTo": lambda number, other: (number > other) - (number < other),
    "toString": text_of,
}
_BOOLEAN: Final[Mapping[str, Method]] = {
    "booleanValue": lambda value: value,
    "equals": lambda value, other: value is other,
    "toString": text_of,
}
_SEQUENCE: Final[Mapping[str, Method]] = {
    "size": len,
    "isEmpty": lambda items: not items,
    "contains": lambda items, item: item in items,
    "get": lambda items, position: items[position],
    "indexOf": lambda items, item: items.index(item) if item in items else -1,
}
_MAPPING: Final[Mapping[str, Method]] = {
    "size": len,
    "isEmpty": lambda items: not items,
    "containsKey": lambda items, key: key in items,
    "get": lambda items, key: items.get(key),
}
_CONFIGURATION: Final[Mapping[str, Method]] = {
    "get": lambda conf, name, default=None: conf.get(name, default),
    "getInt": lambda conf, name, default: conf.get_int(name, default),
    "getLong": lambda conf, name, default: conf.get_long(name, default),
    "getFloat": lambda conf, name, default: conf.get_float(name, default),
    "getDouble": lambda conf, name, default: conf.get_double(name, default),
    "getBoolean": lambda conf, name, default: conf.get_boolean(name, default),
}
_BY_TYPE: Final[tuple[tuple[tuple[type, ...], Mapping[str, Method]], ...]] = (
    ((str,), _STRING),
    ((bool,), _BOOLEAN),
    ((int, float), _NUMBER),
    ((Configuration,), _CONFIGURATION),
    ((Mapping,), _MAPPING),
    ((Sequence,), _SEQUENCE),
)

METHODS: Final = frozenset(name for _, table in _BY_TYPE for name in table) | OBJECT_METHODS


def call(target: object, name: str, arguments: list[object]) -> object:
    """`target.name(arguments)`; null where the target has no such method.

    Raises Failure, or TypeError, ValueError, IndexError, ConfigError, TimeoutError for the
    arguments.
    """
    if isinstance(target, JavaObject):
        return target.methods[name](*arguments) if name in target.methods else None
    for kinds, table in _BY_TYPE:
        if isinstance(target, kinds):
            return table[name](target, *arguments) if name in table else None
    return None


def member(target: object, key: object) -> object:
    """`target.key` or `target[key]` of lists and maps. Raises Failure if there is none."""
    if isinstance(target, JavaObject):
        return target.members.get(str(key))
    if isinstance(target, Mapping):
        return target.get(key)
    if isinstance(target, Sequence) and not isinstance(target, str) and isinstance(key, int):
        if 0 <= key < len(target):
            return target[key]
        raise Failure("position outside the list")
    raise Failure("no such member")
