"""Applies operators and methods to values: numbers, strings, booleans and null, with the
conversions of JEXL's arithmetic.

`EvaluationError` is raised where there is no result (null operands, words as numbers, division by
zero); the expression around it is then null. Integers are 64 bits wide in bit operations and
unbounded elsewhere, as they widen in JEXL. Source: org.apache.commons.jexl3.JexlArithmetic, strict,
compared by running it.

Methods have Java's names; those that expressions may call are pure functions. A position outside
the string, or an argument of the wrong kind, raises `EvaluationError`, as Java's methods throw.
"""

from __future__ import annotations

import math
import operator
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import lru_cache
from typing import Final, TypeVar

from minutch.conf import Configuration
from minutch.errors import ConfigError
from minutch.hadoop.formats.javahash import double_to_string, string_hash
from minutch.urls.javaregex import JavaRegex

Number = int | float
N = TypeVar("N", int, float)

# Expressions come from scripts and from the REST service: none may fill memory or take for ever.
MAX_STRING: Final = 1_000_000  # characters of any string that an expression makes
MAX_SECONDS: Final = 0.1  # for one match of a regular expression
_FLOAT_STRING: Final = re.compile(r"[+-]?\d*(?:\.\d*(?:[eE][+-]?\d+)?|[eE][+-]?\d+)", re.ASCII)
Method = Callable[..., object]

_MARK: Final = "\uffff"  # where a string is split; in no text
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


class EvaluationError(Exception):
    """An operation without a result."""


class NullOperand(EvaluationError):
    """An operation on null; as a condition that counts as null, while other failures go on."""


def truth(value: object) -> bool:
    """`value` as a condition: 0, NaN, "" and "false" are false. Raises EvaluationError for null."""
    if isinstance(value, bool):
        return value
    if isinstance(value, int | float):
        return value != 0 and not math.isnan(value)
    if isinstance(value, str):
        return value not in ("", "false")
    if value is None:
        raise NullOperand("null is neither true nor false")
    return True


def is_empty(value: object) -> bool:
    """`empty value`: null, 0, "", and collections without items."""
    if value is None:
        return True
    if isinstance(value, bool):
        return False
    if isinstance(value, int | float):
        return value == 0 or math.isnan(value)
    return isinstance(value, str | Collection) and not value


def size_of(value: object) -> int:
    """`size value`: characters of a string, items of a collection, else 0."""
    return len(value) if isinstance(value, str | Collection) else 0


def text_of(value: object) -> str:
    """`value` as Java prints it."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return double_to_string(value)
    if value is None:
        raise NullOperand("null has no text")
    return str(value)


def long_of(value: object) -> int:
    """`value` as an integer, decimals cut off; strings must be whole numbers ("" is 0)."""
    if isinstance(value, float):
        # JexlArithmetic.toLong takes NaN for 0.
        return int(value) if math.isfinite(value) else 0
    if isinstance(value, int):
        return int(value)
    if isinstance(value, str):
        return _parse(value, int) if value else 0
    raise _not_a_number(value)


def real_of(value: object) -> float:
    """`value` as a double."""
    if isinstance(value, int | float):
        return float(value)
    if isinstance(value, str):
        # JexlArithmetic.toDouble: the empty string is no number, and no error.
        return _parse(value.strip(), float) if value else math.nan
    raise _not_a_number(value)


def number_of(value: object) -> Number:
    """`value` as an operand of arithmetic: strings with a point or exponent are doubles."""
    if isinstance(value, float) or (
        isinstance(value, str) and _FLOAT_STRING.fullmatch(value) and value
    ):
        return real_of(value)
    return long_of(value)


def _not_a_number(value: object) -> EvaluationError:
    return NullOperand("null is not a number") if value is None else EvaluationError("not a number")


def _parse(text: str, kind: type[N]) -> N:
    if (
        not text.isascii()
        or "_" in text
        # Long.parseLong takes no blanks, Double.parseDouble does.
        or (kind is int and text != text.strip())
        # int("9" * 5000) is a ValueError in Python, and slow before that.
        or len(text) > 400
    ):
        raise EvaluationError("not a number")
    try:
        return kind(text)
    except ValueError as exc:
        raise EvaluationError("not a number") from exc


def equal(left: object, right: object) -> bool:
    """`left == right`; null equals only null."""
    if left is None or right is None:
        return left is right
    # First: True is an int in Python.
    if isinstance(left, bool) or isinstance(right, bool):
        return truth(left) == truth(right)
    if isinstance(left, str) and isinstance(right, str):
        return left == right
    if isinstance(left, int | float | str) and isinstance(right, int | float | str):
        try:
            real = isinstance(left, float) or isinstance(right, float)
            return real_of(left) == real_of(right) if real else _exact(left) == _exact(right)
        except EvaluationError:
            return False
    return left is right


def _exact(value: int | float | str) -> Number:
    """Returns an integer, or a string as a number of any kind ("" is 0), for equality."""
    return value if not isinstance(value, str) else real_of(value) if value else 0


def _compare(left: object, right: object, test: Callable[[object, object], bool]) -> bool:
    if left is None or right is None:
        raise NullOperand("null has no order")
    if isinstance(left, float) or isinstance(right, float):
        return test(real_of(left), real_of(right))
    if _is_integer(left) or _is_integer(right):
        return test(long_of(left), long_of(right))
    if isinstance(left, str | bool) and isinstance(right, str | bool):
        return test(_utf16(text_of(left)), _utf16(text_of(right)))
    raise EvaluationError("values without an order")


def _is_integer(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _utf16(text: str) -> object:
    """`text` in the order of Java's String.compareTo."""
    return text if text.isascii() else text.encode("utf-16-be", "surrogatepass")


