"""Runs a pattern over a string, one state per character: linear time whatever the pattern; and
makes such a strict pattern, which matches a whole text between two marks, of a Java pattern, which
is found somewhere in it.

The states are what is left of the pattern after the characters read so far (Brzozowski's
derivatives). They are created when first reached and kept for the next URL. Complement and
intersection cost nothing extra. A state tells apart few characters (Owens, Reppy and Turon,
Regular-expression derivatives re-examined, 4.2): all others lead to the same one.

    ^a|b$   START a anything | anything b END

An anchor becomes a mark, which is no character of a text. Where a pattern can't be said exactly
(`\\b`, possessive repetitions) the strict one matches more. Of texts with line ends nothing is
said: anchors have more meanings there.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache, reduce
from typing import Final, TypeAlias

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

_MAX_STATES = 20_000
"""States kept; beyond, the cache is emptied."""
START: Final = tree.LAST + 1
END: Final = tree.LAST + 2
"""The marks, as codes of characters."""
ANYTHING: Final = Repeat(Chars(tree.ANY_CHARACTER), 0, None, "")
"""Marks too: `derivative` takes it for the complement of nothing."""
NOTHING: Final = Chars(())

_EMPTY: Final = Sequence(())
_START, _END = (Chars(((mark, mark),)) for mark in (START, END))


@dataclass(frozen=True, slots=True)
class Intersection:
    """A pattern of the texts that both parts match."""

    left: Pattern
    right: Pattern


@dataclass(frozen=True, slots=True)
class Complement:
    """A pattern of the texts that its part does not match."""

    item: Pattern


Pattern: TypeAlias = Node | Intersection | Complement
"""A tree of nodes (`tree`, without groups, look-around, references), with these two anywhere."""


def size_of(patterns: Iterable[Pattern], most: int) -> int:
    """Counts the characters in patterns, each as often as it may be repeated; stops at `most`."""
    todo, size = [(pattern, 1) for pattern in patterns], 0
    while todo and size < most:
        pattern, times = todo.pop()
        if isinstance(pattern, Repeat):
            todo.append((pattern.item, times * max(1, pattern.least, pattern.most or 0)))
        elif isinstance(pattern, Sequence):
            todo += [(item, times) for item in pattern.items]
        elif isinstance(pattern, Alternation):
            todo += [(choice, times) for choice in pattern.choices]
        elif isinstance(pattern, Intersection):
            todo += [(pattern.left, times), (pattern.right, times)]
        elif isinstance(pattern, Complement):
            todo.append((pattern.item, times))
        else:
            size += times
    return min(size, most)


class State:
    """A normalised pattern: those that accept the same in equal form are one object, as states."""

    __slots__ = ("kind", "nullable", "parts", "ranges", "sets", "steps")

    def __init__(self, kind: str, parts: tuple[State, ...], ranges: Ranges, nullable: bool) -> None:
        self.kind = kind
        self.parts = parts
        self.ranges = ranges
        self.nullable = nullable
        self.sets: frozenset[int] | None = None
        self.steps: dict[int, State] = {}


class Automaton:
    """The states of one pattern, or of several."""

    def __init__(self, pattern: Pattern) -> None:
        self._states: dict[tuple[str, tuple[int, ...], Ranges], State] = {}
        self._nothing = self._make("chars", (), ())
        self._empty = self._make("empty", ())
        self._anything = self._make("not", (self._nothing,))
        self._start = self.state_of(pattern)

    def matches(self, text: str) -> bool:
        """Returns whether the pattern matches all of `text`; characters count as UTF-16 units."""
        if not text.isascii():
            units = text.encode("utf-16-le", "surrogatepass")
            text = "".join(chr(units[i] | units[i + 1] << 8) for i in range(0, len(units), 2))
        return self.matches_codes(map(ord, text))

    def matches_codes(self, codes: Iterable[int]) -> bool:
        """Returns the same for codes of characters, or of marks."""
        state = self._start
        for code in codes:
            state = self.derive(state, code)
            # Nothing that follows can match any more.
            if state is self._nothing:
                return False
        self._shrink()
        return state.nullable

    def _shrink(self) -> None:
        # All steps go, and states that only they lead to.
        if len(self._states) > _MAX_STATES:
            for state in self._states.values():
                state.steps.clear()
            keep = self._reachable()
            self._states = {key: state for key, state in self._states.items() if id(state) in keep}

    def _reachable(self) -> set[int]:
        """Returns the ids of the start state and its parts."""
        todo, seen = [self._start, self._nothing, self._empty, self._anything], set()
        while todo:
            state = todo.pop()
            if id(state) not in seen:
                seen.add(id(state))
                todo += state.parts
        return seen

    # -- states ------------------------------------------------------------------------------------

    def _make(self, kind: str, parts: tuple[State, ...], ranges: Ranges = ()) -> State:
        # Parts are shared objects, so their identities are their equality.
        key = (kind, tuple(map(id, parts)), ranges)
        state = self._states.get(key)
        if state is None:
            state = self._states[key] = State(kind, parts, ranges, _is_nullable(kind, parts))
        return state

    def _concat(self, first: State, second: State) -> State:
        if first is self._nothing or second is self._nothing:
            return self._nothing
        if first is self._empty:
            return second
        if second is self._empty:
            return first
        # To the right, so that ab·c and a·bc are one state.
        if first.kind == "concat":
            return self._concat(first.parts[0], self._concat(first.parts[1], second))
        return self._make("concat", (first, second))

    def _either(self, *choices: State) -> State:
        return self._combine("or", choices, neutral=self._nothing, absorbing=self._anything)

    def _both(self, *demands: State) -> State:
        return self._combine("and", demands, neutral=self._anything, absorbing=self._nothing)

    def _combine(
        self, kind: str, sides: tuple[State, ...], *, neutral: State, absorbing: State
    ) -> State:
        """Order and repetition don't count. All at once: two by two, each pair became a state."""
        members = {
            id(part): part
            for side in sides
            for part in (side.parts if side.kind == kind else (side,))
        }
        members.pop(id(neutral), None)
        if id(absorbing) in members:
            return absorbing
        # By identity: any order will do, if it is always the same.
        parts = tuple([members[key] for key in sorted(members)])
        return neutral if not parts else parts[0] if len(parts) == 1 else self._make(kind, parts)

    def _not(self, item: State) -> State:
        return item.parts[0] if item.kind == "not" else self._make("not", (item,))

    def _star(self, item: State) -> State:
        if item is self._nothing or item is self._empty:
            return self._empty
        if item.kind == "chars" and item.ranges == tree.ANY_CHARACTER:
            return self._anything
        return item if item.kind == "star" else self._make("star", (item,))

    # -- from a pattern, and on by a character -----------------------------------------------------

    def state_of(self, pattern: Pattern) -> State:
        """Returns the state that is a whole pattern."""
        if isinstance(pattern, Chars):
            return self._make("chars", (), pattern.ranges)
        if isinstance(pattern, Sequence):
            return reduce(
                lambda rest, item: self._concat(self.state_of(item), rest),
                pattern.items[::-1],
                self._empty,
            )
        if isinstance(pattern, Alternation):
            return self._either(*map(self.state_of, pattern.choices))
        if isinstance(pattern, Intersection):
            return self._both(self.state_of(pattern.left), self.state_of(pattern.right))
        if isinstance(pattern, Complement):
            return self._not(self.state_of(pattern.item))
        assert isinstance(pattern, Repeat)
        return self._repeat(self.state_of(pattern.item), pattern.least, pattern.most)

    def _repeat(self, item: State, least: int, most: int | None) -> State:
        if most is None:
            tail = self._star(item)
        elif most < least:
            return self._nothing
        else:
            tail = self._empty
            for _ in range(most - least):
                # From the inside out: x{0,2} is (x(x)?)?.
                tail = self._either(self._empty, self._concat(item, tail))
        for _ in range(least):
            tail = self._concat(item, tail)
        return tail

    def derive(self, state: State, code: int) -> State:
        """Returns the state that follows one after a character, given by its code."""
        following = state.steps.get(code)
        if following is None:
            following = state.steps[code] = self._derived(state, code)
        return following

    def sets(self, state: State) -> frozenset[int]:
        """Returns the sets of ASCII characters, each a bit of a number, that a state asks about;
        two that are in the same ones lead to the same state.
        """
        if state.sets is None:
            asked = state.parts
            if state.kind == "concat" and not asked[0].nullable:
                asked = asked[:1]
            own = {_ascii(state.ranges)} if state.kind == "chars" else ()
            state.sets = frozenset().union(own, *map(self.sets, asked))
        return state.sets

    def _derived(self, state: State, code: int) -> State:
        kind, parts = state.kind, state.parts
        if kind == "chars":
            return (
                self._empty
                if any(low <= code <= high for low, high in state.ranges)
                else self._nothing
            )
        if kind == "empty":
            return self._nothing
        if kind == "concat":
            first = self._concat(self.derive(parts[0], code), parts[1])
            # Brzozowski: d(rs) = d(r)s, and d(s) if r may be empty.
            return self._either(first, self.derive(parts[1], code)) if parts[0].nullable else first
        if kind == "star":
            # d(r*) = d(r) r*.
            return self._concat(self.derive(parts[0], code), state)
        if kind == "not":
            # The complement of a derivative is that of the complement.
            return self._not(self.derive(parts[0], code))
        join = self._either if kind == "or" else self._both
        return join(*[self.derive(part, code) for part in parts])


