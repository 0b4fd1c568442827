"""urlfilter-automaton: applies `+` and `-` rules whose patterns match whole URLs in linear time
(automaton-urlfilter.txt).

Properties: urlfilter.automaton.rules (inline), urlfilter.automaton.file.
"""

from __future__ import annotations

import re
from functools import cached_property
from typing import TYPE_CHECKING

from minutch.errors import ConfigError
from minutch.urls.javaregex import is_too_large, tree
from minutch.urls.javaregex.derivative import Automaton, Complement, Intersection, Pattern, whole
from minutch.urls.javaregex.tree import Alternation, Anchor, Chars, Node, Repeat, Sequence, Tree
from minutch.urls.javaregex.writer import write_rust

from ..lib_regex_filter.rules import RuleURLFilter

if TYPE_CHECKING:
    import polars as pl


# Parses the patterns of urlfilter-automaton: regular expressions in the strict sense, which match
# whole strings.
#
#     union     = inter [ "|" union ]             either
#     inter     = concat [ "&" inter ]            both
#     concat    = repeat [ concat ]
#     repeat    = compl *( "?" | "*" | "+" | "{n}" | "{n,}" | "{n,m}" )
#     compl     = "~" compl | class               everything else
#     class     = "[" [ "^" ] *( char [ "-" char ] ) "]" | simple
#     simple    = "." | "#" | "@" | '"' text '"' | "(" [ union ] ")" | "<n-m>" | char
#     char      = [ "\" ] any character
#
# `#` matches nothing at all, `@` any string, `<n-m>` the numbers from n to m (with as many digits
# as both have, else with any number of leading zeros). Source: dk.brics.automaton.RegExp with all
# its flags on.

_COUNT = re.compile(r"\{([0-9]+)(?:(,)([0-9]*))?\}")
_ANY = Chars(tree.ANY_CHARACTER)
EMPTY = Sequence(())


def parse_pattern(text: str) -> Pattern:
    """Parses a pattern. Raises ConfigError if it is malformed."""
    if not text:
        return EMPTY
    reader = _Reader(text)
    pattern = reader.union()
    if reader.at < len(text):
        raise reader.error("end expected")
    return pattern


class _Reader:
    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0

    def error(self, what: str) -> ConfigError:
        return ConfigError(f"{what} at character {self.at} of automaton pattern {self.text!r}")

    def peek(self, chars: str) -> bool:
        return self.at < len(self.text) and self.text[self.at] in chars

    def match(self, char: str) -> bool:
        if not self.peek(char):
            return False
        self.at += 1
        return True

    def expect(self, char: str) -> None:
        if not self.match(char):
            raise self.error(f"{char} expected")

    def union(self) -> Pattern:
        choices = [self.inter()]
        while self.match("|"):
            choices.append(self.inter())
        return choices[0] if len(choices) == 1 else Alternation(tuple(choices))  # type: ignore[arg-type]

    def inter(self) -> Pattern:
        left = self.concat()
        return Intersection(left, self.inter()) if self.match("&") else left

    def concat(self) -> Pattern:
        items = [self.repeat()]
        while self.at < len(self.text) and not self.peek(")|&"):
            items.append(self.repeat())
        return items[0] if len(items) == 1 else Sequence(tuple(items))  # type: ignore[arg-type]

    def repeat(self) -> Pattern:
        item = self.compl()
        while self.peek("?*+{"):
            item = Repeat(item, *self.bounds(), "")  # type: ignore[arg-type]
        return item

    def bounds(self) -> tuple[int, int | None]:
        simple: dict[str, tuple[int, int | None]] = {"?": (0, 1), "*": (0, None), "+": (1, None)}
        char = self.text[self.at]
        if char in simple:
            self.at += 1
            return simple[char]
        count = _COUNT.match(self.text, self.at)
        if count is None:
            raise self.error("repetition count expected")
        self.at = count.end()
        least, comma, most = count.groups()
        return int(least), (int(most) if most else None) if comma else int(least)

    def compl(self) -> Pattern:
        return Complement(self.compl()) if self.match("~") else self.char_class()

    def char_class(self) -> Pattern:
        if not self.match("["):
            return self.simple()
        negated = self.match("^")
        ranges = self.class_item()
        while self.at < len(self.text) and not self.peek("]"):
            ranges = tree.union(ranges, self.class_item())
        self.expect("]")
        return Chars(tree.negate(ranges) if negated else ranges)

    def class_item(self) -> tree.Ranges:
        first = self.char()
        if not self.match("-"):
            return tree.of(first)
        if self.peek("]"):
            return tree.of(first + "-")
        last = self.char()
        return ((ord(first), ord(last)),) if first <= last else ()

    def char(self) -> str:
        self.match("\\")
        if self.at >= len(self.text):
            raise self.error("unexpected end")
        self.at += 1
        return self.text[self.at - 1]

    def simple(self) -> Pattern:  # noqa: PLR0911 - one return a case
        if self.match("."):
            return _ANY
        if self.match("#"):
            return Chars(())
        if self.match("@"):
            return Repeat(_ANY, 0, None, "")
        if self.match('"'):
            text = self.until('"')
            return Sequence(tuple(Chars(tree.of(char)) for char in text))
        if self.match("("):
            if self.match(")"):
                return EMPTY
            inner = self.union()
            self.expect(")")
            return inner
        return self.interval(self.until(">")) if self.match("<") else Chars(tree.of(self.char()))

    def until(self, end: str) -> str:
        start = self.at
        found = self.text.find(end, start)
        if found < 0:
            raise self.error(f"{end} expected")
        self.at = found + 1
        return self.text[start:found]

    def interval(self, text: str) -> Pattern:
        found = re.fullmatch(r"([0-9]+)-([0-9]+)", text)
        if found is None:
            raise self.error(f"interval expected, found <{text}>")
        low, high = sorted(map(int, found.groups()))
        digits = len(found[1]) if len(found[1]) == len(found[2]) else 0
        if digits:
            return _same_length(str(low).zfill(digits), str(high).zfill(digits))
        zeros = Repeat(Chars(tree.of("0")), 0, None, "")
        lengths = range(len(str(low)), len(str(high)) + 1)
        ranges = [(max(low, 10 ** (n - 1) if n > 1 else 0), min(high, 10**n - 1)) for n in lengths]
        return Sequence(
            (zeros, Alternation(tuple(_same_length(str(a), str(b)) for a, b in ranges)))
        )


