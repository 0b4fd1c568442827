"""Decides which words blocks of a page have lost and got: lines that were removed and added are
paired by the words that they share, and compared word by word (difflib, Ratcliff and Obershelp).
Pure.

What would take long is bounded: a line is looked for among those _NEAR it, long lines are compared
whole but for what they begin and end with.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from difflib import SequenceMatcher
from typing import Final, NamedTuple

SAME: Final = " "
REMOVED: Final = "-"
ADDED: Final = "+"
CONTEXT: Final = 6
"""Words that are shown on either side of a change."""
_NEAR: Final = 24
_ALIKE: Final = 0.5
_MOST: Final = 1500
"""Words of a line that are compared one by one."""
_PAIRS: Final = 20_000
"""Pairs of equal words among them."""
_LIST: Final = re.compile(r"\s*[:,;|/·•]\s*")
Piece = tuple[str, str]
"""SAME, REMOVED or ADDED, and words."""


class ChangedBlock(NamedTuple):
    """A block as it was and is, one of them "" where there is none; and its pieces."""

    removed: str
    added: str
    pieces: list[Piece]

    @property
    def counts(self) -> tuple[int, int]:
        """The numbers of words that were added and removed."""
        added, removed = (
            sum(len(words.split()) for op, words in self.pieces if op == kind)
            for kind in (ADDED, REMOVED)
        )
        return added, removed


def says_the_same(removed: Sequence[str], added: Sequence[str]) -> bool:
    """Tells whether lines have the same words in the same order, or one list the same items."""
    if " ".join(removed).split() == " ".join(added).split():
        return True
    return len(removed) == len(added) == 1 and _is_shuffled(removed[0], added[0])


def _is_shuffled(removed: str, added: str) -> bool:
    """Tells whether lines have the same items, three at least, between commas and the like."""
    items = _LIST.split(removed.removesuffix("."))
    return len(items) > 2 and sorted(items) == sorted(_LIST.split(added.removesuffix(".")))


def blocks(removed: Sequence[str], added: Sequence[str]) -> Iterator[ChangedBlock]:
    """Yields what has become of lines: what is gone, then what is new or another in its place."""
    found = []
    left = [(line, Counter(line.split())) for line in removed]
    for line in added:
        best, least = -1, _ALIKE
        words = Counter(line.split())
        for at, (_, others) in enumerate(left[:_NEAR]):
            alike = 2 * (words & others).total() / (words.total() + others.total())
            if alike > least or (alike == least and best < 0):
                best, least = at, alike
        if best < 0:
            found.append(ChangedBlock("", line, [(ADDED, line)]))
        else:
            before, _ = left.pop(best)
            if before != line and not _is_shuffled(before, line):
                pieces = list(_compared(before.split(), line.split()))
                found.append(ChangedBlock(before, line, pieces))
    for line, _ in left:
        yield ChangedBlock(line, "", [(REMOVED, line)])
    yield from found


def _compared(old: list[str], new: list[str]) -> Iterator[Piece]:
    """Yields the pieces of a line, of which words that stay are cut."""
    first = 0
    while first < min(len(old), len(new)) and old[first] == new[first]:
        first += 1
    last = 0
    while last < min(len(old), len(new)) - first and old[-1 - last] == new[-1 - last]:
        last += 1
    yield from _same(old[:first], is_first=True)
    old, tail = old[first : len(old) - last], old[len(old) - last :]
    new = new[first : len(new) - last]
    counts = Counter(old)
    pairs = sum(counts[word] for word in new)
    # SequenceMatcher is quadratic in pairs of equal words.
    if max(len(old), len(new)) > _MOST or pairs > _PAIRS:
        codes = [("replace", 0, len(old), 0, len(new))]
    else:
        # autojunk would leave frequent words out of lines with 200 words or more.
        codes = list(SequenceMatcher(None, old, new, autojunk=False).get_opcodes())
    for op, a, b, c, d in codes:
        if op == "equal":
            yield from _same(old[a:b])
        if op in ("delete", "replace") and b > a:
            yield REMOVED, " ".join(old[a:b])
        if op in ("insert", "replace") and d > c:
            yield ADDED, " ".join(new[c:d])
    yield from _same(tail, is_last=True)


def _same(words: list[str], *, is_first: bool = False, is_last: bool = False) -> Iterator[Piece]:
    """Yields words that stay, those near a change; `…` stands for others."""
    if not words:
        return
    ends = int(not is_first) + int(not is_last)
    if len(words) > CONTEXT * ends + 1:
        head = [] if is_first else words[:CONTEXT]
        tail = [] if is_last else words[-CONTEXT:]
        words = [*head, "…", *tail]
    yield SAME, " ".join(words)


def as_lines(pieces: Sequence[Piece]) -> list[str]:
    """Returns pieces as one line of what was, `- …`, and one of what is, `+ …`."""
    found = []
    for kind in (REMOVED, ADDED):
        if any(op == kind for op, _ in pieces):
            words = " ".join(words for op, words in pieces if op in (SAME, kind))
            found.append(f"{kind} {words}")
    return found