@lru_cache(maxsize=1024)
def _ascii(ranges: Ranges) -> int:
    """Returns the ASCII characters of ranges, each a bit."""
    return sum((1 << min(high + 1, 128)) - (1 << low) for low, high in ranges if low < 128)


def _is_nullable(kind: str, parts: tuple[State, ...]) -> bool:
    if kind in ("empty", "star"):
        return True
    if kind == "not":
        return not parts[0].nullable
    if kind == "or":
        return any(part.nullable for part in parts)
    return kind != "chars" and all(part.nullable for part in parts)


class _Unsaid(Exception):
    """The node has no strict pattern."""


def whole(pattern: Pattern) -> Pattern:
    """Returns the texts that a strict pattern matches from end to end."""
    return Sequence((_START, pattern, _END))  # type: ignore[arg-type]  # any pattern may stand in it


def found_in(tree: Tree) -> tuple[Pattern, bool] | None:
    """Returns the texts in which a pattern is found, and whether that is exact (they may be more);
    None if that can't be said.
    """
    try:
        strict, is_exact = _strict(tree.node, head=True, tail=True)
    except _Unsaid:
        return None
    return Sequence((ANYTHING, strict, ANYTHING)), is_exact


def _strict(node: Node, *, head: bool, tail: bool) -> tuple[Node, bool]:  # noqa: PLR0911 - one return a case
    """Returns a node without what is not strict; `head`, `tail`: nothing stands before, behind."""
    if isinstance(node, Chars):
        return node, True
    if isinstance(node, RegexGroup):
        return _strict(node.item, head=head, tail=tail)
    if isinstance(node, Sequence):
        last = len(node.items) - 1
        parts = [
            _strict(item, head=head and i == 0, tail=tail and i == last)
            for i, item in enumerate(node.items)
        ]
        return Sequence(tuple(part for part, _ in parts)), all(exact for _, exact in parts)
    if isinstance(node, Alternation):
        parts = [_strict(choice, head=head, tail=tail) for choice in node.choices]
        return Alternation(tuple(part for part, _ in parts)), all(exact for _, exact in parts)
    if isinstance(node, Repeat):
        # Within a repetition an anchor may be passed several times.
        item, exact = _strict(node.item, head=False, tail=False)
        # Lazy or greedy makes no difference to whether there is a match.
        return Repeat(item, node.least, node.most, ""), exact and node.mode != "+"
    if isinstance(node, Anchor):
        return _mark(node.kind, head=head, tail=tail)
    if isinstance(node, Look):
        return _look(node, head=head, tail=tail)
    assert isinstance(node, Backreference)
    raise _Unsaid


def _mark(kind: str, *, head: bool, tail: bool) -> tuple[Node, bool]:
    if kind[0] in "bB":
        return _EMPTY, False
    if kind[0] in "A^" and head:
        return _START, True
    if kind[0] in "zZ$" and tail:
        return _END, True
    raise _Unsaid


def _look(node: Look, *, head: bool, tail: bool) -> tuple[Node, bool]:
    """Returns an atomic group, or a single character that must not stand before the match."""
    if node.kind == ">":
        return _strict(node.item, head=head, tail=tail)[0], False
    if node.kind == "<!" and head and isinstance(node.item, Chars):
        # No character, or one of the others.
        return Alternation((_START, Chars(tree.negate(node.item.ranges)))), True
    raise _Unsaid
