"""Java's regular expressions (java.util.regex.Pattern of JDK 17) as a tree.

    alternation = sequence *( "|" sequence )
    sequence    = *( atom [ quantifier ] )
    quantifier  = ( "*" | "+" | "?" | "{" n [ "," [ m ] ] "}" ) [ "?" | "+" ]
    atom        = character | "." | "^" | "$" | class | escape | group
    group       = "(" [ "?:" | "?>" | "?=" | "?!" | "?<=" | "?<!" | "?<name>" | "?flags:" ]
                alternation ")" | "(?flags)"

Flags (`idmsuxU`) are resolved while reading: a case-blind letter becomes a class of both cases, `.`
the class that it means. So the tree does not depend on flags, and `writer` can write it in another
engine's dialect.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from minutch.urls.javaregex import tree
from minutch.urls.javaregex.tree import (
    Alternation,
    Anchor,
    Backreference,
    Chars,
    Look,
    Node,
    Ranges,
    RegexGroup,
    Repeat,
    Sequence,
    Tree,
)

_FLAG_GROUP = re.compile(r"\?([idmsuxU]*(?:-[idmsuxU]*)?)([:)])")
_NAME = re.compile(r"\?<([A-Za-z][A-Za-z0-9]*)>")
_LOOK = re.compile(r"\?(=|!|<=|<!|>)")
_COUNT = re.compile(r"\{(\d+)(?:(,)(\d*))?\}")
_SIMPLE_ESCAPES = {"t": "\t", "n": "\n", "r": "\r", "f": "\f", "a": "\a", "e": "\x1b"}
_CLASS_ESCAPES = {
    "d": tree.DIGIT,
    "w": tree.WORD,
    "s": tree.SPACE,
    "h": tree.HORIZONTAL,
    "v": tree.VERTICAL,
}
_ANCHOR_ESCAPES = {"A": "A", "G": "A", "z": "z", "Z": "Z", "b": "b", "B": "B"}
_CODES = (
    (re.compile(r"x\{([0-9A-Fa-f]+)\}"), 16),
    (re.compile(r"x([0-9A-Fa-f]{2})"), 16),
    (re.compile(r"u([0-9A-Fa-f]{4})"), 16),
    (re.compile(r"0([0-3]?[0-7]{1,2})"), 8),
)


class RegexSyntaxError(ValueError):
    """Not a Java regular expression; the message says where."""


@dataclass(frozen=True, slots=True)
class _Flags:
    letters: frozenset[str] = frozenset()

    def changed(self, text: str) -> _Flags:
        on, _, off = text.partition("-")
        return _Flags(self.letters.union(on).difference(off))

    def __contains__(self, letter: str) -> bool:
        return letter in self.letters


def parse_regex(pattern: str) -> Tree:
    """Reads a pattern; RegexSyntaxError if Java would not take it."""
    reader = _Reader(pattern)
    node = reader.alternation()
    if reader.at < len(pattern):
        raise reader.error("unmatched )")
    return Tree(node, reader.groups, reader.names)


class _Reader:
    def __init__(self, pattern: str) -> None:
        self.text = pattern
        self.at = 0
        self.groups = 0
        self.names: dict[str, int] = {}
        self.flags = _Flags()

    def error(self, what: str) -> RegexSyntaxError:
        return RegexSyntaxError(
            f"{what} at character {self.at} of regular expression {self.text!r}"
        )

    def peek(self) -> str:
        return self.text[self.at : self.at + 1]

    def take(self) -> str:
        char = self.peek()
        if not char:
            raise self.error("unexpected end")
        self.at += 1
        return char

    def match(self, pattern: re.Pattern[str]) -> re.Match[str] | None:
        found = pattern.match(self.text, self.at)
        if found is not None:
            self.at = found.end()
        return found

    # -- structure ---------------------------------------------------------------------------------

    def alternation(self) -> Node:
        """Returns up to the closing parenthesis; flags set inside end with it."""
        before = self.flags
        choices = [self.sequence()]
        while self.peek() == "|":
            self.at += 1
            choices.append(self.sequence())
        self.flags = before
        return choices[0] if len(choices) == 1 else Alternation(tuple(choices))

    def sequence(self) -> Node:
        items: list[Node] = []
        while True:
            self.skip_comments()
            if self.peek() in ("", "|", ")"):
                return items[0] if len(items) == 1 else Sequence(tuple(items))
            atoms = self.atom()
            if atoms:
                items += atoms[:-1]
                items.append(self.quantified(atoms[-1]))

    def skip_comments(self) -> None:
        while "x" in self.flags and (self.peek().isspace() or self.peek() == "#"):
            end = self.text.find("\n", self.at)
            # (?x): blanks and comments up to the end of the line.
            self.at = self.at + 1 if self.peek() != "#" else len(self.text) if end < 0 else end

    def quantified(self, item: Node) -> Node:
        while True:
            self.skip_comments()
            bounds = self.bounds()
            if bounds is None:
                return item
            mode = self.peek() if self.peek() in ("?", "+") else ""
            self.at += len(mode)
            # `a{2}{3}` is legal in Java: a repetition of a repetition.
            item = Repeat(item, *bounds, mode)

    def bounds(self) -> tuple[int, int | None] | None:
        simple = {"*": (0, None), "+": (1, None), "?": (0, 1)}.get(self.peek())
        if simple is not None:
            self.at += 1
            return simple
        if self.peek() != "{":
            return None
        count = self.match(_COUNT)
        if count is None:
            # A literal brace has to be escaped in Java, unlike in Python.
            raise self.error("illegal repetition")
        least, comma, most = count.groups()
        upper = (int(most) if most else None) if comma else int(least)
        if upper is not None and upper < int(least):
            raise self.error("illegal repetition range")
        return int(least), upper

    # -- atoms -------------------------------------------------------------------------------------

    def atom(self) -> list[Node]:
        char = self.take()
        if char == "(":
            return self.group()
        if char == "[":
            return [self.char_class()]
        if char == "\\":
            return self.escape()
        if char == ".":
            return [Chars(self.dot())]
        if char in "^$":
            return [Anchor(self.line_anchor(char))]
        if char in "*+?{":
            raise self.error(f"dangling {char}")
        return [self.literal(char)]

    def dot(self) -> Ranges:
        if "s" in self.flags:
            return tree.ANY_CHARACTER
        return tree.negate(tree.of("\n") if "d" in self.flags else tree.LINE_ENDS)

    def line_anchor(self, char: str) -> str:
        unix = "d" if "d" in self.flags else ""
        if "m" in self.flags:
            # (?m): at lines, (?d): only at \n.
            return char + unix
        return "A" if char == "^" else "Z" + unix

    def literal(self, char: str) -> Chars:
        return Chars(self.cased(tree.of(char)))

    def cased(self, ranges: Ranges) -> Ranges:
        if "i" not in self.flags:
            return ranges
        return tree.ignore_case(ranges) if "u" in self.flags else tree.ignore_ascii_case(ranges)

    def group(self) -> list[Node]:
        flags = self.match(_FLAG_GROUP)
        if flags is not None:
            changed = self.flags.changed(flags[1])
            if flags[2] == ")":
                # `(?i)` holds up to the end of the group that it stands in.
                self.flags = changed
                return []
            before, self.flags = self.flags, changed
            node = self.alternation()
            self.flags = before
            return [self.closed(node)]
        look = self.match(_LOOK)
        if look is not None:
            return [self.closed(Look(look[1], self.alternation()))]
        name = self.match(_NAME)
        if name is None and self.peek() == "?":
            raise self.error("unknown group")
        self.groups += 1
        number = self.groups
        if name is not None:
            if name[1] in self.names:
                raise self.error(f"second group {name[1]}")
            self.names[name[1]] = number
        return [self.closed(RegexGroup(number, self.alternation()))]

    def closed(self, node: Node) -> Node:
        if self.peek() != ")":
            raise self.error("unclosed group")
        self.at += 1
        return node

    def escape(self) -> list[Node]:
        char = self.peek()
        if char == "Q":
            return list(map(self.literal, self.quoted()))
        if char in _ANCHOR_ESCAPES and char:
            self.at += 1
            return [Anchor(_ANCHOR_ESCAPES[char])]
        if char == "R":
            self.at += 1
            pair = Sequence((Chars(tree.of("\r")), Chars(tree.of("\n"))))
            return [Alternation((pair, Chars(tree.VERTICAL)))]
        if char == "k":
            return [self.named_backreference()]
        if char in "123456789" and char:
            return [self.backreference()]
        return [Chars(self.escaped_set())]

    def quoted(self) -> str:
        self.at += 1
        end = self.text.find("\\E", self.at)
        text = self.text[self.at :] if end < 0 else self.text[self.at : end]
        self.at = len(self.text) if end < 0 else end + 2
        return text

    def backreference(self) -> Backreference:
        """Reads a back-reference: as many digits as still name a group that has begun."""
        number = int(self.take())
        # \11 is group 1 and a 1 where there are fewer than 11 groups.
        while self.peek().isdigit() and number * 10 + int(self.peek()) <= self.groups:
            number = number * 10 + int(self.take())
        return Backreference(number, "i" in self.flags)

    def named_backreference(self) -> Backreference:
        found = self.match(re.compile(r"k<([A-Za-z][A-Za-z0-9]*)>"))
        if found is None or found[1] not in self.names:
            raise self.error("unknown named group")
        return Backreference(self.names[found[1]], "i" in self.flags)

    def escaped_set(self) -> Ranges:
        """Reads an escape of one character and returns its set; `at` is behind the backslash."""
        for pattern, base in _CODES:
            code = self.match(pattern)
            if code is not None:
                return self.cased(((int(code[1], base), int(code[1], base)),))
        char = self.take()
        if char in _SIMPLE_ESCAPES:
            return tree.of(_SIMPLE_ESCAPES[char])
        if char == "c":
            # \cX: Java toggles the bit, and does not ask for a letter.
            return tree.of(chr(ord(self.take()) ^ 64))
        if char in "pP":
            found = self.property_class()
            return tree.negate(found) if char == "P" else found
        if char.lower() in _CLASS_ESCAPES:
            known = _CLASS_ESCAPES[char.lower()]
            if "U" in self.flags and char.lower() in "dws":
                known = tree.unicode_class(char.lower())
            return tree.negate(known) if char.isupper() else known
        # Reserved for escapes to come.
        if char.isascii() and char.isalpha():
            raise self.error(f"illegal escape \\{char}")
        return self.cased(tree.of(char))

    def property_class(self) -> Ranges:
        found = self.match(re.compile(r"\{(\^?)([^{}]+)\}|()([A-Za-z])"))
        if found is None:
            raise self.error("unclosed \\p")
        name = found[2] or found[4]
        try:
            ranges = tree.property_class(name)
        except ValueError as exc:
            raise self.error(f"unknown character property {name}") from exc
        return tree.negate(ranges) if found[1] else self.cased(ranges)

    # -- classes -----------------------------------------------------------------------------------

    def char_class(self) -> Chars:
        """Behind the opening bracket."""
        ranges = self.class_body()
        if self.peek() != "]":
            raise self.error("unclosed character class")
        self.at += 1
        return Chars(ranges)

    def class_body(self) -> Ranges:
        """Returns up to the closing bracket, which stays; negation holds for all of it."""
        negated = self.peek() == "^"
        self.at += negated
        result: Ranges = ()
        first = True
        # A bracket right behind the first one stands for itself.
        while self.peek() != "]" or first:
            if self.text.startswith("&&", self.at):
                self.at += 2
                result = tree.intersect(result, self.intersection_side())
            else:
                result = tree.union(result, self.class_item())
            first = False
        return tree.negate(result) if negated else result

    def intersection_side(self) -> Ranges:
        side: Ranges = ()
        while self.peek() != "]" and not self.text.startswith("&&", self.at):
            side = tree.union(side, self.class_item())
        return side

    def class_item(self) -> Ranges:
        char = self.take()
        if char == "[":
            return self.char_class().ranges
        if char == "\\":
            if self.peek() == "Q":
                return self.cased(tree.of(self.quoted()))
            low = self.escaped_set()
        else:
            low = self.cased(tree.of(char))
        # A hyphen at the end of a class stands for itself.
        if self.peek() != "-" or self.text[self.at + 1 : self.at + 2] in ("]", "[", ""):
            return low
        return self.class_range(char, low)

    def class_range(self, char: str, low: Ranges) -> Ranges:
        """`low` is the start of a range, unless it is a class."""
        if char == "\\" and not self._is_single(low):
            return low
        start = ord(char) if char != "\\" else low[-1][0]
        self.at += 1
        end_char = self.take()
        end_set = self.escaped_set() if end_char == "\\" else tree.of(end_char)
        end = end_set[-1][0]
        if end < start or not self._is_single(end_set):
            raise self.error("illegal character range")
        return self.cased(((start, end),))

    @staticmethod
    def _is_single(ranges: Ranges) -> bool:
        """One character, or one letter in both cases."""
        size = sum(high - low + 1 for low, high in ranges)
        return size == 1 or (size == 2 and chr(ranges[0][0]).lower() == chr(ranges[-1][0]).lower())
