r"""A regular expression as a tree, whatever syntax it was written in, and what the tree says before
a match is tried; and sets of characters as sorted ranges of code points: what `[…]`, `\d` or
`\p{…}` matches.

That is how long a backtracking engine may take for it, and what a text must hold for it to match at
all.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache

Ranges = tuple[tuple[int, int], ...]
"""Sorted, disjoint, non-adjacent ranges, both ends included."""

LAST = 0x10FFFF


def ranges(pairs: Iterable[tuple[int, int]]) -> Ranges:
    """Returns the ranges, sorted and merged."""
    result: list[tuple[int, int]] = []
    for low, high in sorted(pairs):
        # Touching ranges become one: equal sets are equal tuples.
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
    # De Morgan.
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
    # Each character would be asked in Python.
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
    # One search over all characters: runs of matches are the ranges.
    everything = "".join(map(chr, range(LAST + 1)))
    return tuple((match.start(), match.end() - 1) for match in pattern.finditer(everything))


_MANY = 100


@dataclass(frozen=True, slots=True)
class Chars:
    """One character out of a set."""

    ranges: Ranges


@dataclass(frozen=True, slots=True)
class Sequence:
    items: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Alternation:
    choices: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Repeat:
    """`most` None is unbounded; `mode` is "" (greedy), "?" (lazy) or "+" (possessive)."""

    item: Node
    least: int
    most: int | None
    mode: str


@dataclass(frozen=True, slots=True)
class RegexGroup:
    """A capturing group."""

    number: int
    item: Node


@dataclass(frozen=True, slots=True)
class Look:
    """Look-around, or an atomic group: `kind` is `=`, `!`, `<=`, `<!` or `>`."""

    kind: str
    item: Node


@dataclass(frozen=True, slots=True)
class Backreference:
    number: int
    ignore_case: bool


@dataclass(frozen=True, slots=True)
class Anchor:
    """`kind`: `A` start of input, `z` its end, `Z` there or before a last line end, `^` `$` at
    lines, `b`, `B`.

    With a `d` behind it only a line feed ends a line.
    """

    kind: str


Node = Chars | Sequence | Alternation | Repeat | RegexGroup | Look | Backreference | Anchor


@dataclass(frozen=True, slots=True)
class Tree:
    """A whole pattern, its number of groups and their names."""

    node: Node
    groups: int
    names: dict[str, int]


def is_tame(tree: Tree) -> bool:
    """Returns whether a backtracking engine needs at most cubic time: two unbounded repetitions,
    none inside another.
    """
    return _count_unbounded(tree.node, nested=False) <= 2


def required_character(tree: Tree) -> tuple[str, int] | None:
    """Returns the character that every match has most of, and its least count; or None."""
    needed = _required(tree.node, {})
    return max(needed.items(), key=lambda item: item[1]) if needed else None


def required_literal(tree: Tree) -> str:
    """Returns the longest text that every match contains, if the pattern spells it out; else ""."""
    items = tree.node.items if isinstance(tree.node, Sequence) else (tree.node,)
    best = run = ""
    for item in items:
        repeat = item if isinstance(item, Repeat) else Repeat(item, 1, 1, "")
        char = _single(repeat.item)
        if char is None:
            run = ""
        else:
            run += char * repeat.least
            best = max(best, run, key=len)
            if repeat.most != repeat.least:
                run = ""
    return best


def _single(node: Node) -> str | None:
    """Returns the one character that a node matches; None if it is anything else."""
    if isinstance(node, Chars) and len(node.ranges) == 1 and node.ranges[0][0] == node.ranges[0][1]:
        return chr(node.ranges[0][0])
    return None


def _count_unbounded(node: Node, *, nested: bool) -> int:
    """Unbounded repetitions in `node`; too many if one is in another, or needs backtracking."""
    if isinstance(node, Backreference):
        return _MANY
    if isinstance(node, Repeat):
        # A bound of a hundred backtracks as if there were none.
        unbounded = node.most is None or node.most >= _MANY
        if unbounded and nested:
            return _MANY
        return unbounded + _count_unbounded(node.item, nested=nested or unbounded)
    return sum(_count_unbounded(part, nested=nested) for part in _parts(node))


def _parts(node: Node) -> tuple[Node, ...]:
    if isinstance(node, RegexGroup | Look):
        return (node.item,)
    if isinstance(node, Sequence):
        return node.items
    return node.choices if isinstance(node, Alternation) else ()


def _required(node: Node, groups: dict[int, Counter[str]]) -> Counter[str]:  # noqa: PLR0911 - one return a case
    """Counts how often each character occurs at least; a back-reference counts as its group."""
    if isinstance(node, Chars):
        char = _single(node)
        return Counter() if char is None else Counter({char: 1})
    if isinstance(node, Backreference):
        return Counter() if node.ignore_case else groups.get(node.number, Counter())
    if isinstance(node, Repeat):
        needed = _required(node.item, groups)
        return Counter({char: count * node.least for char, count in needed.items() if node.least})
    if isinstance(node, RegexGroup):
        groups[node.number] = _required(node.item, groups)
        return groups[node.number]
    if isinstance(node, Sequence):
        total: Counter[str] = Counter()
        for item in node.items:
            total += _required(item, groups)
        return total
    if isinstance(node, Alternation):
        least = _required(node.choices[0], groups)
        for choice in node.choices[1:]:
            # What all choices have, the least of each.
            least &= _required(choice, groups)
        return least
    return Counter()
