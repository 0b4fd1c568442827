"""Writes a regular expression's tree in another engine's dialect.

python   for `re` and `regex`: the same matches as Java's rust     for Polars: linear time, on
strings without line ends; it has no look-around, back-references or atomic
         groups, so the pattern may match more than Java's does. `exact` says whether it does not.
"""

from __future__ import annotations

from collections.abc import Callable

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

_LINE_END = r"[\n\r\x85\u2028\u2029]"
_PYTHON_ANCHORS = {
    "A": r"\A",
    "z": r"\Z",
    "Z": rf"(?=(?:\r\n|{_LINE_END})?\Z)",
    "b": r"\b",
    "B": r"(?!\b)",
    "^": rf"(?:\A|(?<={_LINE_END})(?<!\r(?=\n)))(?!\Z)",
    "$": rf"(?={_LINE_END}|\Z)",
    "Zd": r"(?=\n?\Z)",
    "^d": r"(?m:^)(?!\Z)",
    "$d": "(?m:$)",
}
_RUST_ANCHORS = {"A": r"\A", "^": r"\A", "^d": r"\A"} | dict.fromkeys(
    ("z", "Z", "$", "Zd", "$d"), r"\z"
)
_DOT = tree.negate(tree.LINE_ENDS)
_SCALARS: Ranges = ((0, 0xD7FF), (0xE000, tree.LAST))


def write_python(tree: Tree) -> str:
    """Returns the pattern for Python's engines; groups keep their numbers."""
    return _Writer(_python_code, _PYTHON_ANCHORS).write(_literal_first(tree.node))


def write_rust(tree: Tree) -> tuple[str, bool]:
    """Returns a pattern that matches wherever the tree does, and whether it matches only there."""
    writer = _RustWriter()
    return writer.write_whole(tree.node), writer.exact


def _literal_first(node: Node) -> Node:
    """`(?<!a)b+` as `b(?<!ab)b*`, which is the same and lets Python's `re` look for `b` first."""
    if not isinstance(node, Sequence) or len(node.items) < 2:
        return node
    look, repeat, *rest = node.items
    if not (isinstance(look, Look) and look.kind in ("<=", "<!") and isinstance(look.item, Chars)):
        return node
    if not (
        isinstance(repeat, Repeat)
        and isinstance(repeat.item, Chars)
        and repeat.least
        and not repeat.mode
    ):
        return node
    first = (repeat.item,) * repeat.least
    more = Repeat(repeat.item, 0, None if repeat.most is None else repeat.most - repeat.least, "")
    return Sequence((*first, Look(look.kind, Sequence((look.item, *first))), more, *rest))


def _python_code(code: int) -> str:
    char = chr(code)
    if char.isascii() and (char.isalnum() or char in "/:_"):
        return char
    return (
        f"\\x{code:02x}"
        if code < 0x100
        else f"\\u{code:04x}"
        if code < 0x10000
        else f"\\U{code:08x}"
    )


def _rust_code(code: int) -> str:
    char = chr(code)
    return char if char.isascii() and (char.isalnum() or char in "/:_") else f"\\x{{{code:x}}}"


class _Writer:
    """Python's dialect; what Rust lacks is overridden below."""

    def __init__(self, code: Callable[[int], str], anchors: dict[str, str]) -> None:
        self.code = code
        self.anchors = anchors
        self.closed: set[int] = set()
        self.methods: dict[type[Node], Callable[..., str]] = {
            Chars: self.chars,
            Sequence: self.sequence,
            Alternation: self.alternation,
            Repeat: self.repeat,
            RegexGroup: self.group,
            Look: self.look,
            Backreference: self.backreference,
            Anchor: self.anchor,
        }

    def write(self, node: Node) -> str:
        return self.methods[type(node)](node)

    def chars(self, node: Chars) -> str:
        ranges = node.ranges
        if len(ranges) == 1 and ranges[0][0] == ranges[0][1]:
            return self.code(ranges[0][0])
        if ranges == tree.ANY_CHARACTER:
            return r"[\s\S]"
        if not ranges:
            return r"[^\s\S]"
        other = tree.negate(ranges)
        # A negated class in the pattern: shorter as one again.
        if ranges[0][0] == 0 and ranges[-1][1] == tree.LAST:
            return f"[^{self.pairs(other)}]"
        return f"[{self.pairs(ranges)}]"

    def pairs(self, ranges: Ranges) -> str:
        code = self.code
        return "".join(
            code(low) if low == high else f"{code(low)}-{code(high)}" for low, high in ranges
        )

    def sequence(self, node: Sequence) -> str:
        return "".join(
            f"(?:{self.write(item)})" if isinstance(item, Alternation) else self.write(item)
            for item in node.items
        )

    def alternation(self, node: Alternation) -> str:
        return "|".join(map(self.write, node.choices))

    def repeat(self, node: Repeat) -> str:
        text = self.write(node.item)
        # `a*+` would be read as one quantifier.
        if not isinstance(node.item, Chars | RegexGroup):
            text = f"(?:{text})"
        return text + _quantifier(node) + node.mode

    def group(self, node: RegexGroup) -> str:
        text = f"({self.write(node.item)})"
        self.closed.add(node.number)
        return text

    def look(self, node: Look) -> str:
        return f"(?{node.kind}{self.write(node.item)})"

    def backreference(self, node: Backreference) -> str:
        """A group that has not been closed yet matches nothing."""
        if node.number not in self.closed:
            return "(?!)"
        # In a group, or a digit behind would be read as part of the number.
        return f"(?i:\\{node.number})" if node.ignore_case else f"(?:\\{node.number})"

    def anchor(self, node: Anchor) -> str:
        return self.anchors[node.kind]