def matches(left: object, right: object) -> bool:
    """`left =~ right`: the whole of `left` matches the pattern, or is among the items or keys."""
    if left is None or right is None:
        return left is right
    if isinstance(right, str):
        return full_match(right, text_of(left))
    if isinstance(right, Collection):
        # Collection.contains asks equals: 1 is not 1.0, nor true.
        return any(type(item) is type(left) and item == left for item in right)
    return equal(left, right)


@lru_cache(maxsize=256)
def regex(pattern: str) -> JavaRegex:
    """Returns a compiled regular expression. Raises EvaluationError for a broken one."""
    try:
        return JavaRegex(pattern, MAX_SECONDS)
    except ConfigError as exc:
        raise EvaluationError(str(exc)) from exc


def full_match(pattern: str, text: str) -> bool:
    """String.matches: whether all of `text` matches the regular expression. Raises TimeoutError."""
    return regex(pattern).matches(text)


def starts(left: object, right: object) -> bool:
    """`left =^ right`; values that are not strings are compared whole."""
    if isinstance(left, str) and right is not None:
        return left.startswith(text_of(right))
    return equal(left, right)


def ends(left: object, right: object) -> bool:
    """`left =$ right`; values that are not strings are compared whole."""
    if isinstance(left, str) and right is not None:
        return left.endswith(text_of(right))
    return equal(left, right)


def add(left: object, right: object) -> object:
    """`left + right`: a sum, or strings put together as soon as one is a string."""
    if left is None or right is None:
        raise NullOperand("null has no sum")
    if isinstance(left, str) or isinstance(right, str):
        text = text_of(left) + text_of(right)
        if len(text) > MAX_STRING:
            raise EvaluationError("string too long")
        return text
    return number_of(left) + number_of(right)


def _divide(left: Number, right: Number) -> Number:
    if right == 0:
        raise EvaluationError("division by zero")
    if isinstance(left, float) or isinstance(right, float):
        return left / right
    # Java cuts towards zero, Python floors.
    quotient = abs(left) // abs(right)
    return quotient if (left < 0) == (right < 0) else -quotient


def _remainder(left: Number, right: Number) -> Number:
    if right == 0:
        raise EvaluationError("division by zero")
    if isinstance(left, float) or isinstance(right, float):
        return math.fmod(left, right)
    # The sign of the dividend, as in Java.
    rest = abs(left) % abs(right)
    return rest if left >= 0 else -rest


def _arithmetic(function: Callable[[Number, Number], Number]) -> Callable[[object, object], object]:
    return lambda left, right: function(number_of(left), number_of(right))


def _comparison(test: Callable[[object, object], bool]) -> Callable[[object, object], object]:
    return lambda left, right: _compare(left, right, test)


def _negation(test: Callable[[object, object], bool]) -> Callable[[object, object], object]:
    return lambda left, right: not test(left, right)


def _bits(function: Callable[[int, int], int]) -> Callable[[object, object], object]:
    return lambda left, right: _signed(function(long_of(left), long_of(right)))


def _signed(value: int) -> int:
    """Returns the low 64 bits of `value`, as a signed number."""
    return ((value + (1 << 63)) & ((1 << 64) - 1)) - (1 << 63)


