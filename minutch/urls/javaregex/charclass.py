"""Sets of characters as sorted ranges of code points: what `[…]`, `\\d` or `\\p{…}` matches."""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache

Ranges = tuple[tuple[int, int], ...]
"""Sorted, disjoint, non-adjacent ranges, both ends included."""

LAST = 0x10FFFF


def ranges(pairs: Iterable[tuple[int, int]]) -> Ranges:
    """Returns the ranges, sorted and merged."""
    result: list[tuple[int, int]] = []
    for low, high in sorted(pairs):
        if result and low <= result[-1][1] + 1:
            result[-1] = (result[-1][0], max(high, result[-1][1]))
        else:
            result.append((low, high))
    return tuple(result)


def of(text: str) -> Ranges:
    """Returns the characters of a string."""
    return ranges((ord(c), ord(c)) for c in text)


def union(*sets: Ranges) -> Ranges:
    return ranges(pair for one in sets for pair in one)


def negate(one: Ranges) -> Ranges:
    result: list[tuple[int, int]] = []
    start = 0
    for low, high in one:
        if start < low:
            result.append((start, low - 1))
        start = high + 1
    if start <= LAST:
        result.append((start, LAST))
    return tuple(result)


def intersect(one: Ranges, other: Ranges) -> Ranges:
    return negate(union(negate(one), negate(other)))


def ignore_ascii_case(one: Ranges) -> Ranges:
    """Adds the other case of every ASCII letter (Java's CASE_INSENSITIVE)."""
    upper, lower = ((0x41, 0x5A),), ((0x61, 0x7A),)
    moved_down = tuple((low + 32, high + 32) for low, high in intersect(one, upper))
    moved_up = tuple((low - 32, high - 32) for low, high in intersect(one, lower))
    return union(one, moved_down, moved_up)


def ignore_case(one: Ranges) -> Ranges:
    """Adds the other case of every letter (UNICODE_CASE); in large sets, of ASCII letters only."""
    result = ignore_ascii_case(one)
    if sum(high - low + 1 for low, high in one) > 0x1000:
        return result
    letters = [chr(code) for low, high in one for code in range(low, high + 1)]
    cases = [case for c in letters for case in (c.upper(), c.lower()) if len(case) == 1]
    return union(result, of("".join(cases)))


DIGIT = ((0x30, 0x39),)
WORD = union(DIGIT, ((0x41, 0x5A), (0x61, 0x7A), (0x5F, 0x5F)))
SPACE = of(" \t\n\x0b\f\r")
HORIZONTAL = union(of(" \t\xa0\u1680\u180e\u202f\u205f\u3000"), ((0x2000, 0x200A),))
VERTICAL = of("\n\x0b\f\r\x85\u2028\u2029")
LINE_ENDS = of("\n\r\x85\u2028\u2029")
ANY_CHARACTER: Ranges = ((0, LAST),)

_PUNCTUATION = of("!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~")
_LETTERS = ((0x41, 0x5A), (0x61, 0x7A))
POSIX: dict[str, Ranges] = {
    "Lower": ((0x61, 0x7A),),
    "Upper": ((0x41, 0x5A),),
    "ASCII": ((0, 0x7F),),
    "Alpha": _LETTERS,
    "Digit": DIGIT,
    "Alnum": union(DIGIT, _LETTERS),
    "Punct": _PUNCTUATION,
    "Graph": union(DIGIT, _LETTERS, _PUNCTUATION),
    "Print": union(DIGIT, _LETTERS, _PUNCTUATION, of(" ")),
    "Blank": of(" \t"),
    "Cntrl": ((0, 0x1F), (0x7F, 0x7F)),
    "XDigit": union(DIGIT, ((0x41, 0x46), (0x61, 0x66))),
    "Space": SPACE,
}
"""Java's POSIX classes, which mean ASCII only."""

_JAVA = {
    "javaLowerCase": "Lowercase",
    "javaUpperCase": "Uppercase",
    "javaWhitespace": "White_Space",
}


@lru_cache(maxsize=64)
def property_class(name: str) -> Ranges:
    r"""Returns the characters of `\p{name}`; ValueError if there is no such class."""
    posix = POSIX.get(name)
    return posix if posix is not None else _scan(_JAVA.get(name, name))


def unicode_class(name: str) -> Ranges:
    """`\\w`, `\\d` or `\\s` with UNICODE_CHARACTER_CLASS."""
    return _scan({"w": "Word", "d": "Nd", "s": "White_Space"}[name])


@lru_cache(maxsize=64)
def _scan(name: str) -> Ranges:
    """Asks the package regex, which knows Unicode's properties, about every character."""
    import regex

    try:
        pattern = regex.compile(f"\\p{{{name}}}+")
    except regex.error as exc:
        raise ValueError(f"no character property {name}") from exc
    everything = "".join(map(chr, range(LAST + 1)))
    return tuple((match.start(), match.end() - 1) for match in pattern.finditer(everything))