def _same_length(low: str, high: str) -> Node:
    """Returns the digit strings from `low` to `high`, which are of one length."""
    if not low:
        return EMPTY
    first, last = low[0], high[0]
    if first == last:
        return Sequence((Chars(tree.of(first)), _same_length(low[1:], high[1:])))
    rest = len(low) - 1
    choices: list[Node] = [
        Sequence((Chars(tree.of(first)), _same_length(low[1:], "9" * rest))),
        Sequence((Chars(tree.of(last)), _same_length("0" * rest, high[1:]))),
    ]
    if ord(last) - ord(first) > 1:
        between = Chars(((ord(first) + 1, ord(last) - 1),))
        choices.append(Sequence((between, Repeat(Chars(tree.DIGIT), rest, rest, ""))))
    return Alternation(tuple(choices))


class AutomatonMatcher:
    """One pattern: by its automaton for a URL; for columns by Polars, if it is plain."""

    needs = None
    is_loop_rule = False

    def __init__(self, pattern: str) -> None:
        self.pattern = pattern
        self._tree = parse_pattern(pattern)
        self._automaton = Automaton(self._tree)

    def search(self, text: str, /) -> bool:
        return self._automaton.matches(text)

    @cached_property
    def superset(self) -> str | None:
        """A pattern for Polars that matches the same strings."""
        if not _is_plain(self._tree):
            return None
        whole = Sequence((Anchor("A"), self._tree, Anchor("z")))  # type: ignore[arg-type]
        text, _ = write_rust(Tree(whole, 0, {}))
        return None if is_too_large(text) else text

    @property
    def found_in(self) -> tuple[Pattern, bool]:
        """The pattern itself, as it has to match all of a URL."""
        return whole(self._tree), True

    def search_column(self, urls: pl.Series, /) -> pl.Series | None:
        return None if self.superset is None else urls.str.contains(self.superset)


def _is_plain(node: Pattern | Node) -> bool:
    """Returns True if an expression has no complement and no intersection."""
    if isinstance(node, Complement | Intersection):
        return False
    if isinstance(node, Repeat):
        return _is_plain(node.item)
    parts = (
        node.items
        if isinstance(node, Sequence)
        else node.choices
        if isinstance(node, Alternation)
        else ()
    )
    return all(map(_is_plain, parts))


class AutomatonURLFilter(RuleURLFilter):
    """org.apache.nutch.urlfilter.automaton.AutomatonURLFilter."""

    rules_property = "urlfilter.automaton.rules"
    file_property = "urlfilter.automaton.file"

    def compile(self, pattern: str) -> AutomatonMatcher:
        return AutomatonMatcher(pattern)