BINARY: Final[Mapping[str, Callable[[object, object], object]]] = {
    "+": add,
    "-": _arithmetic(operator.sub),
    "*": _arithmetic(operator.mul),
    "/": _arithmetic(_divide),
    "%": _arithmetic(_remainder),
    "==": equal,
    "!=": _negation(equal),
    "===": lambda left, right: type(left) is type(right) and equal(left, right),
    "!==": lambda left, right: type(left) is not type(right) or not equal(left, right),
    "<": _comparison(operator.lt),  # type: ignore[arg-type]
    "<=": _comparison(operator.le),  # type: ignore[arg-type]
    ">": _comparison(operator.gt),  # type: ignore[arg-type]
    ">=": _comparison(operator.ge),  # type: ignore[arg-type]
    "=~": matches,
    "!~": _negation(matches),
    "=^": starts,
    "!^": _negation(starts),
    "=$": ends,
    "!$": _negation(ends),
    "&": _bits(operator.and_),
    "|": _bits(operator.or_),
    "^": _bits(operator.xor),
    # The low six bits of a count, as Java shifts a long (JLS 15.19).
    "<<": _bits(lambda value, count: value << (count & 63)),
    ">>": _bits(lambda value, count: value >> (count & 63)),
    ">>>": _bits(lambda value, count: (value & ((1 << 64) - 1)) >> (count & 63)),
}


def negative(value: object) -> object:
    """`-value`; of a boolean the opposite."""
    if isinstance(value, bool):
        return not value
    if isinstance(value, int | float):
        return -value
    raise _not_a_number(value)


def positive(value: object) -> object:
    """`+value`."""
    if isinstance(value, int | float):
        return value
    raise _not_a_number(value)


UNARY: Final[Mapping[str, Callable[[object], object]]] = {
    "-": negative,
    "+": positive,
    "!": lambda value: not truth(value),
    "~": lambda value: _signed(~long_of(value)),
    "size": size_of,
    "empty": is_empty,
}


def _substring(text: str, start: int, end: int | None = None) -> str:
    end = len(text) if end is None else end
    if not 0 <= start <= end <= len(text):
        raise EvaluationError("position outside the string")
    return text[start:end]


def _starts_with(text: str, prefix: str, offset: int = 0) -> bool:
    return 0 <= offset <= len(text) and text.startswith(prefix, offset)


def _replace(text: str, old: str, new: str) -> str:
    # Before it is made.
    grown = len(text) + (text.count(old) * (len(new) - len(old)))
    if grown > MAX_STRING:
        raise EvaluationError("string too long")
    return text.replace(old, new)


def _substitute(text: str, pattern: str, replacement: str, count: int = 0) -> str:
    """String.replaceAll; with a `count` of 1, replaceFirst."""
    compiled = regex(pattern)
    result = compiled.replace_all(text, compiled.replacement(replacement), count)
    if len(result) > MAX_STRING:
        raise EvaluationError("string too long")
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
    # String.trim: all up to the blank; strip goes by Unicode.
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
_BY_TYPE: Final[tuple[tuple[tuple[type, ...], Mapping[str, Method]], ...]] = (
    ((str,), _STRING),
    # Before numbers, since True is an int in Python.
    ((bool,), _BOOLEAN),
    ((int, float), _NUMBER),
    ((Configuration,), _CONFIGURATION),
    # Anything else has no methods: there is no way to a class of Python.
    ((Mapping,), _MAPPING),
    ((Sequence,), _SEQUENCE),
)

METHODS: Final = frozenset(name for _, table in _BY_TYPE for name in table) | OBJECT_METHODS


def call(target: object, name: str, arguments: list[object]) -> object:
    """`target.name(arguments)`; null where the target has no such method.

    Raises EvaluationError, or TypeError, ValueError, IndexError, ConfigError, TimeoutError for the
    arguments.
    """
    if isinstance(target, JavaObject):
        return target.methods[name](*arguments) if name in target.methods else None
    for kinds, table in _BY_TYPE:
        if isinstance(target, kinds):
            return table[name](target, *arguments) if name in table else None
    return None


def member(target: object, key: object) -> object:
    """`target.key` or `target[key]` of lists and maps. Raises EvaluationError if there is none."""
    if isinstance(target, JavaObject):
        return target.members.get(str(key))
    if isinstance(target, Mapping):
        return target.get(key)
    if isinstance(target, Sequence) and not isinstance(target, str) and isinstance(key, int):
        if 0 <= key < len(target):
            return target[key]
        raise EvaluationError("position outside the list")
    raise EvaluationError("no such member")