def _quantifier(node: Repeat) -> str:
    simple = {(0, None): "*", (1, None): "+", (0, 1): "?"}.get((node.least, node.most))
    if simple is not None:
        return simple
    most = "" if node.most is None else str(node.most)
    return f"{{{node.least}}}" if node.least == node.most else f"{{{node.least},{most}}}"


class _RustWriter(_Writer):
    def __init__(self) -> None:
        super().__init__(_rust_code, _RUST_ANCHORS)
        self.exact = True
        self.groups: dict[int, Node] = {}
        self.inside_copy = False

    def write_whole(self, node: Node) -> str:
        """Writes the root, where look-around of one character at either end has another form."""
        choices = node.choices if isinstance(node, Alternation) else (node,)
        return "|".join(map(self.write_branch, choices))

    def write_branch(self, node: Node) -> str:
        items = list(node.items) if isinstance(node, Sequence) else [node]
        before = after = ""
        if len(items) > 1 and isinstance(items[0], Look) and isinstance(items[0].item, Chars):
            before = self.edge(items[0], "<", r"\A")
        if len(items) > 1 and isinstance(items[-1], Look) and isinstance(items[-1].item, Chars):
            after = self.edge(items[-1], "", r"\z")
        kept = tuple(items[bool(before) : len(items) - bool(after)])
        return f"{before}{self.sequence(Sequence(kept))}{after}"

    def edge(self, look: Look, side: str, end: str) -> str:
        """Returns the character that has to stand there, or the end or any other character; "" if
        it looks the other way.
        """
        assert isinstance(look.item, Chars)
        if look.kind == f"{side}=":
            return self.chars(look.item)
        if look.kind == f"{side}!":
            return f"(?:{end}|{self.chars(Chars(tree.negate(look.item.ranges)))})"
        return ""

    def chars(self, node: Chars) -> str:
        """Rust knows no surrogates."""
        if node.ranges == _DOT:
            return "."
        ranges = tree.intersect(node.ranges, _SCALARS)
        if ranges == _SCALARS:
            return r"[\s\S]"
        other = tree.intersect(tree.negate(node.ranges), _SCALARS)
        if len(other) < len(ranges):
            return f"[^{self.pairs(other)}]"
        return super().chars(Chars(ranges))

    def repeat(self, node: Repeat) -> str:
        if node.mode == "+":
            self.exact = False
        return super().repeat(Repeat(node.item, node.least, node.most, ""))

    def group(self, node: RegexGroup) -> str:
        self.groups[node.number] = node.item
        return f"(?:{self.write(node.item)})"

    def look(self, node: Look) -> str:
        self.exact = False
        # Left out, the pattern matches more, which `exact` says.
        return f"(?:{self.write(node.item)})" if node.kind == ">" else ""

    def backreference(self, node: Backreference) -> str:
        """Whatever the group could match; its anchors have been checked there."""
        self.exact = False
        item = self.groups.get(node.number)
        if item is None or node.ignore_case or self.inside_copy:
            return r"[\s\S]*"
        self.inside_copy = True
        text = self.write(item)
        self.inside_copy = False
        return f"(?:{text})"

    def anchor(self, node: Anchor) -> str:
        text = "" if self.inside_copy else self.anchors.get(node.kind, "")
        if not text:
            self.exact = False
        return text
